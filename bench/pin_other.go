//go:build !linux

package main

// cores reports that processes cannot be bound to processors here, so provider and subject share all of them.
func cores() (provider, subject int, ok bool) { return 0, 0, false }

func pinned(_ int, start func() error) error { return start() }
