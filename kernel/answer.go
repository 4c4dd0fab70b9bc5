package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// defaultRepairs is how often a typed answer that does not fit goes back to the model, if the spec does not say.
const defaultRepairs = 1

// outputPrompt tells the model what form its answer has to have.
func outputPrompt(o *job.OutputSchema) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("\n\n<output name=%q>\nUse tools first, if you need any. Your answer is then one JSON value that fits this JSON Schema, and nothing else: "+
		"no words around it.\n%s\n</output>", outputName(o), o.Schema)
}

func outputName(o *job.OutputSchema) string {
	if o.Name == "" {
		return "output"
	}
	return o.Name
}

// typed reads the value of a typed answer: the whole text, or one fenced block that is the whole text.
func (t *thread) typed(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if inner, fenced := strings.CutPrefix(text, "```"); fenced {
		if inner, fenced = strings.CutSuffix(inner, "```"); fenced {
			first, rest, _ := strings.Cut(inner, "\n")
			if first = strings.TrimSpace(first); first != "" && !strings.EqualFold(first, "json") {
				return nil, errors.New("the answer is a code block that is not JSON")
			}
			text = strings.TrimSpace(rest)
		}
	}
	value := json.RawMessage(text)
	if err := t.agent.answer.Explain(value); err != nil {
		return nil, err
	}
	return value, nil
}

// accept decides whether a text is the answer. If it is typed and does not fit, it goes back to the model, as often as the
// spec allows.
func (t *thread) accept(response *llm.Response, text string) (output json.RawMessage, again bool, stopped *stop) {
	if t.agent.answer != nil {
		value, err := t.typed(text)
		if err != nil {
			return nil, true, t.repair(response, err)
		}
		output = value
	}
	if t.call == nil {
		stopped = t.checkAnswer(text)
	}
	return output, false, stopped
}

// repair withdraws an answer that does not fit and asks for another.
func (t *thread) repair(response *llm.Response, fault error) *stop {
	t.emit(&job.MessageDiscardedData{Turn: t.turn, Try: t.tries, Why: "output-schema"})
	if stopped := t.spendRepair(fault); stopped != nil {
		return stopped
	}
	t.repairing = true
	return t.append(true, response.Message, llm.UserText(fmt.Sprintf("Your answer does not fit the JSON Schema of the output %q:\n%v\n\n"+
		"Answer again with one JSON value that fits, and nothing else.", outputName(t.agent.spec.Output), fault)))
}

// spendRepair counts an answer that goes back to the model, or returns how the job ends with it.
func (t *thread) spendRepair(fault error) *stop {
	spec := t.agent.spec
	most := int64(defaultRepairs)
	if spec.Output.MaxRepairs != nil {
		most = *spec.Output.MaxRepairs
	}
	if limit := spec.Limits.MaxTurns; t.repairs >= most || limit != nil && t.turn >= *limit {
		stopped := stopf(job.ReasonError, job.CodeOutputSchema, "the answer does not fit the schema %q: %v", outputName(spec.Output), fault)
		stopped.details = map[string]any{"errors": strings.Split(fault.Error(), "\n"), "attempts": t.repairs + 1}
		return stopped
	}
	t.repairs++
	return nil
}

// checkAnswer asks whether an answer may stand, or takes what is recorded of that.
func (t *thread) checkAnswer(answer string) *stop {
	r := t.run
	if len(r.judges) == 0 && r.record.upcoming() != job.FrameCallFinished {
		return nil
	}
	id := fmt.Sprintf("check.%d", t.turn)
	var frame job.CallFinishedFrame
	recalled, stopped := r.record.take(job.FrameCallFinished, &frame)
	switch {
	case stopped != nil:
		return stopped
	case recalled && frame.CallID != id:
		return diverged("frame %d ends call %s, not %s", r.record.taken.N, frame.CallID, id)
	case !recalled:
		verdict := r.judgeAnswer(t, answer)
		if ended := t.ended(); verdict != nil && ended != nil {
			return ended
		}
		frame = verdict.frame(id)
		if stopped := r.record.put(job.FrameCallFinished, &frame); stopped != nil {
			return stopped
		}
	}
	switch frame.Code {
	case "":
		return nil
	case job.CodeAnswerCheckFailed:
		return stopf(job.ReasonError, frame.Code, "the answer did not pass the check %q: %s", frame.Summary, frame.Text)
	}
	return stopf(job.ReasonError, frame.Code, "the check %q could not be made: %s", frame.Summary, frame.Text)
}

// frame is what is recorded of a judgement; nil, which lets the answer stand, is one as well.
func (j *Judgement) frame(id string) job.CallFinishedFrame {
	frame := job.CallFinishedFrame{CallID: id}
	if j == nil {
		return frame
	}
	frame.IsError, frame.Summary, frame.Text, frame.Code = true, j.Check, j.Message, job.CodeCheckUnavailable
	if j.Failed {
		frame.Code = job.CodeAnswerCheckFailed
	}
	return frame
}

// judgeAnswer returns the first judgement against an answer, nil if there is none.
func (r *run) judgeAnswer(t *thread, answer string) *Judgement {
	for _, j := range r.judges {
		if verdict := j.Judge(t.ctx, t.turn, answer); verdict != nil {
			return verdict
		}
	}
	return nil
}
