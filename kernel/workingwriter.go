package kernel

import (
	"fmt"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/compaction"
	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

const (
	// writerTries is how often one request to the writer is made that fails for a reason which may pass. It is less than
	// for a turn, since a step can do without.
	writerTries = 2
	// After maxOutages steps in a row without an answer of the writer it is asked in every outageSteps-th step only, so
	// that a job is not held up, and does not use up its requests, by a writer that is down.
	maxOutages  = 3
	outageSteps = 10
)

// writer is who rewrites the documents of an agent: a model of its own, or the agent's, which then does not think.
type writer struct {
	providerID string
	provider   llm.Provider
	model      llm.Model
	thinking   llm.Level
	// maxTokens bounds the document, 0 for the usual bound.
	maxTokens int64
	// prompt replaces the shared prompt, "" does not.
	prompt string
	// outages counts the steps in a row in which the writer could not be reached.
	outages int
}

// resolveWriter settles who writes the documents of an agent.
func (rt *Runtime) resolveWriter(a *agent, p *plan, problems *problem.List) {
	a.writer = &writer{providerID: a.spec.Model.Provider, provider: a.provider, model: a.model, thinking: llm.LevelOff}
	w := a.writer
	spec := *a.spec
	spec.Agent.Thinking, spec.Model.Thinking, spec.Sampling = "", "", job.Sampling{}
	chosen := &agent{spec: &spec, pointer: a.pointer, provider: a.provider, model: a.model}
	if config := a.spec.Loop.Writer; config != nil {
		w.prompt = config.Prompt
		if config.MaxTokens != nil {
			w.maxTokens = *config.MaxTokens
		}
		if ref := config.Model; ref != nil {
			if spec.Model = *ref; ref.Provider != a.spec.Model.Provider {
				chosen.provider = nil
			}
			rt.resolveModel(chosen, p, problems)
			w.providerID, w.provider, w.model, w.thinking = ref.Provider, chosen.provider, chosen.model, chosen.thinking
			return
		}
	}
	if a.provider != nil {
		chosen.chooseThinking(p)
		w.thinking = chosen.thinking
	}
}

// openWriter records by which rules the writer is asked, or takes over what is recorded of it.
func (t *thread) openWriter() *stop {
	own := *t.agent.writer
	t.agent.writer = &own // calls of one subagent do not share it
	w, j := &own, &t.run.record
	lists := &job.ListsFrame{Thread: t.id + "/writer", Provider: w.providerID, Model: w.model, Thinking: w.thinking, Tools: []llm.ToolSpec{},
		System: workingmemory.WriterInput{Prompt: w.prompt}.System()}
	if !j.replaying() {
		return j.put(job.FrameLists, lists)
	}
	var recorded job.ListsFrame
	if _, stopped := j.take(job.FrameLists, &recorded); stopped != nil {
		return stopped
	}
	if recorded.Thread != lists.Thread {
		return diverged("frame %d opens the dialog of %q, not of %q", j.taken.N, recorded.Thread, lists.Thread)
	}
	if j.copies {
		return j.put(job.FrameLists, lists)
	}
	w.model, w.thinking, w.prompt = recorded.Model, recorded.Thinking, recorded.System
	return nil
}

// rewrite has the document rewritten with the outcome of a step worked in, or folds the outcome in.
func (t *thread) rewrite(s *step) *stop {
	m := t.memory
	next, stopped := t.askWriter(s)
	if stopped != nil {
		return stopped
	}
	if s.Mode == workingmemory.ModeFallback {
		next = workingmemory.Fold(m.document, workingmemory.Folding{Step: s.N, Tool: s.Tool, Objective: s.Objective, Outcome: s.outcome,
			Status: s.Status}, m.limit)
	}
	s.count(t.ledger)
	s.Step = s.Rewritten(next, s.Mode)
	if stopped := t.logStep(&s.Step); stopped != nil {
		return stopped
	}
	document, err := workingmemory.Restore(s.Document, m.objective)
	if err != nil {
		return diverged("step %d: %v", s.N, err)
	}
	m.document = document
	if s.Mode == workingmemory.ModeFallback {
		m.fallbacks++
	}
	t.emit(&job.MemoryUpdatedData{Step: s.N, Mode: string(s.Mode), Why: s.Why, Document: s.Document, Hash: s.After})
	return t.ledger.overspent()
}

// askWriter asks for the next document, and once more if it cannot be used. It sets the mode of the step. A stop is for
// what ends the job; whatever ends the writer alone leaves the step to a fold.
func (t *thread) askWriter(s *step) (workingmemory.Document, *stop) {
	m, w := t.memory, t.memory.writer
	s.Mode = workingmemory.ModeFallback
	if w.outages >= maxOutages && s.N%outageSteps != 0 {
		s.Why = append(s.Why, fmt.Sprintf("the writer was not asked: it could not be reached in the last %d steps", w.outages))
		w.outages++
		return m.document, nil
	}
	in := workingmemory.WriterInput{Prompt: w.prompt, Document: m.document, Step: s.Step, Outcome: s.outcome, MaxSteps: t.agent.maxSteps(), Limit: m.limit}
	messages := []llm.Message{llm.UserText(in.Message())}
	for _, label := range []string{"writer", "writer-again"} {
		response, stopped := t.respondAsWriter(in, messages, label, s)
		s.Tries++
		if stopped != nil && stopped.code != job.CodeOutputLimit {
			if t.ended() != nil || stopped.leaves() || stopped.reason == job.ReasonBudget || stopped.code == job.CodeRequestLimit {
				return m.document, stopped
			}
			s.Why = append(s.Why, t.run.redact("the writer failed: "+stopped.message))
			w.outages++
			return m.document, nil
		}
		w.outages = 0
		answer := response.Message.Text()
		revision := revise(m, &response, stopped)
		if !t.again(len(revision.Problems) > 0) {
			s.Mode, s.LeftOut = workingmemory.ModeWriter, revision.Dropped
			return revision.Document, nil
		}
		for _, p := range revision.Problems {
			s.Why = append(s.Why, p.String())
		}
		if over := t.ledger.overspent(); over != nil {
			return m.document, over
		}
		messages = in.Retry(answer, revision.Problems)
	}
	return m.document, nil
}

// again reports whether the writer is asked once more: if its answer cannot be used, or if an earlier attempt asked, which
// may have had other limits or rules.
func (t *thread) again(unusable bool) bool {
	switch t.run.record.upcoming() {
	case job.FrameStep:
		return false
	case job.FrameMessage:
		return true
	}
	return unusable
}

// revise reads what the writer answered. ended is set if its answer ended at the output limit.
func revise(m *memory, response *llm.Response, ended *stop) workingmemory.Revision {
	var r workingmemory.Revision
	switch calls := response.Message.ToolCalls(); {
	case ended != nil:
		r.Problems.Add(workingmemory.CodeTooLong, "", "the document was not written to its end: %s", ended.message)
	case len(calls) > 0:
		r.Problems.Add(workingmemory.CodeToolMarker, "", "the answer calls the tool %q; the writer calls no tools", cut(calls[0].Name, 100))
	default:
		r = workingmemory.Revise(m.document, response.Message.Text(), m.limit)
	}
	return r
}

// respondAsWriter makes one request to the writer, in a dialog of its own.
func (t *thread) respondAsWriter(in workingmemory.WriterInput, messages []llm.Message, label string, s *step) (llm.Response, *stop) {
	w, spec := t.memory.writer, t.agent.spec
	opening := llm.Opening{Model: w.model, System: in.System(), Thinking: w.thinking,
		Tags: llm.Tags{JobID: t.run.jobID, AgentID: spec.Agent.ID, AgentVersion: spec.Agent.Version}}
	dialog, err := w.provider.Converse(opening)
	if err != nil {
		return llm.Response{}, stopf(job.ReasonError, job.CodeProviderRefused, "open the dialog of the writer: %v", err)
	}
	g := &gauge{window: w.model.ContextWindow}
	g.add(openingBytes(&opening))
	for _, m := range messages {
		if err := dialog.Append(m); err != nil {
			return llm.Response{}, stopf(job.ReasonError, job.CodeInternal, "the document cannot be sent: %v", err)
		}
		g.add(compaction.Bytes(m))
	}
	return t.respond(&exchange{dialog: dialog, model: &w.model, purpose: llm.PurposeWriter, label: fmt.Sprintf("%d.%s", t.turn, label),
		gauge: g, maxOutput: w.maxOutput(in.Limit), silent: true, patience: writerTries}, s.span)
}

// maxOutput is the longest answer to ask the writer for: room for a document that is too long, so that it can be told so.
// A model that thinks needs more than anybody can tell.
func (w *writer) maxOutput(limit int64) int64 {
	most := w.model.MaxOutputTokens
	if wanted := 2*limit + 1024; w.thinking == llm.LevelOff && (most == 0 || wanted < most) {
		return wanted
	}
	return most
}
