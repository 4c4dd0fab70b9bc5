package textcall

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// maxDepth is how deep values may nest.
	maxDepth = 64
	// maxMissing is how many closing brackets may be missing at the very end.
	maxMissing = 3
)

var (
	errTooDeep  = errors.New("the arguments are nested too deep")
	errTooMuch  = errors.New("the reply takes too long to read")
	errNoObject = errors.New("the arguments are no JSON object")
)

// meter bounds the work on one reply. Every byte that is looked at costs one, however often that happens.
type meter struct{ left int }

func newMeter(size int) *meter { return &meter{left: 64*size + 1<<16} }

func (m *meter) spend(n int) { m.left -= n }

func (m *meter) empty() bool { return m.left < 0 }

// reader reads a value from the text at pos. What is strict JSON reads as that; small slips are set right and noted in
// repaired. A '<' or a backtick outside of a string ends the text: no value holds one, and the marks after a value do.
type reader struct {
	text string
	pos  int
	work *meter
	// python reads Python literals, in which single quotes, tuples and capitalised constants are no slips.
	python   bool
	repaired bool

	depth, missing int
}

func (r *reader) fault(what string) error {
	return fmt.Errorf("the arguments are no valid JSON: %s at byte %d", what, r.pos)
}

// peek returns the next byte that is no blank and no comment, 0 at the end.
func (r *reader) peek() byte {
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			r.pos++
			r.work.spend(1)
		case c == '#' || c == '/':
			if !r.skipComment() {
				return c
			}
			r.repaired = true
		case c == '<' || c == '`':
			return 0
		default:
			return c
		}
	}
	return 0
}

func (r *reader) skipComment() bool {
	rest, end, over := r.text[r.pos:], "\n", 0
	switch {
	case strings.HasPrefix(rest, "/*"):
		end, over = "*/", 2
	case !strings.HasPrefix(rest, "#") && !strings.HasPrefix(rest, "//"):
		return false
	}
	n := strings.Index(rest, end)
	if n < 0 {
		n = len(rest) - over
	}
	r.pos += n + over
	r.work.spend(n)
	return true
}

// value reads the next value.
func (r *reader) value() (value, error) {
	r.work.spend(1)
	switch {
	case r.work.empty():
		return value{}, errTooMuch
	case r.depth > maxDepth:
		return value{}, errTooDeep
	}
	switch c := r.peek(); {
	case c == 0:
		return value{}, r.fault("a value is missing")
	case c == '{':
		return r.object()
	case c == '[':
		return r.array('[', ']')
	case c == '(' && r.python:
		return r.array('(', ')')
	case r.quote() != 0:
		text, err := r.quoted()
		return value{kind: kindString, text: text}, err
	case c == '-' || '0' <= c && c <= '9':
		return r.number()
	}
	return r.constant()
}

func (r *reader) number() (value, error) {
	end := numberEnd(r.text, r.pos)
	if end == r.pos || end < len(r.text) && wordByte(r.text[end]) {
		return value{}, r.fault("no number")
	}
	text := r.text[r.pos:end]
	r.work.spend(len(text))
	r.pos = end
	return value{kind: kindNumber, text: text}, nil
}

func (r *reader) constant() (value, error) {
	word := r.word()
	v, foreign := value{kind: kindBool, text: word}, false
	switch word {
	case "true", "false":
	case "null":
		v = value{}
	case "True":
		v.text, foreign = "true", true
	case "False":
		v.text, foreign = "false", true
	case "None":
		v, foreign = value{}, true
	default:
		return value{}, r.fault("no value")
	}
	r.repaired = r.repaired || foreign && !r.python
	r.pos += len(word)
	return v, nil
}

// word returns the letters, digits and underscores at the position, without moving.
func (r *reader) word() string {
	end := r.pos
	for end < len(r.text) && wordByte(r.text[end]) {
		end++
	}
	r.work.spend(end - r.pos)
	return r.text[r.pos:end]
}

func wordByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_'
}

// closed reports whether a container ends here: at its bracket, or at the end of the text while few are missing.
func (r *reader) closed(bracket byte) (bool, error) {
	switch c := r.peek(); {
	case c == bracket:
		r.pos++
		return true, nil
	case c != 0:
		return false, nil
	case r.missing == maxMissing:
		return false, r.fault("too many closing brackets are missing")
	}
	r.missing++
	r.repaired = true
	return true, nil
}

