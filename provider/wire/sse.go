package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Event is one server-sent event.
type Event struct {
	// Name is the value of the event field, empty if the event has none.
	Name []byte
	// Data is the joined value of its data fields. It is never nil: events without data are not reported.
	Data []byte
}

// Events reads server-sent events as the WHATWG HTML standard defines them: lines end with LF, CR or CRLF, one space
// after the colon is removed, comments and unknown fields are skipped, and an event that the end of the stream cuts off
// is dropped. An event is returned as soon as its blank line is seen, without reading further.
//
// Names and data are slices of the reader's buffer and are valid until the next call of Next.
type Events struct {
	src io.Reader
	buf []byte
	// buf[start:end] is unread input; buf[start:next] are the finished lines of the event being read. scanned counts
	// the bytes after next that are known to hold no line end.
	start, next, end, scanned int
	// name and data are offsets into buf[start:].
	name, data span
	lines      int
	joined     []byte
	begun      bool
	skipLF     bool
	// alien counts lines that belong to no event stream, seen the events: together they tell a web page from a stream.
	alien, seen int
	// stray are those lines, kept as long as they may be the report of an error that came without a field name.
	stray []byte
	err   error
}

type span struct{ from, to int }

const (
	eventBuffer = 8 << 10
	// keptBuffer is the largest buffer that goes back into the pool.
	keptBuffer = 64 << 10
)

var eventBuffers = sync.Pool{New: func() any { b := make([]byte, eventBuffer); return &b }}

// Reset makes e read src from its beginning. The zero value must be reset before use; Close gives its buffer back.
func (e *Events) Reset(src io.Reader) {
	buf := e.buf
	if buf == nil {
		buf = *eventBuffers.Get().(*[]byte)
	}
	*e = Events{src: src, buf: buf, joined: e.joined[:0]}
}

// Close returns the buffer to the pool; slices from Next are invalid after it.
func (e *Events) Close() {
	if e.buf != nil && len(e.buf) <= keptBuffer {
		buf := e.buf
		eventBuffers.Put(&buf)
	}
	e.buf, e.src = nil, nil
}

// Alien reports whether the input so far was no event stream at all, such as an HTML page.
func (e *Events) Alien() bool { return e.seen == 0 && e.alien > 0 }

// Next returns the next event that has data. The error is io.EOF at the end of the input, an error that wraps
// ErrTooLarge for an event above MaxEvent, or the error of the source. Where the input held the report of an error as plain
// JSON between its events, as some servers write it, the *llm.Error for that report comes in place of io.EOF.
func (e *Events) Next() (Event, error) {
	e.start = e.next
	e.clear()
	for {
		line, ok := e.line()
		if !ok {
			if err := e.fill(); err != nil {
				return Event{}, e.ended(err)
			}
			continue
		}
		if line.from != line.to {
			e.field(line)
			if e.lines == 0 && e.name == (span{}) {
				// Comments without a blank line must not pile up.
				e.start = e.next
			}
			continue
		}
		if e.lines > 0 {
			e.seen++
			return e.event(), nil
		}
		e.start = e.next
		e.clear()
	}
}

func (e *Events) clear() {
	e.name, e.data, e.lines, e.joined = span{}, span{}, 0, e.joined[:0]
}

func (e *Events) event() Event {
	base := e.buf[e.start:]
	ev := Event{Name: base[e.name.from:e.name.to], Data: base[e.data.from:e.data.to]}
	if e.lines > 1 {
		ev.Data = e.joined
	}
	return ev
}

