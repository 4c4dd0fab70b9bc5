package google

import (
	"errors"

	"github.com/hozo-run/hozo/provider/wire"
)

// event is what one event says, as slices of it. Strings are still escaped. A response that was not streamed has the same
// form.
type event struct {
	// ours says that the event has a member that this API knows.
	ours        bool
	model, id   []byte
	stop        []byte
	explanation []byte
	blocked     []byte
	usage       counts
	hasUsage    bool
	// fault is the JSON of an error that came instead of an answer.
	fault []byte
	parts []part
}

// part is a part of an answer. Parts of other kinds belong to tools that run at the provider, which hozo does not use.
type part struct {
	text      []byte
	thought   bool
	signature []byte
	// called says that the part is a call.
	called bool
	call   call
}

// call is a call of a function, or a piece of one.
type call struct {
	id, name []byte
	// arguments is JSON, pieces the JSON list of what came of them one by one.
	arguments, pieces []byte
	// continues says that more of this call follows.
	continues bool
}

var errNoObject = errors.New("JSON, but not an object")

// read reads the object that is next in l.
func (e *event) read(l *wire.Lexer) error {
	*e = event{parts: e.parts[:0]}
	if l.Kind() != '{' {
		l.Skip()
		if err := l.Err(); err != nil {
			return err
		}
		return errNoObject
	}
	for key := range l.Members() {
		switch string(key) {
		case "candidates":
			e.ours = true
			e.readCandidates(l)
		case "usageMetadata":
			e.ours = true
			e.hasUsage = e.usage.read(l) || e.hasUsage
		case "promptFeedback":
			e.ours = true
			e.readFeedback(l)
		case "modelVersion":
			e.model = l.String()
		case "responseId":
			e.id = l.String()
		case "error":
			e.fault = object(l)
		default:
			l.Skip()
		}
	}
	return l.Err()
}

// object returns the next value if it says anything, nil for null.
func object(l *wire.Lexer) []byte {
	if l.Kind() == 'n' {
		l.Skip()
		return nil
	}
	return l.Raw()
}

func (e *event) readFeedback(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "blockReason":
			e.blocked = l.String()
		case "blockReasonMessage":
			e.explanation = l.String()
		default:
			l.Skip()
		}
	}
}

// readCandidates takes the first candidate. More are never asked for.
func (e *event) readCandidates(l *wire.Lexer) {
	if !l.Array() {
		return
	}
	for l.Elem() {
		e.readCandidate(l)
	}
}

func (e *event) readCandidate(l *wire.Lexer) {
	var stop, explanation []byte
	index, from := int64(0), len(e.parts)
	for key := range l.Members() {
		switch string(key) {
		case "content":
			e.readContent(l)
		case "finishReason":
			stop = l.String()
		case "finishMessage":
			explanation = l.String()
		case "index":
			index, _ = l.Int()
		default:
			l.Skip()
		}
	}
	if index != 0 {
		e.parts = e.parts[:from]
		return
	}
	if len(stop) > 0 {
		e.stop, e.explanation = stop, explanation
	}
}

func (e *event) readContent(l *wire.Lexer) {
	for key := range l.Members() {
		if string(key) != "parts" {
			l.Skip()
			continue
		}
		if !l.Array() {
			continue
		}
		for l.Elem() {
			e.parts = append(e.parts, readPart(l))
		}
	}
}

func readPart(l *wire.Lexer) part {
	var p part
	for key := range l.Members() {
		switch string(key) {
		case "text":
			p.text = l.String()
		case "thought":
			p.thought, _ = l.Bool()
		case "thoughtSignature":
			p.signature = l.String()
		case "functionCall":
			if raw := l.Kind(); raw != '{' {
				l.Skip()
				continue
			}
			p.called = true
			p.call = readCall(l)
		default:
			l.Skip()
		}
	}
	return p
}

func readCall(l *wire.Lexer) call {
	var c call
	for key := range l.Members() {
		switch string(key) {
		case "id":
			c.id = l.String()
		case "name":
			c.name = l.String()
		case "args":
			c.arguments = object(l)
		case "partialArgs":
			c.pieces = object(l)
		case "willContinue":
			c.continues, _ = l.Bool()
		default:
			l.Skip()
		}
	}
	return c
}
