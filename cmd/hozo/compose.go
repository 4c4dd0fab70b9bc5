package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// runFlags are the flags of hozo run.
type runFlags struct {
	account  accountFlags
	operator operator

	workspace string
	out       string
	readOnly  []string
	context   []string
	mcp       string
	approvals []string

	thinking    string
	timeout     time.Duration
	idleTimeout time.Duration
	maxTurns    int64
	maxCost     string

	// agent is what the package of the agent says of the job, nil until compose has read it.
	agent *catalog.Job

	journal string
	events  string
	json    bool
	quiet   bool
}

const maxTaskBytes = 8 << 20

// noLimit is the value of --max-cost that lifts the limit of the agent's package.
const noLimit = "none"

// compose makes the job of a command line. The agent and the task are its arguments. changed reports whether a flag was
// given.
func (p *program) compose(f *runFlags, agentFile, task string, changed func(string) bool) (*job.Spec, error) {
	if err := f.checkDirectories(); err != nil {
		return nil, err
	}
	model, account, err := f.account.resolve(p.getenv)
	if err != nil {
		return nil, err
	}
	if f.agent, err = readAgent(agentFile); err != nil {
		return nil, err
	}
	if task == "-" {
		data, err := io.ReadAll(io.LimitReader(p.stdin, maxTaskBytes+1))
		if err != nil || len(data) > maxTaskBytes {
			return nil, errors.Join(usageError("the task on standard input could not be read or is larger than %d bytes", maxTaskBytes), err)
		}
		task = string(data)
	}
	model.Thinking = llm.Level(f.thinking)
	spec := &job.Spec{
		APIVersion: job.APIVersion,
		Task:       task,
		Model:      model,
		Providers:  map[string]job.ProviderConfig{model.Provider: account},
	}
	f.agent.Apply(spec)
	if err := p.addWriters(&f.account, spec); err != nil {
		return nil, err
	}
	if spec.Workspace, err = f.directories(); err != nil {
		return nil, err
	}
	if spec.Context, err = readContext(f.context); err != nil {
		return nil, err
	}
	if spec.MCP, err = readMCP(f.mcp); err != nil {
		return nil, err
	}
	if err := f.setApprovals(spec); err != nil {
		return nil, err
	}
	if changed("timeout") || spec.Limits.TimeoutSec == 0 {
		spec.Limits.TimeoutSec = f.timeout.Seconds()
		f.replaced("/limits/timeoutSec")
	}
	return spec, f.setLimits(&spec.Limits, changed)
}

// addWriters adds the accounts of the writers of working memories that have models of their own. A model without a provider
// is one of the job's, and a script plays all models. Address and key of the command line are those of the job's model.
func (p *program) addWriters(f *accountFlags, spec *job.Spec) error {
	for _, model := range catalog.Writers(spec) {
		if model.Provider == "" || f.scriptFile != "" {
			model.Provider = spec.Model.Provider
			continue
		}
		if _, known := spec.Providers[model.Provider]; known {
			continue
		}
		own := accountFlags{model: model.Provider + "/" + model.ID, configFile: f.configFile}
		_, account, err := own.resolve(p.getenv)
		if err != nil {
			return fmt.Errorf("the model %s/%s of the working memory's writer: %w", model.Provider, model.ID, err)
		}
		spec.Providers[model.Provider] = account
	}
	return nil
}

// replaced notes that a flag goes before what the package of the agent says.
func (f *runFlags) replaced(pointer string) {
	if f.agent != nil {
		f.agent.Replaced(pointer)
	}
}

// setApprovals reads the rules of --approval TOOL=RULE.
func (f *runFlags) setApprovals(spec *job.Spec) error {
	for _, value := range f.approvals {
		name, rule, ok := strings.Cut(value, "=")
		if !ok || name == "" {
			return usageError("--approval %q is not of the form TOOL=RULE", value)
		}
		if spec.Approvals == nil {
			spec.Approvals = &job.Approvals{Tools: map[string]string{}}
		}
		spec.Approvals.Tools[name] = rule
		f.replaced("/approvals/tools/" + name)
	}
	if spec.Approvals.Any() && f.journal == "" {
		return usageError("a call that waits for a decision suspends the job: name a file with --journal, from which it goes on")
	}
	return nil
}

// readMCP reads the file of --mcp-config: the field mcp of a job document.
func readMCP(file string) (*job.MCP, error) {
	if file == "" {
		return nil, nil
	}
	data, err := readLimited(file, maxConfigBytes)
	if err != nil {
		return nil, usageError("--mcp-config: %v", err)
	}
	spec, err := parsePart("mcp", "--mcp-config", file, data)
	if err != nil {
		return nil, err
	}
	return spec.MCP, nil
}

