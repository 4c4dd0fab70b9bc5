package sandbox

import (
	"bytes"
	"unicode/utf8"
)

// The bounds of the output that is kept of a command. One more line or byte and its beginning is dropped.
const (
	TailLines = 2000
	TailBytes = 51_200
)

// enough is what must be held to know whether the kept bytes begin with a whole character.
const enough = TailBytes + utf8.UTFMax

// Tail keeps the end of a stream in constant memory and counts the rest. The zero value is ready to use. It is not safe
// for concurrent use.
type Tail struct {
	held  []byte // the last bytes of the stream, at most 2*enough
	bytes int64
	lines int64 // complete ones
	open  bool  // the stream does not end with a newline
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	if n == 0 {
		return 0, nil
	}
	t.bytes += int64(n)
	t.lines += int64(bytes.Count(p, []byte{'\n'}))
	t.open = p[n-1] != '\n'
	if n > enough {
		p, t.held = p[n-enough:], t.held[:0]
	}
	if len(t.held)+len(p) > 2*enough {
		t.held = t.held[:copy(t.held, t.held[len(t.held)-enough:])]
	}
	t.held = append(t.held, p...)
	return n, nil
}

// Kept returns the end of the stream: at most TailLines lines and TailBytes bytes. It begins with a whole character, in
// the middle of a line only if that line alone is longer than TailBytes. The bytes are as they came, valid text or not.
func (t *Tail) Kept() []byte {
	kept := t.held
	if len(kept) > TailBytes {
		kept = kept[len(kept)-TailBytes:]
		kept = wholeLines(kept, t.held[:len(t.held)-TailBytes])
	}
	return bytes.Clone(lastLines(kept, TailLines))
}

// wholeLines drops what is left of a line whose beginning was cut, or if there is no other line, what is left of a
// character. before is what stood in front.
func wholeLines(kept, before []byte) []byte {
	if before[len(before)-1] == '\n' {
		return kept
	}
	if i := bytes.IndexByte(kept, '\n'); i >= 0 && i+1 < len(kept) {
		return kept[i+1:]
	}
	for range utf8.UTFMax - 1 {
		if len(kept) == 0 || utf8.RuneStart(kept[0]) {
			break
		}
		kept = kept[1:]
	}
	return kept
}

// lastLines returns the last n lines of text; the newline at its end belongs to the last one.
func lastLines(text []byte, n int) []byte {
	end := len(text)
	if end > 0 && text[end-1] == '\n' {
		end--
	}
	for range n {
		i := bytes.LastIndexByte(text[:end], '\n')
		if i < 0 {
			return text
		}
		end = i
	}
	return text[end+1:]
}

// Bytes and Lines count the whole stream. A last line without a newline counts.
func (t *Tail) Bytes() int64 { return t.bytes }

// Lines counts the lines of the whole stream.
func (t *Tail) Lines() int64 {
	if t.open {
		return t.lines + 1
	}
	return t.lines
}
