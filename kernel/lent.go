package kernel

import (
	"context"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
)

// Lender connects a job to tools that live outside of this process, such as those of MCP servers or of the caller. The
// program that wires the runtime chooses the lenders; a spec that needs one that is missing is refused.
type Lender interface {
	// Fields are the fields of the spec that the lender serves, such as "mcp".
	Fields() []string
	// Needed reports whether a job of this spec has to be connected.
	Needed(spec *job.Spec) bool
	// Claims reports whether a name of the spec's allowlist can only mean a tool of this lender.
	Claims(spec *job.Spec, name string) bool
	// Check returns every problem of the spec that needs no connection. taken are the names of the kernel's own tools.
	Check(spec *job.Spec, ports job.Ports, taken []string) problem.List
	// SharedPrompt returns what the lent tools add to the part of the system prompt that all jobs of the agent share, ""
	// for nothing. Equal agents give equal bytes.
	SharedPrompt(spec *job.Spec) string
	// Connect opens what the agent names. The notices go to the reader of the events. An error ends the job before its
	// first request.
	Connect(ctx context.Context, loan Loan) (Lent, []job.Notice, error)
}

// Loan is what a lender needs to know to connect one job.
type Loan struct {
	JobID string
	Spec  *job.Spec
	Ports job.Ports
	// Notify takes notices that come after Connect has returned, from any goroutine.
	Notify func(job.Notice)
}

// Lent is the tools of one job from one lender. It may be a Judge and an Observer as well.
type Lent interface {
	// Tools returns the tools in the order in which models are offered them; it is called once.
	Tools() []tool.Tool
	// Close ends every connection; calls in flight fail. It is called once, when the job has ended.
	Close()
}

// Judge decides about the answer of a job before it is reported.
type Judge interface {
	// Judges reports whether there is anything to decide.
	Judges() bool
	// Judge returns nil for an answer that may stand. It returns when ctx ends.
	Judge(ctx context.Context, turn int64, answer string) *Judgement
}

// Judgement is why an answer may not stand.
type Judgement struct {
	// Check is the id of the check that decided.
	Check string
	// Failed says that the answer broke the check; otherwise the check could not be made.
	Failed  bool
	Message string
}

// Observer sees what the job reads.
type Observer interface {
	// Observe takes the text of a successful call that only reads and has no Guard, before the model is shown it.
	Observe(text string)
}

// claims returns a function that reports whether a name of the spec's allowlist belongs to a lender.
func (rt *Runtime) claims(spec *job.Spec) func(name string) bool {
	return func(name string) bool {
		for _, l := range rt.config.Lenders {
			if l.Claims(spec, name) {
				return true
			}
		}
		return false
	}
}

// checkLenders reports the problems of every lender, and fields that no lender serves.
func (rt *Runtime) checkLenders(root *agent, ports job.Ports, problems *problem.List) {
	served := map[string]bool{}
	for _, l := range rt.config.Lenders {
		for _, field := range l.Fields() {
			served[field] = true
		}
		root.each(func(a *agent) {
			taken := rt.config.Tools.Names()
			if a.workingMemory() {
				taken = append(taken, workingmemory.RecallTool, workingmemory.FinishTool)
			}
			for _, p := range l.Check(a.spec, ports, taken) {
				switch {
				case a == root:
					*problems = append(*problems, p)
				case strings.HasPrefix(p.Pointer, "/agent/"): // the rest is the job's and has been reported
					p.Pointer = a.pointer + p.Pointer
					*problems = append(*problems, p)
				}
			}
		})
	}
	spec := root.spec
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"mcp", spec.MCP != nil && len(spec.MCP.Servers) > 0}, {"host", len(spec.Host) > 0}, {"checks", len(spec.Checks) > 0},
	} {
		if field.set && !served[field.name] {
			problems.AddHint("unsupported", "/"+field.name, "leave it out", "%q is not supported by this runtime", field.name)
		}
	}
	if ports.Host != nil && !served["host"] {
		problems.Add("unsupported", "", "this runtime takes no host")
	}
}

