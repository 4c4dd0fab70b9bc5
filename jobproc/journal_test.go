package jobproc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/problem"
)

// memory is a job.Journal in memory. It sees whether the events before a frame had been taken.
type memory struct {
	earlier   [][]byte
	cut       error         // ends the earlier frames
	hold      chan struct{} // if not nil, frames are stored when it is closed
	failAfter int64         // the frames after this one cannot be stored; 0 is never
	appended  chan struct{} // if not nil, closed with the first frame

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
		if m.cut != nil {
			yield(nil, m.cut)
		}
	}
}

func (m *memory) Append(frame []byte) (<-chan error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored := make(chan error, 1)
	head, err := job.ParseFrameHead(frame)
	if err != nil {
		return nil, err
	}
	if m.failAfter > 0 && head.N > m.failAfter {
		stored <- errors.New("no space left on device")
		return stored, nil
	}
	m.frames = append(m.frames, frame)
	if m.appended != nil && len(m.frames) == 1 {
		close(m.appended)
	}
	if m.hold == nil {
		return nil, nil
	}
	go func() {
		<-m.hold
		stored <- nil
	}()
	return stored, nil
}

func (m *memory) heads(t *testing.T) []job.FrameHead {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var heads []job.FrameHead
	for _, frame := range m.frames {
		head, err := job.ParseFrameHead(frame)
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, head)
	}
	return heads
}

func startWith(t *testing.T, m *memory, spec *job.Spec) *jobproc.Handle {
	t.Helper()
	h, err := newRuntime(t, jobproc.Config{}).Start(t.Context(), spec, job.Ports{Journal: m})
	if err != nil {
		t.Fatal(err)
	}
	return h.(*jobproc.Handle)
}

func drain(h job.Handle) ([]*job.Event, job.Outcome) {
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	return events, h.Wait()
}

func resumed(task string, next int64) *job.Spec {
	spec := newSpec(task)
	spec.Resume = &job.Resume{Attempt: 2, NextSeq: next}
	return spec
}

func TestFramesOfTheChildReachTheJournalInOrder(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*memory{"stored at once": {}, "stored later": {hold: make(chan struct{})}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startWith(t, m, newSpec("record 200"))
			var last int64
			for e := range h.Events() {
				if d, ok := e.Data.(*job.MessageDeltaData); ok && d.Text == "199" && m.hold != nil {
					close(m.hold)
				}
				last = e.Seq
			}
			if outcome := h.Wait(); outcome.Completed == nil || outcome.Completed.Answer != "200" {
				t.Fatalf("outcome %+v", outcome)
			}
			heads := m.heads(t)
			if len(heads) != 201 || last != 202 {
				t.Fatalf("%d frames, %d events", len(heads), last)
			}
			for i, head := range heads {
				if head.N != int64(i+1) || head.Seq != int64(i+1) {
					t.Errorf("frame %d is %+v", i+1, head)
				}
			}
		})
	}
}

func TestAFrameIsStoredAfterItsEventsAreTaken(t *testing.T) {
	t.Parallel()
	m := &memory{}
	h := startWith(t, m, newSpec("ahead"))
	if e := <-h.Events(); e.Type != job.EventStarted {
		t.Fatalf("event %s", e.Type)
	}
	h.Abort("report the event")
	_, outcome := drain(h)
	if outcome.Completed == nil || outcome.Completed.Answer != "stored after its event" {
		t.Errorf("outcome %+v %+v", outcome.Completed, outcome.Failed)
	}
}

func TestDiscardedEventsCountAsTaken(t *testing.T) {
	t.Parallel()
	m := &memory{}
	if outcome := startWith(t, m, newSpec("record 20")).Wait(); outcome.Completed == nil || len(m.heads(t)) != 21 {
		t.Errorf("outcome %+v, %d frames", outcome, len(m.heads(t)))
	}
}

func TestAJournalThatCannotStoreEndsTheJob(t *testing.T) {
	t.Parallel()
	m := &memory{failAfter: 5}
	outcome := startWith(t, m, newSpec("record 20")).Wait()
	if outcome.Failed == nil || outcome.Failed.Code != job.CodeJournalFailed || !strings.Contains(outcome.Failed.Message, "no space left on device") {
		t.Errorf("outcome %+v", outcome.Failed)
	}
}

func TestEarlierFramesArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	m := &memory{}
	for i := range int64(300) {
		m.earlier = append(m.earlier, frameLine(i+1, i, job.FrameStep, `{"text":"<é> \" \\u0000 `+strings.Repeat("x", int(i)*40)+`"}`))
	}
	events, outcome := drain(startWith(t, m, resumed("earlier", 42)))
	if outcome.Completed == nil {
		t.Fatalf("outcome %+v", outcome)
	}
	var got [][]byte
	if err := json.Unmarshal([]byte(outcome.Completed.Answer), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(m.earlier, got, bytes.Equal) {
		t.Errorf("%d earlier frames were sent, %d received, and they differ", len(m.earlier), len(got))
	}
	if events[0].Type != job.EventResumed || events[0].Seq != 42 {
		t.Errorf("the attempt begins with event %d of type %q", events[0].Seq, events[0].Type)
	}
}

