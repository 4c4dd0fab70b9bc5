//go:build !linux

package scripttool

import "syscall"

// attributes put a child into a session of its own. It ends with its parent because its standard input does.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
