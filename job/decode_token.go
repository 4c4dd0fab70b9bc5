package job

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxInteger is the largest whole number that every JSON implementation keeps exactly (RFC 8785, RFC 7493).
const maxInteger = 1<<53 - 1

// maxNumberBytes bounds the text of a number; the longest exact float64 needs fewer digits than this.
const maxNumberBytes = 1100

// member is the name of an object's member and where it stands.
type member struct {
	text   string
	offset int64
	bad    bool // reported already and not usable
}

// scalar reads a string, a number, a literal, or the name of a member. The bytes are valid until the next read.
func (d *decoder) scalar() (jsontext.Value, bool) {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return nil, d.syntax(err)
	}
	return raw, d.count(d.start(raw))
}

// scalarValue is scalar for the value of the current place.
func (d *decoder) scalarValue() (jsontext.Value, bool) {
	raw, ok := d.scalar()
	if !ok {
		d.breakAt(d.pointer())
	}
	return raw, ok
}

// start returns the offset of the scalar that was just read.
func (d *decoder) start(raw jsontext.Value) int64 { return d.dec.InputOffset() - int64(len(raw)) }

// open reads the beginning of an object or list and returns its offset.
func (d *decoder) open() (int64, bool) {
	if _, err := d.dec.ReadToken(); err != nil {
		return 0, d.syntax(err)
	}
	start := d.dec.InputOffset() - 1
	if d.dec.StackDepth() > maxDepth {
		d.fail(start, codeTooDeep, "", fmt.Sprintf("objects and lists are nested more than %d deep", maxDepth))
		return start, false
	}
	return start, d.count(start)
}

// close reads the end of an object or list.
func (d *decoder) close() bool {
	if _, err := d.dec.ReadToken(); err != nil {
		return d.syntax(err)
	}
	return true
}

// count ends the pass when the document has too many values or too many problems.
func (d *decoder) count(offset int64) bool {
	d.tokens++
	if d.tokens <= maxTokens {
		return len(d.found) <= maxProblems
	}
	d.fail(offset, codeTooLarge, "", fmt.Sprintf("the document has more than %d values and names", maxTokens))
	return false
}

// name reads the name of a member.
func (d *decoder) name() (member, bool) {
	raw, ok := d.scalar()
	if !ok {
		return member{}, false
	}
	name := member{offset: d.start(raw)}
	if len(raw) > maxNameBytes+2 {
		d.add(name.offset, codeTooLarge, "", fmt.Sprintf("a name in this object has more than %d bytes", maxNameBytes))
		name.bad = true
		return name, true
	}
	text, _ := jsontext.AppendUnquote(nil, raw) // faults become U+FFFD
	name.text = string(text)
	d.push(step{name: name.text})
	name.bad = !d.checkText(raw)
	d.pop()
	return name, true
}

// skip reads a value of any kind without looking at it and returns where it starts.
func (d *decoder) skip() (int64, bool) {
	switch d.dec.PeekKind() {
	case '{', '[':
	default:
		raw, ok := d.scalar()
		return d.start(raw), ok
	}
	start, ok := d.open()
	depth := d.dec.StackDepth() - 1
	for ok && d.dec.StackDepth() > depth {
		switch d.dec.PeekKind() {
		case '{', '[':
			_, ok = d.open()
		case '}', ']':
			ok = d.close()
		default:
			_, ok = d.scalar()
		}
	}
	return start, ok
}

// raw keeps the text of a value as it is, after the same checks as for typed values: what is opaque to us is not opaque
// to those who read it later.
func (d *decoder) raw(v reflect.Value) bool {
	start, ok := d.opaque()
	if !ok {
		d.breakAt(d.pointer())
		return false
	}
	v.SetBytes([]byte(string(d.data[start:d.dec.InputOffset()])))
	return true
}

// opaque reads a value of any kind and reports repeated names, broken text and numbers out of range.
func (d *decoder) opaque() (int64, bool) {
	switch kind := d.dec.PeekKind(); kind {
	case '{':
		return d.opaqueObject()
	case '[':
		start, ok := d.open()
		for i := 0; ok && d.dec.PeekKind() != ']'; i++ {
			d.push(step{index: i, inList: true})
			_, ok = d.opaque()
			d.pop()
		}
		return start, ok && d.close()
	default:
		raw, ok := d.scalar()
		if ok && kind == '"' {
			d.checkText(raw)
		} else if ok && kind == '0' {
			d.checkNumber(raw)
		}
		return d.start(raw), ok
	}
}

