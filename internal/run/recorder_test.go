package run_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

// append appends a frame and waits until it is stored.
func appendFrame(t *testing.T, r *run.Recorder, line []byte) {
	t.Helper()
	stored, err := r.Append(line)
	if err == nil {
		err = <-stored
	}
	if err != nil {
		t.Fatal(err)
	}
}

func report(t *testing.T, r *run.Recorder, events ...*job.Event) {
	t.Helper()
	for _, e := range events {
		if err := r.Event(e); err != nil {
			t.Fatal(err)
		}
	}
}

func completed() *job.CompletedData {
	return &job.CompletedData{Summary: "Done.", Answer: "Done.", Outputs: []string{}}
}

func started(version string) *job.StartedData {
	return &job.StartedData{Runtime: "test", Agent: job.AgentTag{ID: "clerk", Version: version}, Tools: []string{}, Definition: "d1", Spec: "s1"}
}

func TestAnAttemptIsRecordedToItsEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		born := f.create(request(), claim("a"))
		id := born.Run.ID
		r := f.record(born.Lease)
		report(t, r, event(id, 1, started("7")))
		appendFrame(t, r, frame(t, 1, 1, job.FrameSpec, job.SpecFrame{JobID: id}))
		for seq := int64(2); seq <= 500; seq++ {
			report(t, r, note(id, seq))
		}
		appendFrame(t, r, frame(t, 2, 500, job.FrameOutcome, job.OutcomeFrame{Completed: completed()}))
		report(t, r, event(id, 501, completed()))
		usage := job.TotalUsage{Requests: 3}
		state, err := r.Finish(t.Context(), job.Outcome{Completed: completed(), Usage: usage})
		if state != run.Completed || err != nil {
			t.Fatalf("%s, %v", state, err)
		}
		got := f.get(id)
		if got.State != run.Completed || got.Resolved != "7" || got.Definition != "d1" || got.EndedAt.IsZero() ||
			!strings.Contains(string(got.Outcome), "Done.") || !strings.Contains(string(got.Usage), `"requests":3`) {
			t.Errorf("the run: %+v", got)
		}
		events := follow(t, f, id, 0)
		for i, e := range events {
			if e.Seq != int64(i+1) {
				t.Fatalf("event %d has number %d", i, e.Seq)
			}
		}
		if len(events) != 501 || events[500].Type != job.EventCompleted {
			t.Errorf("%d events", len(events))
		}
		if _, err := r.Finish(t.Context(), job.Outcome{Completed: completed()}); !errors.Is(err, run.ErrLost) {
			t.Errorf("a second end: %v", err)
		}
	})
}

func TestAFrameIsStoredOnlyAfterItsEvents(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		born := f.create(request(), claim("a"))
		r := f.record(born.Lease)
		stored, err := r.Append(frame(t, 1, 2, job.FrameCallStarted, job.CallStartedFrame{CallID: "1.0"}))
		if err != nil {
			t.Fatal(err)
		}
		report(t, r, note(born.Run.ID, 1))
		for e, err := range f.Follow(t.Context(), "acme", born.Run.ID, 0) { // event 1 is stored
			if err != nil || e.Seq != 1 {
				t.Fatal(e, err)
			}
			break
		}
		select {
		case err := <-stored:
			t.Fatalf("the frame is acknowledged before event 2 came: %v", err)
		default:
		}
		report(t, r, note(born.Run.ID, 2))
		if err := <-stored; err != nil {
			t.Error(err)
		}
	})
}

