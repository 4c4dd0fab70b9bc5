package kernel

import (
	"fmt"
	"slices"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/textcall"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
)

// agent is a definition resolved against the runtime: the agent of the job, or one of its subagents. It is not changed
// by running, except that lent tools are added before the first dialog opens.
type agent struct {
	// spec is the spec of the job; that of a subagent is the spec which its own job would have.
	spec *job.Spec
	// pointer is where the definition stands in the document of the job, "" for the agent of the job.
	pointer string
	// name and description are those of a subagent.
	name, description string

	model       llm.Model
	modelListed bool
	provider    llm.Provider
	thinking    llm.Level
	tools       *tool.Set
	denials     *tool.Denials
	// maxOutput is the longest answer to ask for, 0 if neither the spec nor the model names one.
	maxOutput int64
	// answer is the schema of the typed answer, nil for text.
	answer *tool.Schema
	// writer writes the documents of an agent in the working-memory loop, nil for others.
	writer    *writer
	subagents []*agent
}

// resolve settles everything about the agents of a job that needs no connection.
func (rt *Runtime) resolve(spec *job.Spec, p *plan, problems *problem.List) *agent {
	a := &agent{spec: spec}
	rt.resolveModel(a, p, problems)
	rt.resolveTools(a, p, problems)
	if spec.Output != nil {
		schema, err := tool.NewSchema(spec.Output.Schema)
		if err != nil {
			problems.Add("invalid", "/output/schema", "%v", err)
		}
		a.answer = schema
	}
	return a
}

// resolveTools selects the tools and the subagents of an agent.
func (rt *Runtime) resolveTools(a *agent, p *plan, problems *problem.List) {
	rt.selectTools(a, p, problems)
	a.denials, _ = tool.NewDenials(a.spec.Agent.DenyCommandPatterns) // Check has reported every bad pattern
	roster := make([]tool.Tool, 0, len(a.spec.Subagents))
	for i := range a.spec.Subagents {
		s := rt.resolveSubagent(a, i, p, problems)
		a.subagents = append(a.subagents, s)
		t, err := subagentTool(s)
		if err != nil {
			problems.Add("invalid", s.pointer+"/name", "%v", err)
			continue
		}
		roster = append(roster, t)
	}
	if a.workingMemory() {
		rt.resolveWriter(a, p, problems)
		own, err := loopTools()
		if err != nil {
			problems.Add("invalid", a.pointer+"/loop", "%v", err)
		}
		roster = append(roster, own...)
	}
	set, err := a.tools.With(roster...)
	if err != nil {
		problems.Add("duplicate", a.pointer+"/subagents", "%v", err)
		return
	}
	a.tools = set
}

// resolveSubagent settles one entry of the roster. It shares the provider and the model of its parent.
func (rt *Runtime) resolveSubagent(parent *agent, at int, p *plan, problems *problem.List) *agent {
	entry := &parent.spec.Subagents[at]
	a := &agent{spec: subagentSpec(parent.spec, entry), pointer: fmt.Sprintf("%s/subagents/%d", parent.pointer, at), name: entry.Name,
		description: entry.Description, model: parent.model, modelListed: parent.modelListed, provider: parent.provider,
		maxOutput: parent.maxOutput}
	if a.provider != nil {
		a.chooseThinking(p)
	}
	rt.resolveTools(a, p, problems)
	return a
}

// find returns the subagent that a tool name stands for, nil if it stands for none.
func (a *agent) find(name string) *agent {
	if at := slices.IndexFunc(a.subagents, func(s *agent) bool { return s.name == name }); at >= 0 {
		return a.subagents[at]
	}
	return nil
}

// each visits the agent and everything below it.
func (a *agent) each(visit func(*agent)) {
	visit(a)
	for _, s := range a.subagents {
		s.each(visit)
	}
}

// selectTools applies the agent's allowlist under the operator's.
func (rt *Runtime) selectTools(a *agent, p *plan, problems *problem.List) {
	allow := a.spec.Agent.Tools
	for i, name := range allow {
		if reason, refused := rt.config.Refused[name]; refused {
			problems.Add("tool-unavailable", fmt.Sprintf("%s/agent/tools/%d", a.pointer, i), "the tool %q is not available: %s", name, reason)
		}
	}
	if allow == nil {
		allow = rt.defaultTools(a, p)
	}
	var unknown problem.List
	a.tools, unknown = rt.config.Tools.Select(allow, rt.claims(a.spec))
	for _, u := range unknown {
		u.Pointer = a.pointer + u.Pointer
		*problems = append(*problems, u)
	}
	for i, name := range a.spec.Agent.Tools {
		if t := a.tools.Find(name); t != nil && t.Describe != nil && a.workingMemory() {
			problems.AddHint("tool-unavailable", fmt.Sprintf("%s/agent/tools/%d", a.pointer, i), "leave it out, or use a transcript loop",
				"the tool %q is not available in a working-memory loop: a script would hide its calls from the document", name)
		}
	}
}

