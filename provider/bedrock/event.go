package bedrock

import (
	"errors"

	"github.com/hozo-run/hozo/provider/wire"
)

// event is what one event says, as slices of it. Strings are still escaped. A response that was not streamed is read into
// the same form.
type event struct {
	index int64
	// stop is the stop reason, model the model to which a router gave the request.
	stop, model []byte
	usage       counts
	block       block
	// content is the JSON list of the blocks of a whole response, nil if there is none.
	content []byte
}

// block is a content block or a piece of one. At most one of its kinds is set.
type block struct {
	text, thinking    words
	signature, hidden []byte
	// call says that it belongs to a tool call.
	call     bool
	id, name []byte
	// arguments are a piece of the argument text, input the arguments of a whole response as JSON.
	arguments words
	input     []byte
}

// words is a string with its position in the event.
type words struct {
	raw      []byte
	from, to int
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
	e.members(l)
	return l.End()
}

// members reads the members of an event, or of an object inside one that only groups them.
func (e *event) members(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "contentBlockIndex":
			e.index, _ = l.Int()
		case "start", "delta":
			e.block.read(l)
		case "stopReason":
			e.stop = l.String()
		case "usage":
			e.usage.read(l)
		case "output", "message", "trace", "promptRouter":
			e.members(l)
		case "invokedModelId":
			e.model = l.String()
		case "content":
			if l.Kind() == '[' {
				e.content = l.Raw()
				continue
			}
			l.Skip()
		default:
			l.Skip()
		}
	}
}

func (b *block) read(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "text":
			b.text.read(l)
		case "reasoningContent":
			b.readThinking(l)
		case "toolUse":
			b.call = l.Kind() == '{'
			b.readCall(l)
		default:
			l.Skip()
		}
	}
}

// readThinking reads a piece of thinking; a whole response has it one level deeper.
func (b *block) readThinking(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "text":
			b.thinking.read(l)
		case "signature":
			b.signature = l.String()
		case "redactedContent":
			b.hidden = l.String()
		case "reasoningText":
			b.readThinking(l)
		default:
			l.Skip()
		}
	}
}

func (b *block) readCall(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "toolUseId":
			b.id = l.String()
		case "name":
			b.name = l.String()
		case "input":
			switch l.Kind() {
			case '"':
				b.arguments.read(l)
			case 'n':
				l.Skip()
			default:
				b.input = l.Raw()
			}
		default:
			l.Skip()
		}
	}
}

func (w *words) read(l *wire.Lexer) {
	w.raw = l.String()
	w.to = l.Pos() - 1
	w.from = w.to - len(w.raw)
}
