package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// Assembly builds one response from the pieces of a stream and reports each piece to the sink as it comes. An adapter
// feeds it raw JSON strings (escaped, as a Lexer returns them); the assembly unescapes and mends them and copies them
// once. Every method returns the sink's error, or an *llm.Error for a response above the limits.
type Assembly struct {
	sink    llm.Sink
	parts   []part
	calls   []*Call
	open    int
	joiner  joiner
	scratch []byte
	size    int
	// opened counts the calls whose name the sink has seen.
	opened int
	// texts counts the pieces of answer text, textSize their bytes.
	texts, textSize int
}

type part struct {
	kind      llm.PartType
	text      strings.Builder
	field     string
	signature []byte
	redacted  bool
	call      *Call
}

// Call is a tool call that is being streamed.
type Call struct {
	// ID is the provider's id as far as it is known.
	ID string
	// Slot is the provider's index of the call, -1 if it gave none.
	Slot int64

	index     int
	name      string
	signature string
	arguments []byte
	// told counts the bytes of arguments that the sink has seen.
	told   int
	opened bool
	done   bool
	// ending says that no name will come any more.
	ending bool
	joiner joiner
}

// Name returns the name of the tool as far as it is known.
func (c *Call) Name() string { return c.name }

// Complete reports whether the arguments so far are one whole JSON object that holds something. It is asked often, so
// the last byte is looked at before the whole.
func (c *Call) Complete() bool {
	text := bytes.TrimSpace(c.arguments)
	return len(text) > 2 && text[len(text)-1] == '}' && !c.placeholder() && CheckObject(text) == nil
}

// Whole reports whether the arguments so far are one JSON object, even an empty one.
func (c *Call) Whole() bool { return CheckObject(c.arguments) == nil }

// Started reports whether any argument text has come.
func (c *Call) Started() bool { return len(c.arguments) > 0 || len(c.joiner.held) > 0 }

// placeholder reports whether the arguments so far are an empty object. Some servers send it first and the real
// arguments afterwards, so it counts only if nothing follows.
func (c *Call) placeholder() bool { return string(bytes.TrimSpace(c.arguments)) == "{}" }

// NewAssembly returns an empty assembly that reports to sink; a nil sink is allowed.
func NewAssembly(sink llm.Sink) *Assembly {
	if sink == nil {
		sink = func(llm.Delta) error { return nil }
	}
	return &Assembly{sink: sink, open: -1}
}

func tooLarge(message string) *llm.Error {
	return &llm.Error{Class: llm.ClassMalformed, Final: true, Message: message, Err: ErrTooLarge}
}

// partCost is what a part or call is counted as besides its text, so that many small ones are bounded too.
const partCost = 128

// Grow counts n bytes that are kept of the response and returns an error when they are too many.
func (a *Assembly) Grow(n int) error {
	if a.size += n; a.size > MaxAnswer {
		return tooLarge(fmt.Sprintf("the response is larger than %d bytes", MaxAnswer))
	}
	return nil
}

// Text adds a piece of the answer.
func (a *Assembly) Text(raw []byte) error {
	if len(raw) > 0 {
		a.texts++
	}
	return a.prose(llm.PartText, "", raw)
}

// Thinking adds a piece of thinking that came in the wire field of that name.
func (a *Assembly) Thinking(field string, raw []byte) error {
	return a.prose(llm.PartThinking, field, raw)
}

func (a *Assembly) prose(kind llm.PartType, field string, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	if err := a.enter(kind, field); err != nil {
		return err
	}
	return a.say(a.joiner.join(unquote(raw, &a.scratch)))
}

// enter makes the open part one of this kind, and ends the one before if it is another.
func (a *Assembly) enter(kind llm.PartType, field string) error {
	if a.open >= 0 && a.parts[a.open].kind == kind && a.parts[a.open].field == field {
		return nil
	}
	if err := a.EndPart(); err != nil {
		return err
	}
	a.open = len(a.parts)
	a.parts = append(a.parts, part{kind: kind, field: field})
	return a.Grow(partCost)
}

