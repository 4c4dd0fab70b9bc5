package openaichat

import (
	"errors"

	"github.com/hozo-run/hozo/provider/wire"
)

// chunk is what one event says, as slices of the event. Strings are still escaped.
type chunk struct {
	id, model []byte
	// fault is the JSON of an error object, nil if there is none.
	fault []byte
	// hasChoice says that the event holds the first choice, whole that it came as a complete message.
	hasChoice, whole bool
	usage            counts
	choice           choice
}

// choice is the first choice of a chunk.
type choice struct {
	content    text
	list       []byte
	thinking   [3]text
	details    []byte
	refusal    []byte
	calls      []piece
	finish     []byte
	fault      []byte
	wasMessage bool
}

// text is a string with its position in the event.
type text struct {
	raw      []byte
	from, to int
}

// piece is one part of a tool call.
type piece struct {
	slot      int64
	id, name  []byte
	arguments text
	// object is the JSON of arguments that were not sent inside a string.
	object []byte
}

// thinkingFields are the members in which servers send thinking, best first.
var thinkingFields = [3]string{"reasoning_content", "reasoning", "reasoning_text"}

func knownField(name string) bool {
	return name == thinkingFields[0] || name == thinkingFields[1] || name == thinkingFields[2]
}

var errNoObject = errors.New("JSON, but not an object")

// parse reads the event data into c. Members of an unexpected type are skipped like unknown ones.
func (c *chunk) parse(l *wire.Lexer, data []byte) error {
	*c = chunk{choice: choice{calls: c.choice.calls[:0]}}
	l.Reset(data)
	if l.Kind() != '{' {
		l.Skip()
		if err := l.End(); err != nil {
			return err
		}
		return errNoObject
	}
	for key := range l.Members() {
		switch string(key) {
		case "id":
			c.id = l.String()
		case "model":
			c.model = l.String()
		case "usage":
			c.usage.read(l)
		case "error":
			c.fault = faultObject(l)
		case "object", "type":
			if string(l.String()) == "error" {
				c.fault = data
			}
		case "choices":
			c.readChoices(l)
		default:
			l.Skip()
		}
	}
	return l.End()
}

// faultObject returns the next value if it says anything.
func faultObject(l *wire.Lexer) []byte {
	switch l.Kind() {
	case '{', '"', '[':
		if raw := l.Raw(); len(raw) > 2 {
			return raw
		}
		return nil
	}
	l.Skip()
	return nil
}

func (c *chunk) readChoices(l *wire.Lexer) {
	if !l.Array() {
		return
	}
	for l.Elem() {
		if c.hasChoice {
			l.Skip()
			continue
		}
		c.readChoice(l)
	}
}

// readChoice reads one choice and keeps it if it is the first; the others were not asked for.
func (c *chunk) readChoice(l *wire.Lexer) {
	if l.Kind() != '{' {
		l.Skip()
		return
	}
	c.choice = choice{calls: c.choice.calls[:0]}
	usage, first := c.usage, true
	for key := range l.Members() {
		switch string(key) {
		case "index":
			n, isNumber := l.Int()
			first = !isNumber || n == 0
		case "delta":
			c.choice.readDelta(l)
		case "message":
			if l.Kind() == '{' {
				c.choice.wasMessage = true
			}
			c.choice.readDelta(l)
		case "finish_reason":
			c.choice.finish = l.String()
		case "error":
			c.choice.fault = faultObject(l)
		case "usage":
			usage.read(l)
		default:
			l.Skip()
		}
	}
	if !first {
		c.choice = choice{calls: c.choice.calls[:0]}
		return
	}
	c.hasChoice, c.whole, c.usage = true, c.choice.wasMessage, usage
	if c.fault == nil {
		c.fault = c.choice.fault
	}
}

func (c *choice) readDelta(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "content":
			if l.Kind() == '[' {
				c.list = l.Raw()
				continue
			}
			c.content = readText(l)
		case "reasoning_content":
			c.thinking[0] = readThinking(l)
		case "reasoning":
			c.thinking[1] = readThinking(l)
		case "reasoning_text":
			c.thinking[2] = readThinking(l)
		case "reasoning_details":
			c.details = l.Raw()
		case "refusal":
			c.refusal = l.String()
		case "tool_calls":
			c.readCalls(l)
		case "function_call":
			if l.Kind() == '{' {
				p := piece{slot: 0}
				p.readFunction(l)
				c.calls = append(c.calls, p)
				continue
			}
			l.Skip()
		default:
			l.Skip()
		}
	}
}

func readText(l *wire.Lexer) text {
	raw := l.String()
	to := l.Pos() - 1
	return text{raw: raw, from: to - len(raw), to: to}
}

// readThinking reads thinking that is a string, or an object that holds one.
func readThinking(l *wire.Lexer) text {
	if l.Kind() != '{' {
		return readText(l)
	}
	var found text
	for key := range l.Members() {
		switch string(key) {
		case "text", "content", "thinking", "reasoning":
			if t := readText(l); len(t.raw) > 0 && len(found.raw) == 0 {
				found = t
			}
		default:
			l.Skip()
		}
	}
	return found
}

func (c *choice) readCalls(l *wire.Lexer) {
	if l.Kind() == '{' {
		c.readCall(l)
		return
	}
	if !l.Array() {
		return
	}
	for l.Elem() {
		c.readCall(l)
	}
}

func (c *choice) readCall(l *wire.Lexer) {
	if l.Kind() != '{' {
		l.Skip()
		return
	}
	p := piece{slot: -1}
	for key := range l.Members() {
		switch string(key) {
		case "index":
			if n, isNumber := l.Int(); isNumber && n >= 0 {
				p.slot = n
			}
		case "id":
			p.id = l.String()
		case "function":
			p.readFunction(l)
		default:
			l.Skip()
		}
	}
	c.calls = append(c.calls, p)
}

func (p *piece) readFunction(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "name":
			p.name = l.String()
		case "arguments":
			switch l.Kind() {
			case '"':
				p.arguments = readText(l)
			case 'n':
				l.Skip()
			default:
				p.object = l.Raw()
			}
		default:
			l.Skip()
		}
	}
}
