package kernel

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/compaction"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// maxSummaryTries is how often a part of a summary is asked for that comes back unusable.
const maxSummaryTries = 2

// Kinds of a compaction, as they are reported.
const (
	kindPrune   = "prune"
	kindSummary = "summary"
	// kindOmission left old messages out, as no summary of them could be had.
	kindOmission = "omission"
)

// shortening is what a thread remembers of making its dialog shorter.
type shortening struct {
	state compaction.State
	// window is what the provider was seen to take if that is less than the table says, 0 if not.
	window int64
	// notBefore is the size of the prompt below which the threshold is not acted on: a try has failed.
	notBefore int64
	// recovered says that the dialog was made shorter after an overflow and no good response has come since.
	recovered bool
	// requests counts the requests for summaries in turn.
	turn, requests int64
	files          touched
}

// touched are the files that the calls of a thread have read and written. Scripts read from several goroutines.
type touched struct {
	mu            sync.Mutex
	read, changed map[string]bool
}

// ask makes the request of a turn. A dialog that is too long for the model is made shorter first. If the provider finds it
// too long all the same, that is done once more, and the request is made again; never as it was.
func (t *thread) ask(parent *span) (llm.Response, *stop) {
	if stopped := t.keepShort(parent); stopped != nil {
		return llm.Response{}, stopped
	}
	ex := t.own()
	for {
		response, stopped := t.respond(ex, parent)
		switch {
		case stopped == nil:
			t.short.recovered = false
			return response, nil
		case stopped.reason != job.ReasonContextOverflow:
			return response, stopped
		case t.short.recovered:
			stopped.message += "; it had been made shorter before"
			return response, stopped
		}
		t.short.recovered = true
		if stopped := t.recover(stopped, parent); stopped != nil {
			return llm.Response{}, stopped
		}
		ex.dialog = t.dialog
	}
}

// keepShort makes the dialog shorter if the next request would leave too little of the window. A failure is no reason to
// stop: the request may do.
func (t *thread) keepShort(parent *span) *stop {
	settings := compaction.SettingsFor(t.window())
	if !settings.Due(t.gauge.prompt) || t.gauge.prompt < t.short.notBefore {
		return nil
	}
	stopped, failure := t.compact(settings, t.gauge.prompt, compaction.ReasonThreshold, parent)
	if failure == nil || stopped != nil {
		return stopped
	}
	t.short.notBefore = t.gauge.prompt + settings.Window/16
	t.emit(&job.Notice{Code: "compaction-failed", Message: t.run.redact(fmt.Sprintf(
		"what the model is told has about %d tokens and could not be made shorter: %v; the job goes on with all of it", t.gauge.prompt, failure))})
	return nil
}

// recover makes the dialog shorter after an overflow, or returns how the job ends.
func (t *thread) recover(overflowed *stop, parent *span) *stop {
	settings, prompt, reason := compaction.SettingsFor(t.window()), t.gauge.prompt, compaction.ReasonLength
	if overflowed.details[detailCut] == nil {
		reason = compaction.ReasonOverflow
		settings, prompt = compaction.AfterOverflow(t.window(), prompt)
		if settings.Window != t.window() {
			t.short.window = settings.Window
		}
	}
	stopped, failure := t.compact(settings, prompt, reason, parent)
	if failure == nil || stopped != nil {
		return stopped
	}
	overflowed.message += fmt.Sprintf("; it could not be made shorter: %v", failure)
	return overflowed
}

// window is how much the model takes, as far as it is known.
func (t *thread) window() int64 {
	if t.short.window > 0 {
		return t.short.window
	}
	return t.gauge.window
}

