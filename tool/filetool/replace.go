package filetool

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// How edits are applied.
//
// Matching works on the text of the file with its line ends reduced to LF, so that a model need not know how a file ends
// its lines. Every position in that text has an exact place in the bytes of the file, and only the bytes between the two
// ends of a match are replaced; all others are copied. An edit must match exactly once. If it does not match exactly at
// all, it may match approximately, again only if there is one such place, and the result says so. Lines that oldText and
// newText share at their beginning and end are not touched either, so that their line ends survive in mixed files.

// editError is why edits were refused, in words for the model.
type editError struct{ message string }

func (e *editError) Error() string { return e.message }

func refuse(format string, args ...any) error { return &editError{fmt.Sprintf(format, args...)} }

// change is one edit with its place in the file.
type change struct {
	// index is the position of the edit in the call, line the first line of its match, counted from 1.
	index, line int
	// from and to is the match in bytes of the file, for the check of overlaps.
	from, to int
	// cutFrom and cutTo is the part of it that is replaced by text.
	cutFrom, cutTo int
	text           []byte
	fuzzy          bool
}

// edited is the outcome of all edits of a call.
type edited struct {
	before, after []byte
	changes       []change // by place
}

// applyEdits returns before with all edits made, or an *editError.
func applyEdits(before []byte, edits []replacement) (*edited, error) {
	t, err := newEditText(before, edits)
	if err != nil {
		return nil, err
	}
	made := &edited{before: before}
	for i, e := range edits {
		c, err := t.place(e)
		if err != nil {
			if len(edits) > 1 {
				return nil, refuse("edits[%d]: %v", i, err)
			}
			return nil, err
		}
		c.index = i
		made.changes = append(made.changes, c)
	}
	slices.SortStableFunc(made.changes, func(a, b change) int { return a.from - b.from })
	at := 0
	for i, c := range made.changes {
		if i > 0 && c.from < made.changes[i-1].to {
			return nil, refuse("edits[%d] and edits[%d] overlap; merge them into one edit", made.changes[i-1].index, c.index)
		}
		made.after = append(made.after, before[at:c.cutFrom]...)
		made.after = append(made.after, c.text...)
		at = c.cutTo
	}
	made.after = append(made.after, before[at:]...)
	if bytes.Equal(made.after, before) {
		return nil, refuse("the edits change nothing: newText is the same as the text that is there (line ends are kept as they are)")
	}
	return made, nil
}

// editText is a file prepared for matching.
type editText struct {
	raw []byte
	// bom is the length of a byte order mark, which no edit touches.
	bom int
	// text is raw without the mark and with its line ends as LF.
	text string
	// dropped holds the positions in text of the line ends that were CRLF.
	dropped []int
	// loneCR says that the file has no LF at all and ends its lines with CR.
	loneCR bool
	// folded is text in its approximate form, made when first needed.
	folded *foldedText
}

func newEditText(raw []byte, edits []replacement) (*editText, error) {
	if len(raw) == 0 {
		return nil, refuse("the file is empty; use write to fill it")
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return nil, refuse("the file is binary or UTF-16; only text in UTF-8 or ASCII can be edited")
	}
	if !utf8.Valid(raw) {
		for _, e := range edits {
			if strings.ContainsFunc(e.New, func(r rune) bool { return r >= utf8.RuneSelf }) {
				return nil, refuse("the file is not UTF-8, so that newText can only hold ASCII characters")
			}
		}
	}
	t := &editText{raw: raw}
	if bytes.HasPrefix(raw, []byte(byteOrderMark)) {
		t.bom = len(byteOrderMark)
	}
	body := raw[t.bom:]
	t.loneCR = bytes.IndexByte(body, '\n') < 0 && bytes.IndexByte(body, '\r') >= 0
	t.text = t.reduce(string(body), &t.dropped)
	return t, nil
}

const byteOrderMark = "\ufeff"

// reduce returns s with its line ends as LF. It notes the positions of those that were CRLF, if asked to.
func (t *editText) reduce(s string, dropped *[]int) string {
	if t.loneCR {
		return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	}
	if !strings.Contains(s, "\r\n") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for {
		before, after, found := strings.Cut(s, "\r\n")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if dropped != nil {
			*dropped = append(*dropped, b.Len())
		}
		b.WriteByte('\n')
		s = after
	}
}

// rawAt returns the position in the file of a position in text. That of a line end is before its CR.
func (t *editText) rawAt(pos int) int {
	before, _ := slices.BinarySearch(t.dropped, pos)
	return t.bom + pos + before
}

// span is a range of text.
type span struct{ from, to int }

