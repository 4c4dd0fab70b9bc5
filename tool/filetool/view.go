package filetool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"
)

// countBytes is how much of a file is read beyond the lines shown, to tell how many lines follow.
const countBytes = 64 << 20

// errNUL says that the lines to show hold a NUL byte.
var errNUL = errors.New("the text holds a NUL byte")

// view is a range of lines of a text that passes by in blocks. It keeps only the lines to show.
type view struct {
	// first counts from 1; most is how many lines are wanted at most.
	first, most int64

	// shown holds the lines, at most maxBytes of them.
	shown []byte
	// lines is how many lines shown holds, the unfinished last one included.
	lines int64
	// done says that shown reaches the end of the text; otherwise cut says what ended it.
	done bool
	cut  cutReason

	breaks int64 // line breaks seen
	ended  bool  // the last byte seen was a line break
	seen   int64 // bytes seen
	start  int   // where the last line of shown starts
	full   bool  // nothing more is to be shown
	beyond int64 // bytes seen since then
	long   int64 // length of the first line if it alone is too long
	inLong bool  // the blocks are still in that line
	more   bool  // counting was given up: there are more lines than total says
}

// cutReason says why a view ended before the text.
type cutReason int

const (
	cutNot cutReason = iota
	cutLines
	cutBytes
	cutFirstLine
)

// fill reads text until the lines are collected and those that follow are counted, within countBytes.
func (v *view) fill(ctx context.Context, text *textReader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		block, err := text.next()
		if len(block) > 0 {
			v.take(block)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if v.beyond > countBytes {
			v.more = true
			break
		}
	}
	if bytes.IndexByte(v.shown, 0) >= 0 {
		return errNUL
	}
	v.finish()
	return nil
}

// take works through one block.
func (v *view) take(block []byte) {
	v.seen += int64(len(block))
	v.ended = block[len(block)-1] == '\n'
	for len(block) > 0 && !v.full {
		if v.breaks+1 < v.first {
			block = v.skip(block)
			continue
		}
		end := bytes.IndexByte(block, '\n') + 1
		if end == 0 {
			end = len(block)
		}
		v.keep(block[:end])
		block = block[end:]
	}
	if len(block) == 0 {
		return
	}
	v.beyond += int64(len(block))
	if v.inLong {
		end := bytes.IndexByte(block, '\n')
		v.inLong = end < 0
		if end < 0 {
			end = len(block)
		}
		v.long += int64(end)
	}
	v.breaks += int64(bytes.Count(block, newline))
}

var newline = []byte{'\n'}

// skip passes over lines before the first one and returns the rest of block.
func (v *view) skip(block []byte) []byte {
	if n := int64(bytes.Count(block, newline)); v.breaks+n+1 < v.first {
		v.breaks += n
		return nil
	}
	for v.breaks+1 < v.first {
		block = block[bytes.IndexByte(block, '\n')+1:]
		v.breaks++
	}
	return block
}

// keep adds a line, or a part of one, to what is shown.
func (v *view) keep(part []byte) {
	if len(v.shown) == v.start {
		v.lines++
	}
	if len(v.shown)+len(part) > maxBytes {
		v.stopAtBytes(part)
		return
	}
	v.shown = append(v.shown, part...)
	if part[len(part)-1] != '\n' {
		return
	}
	v.breaks++
	v.start = len(v.shown)
	if v.lines == v.most {
		v.full, v.cut = true, cutLines
	}
}

// stopAtBytes ends the view before the line that does not fit, or within it if it is the first one.
func (v *view) stopAtBytes(part []byte) {
	v.full, v.cut = true, cutBytes
	switch {
	case v.start > 0:
		v.shown = v.shown[:v.start]
		v.lines--
	default:
		v.cut = cutFirstLine
		v.long = int64(len(v.shown))
		v.inLong = true
		v.shown = cutAtRune(append(v.shown, part[:maxBytes-len(v.shown)]...))
	}
	// The part itself counts as seen beyond the view.
	v.beyond += int64(len(part))
	if v.inLong {
		v.long += int64(len(bytes.TrimSuffix(part, newline)))
		v.inLong = part[len(part)-1] != '\n'
	}
	v.breaks += int64(bytes.Count(part, newline))
}

// cutAtRune drops an unfinished rune from the end of text, which is otherwise valid UTF-8.
func cutAtRune(text []byte) []byte {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

func (v *view) finish() {
	if v.cut == cutLines && v.last() == v.total() && !v.more {
		v.cut = cutNot
	}
	v.done = v.cut == cutNot
	if !v.done {
		v.shown = bytes.TrimSuffix(v.shown, newline)
	}
}

// total returns the number of lines of the text. A line break at the very end does not start another line.
func (v *view) total() int64 {
	if v.seen > 0 && !v.ended {
		return v.breaks + 1
	}
	return v.breaks
}

// last returns the number of the last line shown.
func (v *view) last() int64 { return v.first + max(v.lines, 1) - 1 }

// describe says what is missing and how to go on.
func (v *view) describe(remarks *notice) {
	if v.done {
		return
	}
	total := "more than " + plural(v.total(), "line")
	if !v.more {
		total = plural(v.total(), "line")
	}
	switch v.cut {
	case cutFirstLine:
		size := formatSize(v.long)
		if v.inLong && v.more {
			size = "more than " + size
		}
		remarks.add("Line %d alone has %s; this is its beginning. grep finds a place within it", v.first, size)
		if v.total() > v.first {
			remarks.add("The next line is offset=%d", v.first+1)
		}
		return
	case cutBytes:
		remarks.add("Lines %d-%d of %s, cut at 50 KB", v.first, v.last(), total)
	default:
		remarks.add("Lines %d-%d of %s", v.first, v.last(), total)
	}
	remarks.add("Continue with offset=%d", v.last()+1)
}
