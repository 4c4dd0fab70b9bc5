// Bench measures hozo beside other agent runtimes on the same machine, in one run, on the same work, and prints one table:
// absolute figures, and what hozo's is in proportion to each. It builds hozo as it ships and a runner for each runtime,
// starts fakellm as their provider, runs every subject in turn for a number of passes, compares the file tools with
// ripgrep, GNU grep and fd over the Go source tree, and sets calls that leave the process (of MCP servers, of the shell, of
// scripts) beside the same without hozo. A runtime or a program that this machine does not have is named as
// missing. How fast anything is makes no difference to the exit status; wrong counts in hozo's runs do.
//
//	bench [-quick] [-only REGEXP] [-out DIR]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
)

// options are the flags.
type options struct {
	quick bool
	only  *regexp.Regexp
	out   string
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "one short pass of everything, in under five minutes")
	flag.StringVar(&o.out, "out", "out", "the directory for programs and results, below bench")
	only := flag.String("only", "", "measure only the subjects whose name matches this expression; \"files\" is the file tools, \"mcp\", \"shell\" and \"codemode\" are calls that leave the process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.only, err = regexp.Compile(*only); err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	o.out = out
	b := &bench{options: o, machine: readMachine()}
	if err := b.build(ctx); err != nil {
		return err
	}
	measured := b.measure(ctx)
	if ctx.Err() != nil { // what was measured until then is shown all the same
		measured = context.Cause(ctx)
	}
	return errors.Join(measured, b.report())
}

// bench is one run of the whole program.
type bench struct {
	options
	machine  machine
	subjects []subject
	// missing says what is not measured and why, failures what went wrong while measuring.
	missing, failures []string
	results           results
	searches          []searchResult
	tools             []toolCost
	// isolation is the level of protection that processes had.
	isolation string
}

// progress tells a person what is going on; results go to standard output.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (b *bench) miss(format string, args ...any) {
	b.missing = append(b.missing, fmt.Sprintf(format, args...))
	progress("missing: "+format, args...)
}
