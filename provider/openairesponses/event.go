package openairesponses

import (
	"errors"

	"github.com/hozo-run/hozo/provider/wire"
)

// event is what one event says, as slices of it. Strings are still escaped, lists and objects are JSON.
type event struct {
	kind []byte
	// output, content and summary are the places of an item, of a part in it and of a part of its summary.
	output, content, summary int64
	delta, text              []byte
	// from and to are where the delta lies in the event.
	from, to           int
	refusal, arguments []byte
	item, response     []byte
	fault              []byte
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
	for key := range members(l) {
		switch string(key) {
		case "type":
			e.kind = l.String()
		case "output_index":
			e.output, _ = l.Int()
		case "content_index":
			e.content, _ = l.Int()
		case "summary_index":
			e.summary, _ = l.Int()
		case "delta":
			e.delta = l.String()
			e.to = l.Pos() - 1
			e.from = e.to - len(e.delta)
		case "text":
			e.text = l.String()
		case "refusal":
			e.refusal = l.String()
		case "arguments":
			e.arguments = l.String()
		case "item":
			e.item = object(l)
		case "response":
			e.response = object(l)
		case "error":
			e.fault = fault(l)
		default:
			l.Skip()
		}
	}
	return l.End()
}

// members enters an object and yields its keys; the loop must consume the value of each. Any other value is skipped.
func members(l *wire.Lexer) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		if !l.Object() {
			return
		}
		for {
			key, ok := l.Key()
			if !ok || !yield(key) {
				return
			}
		}
	}
}

// object returns the next value if it is an object.
func object(l *wire.Lexer) []byte {
	if l.Kind() != '{' {
		l.Skip()
		return nil
	}
	return l.Raw()
}

// list returns the next value if it is a list.
func list(l *wire.Lexer) []byte {
	if l.Kind() != '[' {
		l.Skip()
		return nil
	}
	return l.Raw()
}

// fault returns the next value if it is an error that says anything.
func fault(l *wire.Lexer) []byte {
	switch l.Kind() {
	case '{', '"':
		if raw := l.Raw(); len(raw) > 2 {
			return raw
		}
		return nil
	}
	l.Skip()
	return nil
}

// item is one entry of the output.
type item struct {
	kind, id, callID, name []byte
	arguments, status      []byte
	encrypted              []byte
	content, summary       []byte
	// stage says whether a message is an aside or the answer, in the words of the models that tell the two apart.
	stage []byte
}

// The types of items that are read. The others belong to tools that run at the provider, which hozo does not use.
const (
	itemMessage   = "message"
	itemReasoning = "reasoning"
	itemCall      = "function_call"
)

func (i *item) read(l *wire.Lexer) {
	*i = item{}
	for key := range members(l) {
		switch string(key) {
		case "type":
			i.kind = l.String()
		case "id":
			i.id = l.String()
		case "call_id":
			i.callID = l.String()
		case "name":
			i.name = l.String()
		case "arguments":
			i.arguments = l.String()
		case "status":
			i.status = l.String()
		case "encrypted_content":
			i.encrypted = l.String()
		case "phase":
			i.stage = l.String()
		case "content":
			i.content = list(l)
		case "summary":
			i.summary = list(l)
		default:
			l.Skip()
		}
	}
}

// complete reports whether the item came to its end. Servers that give no status send an item when it is complete.
func (i *item) complete() bool {
	return string(i.status) != "in_progress" && string(i.status) != "incomplete"
}

// textPart is a part of the content or of the summary of an item.
type textPart struct{ text, refusal []byte }

func (p *textPart) read(l *wire.Lexer) {
	*p = textPart{}
	for key := range members(l) {
		switch string(key) {
		case "text":
			p.text = l.String()
		case "refusal":
			p.refusal = l.String()
		default:
			l.Skip()
		}
	}
}

// response is the response as a whole, as the first and the last events carry it.
type response struct {
	id, model, status []byte
	reason, tier      []byte
	fault             []byte
	output            []byte
	usage             counts
}

func (r *response) read(l *wire.Lexer) {
	*r = response{}
	for key := range members(l) {
		switch string(key) {
		case "id":
			r.id = l.String()
		case "model":
			r.model = l.String()
		case "status":
			r.status = l.String()
		case "service_tier":
			r.tier = l.String()
		case "incomplete_details":
			r.readDetails(l)
		case "error":
			r.fault = fault(l)
		case "output":
			r.output = list(l)
		case "usage":
			r.usage.read(l)
		default:
			l.Skip()
		}
	}
}

func (r *response) readDetails(l *wire.Lexer) {
	for key := range members(l) {
		if string(key) == "reason" {
			r.reason = l.String()
			continue
		}
		l.Skip()
	}
}
