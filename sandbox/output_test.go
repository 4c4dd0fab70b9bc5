package sandbox

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 99) + "\n"
	for name, tc := range map[string]struct {
		in    string
		want  string
		lines int64
	}{
		"nothing":                  {"", "", 0},
		"all of a little":          {"a\nb", "a\nb", 2},
		"a newline at the end":     {"a\nb\n", "a\nb\n", 2},
		"2000 lines":               {strings.Repeat("a\n", 2000), strings.Repeat("a\n", 2000), 2000},
		"2001 lines":               {"first\n" + strings.Repeat("a\n", 2000), strings.Repeat("a\n", 2000), 2001},
		"2001 lines, the last cut": {strings.Repeat("a\n", 2000) + "b", strings.Repeat("a\n", 1999) + "b", 2001},
		"exactly all bytes":        {strings.Repeat(line, 512), strings.Repeat(line, 512), 512},
		"one byte too many":        {"y" + strings.Repeat(line, 512), strings.Repeat(line, 511), 512},
		"whole lines only":         {strings.Repeat(line, 600) + "z", strings.Repeat(line, 511) + "z", 601},
		"one line of 1 MB":         {strings.Repeat("x", 1_000_000), strings.Repeat("x", TailBytes), 1},
		"one line of 1 MB, ended":  {strings.Repeat("x", 1_000_000) + "\n", strings.Repeat("x", TailBytes-1) + "\n", 1},
		"whole characters":         {strings.Repeat("é", 50_000) + "a", strings.Repeat("é", TailBytes/2-1) + "a", 1},
		"long characters":          {strings.Repeat("𝄞", 50_000) + "a", strings.Repeat("𝄞", TailBytes/4-1) + "a", 1},
		"no characters at all":     {strings.Repeat("\x80", 60_000), strings.Repeat("\x80", TailBytes-3), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 7, 4096, 1 << 20} {
				var tail Tail
				for rest := []byte(tc.in); len(rest) > 0; {
					n := min(size, len(rest))
					if written, err := tail.Write(rest[:n]); written != n || err != nil {
						t.Fatal(written, err)
					}
					rest = rest[n:]
				}
				got := string(tail.Kept())
				if got != tc.want {
					t.Fatalf("in pieces of %d: %d bytes beginning with %.20q, want %d beginning with %.20q", size, len(got), got, len(tc.want), tc.want)
				}
				if tail.Bytes() != int64(len(tc.in)) || tail.Lines() != tc.lines {
					t.Errorf("in pieces of %d: counted %d bytes and %d lines", size, tail.Bytes(), tail.Lines())
				}
			}
		})
	}
}

func TestTailStaysSmall(t *testing.T) {
	t.Parallel()
	var tail Tail
	piece := bytes.Repeat([]byte("y\n"), 16<<10)
	for range 10_000 {
		_, _ = tail.Write(piece)
	}
	if cap(tail.held) > 4*TailBytes {
		t.Errorf("it holds %d bytes", cap(tail.held))
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("a\nb"), 1)
	f.Add([]byte("\xff\xc3\xa9\n"), 20_000)
	f.Fuzz(func(t *testing.T, text []byte, times int) {
		if times < 0 || times > 100_000 || len(text)*times > 1<<20 {
			return
		}
		all := bytes.Repeat(text, times)
		var tail Tail
		for rest := all; len(rest) > 0; {
			n := min(len(rest), 5_000)
			_, _ = tail.Write(rest[:n])
			rest = rest[n:]
		}
		kept := tail.Kept()
		if len(kept) > TailBytes || bytes.Count(bytes.TrimSuffix(kept, []byte("\n")), []byte("\n")) >= TailLines || !bytes.HasSuffix(all, kept) {
			t.Fatalf("kept %d bytes of %d", len(kept), len(all))
		}
		if utf8.Valid(all) && !utf8.Valid(kept) {
			t.Fatal("a character is cut")
		}
	})
}