// next moves over the comma before the next element. A comma before the bracket is a slip.
func (r *reader) next(first bool, bracket byte) (more bool, err error) {
	if end, err := r.closed(bracket); end || err != nil {
		return false, err
	}
	if first {
		return true, nil
	}
	if r.peek() != ',' {
		return false, r.fault("a comma or a closing bracket is missing")
	}
	r.pos++
	end, err := r.closed(bracket)
	if end && !r.python {
		r.repaired = true
	}
	return !end, err
}

func (r *reader) array(open, bracket byte) (value, error) {
	r.pos += 1
	r.depth++
	v := value{kind: kindArray}
	for first := true; ; first = false {
		more, err := r.next(first, bracket)
		if err != nil || !more {
			r.depth--
			return v, err
		}
		item, err := r.value()
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
}

func (r *reader) object() (value, error) {
	r.pos++
	r.depth++
	v := emptyObject()
	for first := true; ; first = false {
		more, err := r.next(first, '}')
		if err != nil || !more {
			r.depth--
			return v, err
		}
		key, err := r.key()
		if err != nil {
			return value{}, err
		}
		item, err := r.value()
		if err != nil {
			return value{}, err
		}
		v.set(key, item)
	}
}

// key reads the name of a member and the colon after it.
func (r *reader) key() (string, error) {
	r.peek()
	var key string
	var err error
	if r.quote() != 0 {
		key, err = r.quoted()
	} else if key = r.word(); key != "" {
		r.pos += len(key)
		r.repaired = true
	} else {
		err = r.fault("the name of a member is missing")
	}
	if err == nil && r.peek() != ':' {
		err = r.fault("a colon is missing")
	}
	r.pos++
	return key, err
}

// The quotation marks that word processors put in the place of the plain one.
const typographic = "“”„‟"

// quote returns the quotation mark at the position, 0 if there is none.
func (r *reader) quote() rune {
	c, _ := utf8.DecodeRuneInString(r.text[min(r.pos, len(r.text)):])
	if c == '"' || c == '\'' || c == '‘' || c == '’' || c != utf8.RuneError && strings.ContainsRune(typographic, c) {
		return c
	}
	return 0
}

// ends reports whether c closes a string that began with open.
func (r *reader) ends(open, c rune) bool {
	switch open {
	case '"':
		return c == '"'
	case '\'', '‘', '’':
		return (c == '\'' || c == '’') && (r.python && open == '\'' && c == '\'' || r.followed(utf8.RuneLen(c)))
	}
	return c == '"' && r.followed(1) || strings.ContainsRune(typographic, c)
}

// followed reports whether after n bytes there is what may follow a string: an apostrophe is in the middle of a word.
func (r *reader) followed(n int) bool {
	for i := r.pos + n; i < len(r.text); i++ {
		r.work.spend(1)
		switch r.text[i] {
		case ' ', '\t', '\n', '\r':
		case ',', ':', '}', ']', ')', '<', '`':
			return true
		default:
			return false
		}
	}
	return true
}

// quoted reads a string.
func (r *reader) quoted() (string, error) {
	open := r.quote()
	if open != '"' && !(r.python && open == '\'') {
		r.repaired = true
	}
	r.pos += utf8.RuneLen(open)
	start, out := r.pos, []byte(nil)
	for r.pos < len(r.text) {
		c, size := utf8.DecodeRuneInString(r.text[r.pos:])
		r.work.spend(size)
		switch {
		case c == '\\':
			out = append(out, r.text[start:r.pos]...)
			var err error
			if out, err = r.escape(out); err != nil {
				return "", err
			}
			start = r.pos
			continue
		case r.ends(open, c):
			text := r.text[start:r.pos]
			r.pos += size
			if out == nil {
				return text, nil
			}
			return string(append(out, text...)), nil
		case c < 0x20 && !r.python:
			r.repaired = true
		}
		if r.work.empty() {
			return "", errTooMuch
		}
		r.pos += size
	}
	return "", r.fault("a string does not end")
}
