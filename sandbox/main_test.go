package sandbox

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes this test binary the helper of its own tests, and the other processes that they need.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		// The race detector would make each of these processes last a second longer if they ended by os.Exit.
		if os.Args[1] == ShimArgument {
			syscall.Exit(Shim())
		}
		if role, ok := roles()[os.Args[1]]; ok {
			syscall.Exit(role(os.Args[2:]))
		}
	}
	goleak.VerifyTestMain(m)
}
