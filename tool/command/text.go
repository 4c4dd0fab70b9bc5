package command

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hozo-run/hozo/sandbox"
)

// output returns what is shown of a command's output, and a notice if that is not all of it. The text is bounded as
// sandbox.Tail says, also where cleaning has made it longer.
func output(r *sandbox.Result) (text string, notices []string) {
	var tail sandbox.Tail
	_, _ = tail.Write([]byte(Clean(r.Output))) // it never fails
	kept := tail.Kept()
	if !r.Truncated && int64(len(kept)) == tail.Bytes() {
		return string(kept), nil
	}
	lines := int64(bytes.Count(kept, []byte{'\n'}))
	if len(kept) > 0 && kept[len(kept)-1] != '\n' {
		lines++
	}
	if lines < r.Lines {
		return string(kept), []string{fmt.Sprintf("kept last %d of %d lines", lines, r.Lines)}
	}
	return string(kept), []string{fmt.Sprintf("kept last %d of %d bytes", len(kept), max(r.Bytes, tail.Bytes()))}
}

// Clean returns output as text that can be shown: valid UTF-8, lines that end with a newline only, without colours.
// Every other character that steers a terminal or that a reader cannot see (control characters, escape sequences,
// direction marks, zero-width and tag characters) is written as a Go escape, so that nothing is hidden by it.
func Clean(output []byte) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(output), "\uFFFD"), "\r\n", "\n")
	at := strings.IndexFunc(text, unseen)
	if at < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	for at >= 0 {
		b.WriteString(text[:at])
		text = text[at:]
		if n := colour(text); n > 0 {
			text = text[n:]
		} else {
			r, size := utf8.DecodeRuneInString(text)
			b.WriteString(escape(r))
			text = text[size:]
		}
		at = strings.IndexFunc(text, unseen)
	}
	b.WriteString(text)
	return b.String()
}

// unseen reports whether a character is written as an escape.
func unseen(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	case r < 0xad:
		return false
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x2028, r == 0x2029, r == 0x3164, r == 0xffa0:
		return true // they show as nothing, or as the end of a line, without being format characters
	}
	return unicode.Is(unicode.Cf, r) || r >= 0xe0100 && r <= 0xe01ef
}

func escape(r rune) string {
	switch {
	case r == '\r':
		return `\r`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// colour returns the length of the sequence at the beginning of text that sets colours, 0 if there is none.
func colour(text string) int {
	if !strings.HasPrefix(text, "\x1b[") {
		return 0
	}
	for i := 2; i < len(text); i++ {
		switch c := text[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && c != ':' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}
