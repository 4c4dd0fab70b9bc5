package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/hostlender"
	"github.com/hozo-run/hozo/kernel/mcplender"
	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/telemetry"
)

// operator is what the person or service that runs this program decides for every job; no job document can say it.
type operator struct {
	sandbox        string
	shellNetwork   bool
	gitWrites      bool
	privateMCP     bool
	noProcessTools bool
}

// The settings of --sandbox.
const (
	sandboxBestEffort = "best-effort"
	sandboxRequired   = "required"
	sandboxNone       = "none"
)

// processTools are the tools that start programs of the machine.
var processTools = []string{"shell", "git"}

func (o *operator) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.sandbox, "sandbox", sandboxBestEffort, "confine commands: `WORD` best-effort, required (else no commands) or none")
	flags.BoolVar(&o.shellNetwork, "shell-network", false, "let commands use the network")
	flags.BoolVar(&o.gitWrites, "git-writes", false, "let the git tool change repositories")
	flags.BoolVar(&o.privateMCP, "private-mcp", false, "let MCP servers have loopback and private addresses")
	flags.BoolVar(&o.noProcessTools, "no-process-tools", false, "give shell and git only to agents that name them")
}

func (o *operator) check() error {
	words := []string{sandboxBestEffort, sandboxRequired, sandboxNone}
	if !slices.Contains(words, o.sandbox) {
		return usageError("--sandbox %q: use one of %s", o.sandbox, strings.Join(words, ", "))
	}
	return nil
}

// arguments are the flags that give a job process the same settings.
func (o *operator) arguments() []string {
	arguments := []string{"--sandbox=" + o.sandbox}
	for name, set := range map[string]bool{"shell-network": o.shellNetwork, "git-writes": o.gitWrites, "private-mcp": o.privateMCP,
		"no-process-tools": o.noProcessTools} {
		if set {
			arguments = append(arguments, "--"+name)
		}
	}
	slices.Sort(arguments)
	return arguments
}

// apply settles what a runtime lends to jobs under these settings.
func (o *operator) apply(config *kernel.Config) {
	config.Processes = &kernel.ProcessPolicy{Network: o.shellNetwork, Unconfined: o.sandbox == sandboxNone}
	config.Lenders = append(config.Lenders, mcplender.New(mcplender.Options{AllowPrivate: o.privateMCP, Version: programVersion(),
		TraceParent: telemetry.TraceParent}), hostlender.New(programVersion()))
	if o.noProcessTools {
		config.Withheld = reasonFor(processTools, "this installation gives it only to agents that name it")
	}
	if o.sandbox == sandboxRequired {
		if report := sandbox.Probe(); report.Level != sandbox.LevelFull {
			config.Refused = reasonFor(processTools, fmt.Sprintf("a sandbox is required and this machine offers the level %q; see hozo doctor", report.Level))
		}
	}
}

func reasonFor(names []string, reason string) map[string]string {
	reasons := make(map[string]string, len(names))
	for _, name := range names {
		reasons[name] = reason
	}
	return reasons
}