func TestOutputIsInTheOrderInWhichItWasWritten(t *testing.T) {
	t.Parallel()
	s := open(t, Policy{})
	var seen bytes.Buffer
	c := bash("/", "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
	c.OnOutput = func(piece []byte) { seen.Write(piece) }
	r := run(t, s, c)
	const want = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
	if string(r.Output) != want || seen.String() != want || r.Truncated || r.Lines != 6 || r.Bytes != int64(len(want)) {
		t.Errorf("result: %+v, seen: %q", r, seen.String())
	}
}

func TestOutputFloodsAreCut(t *testing.T) {
	t.Parallel()
	s := open(t, Policy{})
	for name, tc := range map[string]struct {
		script string
		bytes  int64
		lines  int64
	}{
		"10 MB without a newline":  {"head -c 10000000 /dev/zero | tr '\\0' x", 10_000_000, 1},
		"100,000 lines":            {"yes | head -n 100000", 200_000, 100_000},
		"no text":                  {"head -c 1000000 /dev/urandom", 1_000_000, 0},
		"at once and then the end": {"head -c 60000 /dev/zero", 60_000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, s, bash("/", tc.script))
			if r.Bytes != tc.bytes || tc.lines != 0 && r.Lines != tc.lines || !r.Truncated || len(r.Output) > TailBytes || len(r.Output) == 0 {
				t.Errorf("%d bytes in %d lines, %d kept, truncated %t: code %d", r.Bytes, r.Lines, len(r.Output), r.Truncated, r.ExitCode)
			}
		})
	}
}

func TestOutputKeepsControlCharacters(t *testing.T) {
	t.Parallel()
	const text = "\x1b]0;title\a\x1b[2J\x1b]52;c;QQ==\a\xff\xfe\u202e\x00\x9b1m"
	dir := realTemp(t)
	writeFile(t, dir+"/text", text)
	if r := run(t, open(t, Policy{Write: []string{dir}}), bash(dir, "cat text")); string(r.Output) != text {
		t.Errorf("output: %q", r.Output)
	}
}

// TestEndlessOutputEndsWithTheTimeout also looks at what is kept of it meanwhile.
func TestEndlessOutputEndsWithTheTimeout(t *testing.T) {
	t.Parallel()
	c := bash("/", "yes")
	c.Timeout, c.Grace = 300*time.Millisecond, -1
	r := run(t, open(t, Policy{}), c)
	if !r.TimedOut || r.Bytes < TailBytes || !bytes.HasSuffix(r.Output, []byte("y\ny\n")) && !bytes.HasSuffix(r.Output, []byte("y\ny")) {
		t.Errorf("timed out %t, %d bytes", r.TimedOut, r.Bytes)
	}
}

// TestOutputThatIsHeldOpenIsNotAwaited holds the pipe from a process that no command could have started: this one.
func TestOutputThatIsHeldOpenIsNotAwaited(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString("hi\n"); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{}, 1)
	c := newCapture(r, func([]byte) { read <- struct{}{} })
	<-read
	var result Result
	c.finish(time.Nanosecond, &result)
	if !result.OutputHeld || string(result.Output) != "hi\n" {
		t.Errorf("result: %+v", result)
	}
}

func TestFilesOfTheCallerAreUsed(t *testing.T) {
	t.Parallel()
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	c := bash("/", "echo to the tail >&2; while read line; do echo \"<$line>\"; done")
	c.Stdin, c.Stdout = in, out
	p, err := open(t, Policy{}).Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	if _, err := feed.WriteString("a\nb\n"); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	got := make([]byte, 8)
	if n, err := answers.Read(got); err != nil || !strings.HasPrefix("<a>\n<b>\n", string(got[:n])) {
		t.Errorf("%q, %v", got[:n], err)
	}
	if r := p.Wait(); string(r.Output) != "to the tail\n" || r.ExitCode != 0 {
		t.Errorf("result: %+v", r)
	}
	<-p.Done()
}

func TestEnvironmentIsBuiltFromNothing(t *testing.T) {
	t.Parallel()
	got := Environment("/tmp/x", "LANG=de_DE.UTF-8", "GIT_PAGER=cat")
	text := strings.Join(got, "\n")
	for _, want := range []string{"PATH=" + SearchPath, "HOME=/tmp/x", "TMPDIR=/tmp/x", "GIT_CONFIG_NOSYSTEM=1", "LANG=de_DE.UTF-8", "GIT_PAGER=cat"} {
		if strings.Count("\n"+text+"\n", "\n"+want+"\n") != 1 {
			t.Errorf("%q is not there once:\n%s", want, text)
		}
	}
	if strings.Contains(text, "LANG=C.UTF-8") {
		t.Error("an entry that is given does not replace its default")
	}
}