// borrower returns the spec that a lender connects for: the job's, with the tools that any of its agents names.
func borrower(root *agent) *job.Spec {
	if len(root.subagents) == 0 {
		return root.spec
	}
	spec := *root.spec
	spec.Agent.Tools = []string{}
	root.each(func(a *agent) {
		for _, name := range a.spec.Agent.Tools {
			if !slices.Contains(spec.Agent.Tools, name) {
				spec.Agent.Tools = append(spec.Agent.Tools, name)
			}
		}
	})
	return &spec
}

// names reports whether an allowlist names a lent tool, by itself or by the beginning of its name before a star.
func names(allow []string, tool string) bool {
	return slices.ContainsFunc(allow, func(entry string) bool {
		prefix, all := strings.CutSuffix(entry, "*")
		return entry == tool || all && strings.HasPrefix(tool, prefix)
	})
}

// borrows reports whether an agent of the job needs a lender.
func (rt *Runtime) borrows(root *agent) bool {
	spec := borrower(root)
	return slices.ContainsFunc(rt.config.Lenders, func(l Lender) bool { return l.Needed(spec) })
}

// lentPrompt joins what the lenders add to the shared part of the system prompt.
func (rt *Runtime) lentPrompt(spec *job.Spec) string {
	text := ""
	for _, l := range rt.config.Lenders {
		if part := l.SharedPrompt(spec); part != "" {
			text += "\n\n" + part
		}
	}
	return text
}

// borrow connects to every lender that an agent of the job needs and adds their tools.
func (r *run) borrow() *stop {
	spec := borrower(r.plan.agent)
	for _, l := range r.rt.config.Lenders {
		if !l.Needed(spec) {
			continue
		}
		lent, notices, err := l.Connect(r.ctx, Loan{JobID: r.jobID, Spec: spec, Ports: r.ports, Notify: func(n job.Notice) { r.emit(&n) }})
		r.plan.notices = append(r.plan.notices, notices...)
		if lent != nil {
			r.lent = append(r.lent, lent)
		}
		if r.ctx.Err() != nil {
			return causeOf(r.ctx)
		}
		if err != nil {
			return stopf(job.ReasonError, job.CodeToolsUnavailable, "%v", err)
		}
		if err := r.hand(lent.Tools()); err != nil {
			return stopf(job.ReasonError, job.CodeToolsUnavailable, "%v", err)
		}
		r.attach(lent)
	}
	return nil
}

// hand gives each agent the lent tools that it names. What is lent to a job without subagents is what its agent names.
func (r *run) hand(lent []tool.Tool) (err error) {
	alone := len(r.plan.agent.subagents) == 0
	r.plan.agent.each(func(a *agent) {
		named := lent
		if !alone {
			named = slices.DeleteFunc(slices.Clone(lent), func(t tool.Tool) bool { return !names(a.spec.Agent.Tools, t.Name) })
		}
		set, fault := a.tools.With(named...)
		if fault != nil {
			err = fault
			return
		}
		a.tools = set
	})
	return err
}

func (r *run) attach(lent Lent) {
	if judge, ok := lent.(Judge); ok && judge.Judges() {
		r.judges = append(r.judges, judge)
	}
	if observer, ok := lent.(Observer); ok {
		r.observers = append(r.observers, observer)
	}
}

// observeSpec shows observers what the job was given to read besides its task: context blocks and earlier tool results.
func (r *run) observeSpec() {
	if len(r.observers) == 0 {
		return
	}
	for _, c := range r.spec.Context {
		r.observe(c.Data)
	}
	for _, m := range r.spec.History {
		for _, p := range m.Parts {
			if p.Type != llm.PartToolResult {
				continue
			}
			for _, inner := range p.ToolResult.Content {
				r.observe(inner.Text)
			}
		}
	}
}

func (r *run) observe(text string) {
	for _, o := range r.observers {
		o.Observe(text)
	}
}

// giveBack ends what was borrowed, and the caller's connection, which belongs to the job whether a lender took it or not.
func (r *run) giveBack() {
	for _, l := range r.lent {
		l.Close()
	}
	closePorts(r.ports)
}

func closePorts(ports job.Ports) {
	if ports.Host != nil {
		_ = ports.Host.Close() // the lender may have closed it; there is nobody to tell
	}
}
