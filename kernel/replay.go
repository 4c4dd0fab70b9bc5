package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// ReplayReport is what a replay of a journal found.
type ReplayReport struct {
	JobID string `json:"jobId"`
	// Runtime is the version of the runtime that wrote the journal.
	Runtime string `json:"runtime"`
	// Requests are all requests of the journal in order.
	Requests []ReplayedRequest `json:"requests"`
	// Ended says that the journal holds the end of the job, and that the replay came to it.
	Ended bool `json:"ended"`
	// Differs counts the requests that are not the recorded ones.
	Differs int `json:"differs"`
}

// ReplayedRequest compares a request as it was recorded with the same request made again.
type ReplayedRequest struct {
	Thread   string         `json:"thread,omitempty"`
	Turn     int64          `json:"turn"`
	Try      int64          `json:"try"`
	Purpose  llm.Purpose    `json:"purpose"`
	Recorded job.RequestTag `json:"recorded"`
	Made     job.RequestTag `json:"made"`
	// Body is the body that was made, for a request that differs.
	Body []byte `json:"-"`
}

// Equal reports whether method, path and body are the recorded ones.
func (q *ReplayedRequest) Equal() bool { return q.Recorded == q.Made }

// errReplayed is the stop of a replay whose journal has no more frames.
var errReplayed = &stop{reason: job.ReasonAborted, code: job.CodeAborted, message: "the journal ends here"}

func (r *ReplayReport) add(frame *job.MessageFrame, request llm.Request) {
	q := ReplayedRequest{Thread: frame.Thread, Turn: frame.Turn, Try: frame.Try, Purpose: frame.Purpose, Recorded: frame.Request, Made: tagOf(request)}
	if !q.Equal() {
		r.Differs++
		for _, piece := range request.Body {
			q.Body = append(q.Body, piece...)
		}
	}
	r.Requests = append(r.Requests, q)
}

// Replay runs a recorded job again up to the end of its journal, with the answers of models and tools from the journal, and
// compares every request with the recorded one. It needs no workspace, no credentials and no network, makes no request and
// writes nothing. The error says why the journal cannot be replayed; the report then holds what was compared until there.
func (rt *Runtime) Replay(ctx context.Context, frames iter.Seq2[[]byte, error]) (*ReplayReport, error) {
	report := &ReplayReport{Requests: []ReplayedRequest{}}
	r := newRun(ctx, rt, &job.Spec{}, &plan{})
	r.replay = report
	r.mute()
	defer r.cancel(nil)
	defer r.detach()
	defer r.record.close()
	if stopped := r.record.open(frames); stopped != nil {
		return report, stopped
	}
	var recorded job.SpecFrame
	if !r.record.replaying() {
		return report, errors.New("replay: the journal is empty")
	}
	if _, stopped := r.record.take(job.FrameSpec, &recorded); stopped != nil {
		return report, stopped
	}
	report.JobID, report.Runtime = recorded.JobID, recorded.Runtime
	if err := r.planReplay(&recorded); err != nil {
		return report, err
	}
	r.record.live = r.goLive
	end, stopped := r.guardedReplay()
	if stopped == errReplayed {
		return report, nil
	}
	if stopped != nil && stopped.leaves() {
		return report, fmt.Errorf("replay: %w", stopped)
	}
	return report, r.endReplay(end, stopped)
}

// planReplay resolves the recorded spec as far as a replay needs it: what is not on this machine is not needed.
func (r *run) planReplay(recorded *job.SpecFrame) error {
	spec := &job.Spec{}
	if err := json.Unmarshal(recorded.Spec, spec); err != nil {
		return fmt.Errorf("replay: read the recorded spec: %w", err)
	}
	spec.Providers = maps.Clone(spec.Providers)
	for id, p := range spec.Providers {
		p.Headers, p.TagHeaders = nil, nil
		spec.Providers[id] = p
	}
	r.spec, r.jobID = spec, recorded.JobID
	r.plan.id = recorded.JobID
	var problems problem.List
	r.plan.agent = r.rt.resolve(spec, r.plan, &problems)
	if r.plan.agent.provider == nil {
		return fmt.Errorf("replay: %w", problems.Err("open the provider"))
	}
	return nil
}

// guardedReplay runs the loop and turns a panic of it into an error.
func (r *run) guardedReplay() (end endOfLoop, stopped *stop) {
	defer func() {
		if fault := recover(); fault != nil {
			stopped = diverged("internal fault: %v", fault)
		}
	}()
	r.root = r.startSpan(nil, job.SpanJob, nil)
	return r.work()
}

// recordedEnd is the stop that ended the recorded job here from outside, such as an abort or the end of its time; nil if it
// went on.
func (j *record) recordedEnd() *stop {
	var frame job.OutcomeFrame
	if !j.peek(job.FrameOutcome, &frame) || frame.Failed == nil {
		return nil
	}
	return &stop{reason: frame.Failed.Reason, code: frame.Failed.Code, message: frame.Failed.Message}
}

// endReplay compares how the job ended with how it had ended.
func (r *run) endReplay(end endOfLoop, stopped *stop) error {
	var recorded job.OutcomeFrame
	if _, lost := r.record.take(job.FrameOutcome, &recorded); lost != nil && lost != errReplayed {
		return fmt.Errorf("replay: %w", lost)
	}
	switch {
	case recorded.Completed == nil && recorded.Failed == nil:
		return errors.New("replay: the job ended although its journal does not")
	case stopped == nil && (recorded.Completed == nil || recorded.Completed.Answer != end.answer),
		stopped != nil && (recorded.Failed == nil || recorded.Failed.Code != stopped.code):
		return fmt.Errorf("replay: the job ended in another way than its journal says (%s)", describeEnd(&recorded, stopped))
	}
	r.replay.Ended = true
	return nil
}

// describeEnd says how a job had ended and how it ended now.
func describeEnd(recorded *job.OutcomeFrame, stopped *stop) string {
	was, is := "completed", "completed"
	if recorded.Failed != nil {
		was = string(recorded.Failed.Reason) + " " + recorded.Failed.Code
	}
	if stopped != nil {
		is = string(stopped.reason) + " " + stopped.code
	}
	return was + ", now " + is
}