// compact puts a shorter dialog in the place of the thread's and reports it. The failure says why the dialog stays as it
// is; a stop is for what ends the job or the attempt.
func (t *thread) compact(settings compaction.Settings, prompt int64, reason compaction.Reason, parent *span) (stopped *stop, failure error) {
	sp := t.run.startSpan(parent, job.SpanCompaction, map[string]any{"turn": t.turn, "reason": string(reason), "tokensBefore": prompt})
	data := job.CompactionData{Turn: t.turn, Reason: string(reason), TokensBefore: prompt}
	defer func() {
		sp.end(failure == nil && stopped == nil, map[string]any{"tokensAfter": data.TokensAfter, "messages": data.Messages})
	}()
	read, changed := t.short.files.lists()
	plan := compaction.New(compaction.Input{
		Dialog:   compaction.Dialog{Messages: t.messages, State: t.short.state},
		Settings: settings, Reason: reason, Prompt: prompt, FixedBytes: openingBytes(&t.opening),
		Offered: t.agent.tools.Names(), Read: read, Changed: changed,
	})
	start := time.Now()
	result, kind, stopped, failure := t.shorten(plan, reason, sp)
	if stopped == nil && t.run.record.upcoming() == job.FrameCompaction {
		return t.recallCompaction(&data), nil
	}
	if failure != nil || stopped != nil {
		data.TokensAfter = prompt
		return stopped, failure
	}
	data.Kind, data.TokensAfter, data.DurationMS = kind, result.After, milliseconds(time.Since(start))
	data.Messages = int64(result.Summarised)
	if kind == kindPrune {
		data.Messages = int64(result.Pruned + result.Shortened)
	}
	return t.recordCompaction(&data, result.Dialog), nil
}

// shorten computes the shorter dialog, with requests for a summary if it takes one.
func (t *thread) shorten(plan *compaction.Plan, reason compaction.Reason, parent *span) (result compaction.Result, kind string, stopped *stop, failure error) {
	result, enough := plan.Prune()
	if enough {
		return result, kindPrune, nil, nil
	}
	kind = kindPrune
	summary := ""
	if s := plan.Summarise(); s != nil {
		kind = kindSummary
		stopped, failure = t.summarise(s, parent)
		switch {
		case stopped != nil, failure != nil && !t.tooLong(reason):
			return compaction.Result{}, kind, stopped, failure
		case failure != nil:
			kind, summary = kindOmission, plan.Omission()
			t.emit(&job.Notice{Code: "compaction-failed", Message: t.run.redact(fmt.Sprintf(
				"what the model is told no longer fits its window, and no summary could be had: %v; earlier messages were left out", failure))})
		default:
			summary = s.Summary()
		}
	}
	result, failure = plan.Finish(summary)
	return result, kind, nil, failure
}

// tooLong reports whether the dialog no longer fits the window although no server has said so: some cut what they are sent
// in silence, and the beginning goes first. Where an earlier attempt is recorded, what it did counts.
func (t *thread) tooLong(reason compaction.Reason) bool {
	if j := &t.run.record; j.replaying() && j.upcoming() != job.FrameCompaction {
		return false
	}
	return reason == compaction.ReasonThreshold && t.window() > 0 && t.gauge.prompt > t.window()
}

// summarise asks for a summary, part by part. A part whose answer is no summary is asked for once more, and one whose
// request is too long becomes smaller.
func (t *thread) summarise(s *compaction.Summariser, parent *span) (stopped *stop, failure error) {
	unusable := 0
	for !s.Done() {
		response, stopped := t.askSummary(s.Request(), parent)
		switch {
		case stopped == nil:
			if failure = s.Take(response); failure == nil {
				unusable = 0
			} else if unusable++; unusable == maxSummaryTries {
				return nil, failure
			}
		case stopped.ends():
			return stopped, nil
		case stopped.reason != job.ReasonContextOverflow || !s.Narrow():
			return nil, fmt.Errorf("the summary failed: %w", stopped)
		}
	}
	return nil, nil
}

// ends reports whether a stop of the summariser's request is one of the thread: a limit, or an abort. What is wrong with
// the request itself is a failure of the summary only.
func (s *stop) ends() bool {
	return s.leaves() || s.reason == job.ReasonAborted || s.reason == job.ReasonBudget || s.code == job.CodeTimeout || s.code == job.CodeRequestLimit
}

