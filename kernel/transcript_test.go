package kernel_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
)

var update = flag.Bool("update", false, "rewrite the expected events of the transcripts")

// TestTranscripts runs every testdata/transcripts/*.txtar: a job, what its model says, its workspace, and the events that
// must come out. A file holds
//
//	job.json       the spec, without providers and workspace (they are added here)
//	script.yaml    the fixture of the scripted model
//	source/…       files below the read-only root
//	out/…          files that the output directory begins with
//	events         what must be reported, one line an event
//	want/out/…     files that must exist afterwards, with their content
//
// In events the deltas of one try are joined, times and durations are left out, and spans stand for themselves only when
// job.json asks for them with metadata {"show": "spans"}.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runTranscript(t, file) })
		})
	}
}

func runTranscript(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spec := specFrom(t, archive)
	h, err := newRuntime(t, nil).Start(t.Context(), spec, job.Ports{})
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	checkStream(t, events, outcome)

	got := render(t, events, bytes.Contains(spec.Metadata["show"], []byte("spans")))
	if *update {
		setFile(archive, "events", got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(fileOf(archive, "events")), got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "want/out/"); ok {
			data, err := os.ReadFile(filepath.Join(spec.Workspace.OutDir, name))
			if err != nil || !bytes.Equal(data, f.Data) {
				t.Errorf("out/%s = %q, %v; want %q", name, data, err, f.Data)
			}
		}
	}
}

// checkStream asserts what holds for every stream of events.
func checkStream(t *testing.T, events []*job.Event, outcome job.Outcome) {
	t.Helper()
	if len(events) == 0 || events[0].Type != job.EventStarted {
		t.Fatalf("the first event is not %s: %d events", job.EventStarted, len(events))
	}
	open, requests := map[string]bool{}, map[string]bool{}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i+1, e.Seq)
		}
		if last := i == len(events)-1; e.Type.Terminal() != last {
			t.Errorf("event %d of %d is %s", i+1, len(events), e.Type)
		}
		switch d := e.Data.(type) {
		case *job.UsageData:
			if requests[d.Call.ID] {
				t.Errorf("two requests are called %s", d.Call.ID)
			}
			requests[d.Call.ID] = true
		case *job.ToolCallData:
			if open[d.CallID] {
				t.Errorf("call %s was announced twice", d.CallID)
			}
			open[d.CallID] = true
		case *job.ToolResultData:
			if !open[d.CallID] {
				t.Errorf("call %s has a result without an announcement, or two", d.CallID)
			}
			delete(open, d.CallID)
		}
	}
	for id := range open {
		t.Errorf("call %s has no result", id)
	}
	last := events[len(events)-1]
	if (last.Type == job.EventCompleted) != (outcome.Completed != nil) || (outcome.Completed == nil) == (outcome.Failed == nil) {
		t.Errorf("the last event is %s, the outcome %+v", last.Type, outcome)
	}
}

func specFrom(t *testing.T, archive *txtar.Archive) *job.Spec {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		if !strings.HasPrefix(f.Name, "source/") && !strings.HasPrefix(f.Name, "out/") {
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"source", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := scripted.FromYAML(fileOf(archive, "script.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return newSpec(t, dir, fileOf(archive, "job.json"), script)
}

func fileOf(archive *txtar.Archive, name string) []byte {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func setFile(archive *txtar.Archive, name, data string) {
	for i := range archive.Files {
		if archive.Files[i].Name == name {
			archive.Files[i].Data = []byte(data)
			return
		}
	}
	archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(data)})
}

// render writes one line an event, without what differs from run to run.
func render(t *testing.T, events []*job.Event, spans bool) string {
	t.Helper()
	var lines []string
	pending := map[string]string{}
	for _, e := range events {
		switch d := e.Data.(type) {
		case *job.MessageDeltaData:
			pending[fmt.Sprintf("%d.%d", d.Turn, d.Try)] += d.Text
			continue
		case *job.UsageData:
			lines = append(lines, drain(pending)...)
			lines = append(lines, "usage "+usageLine(d))
			continue
		case *job.SpanData:
			if spans {
				lines = append(lines, fmt.Sprintf("span %s %s < %s %s", d.ID[12:], d.Name, lastOf(d.ParentID, 4), d.Status))
			}
			continue
		}
		lines = append(lines, drain(pending)...)
		lines = append(lines, string(e.Type)+" "+stable(t, e.Data))
	}
	return strings.Join(lines, "\n") + "\n"
}

func lastOf(text string, n int) string { return text[max(len(text)-n, 0):] }

// drain returns a line for each try's joined deltas and forgets them.
func drain(pending map[string]string) []string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(pending)) {
		lines = append(lines, fmt.Sprintf("message.delta %s %q", key, pending[key]))
	}
	clear(pending)
	return lines
}

// usageLine renders usage; what was estimated depends on the wording of prompts and is left out.
func usageLine(d *job.UsageData) string {
	line := d.Call.ID
	if d.Call.Estimated {
		line += " estimated"
	} else {
		t := d.Call.Tokens
		line += fmt.Sprintf(" input=%d cacheRead=%d output=%d cost=%d", t.Input, t.CacheRead, t.Output, d.Call.CostMicroUSD)
	}
	line += fmt.Sprintf(" requests=%d turns=%d", d.Total.Requests, d.Total.Turns)
	if d.Call.Purpose == llm.PurposeCompaction {
		line += fmt.Sprintf(" compactions=%d purpose=compaction", d.Total.Compactions)
	}
	return line
}

// stable renders event data as JSON without durations, digests and the runtime's version.
func stable(t *testing.T, data any) string {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"durationMs", "bytes", "runtime", "definition", "spec", "tools"} {
		delete(fields, key)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}
