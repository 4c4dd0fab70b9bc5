package kernel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// plan is a spec resolved against the runtime: everything that a run needs and that could be refused.
type plan struct {
	id          string
	model       llm.Model
	modelListed bool
	thinking    llm.Level
	wanted      llm.Level
	provider    llm.Provider
	tools       *tool.Set
	denials     *tool.Denials
	workspace   *workspace.Workspace
	dialog      llm.Dialog
	// promptBytes is the size of the system prompt and the tool declarations, for the first token estimate.
	promptBytes int
	// maxOutput is the longest answer to ask for, 0 if neither the spec nor the model names one.
	maxOutput int64
	notices   []job.Notice
}

// validate checks the whole spec and reports every problem at once. What it opens is closed again if there is one.
func (rt *Runtime) validate(spec *job.Spec, ports job.Ports) (*plan, problem.List) {
	problems := spec.Check()
	p := &plan{id: spec.ID}
	if p.id == "" {
		p.id = rt.config.NewID()
	}
	rt.checkPorts(ports, &problems)
	rt.resolveModel(spec, p, &problems)
	rt.selectTools(spec, p, &problems)
	rt.checkLenders(spec, ports, &problems)
	p.denials, _ = tool.NewDenials(spec.Agent.DenyCommandPatterns) // Check has reported every bad pattern
	config := workspace.Config{Root: spec.Workspace.Root, ReadOnly: spec.Workspace.ReadOnly, OutDir: spec.Workspace.OutDir,
		TmpDir: spec.Workspace.TmpDir}
	if len(problems) > 0 {
		if !under(problems, "/workspace") {
			problems = append(problems, workspace.Check(config)...)
		}
		return nil, problems
	}
	ws, err := workspace.Open(config)
	if err != nil {
		if problems = problem.Of(err); len(problems) == 0 {
			problems.Add("workspace-unavailable", "/workspace", "%v", err)
		}
		return nil, problems
	}
	p.workspace = ws
	if rt.borrows(spec) {
		return p, nil // the dialog opens when all tools are known
	}
	if rt.open(spec, p, &problems); len(problems) > 0 {
		_ = ws.Close() // the job never starts, and the problem that kept it is what the caller needs to know
		return nil, problems
	}
	return p, nil
}

// selectTools applies the agent's allowlist under the operator's.
func (rt *Runtime) selectTools(spec *job.Spec, p *plan, problems *problem.List) {
	allow := spec.Agent.Tools
	for i, name := range allow {
		if reason, refused := rt.config.Refused[name]; refused {
			problems.Add("tool-unavailable", fmt.Sprintf("/agent/tools/%d", i), "the tool %q is not available: %s", name, reason)
		}
	}
	if allow == nil && len(rt.config.Withheld)+len(rt.config.Refused) > 0 {
		allow = rt.defaultTools(p)
	}
	var unknown problem.List
	p.tools, unknown = rt.config.Tools.Select(allow, rt.claims(spec))
	*problems = append(*problems, unknown...)
}

// defaultTools returns what an agent gets that names no tools, with a notice for each tool that it goes without.
func (rt *Runtime) defaultTools(p *plan) []string {
	allow := []string{}
	for _, name := range rt.config.Tools.Names() {
		reason, without := rt.config.Refused[name]
		if !without {
			reason, without = rt.config.Withheld[name]
		}
		if without {
			p.notice("tool-withheld", "the agent names no tools and goes without %q: %s", name, reason)
			continue
		}
		allow = append(allow, name)
	}
	return allow
}

// Check returns every problem for which Start would refuse the spec, and starts nothing. A program that reads a document
// calls it to name the rules of the runtime together with those of the document's form, see job.ParseWith; the spec may
// then be incomplete.
func (rt *Runtime) Check(spec *job.Spec) problem.List {
	p, problems := rt.validate(spec, job.Ports{})
	if p != nil {
		_ = p.workspace.Close() // nothing was written
	}
	return problems
}

func under(problems problem.List, pointer string) bool {
	return slices.ContainsFunc(problems, func(p problem.Problem) bool { return strings.HasPrefix(p.Pointer, pointer) })
}

func (rt *Runtime) checkPorts(ports job.Ports, problems *problem.List) {
	if ports.Journal != nil {
		problems.Add("unsupported", "", "this version of the runtime keeps no journal")
	}
}