// workingMemory reports whether the agent runs in the working-memory loop.
func (a *agent) workingMemory() bool {
	return a.spec.Loop != nil && a.spec.Loop.Kind == job.LoopWorkingMemory
}

// defaultTools returns what an agent gets that names no tools, with a notice for each tool that it goes without.
func (rt *Runtime) defaultTools(a *agent, p *plan) []string {
	allow := []string{}
	for _, t := range rt.config.Tools.Tools() {
		reason, without := rt.config.Refused[t.Name]
		if !without {
			reason, without = rt.config.Withheld[t.Name]
		}
		switch {
		case without:
			p.notice("tool-withheld", "the agent names no tools and goes without %q: %s", t.Name, reason)
		case t.Describe != nil && a.workingMemory(): // one call a step: a script would hide several from the document
		default:
			allow = append(allow, t.Name)
		}
	}
	return allow
}

// resolveModel finds the adapter and the table entry of the spec's model and settles what depends on them.
func (rt *Runtime) resolveModel(a *agent, p *plan, problems *problem.List) {
	spec := a.spec
	config, known := spec.Providers[spec.Model.Provider]
	adapter := rt.config.Adapters[config.API]
	if !known || adapter == nil || spec.Model.ID == "" {
		return
	}
	if a.provider == nil {
		provider, err := adapter(config.Account())
		if err != nil {
			addAdapterProblems(problems, "/providers/"+escape(spec.Model.Provider), err)
			return
		}
		a.provider = textcall.Wrap(provider, config.BaseURL)
	}
	if source, ok := a.provider.(llm.ModelSource); ok {
		a.model, a.modelListed = source.Model(spec.Model.ID)
	}
	if !a.modelListed {
		a.model, a.modelListed = rt.config.Models(config.API, config.BaseURL, spec.Model.ID)
	}
	a.model.ID = spec.Model.ID
	if override, ok := config.Models[spec.Model.ID]; ok {
		override.Apply(&a.model)
		a.modelListed = true
	}
	a.chooseThinking(p)
	a.chooseOutput(p, problems)
}

// addAdapterProblems keeps the findings of an adapter, placed below its provider. What is known to be wrong there is not
// said twice.
func addAdapterProblems(problems *problem.List, pointer string, err error) {
	if found := problem.Of(err); len(found) > 0 {
		for _, f := range found {
			f.Pointer = pointer + f.Pointer
			if !slices.ContainsFunc(*problems, func(p problem.Problem) bool { return p.Pointer == f.Pointer }) {
				*problems = append(*problems, f)
			}
		}
		return
	}
	problems.Add("provider-invalid", pointer, "%v", err)
}

// chooseThinking settles the level at which the model thinks.
func (a *agent) chooseThinking(p *plan) {
	wanted := a.spec.Agent.Thinking
	if a.spec.Model.Thinking != "" {
		wanted = a.spec.Model.Thinking
	}
	asked := wanted != ""
	if !asked {
		wanted = llm.LevelOff
	}
	a.thinking = wanted
	if wanted != llm.LevelOff || len(a.model.ThinkingLevels) > 0 {
		a.thinking = llm.Nearest(wanted, a.model.ThinkingLevels)
	}
	if asked && a.thinking != wanted {
		p.notice("thinking-clamped", "the model %s has no thinking level %q: using %q", a.model.ID, wanted, a.thinking)
	}
}

// chooseOutput settles the answer length, and refuses a money limit that could not be kept.
func (a *agent) chooseOutput(p *plan, problems *problem.List) {
	spec := a.spec
	a.maxOutput = a.model.MaxOutputTokens
	if limit := spec.Sampling.MaxOutputTokens; limit != nil {
		if a.maxOutput > 0 && *limit > a.maxOutput {
			p.notice("max-output-clamped", "the model %s writes at most %d tokens: asked for %d", a.model.ID, a.maxOutput, *limit)
		} else {
			a.maxOutput = *limit
		}
	}
	if !a.modelListed {
		p.notice("model-unlisted", "the model %s is not in the model table: its context window and price are unknown", a.model.ID)
	}
	if spec.Limits.MaxCostUSD != nil && a.model.Price == nil {
		problems.AddHint("price-unknown", "/limits/maxCostUsd",
			fmt.Sprintf("set /providers/%s/models/%s/price", escape(spec.Model.Provider), escape(spec.Model.ID)),
			"the price of model %q is unknown, so a money limit cannot be kept", spec.Model.ID)
	}
}
