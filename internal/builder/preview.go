package builder

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Preview is what would become of a draft.
type Preview struct {
	// Definition is the agent's part of a job, nil for a draft with problems and for an agent for people's own tools.
	Definition *catalog.Job `json:"definition,omitempty"`
	// Problems would keep the draft from being saved, Warnings would not.
	Problems problem.List `json:"problems"`
	Warnings problem.List `json:"warnings"`
	// Prompt is what a model would be told, nil without a Definition.
	Prompt *Prompt `json:"prompt,omitempty"`
}

// Prompt is what a model is told before a task. The text is what the runtime sends, byte for byte.
type Prompt struct {
	// System is the same for every job of a version; what a run asks for comes after it.
	System string `json:"system"`
	// Run is what the directories of a run add.
	Run   string         `json:"run"`
	Tools []llm.ToolSpec `json:"tools"`
	// Connected are names and patterns of tools of MCP servers, which are declared once a job has connected.
	Connected []string `json:"connected"`
	// Parts divide System, Run and Tools for a look at what takes the room.
	Parts []PromptPart `json:"parts"`
	// Tokens is the estimate of all, as every figure in Parts is one.
	Tokens int64 `json:"tokensEstimate"`
}

// PromptPart is a piece of a prompt.
type PromptPart struct {
	// Kind is instructions, skill, runtime, run or tool.
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	Bytes  int    `json:"bytes"`
	Tokens int64  `json:"tokensEstimate"`
}

// The kinds of parts.
const (
	PartInstructions = "instructions"
	PartSkill        = "skill"
	// PartRuntime is what the runtime adds to the shared part: how to use its loop, how to answer.
	PartRuntime = "runtime"
	PartRun     = "run"
	PartTool    = "tool"
)

// Preview checks a draft and shows the job that would come of it. It keeps nothing. name is that of the agent which is
// edited, "" for a new one.
func (s *Service) Preview(ctx context.Context, tenant, name string, files Files) (*Preview, error) {
	around, err := s.around(ctx, tenant)
	if err != nil {
		return nil, err
	}
	pkg, problems := s.check(files, around)
	if pkg != nil && name != "" && pkg.Name != name && catalog.ValidName(pkg.Name) {
		problems.AddHint(catalog.CodeNameMismatch, "/name", "copy the agent to give it another name", "the package is that of %q and not of %q", pkg.Name, name)
	}
	p := &Preview{Problems: append(problem.List{}, problems...), Warnings: problem.List{}}
	if pkg == nil {
		return p, nil
	}
	p.Warnings = s.warnings(pkg, around, around.binding(pkg.Name))
	if len(problems) > 0 || pkg.Audience == catalog.AudienceMember {
		return p, nil
	}
	pkg.Version = 0 // the number of a draft is not known before it is saved
	p.Definition, _ = pkg.CompileWith(around.shared)
	if p.Prompt, err = s.prompt(p.Definition); err != nil {
		return nil, err
	}
	return p, nil
}

// PromptOf shows what a model would be told by a job of a saved agent; see Definition for the errors.
func (s *Service) PromptOf(ctx context.Context, tenant, name string, version int64) (*Prompt, error) {
	resolved, err := s.Definition(ctx, tenant, name, version)
	if err != nil {
		return nil, err
	}
	return s.prompt(resolved.Job)
}

// prompt asks the runtime, with directories like those of a run.
func (s *Service) prompt(compiled *catalog.Job) (p *Prompt, err error) {
	root, err := exampleDirectories()
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	if err != nil {
		return nil, fmt.Errorf("make directories for a preview: %w", err)
	}
	spec, restore := exampleSpec(compiled, root)
	view, problems := s.config.Runtime.Preview(spec)
	restore()
	if view == nil {
		return nil, problems.Err("preview the job")
	}
	p = &Prompt{System: view.System, Run: view.JobSystem, Tools: view.Tools, Connected: append([]string{}, view.Lent...)}
	if p.Tools == nil {
		p.Tools = []llm.ToolSpec{}
	}
	p.divide(compiled, view)
	return p, nil
}

// divide measures the parts. Every byte of the prompt is in one of them.
func (p *Prompt) divide(compiled *catalog.Job, view *kernel.Preview) {
	rest := len(view.System)
	add := func(kind, name string, bytes int) {
		p.Parts = append(p.Parts, PromptPart{kind, name, bytes, llm.EstimateTokens(bytes)})
	}
	add(PartInstructions, compiled.Agent.ID, len(compiled.Agent.Instructions))
	rest -= len(compiled.Agent.Instructions)
	for _, k := range compiled.Agent.Skills {
		add(PartSkill, k.Name, len(k.Content))
		rest -= len(k.Content)
	}
	if rest > 0 {
		add(PartRuntime, "", rest)
	}
	if len(view.JobSystem) > 0 {
		add(PartRun, "", len(view.JobSystem))
	}
	total := len(view.System) + len(view.JobSystem)
	for _, t := range view.Tools {
		size := len(t.Name) + len(t.Description) + len(t.InputSchema)
		add(PartTool, t.Name, size)
		total += size
	}
	p.Tokens = llm.EstimateTokens(total)
}
