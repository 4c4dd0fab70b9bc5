package wire

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hozo-run/hozo/llm"
)

// Frames reads the binary framing of event streams that AWS services answer with ("application/vnd.amazon.eventstream").
// A frame is: its whole length and the length of its headers, both big-endian in four bytes; the CRC-32 of these eight
// bytes; the headers; the payload; the CRC-32 of everything before. Each header is the length of its name in one byte,
// the name, a type in one byte, and a value whose length the type gives or begins with.
//
// Of the headers only those are kept that say what the frame is. Names and data are slices of the reader's buffer and
// are valid until the next call of Next. The zero value must be reset before use.
type Frames struct {
	src io.Reader
	buf []byte
	// buf[start:end] is unread input.
	start, end int
	// err is what the source ended with, failed what Next did.
	err, failed error
}

const (
	preludeSize  = 12
	checksumSize = 4
	// maxFrameHeaders is what the format allows all headers of a frame to take, in bytes.
	maxFrameHeaders = 128 << 10
)

// frame is what the headers of a frame say about it, as slices of them.
type frame struct {
	// message is "event", "exception" or "error".
	message []byte
	// event names an event, exception a fault that the API describes; code and text describe any other fault.
	event, exception, code, text []byte
}

// Reset makes f read src from its beginning; Close gives its buffer back.
func (f *Frames) Reset(src io.Reader) {
	buf := f.buf
	if buf == nil {
		buf = *eventBuffers.Get().(*[]byte)
	}
	*f = Frames{src: src, buf: buf}
}

// Close returns the buffer to the pool; slices from Next are invalid after it.
func (f *Frames) Close() {
	if f.buf != nil && len(f.buf) <= keptBuffer {
		buf := f.buf
		eventBuffers.Put(&buf)
	}
	f.buf, f.src = nil, nil
}

// Alien reports false: what is no frame fails its checksum and is an error of Next.
func (f *Frames) Alien() bool { return false }

// Next returns the next event. Its name is that of the event and its data the payload. The error is io.EOF at the end of
// the input, even within a frame, which is then dropped; an error that wraps ErrTooLarge for a frame above MaxEvent; an
// *llm.Error for a frame that is damaged or that reports a fault; or the error of the source. After an error nobody knows
// where the next frame begins, so the error stays.
func (f *Frames) Next() (Event, error) {
	if f.failed != nil {
		return Event{}, f.failed
	}
	ev, err := f.next()
	f.failed = err
	return ev, err
}

func (f *Frames) next() (Event, error) {
	if err := f.need(preludeSize); err != nil {
		return Event{}, err
	}
	prelude := f.buf[f.start:]
	total, headers := int64(binary.BigEndian.Uint32(prelude)), int64(binary.BigEndian.Uint32(prelude[4:]))
	switch {
	case crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]):
		return Event{}, damaged("the beginning of a frame does not match its checksum")
	case total > MaxEvent:
		return Event{}, fmt.Errorf("a frame of the stream is larger than %d bytes: %w", MaxEvent, ErrTooLarge)
	case headers > maxFrameHeaders || total < preludeSize+headers+checksumSize:
		return Event{}, damaged("the lengths of a frame contradict each other")
	}
	if err := f.need(int(total)); err != nil {
		return Event{}, err
	}
	whole := f.buf[f.start : f.start+int(total)]
	f.start += len(whole)
	body := whole[:len(whole)-checksumSize]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(whole[len(body):]) {
		return Event{}, damaged("a frame does not match its checksum")
	}
	var head frame
	if !head.read(body[preludeSize : preludeSize+headers]) {
		return Event{}, damaged("the headers of a frame cannot be read")
	}
	payload := body[preludeSize+headers:]
	if len(head.message) == 0 || string(head.message) == "event" {
		return Event{Name: head.event, Data: payload}, nil
	}
	return Event{}, head.fault(payload)
}

func damaged(what string) error {
	return Malformed(what+"; check the base URL and any proxy in between", nil)
}

// need reads until n bytes are unread.
func (f *Frames) need(n int) error {
	for f.end-f.start < n {
		if f.err != nil {
			return f.err
		}
		f.room(n)
		got, err := f.src.Read(f.buf[f.end:])
		f.end += got
		f.err = err
		if got == 0 && err == nil {
			f.err = f.stalled()
		}
	}
	return nil
}

// stalled reads again from a source that gave neither bytes nor an error.
func (f *Frames) stalled() error {
	for range 100 {
		got, err := f.src.Read(f.buf[f.end:])
		f.end += got
		if got > 0 || err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// room makes place for a frame of n bytes and more behind what is unread. The buffer grows with what has come, so that a
// length that is only claimed takes no memory.
func (f *Frames) room(n int) {
	if f.start > 0 && (f.start == f.end || f.start+n > len(f.buf)) {
		copy(f.buf, f.buf[f.start:f.end])
		f.end -= f.start
		f.start = 0
	}
	if f.end == len(f.buf) {
		grown := make([]byte, min(2*len(f.buf), MaxEvent))
		copy(grown, f.buf[:f.end])
		f.buf = grown
	}
}

// headerSizes are the sizes of the values of each type of header, -1 for those whose value begins with its length in two
// bytes: true, false, byte, short, int, long, bytes, string, timestamp and UUID.
var headerSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

const stringHeader = 7

// read takes the headers and reports whether they are whole.
func (h *frame) read(raw []byte) bool {
	for len(raw) > 0 {
		n := int(raw[0])
		if len(raw) < n+2 || int(raw[n+1]) >= len(headerSizes) {
			return false
		}
		name, kind := raw[1:n+1], raw[n+1]
		raw = raw[n+2:]
		size := headerSizes[kind]
		if size < 0 {
			if len(raw) < 2 {
				return false
			}
			size = int(binary.BigEndian.Uint16(raw))
			raw = raw[2:]
		}
		if len(raw) < size {
			return false
		}
		if kind == stringHeader {
			h.take(name, raw[:size])
		}
		raw = raw[size:]
	}
	return true
}

func (h *frame) take(name, value []byte) {
	switch string(name) {
	case ":event-type":
		h.event = value
	case ":message-type":
		h.message = value
	case ":exception-type":
		h.exception = value
	case ":error-code":
		h.code = value
	case ":error-message":
		h.text = value
	}
}

// fault returns the error for a frame that reports one. An exception has its text in its payload.
func (h *frame) fault(payload []byte) *llm.Error {
	r := parseReport(payload)
	r.add(plainText(h.text))
	r.message = Cut(r.message)
	r.name(plainText([]byte(cmp.Or(string(h.exception), string(h.code), string(h.message)))))
	return r.inStream()
}

// eventReader is a stream of events in either framing.
type eventReader interface {
	// Next returns the next event; its slices are valid until the next call. The error is io.EOF at the end.
	Next() (Event, error)
	// Alien reports whether the input so far was no event stream at all.
	Alien() bool
	// Close gives the buffer back.
	Close()
}

// framing returns the reader for a response of this media type.
func framing(mediaType string, src io.Reader) eventReader {
	if mediaType == "application/vnd.amazon.eventstream" {
		f := new(Frames)
		f.Reset(src)
		return f
	}
	e := new(Events)
	e.Reset(src)
	return e
}
