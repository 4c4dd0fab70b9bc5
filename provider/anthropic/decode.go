package anthropic

import (
	"bytes"
	"fmt"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// decoder decodes one response. Most events repeat an envelope around one new string; the templates recognise them, and
// everything else is read in full.
type decoder struct {
	assembly *wire.Assembly
	lexer    wire.Lexer
	event    event
	state    wire.State

	words, thoughts, arguments wire.Template
	// argumentSlot is the content block that the template for arguments belongs to.
	argumentSlot int64

	asked, id, model, stop, explanation string
	// inputs are the arguments that came with the beginning of a call; they count if no others follow.
	inputs   map[int64][]byte
	usage    counts
	hasUsage bool
	// plain turns the templates off, for tests.
	plain bool
}

func newDecoder(model string, sink llm.Sink) *decoder {
	return &decoder{assembly: wire.NewAssembly(sink), asked: model}
}

// State returns how far the response has come; see wire.Decoder.
func (d *decoder) State() wire.State { return d.state }

// Event decodes one event; see wire.Decoder.
func (d *decoder) Event(ev wire.Event) error {
	if !d.plain {
		if raw, ok := d.words.Match(ev.Data); ok {
			return d.assembly.Text(raw)
		}
		if raw, ok := d.arguments.Match(ev.Data); ok {
			return d.argue(d.argumentSlot, raw)
		}
		if raw, ok := d.thoughts.Match(ev.Data); ok {
			return d.assembly.Thinking("", raw)
		}
	}
	if len(bytes.TrimSpace(ev.Data)) == 0 {
		return nil
	}
	if err := d.event.parse(&d.lexer, ev.Data); err != nil {
		return wire.Malformed("an event of the stream is "+err.Error(), err)
	}
	if d.event.kind == nil {
		d.event.kind = ev.Name
	}
	if err := d.apply(&d.event, ev.Data); err != nil {
		return err
	}
	d.learn(&d.event, ev.Data)
	return nil
}

// apply takes what one event says. Events of unknown types say nothing to us, which the API asks of its clients.
func (d *decoder) apply(e *event, data []byte) error {
	switch string(e.kind) {
	case "error":
		return wire.StreamError(data)
	case "message_start", "message_delta":
		d.envelope(e)
	case "content_block_start":
		return d.begin(e.index, &e.block)
	case "content_block_delta":
		return d.piece(e.index, &e.delta)
	case "content_block_stop":
		return d.finish(e.index)
	case "message_stop":
		d.state = wire.Done
	}
	return nil
}

// envelope takes what the first and the last events say about the message as a whole.
func (d *decoder) envelope(e *event) {
	if e.hasUsage {
		d.hasUsage = true
		d.usage.merge(e.usage)
	}
	if d.id == "" && len(e.id) > 0 {
		d.id = wire.Cut(wire.Unquote(e.id))
	}
	if d.model == "" && len(e.model) > 0 {
		d.model = wire.Cut(wire.Unquote(e.model))
	}
	if len(e.stop) > 0 {
		d.stop = wire.Cut(wire.Unquote(e.stop))
	}
	if len(e.explanation) > 0 {
		d.explanation = wire.Cut(wire.Unquote(e.explanation))
	}
}

// begin opens a content block. Blocks of other types belong to tools that run at the provider, which hozo does not use.
func (d *decoder) begin(index int64, b *block) error {
	switch string(b.kind) {
	case "text":
		if err := d.assembly.EndPart(); err != nil {
			return err
		}
		return d.assembly.Text(b.text)
	case "thinking":
		if err := d.assembly.EndPart(); err != nil {
			return err
		}
		if err := d.assembly.Thinking("", b.thinking); err != nil {
			return err
		}
		return d.assembly.Signature(b.signature)
	case "redacted_thinking":
		return d.assembly.Redacted(b.data)
	case "tool_use":
		return d.beginCall(index, b)
	}
	return nil
}

func (d *decoder) beginCall(index int64, b *block) error {
	c, err := d.assembly.OpenCall(index)
	if err != nil {
		return err
	}
	if err := d.assembly.CallID(c, b.id); err != nil {
		return err
	}
	if len(b.input) > 0 {
		if err := d.assembly.Grow(len(b.input)); err != nil {
			return err
		}
		if d.inputs == nil {
			d.inputs = map[int64][]byte{}
		}
		d.inputs[index] = bytes.Clone(b.input)
	}
	return d.assembly.CallName(c, b.name)
}

func (d *decoder) piece(index int64, p *delta) error {
	switch string(p.kind) {
	case "text_delta":
		return d.assembly.Text(p.text)
	case "thinking_delta":
		return d.assembly.Thinking("", p.text)
	case "signature_delta":
		return d.assembly.Signature(p.signature)
	case "input_json_delta":
		return d.argue(index, p.text)
	}
	return nil
}

func (d *decoder) argue(index int64, raw []byte) error {
	if c := d.call(index); c != nil {
		return d.assembly.CallArguments(c, raw)
	}
	return nil
}

// call returns the last call that began as the block at index, nil if there is none.
func (d *decoder) call(index int64) *wire.Call {
	calls := d.assembly.Calls()
	for i := len(calls) - 1; i >= 0; i-- {
		if calls[i].Slot == index {
			return calls[i]
		}
	}
	return nil
}

// finish ends a content block. A call whose arguments are no whole object is left open: if the response was cut at its
// output limit, it never was complete.
func (d *decoder) finish(index int64) error {
	c := d.call(index)
	if c == nil {
		return d.assembly.EndPart()
	}
	if err := d.takeInput(c); err != nil {
		return err
	}
	if c.Started() && !c.Whole() {
		return nil
	}
	return d.assembly.EndCall(c)
}

// takeInput gives a call the arguments that came with its beginning, if no others came.
func (d *decoder) takeInput(c *wire.Call) error {
	input, ok := d.inputs[c.Slot]
	if !ok || c.Started() {
		return nil
	}
	delete(d.inputs, c.Slot)
	return d.assembly.CallObject(c, input)
}

// learn makes an event that was one piece of text a template for the events to come.
func (d *decoder) learn(e *event, data []byte) {
	if d.plain || string(e.kind) != "content_block_delta" || len(e.delta.text) == 0 {
		return
	}
	switch string(e.delta.kind) {
	case "text_delta":
		d.words.Learn(data, e.delta.from, e.delta.to)
	case "thinking_delta":
		d.thoughts.Learn(data, e.delta.from, e.delta.to)
	case "input_json_delta":
		d.arguments.Learn(data, e.delta.from, e.delta.to)
		d.argumentSlot = e.index
	}
}

// Whole decodes a response that was not streamed; see wire.Decoder.
func (d *decoder) Whole(body []byte) error {
	e := &d.event
	if err := e.parse(&d.lexer, body); err != nil {
		return wire.Malformed("the response is "+err.Error(), err)
	}
	switch {
	case string(e.kind) == "error":
		return wire.StreamError(body)
	case string(e.kind) != "message" || len(e.content) == 0 || e.content[0] != '[':
		return wire.Malformed("the response is JSON, but no message", nil)
	}
	d.envelope(e)
	d.state = wire.Done
	var l wire.Lexer
	l.Reset(e.content)
	l.Array()
	for index := int64(0); l.Elem(); index++ {
		var b block
		b.read(&l)
		if err := d.begin(index, &b); err != nil {
			return err
		}
		if err := d.finish(index); err != nil {
			return err
		}
	}
	return nil
}

// Close returns the response; see wire.Decoder.
func (d *decoder) Close(err error) (llm.Response, error) {
	var stop llm.StopReason
	if err == nil {
		stop, err = d.end()
	}
	r := llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: d.assembly.Parts(),
			Origin: llm.Origin{API: API, Model: d.asked}},
		Stop: stop, RawStop: d.stop, ServedModel: d.model, ID: d.id, UsageReported: d.hasUsage,
	}
	if d.hasUsage {
		r.Usage = d.usage.usage()
	}
	return r, err
}

