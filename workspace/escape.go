package workspace

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escape returns name in a form that is safe to show: on one line, valid UTF-8, and without characters that a reader
// cannot see (control characters, direction marks, spaces other than the plain one, a space at either end). They are
// written as Go escapes, bytes that are no UTF-8 as \xff, and a backslash as \\, so that names stay distinct and
// Unescape can undo it. Every tool shows names through it.
func Escape(name string) string {
	if plain(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && size == 1, r == ' ' && (i == 0 || i == len(name)-1):
			b.WriteString(`\x` + string("0123456789abcdef"[name[i]>>4]) + string("0123456789abcdef"[name[i]&15]))
		case r == '\\':
			b.WriteString(`\\`)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// plain reports whether Escape leaves name alone; most names are printable ASCII.
func plain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < 0x20 || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return name == "" || name[0] != ' ' && name[len(name)-1] != ' '
}

// unescape undoes Escape. It reports false if text holds no escape or a malformed one.
func unescape(text string) (string, bool) {
	if !strings.Contains(text, `\`) {
		return "", false
	}
	var b []byte
	for rest := text; rest != ""; {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, 0)
		if err != nil {
			return "", false
		}
		if r < utf8.RuneSelf || !multibyte {
			b = append(b, byte(r))
		} else {
			b = utf8.AppendRune(b, r)
		}
		rest = tail
	}
	return string(b), true
}
