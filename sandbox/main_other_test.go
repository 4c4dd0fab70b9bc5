//go:build !linux

package sandbox

// roles are what this test binary does when it is started with one of these words.
func roles() map[string]func([]string) int { return nil }