// place finds where an edit belongs and what it changes there.
func (t *editText) place(e replacement) (change, error) {
	old := t.reduce(strings.TrimPrefix(e.Old, byteOrderMark), nil)
	text := t.reduce(e.New, nil)
	if strings.HasPrefix(e.Old, byteOrderMark) {
		text = strings.TrimPrefix(text, byteOrderMark)
	}
	switch {
	case old == "":
		return change{}, refuse("oldText is empty; give the text to replace")
	case strings.TrimSpace(old) == "":
		return change{}, refuse("oldText holds blanks and line breaks only; take some text around them too")
	}
	at, err := t.findExact(e.Old, old)
	fuzzy := false
	if err == nil && at == nil {
		at, err = t.findFolded(old)
		fuzzy = true
	}
	if err != nil {
		return change{}, err
	}
	c := change{line: t.lineOf(at.from), from: t.rawAt(at.from), to: t.rawAt(at.to), fuzzy: fuzzy}
	inner, rest := t.trimShared(*at, old, text)
	c.cutFrom, c.cutTo = t.rawAt(inner.from), t.rawAt(inner.to)
	c.text = t.withLineEnds(rest, inner, t.lineEnd(at.from))
	return c, nil
}

// withLineEnds returns text, which replaces the range at, with the line ends of the file: each line takes the end of the
// line whose place it takes, further lines take the end given.
func (t *editText) withLineEnds(text string, at span, further string) []byte {
	out := make([]byte, 0, len(text))
	pos := at.from
	for line := range strings.Lines(text) {
		body, isWhole := strings.CutSuffix(line, "\n")
		out = append(out, body...)
		if !isWhole {
			break
		}
		end := further
		if i := strings.IndexByte(t.text[pos:at.to], '\n'); i >= 0 {
			end = t.lineEnd(pos)
			pos += i + 1
		}
		out = append(out, end...)
	}
	return out
}

// maxFound bounds how many places are counted.
const maxFound = 100

// findExact returns the only place of old, nil if there is none. Among several that differ in their line ends the one
// that is byte for byte what the model gave counts alone.
func (t *editText) findExact(given, old string) (*span, error) {
	var found, same []int
	for at := 0; len(found) < maxFound; {
		i := strings.Index(t.text[at:], old)
		if i < 0 {
			break
		}
		found = append(found, at+i)
		if string(t.raw[t.rawAt(at+i):t.rawAt(at+i+len(old))]) == given {
			same = append(same, at+i)
		}
		at += i + 1
	}
	if len(same) == 1 {
		found = same
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &span{found[0], found[0] + len(old)}, nil
	}
	return nil, refuse("oldText occurs %s times (%s); take more of the text around it so that it is unique",
		countWords(len(found)), t.lineList(found))
}

func countWords(n int) string {
	if n >= maxFound {
		return fmt.Sprintf("at least %d", n)
	}
	return fmt.Sprint(n)
}

// lineList names the lines of the first few positions.
func (t *editText) lineList(positions []int) string {
	var lines []string
	for i, p := range positions {
		if i == 5 {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, fmt.Sprintf("line %d", t.lineOf(p)))
	}
	return strings.Join(lines, ", ")
}

func (t *editText) lineOf(pos int) int { return 1 + strings.Count(t.text[:pos], "\n") }

// lineEnd returns how the line at pos ends; an unfinished last line is taken to end like the one before.
func (t *editText) lineEnd(pos int) string {
	if t.loneCR {
		return "\r"
	}
	end := strings.IndexByte(t.text[pos:], '\n')
	if end >= 0 {
		end += pos
	} else if end = strings.LastIndexByte(t.text[:pos], '\n'); end < 0 {
		return "\n"
	}
	if _, crlf := slices.BinarySearch(t.dropped, end); crlf {
		return "\r\n"
	}
	return "\n"
}

// trimShared leaves out whole lines that the old and the new text share at their beginning and end. It returns the range
// that remains to be replaced, and by what. A match has as many lines as old, also an approximate one.
func (t *editText) trimShared(at span, old, text string) (span, string) {
	was, is := strings.SplitAfter(old, "\n"), strings.SplitAfter(text, "\n")
	there := strings.SplitAfter(t.text[at.from:at.to], "\n")
	for len(was) > 1 && len(is) > 1 && was[0] == is[0] {
		at.from += len(there[0])
		was, is, there = was[1:], is[1:], there[1:]
	}
	for len(was) > 1 && len(is) > 1 && was[len(was)-1] == is[len(is)-1] {
		at.to -= len(there[len(there)-1])
		was, is, there = was[:len(was)-1], is[:len(is)-1], there[:len(there)-1]
	}
	return at, strings.Join(is, "")
}

// notFound says that nothing matches, with the lines that come close.
func (t *editText) notFound(old string) error {
	want := ""
	for line := range strings.Lines(old) {
		if want = squeeze(line); want != "" {
			break
		}
	}
	var near []int
	pos := 0
	for line := range strings.Lines(t.text) {
		if squeeze(line) == want {
			near = append(near, pos)
		}
		pos += len(line)
	}
	switch {
	case !utf8.Valid(t.raw):
		return refuse("oldText does not occur in the file, which is not UTF-8: only its ASCII characters can be matched")
	case len(near) == 0:
		return refuse("oldText does not occur in the file; read the file and copy the text exactly, with its blanks and line breaks")
	}
	return refuse("oldText does not occur in the file; its first line is like %s apart from blanks or what follows; "+
		"read the file there and copy the text exactly", t.lineList(near))
}

// squeeze reduces every run of blanks to one.
func squeeze(line string) string { return strings.Join(strings.Fields(line), " ") }