// say reports valid text of the open part and keeps it.
func (a *Assembly) say(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if err := a.Grow(len(text)); err != nil {
		return err
	}
	p := &a.parts[a.open]
	p.text.Write(text)
	kind := llm.DeltaText
	if p.kind == llm.PartThinking {
		kind = llm.DeltaThinking
	} else {
		a.textSize += len(text)
	}
	return a.sink(llm.Delta{Kind: kind, Text: text})
}

// EndPart ends the open text or thinking part; the next piece begins a new one.
func (a *Assembly) EndPart() error {
	if a.open < 0 {
		return nil
	}
	err := a.say(a.joiner.flush())
	a.open = -1
	return err
}

// Signature adds a piece of the proof of the open thinking part.
func (a *Assembly) Signature(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	if err := a.enter(llm.PartThinking, ""); err != nil {
		return err
	}
	p := &a.parts[a.open]
	p.signature = append(p.signature, Unquote(raw)...)
	return a.Grow(len(raw))
}

// Redacted adds a thinking part whose text the provider keeps to itself.
func (a *Assembly) Redacted(raw []byte) error {
	if err := a.EndPart(); err != nil {
		return err
	}
	a.parts = append(a.parts, part{kind: llm.PartThinking, redacted: true, signature: []byte(Unquote(raw))})
	return a.Grow(len(raw) + partCost)
}

// Repeated reports whether raw is the whole answer text so far once more. A single piece is never a repetition.
func (a *Assembly) Repeated(raw []byte) bool {
	if a.texts < 2 || len(raw) < a.textSize {
		return false
	}
	text := Unquote(raw)
	return len(text) == a.textSize && text == a.text()
}

// TextSize returns the size of the answer text so far in bytes.
func (a *Assembly) TextSize() int { return a.textSize }

func (a *Assembly) text() string {
	var b strings.Builder
	for i := range a.parts {
		if a.parts[i].kind == llm.PartText {
			b.WriteString(a.parts[i].text.String())
		}
	}
	return b.String()
}

// Calls returns the tool calls so far in the order in which they began.
func (a *Assembly) Calls() []*Call { return a.calls }

// OpenCall begins a tool call. The call before it is reported as done if it is complete.
func (a *Assembly) OpenCall(slot int64) (*Call, error) {
	if len(a.calls) >= MaxCalls {
		return nil, tooLarge(fmt.Sprintf("the response holds more than %d tool calls", MaxCalls))
	}
	if err := a.EndPart(); err != nil {
		return nil, err
	}
	if err := a.openCalls(len(a.calls) - 1); err != nil {
		return nil, err
	}
	if n := len(a.calls); n > 0 && a.calls[n-1].Complete() {
		if err := a.EndCall(a.calls[n-1]); err != nil {
			return nil, err
		}
	}
	c := &Call{Slot: slot, index: len(a.calls)}
	a.calls = append(a.calls, c)
	a.parts = append(a.parts, part{kind: llm.PartToolCall, call: c})
	return c, a.Grow(partCost)
}

// CallID sets the provider's id of a call that has none yet.
func (a *Assembly) CallID(c *Call, raw []byte) error {
	if c.ID != "" || len(raw) == 0 {
		return nil
	}
	c.ID = Unquote(raw)
	return a.Grow(len(raw))
}

// longestName is far above the length of any tool's name.
const longestName = 1024

// CallName adds to the name of a call. A repeated name changes nothing; a name may come in pieces as long as no
// arguments have come.
func (a *Assembly) CallName(c *Call, raw []byte) error {
	piece := Unquote(raw)
	switch {
	case piece == "" || piece == c.name || (c.opened && c.name != ""):
	case strings.HasPrefix(piece, c.name):
		c.name = piece
	default:
		c.name += piece
	}
	if len(c.name) > longestName {
		return tooLarge(fmt.Sprintf("the name of a tool call is longer than %d bytes", longestName))
	}
	return nil
}

