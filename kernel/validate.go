package kernel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/workspace"
)

// plan is a spec resolved against the runtime: everything that a run needs and that could be refused.
type plan struct {
	id        string
	agent     *agent
	workspace *workspace.Workspace
	// dialog is open already if nothing has to be connected first.
	dialog  *opened
	notices []job.Notice
}

// validate checks the whole spec and reports every problem at once. What it opens is closed again if there is one.
func (rt *Runtime) validate(spec *job.Spec, ports job.Ports) (*plan, problem.List) {
	problems := spec.Check()
	p := &plan{id: spec.ID}
	if p.id == "" {
		p.id = rt.config.NewID()
	}
	checkPorts(spec, ports, &problems)
	rt.checkAdapters(spec, &problems)
	p.agent = rt.resolve(spec, p, &problems)
	rt.checkLenders(p.agent, ports, &problems)
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
	if rt.borrows(p.agent) || spec.Resume != nil {
		return p, nil // the dialog opens when all tools are known
	}
	if p.dialog = rt.open(p, p.agent, rt.lists(p, p.agent), &problems); len(problems) > 0 {
		_ = ws.Close() // the job never starts, and the problem that kept it is what the caller needs to know
		return nil, problems
	}
	return p, nil
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

// checkPorts refuses what cannot be kept without a journal.
func checkPorts(spec *job.Spec, ports job.Ports, problems *problem.List) {
	if ports.Journal != nil {
		return
	}
	for _, field := range []struct {
		name string
		set  bool
	}{{"approvals", spec.Approvals.Any()}, {"resume", spec.Resume != nil}} {
		if field.set {
			problems.AddHint("journal-missing", "/"+field.name, "start the job with a journal", "a job without a journal cannot be suspended or resumed")
		}
	}
}

// checkAdapters reports the API families that this runtime does not speak.
func (rt *Runtime) checkAdapters(spec *job.Spec, problems *problem.List) {
	for _, name := range slices.Sorted(maps.Keys(spec.Providers)) {
		if config := spec.Providers[name]; slices.Contains(job.APIs(), config.API) && rt.config.Adapters[config.API] == nil {
			problems.AddHint("unsupported", "/providers/"+escape(name)+"/api",
				"this version speaks "+strings.Join(slices.Sorted(maps.Keys(rt.config.Adapters)), ", "),
				"the API %q is not supported yet", config.API)
		}
	}
}

// notice adds a remark about the plan, once.
func (p *plan) notice(code, format string, args ...any) {
	n := job.Notice{Code: code, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(p.notices, n) {
		p.notices = append(p.notices, n)
	}
}

// escape writes a key as a JSON Pointer token (RFC 6901).
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
