package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// What is recorded of requests to models, and taken from the record again.

// tagOf identifies the bytes of a request.
func tagOf(request llm.Request) job.RequestTag {
	sum, bytes := sha256.New(), int64(0)
	for _, piece := range request.Body {
		sum.Write(piece)
		bytes += int64(len(piece))
	}
	return job.RequestTag{Method: request.Method, Path: request.Path, Bytes: bytes, SHA256: hex.EncodeToString(sum.Sum(nil))}
}

// recordRequest stores the end of a request.
func (t *thread) recordRequest(ex *exchange, try int64, call llm.Call, m *made) *stop {
	j := &t.run.record
	if j.journal == nil {
		return nil
	}
	request, err := ex.dialog.Request(call)
	if err != nil {
		request = llm.Request{} // it could not be built, which is what m says
	}
	frame := job.MessageFrame{Thread: t.id, Turn: t.turn, Try: try, Purpose: ex.purpose, Request: tagOf(request), Response: m.response,
		Received: m.received, StartUnixNano: m.start.UnixNano(), DurationMS: milliseconds(m.took)}
	if f := m.fault; f != nil {
		frame.Fault = &job.Fault{Class: f.class, Retryable: f.retryable, Empty: f.empty, WaitMS: f.wait.Milliseconds(),
			Reason: f.end.reason, Code: f.end.code, Message: f.end.message, Details: f.end.encodedDetails()}
	}
	return j.put(job.FrameMessage, &frame)
}

// recallRequest returns the recorded end of a request, nil if the run is live.
func (t *thread) recallRequest(ex *exchange, try int64, call llm.Call) (*made, *stop) {
	j := &t.run.record
	if !j.replaying() {
		return nil, nil
	}
	var frame job.MessageFrame
	if _, stopped := j.take(job.FrameMessage, &frame); stopped != nil {
		return nil, stopped
	}
	if frame.Thread != t.id || frame.Turn != t.turn || frame.Try != try || frame.Purpose != ex.purpose {
		return nil, diverged("frame %d records try %d of turn %d for %q, not try %d of turn %d for %q", j.taken.N, frame.Try, frame.Turn,
			frame.Purpose, try, t.turn, ex.purpose)
	}
	if stopped := t.compare(ex, call, &frame); stopped != nil {
		return nil, stopped
	}
	if skipper, ok := ex.dialog.(llm.Skipper); ok && t.run.replay == nil {
		if err := skipper.Skip(t.ctx, call); err != nil {
			return nil, diverged("%v", err)
		}
	}
	m := &made{response: frame.Response, start: time.Unix(0, frame.StartUnixNano), received: frame.Received,
		took: time.Duration(frame.DurationMS * float64(time.Millisecond))}
	if f := frame.Fault; f != nil {
		m.fault = &fault{class: f.Class, retryable: f.Retryable, empty: f.Empty, wait: time.Duration(f.WaitMS) * time.Millisecond,
			end: &stop{reason: f.Reason, code: f.Code, message: f.Message, details: decodedDetails(f.Details)}}
		m.emitted = !ex.silent && frame.Response.Message.Text() != ""
	}
	return m, nil
}

// compare tells a replay whether the request is the recorded one.
func (t *thread) compare(ex *exchange, call llm.Call, frame *job.MessageFrame) *stop {
	if t.run.replay == nil || frame.Request == (job.RequestTag{}) { // the latter was another job's
		return nil
	}
	request, err := ex.dialog.Request(call)
	if err != nil && frame.Request.SHA256 != tagOf(llm.Request{}).SHA256 {
		return diverged("the request of turn %d cannot be built: %v", t.turn, err)
	}
	t.run.replay.add(frame, request)
	return nil
}

func (s *stop) encodedDetails() json.RawMessage {
	if len(s.details) == 0 {
		return nil
	}
	encoded, err := json.Marshal(s.details)
	if err != nil {
		return nil
	}
	return encoded
}

func decodedDetails(raw json.RawMessage) map[string]any {
	var details map[string]any
	if len(raw) == 0 || json.Unmarshal(raw, &details) != nil {
		return nil
	}
	return details
}

// openThread gives a thread its dialog: the one that is open already, the one that is recorded, or one with what holds now.
// A fork passes the recorded one and has its own.
func (t *thread) openThread(o *opened) *stop {
	r := t.run
	if o != nil {
		t.begin(o)
		return r.record.put(job.FrameLists, o.lists)
	}
	var recorded job.ListsFrame
	recalled, stopped := r.record.take(job.FrameLists, &recorded)
	switch {
	case stopped != nil:
		return stopped
	case recalled && recorded.Thread != t.id:
		return diverged("frame %d opens the dialog of call %q, not of %q", r.record.taken.N, recorded.Thread, t.id)
	case recalled && !r.record.copies:
		t.agent.model, t.agent.thinking = recorded.Model, recorded.Thinking
		return t.dialogOf(&recorded)
	}
	lists := r.rt.lists(r.plan, t.agent)
	lists.Thread = t.id
	if stopped := t.dialogOf(lists); stopped != nil {
		return stopped
	}
	return r.record.put(job.FrameLists, lists)
}

// dialogOf opens the dialog of what is offered.
func (t *thread) dialogOf(lists *job.ListsFrame) *stop {
	var problems problem.List
	o := t.run.rt.open(t.run.plan, t.agent, lists, &problems)
	if len(problems) > 0 {
		return stopf(job.ReasonError, job.CodeProviderRefused, "%v", problems.Err("open the dialog"))
	}
	t.begin(o)
	return nil
}

// rest ends the attempt here if it has to end; otherwise it returns the stop of a thread that may not go on, nil if it may.
// It is called where nothing is in flight.
func (t *thread) rest() *stop {
	j := &t.run.record
	for j.upcoming() == job.FrameSuspended {
		var frame job.SuspendedFrame
		if _, stopped := j.take(job.FrameSuspended, &frame); stopped != nil {
			return stopped
		}
	}
	if j.copies && !j.replaying() && t.run.quiet {
		if stopped := t.run.goLive(); stopped != nil {
			return stopped
		}
	}
	if ended := t.ended(); ended != nil {
		return ended
	}
	if j.journal != nil && !j.replaying() && t.run.detaching.Err() != nil {
		return t.run.suspend(nil)
	}
	return nil
}
