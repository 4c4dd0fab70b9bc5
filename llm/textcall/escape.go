package textcall

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escape reads one escape sequence and appends what it stands for. One that JSON does not know may mean two things, so
// it is an error.
func (r *reader) escape(dst []byte) ([]byte, error) {
	if r.pos+1 >= len(r.text) {
		return nil, r.fault("a string does not end")
	}
	c := r.text[r.pos+1]
	if at := strings.IndexByte(`"\/bfnrt`, c); at >= 0 {
		r.pos += 2
		return append(dst, "\"\\/\b\f\n\r\t"[at]), nil
	}
	switch {
	case c == '\'':
		r.repaired = r.repaired || !r.python
		r.pos += 2
		return append(dst, '\''), nil
	case c == '\n' && r.python:
		r.pos += 2
		return dst, nil
	case c == 'x' && r.python:
		n, ok := hexDigits(r.text, r.pos+2, 2)
		if !ok {
			return nil, r.fault("an escape sequence is broken")
		}
		r.pos += 4
		return utf8.AppendRune(dst, n), nil
	case c == 'u':
		return r.unicode(dst)
	}
	return nil, r.fault("an escape sequence is unknown")
}

// unicode reads \uXXXX, two of them for a surrogate pair.
func (r *reader) unicode(dst []byte) ([]byte, error) {
	n, ok := hexDigits(r.text, r.pos+2, 4)
	if !ok {
		return nil, r.fault("an escape sequence is broken")
	}
	r.pos += 6
	if utf16.IsSurrogate(n) {
		low, pair := rune(0), strings.HasPrefix(r.text[r.pos:], `\u`)
		if pair {
			low, pair = hexDigits(r.text, r.pos+2, 4)
		}
		if n = utf16.DecodeRune(n, low); pair && n != utf8.RuneError {
			r.pos += 6
		}
	}
	return utf8.AppendRune(dst, n), nil
}

func hexDigits(text string, from, digits int) (rune, bool) {
	if from+digits > len(text) {
		return 0, false
	}
	var n rune
	for _, c := range []byte(text[from : from+digits]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}
