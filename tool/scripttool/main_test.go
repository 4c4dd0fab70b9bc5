package scripttool

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/sandbox"
)

// TestMain makes this test binary the child of its own tests, and the helper of the sandbox where that needs one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case ChildArgument:
			os.Exit(Child())
		case sandbox.ShimArgument:
			os.Exit(sandbox.Shim())
		case strayArgument:
			os.Exit(stray(os.Args[2], os.Args[3] == "open"))
		}
	}
	goleak.VerifyTestMain(m)
}
