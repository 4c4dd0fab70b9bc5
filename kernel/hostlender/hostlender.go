// Package hostlender lends the tools of the caller to the jobs of package kernel: it translates the host and checks fields
// of a spec for tool/hosttool, which does the work, over the connection in job.Ports. It is apart from kernel so that a
// program whose callers lend nothing does not link it. The host decides on every call by the connection; nothing of its
// scope is in a spec.
package hostlender

import (
	"context"
	"encoding/json"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/hosttool"
)

// New returns the lender for kernel.Config. version is what hosts are told about this program.
func New(version string) kernel.Lender { return lender{version} }

type lender struct{ version string }

func (lender) Fields() []string { return []string{"host", "checks"} }

// Needed reports whether the agent names a lent tool or the answer is checked.
func (lender) Needed(spec *job.Spec) bool { return len(granted(spec)) > 0 || len(spec.Checks) > 0 }

func (lender) Claims(spec *job.Spec, name string) bool {
	for i := range spec.Host {
		if spec.Host[i].Name == name {
			return true
		}
	}
	return false
}

func (l lender) Check(spec *job.Spec, ports job.Ports, taken []string) problem.List {
	checks := make([]hosttool.AnswerCheck, len(spec.Checks))
	for i, c := range spec.Checks {
		checks[i] = hosttool.AnswerCheck(c)
	}
	problems := hosttool.Check(entries(spec.Host), checks, spec.Agent.Tools, taken)
	if ports.Host == nil {
		for _, field := range []struct {
			name string
			set  bool
		}{{"host", len(spec.Host) > 0}, {"checks", len(spec.Checks) > 0}} {
			if field.set {
				problems.AddHint("host-missing", "/"+field.name, "start the job through a program that lends its tools", "nobody lends tools to this job")
			}
		}
	}
	return problems
}

// SharedPrompt returns the paragraph about the research tools that the agent was granted.
func (lender) SharedPrompt(spec *job.Spec) string { return hosttool.ResearchBlock(granted(spec)) }

func (l lender) Connect(ctx context.Context, loan kernel.Loan) (kernel.Lent, []job.Notice, error) {
	session, err := hosttool.Open(ctx, loan.Ports.Host, hosttool.Config{Run: loan.JobID, Entries: granted(loan.Spec), Version: l.version,
		Lost: func(why error) {
			loan.Notify(job.Notice{Code: "host-lost", Message: "the host is lost, its tools fail from now on: " + why.Error()})
		}})
	if err != nil {
		return nil, nil, err
	}
	return &lent{session: session, checks: loan.Spec.Checks}, nil, nil
}

func granted(spec *job.Spec) []hosttool.Entry {
	return hosttool.Granted(entries(spec.Host), spec.Agent.Tools)
}

func entries(host []job.HostTool) []hosttool.Entry {
	all := make([]hosttool.Entry, len(host))
	for i, h := range host {
		all[i] = hosttool.Entry(h)
	}
	return all
}

// lent is the host of one job.
type lent struct {
	session *hosttool.Session
	checks  []job.Check
	// leaks is noted only if a tool carries content out.
	leaks  hosttool.Leaks
	egress bool
}

// Tools returns the tools; those that carry content out are guarded.
func (l *lent) Tools() []tool.Tool {
	listed := l.session.Tools()
	tools := make([]tool.Tool, len(listed))
	for i, t := range listed {
		tools[i] = t.Tool
		if t.Egress {
			l.egress = true
			tools[i].Guard = func(arguments json.RawMessage) string { return l.leaks.Quotes(arguments) }
		}
	}
	return tools
}

func (l *lent) Close() { l.session.Close() }

// Observe implements kernel.Observer.
func (l *lent) Observe(text string) {
	if l.egress {
		l.leaks.Note(text)
	}
}

// Judges implements kernel.Judge.
func (l *lent) Judges() bool { return len(l.checks) > 0 }

// Judge asks the checks in their order; the first that does not pass decides.
func (l *lent) Judge(ctx context.Context, turn int64, answer string) *kernel.Judgement {
	for _, c := range l.checks {
		verdict, message := l.session.Check(ctx, hosttool.AnswerCheck(c), turn, answer)
		if verdict != hosttool.Pass {
			return &kernel.Judgement{Check: c.ID, Failed: verdict == hosttool.Fail, Message: message}
		}
	}
	return nil
}
