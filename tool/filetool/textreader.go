package filetool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hozo-run/hozo/workspace"
)

// blockBytes is how much is read at a time.
const blockBytes = 64 << 10

// encoding is how the bytes of a text file are turned into UTF-8.
type encoding int

const (
	// encodingUTF8 passes valid UTF-8 on; any other byte is taken as Windows-1252, the usual encoding of old sources.
	encodingUTF8 encoding = iota
	encodingUTF16LE
	encodingUTF16BE
)

// textReader delivers a file as blocks of valid UTF-8 that end at rune borders. It reads no further than the size that
// the file had when it was opened, so that a growing file has an end.
type textReader struct {
	source   io.Reader
	encoding encoding
	// buffer holds bytes read; the first held ones are left over from the block before.
	buffer []byte
	held   int
	// decoded is the block returned where it differs from the bytes read.
	decoded []byte
	// repaired counts bytes that were no UTF-8.
	repaired int64
}

// newTextReader returns a reader of f, of which head has been read already.
func newTextReader(f *workspace.File, head []byte) *textReader {
	r := &textReader{buffer: make([]byte, blockBytes)}
	rest := max(f.Size-int64(len(head)), 0)
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		r.encoding, head = encodingUTF16LE, head[2:]
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		r.encoding, head = encodingUTF16BE, head[2:]
	}
	r.source = io.MultiReader(bytes.NewReader(head), io.LimitReader(f, rest))
	return r
}

// next returns the next block, which is valid until the call after. At the end it returns io.EOF, perhaps together with
// the last block.
func (r *textReader) next() ([]byte, error) {
	n, err := r.source.Read(r.buffer[r.held:])
	atEnd := errors.Is(err, io.EOF)
	if err != nil && !atEnd {
		return nil, err
	}
	raw := r.buffer[:r.held+n]
	var block []byte
	var used int
	if r.encoding == encodingUTF8 {
		block, used = r.decodeUTF8(raw, atEnd)
	} else {
		block, used = r.decodeUTF16(raw, atEnd)
	}
	if used < len(raw) && len(block) > 0 && r.encoding == encodingUTF8 {
		// The block may lie in the buffer that the leftover moves to the front of.
		r.decoded = append(r.decoded[:0], block...)
		block = r.decoded
	}
	r.held = copy(r.buffer, raw[used:])
	return block, err
}

// decodeUTF8 returns raw up to its last complete rune, with bytes that are no UTF-8 replaced.
func (r *textReader) decodeUTF8(raw []byte, atEnd bool) (block []byte, used int) {
	whole := raw
	if !atEnd {
		whole = cutAtRune(raw)
	}
	if utf8.Valid(whole) {
		return whole, len(whole)
	}
	r.decoded = r.decoded[:0]
	for rest := whole; len(rest) > 0; {
		c, size := utf8.DecodeRune(rest)
		if c == utf8.RuneError && size == 1 {
			c = fromWindows1252(rest[0])
			r.repaired++
		}
		r.decoded = utf8.AppendRune(r.decoded, c)
		rest = rest[size:]
	}
	return r.decoded, len(whole)
}

// decodeUTF16 returns the characters of raw; a surrogate pair or a byte pair that is cut waits for the next block.
func (r *textReader) decodeUTF16(raw []byte, atEnd bool) (block []byte, used int) {
	var order binary.ByteOrder = binary.LittleEndian
	if r.encoding == encodingUTF16BE {
		order = binary.BigEndian
	}
	r.decoded = r.decoded[:0]
	for used+2 <= len(raw) {
		c := rune(order.Uint16(raw[used:]))
		if utf16.IsSurrogate(c) {
			if used+4 > len(raw) && !atEnd {
				break
			}
			pair := rune(utf8.RuneError)
			if used+4 <= len(raw) {
				pair = utf16.DecodeRune(c, rune(order.Uint16(raw[used+2:])))
			}
			if c = pair; pair != utf8.RuneError {
				used += 2
			}
		}
		r.decoded = utf8.AppendRune(r.decoded, c)
		used += 2
	}
	if atEnd && used < len(raw) {
		r.decoded = utf8.AppendRune(r.decoded, utf8.RuneError)
		used = len(raw)
	}
	return r.decoded, used
}

// describe says that the text shown is not byte for byte the file's.
func (r *textReader) describe(remarks *notice) {
	switch {
	case r.encoding != encodingUTF8:
		remarks.add("The file is UTF-16 and is shown decoded; edit does not work on it")
	case r.repaired > 0:
		remarks.add("The file is not UTF-8: %s are shown as if they were Windows-1252", plural(r.repaired, "byte"))
	}
}

// fromWindows1252 maps a byte that is no ASCII. The five that the encoding leaves open stand for themselves.
func fromWindows1252(b byte) rune {
	if b < 0x80 || b > 0x9f {
		return rune(b)
	}
	return windows1252[b-0x80]
}

var windows1252 = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}
