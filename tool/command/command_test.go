package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
)

func TestWordsOfAnEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		c      Command
		r      sandbox.Result
		want   string
		failed bool
	}{
		{"success", Command{}, sandbox.Result{Output: []byte("x\n"), Lines: 1, Bytes: 2}, "x\n", false},
		{"signal", Command{}, sandbox.Result{ExitCode: 137, Signal: "SIGKILL"}, "(no output)\n\n[exit code 137: ended by SIGKILL]", true},
		{"default time", Command{}, sandbox.Result{TimedOut: true}, "(no output)\n\n[timed out after 120 s: the command and everything that it started was ended]", true},
		{"part of a second", Command{Timeout: 1500 * time.Millisecond}, sandbox.Result{TimedOut: true}, "(no output)\n\n[timed out after 1.5 s: the command and everything that it started was ended]", true},
		{"end of the job", Command{}, sandbox.Result{Aborted: true}, "(no output)\n\n[ended before it was done: the job is over]", true},
		{"an answer", Command{Negative: "no"}, sandbox.Result{ExitCode: 1}, "(no output)\n\n[exit code 1: no]", false},
		{"no answer", Command{Negative: "no"}, sandbox.Result{ExitCode: 2}, "(no output)\n\n[exit code 2]", true},
		{"held", Command{}, sandbox.Result{Output: []byte("x"), Lines: 1, Bytes: 1, OutputHeld: true},
			"x\n\n[something that could not be ended still holds the output open; the rest of it was not awaited]", false},
		{"cut", Command{}, sandbox.Result{Output: []byte("a\nb\n"), Lines: 9, Bytes: 18, Truncated: true, ExitCode: 1}, "a\nb\n\n[kept last 2 of 9 lines]\n[exit code 1]", true},
	} {
		var result tool.Result
		tc.c.word(&result, &tc.r, nil, errors.New("the job is over"))
		if result.Text != tc.want || result.IsError != tc.failed {
			t.Errorf("%s: failed %v: %q, want %q", tc.name, result.IsError, result.Text, tc.want)
		}
	}
}

// FuzzClean asserts that no text that is shown can steer a terminal, and that text without such characters stays as it is.
func FuzzClean(f *testing.F) {
	for _, text := range []string{"plain\n", "\x1b[31mred\x1b[0m", "\x1b[", "\x1b[1;m", "a\r\nb\rc", "\xff\xc3", "\u202e\u200b\U000e0041", "\x9b2J", "é😀"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text := Clean(raw)
		if !utf8.ValidString(text) {
			t.Errorf("%q is not valid", text)
		}
		if at := strings.IndexFunc(text, unseen); at >= 0 {
			t.Errorf("%q holds %q", text, text[at:])
		}
		if again := Clean([]byte(text)); again != text {
			t.Errorf("%q becomes %q", text, again)
		}
	})
}

func TestALargeOutputDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := dir
	for range maxDepth + 2 {
		deep += "/d"
		if err := os.Mkdir(deep, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := look(t.Context(), dir, "")
	if !s.partial {
		t.Error("a directory that is too deep was looked at as a whole")
	}
	outputs, remarks := changes(&survey{}, s)
	if outputs != nil || len(remarks) != 1 || !strings.Contains(remarks[0], "not reported as outputs") {
		t.Errorf("outputs %v, remarks %q", outputs, remarks)
	}
}

func TestSurveysSkipAndFollowNothing(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{dir + "/a", dir + "/.git/x", dir + "/sub/.git/x", outside + "/hidden"} {
		if err := errors.Join(os.MkdirAll(name[:strings.LastIndexByte(name, '/')], 0o755), os.WriteFile(name, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(outside, dir+"/link"), os.Symlink(outside+"/hidden", dir+"/file-link")); err != nil {
		t.Fatal(err)
	}
	s := look(t.Context(), dir, "sub/.git")
	if got := fmt.Sprint(len(s.files)); got != "2" || s.files["a"] == (state{}) || s.files[".git/x"] == (state{}) {
		t.Errorf("files %v", s.files)
	}
}
