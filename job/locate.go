package job

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hozo-run/hozo/problem"
)

// locate finds where in the document the values stand that problems point to. A value that is absent stands where what
// should hold it begins. It is a second pass, made only when there are problems, so that a good document does not pay for
// a record of its positions.
func locate(data []byte, problems problem.List) []placed {
	if len(problems) == 0 {
		return nil
	}
	found := make([]placed, len(problems))
	root := new(place)
	for i, p := range problems {
		found[i].Problem = p
		root.at(p.Pointer).wanted = append(root.at(p.Pointer).wanted, i)
	}
	l := locator{
		dec:   jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		found: found,
	}
	l.value(root)
	return found
}

// place is a node of the tree of places that are looked for.
type place struct {
	wanted  []int
	members map[string]*place
	seen    bool
}

// at returns the place below p that pointer names.
func (p *place) at(pointer string) *place {
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		if p.members == nil {
			p.members = map[string]*place{}
		}
		if p.members[name] == nil {
			p.members[name] = new(place)
		}
		p = p.members[name]
	}
	return p
}

type locator struct {
	dec   *jsontext.Decoder
	found []placed
}

// value walks the next value and reports whether the document goes on after it.
func (l *locator) value(p *place) bool {
	if p == nil || p.seen { // of a repeated name, the first value was decoded
		return l.dec.SkipValue() == nil
	}
	p.seen = true
	kind := l.dec.PeekKind()
	if kind != '{' && kind != '[' {
		raw, err := l.dec.ReadValue()
		l.set(p, l.dec.InputOffset()-int64(len(raw)))
		return err == nil
	}
	if _, err := l.dec.ReadToken(); err != nil {
		return false
	}
	l.set(p, l.dec.InputOffset()-1)
	for i := 0; ; i++ {
		switch l.dec.PeekKind() {
		case 0:
			return false
		case '}', ']':
			_, err := l.dec.ReadToken()
			return err == nil
		}
		name := strconv.Itoa(i)
		if kind == '{' {
			token, err := l.dec.ReadToken()
			if err != nil {
				return false
			}
			name = strings.TrimPrefix(pointerTo("", token.String()), "/")
		}
		if !l.value(p.members[name]) {
			return false
		}
	}
}

// set gives an offset to everything at and below p; what is found below gets its own later.
func (l *locator) set(p *place, offset int64) {
	for _, i := range p.wanted {
		l.found[i].offset = offset
	}
	for _, member := range p.members {
		l.set(member, offset)
	}
}
