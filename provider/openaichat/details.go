package openaichat

import (
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/provider/wire"
)

// detailsField is the member in which gateways send thinking as a list of typed entries, with the proofs that the model
// behind them demands back.
const detailsField = "reasoning_details"

// detail is one entry of the list, joined from its pieces. Its strings are still escaped.
type detail struct {
	kind, id, format               string
	index                          int64
	text, summary, data, signature []byte
}

// said returns the thinking that people may read in the entry.
func (e *detail) said() []byte {
	if len(e.text) > 0 {
		return e.text
	}
	return e.summary
}

func readDetail(l *wire.Lexer) detail {
	e := detail{index: -1}
	for key := range l.Members() {
		switch string(key) {
		case "type":
			e.kind = string(l.String())
		case "id":
			e.id = string(l.String())
		case "format":
			e.format = string(l.String())
		case "index":
			if n, isNumber := l.Int(); isNumber {
				e.index = n
			}
		case "text":
			e.text = l.String()
		case "summary":
			e.summary = l.String()
		case "data":
			e.data = l.String()
		case "signature":
			e.signature = l.String()
		default:
			l.Skip()
		}
	}
	return e
}

// keepDetail joins an entry to the last one of the same type and index, or begins a new one. Entries without a type
// come from other lists and are not kept.
func (d *decoder) keepDetail(e detail) error {
	if e.kind == "" {
		return nil
	}
	size := len(e.kind) + len(e.id) + len(e.format) + len(e.text) + len(e.summary) + len(e.data) + len(e.signature)
	n := len(d.details)
	if n == 0 || d.details[n-1].kind != e.kind || d.details[n-1].index != e.index {
		d.details = append(d.details, detail{kind: e.kind, index: e.index})
		n++
		size += 128
	}
	last := &d.details[n-1]
	last.text = append(last.text, e.text...)
	last.summary = append(last.summary, e.summary...)
	last.data = append(last.data, e.data...)
	last.signature = append(last.signature, e.signature...)
	if e.id != "" {
		last.id = e.id
	}
	if e.format != "" {
		last.format = e.format
	}
	return d.assembly.Grow(size)
}

// proof returns the list as JSON if the model behind the gateway will want it back, that is if an entry holds something
// that the readable thinking does not.
func (d *decoder) proof() string {
	needed := false
	for i := range d.details {
		needed = needed || len(d.details[i].data) > 0 || len(d.details[i].signature) > 0
	}
	if !needed {
		return ""
	}
	b := []byte{'['}
	for i := range d.details {
		if i > 0 {
			b = append(b, ',')
		}
		b = d.details[i].append(b)
	}
	return strings.ToValidUTF8(string(append(b, ']')), "\uFFFD")
}

func (e *detail) append(b []byte) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, e.kind...)
	b = append(b, '"')
	for _, m := range []struct {
		name string
		text []byte
	}{{"id", []byte(e.id)}, {"format", []byte(e.format)}, {"text", e.text}, {"summary", e.summary}, {"data", e.data},
		{"signature", e.signature}} {
		if len(m.text) == 0 {
			continue
		}
		b = append(b, `,"`...)
		b = append(b, m.name...)
		b = append(b, `":"`...)
		b = append(b, m.text...)
		b = append(b, '"')
	}
	if e.index >= 0 {
		b = append(b, `,"index":`...)
		b = strconv.AppendInt(b, e.index, 10)
	}
	return append(b, '}')
}