func TestWhatDoesNotFollowIsRefused(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	f := newFixture(t, db)
	born := f.create(request(), claim("a"))
	r := f.record(born.Lease)
	if err := r.Event(note(born.Run.ID, 2)); err == nil {
		t.Error("an event with a gap before it is taken")
	}
	appendFrame(t, r, frame(t, 1, 0, job.FrameSpec, job.SpecFrame{}))
	for name, line := range map[string][]byte{
		"a gap":      frame(t, 3, 0, job.FrameMessage, job.MessageFrame{}),
		"a repeat":   frame(t, 1, 0, job.FrameMessage, job.MessageFrame{}),
		"two lines":  append(frame(t, 2, 0, job.FrameMessage, job.MessageFrame{}), "\n{}"...),
		"no version": []byte(`{"n":2}`),
	} {
		if _, err := r.Append(line); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestWhoLostALeaseWritesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		born := f.create(request(), claim("a"))
		id := born.Run.ID
		old := f.record(born.Lease)
		report(t, old, note(id, 1))
		appendFrame(t, old, frame(t, 1, 1, job.FrameSpec, job.SpecFrame{}))
		f.clock.turn(lease + time.Second)
		taken, l := f.take(id, "b")
		if taken.Place != "disk-a" {
			t.Errorf("the files are at %q", taken.Place)
		}
		stored, err := old.Append(frame(t, 2, 1, job.FrameMessage, job.MessageFrame{}))
		if err == nil {
			err = <-stored
		}
		if !errors.Is(err, run.ErrLost) || !errors.Is(old.Err(), run.ErrLost) {
			t.Errorf("a frame of the old owner: %v", err)
		}
		if err := old.Event(note(id, 2)); !errors.Is(err, run.ErrLost) {
			t.Errorf("an event of the old owner: %v", err)
		}
		if _, err := old.Finish(t.Context(), job.Outcome{Completed: completed()}); !errors.Is(err, run.ErrLost) {
			t.Errorf("the end by the old owner: %v", err)
		}
		r := f.record(l)
		if r.NextSeq() != 2 || r.Frames() != 1 {
			t.Errorf("the new attempt begins at event %d after frame %d", r.NextSeq(), r.Frames())
		}
		var earlier int
		for _, err := range r.Earlier() {
			if err != nil {
				t.Fatal(err)
			}
			earlier++
		}
		if earlier != 1 {
			t.Errorf("%d earlier frames", earlier)
		}
		appendFrame(t, r, frame(t, 2, 1, job.FrameMessage, job.MessageFrame{}))
	})
}

func TestAnEndThatWasRecordedIsNotRunAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		born := f.create(request(), claim("a"))
		r := f.record(born.Lease)
		appendFrame(t, r, frame(t, 1, 0, job.FrameSpec, job.SpecFrame{}))
		appendFrame(t, r, frame(t, 2, 0, job.FrameOutcome, job.OutcomeFrame{Completed: completed()}))
		r.Abandon()
		f.clock.turn(lease + time.Second)
		_, l := f.take(born.Run.ID, "b")
		again := f.record(l)
		outcome := again.Outcome()
		if outcome == nil {
			t.Fatal("the recorded end is not found")
		}
		if state, err := again.Finish(t.Context(), job.Outcome{Completed: outcome.Completed, Failed: outcome.Failed}); state != run.Completed || err != nil {
			t.Errorf("%s, %v", state, err)
		}
		if got := follow(t, f, born.Run.ID, 0); len(got) != 1 || got[0].Type != job.EventCompleted {
			t.Errorf("events: %v", got)
		}
	})
}

func TestDecisionsQueueASuspendedRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		born := f.create(request(), claim("a"))
		id := born.Run.ID
		waits := []job.Wait{{CallID: "1.0", Tool: "post", Arguments: json.RawMessage(`{}`), Hash: "h1", WaitID: "w1"}, {CallID: "1.1", Tool: "post", Arguments: json.RawMessage(`{}`), Hash: "h2", WaitID: "w2"}}
		suspended := &job.SuspendedData{Waits: waits}
		r := f.record(born.Lease)
		report(t, r, event(id, 1, suspended))
		if state, err := r.Finish(t.Context(), job.Outcome{Suspended: suspended}); state != run.Suspended || err != nil {
			t.Fatalf("%s, %v", state, err)
		}
		if diff := cmp.Diff(waits, f.get(id).Waits); diff != "" {
			t.Errorf("waits:\n%s", diff)
		}
		if _, _, err := f.Take(t.Context(), id, claim("b")); !errors.Is(err, run.ErrLost) {
			t.Errorf("a suspended run is taken: %v", err)
		}
		for name, d := range map[string]job.Decision{
			"another hash":    {WaitID: "w1", Hash: "h2", Verdict: job.VerdictApprove},
			"another wait":    {WaitID: "w3", Hash: "h1", Verdict: job.VerdictApprove},
			"another verdict": {WaitID: "w1", Hash: "h1", Verdict: "maybe"},
		} {
			if _, err := f.Decide(t.Context(), "acme", id, []job.Decision{d}, "me"); err == nil {
				t.Errorf("%s is taken", name)
			}
		}
		first := []job.Decision{{WaitID: "w1", Hash: "h1", Verdict: job.VerdictApprove, Arguments: json.RawMessage(`{"a":1}`)}}
		if done, err := f.Decide(t.Context(), "acme", id, first, "me"); err != nil || done.Run.State != run.Suspended || len(done.Open) != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		if _, err := f.Decide(t.Context(), "acme", id, first, "me"); !errors.Is(err, run.ErrState) {
			t.Errorf("decided twice: %v", err)
		}
		second := []job.Decision{{WaitID: "w2", Hash: "h2", Verdict: job.VerdictReject, Rationale: "no"}}
		if done, err := f.Decide(t.Context(), "acme", id, second, "me"); err != nil || done.Run.State != run.Queued || len(done.Open) != 0 {
			t.Errorf("%+v, %v", done, err)
		}
		if f.queue.count(id) != 1 {
			t.Error("nobody is woken")
		}
		_, l := f.take(id, "b")
		if l.Attempt != 2 {
			t.Errorf("attempt %d", l.Attempt)
		}
		all, err := f.Decisions(t.Context(), id)
		if err != nil || len(all) != 2 {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestAReleasedRunGoesOnLater(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		born := f.create(request(), claim("a"))
		id := born.Run.ID
		if state, err := f.record(born.Lease).Release(t.Context(), run.Released{Retry: true, NotBefore: f.clock.time().Add(time.Minute), Message: "no provider"}); state != run.Queued || err != nil {
			t.Fatalf("%s, %v", state, err)
		}
		if _, _, err := f.Take(t.Context(), id, claim("a")); !errors.Is(err, run.ErrLost) {
			t.Errorf("before its time: %v", err)
		}
		f.clock.turn(time.Minute)
		r, l := f.take(id, "a")
		if r.Retries != 1 || f.queue.count(id) != 1 {
			t.Errorf("%d retries, %d wake-ups", r.Retries, f.queue.count(id))
		}
		if _, err := f.Cancel(t.Context(), "acme", id, "enough"); err != nil {
			t.Fatal(err)
		}
		if state, err := f.record(l).Release(t.Context(), run.Released{Lost: true}); state != run.Cancelled || err != nil {
			t.Errorf("a cancelled run that is released: %s, %v", state, err)
		}
	})
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func TestFilesAreKeptBeforeTheirCheckpoint(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	f := newFixture(t, db)
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	for path, content := range map[string]string{filepath.Join(dir, "a.md"): "alpha", filepath.Join(dir, "changed.md"): "other", secret: "secret"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	keep := func(path, content string) error {
		born := f.create(request(), claim("a"))
		r := f.record(born.Lease)
		r.KeepFilesOf(dir)
		stored, err := r.Append(frame(t, 1, 0, job.FrameCheckpoint, job.CheckpointFrame{Files: []job.CheckpointFile{{Path: path, Size: int64(len(content)), Hash: hashOf(content)}}}))
		if err != nil {
			return err
		}
		return <-stored
	}
	if err := keep("a.md", "alpha"); err != nil {
		t.Fatal(err)
	}
	content, err := f.blobs.Open(t.Context(), hashOf("alpha"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(content); string(data) != "alpha" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	for path, content := range map[string]string{"changed.md": "alpha2", "link.md": "secret", "../secret": "secret", "none.md": "x", ".": ""} {
		if err := keep(path, content); err == nil {
			t.Errorf("%s is kept", path)
		}
	}
	if len(f.blobs.kept) != 1 {
		t.Errorf("%d blobs", len(f.blobs.kept))
	}
}

func TestTheTimelineHasWholeAnswers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		born := f.create(request(), claim("a"))
		r := f.record(born.Lease)
		large := strings.Repeat("x", 70<<10)
		step := func(mode string) job.StepFrame {
			return job.StepFrame{Step: json.RawMessage(`{"v":1,"n":1,"callId":"1.0","tool":"read","args":{"path":"b"},"status":"ok","durationMs":4,"stm":"` + mode + `"}`)}
		}
		for i, c := range []struct {
			kind job.FrameType
			data any
		}{
			{job.FrameCallStarted, job.CallStartedFrame{CallID: "1.0", Turn: 1, Tool: "read", Arguments: json.RawMessage(`{"path":"a"}`)}},
			{job.FrameCallFinished, job.CallFinishedFrame{CallID: "1.0", Text: "alpha", DurationMS: 3}},
			{job.FrameStep, step("")},
			{job.FrameStep, step("writer")},
			{job.FrameCallStarted, job.CallStartedFrame{CallID: "2.0", Turn: 2, Tool: "post", Arguments: json.RawMessage(`{}`)}},
			{job.FrameCallFinished, job.CallFinishedFrame{CallID: "2.0", Text: large, IsError: true}},
			{job.FrameCallFinished, job.CallFinishedFrame{CallID: "2.1", Text: "nul\x00", Interrupted: true}},
		} {
			appendFrame(t, r, frame(t, int64(i+1), 0, c.kind, c.data))
		}
		got, err := f.Steps(t.Context(), "acme", born.Run.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := []run.Step{
			{N: 2, Kind: run.StepCall, CallID: "1.0", Turn: 1, Tool: "read", Arguments: json.RawMessage(`{"path":"a"}`), Status: "ok", Output: "alpha", Bytes: 5, DurationMS: 3},
			{N: 4, Kind: run.StepLoop, CallID: "1.0", Turn: 1, Tool: "read", Arguments: json.RawMessage(`{"path":"b"}`), Status: "ok", Output: string(step("writer").Step), Bytes: int64(len(step("writer").Step)), DurationMS: 4},
			{N: 6, Kind: run.StepCall, CallID: "2.0", Turn: 2, Tool: "post", Arguments: json.RawMessage(`{}`), Status: "error", Blob: hashOf(large), Bytes: int64(len(large))},
			{N: 7, Kind: run.StepCall, CallID: "2.1", Status: "interrupted", Blob: hashOf("nul\x00"), Bytes: 4},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		output, err := f.OpenOutput(t.Context(), got[2])
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(output); string(data) != large || err != nil {
			t.Errorf("%d bytes, %v", len(data), err)
		}
		if rest, err := f.Steps(t.Context(), "acme", born.Run.ID, 2, 1); err != nil || len(rest) != 1 || rest[0].N != 4 {
			t.Errorf("after step 2: %v, %v", rest, err)
		}
	})
}

func TestAJobStartsOnlyOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storetest.Open(t, storetest.SQLite(t)))
	born := f.create(request(), claim("a"))
	id := born.Run.ID
	first := f.record(born.Lease)
	report(t, first, event(id, 1, started("1")))
	other := f.create(request(), claim("a")) // whatever the first one had to store by now is stored
	appendFrame(t, f.record(other.Lease), frame(t, 1, 0, job.FrameSpec, job.SpecFrame{}))
	first.Abandon()
	f.clock.turn(lease + time.Second)
	_, l := f.take(id, "b")
	if r := f.record(l); r.NextSeq() != 1 || r.Frames() != 0 {
		t.Errorf("an attempt that recorded nothing has reported %d events", r.NextSeq()-1)
	}
}