// CallArguments adds a piece of the argument text, given as an escaped string.
func (a *Assembly) CallArguments(c *Call, raw []byte) error {
	return a.argue(c, c.joiner.join(unquote(raw, &a.scratch)))
}

// CallObject adds argument text that came as JSON itself and not inside a string.
func (a *Assembly) CallObject(c *Call, raw []byte) error { return a.argue(c, c.joiner.join(raw)) }

func (a *Assembly) argue(c *Call, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if c.placeholder() && c.told == 0 && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		c.arguments = c.arguments[:0]
	}
	c.arguments = append(c.arguments, text...)
	if err := a.Grow(len(text)); err != nil {
		return err
	}
	if c.placeholder() {
		return nil
	}
	return a.tell(c)
}

// tell reports what the sink does not know of a call yet. Calls are opened in their order: a call whose name has not
// come holds back the calls after it.
func (a *Assembly) tell(c *Call) error {
	if err := a.openCalls(c.index); err != nil || !c.opened {
		return err
	}
	if c.told == len(c.arguments) {
		return nil
	}
	text := c.arguments[c.told:]
	c.told = len(c.arguments)
	return a.sink(llm.Delta{Kind: llm.DeltaToolArguments, Index: c.index, Text: text})
}

// openCalls reports the names of the calls up to index that are due.
func (a *Assembly) openCalls(index int) error {
	for a.opened <= index {
		c := a.calls[a.opened]
		if c.name == "" && !c.ending {
			return nil
		}
		c.opened = true
		a.opened++
		if err := a.sink(llm.Delta{Kind: llm.DeltaToolName, Index: c.index, Text: []byte(c.name)}); err != nil {
			return err
		}
	}
	return nil
}

// EndCall reports that a call is complete. It does nothing the second time, and nothing while a call before it has no
// name.
func (a *Assembly) EndCall(c *Call) error {
	if c.done {
		return nil
	}
	if err := a.openCalls(c.index); err != nil || !c.opened {
		return err
	}
	c.done = true
	c.arguments = append(c.arguments, c.joiner.flush()...)
	if err := a.tell(c); err != nil {
		return err
	}
	return a.sink(llm.Delta{Kind: llm.DeltaToolDone, Index: c.index})
}

// End ends every open part and call of a response that came to its finish mark.
func (a *Assembly) End() error {
	if err := a.EndPart(); err != nil {
		return err
	}
	for _, c := range a.calls {
		c.ending = true
		if err := a.EndCall(c); err != nil {
			return err
		}
	}
	return nil
}

// EndCut ends the parts of a response that was cut at its output limit: only calls that are whole are reported as done.
func (a *Assembly) EndCut() error {
	if err := a.EndPart(); err != nil {
		return err
	}
	for _, c := range a.calls {
		if !c.Whole() {
			continue
		}
		if err := a.EndCall(c); err != nil {
			return err
		}
	}
	return nil
}

// Parts returns the message parts so far, also of a response that was cut.
func (a *Assembly) Parts() []llm.Part {
	parts := make([]llm.Part, 0, len(a.parts))
	for i := range a.parts {
		p := &a.parts[i]
		switch {
		case p.call != nil:
			parts = append(parts, llm.Part{Type: llm.PartToolCall, Signature: p.call.signature, ToolCall: p.call.finished()})
		case p.text.Len() > 0 || len(p.signature) > 0 || p.redacted:
			parts = append(parts, llm.Part{Type: p.kind, Text: p.text.String(), Field: p.field,
				Signature: string(p.signature), Redacted: p.redacted})
		}
	}
	return parts
}

func (c *Call) finished() *llm.ToolCall {
	call := &llm.ToolCall{ProviderID: c.ID, Name: c.name}
	text := bytes.TrimSpace(c.arguments)
	if len(text) == 0 {
		call.Arguments = json.RawMessage("{}")
		return call
	}
	if err := CheckObject(text); err != nil {
		call.ArgumentsError = "the argument text is " + err.Error()
		call.RawArguments = string(c.arguments)
		return call
	}
	call.Arguments = json.RawMessage(text)
	return call
}
