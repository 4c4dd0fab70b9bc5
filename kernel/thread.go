package kernel

import (
	"context"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/compaction"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// thread is one agent at work in one dialog: the agent of the job, or a subagent during one of its calls. Everything that
// a subagent must not share with its parent is here; what a job has once is in run. It belongs to the run's goroutine.
type thread struct {
	run   *run
	agent *agent
	// ctx ends with the job, or with the thread's own time limit.
	ctx context.Context
	// call is the call of the subagent, nil for the agent of the job; id is its id, "" for the agent of the job.
	call *call
	id   string
	// around is the span that the turns are in.
	around *span
	// turn is the turn that runs, counted from 1; tries is the number of its last request.
	turn, tries int64

	dialog llm.Dialog
	// system, tools and messages are what the dialog holds, so that another can be opened in its place.
	opening  llm.Opening
	messages []llm.Message
	gauge    gauge
	short    shortening
	ledger   *ledger
	repeats  repeats
	// memory is the state of the working-memory loop, nil for a transcript.
	memory *memory
	// held is the text of the last response, which may be held back until a judge has seen it.
	held *deltas
	// repairing says that the turn asks for an answer that fits, since the last one did not.
	repairing bool
	// repairs and toolFaults count what went back to the model in this thread.
	repairs    int64
	toolFaults int64
}

// emit reports what happened in the thread: below its call, if it has one.
func (t *thread) emit(data job.EventPayload) { t.run.emitIn(t.id, data) }

// ended returns the stop of a thread that was aborted or ran out of time, nil for one that may go on.
func (t *thread) ended() *stop {
	if end := t.run.record.recordedEnd(); end != nil || t.run.replay != nil {
		return end
	}
	if t.ctx.Err() == nil {
		return nil
	}
	return causeOf(t.ctx)
}

// callID names a call of the model: "<turn>.<index>", below the call of a subagent "<call>/<turn>.<index>".
func (t *thread) callID(label string) string {
	if t.id == "" {
		return label
	}
	return t.id + "/" + label
}

// purpose is what the thread's own requests are for.
func (t *thread) purpose() llm.Purpose {
	switch {
	case t.call != nil:
		return llm.PurposeSubagent
	case t.repairing:
		return llm.PurposeRepair
	}
	return llm.PurposeTurn
}

func (t *thread) idleTimeout() time.Duration {
	if limit := t.agent.spec.Limits.IdleTimeoutSec; limit != nil {
		return seconds(*limit)
	}
	return seconds(job.DefaultIdleTimeoutSec)
}

// opened is a dialog with what it holds.
type opened struct {
	dialog   llm.Dialog
	opening  llm.Opening
	messages []llm.Message
	// bytes is the size of the system prompt, the tool declarations and the messages, for the first token estimate.
	bytes int
	// task is where in messages the task is, with the context before it.
	task  compaction.Range
	lists *job.ListsFrame
}

// lists returns what the model of an agent is offered.
func (rt *Runtime) lists(p *plan, a *agent) *job.ListsFrame {
	lists := &job.ListsFrame{
		Provider:  a.spec.Model.Provider,
		Model:     a.model,
		Thinking:  a.thinking,
		Tools:     a.tools.Specs(),
		System:    sharedPrompt(&a.spec.Agent) + rt.lentPrompt(a.spec) + outputPrompt(a.spec.Output),
		JobSystem: jobPrompt(a.spec, p.workspace.Layout(), a.tools),
	}
	if a.workingMemory() {
		p.stepLists(a, lists)
	}
	return lists
}

// open starts a dialog: the prompt, the tool declarations, the history and the task.
func (rt *Runtime) open(p *plan, a *agent, lists *job.ListsFrame, problems *problem.List) *opened {
	spec := a.spec
	o := &opened{lists: lists, opening: llm.Opening{
		Model:       lists.Model,
		System:      lists.System,
		JobSystem:   lists.JobSystem,
		Tools:       lists.Tools,
		Thinking:    lists.Thinking,
		TypedAnswer: a.answer != nil && !a.workingMemory(), // there it is an argument of finish
		Temperature: spec.Sampling.Temperature,
		Tags:        llm.Tags{JobID: p.id, AgentID: spec.Agent.ID, AgentVersion: spec.Agent.Version},
	}}
	dialog, err := a.provider.Converse(o.opening)
	if err != nil {
		addAdapterProblems(problems, "/providers/"+escape(spec.Model.Provider), err)
		return nil
	}
	o.dialog = dialog
	o.bytes = openingBytes(&o.opening)
	o.messages = firstMessages(spec)
	if a.workingMemory() {
		o.messages = a.firstStep()
	}
	o.task = compaction.Range{From: len(spec.History), To: len(o.messages)}
	for i, m := range o.messages {
		if err := dialog.Append(m); err != nil {
			problems.Add("message-invalid", "", "message %d cannot be sent to this model: %v", i, err)
		}
		o.bytes += compaction.Bytes(m)
	}
	return o
}

// openingBytes is the size of an opening for llm.EstimateTokens.
func openingBytes(o *llm.Opening) int {
	n := len(o.System) + len(o.JobSystem)
	for _, s := range o.Tools {
		n += len(s.Name) + len(s.Description) + len(s.InputSchema)
	}
	return n
}

// begin gives the thread its dialog.
func (t *thread) begin(o *opened) {
	t.dialog, t.opening, t.messages = o.dialog, o.opening, o.messages
	t.gauge = gauge{window: o.lists.Model.ContextWindow}
	t.gauge.add(o.bytes)
	t.short = shortening{state: compaction.State{Task: o.task}}
}

// append adds messages to the dialog. counted says that the first of them is a response, which its provider has counted.
func (t *thread) append(counted bool, messages ...llm.Message) *stop {
	for i, m := range messages {
		if err := t.dialog.Append(m); err != nil {
			return stopf(job.ReasonError, job.CodeInternal, "the conversation cannot go on: %v", err)
		}
		if i > 0 || !counted {
			t.gauge.add(compaction.Bytes(m))
		}
	}
	t.messages = append(t.messages, messages...)
	return nil
}
