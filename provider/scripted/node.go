package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hozo-run/hozo/problem"
)

// maxDepth bounds the nesting of a script, so that no document can exhaust the stack.
const maxDepth = 64

// nodeKind is what a node holds.
type nodeKind uint8

const (
	kindNull nodeKind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// node is a value of a document with its place. JSON and YAML both become nodes, so that one decoder serves both and
// every finding can name a line.
type node struct {
	kind   nodeKind
	text   string // of a string or number; "true" or "false" of a boolean
	list   []*node
	object []member

	line, column int
}

// member is one entry of an object, in the order of the document.
type member struct {
	key   string
	value *node
}

// jsonReader turns JSON text into nodes.
type jsonReader struct {
	data  []byte
	dec   *json.Decoder
	lines []int // offsets of the line starts, made for the first node
	found *findings
}

// parseJSON reads exactly one JSON value. It returns nil after a syntax error, which is then among found; duplicate keys
// are findings too, but do not stop it.
func parseJSON(data []byte, found *findings) *node {
	r := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), found: found}
	r.dec.UseNumber()
	if !utf8.Valid(data) {
		found.add(&node{}, "encoding", "", "the text is not valid UTF-8")
		return nil
	}
	// The whole text is checked first, since the offsets of a Decoder's errors are not those of the text.
	var checked json.RawMessage
	err := json.Unmarshal(data, &checked)
	var root *node
	if err == nil {
		if root, err = r.value("", 0); err == nil {
			return root
		}
	}
	offset := int(r.dec.InputOffset())
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = max(int(syntax.Offset)-1, 0)
	}
	at := &node{}
	at.line, at.column = r.place(offset)
	found.add(at, "syntax", "", "not valid JSON: %v", err)
	return nil
}

func (r *jsonReader) value(pointer string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{}
	n.line, n.column = r.place(int(r.dec.InputOffset()) - 1) // the last byte of the token is on its line
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return n, r.members(n, pointer, depth)
		}
		return n, r.elements(n, pointer, depth)
	case string:
		n.kind, n.text = kindString, t
	case json.Number:
		n.kind, n.text = kindNumber, t.String()
	case bool:
		n.kind, n.text = kindBool, strconv.FormatBool(t)
	}
	return n, nil
}

// place returns line and column of an offset, both from 1. The line starts are indexed once, since counting from the top
// for each node would be quadratic.
func (r *jsonReader) place(offset int) (line, column int) {
	if r.lines == nil {
		r.lines = []int{0}
		for i, c := range r.data {
			if c == '\n' {
				r.lines = append(r.lines, i+1)
			}
		}
	}
	line, exact := slices.BinarySearch(r.lines, offset)
	if exact {
		line++
	}
	return line, offset - r.lines[line-1] + 1
}

func (r *jsonReader) members(n *node, pointer string, depth int) error {
	n.kind = kindObject
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder lets nothing else through
		at := pointer + "/" + escape(key)
		value, err := r.value(at, depth+1)
		if err != nil {
			return err
		}
		n.add(member{key, value}, at, r.found)
	}
	_, err := r.dec.Token()
	return err
}

func (r *jsonReader) elements(n *node, pointer string, depth int) error {
	n.kind = kindList
	for r.dec.More() {
		value, err := r.value(pointer+"/"+strconv.Itoa(len(n.list)), depth+1)
		if err != nil {
			return err
		}
		n.list = append(n.list, value)
	}
	_, err := r.dec.Token()
	return err
}

// add appends a member and reports a key that the object has already.
func (n *node) add(m member, pointer string, found *findings) {
	if n.find(m.key) != nil {
		found.add(m.value, "duplicate-key", pointer, "key %q is given twice", m.key)
		return
	}
	n.object = append(n.object, m)
}

// find returns the value of a key, nil if there is none.
func (n *node) find(key string) *node {
	for _, m := range n.object {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// appendJSON writes n as compact JSON.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case kindNull:
		return append(b, "null"...)
	case kindBool, kindNumber:
		return append(b, n.text...)
	case kindString:
		return appendString(b, n.text)
	case kindList:
		b = append(b, '[')
		for i, v := range n.list {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.appendJSON(b)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, m := range n.object {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, m.key), ':')
		b = m.value.appendJSON(b)
	}
	return append(b, '}')
}

// appendString writes s as a JSON string, without the escaping of HTML characters.
func appendString(b []byte, s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return append(b, `""`...) // unreachable: a string always encodes
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte{'\n'})...)
}

// findings collects what is wrong with one document.
type findings struct {
	list problem.List
	name string // of the file, "" for an inline script
	base string // pointer of the document inside a larger one
}

func (f *findings) add(at *node, code, pointer, format string, args ...any) {
	f.list = append(f.list, problem.Problem{Code: code, Pointer: f.base + pointer, Message: fmt.Sprintf(format, args...)})
	f.locate(at)
}

func (f *findings) addHint(at *node, code, pointer, hint, format string, args ...any) {
	f.list.AddHint(code, f.base+pointer, hint, format, args...)
	f.locate(at)
}

// locate adds the place of a node to the latest finding. An inline script has pointers only: the text it came from was
// part of another document, whose lines are not known here.
func (f *findings) locate(at *node) {
	if f.name == "" {
		return
	}
	p := &f.list[len(f.list)-1]
	p.Path, p.Line, p.Column = f.name, at.line, at.column
}

// escape writes a key as a reference token of a JSON Pointer.
func escape(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
