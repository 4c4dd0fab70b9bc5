package wire

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strconv"
)

// Lexer walks one JSON text without building values. It accepts exactly the texts of RFC 8259 (any bytes that are not
// control characters are allowed in strings; Unquote mends them) nested up to maxDepth. After the first fault every
// method reports "nothing more" and Err says where the fault is, so callers check once, at the end.
type Lexer struct {
	data []byte
	pos  int
	// fresh is set directly after an opening bracket, where no comma is due.
	fresh bool
	fault string
}

const maxDepth = 512

// ErrSyntax is the cause of every error about text that is not JSON.
var ErrSyntax = errors.New("not JSON")

// Reset starts over with data, which must not change while the lexer is used.
func (l *Lexer) Reset(data []byte) { *l = Lexer{data: data} }

// Err returns nil, or the kind and byte position of the fault. It never quotes the text.
func (l *Lexer) Err() error {
	if l.fault == "" {
		return nil
	}
	return fmt.Errorf("%w: %s at byte %d", ErrSyntax, l.fault, l.pos)
}

// End checks that nothing but white space follows, and returns the first fault of the whole text.
func (l *Lexer) End() error {
	if l.peek() != 0 || (l.fault == "" && l.pos < len(l.data)) {
		l.fail("text after the value")
	}
	return l.Err()
}

// Pos returns the byte position in the text.
func (l *Lexer) Pos() int { return l.pos }

func (l *Lexer) fail(fault string) {
	if l.fault == "" {
		l.fault = fault
	}
}

// peek skips white space and returns the next byte, 0 at the end and after a fault.
func (l *Lexer) peek() byte {
	if l.fault != "" {
		return 0
	}
	for l.pos < len(l.data) {
		switch c := l.data[l.pos]; c {
		case ' ', '\t', '\n', '\r':
			l.pos++
		default:
			return c
		}
	}
	return 0
}

// Kind returns the first byte of the next value: one of { [ " t f n, '0' for any number, or 0 if there is none.
func (l *Lexer) Kind() byte {
	switch c := l.peek(); c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	}
	return 0
}

// Object enters an object and reports true; any other value is skipped.
func (l *Lexer) Object() bool { return l.enter('{') }

// Array enters an array and reports true; any other value is skipped.
func (l *Lexer) Array() bool { return l.enter('[') }

func (l *Lexer) enter(bracket byte) bool {
	if l.peek() != bracket {
		l.Skip()
		return false
	}
	l.pos++
	l.fresh = true
	return true
}

// Key returns the next key of the entered object as it stands between its quotes; at the object's end it leaves the
// object and reports false.
func (l *Lexer) Key() ([]byte, bool) {
	if !l.more('}') {
		return nil, false
	}
	if l.peek() != '"' {
		l.fail("no key")
		return nil, false
	}
	key := l.String()
	if l.peek() != ':' {
		l.fail("no colon after a key")
		return nil, false
	}
	l.pos++
	return key, l.fault == ""
}

// Members enters an object and yields its keys as Key returns them; the loop must read or skip the value of each, or
// leave the text altogether. A value that is no object is skipped and yields nothing.
func (l *Lexer) Members() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !l.Object() {
			return
		}
		for {
			key, ok := l.Key()
			if !ok || !yield(key) {
				return
			}
		}
	}
}

// Elem reports whether the entered array has a next element; at the array's end it leaves the array.
func (l *Lexer) Elem() bool { return l.more(']') }

func (l *Lexer) more(bracket byte) bool {
	c := l.peek()
	if c == bracket {
		l.pos++
		l.fresh = false
		return false
	}
	if !l.fresh {
		if c != ',' {
			l.fail("no comma or closing bracket")
			return false
		}
		l.pos++
		if l.peek() == bracket {
			l.fail("a comma before a closing bracket")
			return false
		}
	}
	l.fresh = false
	if l.peek() == 0 {
		l.fail("unexpected end")
		return false
	}
	return true
}

// String returns the next value as it stands between its quotes, still escaped; any other value is skipped and nil
// returned. An empty string is not nil.
func (l *Lexer) String() []byte {
	if l.peek() != '"' {
		l.Skip()
		return nil
	}
	from := l.pos + 1
	to, fault := stringEnd(l.data, from)
	if fault != "" {
		l.pos = to
		l.fail(fault)
		return nil
	}
	l.pos = to + 1
	l.fresh = false
	return l.data[from:to:to]
}

