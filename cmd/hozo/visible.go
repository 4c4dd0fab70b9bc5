package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// visible returns text that is safe to show on a terminal. Text of models, tools and files may hold control sequences
// that move the cursor, write to the clipboard or change the title, and marks that show letters in another order than
// they have. All of these are written out as escapes; line breaks and tabs stay.
func visible(text string) string {
	clean := true
	for i := 0; i < len(text) && clean; i++ {
		c := text[i]
		clean = c >= ' ' && c < 0x7f || c == '\n' || c == '\t'
	}
	if clean {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r' && strings.HasPrefix(text[i+1:], "\n"):
			// A line end of two characters is one line end.
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case deceptive(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

// visibleLine is visible for text that must stay on one line.
func visibleLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", " ").Replace(visible(text))
}

// deceptive reports whether r is invisible and changes how a terminal or a reader takes the text around it: C1 controls,
// marks of direction, invisible spaces and breaks, and tags. The joiners that many scripts and emoji need are not.
func deceptive(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f,
		r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
		r == 0x200b, r == 0x2028, r == 0x2029, r >= 0x2060 && r <= 0x2064, r >= 0x206a && r <= 0x206f, r == 0xfeff,
		r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f, r == 0x00ad, r == 0x180e:
		return true
	}
	return false
}
