package kernel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/hozo-run/hozo/job"
)

// memoryJournal keeps the frames of a job and, with each, what the output directory held when it was appended.
type memoryJournal struct {
	out     string
	earlier [][]byte
	frames  [][]byte
	states  []map[string]string
	// refuse makes the append of this frame fail, counted from 1; 0 refuses none.
	refuse int
	// late acknowledges a frame only when it is told to; nil acknowledges at once.
	late func(stored chan<- error)
}

func (j *memoryJournal) Earlier() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, f := range j.earlier {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (j *memoryJournal) Append(frame []byte) (<-chan error, error) {
	if j.refuse == len(j.frames)+1 {
		return nil, fs.ErrPermission
	}
	j.frames = append(j.frames, frame)
	j.states = append(j.states, filesOf(j.out))
	stored := make(chan error, 1)
	if j.late != nil {
		j.late(stored)
	} else {
		stored <- nil
	}
	return stored, nil
}

// all are the frames of every attempt.
func (j *memoryJournal) all() [][]byte {
	return append(j.earlier[:len(j.earlier):len(j.earlier)], j.frames...)
}

func filesOf(dir string) map[string]string {
	files := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, _ := os.ReadFile(path)
			name, _ := filepath.Rel(dir, path)
			files[filepath.ToSlash(name)] = string(data)
		}
		return nil
	})
	return files
}

// attempt runs one attempt of a job to its end.
func attempt(t *testing.T, spec *job.Spec, journal *memoryJournal) ([]*job.Event, job.Outcome) {
	t.Helper()
	journal.out = spec.Workspace.OutDir
	h, err := newRuntime(t, nil).Start(t.Context(), spec, job.Ports{Journal: journal})
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	return events, h.Wait()
}

// resumed returns the spec of the attempt after frames, in a directory of its own that is as it was then.
func resumed(t *testing.T, archive *txtar.Archive, number int64, frames [][]byte, state map[string]string) *job.Spec {
	t.Helper()
	spec := specFrom(t, archive)
	if err := os.RemoveAll(spec.Workspace.OutDir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(spec.Workspace.OutDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range state {
		path := filepath.Join(spec.Workspace.OutDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seq := int64(0)
	if len(frames) > 0 {
		seq = frameOf(t, frames[len(frames)-1]).Seq
	}
	spec.Resume = &job.Resume{Attempt: number, NextSeq: seq + 3} // two events more were stored, which no longer count
	return spec
}

func frameOf(t *testing.T, line []byte) job.Frame {
	t.Helper()
	f, err := job.ParseFrame(line)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// timeless renders frames without what differs from run to run.
func timeless(t *testing.T, frames [][]byte) []string {
	t.Helper()
	var lines []string
	for _, line := range frames {
		f := frameOf(t, line)
		var data map[string]any
		if err := json.Unmarshal(f.Data, &data); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"durationMs", "startUnixNano", "spec", "digest"} {
			delete(data, key)
		}
		if step, ok := data["step"].(map[string]any); ok {
			delete(step, "startedAt")
			delete(step, "durationMs")
		}
		encoded, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%d %s %s", f.N, f.Type, encoded))
	}
	return lines
}

// inFlight returns the started call that frames leave without an end, nil if there is none. A subagent is its calls.
func inFlight(t *testing.T, frames [][]byte) *job.CallStartedFrame {
	t.Helper()
	var open *job.CallStartedFrame
	for _, line := range frames {
		switch f := frameOf(t, line); f.Type {
		case job.FrameCallStarted:
			var started job.CallStartedFrame
			if err := json.Unmarshal(f.Data, &started); err != nil {
				t.Fatal(err)
			}
			if started.Effect != job.EffectSubagent {
				open = &started
			}
		case job.FrameCallFinished:
			open = nil
		}
	}
	return open
}

// TestEveryTranscriptCanBeCutAnywhere runs every transcript with a journal, ends it after each of its frames and resumes it:
// what comes of it is what comes of the whole, in frames, events, files and outcome. Only a call with an outside effect
// that was under way is not made again: the model is told that it was interrupted.
func TestEveryTranscriptCanBeCutAnywhere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(fileOf(archive, "job.json"), []byte(`"spans"`)) {
				return // its events are spans, which an attempt has of its own
			}
			synctest.Test(t, func(t *testing.T) { cutAnywhere(t, archive) })
		})
	}
}