// stringEnd returns the position of the quote that ends the string whose text begins at from. With a fault it returns
// the position of the fault.
func stringEnd(data []byte, from int) (int, string) {
	for i := from; i < len(data); i++ {
		c := data[i]
		switch {
		case c == '"':
			return i, ""
		case c < ' ':
			return i, "a control character in a string"
		case c != '\\':
			continue
		}
		if i++; i >= len(data) {
			break
		}
		switch data[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			for range 4 {
				if i++; i >= len(data) {
					return len(data), "an open string"
				}
				if hexDigit(data[i]) < 0 {
					return i, "a bad escape in a string"
				}
			}
		default:
			return i, "a bad escape in a string"
		}
	}
	return len(data), "an open string"
}

// Int returns the next value as a whole number, cut towards zero. Anything that is no number, or that is beyond the
// range, is skipped and reported as false.
func (l *Lexer) Int() (int64, bool) {
	if l.Kind() != '0' {
		l.Skip()
		return 0, false
	}
	text := l.Raw()
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f < -1<<62 || f > 1<<62 {
		return 0, false
	}
	return int64(f), true
}

// Bool returns the next value if it is a boolean.
func (l *Lexer) Bool() (value, ok bool) {
	c := l.Kind()
	l.Skip()
	return c == 't', c == 't' || c == 'f'
}

// Raw returns the bytes of the next value without the white space around it.
func (l *Lexer) Raw() []byte {
	l.peek()
	from := l.pos
	l.Skip()
	if l.fault != "" {
		return nil
	}
	return l.data[from:l.pos:l.pos]
}

// Skip steps over the next value and checks it.
func (l *Lexer) Skip() { l.skip(0) }

func (l *Lexer) skip(depth int) {
	if depth > maxDepth {
		l.fail("nesting too deep")
		return
	}
	switch l.Kind() {
	case '{':
		l.Object()
		for {
			if _, ok := l.Key(); !ok {
				return
			}
			l.skip(depth + 1)
		}
	case '[':
		l.Array()
		for l.Elem() {
			l.skip(depth + 1)
		}
	case '"':
		l.String()
	case 't':
		l.literal("true")
	case 'f':
		l.literal("false")
	case 'n':
		l.literal("null")
	case '0':
		l.number()
	default:
		if l.pos >= len(l.data) {
			l.fail("unexpected end")
		} else {
			l.fail("an unexpected character")
		}
	}
}

func (l *Lexer) literal(word string) {
	if !bytes.HasPrefix(l.data[l.pos:], []byte(word)) {
		l.fail("an unknown word")
		return
	}
	l.pos += len(word)
	l.fresh = false
}

func (l *Lexer) number() {
	if l.data[l.pos] == '-' {
		l.pos++
	}
	whole := l.digits()
	ok := whole == 1 || (whole > 1 && l.data[l.pos-whole] != '0')
	if l.at('.') {
		l.pos++
		ok = l.digits() > 0 && ok
	}
	if l.at('e') || l.at('E') {
		l.pos++
		if l.at('+') || l.at('-') {
			l.pos++
		}
		ok = l.digits() > 0 && ok
	}
	if !ok {
		l.fail("a bad number")
	}
	l.fresh = false
}

func (l *Lexer) at(c byte) bool { return l.pos < len(l.data) && l.data[l.pos] == c }

func (l *Lexer) digits() int {
	from := l.pos
	for l.pos < len(l.data) && '0' <= l.data[l.pos] && l.data[l.pos] <= '9' {
		l.pos++
	}
	return l.pos - from
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// CheckObject returns nil if text is one JSON object, or an error with the kind and byte position of the fault.
func CheckObject(text []byte) error {
	var l Lexer
	l.Reset(text)
	kind := l.Kind()
	l.Skip()
	if err := l.End(); err != nil {
		return err
	}
	if kind != '{' {
		return errors.New("JSON, but not an object, at byte 0")
	}
	return nil
}

// IsArray reports whether text is one JSON array.
func IsArray(text string) bool {
	var l Lexer
	l.Reset([]byte(text))
	kind := l.Kind()
	l.Skip()
	return kind == '[' && l.End() == nil
}
