package sandbox

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes this test binary the helper of its own tests, and the other processes that they need.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if os.Args[1] == ShimArgument {
			os.Exit(Shim())
		}
		if role, ok := roles()[os.Args[1]]; ok {
			os.Exit(role(os.Args[2:]))
		}
	}
	goleak.VerifyTestMain(m)
}
