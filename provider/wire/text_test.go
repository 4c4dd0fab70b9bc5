package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPiecesOfATextAreJoinedIntoWholeRunes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"plain", []string{"ab", "c"}, "ab|c"},
		{"a rune over two pieces", []string{"a\xf0\x9f", "\x99\x82b"}, "a|🙂b"},
		{"a rune over four pieces", []string{"\xf0", "\x9f", "\x99", "\x82"}, "|||🙂"},
		{"a pair of surrogates over two pieces", []string{`a\ud83d`, `\ude42b`}, "a|🙂b"},
		{"a pair of surrogates as bytes", []string{"\xed\xa0\xbd\xed", "\xb9\x82"}, "|🙂"},
		{"a high surrogate alone", []string{`\ud83d`, "x"}, "|\uFFFDx"},
		{"a low surrogate alone", []string{`\ude42`, "x"}, "\uFFFD|x"},
		{"two high surrogates", []string{`\ud83d\ud83d`, `\ude42`}, "\uFFFD|🙂"},
		{"bytes that are no text", []string{"a\xff", "b"}, "a\uFFFD|b"},
		{"a rune that is cut at the end", []string{"a\xe2\x82"}, "a|\uFFFD"},
		{"a high surrogate at the end", []string{`a\ud83d`}, "a|\uFFFD"},
		{"an overlong form", []string{"\xc0\xaf"}, "\uFFFD\uFFFD"},
		{"escapes", []string{`\"\\\/\b\f\n\r\t\u00e4\u0000`}, "\"\\/\b\f\n\r\tä\x00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var j joiner
			var scratch []byte
			var got []string
			for _, piece := range tt.pieces {
				got = append(got, string(j.join(unquote([]byte(piece), &scratch))))
			}
			if rest := j.flush(); len(rest) > 0 {
				// One mark for each byte or for the whole run: both are usual.
				got = append(got, canonical(string(rest)))
			}
			for _, piece := range got {
				if !utf8.ValidString(piece) {
					t.Errorf("%q is not valid UTF-8", piece)
				}
			}
			if text := strings.Join(got, "|"); text != tt.want {
				t.Errorf("%q, want %q", text, tt.want)
			}
		})
	}
}

func TestAppendStringIsJSONAndKeepsPrefixes(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "\"\\/\x00\x1f\x7f\n\r\t", "ä€🙂\u2028\u2029", "bad \xff\xed\xa0\x80 bytes", "<&>"} {
		var back string
		if err := json.Unmarshal(AppendString(nil, s), &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") &&
			canonical(back) != canonical(strings.ToValidUTF8(s, "\uFFFD")) {
			t.Errorf("%q became %q (%v)", s, back, err)
		}
		whole := string(AppendText(nil, s+"more"))
		if part := string(AppendText(nil, s)); !strings.HasPrefix(whole, part) {
			t.Errorf("the encoding %q of a prefix is no prefix of %q", part, whole)
		}
	}
}

// FuzzJoiner checks that a text comes out the same however it is cut, and always as valid UTF-8.
func FuzzJoiner(f *testing.F) {
	f.Add("a🙂b\xff\xed\xa0\xbd\xed\xb9\x82", 1)
	f.Add("\xf0\x9f\x99", 2)
	f.Add("\xed\xa0\xbd", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = max(size&7, 1)
		var j joiner
		whole := string(j.join([]byte(text)))
		whole += string(j.flush())
		var cut strings.Builder
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			piece := j.join([]byte(rest[:n]))
			if !utf8.Valid(piece) {
				t.Fatalf("%q is not valid UTF-8", piece)
			}
			cut.Write(piece)
			rest = rest[n:]
		}
		cut.Write(j.flush())
		if cut.String() != whole {
			t.Errorf("in pieces of %d: %q, whole %q", size, cut.String(), whole)
		}
		if utf8.ValidString(text) && whole != text {
			t.Errorf("%q became %q", text, whole)
		}
	})
}
