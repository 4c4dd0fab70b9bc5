// Package mcplender lends the tools of MCP servers to the jobs of package kernel: it translates the mcp field of a spec for
// tool/mcptool, which does the work. It is apart from kernel so that a program that needs no MCP does not link it. Only
// the servers of the spec that the agent names are contacted; the operator says which addresses are open.
package mcplender

import (
	"context"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/mcptool"
)

// Options are the operator's.
type Options struct {
	// AllowPrivate opens loopback and private addresses; link-local and metadata addresses stay closed.
	AllowPrivate bool
	// Version is what servers are told about this program.
	Version string
	// TraceParent returns the W3C traceparent to send with a request, "" for none. Nil sends none.
	TraceParent func(ctx context.Context) string
}

// New returns the lender for kernel.Config.
func New(o Options) kernel.Lender { return lender{o} }

type lender struct{ options Options }

func (lender) Fields() []string { return []string{"mcp"} }

// Needed reports whether the agent names a server: the others are not contacted.
func (lender) Needed(spec *job.Spec) bool {
	for _, name := range spec.Agent.Tools {
		if mcptool.IsName(name) {
			return true
		}
	}
	return false
}

func (lender) Claims(_ *job.Spec, name string) bool { return mcptool.IsName(name) }

func (lender) SharedPrompt(*job.Spec) string { return "" }

func (l lender) Check(spec *job.Spec, _ job.Ports, _ []string) problem.List {
	return mcptool.Check(servers(spec), spec.Agent.Tools, l.options.AllowPrivate)
}

func (l lender) Connect(ctx context.Context, loan kernel.Loan) (kernel.Lent, []job.Notice, error) {
	spec := loan.Spec
	session, found, err := mcptool.Connect(ctx, mcptool.Config{Servers: servers(spec), Allow: spec.Agent.Tools,
		AllowPrivate: l.options.AllowPrivate, Version: l.options.Version, TraceParent: l.options.TraceParent,
		Notify: func(n mcptool.Notice) { loan.Notify(notice(n)) }})
	notices := make([]job.Notice, len(found))
	for i, n := range found {
		notices[i] = notice(n)
	}
	if err != nil {
		return nil, notices, err
	}
	return lent{session}, notices, nil
}

func notice(n mcptool.Notice) job.Notice { return job.Notice{Code: n.Code, Message: n.Message} }

func servers(spec *job.Spec) []mcptool.Server {
	if spec.MCP == nil {
		return nil
	}
	all := make([]mcptool.Server, len(spec.MCP.Servers))
	for i, s := range spec.MCP.Servers {
		all[i] = mcptool.Server{Name: s.Name, URL: s.URL, Headers: s.Headers, AllowedTools: s.AllowedTools, Required: s.Required,
			Pins: s.Pins, Timeout: time.Duration(s.TimeoutSec * float64(time.Second))}
	}
	return all
}

// lent is a session as kernel.Lent.
type lent struct{ *mcptool.Session }

// Tools returns the tools; those that the server claims only read are for scripts too.
func (l lent) Tools() []tool.Tool {
	listed := l.Session.Tools()
	tools := make([]tool.Tool, len(listed))
	for i, t := range listed {
		tools[i] = t.Tool
		tools[i].Scripted = t.ReadOnly
		tools[i].Span = job.SpanMCP
	}
	return tools
}
