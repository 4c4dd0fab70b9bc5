//go:build !linux

package checkout_test

import "testing"

func mountSmall(t *testing.T, _ string) { t.Skip("a file system of a size is mounted on Linux only") }
