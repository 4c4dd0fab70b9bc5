package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheckObjectNamesKindAndPositionButNotTheText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"cut", `{"a":1`, "not JSON: no comma or closing bracket at byte 6"},
		{"cut in a string", `{"a":"secret`, "not JSON: an open string at byte 12"},
		{"a raw line feed in a string", "{\"a\":\"secret\nx\"}", "not JSON: a control character in a string at byte 12"},
		{"a trailing comma", `{"a":1,}`, "not JSON: a comma before a closing bracket at byte 7"},
		{"a bad escape", `{"a":"\x"}`, "not JSON: a bad escape in a string at byte 7"},
		{"two values", `{} {}`, "not JSON: text after the value at byte 3"},
		{"an array", `[1]`, "JSON, but not an object, at byte 0"},
		{"a string", `"secret"`, "JSON, but not an object, at byte 0"},
		{"a bare word", `secret`, "not JSON: an unexpected character at byte 0"},
		{"a missing colon", `{"a" 1}`, "not JSON: no colon after a key at byte 5"},
		{"a bare key", `{a:1}`, "not JSON: no key at byte 1"},
		{"a bad number", `{"a":01}`, "not JSON: a bad number at byte 7"},
		{"nothing", ``, "not JSON: unexpected end at byte 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := CheckObject([]byte(tt.in))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the text: %v", err)
			}
		})
	}
	if err := CheckObject([]byte(" {\"a\": [1, {\"b\": null}], \"c\": \"\\u00e4\"}\n")); err != nil {
		t.Error(err)
	}
}

func TestNestingIsBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":[`, 100_000)
	if err := CheckObject([]byte(deep)); !errors.Is(err, ErrSyntax) {
		t.Errorf("error %v, want ErrSyntax", err)
	}
	if err := CheckObject([]byte(`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`)); err != nil {
		t.Error(err)
	}
}

func TestIntTakesNumbersOnly(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{"5": 5, "-7": -7, "1e3": 1000, "2.9": 2, `"5"`: -1, "null": -1, "{}": -1,
		"1e300": -1, "9223372036854775807": 1<<63 - 1} {
		var l Lexer
		l.Reset([]byte(in))
		n, ok := l.Int()
		if !ok {
			n = -1
		}
		if n != want || l.End() != nil {
			t.Errorf("%s: %d, error %v; want %d", in, n, l.End(), want)
		}
	}
}

// FuzzLexer checks that the lexer takes exactly what encoding/json takes, and reads the same strings.
func FuzzLexer(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e+3,"x\u00e4\ud83d\ude00\ud83d",true,false,null]}`, `[[],{}, "" ]`, `01`, `1.`, `"\`, `{"a"}`,
		`{,}`, `[1,]`, "\"\x7f\xff\"", ` `, `nul`, `-`, `"\u12"`, `{"a":1 "b":2}`, `[1 2]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var l Lexer
		l.Reset(in)
		l.Skip()
		err := l.End()
		if depth := bytes.Count(in, []byte("[")) + bytes.Count(in, []byte("{")); depth > maxDepth {
			return
		}
		if valid := json.Valid(in); valid != (err == nil) {
			t.Fatalf("valid %v, error %v", valid, err)
		}
		var text string
		if err == nil && json.Unmarshal(in, &text) == nil && bytes.HasPrefix(bytes.TrimSpace(in), []byte(`"`)) {
			l.Reset(in)
			if got := Unquote(l.String()); canonical(got) != canonical(text) || !utf8.ValidString(got) {
				t.Errorf("read %q, want %q", got, text)
			}
		}
	})
}

// canonical makes runs of replacement marks equal: how many marks bad bytes become is not defined.
func canonical(text string) string {
	for strings.Contains(text, "\uFFFD\uFFFD") {
		text = strings.ReplaceAll(text, "\uFFFD\uFFFD", "\uFFFD")
	}
	return text
}

func TestMembers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, keys string
		ok         bool
	}{
		{`{}`, "", true},
		{`{"a":1, "b" : {"x":[]},"c":null}`, "a b c", true},
		{`[1,{"a":2}]`, "", true},
		{`"a"`, "", true},
		{`{"a":1,}`, "a", false},
		{`{"a":1`, "a", false},
		{`{"a" 1}`, "", false},
	} {
		var l Lexer
		l.Reset([]byte(tt.text))
		var keys []string
		for key := range l.Members() {
			keys = append(keys, string(key))
			l.Skip()
		}
		if got := strings.Join(keys, " "); got != tt.keys || (l.End() == nil) != tt.ok {
			t.Errorf("%s: keys %q, error %v; want %q, sound %v", tt.text, got, l.Err(), tt.keys, tt.ok)
		}
	}
}
