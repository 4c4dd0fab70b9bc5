package filetool

import (
	"sort"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// foldedText is a text in the form in which edits match approximately: compatibility characters in their plain form
// (full-width letters, ligatures), typographic quotes and dashes as ASCII, every kind of space as a plain one, and no
// blanks at line ends. Its positions can be led back to the original where a character begins.
type foldedText struct {
	text string
	// shifts are the places where the fold differs from the original, in order.
	shifts []shift
}

// shift is a stretch that was folded to something else: from [inFrom, inTo) to [outFrom, outTo).
type shift struct{ outFrom, outTo, inFrom, inTo int }

func fold(text string) *foldedText {
	f := &foldedText{}
	var b strings.Builder
	b.Grow(len(text))
	pos := 0
	for line := range strings.Lines(text) {
		f.foldLine(&b, line, pos)
		pos += len(line)
	}
	f.text = b.String()
	return f
}

// foldLine appends the fold of one line, which begins at pos of the original.
func (f *foldedText) foldLine(b *strings.Builder, line string, pos int) {
	body, isWhole := strings.CutSuffix(line, "\n")
	trimmed := strings.TrimRightFunc(body, unicode.IsSpace)
	if isASCII(trimmed) {
		b.WriteString(trimmed)
	} else {
		f.foldRunes(b, trimmed, pos)
	}
	if len(trimmed) < len(body) {
		f.shifts = append(f.shifts, shift{b.Len(), b.Len(), pos + len(trimmed), pos + len(body)})
	}
	if isWhole {
		b.WriteByte('\n')
	}
}

func (f *foldedText) foldRunes(b *strings.Builder, text string, pos int) {
	var iter norm.Iter
	iter.InitString(norm.NFKC, text)
	for !iter.Done() {
		from := iter.Pos()
		folded := strings.Map(plainRune, string(iter.Next()))
		for iter.Pos() == from && !iter.Done() { // one character became several pieces
			folded += strings.Map(plainRune, string(iter.Next()))
		}
		start := b.Len()
		b.WriteString(folded)
		if folded != text[from:iter.Pos()] {
			f.shifts = append(f.shifts, shift{start, b.Len(), pos + from, pos + iter.Pos()})
		}
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// plainRune maps typographic variants to what is typed on a keyboard.
func plainRune(r rune) rune {
	switch {
	case r >= '\u2018' && r <= '\u201b':
		return '\''
	case r >= '\u201c' && r <= '\u201f':
		return '"'
	case r >= '\u2010' && r <= '\u2015', r == '\u2212':
		return '-'
	case r >= 0x80 && unicode.Is(unicode.Zs, r):
		return ' '
	}
	return r
}

// original returns the place in the original of a position in the fold; end says that a match ends there, which then
// leaves out blanks that were dropped after it. It reports false within a character.
func (f *foldedText) original(pos int, end bool) (int, bool) {
	i := sort.Search(len(f.shifts), func(i int) bool { return f.shifts[i].outTo > pos || f.shifts[i].outFrom >= pos })
	// Shifts before i end at or before pos.
	in := pos
	if i > 0 {
		in = f.shifts[i-1].inTo + pos - f.shifts[i-1].outTo
	}
	if i == len(f.shifts) {
		return in, true
	}
	s := f.shifts[i]
	switch {
	case s.outFrom < pos:
		return 0, false
	case s.outFrom == pos && s.outTo == pos && !end:
		return s.inTo, true
	}
	return in, true
}

// findFolded returns the only place at which old matches approximately.
func (t *editText) findFolded(old string) (*span, error) {
	if t.folded == nil {
		t.folded = fold(t.text)
	}
	want := fold(old).text
	if strings.TrimSpace(want) == "" {
		return nil, t.notFound(old)
	}
	// Blanks dropped from the end of old stand for a line end, not for any text that goes on.
	last := old[strings.LastIndexByte(old, '\n')+1:]
	atLineEnd := last != "" && strings.TrimRightFunc(last, unicode.IsSpace) != last
	var found []span
	for at := 0; len(found) < maxFound; {
		i := strings.Index(t.folded.text[at:], want)
		if i < 0 {
			break
		}
		from, to := at+i, at+i+len(want)
		at = from + 1
		if atLineEnd && to < len(t.folded.text) && t.folded.text[to] != '\n' {
			continue
		}
		start, ok1 := t.folded.original(from, false)
		end, ok2 := t.folded.original(to, true)
		if ok1 && ok2 {
			found = append(found, span{start, end})
		}
	}
	switch len(found) {
	case 0:
		return nil, t.notFound(old)
	case 1:
		return &found[0], nil
	}
	positions := make([]int, len(found))
	for i, s := range found {
		positions[i] = s.from
	}
	return nil, refuse("oldText does not occur exactly and %s places are similar (%s); copy the text exactly, with enough of it to be unique",
		countWords(len(found)), t.lineList(positions))
}
