package search

import (
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

const utf8BOM = "\xef\xbb\xbf"

// utf16Order tells the byte order of UTF-16 text from its mark, nil if text is
// something else. The mark of UTF-32 begins with the same two bytes; a file
// with it counts as binary by its NUL bytes.
func utf16Order(text []byte) binary.ByteOrder {
	if len(text) < 2 {
		return nil
	}
	switch string(text[:2]) {
	case "\xff\xfe":
		if len(text) >= 4 && text[2] == 0 && text[3] == 0 {
			return nil
		}
		return binary.LittleEndian
	case "\xfe\xff":
		return binary.BigEndian
	}
	return nil
}

// utf16Reader decodes UTF-16 to UTF-8. What is no valid text becomes U+FFFD.
type utf16Reader struct {
	order   binary.ByteOrder
	source  io.Reader
	raw     []byte // read and not yet decoded
	decoded []byte // decoded and not yet handed out
	err     error  // of source
}

// newUTF16Reader decodes head and then what source has.
func newUTF16Reader(order binary.ByteOrder, head []byte, source io.Reader) *utf16Reader {
	return &utf16Reader{order: order, source: source, raw: append([]byte(nil), head...)}
}

// Read implements io.Reader.
func (r *utf16Reader) Read(p []byte) (int, error) {
	for len(r.decoded) == 0 {
		if r.decode(); len(r.decoded) > 0 {
			break
		}
		if r.err != nil {
			return 0, r.err
		}
		held := len(r.raw)
		buf := append(r.raw, make([]byte, 32<<10)...)
		var n int
		n, r.err = r.source.Read(buf[held:])
		r.raw = buf[:held+n]
	}
	n := copy(p, r.decoded)
	r.decoded = r.decoded[n:]
	return n, nil
}

// decode turns whole characters of raw into decoded. Half a character waits for
// the rest unless there is none.
func (r *utf16Reader) decode() {
	const step = 2 // bytes of a code
	raw := r.raw
	out := r.decoded[:0]
	for len(raw) >= step {
		c, size := rune(r.order.Uint16(raw)), step
		if utf16.IsSurrogate(c) {
			if len(raw) < 2*step && r.err == nil {
				break
			}
			low := rune(0)
			if len(raw) >= 2*step {
				low = rune(r.order.Uint16(raw[step:]))
			}
			if c = utf16.DecodeRune(c, low); c != utf8.RuneError {
				size = 2 * step
			}
		}
		out = utf8.AppendRune(out, c)
		raw = raw[size:]
	}
	if len(raw) == 1 && r.err != nil {
		out = utf8.AppendRune(out, utf8.RuneError)
		raw = nil
	}
	r.raw = append(r.raw[:0], raw...)
	r.decoded = out
}