func (d *decoder) opaqueObject() (int64, bool) {
	start, ok := d.open()
	seen := map[string]bool{}
	for ok && d.dec.PeekKind() != '}' {
		var name member
		if name, ok = d.name(); !ok {
			break
		}
		if name.bad || seen[name.text] {
			ok = d.refuseMember(name)
			continue
		}
		seen[name.text] = true
		d.push(step{name: name.text})
		_, ok = d.opaque()
		d.pop()
	}
	return start, ok && d.close()
}

// checkText reports a string that is no Unicode text.
func (d *decoder) checkText(raw jsontext.Value) bool {
	switch {
	case !utf8.Valid(raw):
		d.fail(d.start(raw), codeEncoding, "write the document as UTF-8", "the text has bytes that are not UTF-8")
	case hasLoneSurrogate(raw):
		d.fail(d.start(raw), codeEncoding, `a character beyond U+FFFF takes two \u escapes`, "the text has half of a surrogate pair")
	default:
		return true
	}
	return false
}

// hasLoneSurrogate looks at the \u escapes of a JSON string that is otherwise valid.
func hasLoneSurrogate(raw []byte) bool {
	const pair = len(`\uD800\uDC00`)
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		switch code := escapedCode(raw[i:]); {
		case code >= 0xD800 && code < 0xDC00:
			if low := escapedCode(raw[min(i+pair/2, len(raw)):]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += pair - 1
		case code >= 0xDC00 && code < 0xE000:
			return true
		default:
			i++
		}
	}
	return false
}

// escapedCode returns the UTF-16 code of a \u escape at the beginning of text, -1 if there is none.
func escapedCode(text []byte) int {
	var code [2]byte
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	if _, err := hex.Decode(code[:], text[2:6]); err != nil {
		return -1
	}
	return int(code[0])<<8 | int(code[1])
}

// checkNumber reports a number that a float64 cannot hold.
func (d *decoder) checkNumber(raw jsontext.Value) bool {
	if len(raw) > maxNumberBytes {
		d.fail(d.start(raw), codeOutOfRange, "", fmt.Sprintf("the number has more than %d characters", maxNumberBytes))
		return false
	}
	if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
		d.fail(d.start(raw), codeOutOfRange, "", "the number is out of range")
		return false
	}
	return true
}

// wholeNumber reads a number whose value is whole, however it is written: 40, 40.0 and 4e1 are one number in JSON. A value
// beyond int64 comes back as one beyond maxInteger. The text has passed checkNumber, so its exponent is below 400.
func wholeNumber(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if exponent, err := strconv.Atoi(text[at+1:]); err != nil || exponent < -maxNumberBytes {
			return 0, false // not whole, or a zero that is written to annoy
		}
	}
	switch r, ok := new(big.Rat).SetString(text); {
	case !ok || !r.IsInt():
		return 0, false
	case !r.Num().IsInt64():
		return maxInteger + 1, true
	default:
		return r.Num().Int64(), true
	}
}

// syntax reports where the document stops being JSON; it always returns false.
func (d *decoder) syntax(err error) bool {
	var fault *jsontext.SyntacticError
	if !errors.As(err, &fault) {
		d.add(int64(len(d.data)), codeSyntax, "", "the document ends too early")
		return false
	}
	message := fault.Err.Error()
	switch {
	case errors.Is(fault.Err, io.ErrUnexpectedEOF) && len(strings.TrimSpace(string(d.data))) == 0:
		message = "the document is empty"
	case errors.Is(fault.Err, io.ErrUnexpectedEOF):
		message = "the document ends too early"
	case strings.Contains(message, "escape sequence"): // it would quote from a string, which may be a credential
		message = "a string has an invalid escape sequence"
	}
	d.found = append(d.found, placed{offset: fault.ByteOffset, inText: true})
	last := &d.found[len(d.found)-1]
	last.Code, last.Pointer, last.Message = codeSyntax, string(fault.JSONPointer), "not valid JSON: "+message
	last.Hint = syntaxHint(d.data[min(int(fault.ByteOffset), len(d.data)):])
	return false
}

// syntaxHint guesses from the text at a syntax error what its author is used to.
func syntaxHint(at []byte) string {
	if len(at) == 0 {
		return ""
	}
	switch at[0] {
	case '/', '#':
		return "JSON has no comments"
	case 'N', 'I', '+':
		return "JSON has no NaN and no Infinity, and no sign before a positive number"
	case '\'', '`':
		return "JSON strings and names take double quotes"
	case '}', ']':
		return "no comma may follow the last value"
	}
	return ""
}
