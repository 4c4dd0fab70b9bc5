package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/agent"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/prompt"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// SearchServer is the name by which the agent's package knows the search server.
const SearchServer = "search"

const (
	// defaultLabel is the label of the prompt that no package names.
	defaultLabel = "production"
	// maxLessons is how many lessons a run is given.
	maxLessons = 8
	// defaultTimeout is the time of a run whose agent has no budget of time.
	defaultTimeout = 15 * time.Minute
)

// prepared is a run that is ready to start.
type prepared struct {
	spec    *job.Spec
	prompts []prompt.Prompt
	applied []memory.Lesson
}

// prepare makes the document of a new run: prompts and lessons are looked up now and stay as they are for all attempts.
func (r *Runner) prepare(ctx context.Context, record run.Run) (*prepared, error) {
	p := &prepared{prompts: r.findPrompts(ctx)}
	spec, err := r.document(record)
	if err != nil {
		return nil, err
	}
	p.spec = spec
	for _, found := range p.prompts {
		if found.Fallback != "" {
			spec.Notices = append(spec.Notices, job.Notice{Code: "prompt-fallback", Message: fmt.Sprintf("the embedded text serves for the prompt %s: %s", found.Ref, found.Fallback)})
		}
	}
	p.applied, err = r.config.Memory.Recall(ctx, record.Input, maxLessons)
	if err != nil {
		r.config.Log.Error("the memory failed", "run", record.ID, "error", err)
		spec.Notices = append(spec.Notices, job.Notice{Code: "memory-unavailable", Message: "no lessons could be recalled: the memory failed"})
		p.applied = nil
	}
	if len(p.applied) > 0 {
		spec.Context = append(spec.Context, job.ContextBlock{Label: "lessons of earlier runs", Data: lessons(p.applied), Place: job.PlaceSystemEnd})
	}
	r.install(spec, p.prompts)
	r.credentials(spec)
	stored, err := json.Marshal(spec.Bare())
	if err != nil {
		return nil, err
	}
	return p, r.config.Runs.PutSpec(ctx, record.ID, stored)
}

// again makes the document of a run that an earlier process has begun.
func (r *Runner) again(ctx context.Context, record run.Run) (*job.Spec, error) {
	stored, err := r.config.Runs.Spec(ctx, record.ID)
	if err != nil || stored == nil {
		return nil, err
	}
	spec := &job.Spec{}
	if err := json.Unmarshal(stored, spec); err != nil {
		return nil, err
	}
	r.credentials(spec)
	last, err := r.config.Runs.LastSeq(ctx, record.ID)
	spec.Resume = &job.Resume{Attempt: record.Attempt + 1, NextSeq: last + 1}
	return spec, err
}

// document makes what depends on the agent, the installation and the request alone.
func (r *Runner) document(record run.Run) (*job.Spec, error) {
	c := &r.config
	dir := filepath.Join(c.Dir, record.ID)
	workspace := job.Workspace{Root: filepath.Join(dir, "source"), ReadOnly: []string{filepath.Join(dir, "source")}, OutDir: filepath.Join(dir, "out")}
	for _, d := range []string{workspace.Root, workspace.OutDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("make the directories of the run: %w", err)
		}
	}
	spec := &job.Spec{
		APIVersion: job.APIVersion, ID: record.ID, Agent: c.Agent.Definition, Task: record.Input, Model: c.Model, Workspace: workspace,
		Context: []job.ContextBlock{{Label: "this run", Data: r.briefing(record.Mode), Place: job.PlaceSystemEnd, Trusted: true}},
	}
	var err error
	if spec.Host, err = r.host.Declarations(lent(c.Agent)...); err != nil {
		return nil, err
	}
	r.bound(spec)
	return spec, nil
}

// bound applies the budgets of the agent. A budget in money needs a price.
func (r *Runner) bound(spec *job.Spec) {
	budget := r.config.Agent.Budget
	spec.Limits.TimeoutSec = defaultTimeout.Seconds()
	if budget.TimeoutSec > 0 {
		spec.Limits.TimeoutSec = budget.TimeoutSec
	}
	if n := budget.MaxTurns; n > 0 {
		spec.Limits.MaxTurns = &n
	}
	switch cost := usd(budget.MaxCostUSD); {
	case budget.MaxCostUSD == 0:
	case r.config.Priced:
		spec.Limits.MaxCostUSD = &cost
	default:
		spec.Notices = append(spec.Notices, job.Notice{Code: "budget-unpriced",
			Message: fmt.Sprintf("the budget of %.2f USD is not kept: the price of the model %s is unknown", budget.MaxCostUSD, spec.Model.ID)})
	}
}

// briefing is what a run must know of its time and its powers.
func (r *Runner) briefing(mode run.Mode) string {
	text := "Today is " + r.config.Now().UTC().Format("Monday, 2 January 2006") + " (UTC).\n"
	if mode == run.Auto {
		return text + "Valid events that you propose go into the calendar at once."
	}
	return text + "Events that you propose wait for a person to approve them."
}

