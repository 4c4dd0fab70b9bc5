//go:build !linux

package main

// crashPrograms are those of the crash harness, which needs a child that dies with its parent.
func crashPrograms() map[string]func() { return map[string]func(){} }
