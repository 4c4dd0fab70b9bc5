package main

import (
	"os"

	"github.com/hozo-run/hozo/tool/scripttool"
)

// codemodeChild runs the script of a codemode call and ends, if this process was started for that. It comes before the
// command line is built: each script starts the program once.
func codemodeChild(args []string) {
	if len(args) == 2 && args[1] == scripttool.ChildArgument {
		os.Exit(scripttool.Child())
	}
}
