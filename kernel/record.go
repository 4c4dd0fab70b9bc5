package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// record is the journal of a run. What the run takes from outside goes through it: while frames of earlier attempts are
// left, each is taken in the place where it was written, and nothing is asked, run or reported; from then on the run is
// live and its frames are stored. Without a journal it is live from the start and stores nothing.
//
// The run asks for the frames in the order in which it would write them, so a frame of another kind means that the
// journal is not one of this job. It belongs to the run's goroutine.
type record struct {
	events  *emitter
	journal job.Journal
	// next and done read the earlier frames; head is the first that was not taken, nil when the run is live.
	next func() ([]byte, error, bool)
	done func()
	head *job.Frame
	// taken is the last frame that was taken, n the number of the last frame of the journal.
	taken job.Frame
	n     int64
	// copies says that the frames are another job's, and are stored again as this one's.
	copies bool
	// live is called when the last earlier frame has been taken.
	live func() *stop
	// stored tells when the newest frame is stored, nil if there is nothing to wait for.
	stored <-chan error
	failed *stop
	// before is how long earlier attempts ran, began when this one did.
	before time.Duration
	began  time.Time
}

// diverged is the stop of a job whose journal does not fit.
func diverged(format string, args ...any) *stop {
	return stopf(job.ReasonError, job.CodeJournalDiverged, "the journal cannot be gone on with: "+format, args...)
}

// open reads the first of the earlier frames.
func (j *record) open(frames iter.Seq2[[]byte, error]) *stop {
	j.next, j.done = iter.Pull2(frames)
	return j.advance()
}

// close ends the reading.
func (j *record) close() {
	if j.done != nil {
		j.done()
	}
}

// replaying reports whether earlier frames are left.
func (j *record) replaying() bool { return j.head != nil }

// peek decodes the next earlier frame without taking it, and reports whether it is of this type.
func (j *record) peek(kind job.FrameType, data any) bool {
	return j.upcoming() == kind && json.Unmarshal(j.head.Data, data) == nil
}

// upcoming is the type of the next earlier frame, "" if the run is live.
func (j *record) upcoming() job.FrameType {
	if j.head == nil {
		return ""
	}
	return j.head.Type
}

// advance makes the next earlier frame the head.
func (j *record) advance() *stop {
	line, err, ok := j.next()
	if !ok {
		j.head = nil
		return nil
	}
	if err != nil {
		return diverged("%v", err)
	}
	f, err := job.ParseFrame(line)
	if err != nil {
		return diverged("%v", err)
	}
	if last := max(j.n, j.taken.N); !j.copies && f.N != last+1 {
		return diverged("frame %d follows frame %d", f.N, last)
	}
	j.head = &f
	return nil
}

// take returns the next earlier frame, decoded into data, and reports whether there was one. A frame of another type than
// kind is a stop.
func (j *record) take(kind job.FrameType, data any) (bool, *stop) {
	if j.head == nil {
		return false, nil
	}
	f := j.head
	if f.Type != kind {
		return false, diverged("frame %d is of type %q where %q is expected", f.N, f.Type, kind)
	}
	if err := json.Unmarshal(f.Data, data); err != nil {
		return false, diverged("frame %d: %v", f.N, err)
	}
	j.taken = *f
	if !j.copies {
		j.n = f.N
		j.before = time.Duration(f.ActiveMS) * time.Millisecond
	} else if stopped := j.copy(f); stopped != nil {
		return false, stopped
	}
	if stopped := j.advance(); stopped != nil {
		return false, stopped
	}
	if j.head == nil && j.live != nil && !j.copies { // what was copied ends with a turn: see rest
		return true, j.live()
	}
	return true, nil
}

// copy stores a frame of another job as one of this one. What that job was asked and offered is its own, and so are the
// bytes of its requests.
func (j *record) copy(f *job.Frame) *stop {
	data := f.Data
	switch f.Type {
	case job.FrameSpec, job.FrameLists:
		return nil
	case job.FrameMessage:
		var m job.MessageFrame
		if err := json.Unmarshal(data, &m); err != nil {
			return diverged("frame %d: %v", f.N, err)
		}
		m.Request = job.RequestTag{}
		return j.put(f.Type, &m)
	}
	return j.store(f.Type, data)
}

// active is how long the job has run, over all attempts.
func (j *record) active() time.Duration {
	if j.began.IsZero() {
		return j.before
	}
	return j.before + time.Since(j.began)
}

// log stores a frame that the run has made by itself; an earlier attempt has stored it if frames are left.
func (j *record) log(kind job.FrameType, data any) *stop {
	if j.head == nil {
		return j.put(kind, data)
	}
	var recorded json.RawMessage
	_, stopped := j.take(kind, &recorded)
	return stopped
}

// put stores a frame of the live run.
func (j *record) put(kind job.FrameType, data any) *stop {
	if j.journal == nil {
		return nil
	}
	encoded, err := encode(data)
	if err != nil {
		return stopf(job.ReasonError, job.CodeJournalFailed, "the journal frame %q cannot be written: %v", kind, err)
	}
	return j.store(kind, encoded)
}

