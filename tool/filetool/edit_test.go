package filetool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool"
)

func TestEditReplacesExactly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, before string
		edits        []replacement
		after        string
	}{
		{"one place", "a b c\n", []replacement{{"b", "B"}}, "a B c\n"},
		{"several places in any order", "one\ntwo\nthree\n", []replacement{{"three", "3"}, {"one", "1"}}, "1\ntwo\n3\n"},
		{"an edit never sees the text of another", "a b\n", []replacement{{"a", "b"}, {"b", "a"}}, "b a\n"},
		{"neighbours", "ab", []replacement{{"a", "x"}, {"b", "y"}}, "xy"},
		{"deletion", "keep\ndrop\nkeep2\n", []replacement{{"drop\n", ""}}, "keep\nkeep2\n"},
		{"dollar signs are plain text", "x\n", []replacement{{"x", "$1\\0"}}, "$1\\0\n"},
		{"CRLF file, LF text", "a\r\nb\r\nc\r\n", []replacement{{"a\nb", "a\nx\nb"}}, "a\r\nx\r\nb\r\nc\r\n"},
		{"CRLF text, LF file", "a\nb\n", []replacement{{"a\r\nb", "b\r\na"}}, "b\na\n"},
		{"mixed line ends stay with their lines", "a\r\nb\nc\r\nd\n", []replacement{{"a\nb\nc\nd", "a\nB\nc\nd"}}, "a\r\nB\nc\r\nd\n"},
		{"each line keeps its own line end", "a\r\nb\nc\r\nd\n", []replacement{{"a\nb\nc\nd", "A\nB\nC\nD"}}, "A\r\nB\nC\r\nD\n"},
		{"a line end is replaced as a whole", "a\r\nb\r\n", []replacement{{"\nb", "\nB"}}, "a\r\nB\r\n"},
		{"joined lines lose the whole line end", "a\r\nb\r\n", []replacement{{"a\nb", "ab"}}, "ab\r\n"},
		{"old Mac line ends", "a\rb\rc", []replacement{{"a\nb", "a\nx\nb"}}, "a\rx\rb\rc"},
		{"byte order mark", "\ufeffa\nb\n", []replacement{{"a\n", "A\n"}}, "\ufeffA\nb\n"},
		{"byte order mark in oldText", "\ufeffa\n", []replacement{{"\ufeffa", "\ufeffA"}}, "\ufeffA\n"},
		{"exact beats similar", "“x”\n\"x\"\n", []replacement{{"\"x\"", "y"}}, "“x”\ny\n"},
		{"the same bytes beat other line ends", "a\nb\r\na\r\nb", []replacement{{"a\r\nb", "x"}}, "a\nb\r\nx"},
		{"bytes that are no UTF-8 stay", "caf\xe9 a\n", []replacement{{"a\n", "b\n"}}, "caf\xe9 b\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.put(t, "out/f", tt.before)
			got := d.call(t, newEdit(), args{"path": "f", "edits": tt.edits})
			if got.IsError || d.content(t, "out/f") != tt.after {
				t.Errorf("file %q, want %q; result %q", d.content(t, "out/f"), tt.after, got.Text)
			}
			want := []tool.Output{{Path: "f", Bytes: int64(len(tt.after))}}
			if diff := cmp.Diff(want, got.Outputs); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(got.Text, "exactly") {
				t.Errorf("an exact match is called approximate: %q", got.Text)
			}
		})
	}
}

