package gittool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                               nil,
		"  log  -n\t3 ":                  {"log", "-n", "3"},
		`a 'b c' "d e"`:                  {"a", "b c", "d e"},
		`a''b"c"d`:                       {"abcd"},
		`'' ""`:                          {"", ""},
		`a\ b \'`:                        {"a b", "'"},
		`"a\"b\\c\d" '\n'`:               {`a"b\c\d`, `\n`},
		`'$HOME ` + "`id`" + `; x' "$x"`: {"$HOME `id`; x", "$x"},
		`foo$ *.go HEAD^ @{u} ~x #y`:     {"foo$", "*.go", "HEAD^", "@{u}", "~x", "#y"},
		"a\\\nb":                         {"ab"},
		"'a\nb'":                         {"a\nb"},
		"log\n":                          {"log"},
		"é 'ü😀'":                         {"é", "ü😀"},
	} {
		got, err := split(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"a;b", "a&b", "a|b", "a<b", "a>b", "a(b", "a)b", "a`b", "$a", "${a}", "a\nb", "'a", `"a`, `a\`, "$(a)", "a\r\nb"} {
		if got, err := split(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// FuzzParse asserts for any text that what would be given to git has no option that was not on the list.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"log --oneline -n 3 -- a", "grep -lOx y", "diff '--output=x'", "git show HEAD:a", "-c a=b log", "log -S -x", `a "b\`, "branch --merged x", "stash push -m x", "commit -m 'a b'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := split(text)
		if err != nil {
			return
		}
		c := offered(true)()
		r, err := c.parse(words)
		if err != nil {
			return
		}
		allowed := parseForms(r.subcommand.options)
		for _, o := range r.options {
			name, _, _ := strings.Cut(o, "=")
			_, long := allowed.byName[name]
			short := len(o) > 1 && o[1] != '-' && (allowed.count && o[1] >= '0' && o[1] <= '9' || has(allowed, o[:2]) || has(allowed, o))
			if !strings.HasPrefix(o, "-") || !long && !short {
				t.Errorf("%q: option %q", text, o)
			}
		}
		for _, o := range append(r.operands, r.paths...) {
			if o == "" || o[0] == '-' {
				t.Errorf("%q: operand %q", text, o)
			}
		}
	})
}

func has(f forms, name string) bool {
	_, ok := f.byName[name]
	return ok
}