func cutAnywhere(t *testing.T, archive *txtar.Archive) {
	whole := &memoryJournal{}
	spec := specFrom(t, archive)
	events, outcome := attempt(t, spec, whole)
	want, state := timeless(t, whole.frames), filesOf(spec.Workspace.OutDir)
	replayed(t, whole.frames)
	for cut := 0; cut <= len(whole.frames); cut += cutStep {
		frames := whole.frames[:cut:cut]
		at := filesOf(specFrom(t, archive).Workspace.OutDir)
		if cut > 0 {
			at = whole.states[cut-1]
		}
		spec := resumed(t, archive, 2, frames, at)
		journal := &memoryJournal{earlier: frames}
		later, end := attempt(t, spec, journal)
		if open := inFlight(t, frames); open != nil && open.Effect == "external" && open.Code == "" {
			if !strings.Contains(string(bytes.Join(journal.frames, nil)), `"interrupted":true`) {
				t.Errorf("cut after frame %d: call %s was not interrupted", cut, open.CallID)
			}
			continue
		}
		if diff := cmp.Diff(state, filesOf(spec.Workspace.OutDir)); diff != "" {
			t.Errorf("cut after frame %d: files (-want +got):\n%s", cut, diff)
		}
		if open := inFlight(t, frames); open != nil && open.Effect == "write" && frameOf(t, frames[cut-1]).Type == job.FrameCheckpoint {
			// The file was written, and what the tool said about it is lost.
			if diff := cmp.Diff(outcome.Completed, end.Completed); diff != "" {
				t.Errorf("cut after frame %d: outcome (-want +got):\n%s", cut, diff)
			}
			continue
		}
		if diff := cmp.Diff(want, timeless(t, journal.all())); diff != "" {
			t.Errorf("cut after frame %d: frames (-want +got):\n%s", cut, diff)
		}
		if diff := cmp.Diff(render(t, events, false), render(t, joined(t, events, later), false)); diff != "" {
			t.Errorf("cut after frame %d: events (-want +got):\n%s", cut, diff)
		}
		if diff := cmp.Diff(outcome, end); diff != "" {
			t.Errorf("cut after frame %d: outcome (-want +got):\n%s", cut, diff)
		}
	}
}

// joined are the events of two attempts that count.
func joined(t *testing.T, first, later []*job.Event) []*job.Event {
	t.Helper()
	back, ok := later[0].Data.(*job.ResumedData)
	if !ok {
		t.Fatalf("the attempt begins with %s", later[0].Type)
	}
	var all []*job.Event
	for _, e := range first {
		if e.Seq < back.VoidFromSeq {
			all = append(all, e)
		}
	}
	for i, e := range later {
		if want := later[0].Seq + int64(i); e.Seq != want {
			t.Errorf("event %d of the later attempt has seq %d, not %d", i, e.Seq, want)
		}
		if i > 0 {
			all = append(all, e)
		}
	}
	return all
}

// replayed asserts that a journal makes the same requests again, without a workspace.
func replayed(t *testing.T, frames [][]byte) {
	t.Helper()
	report, err := newRuntime(t, nil).Replay(t.Context(), (&memoryJournal{earlier: frames}).Earlier())
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	for _, line := range frames {
		if frameOf(t, line).Type == job.FrameMessage {
			requests++
		}
	}
	if report.Differs > 0 || len(report.Requests) != requests || !report.Ended {
		for _, q := range report.Requests {
			if !q.Equal() {
				t.Errorf("turn %d: recorded %+v, made %+v:\n%s", q.Turn, q.Recorded, q.Made, q.Body)
			}
		}
		t.Errorf("%d requests of %d, ended %v", len(report.Requests), requests, report.Ended)
	}
}