// askSummary makes one request of a summary, in a dialog of its own.
func (t *thread) askSummary(request compaction.Request, parent *span) (llm.Response, *stop) {
	dialog, err := t.agent.provider.Converse(llm.Opening{Model: t.opening.Model, System: request.System, Thinking: t.opening.Thinking,
		Temperature: t.opening.Temperature, Tags: t.opening.Tags})
	if err == nil {
		err = dialog.Append(request.Message)
	}
	if err != nil {
		return llm.Response{}, stopf(job.ReasonError, job.CodeInternal, "the request cannot be made: %v", err)
	}
	if t.short.turn != t.turn {
		t.short.turn, t.short.requests = t.turn, 0
	}
	t.short.requests++
	return t.respond(&exchange{dialog: dialog, model: &t.opening.Model, purpose: llm.PurposeCompaction,
		label:     fmt.Sprintf("%d.c%d", t.turn, t.short.requests),
		gauge:     &gauge{window: t.window(), prompt: llm.EstimateTokens(request.Bytes())},
		maxOutput: t.opening.Model.MaxOutputTokens, silent: true}, parent)
}

// recordCompaction records a shorter dialog and goes on with it.
func (t *thread) recordCompaction(data *job.CompactionData, d compaction.Dialog) *stop {
	state, err := json.Marshal(d.State)
	if err != nil {
		return stopf(job.ReasonError, job.CodeInternal, "the compaction cannot be recorded: %v", err)
	}
	frame := job.CompactionFrame{Thread: t.id, CompactionData: *data, Replaced: d.Messages, State: state}
	if stopped := t.run.record.put(job.FrameCompaction, &frame); stopped != nil {
		return stopped
	}
	return t.exchangeDialog(data, d)
}

// recallCompaction goes on with the shorter dialog that an earlier attempt recorded: what this version would make of the
// same dialog does not matter.
func (t *thread) recallCompaction(data *job.CompactionData) *stop {
	j := &t.run.record
	var frame job.CompactionFrame
	if _, stopped := j.take(job.FrameCompaction, &frame); stopped != nil {
		return stopped
	}
	d := compaction.Dialog{Messages: frame.Replaced}
	if frame.Thread != t.id || frame.Turn != t.turn {
		return diverged("frame %d records the compaction of turn %d of %q, not of turn %d of %q", j.taken.N, frame.Turn, frame.Thread, t.turn, t.id)
	}
	if err := json.Unmarshal(frame.State, &d.State); err != nil {
		return diverged("frame %d: %v", j.taken.N, err)
	}
	*data = frame.CompactionData
	return t.exchangeDialog(data, d)
}

// exchangeDialog puts d in the place of the thread's dialog. What the provider counted for the old one says nothing about
// the new one. The loop guard keeps what it has seen.
func (t *thread) exchangeDialog(data *job.CompactionData, d compaction.Dialog) *stop {
	dialog, err := t.agent.provider.Converse(t.opening)
	for i := 0; err == nil && i < len(d.Messages); i++ {
		err = dialog.Append(d.Messages[i])
	}
	if err != nil {
		return stopf(job.ReasonError, job.CodeInternal, "the conversation cannot go on after it was made shorter: %v", err)
	}
	t.dialog, t.messages, t.short.state = dialog, d.Messages, d.State
	t.gauge.prompt, t.short.notBefore = data.TokensAfter, 0
	t.ledger.compaction()
	t.emit(data)
	return nil
}

// note remembers the files that a result names.
func (f *touched) note(result *tool.Result) {
	if len(result.Reads)+len(result.Outputs) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read == nil {
		f.read, f.changed = make(map[string]bool), make(map[string]bool)
	}
	for _, r := range result.Reads {
		f.read[r.Path] = true
	}
	for _, o := range result.Outputs {
		f.changed[o.Path] = true
	}
}

// noteRead remembers paths that were read.
func (f *touched) noteRead(paths []string) {
	for _, path := range paths {
		f.note(&tool.Result{Reads: []tool.SourceRead{{Path: path}}})
	}
}

// lists returns the files in order.
func (f *touched) lists() (read, changed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.read)), slices.Sorted(maps.Keys(f.changed))
}