func TestEditMatchesApproximatelyOnlyIfUniqueAndSaysSo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, before string
		edit         replacement
		after        string
	}{
		{"typographic quotes", "say “hi” ‘you’\nrest “q”\n", replacement{"say \"hi\" 'you'", "say nothing"}, "say nothing\nrest “q”\n"},
		{"dashes and spaces", "a\u2014b\u00a0c\n", replacement{"a-b c", "x"}, "x\n"},
		{"full-width letters", "ＡＢＣ = １\n", replacement{"ABC = 1", "ABC = 2"}, "ABC = 2\n"},
		{"blanks at line ends", "a  \nb\t\nc\n", replacement{"a\nb\nc", "a\nb\nX"}, "a  \nb\t\nX\n"},
		{"blanks at line ends of oldText", "a\nb\n", replacement{"a \nb", "x"}, "x\n"},
		{"decomposed letters", "cafe\u0301 x\n", replacement{"café x", "tea"}, "tea\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.put(t, "out/f", tt.before)
			got := d.call(t, newEdit(), args{"path": "f", "edits": []replacement{tt.edit}})
			if got.IsError || d.content(t, "out/f") != tt.after {
				t.Errorf("file %q, want %q; result %q", d.content(t, "out/f"), tt.after, got.Text)
			}
			if !strings.Contains(got.Text, "did not match exactly") {
				t.Errorf("result does not say that the match was approximate: %q", got.Text)
			}
		})
	}
}

func TestEditRefusalsLeaveTheFileAlone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, before string
		edits        []replacement
		says         string
	}{
		{"no match", "abc\n", []replacement{{"x", "y"}}, "does not occur"},
		{"no match, with a similar line", "\tif a {\n\t}\n", []replacement{{"  if a {\n  }", "y"}}, "line 1"},
		{"two matches", "a\nb\na\n", []replacement{{"a", "c"}}, "2 times (line 1, line 3)"},
		{"overlapping matches", "aaa\n", []replacement{{"aa", "b"}}, "2 times"},
		{"two similar places", "“x”\n”x“\n", []replacement{{"\"x\"", "y"}}, "2 places are similar"},
		{"empty oldText", "a\n", []replacement{{"", "b"}}, "oldText is empty"},
		{"blank oldText", "a  b\n", []replacement{{"  ", " "}}, "blanks and line breaks only"},
		{"overlapping edits", "abc\n", []replacement{{"ab", "x"}, {"bc", "y"}}, "edits[0] and edits[1] overlap"},
		{"the same edit twice", "abc\n", []replacement{{"b", "x"}, {"b", "x"}}, "overlap"},
		{"one of two fails", "abc\n", []replacement{{"a", "x"}, {"z", "y"}}, "edits[1]"},
		{"no change", "abc\n", []replacement{{"b", "b"}}, "change nothing"},
		{"empty file", "", []replacement{{"a", "b"}}, "file is empty"},
		{"binary file", "a\x00b", []replacement{{"a", "b"}}, "binary"},
		{"letters into a file of another encoding", "caf\xe9 a\n", []replacement{{"a\n", "é\n"}}, "not UTF-8"},
		{"letters that the file holds in another encoding", "caf\xe9\n", []replacement{{"café", "tea"}}, "not UTF-8"},
		{"blanks at the end of oldText are no wildcard", "returned\n", []replacement{{"return ", "x"}}, "does not occur"},
		{"no edits", "a\n", []replacement{}, "edits is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.put(t, "out/f", tt.before)
			got := d.call(t, newEdit(), args{"path": "f", "edits": tt.edits})
			if !got.IsError || !strings.Contains(got.Text, tt.says) {
				t.Errorf("got error %v, %q; want %q", got.IsError, got.Text, tt.says)
			}
			if d.content(t, "out/f") != tt.before || got.Outputs != nil {
				t.Errorf("the file was changed to %q", d.content(t, "out/f"))
			}
		})
	}
}

func TestEditTakesTheFormsThatModelsSend(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]args{
		"list":              {"edits": []replacement{{"a", "b"}}},
		"list as JSON text": {"edits": `[{"oldText":"a","newText":"b"}]`},
		"one object":        {"edits": replacement{"a", "b"}},
		"object as text":    {"edits": `{"oldText":"a","newText":"b"}`},
		"beside the path":   {"oldText": "a", "newText": "b"},
		"remarks in items":  {"edits": []args{{"oldText": "a", "newText": "b", "why": "c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.put(t, "out/f", "a\n")
			a["path"] = "f"
			if got := d.call(t, newEdit(), a); got.IsError || d.content(t, "out/f") != "b\n" {
				t.Errorf("got %q", got.Text)
			}
		})
	}
}

