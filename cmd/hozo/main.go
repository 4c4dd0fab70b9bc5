// Command hozo runs AI agents: each job from one self-contained document, confined to the directories it names, with
// every step reported as an event and exactly one outcome. "hozo job" is for programs, "hozo run" for people; "hozo
// agent", "models", "tools" and "schema" say what there is to run and whether it is right. See "hozo help".
//
// This is the only package that names concrete adapters and tools (wire.go). Commands that run jobs find nothing by
// themselves: no configuration file, no home directory, no file beside an agent is opened unless the command line names it.
// Those that start a server or speak to one read settings in the places that "hozo config show --origin" names.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

//go:generate go run . docs ../../docs/cli

// version is set by the linker.
var version = ""

func main() {
	sandboxExec(os.Args)
	codemodeChild(os.Args)
	p := &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	os.Exit(p.main(os.Args[1:]))
}

// program is one run of the command: its streams, and what it learns on the way to its exit code.
type program struct {
	stdin  *os.File
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string

	// running is set once a command's arguments were right; an error before that is one of usage.
	running bool
}

// exitError ends the program with a code. A nil err says that everything was said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is a fault of the command line that only the command itself could see.
func usageError(format string, args ...any) error {
	return &exitError{code: job.ExitUsage, err: fmt.Errorf(format, args...)}
}

// main runs the command line and returns the exit code.
func (p *program) main(args []string) int {
	root := p.newRoot()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return 0
	}
	code := p.exitCode(err)
	var silent *exitError
	if errors.As(err, &silent) && silent.err == nil {
		return code
	}
	fmt.Fprintf(p.stderr, "%s: %s\n", command.CommandPath(), visible(err.Error()))
	if code == job.ExitUsage {
		fmt.Fprintf(p.stderr, "Run \"%s --help\" for usage.\n", command.CommandPath())
	}
	return code
}

// exitCode is the one table from errors to exit codes.
func (p *program) exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if !p.running {
		return job.ExitUsage
	}
	if problem.KindOf(err) == problem.Invalid {
		return job.ExitInvalidSpec
	}
	return 1
}

// runs marks the point up to which an error is one of usage.
func (p *program) runs(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		p.running = true
		return do(command, args)
	}
}
