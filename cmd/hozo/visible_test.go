package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestVisibleLeavesNothingThatATerminalObeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"plain text":           {"Grüße, 世界", "Grüße, 世界"},
		"line breaks and tabs": {"a\n\tb\r\nc", "a\n\tb\nc"},
		"carriage return":      {"good\rbad", `good\x0dbad`},
		"clear the screen":     {"\x1b[2J", `\x1b[2J`},
		"set the title":        {"\x1b]0;title\x07", `\x1b]0;title\x07`},
		"write the clipboard":  {"\x1b]52;c;aGk=\x1b\\", `\x1b]52;c;aGk=\x1b\`},
		"C1 as a character":    {"\u009b31m", `\u{9b}31m`},
		"C1 as a byte":         {"\x9b31m", `\x9b31m`},
		"right to left":        {"\u202egnp.exe", `\u{202e}gnp.exe`},
		"isolate":              {"\u2066a\u2069", `\u{2066}a\u{2069}`},
		"invisible space":      {"a\u200bb\ufeffc", `a\u{200b}b\u{feff}c`},
		"hidden tags":          {"a\U000e0041", `a\u{e0041}`},
		"joined emoji":         {"👩\u200d🔬", "👩\u200d🔬"},
		"no UTF-8":             {"a\xff\xc0b", `a\xff\xc0b`},
		"NUL and delete":       {"\x00\x7f", `\x00\x7f`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := visible(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[2J\u009b\u202e\xff\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := visible(text)
		if !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8", got)
		}
		for _, r := range got {
			if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || deceptive(r) {
				t.Errorf("%q holds %U", got, r)
			}
		}
		if line := visibleLine(text); strings.ContainsAny(line, "\n\t") {
			t.Errorf("%q is no single line", line)
		}
		if visible(got) != got {
			t.Errorf("%q changes when it is made visible again", got)
		}
	})
}

func TestBriefShowsWhatIsLookedForAndNoContent(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"path":"a b.txt"}`:                            `"a b.txt"`,
		`{"glob":"*.go","pattern":"TODO","path":"src"}`: "TODO src glob=*.go",
		`{"path":"x","content":"line\nline"}`:           "x content=(9 characters)",
		`{"edits":[{"old":"a"}],"n":12,"flag":true}`:    "edits=(1 value) flag=true n=12",
		`{"path":"\u001b[2J"}`:                          `\x1b[2J`,
		`{"big":` + strings.Repeat("9", 30) + `}`:       "big=" + strings.Repeat("9", 30),
		`[1]`: "",
		``:    "",
	}
	for input, want := range tests {
		if got := brief(json.RawMessage(input)); got != want {
			t.Errorf("%s: got %q, want %q", input, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
