package jobproc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
)

func TestChildRefusesWhatIsNoSpec(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ input, want string }{
		"nothing":         {"", "no spec came: EOF"},
		"a cut line":      {`{"type":"spec"`, "no spec came: unexpected EOF"},
		"no message":      {"hello\n", `the first line must be a message of type \"spec\"`},
		"another message": {`{"type":"abort"}` + "\n", `the first line must be a message of type \"spec\"`},
		"unknown field":   {`{"type":"spec","spec":{"tusk":"x"}}` + "\n", `unknown field \"tusk\"`},
		"wrong type":      {`{"type":"spec","spec":{"task":7}}` + "\n", "the spec does not decode"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			code := jobproc.Child{Runtime: fakeRuntime{}, In: strings.NewReader(test.input), Out: &out}.Serve(t.Context())
			if code != job.ExitInvalidSpec {
				t.Errorf("exit code %d", code)
			}
			if line := out.String(); !strings.HasPrefix(line, `{"problems":[{`) || !strings.Contains(line, test.want) || strings.Count(line, "\n") != 1 {
				t.Errorf("output %q, want %q", line, test.want)
			}
		})
	}
}

// serve runs a child in this process and returns what it wrote and its exit code.
func serve(t *testing.T, child jobproc.Child, messages ...string) (string, int) {
	t.Helper()
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		for _, m := range messages {
			if _, err := io.WriteString(w, m+"\n"); err != nil {
				return
			}
		}
	}()
	var out bytes.Buffer
	child.Runtime, child.In = fakeRuntime{}, r
	if child.Out == nil {
		child.Out = &out
	}
	code := child.Serve(t.Context())
	return out.String(), code
}

func TestChildObeysMessages(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ message, want string }{
		"abort":                {`{"type":"abort","cause":"enough"}`, `"message":"enough"`},
		"no message":           {"stop", "sent a line that is no message"},
		"message of a journal": {`{"type":"ack"}`, `sent a message of type \"ack\", which this version does not know`},
		"drain":                {`{"type":"detach"}`, `sent a message of type \"detach\"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := serve(t, jobproc.Child{}, `{"type":"spec","spec":{"id":"j","task":"wait"}}`, test.message)
			if code != 130 || !strings.Contains(out, `"reason":"aborted"`) || !strings.Contains(out, test.want) {
				t.Errorf("exit code %d, output:\n%s", code, out)
			}
		})
	}
}

func TestChildExitCodeIsThatOfTheOutcome(t *testing.T) {
	t.Parallel()
	out, code := serve(t, jobproc.Child{}, `{"type":"spec","spec":{"id":"j","task":"answer yes"}}`)
	if code != 0 || !strings.Contains(out, `"answer":"yes"`) {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

// fullDisk takes n writes and then none.
type fullDisk struct{ n int }

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestChildAbortsItsJobWhenNobodyReads(t *testing.T) {
	t.Parallel()
	for _, task := range []string{"wait", "count 100"} {
		if _, code := serve(t, jobproc.Child{Out: &fullDisk{0}}, `{"type":"spec","spec":{"id":"j","task":"`+task+`"}}`); code != 1 {
			t.Errorf("%s: exit code %d", task, code)
		}
	}
}

func TestChildEndsItselfWhenItsJobDoesNot(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	ended := make(chan struct{})
	child := jobproc.Child{Runtime: stuckRuntime{ended}, In: r, Out: io.Discard, Grace: time.Millisecond, End: func() { close(ended) }}
	go func() {
		_, _ = io.WriteString(w, `{"type":"spec","spec":{}}`+"\n")
		w.Close()
	}()
	if code := child.Serve(t.Context()); code != 130 {
		t.Errorf("exit code %d", code)
	}
}

// stuckRuntime runs a job that ignores aborts and ends only with the process, for which ended stands.
type stuckRuntime struct{ ended chan struct{} }

func (s stuckRuntime) Start(context.Context, *job.Spec, job.Ports) (job.Handle, error) { return s, nil }

func (s stuckRuntime) Events() <-chan *job.Event {
	events := make(chan *job.Event)
	go func() {
		<-s.ended
		close(events)
	}()
	return events
}

func (s stuckRuntime) Discard()     {}
func (s stuckRuntime) Abort(string) {}
func (s stuckRuntime) Detach()      {}

func (s stuckRuntime) Wait() job.Outcome {
	<-s.ended
	return job.Outcome{Failed: &job.FailedData{Reason: job.ReasonAborted}}
}