// end checks that the response is complete and closes its parts.
func (d *decoder) end() (llm.StopReason, error) {
	switch {
	case d.state != wire.Done:
		return "", wire.Truncated("message_stop")
	case d.stop == "":
		return "", wire.Truncated("stop_reason")
	}
	stop, fault := d.stopReason()
	if fault != nil {
		return "", fault
	}
	for _, c := range d.assembly.Calls() {
		if err := d.takeInput(c); err != nil {
			return "", wire.Stopped(err)
		}
	}
	end := d.assembly.End
	if stop == llm.StopLength {
		end = d.assembly.EndCut
	}
	if err := end(); err != nil {
		return "", wire.Stopped(err)
	}
	return stop, nil
}

// stopReason translates a stop_reason. An unknown one is an error that names it, never an end.
func (d *decoder) stopReason() (llm.StopReason, error) {
	class := llm.ClassUnknownStop
	switch d.stop {
	case "end_turn", "stop_sequence", "pause_turn":
		return llm.StopEnd, nil
	case "tool_use":
		return llm.StopTools, nil
	case "max_tokens":
		return llm.StopLength, nil
	case "refusal", "sensitive":
		class = llm.ClassRefused
	case "model_context_window_exceeded":
		class = llm.ClassContextOverflow
	}
	message := fmt.Sprintf("the response ended with stop_reason %q", d.stop)
	if d.explanation != "" {
		message += ": " + d.explanation
	}
	return "", &llm.Error{Class: class, Code: d.stop, Message: wire.Cut(message)}
}
