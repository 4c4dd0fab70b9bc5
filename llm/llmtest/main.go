package llmtest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of an adapter's package and returns the exit code. closeIdle closes the connections that the adapter
// keeps; a goroutine that is left after it fails the package.
func Main(m *testing.M, closeIdle func()) int {
	code := m.Run()
	closeIdle()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