// lessons writes lessons for the model. They are data: what a page once made a run note must not steer this one.
func lessons(all []memory.Lesson) string {
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "%s: %s\n%s\n\n", l.ID, l.Title, l.Text)
	}
	return strings.TrimSuffix(b.String(), "\n\n")
}

// lent returns the names of the tools of this program that the agent and its subagents use.
func lent(a *agent.Agent) []string {
	known := map[string]bool{}
	var names []string
	a.Each(func(a *agent.Agent) {
		for _, name := range a.Definition.Tools {
			if !strings.HasPrefix(name, "mcp__") && !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	})
	return names
}

// credentials adds what a stored document does not hold.
func (r *Runner) credentials(spec *job.Spec) {
	spec.Providers = map[string]job.ProviderConfig{r.config.Model.Provider: r.config.Provider}
	if s := r.config.Search; s != nil {
		server := *s
		server.Name, server.Required = SearchServer, false
		spec.MCP = &job.MCP{Servers: []job.MCPServer{server}}
	}
}

// findPrompts looks up every prompt of the agent, and the one of the writers of working-memory documents, which all agents
// share.
func (r *Runner) findPrompts(ctx context.Context) []prompt.Prompt {
	var wants []prompt.Want
	r.config.Agent.Each(func(a *agent.Agent) {
		if a.Prompt != (prompt.Ref{}) {
			wants = append(wants, prompt.Want{Ref: a.Prompt, Text: a.Definition.Instructions, Version: a.Definition.Version})
		}
	})
	wants = append(wants, prompt.Want{Ref: prompt.Ref{Name: workingmemory.WriterPrompt, Label: defaultLabel}, Text: workingmemory.Prompt(workingmemory.WriterPrompt), Version: "1"})
	if r.config.PromptLabel != "" {
		for i := range wants {
			wants[i].Label = r.config.PromptLabel
		}
	}
	return prompt.Resolve(ctx, r.config.Prompts, wants)
}

// install puts the agents into the document, each with the text that the prompt source has for it.
func (r *Runner) install(spec *job.Spec, prompts []prompt.Prompt) {
	texts := map[string]string{}
	for _, p := range prompts {
		texts[p.Name] = p.Text
	}
	root := r.config.Agent
	spec.Agent, spec.Loop, spec.Subagents = r.definition(root, texts), loop(root, texts), r.roster(root, texts)
}

// roster makes the subagents of an agent. The budget of an entry bounds one call; where it says nothing, that of the
// subagent's own package does.
func (r *Runner) roster(a *agent.Agent, texts map[string]string) []job.Subagent {
	var roster []job.Subagent
	for _, s := range a.Subagents {
		limits := &job.SubagentLimits{}
		if n := cmp.Or(s.Budget.MaxTurns, s.Agent.Budget.MaxTurns); n > 0 {
			limits.MaxTurns = &n
		}
		limits.TimeoutSec = cmp.Or(s.Budget.TimeoutSec, s.Agent.Budget.TimeoutSec)
		if dollars := cmp.Or(s.Budget.MaxCostUSD, s.Agent.Budget.MaxCostUSD); dollars > 0 && r.config.Priced {
			cost := usd(dollars)
			limits.MaxCostUSD = &cost
		}
		roster = append(roster, job.Subagent{Name: s.Name, Description: s.Description, Agent: r.definition(s.Agent, texts), Loop: loop(s.Agent, texts),
			Limits: limits, Subagents: r.roster(s.Agent, texts)})
	}
	return roster
}

// loop returns the loop of an agent. The writer of every working-memory document gets the same text.
func loop(a *agent.Agent, texts map[string]string) *job.Loop {
	if a.Loop.Kind != job.LoopWorkingMemory {
		return nil
	}
	l := a.Loop
	writer := job.Writer{}
	if l.Writer != nil {
		writer = *l.Writer
	}
	writer.Prompt = texts[workingmemory.WriterPrompt]
	l.Writer = &writer
	return &l
}

func usd(dollars float64) llm.USD { return llm.USD(math.Round(dollars * 1e6)) }

// definition is the agent of a job with the instructions that the prompt source has for it. Tools of the search server are
// left out where there is none.
func (r *Runner) definition(a *agent.Agent, texts map[string]string) job.Definition {
	d := a.Definition
	if text, ok := texts[a.Prompt.Name]; ok {
		d.Instructions = text
	}
	d.Tools = []string{}
	for _, name := range a.Definition.Tools {
		if r.config.Search != nil || !strings.HasPrefix(name, "mcp__") {
			d.Tools = append(d.Tools, name)
		}
	}
	return d
}

// problemText says on one line why a document was refused.
func problemText(err error) string {
	if list := problem.Of(err); len(list) > 0 {
		lines := make([]string, len(list))
		for i, p := range list {
			lines[i] = p.String()
		}
		return strings.Join(lines, "; ")
	}
	return err.Error()
}