func TestEditShowsADiff(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var before strings.Builder
	for i := range 30 {
		before.WriteString(strings.Repeat("x", i+1) + "\n")
	}
	d.put(t, "out/f", before.String())
	got := d.call(t, newEdit(), args{"path": "f", "edits": []replacement{
		{"\nxxxxx\n", "\nfive\nand\n"}, {"\n" + strings.Repeat("x", 20) + "\n", "\n"}, {"\nxx\n", "\ntwo\n"}}})
	want := `Replaced 3 blocks in "f" in the output directory.

  1 x
- 2 xx
+ 2 two
  3 xxx
  4 xxxx
- 5 xxxxx
+ 5 five
+ 6 and
  7 xxxxxx
  8 xxxxxxx
  9 xxxxxxxx
...
 18 xxxxxxxxxxxxxxxxx
 19 xxxxxxxxxxxxxxxxxx
 20 xxxxxxxxxxxxxxxxxxx
-20 xxxxxxxxxxxxxxxxxxxx
 21 xxxxxxxxxxxxxxxxxxxxx
 22 xxxxxxxxxxxxxxxxxxxxxx
 23 xxxxxxxxxxxxxxxxxxxxxxx
`
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Error(diff)
	}
}

func TestEditShowsAtMostSoMuchOfADiff(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "out/f", "mark\n")
	long := strings.Repeat("é", 1000) + "\n"
	got := d.call(t, newEdit(), args{"path": "f", "edits": []replacement{{"mark\n", strings.Repeat(long, 500)}}})
	if lines := strings.Count(got.Text, "\n"); lines > diffMaxLines+5 || len(got.Text) > 60000 || !strings.Contains(got.Text, "381 more lines of the diff") {
		t.Errorf("%d lines, %d bytes, end %q", lines, len(got.Text), got.Text[len(got.Text)-60:])
	}
}

func TestEditCountsManyMatches(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "out/f", strings.Repeat("x\n", 500))
	got := d.call(t, newEdit(), args{"path": "f", "edits": []replacement{{"x", "y"}}})
	if want := "at least 100 times (line 1, line 2, line 3, line 4, line 5, …)"; !strings.Contains(got.Text, want) {
		t.Errorf("got %q", got.Text)
	}
}

// FuzzEdit checks that only what was matched changes: the file after an edit is the file before with one stretch
// exchanged, and in a file with plain line ends an exact edit is a plain replacement.
func FuzzEdit(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "x")
	f.Add("a\r\nb\r\n", "a\nb", "a\nx\nb")
	f.Add("“q”\n", "\"q\"", "z")
	f.Add("aaa", "aa", "b")
	f.Add("\ufeffx \n", "x\n", "y\n")
	f.Add("a\rb", "\r", "\n")
	f.Add("ﬁ x", "f", "g")
	f.Add("é\u0301 a", "a", "\r\nb")
	f.Fuzz(func(t *testing.T, before, old, text string) {
		made, err := applyEdits([]byte(before), []replacement{{Old: old, New: text}})
		if err != nil {
			return
		}
		c := made.changes[0]
		if c.from > c.cutFrom || c.cutFrom > c.cutTo || c.cutTo > c.to {
			t.Fatalf("replaced [%d,%d) is not within the match [%d,%d)", c.cutFrom, c.cutTo, c.from, c.to)
		}
		if want := before[:c.cutFrom] + string(c.text) + before[c.cutTo:]; string(made.after) != want {
			t.Fatalf("bytes outside of the match changed: %q, want %q", made.after, want)
		}
		if !strings.Contains(before+old+text, "\r") && !strings.Contains(before+old+text, byteOrderMark) && !c.fuzzy {
			if want := strings.Replace(before, old, text, 1); string(made.after) != want {
				t.Fatalf("got %q, want %q", made.after, want)
			}
		}
		if c.fuzzy && !strings.Contains(before, "\r") && fold(before[c.from:c.to]).text != fold(strings.TrimPrefix(old, byteOrderMark)).text {
			t.Fatalf("%q was taken for %q", before[c.from:c.to], old)
		}
		made.diff()
	})
}
