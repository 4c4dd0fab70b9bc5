package filetool

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// What a diff shows at most.
const (
	diffContext   = 3
	diffMaxLines  = 120
	diffLineRunes = 200
)

// hunk is a run of whole lines before and after.
type hunk struct {
	from, to int // bytes of the file before
	after    []byte
}

// diff shows the changes for the model: "-12 text" for a line that went, "+12 text" for one that came, " 12 text" around
// them, with the line numbers before and after the change.
func (m *edited) diff() string {
	d := &diffWriter{before: m.before, width: len(fmt.Sprint(1 + max(bytes.Count(m.before, newline), bytes.Count(m.after, newline))))}
	hunks := m.hunks()
	for i, h := range hunks {
		next := len(m.before)
		if i+1 < len(hunks) {
			next = hunks[i+1].from
		}
		d.hunk(h, next)
	}
	if d.left > 0 {
		fmt.Fprintf(&d.out, "… %s of the diff are not shown\n", plural(int64(d.left), "more line"))
	}
	return d.out.String()
}

// hunks widens the changes to whole lines and joins those that share a line.
func (m *edited) hunks() []hunk {
	var hunks []hunk
	for _, c := range m.changes {
		from := lineStart(m.before, c.cutFrom)
		if n := len(hunks); n > 0 && from < hunks[n-1].to {
			h := &hunks[n-1]
			h.after = append(h.after[:len(h.after)-(h.to-c.cutFrom)], c.text...)
			h.finish(m.before, c.cutTo)
			continue
		}
		h := hunk{from: from, after: append(bytes.Clone(m.before[from:c.cutFrom]), c.text...)}
		h.finish(m.before, c.cutTo)
		hunks = append(hunks, h)
	}
	return hunks
}

// finish adds the rest of the line that the replaced bytes end in.
func (h *hunk) finish(before []byte, cutTo int) {
	h.to = cutTo
	atStart := cutTo == lineStart(before, cutTo) && (len(h.after) == 0 || h.after[len(h.after)-1] == '\n')
	if !atStart {
		end := bytes.IndexByte(before[cutTo:], '\n') + 1
		if h.to = cutTo + end; end == 0 {
			h.to = len(before)
		}
	}
	h.after = append(h.after, before[cutTo:h.to]...)
}

func lineStart(text []byte, pos int) int { return bytes.LastIndexByte(text[:pos], '\n') + 1 }

// diffWriter writes hunks in order.
type diffWriter struct {
	before []byte
	out    strings.Builder
	width  int
	// shown is where the part of before that has been written or passed ends, and oldLine and newLine count the lines up
	// to there.
	shown, oldLine, newLine int
	lines, left             int
}

// hunk writes the lines around and in h. next is where the following hunk begins.
func (d *diffWriter) hunk(h hunk, next int) {
	gap := splitLines(d.before[d.shown:h.from])
	skipped := 0
	if len(gap) > diffContext {
		skipped = len(gap) - diffContext
		if d.lines+d.left > 0 || skipped > 0 {
			d.put("...")
		}
	}
	d.oldLine += skipped
	d.newLine += skipped
	d.context(gap[skipped:])
	gone, came := splitLines(d.before[h.from:h.to]), splitLines(h.after)
	for len(gone) > 0 && len(came) > 0 && bytes.Equal(gone[0], came[0]) {
		d.context(gone[:1])
		gone, came = gone[1:], came[1:]
	}
	for _, line := range gone {
		d.oldLine++
		d.line('-', d.oldLine, line)
	}
	for _, line := range came {
		d.newLine++
		d.line('+', d.newLine, line)
	}
	after := splitLines(d.before[h.to:next])
	after = after[:min(len(after), diffContext)]
	d.context(after)
	d.shown = h.to
	for _, line := range after {
		d.shown += len(line)
	}
}

func (d *diffWriter) context(lines [][]byte) {
	for _, line := range lines {
		d.oldLine++
		d.newLine++
		d.line(' ', d.newLine, line)
	}
}

func (d *diffWriter) line(sign byte, number int, text []byte) {
	shown := []rune(strings.ToValidUTF8(string(bytes.TrimRight(text, "\r\n")), "\ufffd"))
	if len(shown) > diffLineRunes {
		shown = append(shown[:diffLineRunes], '…')
	}
	d.put(fmt.Sprintf("%c%*d %s", sign, d.width, number, string(shown)))
}

func (d *diffWriter) put(line string) {
	if d.lines == diffMaxLines {
		d.left++
		return
	}
	d.lines++
	d.out.WriteString(line)
	d.out.WriteByte('\n')
}

// splitLines returns the lines of text with their ends.
func splitLines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }
