package jobtest

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
)

// memory is a job.Journal in memory, with the frames of earlier attempts.
type memory struct {
	earlier [][]byte
	failAt  int64 // the frame that cannot be stored, 0 for none

	mu     sync.Mutex
	frames [][]byte
}

func (m *memory) Earlier() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, frame := range m.earlier {
			if !yield(frame, nil) {
				return
			}
		}
	}
}

func (m *memory) Append(frame []byte) (<-chan error, error) {
	head, err := job.ParseFrameHead(frame)
	if err != nil {
		return nil, err
	}
	if m.failAt > 0 && head.N >= m.failAt {
		return nil, errors.New("the disk is full")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frames = append(m.frames, frame)
	stored := make(chan error, 1)
	stored <- nil
	return stored, nil
}

// all returns the frames of all attempts.
func (m *memory) all() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(m.earlier[:len(m.earlier):len(m.earlier)], m.frames...)
}

// record runs a job with a journal to the end of an attempt.
func record(t *testing.T, setup Setup, spec *job.Spec, m *memory) ([]*job.Event, job.Outcome) {
	t.Helper()
	handle, err := setup.New().Start(t.Context(), spec, job.Ports{Journal: m})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	var events []*job.Event
	for e := range handle.Events() {
		events = append(events, e)
	}
	return events, handle.Wait()
}

// checkFrames checks what holds for every journal, and returns the last head.
func checkFrames(t *testing.T, frames [][]byte) job.FrameHead {
	t.Helper()
	var last job.FrameHead
	for i, frame := range frames {
		head, err := job.ParseFrameHead(frame)
		if err != nil {
			t.Fatal(err)
		}
		if head.N != int64(i+1) || head.Seq < last.Seq || head.ActiveMS < last.ActiveMS {
			t.Errorf("frame %+v stands after %+v, in place %d", head, last, i+1)
		}
		if first := head.Type == job.FrameSpec; first != (i == 0) {
			t.Errorf("frame %d is of type %q", head.N, head.Type)
		}
		last = head
	}
	return last
}

func exerciseJournal(t *testing.T, setup Setup) {
	t.Run("holds what the job was asked for and how it ended", func(t *testing.T) {
		t.Parallel()
		m, spec := &memory{}, newSpec(t, wanders)
		events, outcome := record(t, setup, spec, m)
		checkStream(t, events)
		checkOutcome(t, events, outcome)
		if last := checkFrames(t, m.frames); last.Type != job.FrameOutcome {
			t.Errorf("the last frame is %+v", last)
		}
		first, err := job.ParseFrame(m.frames[0])
		if err != nil {
			t.Fatal(err)
		}
		var asked job.SpecFrame
		if err := json.Unmarshal(first.Data, &asked); err != nil {
			t.Fatal(err)
		}
		if asked.JobID != spec.ID || asked.Digest != spec.Digest() {
			t.Errorf("the first frame is of job %q with digest %q", asked.JobID, asked.Digest)
		}
	})
	t.Run("cut anywhere, the job goes on to the same end", func(t *testing.T) {
		t.Parallel()
		whole, spec := &memory{}, newSpec(t, wanders)
		_, want := record(t, setup, spec, whole)
		for cut := 1; cut < len(whole.frames); cut++ {
			resumeAt(t, setup, spec, whole.frames[:cut:cut], want)
		}
	})
	t.Run("of another spec is refused", func(t *testing.T) {
		t.Parallel()
		whole, spec := &memory{}, newSpec(t, wanders)
		record(t, setup, spec, whole)
		other := *spec
		other.Task, other.Resume = "Something else?", &job.Resume{Attempt: 2, NextSeq: 100}
		_, outcome := record(t, setup, &other, &memory{earlier: whole.frames[:2:2]})
		wantFailed(t, outcome, job.ReasonError, job.CodeJournalDiverged, 1)
	})
	t.Run("that cannot be written ends the job", func(t *testing.T) {
		t.Parallel()
		_, outcome := record(t, setup, newSpec(t, wanders), &memory{failAt: 4})
		if failed := wantFailed(t, outcome, job.ReasonError, job.CodeJournalFailed, 1); !strings.Contains(failed.Message, "the disk is full") {
			t.Errorf("the message %q does not give the cause", failed.Message)
		}
	})
	t.Run("lets an attempt end without the job", func(t *testing.T) {
		t.Parallel()
		m := &memory{}
		handle, err := setup.New().Start(t.Context(), newSpec(t, stalls), job.Ports{Journal: m})
		if err != nil {
			t.Fatal(err)
		}
		var last *job.Event
		for e := range handle.Events() {
			if last = e; e.Type == job.EventMessageDelta {
				handle.Detach()
				handle.Detach()
			}
		}
		outcome := handle.Wait()
		if outcome.Suspended == nil || outcome.Completed != nil || outcome.Failed != nil || len(outcome.Suspended.Waits) != 0 || last.Type != job.EventSuspended {
			t.Fatalf("outcome %+v after %s", outcome, last.Type)
		}
		if head := checkFrames(t, m.frames); head.Type != job.FrameSuspended {
			t.Errorf("the last frame is %+v", head)
		}
	})
}

// resumeAt resumes a job from some of its frames.
func resumeAt(t *testing.T, setup Setup, spec *job.Spec, frames [][]byte, want job.Outcome) {
	t.Helper()
	before := checkFrames(t, frames)
	next, m := *spec, &memory{earlier: frames}
	next.Resume = &job.Resume{Attempt: 2, NextSeq: before.Seq + 3}
	events, got := record(t, setup, &next, m)
	if d := cmp.Diff(encoded(t, want.Completed), encoded(t, got.Completed)); d != "" {
		t.Errorf("after %d frames: outcome (-whole +resumed):\n%s", len(frames), d)
	}
	if want.Usage.Turns != got.Usage.Turns || want.Usage.Tokens != got.Usage.Tokens {
		t.Errorf("after %d frames: usage %+v, want %+v", len(frames), got.Usage, want.Usage)
	}
	resumed, ok := events[0].Data.(*job.ResumedData)
	if !ok || events[0].Seq != before.Seq+3 || resumed.Attempt != 2 || resumed.VoidFromSeq > before.Seq+3 {
		t.Errorf("after %d frames the attempt begins with event %d, %+v", len(frames), events[0].Seq, events[0].Data)
	}
	for i, e := range events {
		if e.Seq != before.Seq+3+int64(i) || e.Type == job.EventStarted {
			t.Errorf("after %d frames: event %d of type %s", len(frames), e.Seq, e.Type)
		}
	}
	if last := checkFrames(t, m.all()); last.Type != job.FrameOutcome {
		t.Errorf("after %d frames: the last frame is %+v", len(frames), last)
	}
}