func (f *runFlags) setLimits(limits *job.Limits, changed func(string) bool) error {
	if changed("idle-timeout") {
		seconds := f.idleTimeout.Seconds()
		limits.IdleTimeoutSec = &seconds
		f.replaced("/limits/idleTimeoutSec")
	}
	if changed("max-turns") {
		limits.MaxTurns = &f.maxTurns
		f.replaced("/limits/maxTurns")
	}
	if changed("max-cost") {
		f.replaced("/limits/maxCostUsd")
		if f.maxCost == noLimit {
			limits.MaxCostUSD = nil
			return nil
		}
		amount, err := llm.ParseUSD(f.maxCost)
		if err != nil {
			return usageError("--max-cost: %v", err)
		}
		cost := llm.USD(amount)
		limits.MaxCostUSD = &cost
	}
	return nil
}

// readAgent reads an agent's package, checks it against the tools of this program and compiles it. What is wrong is named
// by its place in the file, not by that in the job that would be made of it.
func readAgent(file string) (*catalog.Job, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return nil, usageError("%s is a directory; name the agent's file, such as %s", file,
			filepath.Join(file, filepath.Base(filepath.Clean(file))+".md"))
	}
	tools, err := newTools(&operator{})
	if err != nil {
		return nil, err
	}
	agent, problems := parseAgent(file, catalog.Installation{Tools: tools.Names()})
	if len(problems) > 0 {
		return nil, problems.Err("read the agent")
	}
	compiled, problems := agent.Compile()
	return compiled, problems.Err("run the agent")
}

// checkDirectories finds what is wrong with the directories in the words of the command line, before anything is made.
func (f *runFlags) checkDirectories() error {
	var missing []string
	if f.workspace == "" {
		missing = append(missing, "--workspace DIR (what the agent may read)")
	}
	if f.out == "" {
		missing = append(missing, "--out DIR (where it may write)")
	}
	if len(missing) > 0 {
		return usageError("missing %s", strings.Join(missing, " and "))
	}
	var problems problem.List
	out := realPath(f.out)
	for i, place := range append([]string{f.workspace}, f.readOnly...) {
		flag := "--workspace"
		if i > 0 {
			flag = "--read-only"
		}
		if _, err := os.Stat(place); err != nil {
			problems.Add("missing-directory", "", "%s: %v", flag, err)
			continue
		}
		switch real := realPath(place); {
		case within(real, out):
			problems.AddHint("overlap", "", fmt.Sprintf("choose a directory beside it, for example --out %s", besideName(f.workspace)),
				"--out %s lies inside %s %s: what an agent reads must not be what it writes", f.out, flag, place)
		case within(out, real):
			problems.AddHint("overlap", "", "choose a directory of its own for --out",
				"--out %s contains %s %s: what an agent reads must not be what it writes", f.out, flag, place)
		}
	}
	return problems.Err("check the directories")
}

// besideName suggests an output directory beside the workspace.
func besideName(workspace string) string {
	return filepath.Join(filepath.Clean(workspace), "..", filepath.Base(realPath(workspace))+"-out")
}

// realPath returns an absolute path without links, as far as it exists. A link to something that is not there yet leads to
// where that would be made.
func realPath(path string) string { return realPathAfter(path, 0) }

// realPathAfter is realPath after so many links that lead nowhere; they may lead in circles.
func realPathAfter(path string, links int) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if to, err := os.Readlink(dir); err == nil && links < 16 {
			if !filepath.IsAbs(to) {
				to = filepath.Join(realPathAfter(filepath.Dir(dir), links+1), to)
			}
			return realPathAfter(filepath.Join(to, rest), links+1)
		}
		if filepath.Dir(dir) == dir {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// directories returns the workspace of the job, with absolute paths so that events and notes name the same places
// wherever they are read. The agent may read its own output again.
func (f *runFlags) directories() (job.Workspace, error) {
	var failed error
	absolute := func(path string) string {
		full, err := filepath.Abs(path)
		failed = errors.Join(failed, err)
		return full
	}
	w := job.Workspace{Root: absolute(f.workspace), OutDir: absolute(f.out)}
	w.ReadOnly = append(w.ReadOnly, w.Root)
	for _, path := range f.readOnly {
		w.ReadOnly = append(w.ReadOnly, absolute(path))
	}
	w.ReadOnly = append(w.ReadOnly, w.OutDir)
	return w, failed
}

// makeOut makes the output directory. undo removes it again if it was made and is still empty.
func (f *runFlags) makeOut() (undo func(), err error) {
	if _, err := os.Stat(f.out); !errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil // what is wrong with a directory that exists, the runtime says
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return nil, usageError("--out: %v", err)
	}
	return func() { _ = os.Remove(f.out) }, nil // only an empty directory can be removed
}

// readContext reads the files of --context LABEL=FILE.
func readContext(values []string) ([]job.ContextBlock, error) {
	var blocks []job.ContextBlock
	for _, value := range values {
		label, file, ok := strings.Cut(value, "=")
		if !ok || label == "" || file == "" {
			return nil, usageError("--context %q is not of the form LABEL=FILE", value)
		}
		data, err := readLimited(file, maxTaskBytes)
		if err != nil {
			return nil, usageError("--context %s: %v", label, err)
		}
		blocks = append(blocks, job.ContextBlock{Label: label, Data: string(data), Place: job.PlaceBeforeTask})
	}
	return blocks, nil
}
