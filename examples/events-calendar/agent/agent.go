// Package agent holds the agent itself, as data: one Markdown file for the agent and one in subagents/ for each of its
// subagents, in the format of agent packages (docs/agent-package.md). Parse reads them strictly and reports every problem of every file at
// once. Nothing else in the program knows what the agent does; another agent is another folder of such files.
package agent

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/prompt"
)

// Files are the packages of the events calendar.
//
//go:embed events-calendar.md subagents/*.md
var Files embed.FS

// Name is the agent's name.
const Name = "events-calendar"

// Agent is a parsed package.
type Agent struct {
	// Definition is the agent of a job, with the embedded instructions.
	Definition  job.Definition
	Description string
	// Prompt names the instructions in the prompt source; the zero value keeps the embedded ones.
	Prompt prompt.Ref
	// Loop is the loop strategy.
	Loop job.Loop
	// Budget bounds a run; zero fields are no bound.
	Budget Budget
	// Subagents are the agents that this one may call, in order.
	Subagents []Subagent
}

// Budget is what the x-budget key says.
type Budget struct {
	MaxTurns   int64   `yaml:"maxTurns"`
	MaxCostUSD float64 `yaml:"maxCostUsd"`
	TimeoutSec float64 `yaml:"timeoutSec"`
}

// Subagent is one entry of the roster.
type Subagent struct {
	// Name is the name of the tool that stands for it, Description what the agent is told about it.
	Name, Description string
	Budget            Budget
	Agent             *Agent
}

// front is the frontmatter of a file.
type front struct {
	Name        string            `yaml:"name"`
	Version     int64             `yaml:"version"`
	Description string            `yaml:"description"`
	Tools       []string          `yaml:"tools"`
	Thinking    string            `yaml:"thinking"`
	Metadata    map[string]string `yaml:"metadata"`
	Loop        struct {
		Kind   string `yaml:"kind"`
		Writer struct {
			MaxTokens int64 `yaml:"maxTokens"`
		} `yaml:"writer"`
	} `yaml:"x-loop"`
	Subagents []struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Agent       string `yaml:"agent"`
		Budget      Budget `yaml:"budget"`
	} `yaml:"x-subagents"`
	Budget Budget `yaml:"x-budget"`
}

// Parse reads the package name.md of files and, in subagents/, those of its subagents. The error is a *problem.Error with
// everything that is wrong.
func Parse(files fs.FS, name string) (*Agent, error) {
	r := reader{files: files}
	a := r.agent(name, nil)
	if err := r.problems.Err("read the agent " + name); err != nil {
		return nil, err
	}
	return a, nil
}

// reader collects the problems of all files.
type reader struct {
	files    fs.FS
	problems problem.List
}

func (r *reader) add(file, pointer, format string, args ...any) {
	r.problems = append(r.problems, problem.Problem{Code: "agent-invalid", Path: file, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

// agent reads one package. above are the names of the agents that lead to it.
func (r *reader) agent(name string, above []string) *Agent {
	file := name + ".md"
	data, err := fs.ReadFile(r.files, file)
	if err != nil {
		r.add(file, "", "the file cannot be read: %v", err)
		return nil
	}
	f, body, err := split(data)
	if err != nil {
		r.add(file, "", "%v", err)
		return nil
	}
	r.check(file, name, f, body)
	a := &Agent{
		Definition: job.Definition{ID: f.Name, Version: strconv.FormatInt(f.Version, 10), Instructions: body, Tools: f.Tools,
			Thinking: llm.Level(f.Thinking)},
		Description: f.Description,
		Loop:        job.Loop{Kind: f.Loop.Kind},
		Budget:      f.Budget,
	}
	if n := f.Loop.Writer.MaxTokens; n > 0 {
		a.Loop.Writer = &job.Writer{MaxTokens: &n}
	}
	if text, ok := f.Metadata["prompt"]; ok {
		if a.Prompt, err = prompt.Parse(text); err != nil {
			r.add(file, "/metadata/prompt", "%v", err)
		}
	}
	above = append(above, name)
	for i, s := range f.Subagents {
		pointer := "/x-subagents/" + strconv.Itoa(i) + "/agent"
		path := "subagents/" + s.Agent
		switch {
		case s.Agent == "":
			r.add(file, pointer, "the subagent names no agent")
		case slices.Contains(above, path):
			r.add(file, pointer, "the agent %q calls itself: %s", s.Agent, strings.Join(append(above, path), " → "))
		default:
			if sub := r.agent(path, above); sub != nil {
				a.Subagents = append(a.Subagents, Subagent{Name: cmp.Or(s.Name, s.Agent), Description: cmp.Or(s.Description, sub.Description), Budget: s.Budget, Agent: sub})
			}
		}
	}
	return a
}

func (r *reader) check(file, name string, f front, body string) {
	if f.Name != path.Base(name) {
		r.add(file, "/name", "the name is %q, and the file says %q", f.Name, path.Base(name))
	}
	if f.Version < 1 {
		r.add(file, "/version", "the version must be a whole number from 1")
	}
	if f.Description == "" {
		r.add(file, "/description", "the description is missing")
	}
	if strings.TrimSpace(body) == "" {
		r.add(file, "", "the instructions are missing")
	}
	if f.Tools == nil {
		r.add(file, "/tools", "the tools are missing: an agent of this program must name them, or write []")
	}
	if k := f.Loop.Kind; k != "" && k != "transcript" && k != "working-memory" {
		r.add(file, "/x-loop/kind", "%q is no loop: transcript or working-memory", k)
	}
	if f.Budget.MaxTurns < 0 || f.Budget.MaxCostUSD < 0 || f.Budget.TimeoutSec < 0 {
		r.add(file, "/x-budget", "a budget must not be negative")
	}
}

// split reads the frontmatter of a file and returns what follows it, byte for byte.
func split(data []byte) (front, string, error) {
	const fence = "---\n"
	rest, ok := bytes.CutPrefix(data, []byte(fence))
	if !ok {
		return front{}, "", errors.New("the first line must be ---")
	}
	head, body, ok := bytes.Cut(rest, []byte("\n"+fence))
	if !ok {
		return front{}, "", errors.New("the frontmatter has no end: a line ---")
	}
	var f front
	decoder := yaml.NewDecoder(bytes.NewReader(head))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return front{}, "", fmt.Errorf("the frontmatter cannot be read: %w", err)
	}
	return f, string(body), nil
}

// Each visits the agent and all agents below it, each once.
func (a *Agent) Each(visit func(*Agent)) {
	seen := map[*Agent]bool{}
	var walk func(*Agent)
	walk = func(a *Agent) {
		if !seen[a] {
			seen[a] = true
			visit(a)
			for _, s := range a.Subagents {
				walk(s.Agent)
			}
		}
	}
	walk(a)
}
