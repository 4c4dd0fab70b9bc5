package kernel

import (
	"encoding/json"
	"fmt"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// endOfLoop is what a loop ends with.
type endOfLoop struct {
	answer string
	// output is the typed answer.
	output json.RawMessage
}

// loop runs the thread until its agent has answered, or until something stops it.
func (t *thread) loop() (endOfLoop, *stop) {
	if t.agent.workingMemory() {
		return t.steps()
	}
	return t.transcript()
}

// transcript runs turns until the model answers without asking for a tool. A response that asks for tools is never the
// answer, whatever stop reason the provider gave.
func (t *thread) transcript() (endOfLoop, *stop) {
	for t.turn = 1; ; t.turn++ {
		if limit := t.agent.spec.Limits.MaxTurns; limit != nil && t.turn > *limit {
			return endOfLoop{}, stopf(job.ReasonMaxTurns, job.CodeMaxTurns, "stopped after the limit of %s", describeCount(int(*limit), "turn"))
		}
		end, answered, stopped := t.runTurn()
		if stopped != nil || answered {
			return end, stopped
		}
	}
}

// runTurn asks the model once and runs the tools it asks for.
func (t *thread) runTurn() (end endOfLoop, answered bool, stopped *stop) {
	sp := t.run.startSpan(t.around, job.SpanTurn, map[string]any{"turn": t.turn, "model": t.agent.spec.Model.ID})
	var calls []*llm.ToolCall
	defer func() { sp.end(stopped == nil, map[string]any{"calls": len(calls)}) }()

	response, stopped := t.ask(sp)
	t.repairing = false
	if stopped != nil {
		return endOfLoop{}, false, stopped
	}
	calls = response.Message.ToolCalls()
	text := response.Message.Text()
	if stopped = t.ledger.overspent(); stopped != nil || len(calls) > 0 {
		t.release(text, false)
	}
	if stopped != nil {
		return endOfLoop{answer: text}, false, stopped
	}
	if len(calls) == 0 {
		return t.answered(&response, text)
	}
	for i, c := range calls {
		c.ID = t.callID(fmt.Sprintf("%d.%d", t.turn, i))
	}
	results, stopped := t.batch(calls, sp)
	if stopped != nil {
		return endOfLoop{}, false, stopped
	}
	return endOfLoop{}, false, t.append(true, response.Message, results)
}

// answered ends a turn without calls: with the answer, or with another turn if the answer does not fit.
func (t *thread) answered(response *llm.Response, text string) (end endOfLoop, answered bool, stopped *stop) {
	output, again, stopped := t.accept(response, text)
	if again || stopped != nil {
		t.held = nil // what may not stand is in no event
		return endOfLoop{}, false, stopped
	}
	t.release(text, true)
	return endOfLoop{answer: text, output: output}, true, nil
}

// release emits the text of a turn: what was held back of its deltas, then the whole.
func (t *thread) release(text string, final bool) {
	if t.held != nil {
		t.held.release()
		t.held = nil
	}
	if text != "" {
		t.emit(&job.MessageData{Turn: t.turn, Text: text, Final: final && t.call == nil})
	}
}