// resolveModel finds the adapter and the table entry of the spec's model and settles what depends on them.
func (rt *Runtime) resolveModel(spec *job.Spec, p *plan, problems *problem.List) {
	for _, name := range slices.Sorted(maps.Keys(spec.Providers)) {
		if config := spec.Providers[name]; slices.Contains(job.APIs(), config.API) && rt.config.Adapters[config.API] == nil {
			problems.AddHint("unsupported", "/providers/"+escape(name)+"/api",
				"this version speaks "+strings.Join(slices.Sorted(maps.Keys(rt.config.Adapters)), ", "),
				"the API %q is not supported yet", config.API)
		}
	}
	config, known := spec.Providers[spec.Model.Provider]
	adapter := rt.config.Adapters[config.API]
	if !known || adapter == nil || spec.Model.ID == "" {
		return
	}
	pointer := "/providers/" + escape(spec.Model.Provider)
	provider, err := adapter(llm.Account{BaseURL: config.BaseURL, APIKey: config.APIKey, Headers: config.Headers,
		TagHeaders: config.TagHeaders, Script: config.Script})
	if err != nil {
		addAdapterProblems(problems, pointer, err)
		return
	}
	p.provider = provider
	if source, ok := provider.(llm.ModelSource); ok {
		p.model, p.modelListed = source.Model(spec.Model.ID)
	}
	if !p.modelListed {
		p.model, p.modelListed = rt.config.Models(config.API, config.BaseURL, spec.Model.ID)
	}
	p.model.ID = spec.Model.ID
	if override, ok := config.Models[spec.Model.ID]; ok {
		apply(&p.model, override)
		p.modelListed = true
	}
	rt.settle(spec, p, problems)
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

func apply(m *llm.Model, o job.ModelConfig) {
	if o.ContextWindow != nil {
		m.ContextWindow = *o.ContextWindow
	}
	if o.MaxOutputTokens != nil {
		m.MaxOutputTokens = *o.MaxOutputTokens
	}
	if o.Price != nil {
		m.Price = o.Price
	}
	if o.ThinkingLevels != nil {
		m.ThinkingLevels = o.ThinkingLevels
	}
	if o.Images != nil {
		m.Images = *o.Images
	}
	if o.Compat != nil {
		m.Compat = *o.Compat
	}
}

// settle chooses the thinking level and the answer length, and refuses a money limit that could not be kept.
func (rt *Runtime) settle(spec *job.Spec, p *plan, problems *problem.List) {
	p.wanted = spec.Agent.Thinking
	if spec.Model.Thinking != "" {
		p.wanted = spec.Model.Thinking
	}
	asked := p.wanted != ""
	if !asked {
		p.wanted = llm.LevelOff
	}
	p.thinking = p.wanted
	if p.wanted != llm.LevelOff || len(p.model.ThinkingLevels) > 0 {
		p.thinking = llm.Nearest(p.wanted, p.model.ThinkingLevels)
	}
	if asked && p.thinking != p.wanted {
		p.notice("thinking-clamped", "the model %s has no thinking level %q: using %q", p.model.ID, p.wanted, p.thinking)
	}
	p.maxOutput = p.model.MaxOutputTokens
	if limit := spec.Sampling.MaxOutputTokens; limit != nil {
		if p.maxOutput > 0 && *limit > p.maxOutput {
			p.notice("max-output-clamped", "the model %s writes at most %d tokens: asked for %d", p.model.ID, p.maxOutput, *limit)
		} else {
			p.maxOutput = *limit
		}
	}
	if !p.modelListed {
		p.notice("model-unlisted", "the model %s is not in the model table: its context window and price are unknown", p.model.ID)
	}
	if spec.Limits.MaxCostUSD != nil && p.model.Price == nil {
		problems.AddHint("price-unknown", "/limits/maxCostUsd",
			fmt.Sprintf("set /providers/%s/models/%s/price", escape(spec.Model.Provider), escape(spec.Model.ID)),
			"the price of model %q is unknown, so a money limit cannot be kept", spec.Model.ID)
	}
}

func (p *plan) notice(code, format string, args ...any) {
	p.notices = append(p.notices, job.Notice{Code: code, Message: fmt.Sprintf(format, args...)})
}

// open starts the dialog: the prompt, the tool declarations, the history and the task.
func (rt *Runtime) open(spec *job.Spec, p *plan, problems *problem.List) {
	specs := p.tools.Specs()
	opening := llm.Opening{
		Model:       p.model,
		System:      sharedPrompt(&spec.Agent) + rt.lentPrompt(spec),
		JobSystem:   jobPrompt(spec, p.workspace.Layout(), p.tools),
		Tools:       specs,
		Thinking:    p.thinking,
		Temperature: spec.Sampling.Temperature,
		Tags:        llm.Tags{JobID: p.id, AgentID: spec.Agent.ID, AgentVersion: spec.Agent.Version},
	}
	dialog, err := p.provider.Converse(opening)
	if err != nil {
		addAdapterProblems(problems, "/providers/"+escape(spec.Model.Provider), err)
		return
	}
	p.dialog = dialog
	p.promptBytes = len(opening.System) + len(opening.JobSystem)
	for _, s := range specs {
		p.promptBytes += len(s.Name) + len(s.Description) + len(s.InputSchema)
	}
	for i, m := range firstMessages(spec) {
		if err := dialog.Append(m); err != nil {
			problems.Add("message-invalid", "", "message %d cannot be sent to this model: %v", i, err)
		}
		p.promptBytes += messageBytes(m)
	}
}

// escape writes a key as a JSON Pointer token (RFC 6901).
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