// line returns the next whole line without its end, as offsets from e.start.
func (e *Events) line() (span, bool) {
	if e.skipLF && e.next < e.end {
		e.skipLF = false
		if e.buf[e.next] == '\n' {
			e.drop()
		}
	}
	rest := e.buf[e.next+e.scanned : e.end]
	at := bytes.IndexByte(rest, '\n')
	if at >= 0 {
		rest = rest[:at]
	}
	if cr := bytes.IndexByte(rest, '\r'); cr >= 0 {
		at = cr
	}
	if at < 0 {
		e.scanned = e.end - e.next
		return span{}, false
	}
	from, to := e.next, e.next+e.scanned+at
	e.skipLF = e.buf[to] == '\r'
	e.next, e.scanned = to+1, 0
	if !e.begun {
		e.begun = true
		if bytes.HasPrefix(e.buf[from:to], []byte("\xef\xbb\xbf")) {
			from += 3
		}
	}
	return span{from - e.start, to - e.start}, true
}

// drop skips one byte that belongs to the end of the line before.
func (e *Events) drop() {
	if e.start == e.next {
		e.start++
	}
	e.next++
}

func (e *Events) field(line span) {
	text := e.buf[e.start+line.from : e.start+line.to]
	colon := bytes.IndexByte(text, ':')
	name, value := text, span{line.to, line.to}
	if colon >= 0 {
		name, value.from = text[:colon], line.from+colon+1
		if colon+1 < len(text) && text[colon+1] == ' ' {
			value.from++
		}
	}
	switch string(name) {
	case "data":
		e.addData(value)
	case "event":
		e.name = value
	case "", "id", "retry":
	default:
		e.keepStray(text)
	}
}

// keepStray counts a line that belongs to no event, and keeps it if it may be a part of a report.
func (e *Events) keepStray(line []byte) {
	e.alien++
	if line = bytes.TrimSpace(line); len(line) == 0 || (len(e.stray) == 0 && line[0] != '{' && line[0] != '[') {
		return
	}
	if len(e.stray)+len(line) < errorBody {
		e.stray = append(e.stray, line...)
	}
}

// ended returns the error for the end of the input.
func (e *Events) ended(err error) error {
	if !errors.Is(err, io.EOF) || len(e.stray) == 0 {
		return err
	}
	var l Lexer
	l.Reset(e.stray)
	l.Skip()
	if r := parseReport(e.stray); l.End() == nil && r.message != "" {
		return r.inStream()
	}
	return err
}

func (e *Events) addData(value span) {
	e.lines++
	if e.lines == 1 {
		e.data = value
		return
	}
	base := e.buf[e.start:]
	if e.lines == 2 {
		e.joined = append(e.joined, base[e.data.from:e.data.to]...)
	}
	e.joined = append(e.joined, '\n')
	e.joined = append(e.joined, base[value.from:value.to]...)
}

// fill reads more input behind what is there.
func (e *Events) fill() error {
	if e.err != nil {
		return e.err
	}
	if e.start > 0 && (e.start == e.end || e.end == len(e.buf)) {
		copy(e.buf, e.buf[e.start:e.end])
		e.next -= e.start
		e.end -= e.start
		e.start = 0
	}
	if e.end == len(e.buf) {
		if len(e.buf) >= MaxEvent {
			e.err = fmt.Errorf("an event of the stream is larger than %d bytes: %w", MaxEvent, ErrTooLarge)
			return e.err
		}
		grown := make([]byte, min(2*len(e.buf), MaxEvent))
		copy(grown, e.buf[:e.end])
		e.buf = grown
	}
	for range 100 {
		n, err := e.src.Read(e.buf[e.end:])
		e.end += n
		e.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			e.lastLine()
			return err
		}
	}
	e.err = io.ErrNoProgress
	return e.err
}

// lastLine counts an unfinished last line that is no field, so that a page without any line end is recognised too.
func (e *Events) lastLine() {
	if !errors.Is(e.err, io.EOF) || e.next >= e.end {
		return
	}
	rest := e.buf[e.next:e.end]
	for _, name := range []string{"data", "event", "id", "retry", ":"} {
		if bytes.HasPrefix(rest, []byte(name)) || bytes.HasPrefix([]byte(name), rest) {
			return
		}
	}
	e.keepStray(rest)
}
