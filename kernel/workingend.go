package kernel

import (
	"encoding/json"
	"fmt"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// codeNotAccepted is the code of a finish that was sent back.
const codeNotAccepted = "not-accepted"

// finishStep decides about a finish: it ends the loop, or what keeps it from doing so is the outcome of the step.
func (t *thread) finishStep(s *step, wish *llm.ToolCall) *stop {
	m := t.memory
	m.idle = 0
	own := *wish
	// It declares no objective, but models state one all the same, as for every other tool.
	if objective, rest, err := (workingmemory.Intent{}).Split(wish.Arguments); err == nil && wish.ArgumentsError == "" {
		s.Objective, own.Arguments = objective, rest
	}
	c := t.prepare(&own)
	s.describe(c)
	f, stopped := t.judgeFinish(c)
	if c.code == "" {
		m.finish = f
		s.Status, s.outcome = workingmemory.StatusOK, "accepted"
		c.result = tool.Result{Text: s.outcome}
		return nil
	}
	s.Status, s.outcome = workingmemory.StatusError, c.reason
	c.result = tool.Result{Text: c.reason, IsError: true}
	m.notes = append(m.notes, c.reason)
	if stopped == nil {
		stopped = t.repeats.add(c.Name, c.arguments, c.reason)
	}
	if stopped == nil && c.code == codeInvalidArguments {
		stopped = t.countFault(c)
	}
	return stopped
}

// judgeFinish refuses a finish that is not to be accepted. A stop is for an answer that has had all its repairs.
func (t *thread) judgeFinish(c *call) (*workingmemory.Finish, *stop) {
	m := t.memory
	if c.code != "" {
		return nil, nil
	}
	f, err := workingmemory.ParseFinish(c.arguments)
	if err != nil {
		c.refuse(codeInvalidArguments, err.Error())
		return nil, nil
	}
	if t.agent.answer != nil {
		if m.output, err = t.typed(f.Answer); err != nil {
			c.refuse(codeInvalidArguments, fmt.Sprintf("the answer does not fit the JSON Schema of the output %q: %v", outputName(t.agent.spec.Output), err))
			return nil, t.spendRepair(err)
		}
	}
	last := t.agent.maxSteps() == t.turn
	if why := f.Objections(m.document, t.halfLeft()); !m.refused && !last && len(why) > 0 {
		m.refused = true
		c.refuse(codeNotAccepted, workingmemory.NoteObjections(why))
		return nil, nil
	}
	return &f, nil
}

// halfLeft reports whether more than half of the steps and of the money is left.
func (t *thread) halfLeft() bool {
	if last := t.agent.maxSteps(); last > 0 && 2*t.turn >= last {
		return false
	}
	limit := t.agent.spec.Limits.MaxCostUSD
	return limit == nil || 2*t.ledger.total.CostMicroUSD < llm.MicroUSD(*limit)
}

// tellFinish reports a finish. An accepted one is judged first; one that is not accepted is shown without its answer, which
// nobody has judged.
func (t *thread) tellFinish(s *step) *stop {
	c, f := s.call, t.memory.finish
	if f == nil {
		if len(t.run.judges) == 0 || t.call != nil {
			t.release(s.text, false)
		}
		c.arguments = withoutAnswer(c.arguments)
	} else {
		if t.call == nil {
			if stopped := t.checkAnswer(f.Answer); stopped != nil {
				t.held = nil
				return stopped
			}
		}
		t.release(s.text, false)
	}
	t.announce(c, s.span)
	t.report(c)
	if f != nil {
		t.emit(&job.MessageData{Turn: t.turn, Text: f.Answer, Final: t.call == nil})
	}
	return nil
}

// withoutAnswer returns the arguments of a finish for an event.
func withoutAnswer(arguments json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(arguments, &members) != nil {
		return nil
	}
	delete(members, "answer")
	shown, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	return shown
}

// endSteps ends the loop: it leaves the report, whatever stopped it.
func (t *thread) endSteps(stopped *stop) (endOfLoop, *stop) {
	if stopped != nil && stopped.leaves() {
		return endOfLoop{}, stopped
	}
	m := t.memory
	if stopped != nil {
		m.finish = nil // an answer that may not stand is not one
	}
	report := t.reportOf(stopped)
	if t.call != nil {
		return endOfLoop{answer: report.Body()}, stopped
	}
	if lost := t.run.leaveReport(&report); lost != nil {
		return endOfLoop{}, lost
	}
	if m.finish == nil {
		return endOfLoop{}, stopped
	}
	return endOfLoop{answer: m.finish.Answer, output: m.output}, stopped
}

func (t *thread) reportOf(stopped *stop) workingmemory.Report {
	m, spec := t.memory, t.agent.spec
	report := workingmemory.Report{Status: workingmemory.ReportFinished, Agent: t.agent.label(), Version: spec.Agent.Version,
		Steps: int64(len(m.past)), Fallbacks: m.fallbacks, Tokens: t.ledger.total.Tokens.Total(), CostMicroUSD: t.ledger.total.CostMicroUSD,
		Finish: m.finish, Degraded: t.run.plan.degraded(), Document: m.document}
	if stopped == nil {
		return report
	}
	report.Reason, report.Message = string(stopped.reason), t.run.redact(stopped.message)
	switch stopped.reason {
	case job.ReasonMaxTurns:
		report.Status = workingmemory.ReportMaxLoops
	case job.ReasonAborted:
		report.Status = workingmemory.ReportAborted
	default:
		report.Status = workingmemory.ReportFailed
	}
	return report
}

// degraded returns what the job has to do without, one sentence each.
func (p *plan) degraded() []string {
	var all []string
	for _, n := range p.notices {
		if n.Code == "mcp-unavailable" {
			all = append(all, n.Message)
		}
	}
	return all
}

// leaveReport writes the report into the output directory, beside a file of the agent's if that has the name. A job does
// not fail for its report.
func (r *run) leaveReport(report *workingmemory.Report) *stop {
	name, text := workingmemory.ReportFile, report.Markdown()
	for n := 2; r.outputs[name]; n++ {
		name = fmt.Sprintf("%d-%s", n, workingmemory.ReportFile)
	}
	switch recorded := r.record.upcoming() == job.FrameCheckpoint; {
	case recorded:
		r.outputs[name] = true
		return r.recallCheckpoint()
	case r.record.replaying() || r.plan.workspace == nil:
		return nil
	}
	if _, err := r.plan.workspace.WriteFile(name, []byte(text)); err != nil {
		r.emit(&job.Notice{Code: "report-not-written", Message: fmt.Sprintf("the report of the job could not be written: %v", err)})
		return nil
	}
	r.outputs[name] = true
	r.emit(&job.OutputData{Path: name, Bytes: int64(len(text))})
	return r.checkpoint("", r.turnNow())
}
