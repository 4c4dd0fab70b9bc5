package anthropic

import (
	"errors"

	"github.com/hozo-run/hozo/provider/wire"
)

// event is what one event says, as slices of it. Strings are still escaped. A message that was not streamed is read into
// the same form.
type event struct {
	kind        []byte
	index       int64
	id, model   []byte
	stop        []byte
	explanation []byte
	usage       counts
	hasUsage    bool
	block       block
	delta       delta
	// content is the JSON list of the blocks of a whole message.
	content []byte
}

// block is a content block as it begins.
type block struct {
	kind, text, thinking, signature, data, id, name []byte
	// input is JSON.
	input []byte
}

// delta is a piece of a content block.
type delta struct {
	kind      []byte
	text      []byte
	from, to  int
	signature []byte
}

var errNoObject = errors.New("JSON, but not an object")

// parse reads the event data into e. Members of an unexpected type are skipped like unknown ones.
func (e *event) parse(l *wire.Lexer, data []byte) error {
	*e = event{}
	l.Reset(data)
	if l.Kind() != '{' {
		l.Skip()
		if err := l.End(); err != nil {
			return err
		}
		return errNoObject
	}
	e.message(l)
	return l.End()
}

// message reads the members of an event, or of the message inside the first event.
func (e *event) message(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "type":
			// The message inside an event has a type of its own, which says nothing.
			if kind := l.String(); string(kind) != "message" || e.kind == nil {
				e.kind = kind
			}
		case "index":
			e.index, _ = l.Int()
		case "message":
			e.message(l)
		case "id":
			e.id = l.String()
		case "model":
			e.model = l.String()
		case "stop_reason":
			e.stop = l.String()
		case "stop_details":
			e.readDetails(l)
		case "usage":
			e.hasUsage = e.usage.read(l) || e.hasUsage
		case "content_block":
			e.block.read(l)
		case "delta":
			e.readDelta(l)
		case "content":
			e.content = l.Raw()
		default:
			l.Skip()
		}
	}
}

func (e *event) readDetails(l *wire.Lexer) {
	for key := range l.Members() {
		if string(key) == "explanation" {
			e.explanation = l.String()
			continue
		}
		l.Skip()
	}
}

func (e *event) readDelta(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "type":
			e.delta.kind = l.String()
		case "text", "thinking", "partial_json":
			e.delta.text = l.String()
			e.delta.to = l.Pos() - 1
			e.delta.from = e.delta.to - len(e.delta.text)
		case "signature":
			e.delta.signature = l.String()
		case "stop_reason":
			e.stop = l.String()
		case "stop_details":
			e.readDetails(l)
		default:
			l.Skip()
		}
	}
}

func (b *block) read(l *wire.Lexer) {
	*b = block{}
	for key := range l.Members() {
		switch string(key) {
		case "type":
			b.kind = l.String()
		case "text":
			b.text = l.String()
		case "thinking":
			b.thinking = l.String()
		case "signature":
			b.signature = l.String()
		case "data":
			b.data = l.String()
		case "id":
			b.id = l.String()
		case "name":
			b.name = l.String()
		case "input":
			if l.Kind() == 'n' {
				l.Skip()
				continue
			}
			b.input = l.Raw()
		default:
			l.Skip()
		}
	}
}
