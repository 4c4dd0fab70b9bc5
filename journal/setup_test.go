package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// script makes the frames of a job.
type script struct {
	t *testing.T
	n int64
}

func (s *script) frame(kind job.FrameType, data any) []byte {
	s.t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.n++
	line, err := json.Marshal(job.Frame{V: job.FrameVersion, N: s.n, Seq: 2 * s.n, ActiveMS: s.n, Type: kind, Data: text})
	if err != nil {
		s.t.Fatal(err)
	}
	return line
}

func (s *script) spec() []byte {
	return s.frame(job.FrameSpec, job.SpecFrame{Runtime: "v1", JobID: "job-1", Digest: "d", Spec: json.RawMessage(`{"task":"Go."}`)})
}

func (s *script) message(turn int64, parts ...llm.Part) []byte {
	if len(parts) == 0 {
		parts = []llm.Part{llm.TextPart("Let me see.")}
	}
	return s.frame(job.FrameMessage, job.MessageFrame{Turn: turn, Try: 1, Purpose: llm.PurposeTurn,
		Response: llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Parts: parts}}})
}

func (s *script) finished(id, text string) []byte {
	return s.frame(job.FrameCallFinished, job.CallFinishedFrame{CallID: id, Text: text})
}

func (s *script) completed() []byte {
	return s.frame(job.FrameOutcome, job.OutcomeFrame{Completed: &job.CompletedData{Answer: "Done.", Outputs: []string{}}})
}

func call(id string) llm.Part {
	return llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, Name: "write"}}
}

// checkpoint describes files by their content.
func (s *script) checkpoint(turn int64, files map[string]string, removed ...string) []byte {
	c := job.CheckpointFrame{CallID: fmt.Sprintf("%d.0", turn), Turn: turn, Removed: removed}
	for path, content := range files {
		c.Files = append(c.Files, fileOf(path, content))
	}
	return s.frame(job.FrameCheckpoint, c)
}

func fileOf(path, content string) job.CheckpointFile {
	sum := sha256.Sum256([]byte(content))
	return job.CheckpointFile{Path: path, Size: int64(len(content)), Hash: hex.EncodeToString(sum[:])}
}

// add appends frames and waits until they are stored.
func add(t *testing.T, f *File, frames ...[]byte) {
	t.Helper()
	if err := tryAdd(f, frames...); err != nil {
		t.Fatal(err)
	}
}

func tryAdd(f *File, frames ...[]byte) error {
	var last <-chan error
	for _, frame := range frames {
		stored, err := f.Append(frame)
		if err != nil {
			return err
		}
		last = stored
	}
	return <-last
}

// created makes a journal in a new directory and closes it when the test ends.
func created(t *testing.T, o Options) *File {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "job.journal"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // tests that care close it themselves
	return f
}

func reopened(t *testing.T, f *File, o Options) *File {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(f.path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	return again
}

// texts collects frames.
func texts(t *testing.T, frames iter.Seq2[[]byte, error]) []string {
	t.Helper()
	var all []string
	for frame, err := range frames {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(frame))
	}
	return all
}

// lastError is the error that ends frames.
func lastError(frames iter.Seq2[[]byte, error]) error {
	for _, err := range frames {
		if err != nil {
			return err
		}
	}
	return nil
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fakeDisk counts what is asked of it and fails on demand. Sync waits for a value on each.
type fakeDisk struct {
	content   []byte
	syncs     atomic.Int64
	flushing  chan struct{} // gets a value when a flush begins, if not nil
	proceed   chan struct{} // lets a flush end, if not nil
	room      int           // bytes that fit; 0 is no limit
	syncError error
}

var errNoSpace = errors.New("no space left on device")

func (d *fakeDisk) Write(p []byte) (int, error) {
	if d.room > 0 && len(d.content)+len(p) > d.room {
		fits := d.room - len(d.content)
		d.content = append(d.content, p[:fits]...)
		return fits, errNoSpace
	}
	d.content = append(d.content, p...)
	return len(p), nil
}

func (d *fakeDisk) Sync() error {
	d.syncs.Add(1)
	if d.flushing != nil {
		d.flushing <- struct{}{}
		<-d.proceed
	}
	return d.syncError
}

func (d *fakeDisk) Truncate(size int64) error { d.content = d.content[:size]; return nil }
func (d *fakeDisk) Close() error              { return nil }

// onDisk is a journal on a fake disk.
func onDisk(d *fakeDisk, o Options) *File {
	f := &File{path: "fake", disk: d, options: o}
	f.start()
	return f
}