// encode writes JSON on one line and leaves what is JSON already as it is, but for white space: a request that is made
// again from the journal must have the bytes of the first one.
func encode(data any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// compact takes the white space out of the arguments of a response's calls, as the journal does.
func (j *record) compact(response *llm.Response) {
	if j.journal == nil {
		return
	}
	for _, c := range response.Message.ToolCalls() {
		var b bytes.Buffer
		if len(c.Arguments) > 0 && json.Compact(&b, c.Arguments) == nil {
			c.Arguments = b.Bytes()
		}
	}
}

func (j *record) store(kind job.FrameType, data json.RawMessage) *stop {
	if j.failed != nil {
		return j.failed
	}
	j.n++
	line, err := encode(job.Frame{V: job.FrameVersion, N: j.n, Seq: j.events.last(), ActiveMS: j.active().Milliseconds(),
		Type: kind, Data: data})
	if err == nil {
		j.stored, err = j.journal.Append(line)
	}
	if err != nil {
		j.failed = stopf(job.ReasonError, job.CodeJournalFailed, "the journal cannot be written: %v", err)
	}
	return j.failed
}

// settle waits until every frame so far is stored. It does not end with the job, since what has happened must be known
// before its end is told.
func (j *record) settle() *stop {
	if j.failed != nil || j.stored == nil {
		return j.failed
	}
	if err := <-j.stored; err != nil {
		j.failed = stopf(job.ReasonError, job.CodeJournalFailed, "the journal cannot be written: %v", err)
	}
	j.stored = nil
	return j.failed
}

// errDetached is the cause of what is given up because the attempt has to end.
var errDetached = errors.New("the attempt has to end")

// startRecord opens the journal of a run that is resumed and checks that it is the journal of this job.
func (r *run) startRecord() *stop {
	j := &r.record
	j.events, j.journal = r.emitter, r.ports.Journal
	resume := r.spec.Resume
	if resume == nil || j.journal == nil {
		j.began = time.Now()
		return nil
	}
	j.copies = resume.Fork
	if stopped := j.open(j.journal.Earlier()); stopped != nil {
		return stopped
	}
	if !j.copies {
		r.mute()
		r.quiet = true
	}
	if j.head == nil { // the attempt before ended before it had recorded anything
		return r.goLive()
	}
	var spec job.SpecFrame
	if _, stopped := j.take(job.FrameSpec, &spec); stopped != nil {
		return stopped
	}
	if digest := r.spec.Digest(); !j.copies && spec.Digest != digest {
		return diverged("it was written for another spec (digest %.12s, not %.12s); only resume and credentials may differ between attempts",
			spec.Digest, digest)
	}
	r.told = spec.Notices
	return nil
}

// recordSpec records what the job was asked for.
func (r *run) recordSpec() *stop {
	j := &r.record
	if j.copies && j.replaying() {
		r.mute()
		r.quiet = true
	}
	j.live = r.goLive
	switch {
	case j.journal == nil:
		return nil
	case j.taken.N > 0 && !j.copies && !j.replaying():
		return r.goLive()
	case j.taken.N > 0 && !j.copies:
		return nil
	}
	bare, err := json.Marshal(r.spec.Bare())
	if err != nil {
		return stopf(job.ReasonError, job.CodeJournalFailed, "the spec cannot be written to the journal: %v", err)
	}
	return j.put(job.FrameSpec, &job.SpecFrame{Runtime: r.rt.config.Version, JobID: r.jobID, Digest: r.spec.Digest(), Spec: bare,
		Notices: r.plan.notices})
}

// goLive begins to report: what was recorded has been taken.
func (r *run) goLive() *stop {
	if r.replay != nil {
		return errReplayed
	}
	j := &r.record
	j.began = time.Now()
	if left := seconds(r.spec.Limits.TimeoutSec) - j.before; left > 0 {
		r.limit.Reset(left)
	} else {
		r.timeUp() // at once: a timer would let the run go on for a moment
	}
	r.speakUp()
	return nil
}

// speakUp ends the silence of a run that has taken what earlier attempts recorded, or that cannot go on doing so.
func (r *run) speakUp() {
	if !r.quiet {
		return
	}
	r.quiet = false
	j, resume := &r.record, r.spec.Resume
	if j.copies {
		r.unmute(r.last())
		r.emit(&job.Notice{Code: "forked", Message: fmt.Sprintf("the job goes on from turn %d of another one", r.turnNow())})
		return
	}
	void := j.taken.Seq + 1
	if j.taken.Type == job.FrameSuspended {
		void = resume.NextSeq
	}
	r.unmute(resume.NextSeq - 1)
	r.emit(&job.ResumedData{Attempt: resume.Attempt, Turn: r.turnNow(), VoidFromSeq: void})
	for i, n := range r.plan.notices {
		if j.taken.N > 0 && !slices.Contains(r.told, n) {
			r.emit(&r.plan.notices[i])
		}
	}
}

// turnNow is the turn of the job's agent.
func (r *run) turnNow() int64 {
	if r.top == nil {
		return 0
	}
	return r.top.turn
}

// onDetach calls f if the attempt has to end, until the returned function is called.
func (r *run) onDetach(f func()) (done func()) {
	if r.ports.Journal == nil {
		return func() {}
	}
	stop := context.AfterFunc(r.detaching, f)
	return func() { stop() }
}

// Detach implements job.Handle.
func (r *run) Detach() {
	if r.ports.Journal != nil {
		r.detach()
	}
}
