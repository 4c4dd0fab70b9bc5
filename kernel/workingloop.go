package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// The second loop: one call a step, and a document in the place of the transcript. What is asked and checked is in package
// workingmemory; here is what happens between. Each request of a step opens a dialog of its own, with the same beginning
// and the document as it is now, so nothing grows from step to step.

// maxIdleSteps is how many steps in a row may pass without a call before the job fails.
const maxIdleSteps = 3

// memory is the state of a thread that works in steps.
type memory struct {
	document workingmemory.Document
	// objective is that of the document, task the whole task if the objective is only its beginning.
	objective, task string
	limit           int64
	// background are the messages before that of the step: history and context, the same in every request.
	background []llm.Message
	intents    map[string]workingmemory.Intent
	writer     *writer
	// notes are for the next step.
	notes []string
	// past are the steps so far: past[i] is step i+1.
	past []pastStep
	// finish is the accepted end, refused says that one has been sent back.
	finish  *workingmemory.Finish
	output  json.RawMessage
	refused bool
	// idle counts the steps without a call in a row.
	idle      int
	fallbacks int64
}

// pastStep is a step with its whole outcome, for recall_step.
type pastStep struct {
	step    workingmemory.Step
	outcome string
}

// step is one step on its way.
type step struct {
	workingmemory.Step
	outcome string
	span    *span
	// before is what the thread had used when the step began.
	before job.TotalUsage
	// text is what the model said beside its call.
	text string
	// call is the call of the step, nil if there is none.
	call *call
}

