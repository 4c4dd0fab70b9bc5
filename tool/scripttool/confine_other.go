//go:build !linux

package scripttool

// dropCalls has nothing to do here: there is no filter of system calls. The script still has a process of its own, limits
// and an engine without any function of the machine; package sandbox reports what is missing.
func dropCalls() error { return nil }
