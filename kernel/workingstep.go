package kernel

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
)

// What is recorded and reported of a step: once when its call has answered, and again when the document has been rewritten.

// describe records which call the step made.
func (s *step) describe(c *call) {
	s.call, s.CallID, s.Tool, s.Arguments, s.Kind = c, c.ID, c.Name, c.arguments, workingmemory.KindFunction
	if len(s.Arguments) == 0 {
		s.Arguments, _ = json.Marshal(c.RawArguments) // a string always has a JSON form
	}
	switch {
	case c.agent != nil:
		s.Kind = workingmemory.KindSubagent
	case c.Name == workingmemory.RecallTool:
		s.Kind = workingmemory.KindRecall
	case c.Name == workingmemory.FinishTool:
		s.Kind = workingmemory.KindFinish
	case strings.HasPrefix(c.Name, "mcp__"):
		s.Kind = workingmemory.KindMCP
	}
}

// recordStep records a step before the document is rewritten, or takes over what is recorded of it.
func (t *thread) recordStep(s *step) *stop {
	s.Output = workingmemory.OutputOf(s.outcome)
	s.DurationMS = time.Since(s.StartedAt).Milliseconds()
	s.count(t.ledger)
	if stopped := t.logStep(&s.Step); stopped != nil {
		return stopped
	}
	t.memory.past = append(t.memory.past, pastStep{s.Step, s.outcome})
	return nil
}

// count books what the thread has used since the step began.
func (s *step) count(l *ledger) {
	now, was := l.total.Tokens, s.before.Tokens
	s.Usage = llm.Usage{Input: now.Input - was.Input, CacheRead: now.CacheRead - was.CacheRead, CacheWrite: now.CacheWrite - was.CacheWrite,
		Output: now.Output - was.Output, Reasoning: now.Reasoning - was.Reasoning, CacheWrite1h: now.CacheWrite1h - was.CacheWrite1h}
	s.CostMicroUSD = l.total.CostMicroUSD - s.before.CostMicroUSD
}

// logStep stores a record of a step; a stored one takes its place.
func (t *thread) logStep(s *workingmemory.Step) *stop {
	j := &t.run.record
	if !j.replaying() {
		encoded, err := json.Marshal(s)
		if err != nil {
			return stopf(job.ReasonError, job.CodeJournalFailed, "step %d cannot be recorded: %v", s.N, err)
		}
		return j.put(job.FrameStep, &job.StepFrame{Thread: t.id, Step: encoded})
	}
	var frame job.StepFrame
	if _, stopped := j.take(job.FrameStep, &frame); stopped != nil {
		return stopped
	}
	recorded, err := workingmemory.ParseStep(frame.Step)
	switch {
	case err != nil:
		return diverged("frame %d: %v", j.taken.N, err)
	case frame.Thread != t.id || recorded.N != s.N || recorded.Settled() != s.Settled() || recorded.Before != s.Before:
		return diverged("frame %d records step %d of call %q on another document, not step %d of call %q", j.taken.N, recorded.N, frame.Thread, s.N, t.id)
	}
	*s = recorded
	return nil
}

// tellStep reports a step. A finish is told when a judge has let it pass: the answer of one that may not stand is in no event.
func (t *thread) tellStep(s *step) *stop {
	if s.Kind == workingmemory.KindFinish {
		if stopped := t.tellFinish(s); stopped != nil {
			return stopped
		}
	}
	t.emit(&job.StepRecordedData{Step: s.N, CallID: s.CallID, Objective: s.Objective, Tool: s.Tool, Status: string(s.Status),
		Bytes: s.Output.Bytes, Hash: s.Output.SHA256})
	return nil
}
