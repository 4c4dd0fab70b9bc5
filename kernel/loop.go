package kernel

import (
	"fmt"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// loop runs turns until the model answers without asking for a tool, or until something stops the job. A response that
// asks for tools is never the answer, whatever stop reason the provider gave.
func (r *run) loop() (answer string, stopped *stop) {
	for turn := int64(1); ; turn++ {
		if limit := r.spec.Limits.MaxTurns; limit != nil && turn > *limit {
			return "", stopf(job.ReasonMaxTurns, job.CodeMaxTurns, "stopped after the limit of %s", describeCount(int(*limit), "turn"))
		}
		answer, answered, stopped := r.turn(turn)
		if stopped != nil || answered {
			return answer, stopped
		}
	}
}

// turn asks the model once and runs the tools it asks for.
func (r *run) turn(turn int64) (answer string, answered bool, stopped *stop) {
	sp := r.startSpan(r.root, job.SpanTurn, map[string]any{"turn": turn, "model": r.spec.Model.ID})
	var calls []*llm.ToolCall
	defer func() { sp.end(stopped == nil, map[string]any{"calls": len(calls)}) }()

	response, stopped := r.respond(turn, sp)
	if stopped != nil {
		return "", false, stopped
	}
	calls = response.Message.ToolCalls()
	text := response.Message.Text()
	final := len(calls) == 0
	stopped = r.ledger.overspent()
	if final && stopped == nil {
		stopped = r.checkAnswer(turn, text)
	}
	// With judges, the text of an answer that may not stand is in no event.
	if stopped == nil || !final || len(r.judges) == 0 {
		r.release(turn, text, final && stopped == nil)
	}
	if stopped != nil || final {
		return text, final, stopped
	}
	for i, c := range calls {
		c.ID = fmt.Sprintf("%d.%d", turn, i)
	}
	results, stopped := r.batch(turn, calls, sp)
	if stopped != nil {
		return "", false, stopped
	}
	return "", false, r.append(response.Message, results)
}

// release emits the text of a turn: what was held back of its deltas, then the whole.
func (r *run) release(turn int64, text string, final bool) {
	if r.held != nil {
		r.held.release()
		r.held = nil
	}
	if text != "" {
		r.emit(&job.MessageData{Turn: turn, Text: text, Final: final})
	}
}

// append adds a turn to the dialog.
func (r *run) append(messages ...llm.Message) *stop {
	for i, m := range messages {
		if err := r.plan.dialog.Append(m); err != nil {
			return stopf(job.ReasonError, job.CodeInternal, "the conversation cannot go on: %v", err)
		}
		if i > 0 { // the response itself was counted by the provider
			r.ledger.addPrompt(messageBytes(m))
		}
	}
	return nil
}
