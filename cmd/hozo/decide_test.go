package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
)

func waits() []job.Wait {
	return []job.Wait{
		{CallID: "2.0", Tool: "write", Arguments: json.RawMessage(`{"path":"a.md"}`), Hash: "h0", WaitID: "w0"},
		{CallID: "2.1", Tool: "shell", Version: "1.2.0", Arguments: json.RawMessage(`{"command":"rm -rf \u003call\u003e"}`), Hash: "h1", WaitID: "w1"},
	}
}

func TestAPersonIsAskedAboutEachCall(t *testing.T) {
	t.Parallel()
	edit := func(_, file string) error { return os.WriteFile(file, []byte("{\"path\": \"b.md\"}\n"), 0o600) }
	for name, c := range map[string]struct {
		typed string
		edit  func(editor, file string) error
		want  []job.Decision
	}{
		"yes and no": {"y\nn\nnot today\n", nil, []job.Decision{
			{WaitID: "w0", Hash: "h0", Verdict: job.VerdictApprove}, {WaitID: "w1", Hash: "h1", Verdict: job.VerdictReject, Rationale: "not today"}}},
		"left waiting":         {"l\ny\n", nil, []job.Decision{{WaitID: "w1", Hash: "h1", Verdict: job.VerdictApprove}}},
		"withdrawn":            {"W\n\n", nil, []job.Decision{{WaitID: "w0", Hash: "h0", Verdict: job.VerdictWithdraw}}},
		"what is none":         {"maybe\nyes\nleave\n", nil, []job.Decision{{WaitID: "w0", Hash: "h0", Verdict: job.VerdictApprove}}},
		"the end of the input": {"", nil, nil},
		"edited": {"e\ny\nl\n", edit, []job.Decision{
			{WaitID: "w0", Hash: "h0", Verdict: job.VerdictApprove, Arguments: json.RawMessage(`{"path":"b.md"}`)}}},
		"an editor that fails": {"e\ny\nl\n", func(string, string) error { return errors.New("no such editor") }, []job.Decision{
			{WaitID: "w0", Hash: "h0", Verdict: job.VerdictApprove}}},
		"edited into what is none": {"e\ny\nl\n", func(_, file string) error { return os.WriteFile(file, []byte("[]"), 0o600) }, []job.Decision{
			{WaitID: "w0", Hash: "h0", Verdict: job.VerdictApprove}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var shown bytes.Buffer
			a := &asker{in: bufio.NewReader(strings.NewReader(c.typed)), out: &shown, edit: c.edit,
				getenv: func(string) string { return "editor" }}
			got, err := a.ask(waits(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("decisions (-want +got):\n%s", d)
			}
			if !strings.Contains(shown.String(), `"command": "rm -rf <all>"`) || !strings.Contains(shown.String(), "shell@1.2.0, call 2.1, wait w1") {
				t.Errorf("the calls were not shown whole:\n%s", shown.String())
			}
		})
	}
}

func TestWhatFlagsDecideIsNotAskedFor(t *testing.T) {
	t.Parallel()
	a := &asker{in: bufio.NewReader(strings.NewReader("y\n")), out: &bytes.Buffer{}}
	before := []job.Decision{{WaitID: "w0", Hash: "h0", Verdict: job.VerdictReject}}
	got, err := a.ask(waits(), before)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(append(before, job.Decision{WaitID: "w1", Hash: "h1", Verdict: job.VerdictApprove}), got); d != "" {
		t.Errorf("decisions (-want +got):\n%s", d)
	}
}

func TestArgumentsAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":"\u003cb\u003e \u0026"}`: "{\n  \"a\": \"<b> &\"\n}",
		`{"a":"\\u003c"}`:              "{\n  \"a\": \"\\\\u003c\"\n}",
		`{"a":"\u0007\n"}`:             "{\n  \"a\": \"\\u0007\\n\"\n}",
		"{\"a\":\"\u202e\"}":           "{\n  \"a\": \"\\u{202e}\"\n}",
		`{`:                            `{`,
	} {
		if got := wholeArguments(json.RawMessage(text)); got != want {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
}

func TestShellWordsAreReadAsOne(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"a.journal": "a.journal", "my job": "'my job'", "it's": `'it'\''s'`, "": "''", "$HOME": "'$HOME'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%q is written %s, want %s", word, got, want)
		}
	}
}
