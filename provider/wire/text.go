package wire

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendString appends s to dst as a JSON string. Bytes that are not UTF-8 become U+FFFD. Equal strings give equal
// bytes, and the encoding of a prefix is a prefix of the encoding.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = AppendText(dst, s)
	return append(dst, '"')
}

// AppendText is AppendString without the quotes.
func AppendText(dst []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[from:i]...)
				dst = append(dst, "\uFFFD"...)
				from = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		dst = appendEscape(dst, c)
		i++
		from = i
	}
	return append(dst, s[from:]...)
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// unquote resolves the escapes of raw, which a Lexer has found valid. Without escapes it returns raw itself, else a
// slice of *scratch. A surrogate without its partner is kept in the three-byte form that a joiner understands.
func unquote(raw []byte, scratch *[]byte) []byte {
	at := bytes.IndexByte(raw, '\\')
	if at < 0 {
		return raw
	}
	out := append((*scratch)[:0], raw[:at]...)
	for i := at; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hexRune(raw[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if both := utf16.DecodeRune(r, hexRune(raw[i+3:])); both != utf8.RuneError {
					r = both
					i += 6
				}
			}
			out = appendRune(out, r)
		default:
			out = append(out, raw[i])
		}
	}
	*scratch = out
	return out
}

func hexRune(text []byte) rune {
	var r rune
	for _, c := range text[:4] {
		r = r<<4 | rune(hexDigit(c))
	}
	return r
}

func appendRune(out []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(out, 0xed, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(out, r)
}

// Unquote returns the text of a string that a Lexer returned, as valid UTF-8.
func Unquote(raw []byte) string {
	var scratch []byte
	text := unquote(raw, &scratch)
	if utf8.Valid(text) {
		return string(text)
	}
	var j joiner
	out := append([]byte(nil), j.join(text)...)
	return string(append(out, j.flush()...))
}

// joiner turns the pieces of a text into valid UTF-8 piece by piece. A rune, or a pair of surrogates, that a server cut
// between two pieces is held back and comes with the second one.
type joiner struct {
	held  []byte
	out   []byte
	carry [longestOpen]byte
}

// join returns piece, with what was held back before it and without what must wait. The result is valid until the next
// call.
func (j *joiner) join(piece []byte) []byte {
	if len(j.held) == 0 && utf8.Valid(piece) {
		return piece
	}
	if len(piece) == 0 {
		return nil
	}
	work := append(j.out[:0], j.held...)
	work = append(work, piece...)
	keep := len(work) - openTail(work)
	j.held = append(j.carry[:0], work[keep:]...)
	if utf8.Valid(work[:keep]) {
		j.out = work
		return work[:keep]
	}
	j.out = mend(make([]byte, 0, 2*keep), work[:keep])
	return j.out
}

// flush returns the mark for what was held back and never completed.
func (j *joiner) flush() []byte {
	if len(j.held) == 0 {
		return nil
	}
	j.out = mend(j.out[:0], j.held)
	j.held = nil
	return j.out
}

// openTail returns how many bytes at the end of text may be the first part of a rune or of a surrogate pair.
func openTail(text []byte) int {
	for n := min(longestOpen, len(text)); n > 0; n-- {
		if isOpen(text[len(text)-n:]) {
			return n
		}
	}
	return 0
}

// longestOpen is the size of a surrogate pair, in the three-byte form each, that lacks its last byte.
const longestOpen = 5

func isOpen(t []byte) bool {
	if t[0] != 0xed || len(t) == 1 || t[1] < 0xa0 {
		return t[0] >= 0xc0 && len(t) < utf8.UTFMax && !utf8.FullRune(t)
	}
	switch len(t) {
	case 2:
		return isTail(t[1])
	case 3:
		return isHigh(t[1]) && isTail(t[2])
	case 4:
		return isHigh(t[1]) && isTail(t[2]) && t[3] == 0xed
	}
	return isHigh(t[1]) && isTail(t[2]) && t[3] == 0xed && isLow(t[4])
}

func isHigh(c byte) bool { return c >= 0xa0 && c <= 0xaf }
func isLow(c byte) bool  { return c >= 0xb0 && c <= 0xbf }
func isTail(c byte) bool { return c&0xc0 == 0x80 }

// mend appends text to dst with surrogate pairs joined and every other byte that is not UTF-8 as U+FFFD, one mark for
// each lone surrogate.
func mend(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r != utf8.RuneError || size != 1 {
			dst = append(dst, text[:size]...)
			text = text[size:]
			continue
		}
		if len(text) >= 3 && text[0] == 0xed && text[1] >= 0xa0 && isTail(text[1]) && isTail(text[2]) {
			size = 3
			if len(text) >= 6 && isHigh(text[1]) && text[3] == 0xed && isLow(text[4]) && isTail(text[5]) {
				r, size = utf16.DecodeRune(surrogate(text), surrogate(text[3:])), 6
			}
		}
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	return dst
}

func surrogate(text []byte) rune {
	return 0xd000 | rune(text[1]&0x3f)<<6 | rune(text[2]&0x3f)
}
