package google

import (
	"slices"
	"strconv"

	"github.com/hozo-run/hozo/provider/wire"
)

// streamed is a call that is being read. Its arguments are there at once, or they come as pieces that each say with a JSON
// Path (RFC 9535) where they belong. The adapter never asks for pieces, but gateways may.
type streamed struct {
	call *wire.Call
	// whole says that the arguments came at once.
	whole bool
	// root is what the pieces have built so far, nil without any.
	root *node
	// made counts the nodes below root.
	made int
}

// node is a value that grows.
type node struct {
	// kind is '{', '[', '"', or 0 for any other value.
	kind byte
	// text is the text of a string, escaped and without quotes, or the JSON of another value.
	text []byte
	// names are the escaped keys of the values of an object.
	names  []string
	values []*node
}

const (
	// deepest is the longest path, widest the largest number of members that one object or list may have.
	deepest = 128
	widest  = 10_000
	// nodeCost is what a node is counted as, so that many small ones are bounded too.
	nodeCost = 128
)

// follows reports whether c is about the open call and not the beginning of another.
func (s *streamed) follows(c *call) bool {
	return len(c.name) == 0 && (len(c.id) == 0 || wire.Unquote(c.id) == s.call.ID)
}

// empty reports whether a call says nothing at all, as the mark at the end of pieces does.
func (c *call) empty() bool {
	return len(c.id) == 0 && len(c.name) == 0 && c.arguments == nil && c.pieces == nil
}

// add takes a list of pieces.
func (s *streamed) add(pieces []byte) error {
	var l wire.Lexer
	l.Reset(pieces)
	if !l.Array() {
		return badPiece("a list is due")
	}
	for l.Elem() {
		var path []byte
		var value node
		found := false
		for key := range l.Members() {
			switch string(key) {
			case "jsonPath":
				path = l.String()
			case "stringValue":
				value, found = node{kind: '"', text: l.String()}, true
			case "numberValue", "boolValue", "structValue", "listValue":
				value, found = node{text: l.Raw()}, true
			case "nullValue":
				l.Skip()
				value, found = node{text: []byte("null")}, true
			default:
				l.Skip()
			}
		}
		if !found {
			continue
		}
		if err := s.put(path, &value); err != nil {
			return err
		}
	}
	return nil
}

// put adds a value at a path. A second text at the path of a text goes on with it.
func (s *streamed) put(path []byte, value *node) error {
	steps, ok := steps(wire.Unquote(path))
	if !ok {
		return badPiece("its path is not understood")
	}
	if s.root == nil {
		s.root = &node{kind: '{'}
	}
	at := s.root
	for _, step := range steps {
		if at = s.enter(at, step); at == nil {
			return badPiece("its path does not fit the pieces before it")
		}
	}
	if value.kind != at.kind && !at.fresh() {
		return badPiece("its value does not fit the pieces before it")
	}
	at.kind = value.kind
	if value.kind != '"' {
		at.text = at.text[:0]
	}
	at.text = append(at.text, value.text...)
	return nil
}

func badPiece(why string) error {
	return wire.Malformed("a piece of a tool call's arguments cannot be used: "+why, nil)
}

// fresh reports whether a node has just been made.
func (n *node) fresh() bool { return n.kind == 0 && len(n.text) == 0 }

// step leads from a value to one inside it.
type step struct {
	// name is an escaped key.
	name string
	// index counts if list is set.
	index int
	list  bool
}

// enter returns the value at a step, which is made if it is new, or nil if there can be none.
func (s *streamed) enter(n *node, to step) *node {
	kind := byte('{')
	if to.list {
		kind = '['
	}
	if n.fresh() {
		n.kind = kind
	}
	if n.kind != kind {
		return nil
	}
	at := to.index
	if !to.list {
		if at = slices.Index(n.names, to.name); at < 0 {
			at = len(n.values)
		}
	}
	switch {
	case at < len(n.values):
		return n.values[at]
	case at > len(n.values) || at >= widest:
		return nil
	}
	if !to.list {
		n.names = append(n.names, to.name)
	}
	s.made++
	made := &node{}
	n.values = append(n.values, made)
	return made
}

// steps reads a path of names and indexes, such as $.a['b c'][0].
func steps(path string) ([]step, bool) {
	if path == "" || path[0] != '$' || len(path) == 1 {
		return nil, false
	}
	var all []step
	for rest := path[1:]; rest != ""; {
		var one step
		var ok bool
		if one, rest, ok = nextStep(rest); !ok || len(all) >= deepest {
			return nil, false
		}
		all = append(all, one)
	}
	return all, true
}

func nextStep(path string) (step, string, bool) {
	switch {
	case path[0] == '.':
		end := 1
		for end < len(path) && path[end] != '.' && path[end] != '[' {
			end++
		}
		return step{name: string(wire.AppendText(nil, path[1:end]))}, path[end:], end > 1
	case len(path) > 2 && path[0] == '[' && (path[1] == '\'' || path[1] == '"'):
		return quotedStep(path)
	case path[0] == '[':
		end := 1
		for end < len(path) && '0' <= path[end] && path[end] <= '9' {
			end++
		}
		index, err := strconv.Atoi(path[1:end])
		if err != nil || end == len(path) || path[end] != ']' {
			return step{}, "", false
		}
		return step{index: index, list: true}, path[end+1:], true
	}
	return step{}, "", false
}

// quotedStep reads a name in brackets and quotes. A backslash in it keeps the character after it from ending the name.
func quotedStep(path string) (step, string, bool) {
	quote := path[1]
	var name []byte
	for i := 2; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			name = append(name, path[i])
		case c == quote:
			if i+1 >= len(path) || path[i+1] != ']' {
				return step{}, "", false
			}
			return step{name: string(wire.AppendText(nil, string(name)))}, path[i+2:], true
		default:
			name = append(name, c)
		}
	}
	return step{}, "", false
}

// text returns the arguments that the pieces have built, nil without any.
func (s *streamed) text() []byte {
	if s.root == nil {
		return nil
	}
	return s.root.append(nil)
}

func (n *node) append(b []byte) []byte {
	switch n.kind {
	case '"':
		b = append(b, '"')
		b = append(b, n.text...)
		return append(b, '"')
	case '{', '[':
		b = append(b, n.kind)
		for i, value := range n.values {
			if i > 0 {
				b = append(b, ',')
			}
			if n.kind == '{' {
				b = append(b, '"')
				b = append(b, n.names[i]...)
				b = append(b, `":`...)
			}
			b = value.append(b)
		}
		return append(b, n.kind+2)
	}
	if len(n.text) == 0 {
		return append(b, "null"...)
	}
	return append(b, n.text...)
}
