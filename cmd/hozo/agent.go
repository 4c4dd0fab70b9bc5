package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/problem"
)

func (p *program) agentCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "agent",
		Short: "Work with agent files",
		Args:  cobra.ArbitraryArgs,
		RunE:  p.group,
	}
	command.AddCommand(p.agentCheckCommand())
	return command
}

func (p *program) agentCheckCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "check PATH…",
		Short: "Check agent files and what belongs to them",
		Long: `Check agent files and the skills, subagents and schemas beside them, and show every problem as file:line:column. Of a
directory every agent below it is checked: the files <name>.md whose name can be an agent's, outside of directories named
skills, subagents and schemas and of hidden ones. A warning says what is right but cannot run with this version.

Below an agent that says more of its job than instructions and tools, its loop, subagents, answer and limits are shown as
"hozo run" will have them. With --json, "job" holds these parts as a job document has them.

The exit code is 0 without problems and 3 with some.`,
		Example: `  hozo agent check reader.md
  hozo agent check --json examples/agents`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("missing the files or directories to check")
			}
			return nil
		},
		RunE: p.runs(func(_ *cobra.Command, args []string) error { return p.checkAgents(args, asJSON) }),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

// checkedAgent is what was found about one file.
type checkedAgent struct {
	Path     string       `json:"path"`
	Name     string       `json:"name,omitempty"`
	Problems problem.List `json:"problems"`
	Warnings problem.List `json:"warnings"`
	// Job is what the agent's package says of a job.
	Job *catalog.Job `json:"job,omitempty"`
}

func (p *program) checkAgents(paths []string, asJSON bool) error {
	tools, err := newTools(&operator{})
	if err != nil {
		return err
	}
	rt, err := newKernel(&operator{})
	if err != nil {
		return err
	}
	installation := catalog.Installation{Tools: tools.Names()}
	var checked []checkedAgent
	for _, path := range paths {
		files, err := agentFiles(path)
		if err != nil {
			return &exitError{code: job.ExitUsage, err: err}
		}
		for _, file := range files {
			checked = append(checked, checkAgent(file, installation, rt))
		}
	}
	if asJSON {
		if err := p.writeJSON(map[string]any{"agents": checked}); err != nil {
			return err
		}
	} else {
		p.printChecked(checked)
	}
	if slices.ContainsFunc(checked, func(c checkedAgent) bool { return len(c.Problems) > 0 }) {
		return exitWith(job.ExitInvalidSpec)
	}
	return nil
}

func checkAgent(file string, in catalog.Installation, rt *kernel.Runtime) checkedAgent {
	agent, problems := parseAgent(file, in)
	c := checkedAgent{Path: file, Problems: problems, Warnings: problem.List{}}
	if agent == nil {
		return c
	}
	c.Name = agent.Name
	if len(problems) > 0 {
		return c
	}
	c.Problems = problem.List{}
	if agent.Audience != catalog.AudienceRuntime {
		return c
	}
	compiled, warnings := agent.Compile()
	c.Warnings = append(c.Warnings, warnings...)
	c.Problems = append(c.Problems, startProblems(compiled, rt)...)
	sortProblems(c.Problems, file)
	if len(c.Problems) == 0 {
		c.Job = compiled
	}
	return c
}

// parseAgent reads an agent's package and checks it against what the program has. The problems of both are one list, in
// the order of file and line; without any the package is never nil.
func parseAgent(file string, in catalog.Installation) (*catalog.Package, problem.List) {
	agent, problems := catalog.ParseFile(file)
	if agent == nil {
		return nil, problems
	}
	problems = append(problems, agent.Check(in)...)
	sortProblems(problems, file)
	return agent, problems
}

// sortProblems puts the findings in the agent's file first, then goes by path, line and column.
func sortProblems(problems problem.List, file string) {
	slices.SortStableFunc(problems, func(a, b problem.Problem) int {
		return cmp.Or(cmp.Compare(otherFile(a, file), otherFile(b, file)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column))
	})
}

// otherFile is 1 for a finding in another file than the agent's, which come last.
func otherFile(found problem.Problem, agent string) int {
	if found.Path == agent {
		return 0
	}
	return 1
}

func (p *program) printChecked(checked []checkedAgent) {
	for _, c := range checked {
		if len(c.Problems) == 0 {
			fmt.Fprintf(p.stdout, "ok %s\n", visibleLine(c.Path))
			for _, line := range describeJob(c.Job) {
				fmt.Fprintln(p.stdout, "  "+visibleLine(line))
			}
		}
		for _, found := range c.Problems {
			fmt.Fprintln(p.stdout, visibleLine(placed(found, c.Path).String()))
		}
		for _, found := range c.Warnings {
			fmt.Fprintln(p.stdout, "warning: "+visibleLine(placed(found, c.Path).String()))
		}
	}
}

// placed gives a finding without a place that of its file.
func placed(found problem.Problem, file string) problem.Problem {
	if found.Path == "" {
		found.Path = file
	}
	return found
}

// agentFiles returns the files to check for one argument.
func agentFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != path && (catalog.IsFolder(entry.Name()) || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !entry.IsDir() && isAgentName(strings.TrimSuffix(entry.Name(), ".md")) && strings.HasSuffix(entry.Name(), ".md"):
			files = append(files, name)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no agent file <name>.md in %s", path)
	}
	return files, err
}

func isAgentName(name string) bool {
	return name != "" && name[0] >= 'a' && name[0] <= 'z' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// writeJSON writes v to standard output, indented.
func (p *program) writeJSON(v any) error {
	encoder := json.NewEncoder(p.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
