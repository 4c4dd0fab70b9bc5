package kernel

import (
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Preview is what the model of a job would be told before its first turn.
type Preview struct {
	// System and JobSystem are the two parts of the system prompt, byte for byte; see llm.Opening.
	System    string
	JobSystem string
	// Tools are declared in this order. Lent are the entries of the agent's allowlist that stand for tools which are known
	// only when the job has connected to whoever lends them.
	Tools []llm.ToolSpec
	Lent  []string
	// Messages are those before the first turn; the last one holds the task.
	Messages []llm.Message
	// Thinking is the level that the model would be asked for.
	Thinking llm.Level
	Notices  []job.Notice
}

// Preview returns what Start would tell the model of the spec, or every problem for which Start would refuse it. Nothing is
// started, connected or kept. Rules about approvals and the place from which a job goes on play no part: neither is told to
// a model.
func (rt *Runtime) Preview(spec *job.Spec) (*Preview, problem.List) {
	told := *spec
	told.Approvals, told.Resume = nil, nil
	p, problems := rt.validate(&told, job.Ports{})
	if p == nil {
		return nil, problems
	}
	defer func() { _ = p.workspace.Close() }() // nothing was written
	lists := rt.lists(p, p.agent)
	view := &Preview{System: lists.System, JobSystem: lists.JobSystem, Tools: lists.Tools, Thinking: lists.Thinking,
		Messages: firstMessages(&told), Notices: p.notices}
	if p.agent.workingMemory() {
		view.Messages = p.agent.firstStep()
	}
	for _, name := range told.Agent.Tools {
		if p.agent.tools.Find(name) == nil {
			view.Lent = append(view.Lent, name)
		}
	}
	return view, nil
}
