package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

func open(t *testing.T) *run.Store {
	t.Helper()
	db, err := database.Open(t.Context(), filepath.Join(t.TempDir(), "events.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	clock := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	s, err := run.Open(t.Context(), run.Config{DB: db, Now: func() time.Time { clock = clock.Add(time.Second); return clock }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t *testing.T, s *run.Store, id string) {
	t.Helper()
	if _, _, err := s.Create(t.Context(), run.Run{ID: id, Input: "events"}, run.Key{}); err != nil {
		t.Fatal(err)
	}
}

func event(id string, seq int64, kind job.EventType) *job.Event {
	return &job.Event{Seq: seq, JobID: id, Type: kind, Data: &job.Notice{Code: "n", Message: "m"}}
}

func TestARequestMadeTwiceIsOneRun(t *testing.T) {
	t.Parallel()
	s := open(t)
	key := run.Key{Text: "k", Digest: "d"}
	first, isNew, err := s.Create(t.Context(), run.Run{ID: "run_a"}, key)
	if err != nil || !isNew || first.Status != run.Queued {
		t.Fatalf("%+v %v %v", first, isNew, err)
	}
	if again, isNew, err := s.Create(t.Context(), run.Run{ID: "run_b"}, key); err != nil || isNew || again.ID != "run_a" {
		t.Errorf("the same request gave %+v %v %v", again, isNew, err)
	}
	if _, _, err := s.Create(t.Context(), run.Run{ID: "run_c"}, run.Key{Text: "k", Digest: "other"}); problem.KindOf(err) != problem.Conflict {
		t.Errorf("another request under the key gave %v", err)
	}
}

func TestARunEndsOnceAndWithItsReport(t *testing.T) {
	t.Parallel()
	s := open(t)
	create(t, s, "run_a")
	if _, err := s.Report(t.Context(), "run_a"); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a report before the end gave %v", err)
	}
	if _, err := s.Report(t.Context(), "run_x"); problem.KindOf(err) != problem.NotFound {
		t.Errorf("a report of no run gave %v", err)
	}
	if _, err := s.End(t.Context(), "run_a", "# Report", func(r *run.Run) { r.Status = run.Completed }); err != nil {
		t.Fatal(err)
	}
	if report, err := s.Report(t.Context(), "run_a"); err != nil || report != "# Report" {
		t.Errorf("the report is %q (%v)", report, err)
	}
	for name, again := range map[string]func() error{
		"ended":   func() error { _, err := s.End(t.Context(), "run_a", "x", func(*run.Run) {}); return err },
		"changed": func() error { _, err := s.Change(t.Context(), "run_a", func(*run.Run) {}); return err },
	} {
		if err := again(); problem.KindOf(err) != problem.Conflict {
			t.Errorf("a run that was %s after its end gave %v", name, err)
		}
	}
}

func TestFollowersSeeEveryEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	s := open(t)
	create(t, s, "run_a")
	const events, readers = 600, 4
	type reading struct {
		seqs []int64
		err  error
	}
	done := make(chan reading, readers)
	for i := range readers {
		go func() {
			var r reading
			after := int64(i * 100)
			r.err = s.Follow(context.Background(), "run_a", after, func(batch []run.Stored) error {
				for _, e := range batch {
					r.seqs = append(r.seqs, e.Seq-after)
				}
				return nil
			})
			done <- r
		}()
	}
	for seq := range int64(events) {
		if err := s.AddEvent(t.Context(), event("run_a", seq+1, job.EventNotice)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.End(t.Context(), "run_a", "", func(r *run.Run) { r.Status = run.Completed }); err != nil {
		t.Fatal(err)
	}
	lengths := map[int]bool{}
	for range readers {
		r := <-done
		lengths[len(r.seqs)] = true
		for i, seq := range r.seqs {
			if seq != int64(i+1) || r.err != nil {
				t.Fatalf("event %d in place %d (%v)", seq, i, r.err)
			}
		}
	}
	for i := range readers {
		if !lengths[events-i*100] {
			t.Errorf("no reader saw %d events: %v", events-i*100, lengths)
		}
	}
}

func TestAFollowerLeavesWhenItWants(t *testing.T) {
	t.Parallel()
	s := open(t)
	create(t, s, "run_a")
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := s.Follow(ctx, "run_a", 0, func([]run.Stored) error { return nil }); !errors.Is(err, context.Canceled) && !errors.Is(err, gone) {
		t.Errorf("a reader that left gave %v", err)
	}
	if err := s.Follow(t.Context(), "run_x", 0, nil); problem.KindOf(err) != problem.NotFound {
		t.Errorf("no run gave %v", err)
	}
}

func frame(t *testing.T, n, seq int64) []byte {
	t.Helper()
	line, err := json.Marshal(job.Frame{V: job.FrameVersion, N: n, Seq: seq, Type: job.FrameMessage, Data: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func earlier(t *testing.T, j *run.Journal) []int64 {
	t.Helper()
	var numbers []int64
	for line, err := range j.Earlier() {
		if err != nil {
			t.Fatal(err)
		}
		head, err := job.ParseFrameHead(line)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, head.N)
	}
	return numbers
}

func TestAFrameIsStoredAfterTheEventsBeforeIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	create(t, s, "run_a")
	j := s.Journal(t.Context(), "run_a")
	if stored, err := j.Append(frame(t, 1, 0)); err != nil || stored != nil {
		t.Fatalf("a frame before every event waits (%v)", err)
	}
	second, err := j.Append(frame(t, 2, 2))
	if err != nil || second == nil {
		t.Fatalf("a frame after two events does not wait (%v)", err)
	}
	third, err := j.Append(frame(t, 3, 2))
	if err != nil || third == nil {
		t.Fatalf("a frame overtakes the one before it (%v)", err)
	}
	j.Stored(1)
	if diff := cmp.Diff([]int64{1}, earlier(t, j)); diff != "" {
		t.Errorf("after one event (-want +got):\n%s", diff)
	}
	j.Stored(2)
	if err := errors.Join(<-second, <-third); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, earlier(t, j)); diff != "" {
		t.Errorf("after two events (-want +got):\n%s", diff)
	}
	waiting, err := j.Append(frame(t, 4, 9))
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is full")
	j.Close(broken)
	if err := <-waiting; !errors.Is(err, broken) {
		t.Errorf("a frame that was given up gave %v", err)
	}
	if _, err := j.Append([]byte(`{"v":9}`)); err == nil {
		t.Error("a line that is no frame was taken")
	}
}

func TestStepsKeepTheWholeOutput(t *testing.T) {
	t.Parallel()
	s := open(t)
	create(t, s, "run_a")
	for i, step := range []run.Step{
		{CallID: "1.0", Tool: "query_events", Status: "running"},
		{CallID: "2.0", Tool: "research", Status: "running"},
		{CallID: "1.0", Tool: "query_events", Status: "ok", Output: "all of it"},
	} {
		if err := s.PutStep(t.Context(), "run_a", step); err != nil {
			t.Fatal(i, err)
		}
	}
	steps, err := s.Steps(t.Context(), "run_a")
	want := []run.Step{{N: 1, CallID: "1.0", Tool: "query_events", Status: "ok", OutputBytes: 9}, {N: 2, CallID: "2.0", Tool: "research", Status: "running"}}
	if diff := cmp.Diff(want, steps); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if step, err := s.Step(t.Context(), "run_a", 1); err != nil || step.Output != "all of it" {
		t.Errorf("the step is %+v (%v)", step, err)
	}
	if _, err := s.Step(t.Context(), "run_a", 3); problem.KindOf(err) != problem.NotFound {
		t.Errorf("no step gave %v", err)
	}
}

func TestDocumentsAreKeptByStep(t *testing.T) {
	t.Parallel()
	s := open(t)
	create(t, s, "run_a")
	if _, err := s.Document(t.Context(), "run_a", -1); problem.KindOf(err) != problem.NotFound {
		t.Errorf("no document gave %v", err)
	}
	for step := range int64(3) {
		if err := s.PutDocument(t.Context(), "run_a", run.Document{Step: step, Mode: "writer", Document: fmt.Sprint("document ", step)}); err != nil {
			t.Fatal(err)
		}
	}
	for step, want := range map[int64]string{-1: "document 2", 0: "document 0", 1: "document 1"} {
		if d, err := s.Document(t.Context(), "run_a", step); err != nil || d.Document != want {
			t.Errorf("step %d has %+v (%v)", step, d, err)
		}
	}
}

func TestListsPageFromTheNewest(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, id := range []string{"run_a", "run_b", "run_c"} {
		create(t, s, id)
	}
	if _, err := s.End(t.Context(), "run_b", "", func(r *run.Run) { r.Status = run.Failed }); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		filter run.Filter
		want   []string
	}{
		"all":           {run.Filter{Limit: 10}, []string{"run_c", "run_b", "run_a"}},
		"pages of one":  {run.Filter{Limit: 1}, []string{"run_c", "run_b", "run_a"}},
		"of one status": {run.Filter{Limit: 10, Status: run.Failed}, []string{"run_b"}},
	} {
		var got []string
		for filter := c.filter; ; {
			page, err := s.List(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Items {
				got = append(got, r.ID)
			}
			if filter.Cursor = page.NextCursor; filter.Cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	left, err := s.Unfinished(t.Context())
	if err != nil || len(left) != 2 || left[0].ID != "run_a" {
		t.Errorf("unfinished are %+v (%v)", left, err)
	}
}
