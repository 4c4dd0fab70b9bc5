package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Definition is a workflow: a sequence of runs. Its steps may name agents that do not exist.
type Definition struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Arguments   []Argument `json:"arguments"`
	Steps       []Step     `json:"steps"`

	source []byte
}

// Step is one run of a workflow.
type Step struct {
	Name  string `json:"name"`
	Agent string `json:"agent"`
	// Version is the agent's; 0 is the current one.
	Version int64 `json:"version,omitempty"`
	// Model replaces the agent's binding.
	Model *Model `json:"model,omitempty"`
	// Task has places for the workflow's arguments and, as steps.<name>.answer, for what an earlier step answered.
	Task string `json:"task"`
	// Inputs are the files that earlier steps left and that this one gets in inputs/<step>/.
	Inputs []Input `json:"inputs,omitempty"`

	template template
}

// Input names files of an earlier step.
type Input struct {
	From string `json:"from"`
	// Files are the paths to take; nil takes all.
	Files []string `json:"files,omitempty"`
}

// readFile reads a file of a bounded size.
func readFile(path string, data []byte, markdown bool) (*catalog.Document, problem.List) {
	if len(data) > MaxFile {
		return nil, problem.List{{Code: catalog.CodeFileTooLarge, Path: path, Message: fmt.Sprintf("the file has %d bytes; at most %d are allowed", len(data), MaxFile)}}
	}
	if markdown {
		return catalog.ReadDocument(path, data)
	}
	return catalog.ReadYAML(path, data)
}

// Parse reads workflows/<name>.yaml. The result is what could be read, never nil; with problems it must not be run.
func Parse(path string, data []byte) (*Definition, problem.List) {
	doc, problems := readFile(path, data, false)
	if doc == nil {
		return &Definition{}, problems
	}
	f := newFile(doc)
	f.problems = problems
	m := f.members("", doc.Front, "name", "description", "arguments", "steps")
	d := &Definition{Name: f.name(m, "", "name"), Description: f.text(m, "", "description", true), Arguments: f.arguments(m), source: slices.Clone(data)}
	f.base(path, ".yaml", d.Name)
	known := []string{}
	for _, a := range d.Arguments {
		known = append(known, a.Name)
	}
	items := f.list(m, "", "steps", MaxSteps)
	if len(items) == 0 && len(f.problems) == 0 {
		f.add(CodeRequired, "", "add steps: with one entry for each run", "a workflow needs steps")
	}
	for i, item := range items {
		step := f.step("/steps/"+strconv.Itoa(i), item, d, known)
		d.Steps = append(d.Steps, step)
		known = append(known, "steps."+step.Name+".answer")
	}
	return d, f.problems
}

// step decodes one step. The earlier ones are in d, known are the places that its task may have.
func (f *file) step(at string, data json.RawMessage, d *Definition, known []string) Step {
	m := f.members(at, data, "name", "agent", "version", "model", "task", "inputs")
	s := Step{Name: f.name(m, at, "name"), Agent: f.name(m, at, "agent"), Task: f.text(m, at, "task", true), Model: f.model(m, at)}
	if d.step(s.Name) != nil {
		f.add(CodeDuplicate, at+"/name", "give it another name", "the step %q is there already", s.Name)
	}
	if version, there := m["version"]; there && (json.Unmarshal(version, &s.Version) != nil || s.Version < 1) {
		f.add(catalog.CodeVersionInvalid, at+"/version", "leave it out for the current version", "the version must be a whole number from 1")
	}
	for i, item := range f.list(m, at, "inputs", MaxSteps) {
		place := at + "/inputs/" + strconv.Itoa(i)
		im := f.members(place, item, "from", "files")
		input := Input{From: f.text(im, place, "from", true), Files: f.names(im, place, "files", MaxSteps)}
		if input.From != "" && d.step(input.From) == nil {
			f.add(CodeStepUnknown, place+"/from", "only a step further up can be named", "there is no earlier step %q", input.From)
		}
		for j, name := range input.Files {
			if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") {
				f.add(catalog.CodePathUnsafe, place+"/files/"+strconv.Itoa(j), "write the path as the step writes it, relative to its output directory", "%q is no path of an output", name)
			}
		}
		s.Inputs = append(s.Inputs, input)
	}
	s.template = f.template(at+"/task", s.Task, known)
	return s
}

// model decodes the model of a step.
func (f *file) model(m map[string]json.RawMessage, at string) *Model {
	data, there := m["model"]
	if !there {
		return nil
	}
	at += "/model"
	mm := f.members(at, data, "provider", "id", "thinking")
	model := &Model{Provider: f.text(mm, at, "provider", true), ID: f.text(mm, at, "id", true), Thinking: llm.Level(f.text(mm, at, "thinking", false))}
	if model.Thinking != "" && !model.Thinking.Valid() {
		f.add(catalog.CodeThinkingInvalid, at+"/thinking", fmt.Sprintf("known levels: %v", llm.Levels()), "unknown thinking level %q", model.Thinking)
	}
	return model
}

// step returns the step of a name, nil if there is none.
func (d *Definition) step(name string) *Step {
	if at := slices.IndexFunc(d.Steps, func(s Step) bool { return s.Name == name }); at >= 0 {
		return &d.Steps[at]
	}
	return nil
}

// Digest is the identity of the definition: the SHA-256 of its file, in hex.
func (d *Definition) Digest() string {
	sum := sha256.Sum256(d.source)
	return hex.EncodeToString(sum[:])
}

// Source returns the file, byte for byte.
func (d *Definition) Source() []byte { return slices.Clone(d.source) }