// loopTools are the tools that the loop itself answers.
func loopTools() ([]tool.Tool, error) {
	var tools []tool.Tool
	for _, spec := range []llm.ToolSpec{workingmemory.RecallSpec(), workingmemory.FinishSpec()} {
		t, err := tool.Raw(tool.Declaration{Name: spec.Name, Description: spec.Description, InputSchema: spec.InputSchema, Effect: tool.EffectRead,
			Boundary: tool.Boundary{Reads: "what earlier steps of the job recorded", Writes: "none", Network: "none", Processes: "none", Secrets: "none"}},
			func(context.Context, *tool.Env, json.RawMessage) tool.Result {
				return tool.Errorf("this tool belongs to the working-memory loop")
			})
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// stepLists makes what a model is offered that of a job in steps.
func (p *plan) stepLists(a *agent, lists *job.ListsFrame) {
	if offered, _, err := workingmemory.Offer(lists.Tools); err == nil { // steps fails with the error
		lists.Tools = offered
	}
	lists.System += "\n\n" + workingmemory.Prompt(workingmemory.StepPrompt)
	for _, without := range p.degraded() {
		lists.JobSystem = strings.TrimSpace(lists.JobSystem + "\n\nNot available in this job: " + without)
	}
}

// firstStep returns the messages of the first request.
func (a *agent) firstStep() []llm.Message {
	m := a.newMemory()
	return m.messages(1, a.maxSteps())
}

// newMemory is what an agent begins with.
func (a *agent) newMemory() *memory {
	window := a.model.ContextWindow
	if w := a.writer.model.ContextWindow; w > 0 && (window <= 0 || w < window) {
		window = w
	}
	m := &memory{limit: workingmemory.Limit(window, a.writer.maxTokens), writer: a.writer}
	first := firstMessages(a.spec)
	m.background = first[:len(first)-1] // the last one is the task
	var whole bool
	if m.objective, whole = workingmemory.ObjectiveOf(a.spec.Task, m.limit); !whole {
		m.task = a.spec.Task
	}
	m.document = workingmemory.New(m.objective)
	return m
}

// maxSteps is the last step that there can be, 0 if there is no bound.
func (a *agent) maxSteps() int64 {
	if limit := a.spec.Limits.MaxTurns; limit != nil {
		return *limit
	}
	return 0
}

// messages are those of the request of a step.
func (m *memory) messages(n, maxSteps int64) []llm.Message {
	text := workingmemory.StepMessage(workingmemory.StepInput{Document: m.document, Step: n, MaxSteps: maxSteps, Task: m.task, Notes: m.notes})
	return append(m.background[:len(m.background):len(m.background)], llm.UserText(text))
}

// steps runs the thread step by step until its agent has finished, or until something stops it.
func (t *thread) steps() (endOfLoop, *stop) {
	if stopped := t.openWriter(); stopped != nil {
		return endOfLoop{}, stopped
	}
	t.memory = t.agent.newMemory()
	_, intents, err := workingmemory.Offer(t.agent.tools.Specs())
	if err != nil {
		return endOfLoop{}, stopf(job.ReasonError, job.CodeInternal, "the tools cannot be offered: %v", err)
	}
	t.memory.intents = intents
	last := t.agent.maxSteps()
	for t.turn = 1; ; t.turn++ {
		if last > 0 && t.turn > last {
			return t.endSteps(stopf(job.ReasonMaxTurns, job.CodeMaxTurns, "stopped after the limit of %s", describeCount(int(last), "turn")))
		}
		if stopped := t.step(); stopped != nil || t.memory.finish != nil {
			return t.endSteps(stopped)
		}
	}
}

// step makes one step: it asks for a call, runs it, records what came of it and has the document rewritten.
func (t *thread) step() (stopped *stop) {
	sp := t.run.startSpan(t.around, job.SpanTurn, map[string]any{"turn": t.turn, "model": t.agent.spec.Model.ID})
	calls := 0
	defer func() { sp.end(stopped == nil, map[string]any{"calls": calls}) }()
	s := &step{span: sp, before: t.ledger.total, Step: workingmemory.Step{V: workingmemory.StepVersion, N: t.turn, ParentStep: t.parentStep(),
		Agent: t.agent.label(), Before: t.memory.document.Hash(), StartedAt: time.Now().UTC()}}
	wish, stopped := t.wish(s)
	if stopped != nil {
		return stopped
	}
	if wish != nil {
		calls = 1 + len(s.Dropped)
	}
	switch {
	case wish == nil:
		stopped = t.idleStep(s)
	case wish.Name == workingmemory.FinishTool:
		stopped = t.finishStep(s, wish)
	default:
		stopped = t.callStep(s, wish)
	}
	if stopped != nil && stopped.leaves() {
		return stopped
	}
	if lost := t.recordStep(s); lost != nil {
		return lost
	}
	if told := t.tellStep(s); told != nil || stopped != nil {
		return cmp.Or(stopped, told)
	}
	if t.memory.finish != nil {
		return nil
	}
	return t.rewrite(s)
}

// parentStep is the step of the parent that the thread runs in, 0 if there is none.
func (t *thread) parentStep() int64 {
	if t.call == nil || t.call.thread.memory == nil {
		return 0
	}
	return t.call.thread.turn
}

// label names the agent in the records of its steps.
func (a *agent) label() string {
	if a.name != "" {
		return a.name
	}
	return a.spec.Agent.ID
}

// wish asks the model for the call of the step. A reply without one is asked for again, once; nil means that it has none
// either.
func (t *thread) wish(s *step) (*llm.ToolCall, *stop) {
	if stopped := t.openStep(); stopped != nil {
		return nil, stopped
	}
	response, stopped := t.respond(t.own(), s.span)
	if stopped != nil {
		return nil, stopped
	}
	s.text = response.Message.Text()
	calls := response.Message.ToolCalls()
	// The words beside a finish may be the answer, which a judge has not seen yet.
	if len(calls) == 0 || calls[0].Name != workingmemory.FinishTool {
		t.release(s.text, false)
	}
	if stopped := t.ledger.overspent(); stopped != nil {
		return nil, stopped
	}
	if len(calls) == 0 {
		if response, stopped = t.askForCall(s, response); stopped != nil {
			return nil, stopped
		}
		s.text, calls = response.Message.Text(), response.Message.ToolCalls()
	}
	if len(calls) == 0 {
		return nil, nil
	}
	for _, c := range calls[1:] {
		s.Dropped = append(s.Dropped, workingmemory.DroppedCall{Tool: c.Name, Arguments: c.Arguments})
	}
	if len(s.Dropped) > 0 {
		t.memory.notes = append(t.memory.notes, workingmemory.NoteDropped(calls[0].Name, s.Dropped))
	}
	calls[0].ID = t.callID(fmt.Sprintf("%d.0", t.turn))
	s.Source = "structured"
	if format := calls[0].TextFormat; format != "" {
		s.Source = "text:" + format
	}
	return calls[0], nil
}

// openStep opens the dialog of the step.
func (t *thread) openStep() *stop {
	m := t.memory
	dialog, err := t.agent.provider.Converse(t.opening)
	if err != nil {
		return stopf(job.ReasonError, job.CodeProviderRefused, "open the dialog of step %d: %v", t.turn, err)
	}
	messages := m.messages(t.turn, t.agent.maxSteps())
	m.notes = nil
	t.dialog, t.messages = dialog, nil
	t.gauge = gauge{window: t.gauge.window}
	t.gauge.add(openingBytes(&t.opening))
	return t.append(false, messages...)
}

// askForCall tells the model that its reply held no call.
func (t *thread) askForCall(s *step, response llm.Response) (llm.Response, *stop) {
	if stopped := t.append(true, response.Message, llm.UserText("Note: "+workingmemory.NoteNoCall())); stopped != nil {
		return llm.Response{}, stopped
	}
	ex := t.own()
	ex.purpose, ex.label, ex.silent = llm.PurposeRepair, fmt.Sprintf("%d.again", t.turn), true
	response, stopped := t.respond(ex, s.span)
	if stopped == nil {
		stopped = t.ledger.overspent()
	}
	return response, stopped
}

// idleStep is a step without a call.
func (t *thread) idleStep(s *step) *stop {
	m := t.memory
	s.Kind, s.Status = workingmemory.KindNone, workingmemory.StatusNone
	s.outcome = "No tool was called. The model wrote:\n" + s.text
	m.notes = append(m.notes, workingmemory.NoteNoCall())
	if m.idle++; m.idle >= maxIdleSteps {
		return stopf(job.ReasonError, job.CodeNoCall, "the model called no tool in %d steps, although each time it was asked again", m.idle)
	}
	return nil
}

// callStep runs the call of a step.
func (t *thread) callStep(s *step, wish *llm.ToolCall) *stop {
	t.memory.idle = 0
	own := *wish
	var missing error
	if wish.ArgumentsError == "" {
		objective, rest, err := t.memory.intents[wish.Name].Split(wish.Arguments)
		s.Objective, own.Arguments, missing = objective, rest, err
	}
	c := t.prepare(&own)
	if c.code == "" && missing != nil {
		c.refuse(codeInvalidArguments, missing.Error())
	}
	if c.code == "" && c.Name == workingmemory.RecallTool {
		t.bindRecall(c)
	}
	_, stopped := t.perform([]*call{c}, s.span)
	if stopped != nil && stopped.leaves() {
		return stopped
	}
	s.describe(c)
	s.Status = workingmemory.StatusOK
	switch {
	case c.interrupted:
		s.Status = workingmemory.StatusUnknown
	case c.result.IsError:
		s.Status = workingmemory.StatusError
	}
	s.outcome = c.result.Text
	if n := len(c.result.Images); n > 0 {
		s.outcome += fmt.Sprintf("\n[%s that a document cannot hold]", describeCount(n, "image"))
	}
	return stopped
}

// bindRecall lets the call look at the steps so far.
func (t *thread) bindRecall(c *call) {
	bound, past, now := *c.tool, t.memory.past, t.turn
	bound.Run = func(_ context.Context, _ *tool.Env, arguments json.RawMessage) tool.Result {
		r, err := workingmemory.ParseRecall(arguments, now)
		if err != nil {
			return tool.Errorf("%v", err)
		}
		text, err := r.Show(past[r.N-1].step, past[r.N-1].outcome)
		if err != nil {
			return tool.Errorf("%v", err)
		}
		return tool.Result{Text: text, Summary: fmt.Sprintf("step %d", r.N)}
	}
	c.tool = &bound
}
