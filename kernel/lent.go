package kernel

import (
	"context"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
)

// Lender connects a job to tools that live outside of this process, such as those of MCP servers. The program that wires
// the runtime chooses the lenders; a spec that needs one that is missing is refused.
type Lender interface {
	// Field is the field of the spec that the lender serves, such as "mcp".
	Field() string
	// Needed reports whether the spec sets that field.
	Needed(spec *job.Spec) bool
	// Claims reports whether a name of an allowlist can only mean a tool of this lender.
	Claims(name string) bool
	// Check returns every problem of the spec that needs no connection.
	Check(spec *job.Spec) problem.List
	// Connect opens what the agent names. The notices go to the reader of the events. An error ends the job before its
	// first request. Notify takes notices that come later.
	Connect(ctx context.Context, spec *job.Spec, notify func(job.Notice)) (Lent, []job.Notice, error)
}

// Lent is the tools of one job from one lender. Close ends every connection.
type Lent interface {
	// Tools returns the tools in the order in which models are offered them; it is called once.
	Tools() []tool.Tool
	// Close ends every connection; calls in flight fail. It is called once, when the job has ended.
	Close()
}

// claimed reports whether a name of an allowlist belongs to a lender.
func (rt *Runtime) claimed(name string) bool {
	for _, l := range rt.config.Lenders {
		if l.Claims(name) {
			return true
		}
	}
	return false
}

// checkLenders reports the problems of every lender, and fields that no lender serves.
func (rt *Runtime) checkLenders(spec *job.Spec, problems *problem.List) {
	served := map[string]bool{}
	for _, l := range rt.config.Lenders {
		served[l.Field()] = true
		*problems = append(*problems, l.Check(spec)...)
	}
	if spec.MCP != nil && len(spec.MCP.Servers) > 0 && !served["mcp"] {
		problems.AddHint("unsupported", "/mcp", "leave it out", "this runtime connects to no MCP servers")
	}
}

// borrows reports whether the spec needs a lender.
func (rt *Runtime) borrows(spec *job.Spec) bool {
	for _, l := range rt.config.Lenders {
		if l.Needed(spec) {
			return true
		}
	}
	return false
}

// borrow connects to every lender that the spec needs and adds their tools.
func (r *run) borrow() *stop {
	for _, l := range r.rt.config.Lenders {
		if !l.Needed(r.spec) {
			continue
		}
		lent, notices, err := l.Connect(r.ctx, r.spec, func(n job.Notice) { r.emit(&n) })
		r.plan.notices = append(r.plan.notices, notices...)
		if ended := r.ended(); ended != nil {
			return ended
		}
		if err != nil {
			return stopf(job.ReasonError, job.CodeToolsUnavailable, "%v", err)
		}
		r.lent = append(r.lent, lent)
		tools, err := r.plan.tools.With(lent.Tools()...)
		if err != nil {
			return stopf(job.ReasonError, job.CodeToolsUnavailable, "%v", err)
		}
		r.plan.tools = tools
	}
	return nil
}

func (r *run) giveBack() {
	for _, l := range r.lent {
		l.Close()
	}
}
