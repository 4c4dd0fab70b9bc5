package main

import (
	"os"

	"github.com/hozo-run/hozo/sandbox"
)

// sandboxExec makes this process the helper of a sandbox if it was started as one, and does not return then. It comes
// before everything else that the program does: where it is needed, each command of an agent waits for it.
func sandboxExec(args []string) {
	if len(args) > 1 && args[1] == sandbox.ShimArgument {
		os.Exit(sandbox.Shim())
	}
}