// The acknowledgements of copied frames stand behind all earlier frames in the child's input.
func TestFramesAreCopiedOneByOne(t *testing.T) {
	t.Parallel()
	m := &memory{}
	for i := range int64(200) {
		m.earlier = append(m.earlier, frameLine(i+1, i, job.FrameStep, `"`+strings.Repeat("x", 2000)+`"`))
	}
	spec := newSpec("copy")
	spec.Resume = &job.Resume{Attempt: 1, NextSeq: 1, Fork: true}
	_, outcome := drain(startWith(t, m, spec))
	if outcome.Completed == nil || outcome.Completed.Answer != "200" || len(m.heads(t)) != 200 {
		t.Errorf("outcome %+v, %d frames", outcome, len(m.heads(t)))
	}
}

func TestEarlierFramesThatCannotBeReadRefuseTheStart(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*memory{
		"damaged": {earlier: [][]byte{frameLine(1, 0, job.FrameSpec, "{}")}, cut: errors.New("line 2 is damaged")},
		"foreign": {earlier: [][]byte{[]byte("line 2 is damaged")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := newRuntime(t, jobproc.Config{}).Start(t.Context(), resumed("earlier", 2), job.Ports{Journal: m})
			if err == nil {
				t.Fatalf("started: %+v", h.Wait())
			}
			if problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "earlier frames") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestDetachSuspendsAJobWithAJournal(t *testing.T) {
	t.Parallel()
	m := &memory{}
	h := startWith(t, m, newSpec("suspend"))
	h.Detach()
	h.Detach()
	events, outcome := drain(h)
	if outcome.Suspended == nil || outcome.ExitCode() != job.ExitSuspended || events[len(events)-1].Type != job.EventSuspended {
		t.Fatalf("outcome %+v", outcome)
	}
	if heads := m.heads(t); heads[len(heads)-1].Type != job.FrameSuspended {
		t.Errorf("frames %+v", heads)
	}
}

func TestDetachLeavesAJobWithoutAJournalAlone(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{}), newSpec("wait"))
	h.Detach()
	h.Abort("enough")
	if _, outcome := collect(t, h); outcome.Failed == nil || outcome.Failed.Message != "enough" {
		t.Errorf("outcome %+v", outcome)
	}
}

func TestALostProcessWithAJournalHasNotFailed(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"at once", "in a frame", "ahead"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			m := &memory{}
			events, outcome := drain(startWith(t, m, newSpec("die "+how)))
			if outcome.Lost == nil || outcome.Failed != nil || outcome.Lost.Signal != "killed" || outcome.Lost.Message == "" {
				t.Fatalf("outcome %+v", outcome)
			}
			if last := events[len(events)-1]; last.Type.Terminal() {
				t.Errorf("the events end in %s", last.Type)
			}
			// A frame of which a part came, or whose events did not, was never stored.
			if heads := m.heads(t); len(heads) != 2 {
				t.Errorf("frames %+v", heads)
			}
		})
	}
}

func TestAJobThatItsOwnerEndedIsNotResumable(t *testing.T) {
	t.Parallel()
	m := &memory{appended: make(chan struct{})}
	h := startWith(t, m, newSpec("deaf"))
	if e := <-h.Events(); e.Type != job.EventStarted {
		t.Fatal(e.Type)
	}
	<-m.appended
	h.Kill()
	events, outcome := drain(h)
	if outcome.Failed == nil || outcome.Failed.Reason != job.ReasonAborted || !events[len(events)-1].Type.Terminal() {
		t.Fatalf("outcome %+v", outcome)
	}
	heads := m.heads(t)
	if last := heads[len(heads)-1]; last.Type != job.FrameOutcome || last.Seq != events[len(events)-1].Seq || last.N != int64(len(heads)) {
		t.Errorf("frames %+v", heads)
	}
}

func TestBrokenFramesEndTheProcess(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"no frame":        "hello",
		"another version": `{"v":9,"n":2,"seq":1,"activeMs":0,"type":"step","data":1}`,
		"a gap":           string(frameLine(3, 1, job.FrameStep, "1")),
		"twice":           string(frameLine(1, 1, job.FrameStep, "1")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{}
			_, outcome := drain(startWith(t, m, newSpec("break "+line)))
			if outcome.Lost == nil || !strings.Contains(outcome.Lost.Message, "broke its protocol") || !strings.Contains(outcome.Lost.Message, "frame") {
				t.Fatalf("outcome %+v", outcome.Lost)
			}
			if heads := m.heads(t); len(heads) != 1 {
				t.Errorf("frames %+v", heads)
			}
		})
	}
}

func TestSmokeNoCommandInheritsTheJournal(t *testing.T) {
	t.Parallel()
	m := &memory{}
	_, outcome := drain(startWith(t, m, newSpec("inherit")))
	if outcome.Completed == nil || outcome.Completed.Answer != "closed" {
		t.Errorf("outcome %+v", outcome)
	}
}

func TestOpenJournalRefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	for _, fd := range []int{-1, 0, 2, 9999} {
		if f, err := jobproc.OpenJournal(fd); err == nil {
			t.Errorf("%d was opened as %v", fd, f.Name())
		}
	}
}

// A child that gets frames and acknowledgements for a job that has no journal ends it.
func TestMessagesOfAJournalNeedOne(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"frame", "end", "ack", "detach", "unheard-of"} {
		out, code := serve(t, jobproc.Child{}, `{"type":"spec","spec":{"id":"j","task":"wait"}}`+"\n"+fmt.Sprintf(`{"type":%q}`, kind))
		if code != 130 || !strings.Contains(out, kind) {
			t.Errorf("%s: exit code %d, %s", kind, code, out)
		}
	}
}
