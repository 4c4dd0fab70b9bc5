package bedrock

import (
	"bytes"
	"encoding/base64"
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

	text, thoughts, arguments wire.Template
	// argumentSlot is the content block that the template for arguments belongs to.
	argumentSlot int64

	asked, model, stop string
	// hidden is the thinking of the open block that the provider keeps to itself.
	hidden []byte
	usage  counts
	// plain turns the templates off, for tests.
	plain bool
}

func newDecoder(model string, sink llm.Sink) *decoder {
	return &decoder{assembly: wire.NewAssembly(sink), asked: model}
}

// State returns how far the response has come; see wire.Decoder.
func (d *decoder) State() wire.State { return d.state }

// Event decodes one event; see wire.Decoder. Events of unknown names say nothing to us.
func (d *decoder) Event(ev wire.Event) error {
	if string(ev.Name) == "contentBlockDelta" && !d.plain {
		if raw, ok := d.text.Match(ev.Data); ok {
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
	e := &d.event
	if err := e.parse(&d.lexer, ev.Data); err != nil {
		return wire.Malformed("an event of the stream is "+err.Error(), err)
	}
	return d.apply(string(ev.Name), e, ev.Data)
}

// apply takes what one event says.
func (d *decoder) apply(name string, e *event, data []byte) error {
	switch name {
	case "contentBlockStart":
		return d.begin(e.index, &e.block)
	case "contentBlockDelta":
		if err := d.piece(e.index, &e.block); err != nil {
			return err
		}
		d.learn(e, data)
	case "contentBlockStop":
		return d.finish(e.index)
	case "messageStop":
		d.envelope(e)
		d.state = wire.Finished
	case "metadata":
		d.envelope(e)
		if d.state == wire.Finished {
			d.state = wire.Done
		}
	}
	return nil
}

// envelope takes what an event says about the message as a whole.
func (d *decoder) envelope(e *event) {
	if e.usage.reported {
		d.usage = e.usage
	}
	if len(e.stop) > 0 {
		d.stop = wire.Cut(wire.Unquote(e.stop))
	}
	if len(e.model) > 0 {
		d.model = wire.Cut(wire.Unquote(e.model))
	}
}

// begin opens a content block. Only calls say what they are at their beginning.
func (d *decoder) begin(index int64, b *block) error {
	if !b.call {
		return d.assembly.EndPart()
	}
	c, err := d.assembly.OpenCall(index)
	if err != nil {
		return err
	}
	if err := d.assembly.CallID(c, b.id); err != nil {
		return err
	}
	return d.assembly.CallName(c, b.name)
}

func (d *decoder) piece(index int64, b *block) error {
	if err := d.assembly.Text(b.text.raw); err != nil {
		return err
	}
	if err := d.assembly.Thinking("", b.thinking.raw); err != nil {
		return err
	}
	if err := d.assembly.Signature(b.signature); err != nil {
		return err
	}
	if len(b.hidden) > 0 {
		return d.hide(b.hidden)
	}
	if b.call {
		return d.argue(index, b.arguments.raw)
	}
	return nil
}

// hide keeps a piece of thinking that the provider keeps to itself. Each piece is base64 of its own, so they are joined as
// bytes; the whole becomes a part at the end of its block.
func (d *decoder) hide(raw []byte) error {
	if err := d.assembly.Grow(len(raw)); err != nil {
		return err
	}
	piece, err := base64.StdEncoding.AppendDecode(d.hidden, []byte(wire.Unquote(raw)))
	if err != nil {
		return wire.Malformed("a piece of redacted thinking is no base64", nil)
	}
	d.hidden = piece
	return nil
}

func (d *decoder) argue(index int64, raw []byte) error {
	c := d.call(index)
	if c == nil || len(raw) == 0 {
		return nil
	}
	return d.assembly.CallArguments(c, raw)
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
	if err := d.reveal(); err != nil {
		return err
	}
	c := d.call(index)
	if c == nil {
		return d.assembly.EndPart()
	}
	if c.Started() && !c.Whole() {
		return nil
	}
	return d.assembly.EndCall(c)
}

// reveal makes a part of the redacted thinking that has come.
func (d *decoder) reveal() error {
	if len(d.hidden) == 0 {
		return nil
	}
	encoded := base64.StdEncoding.AppendEncode(nil, d.hidden)
	d.hidden = d.hidden[:0]
	return d.assembly.Redacted(encoded)
}

// learn makes an event that was one piece of text a template for the events to come.
func (d *decoder) learn(e *event, data []byte) {
	b := &e.block
	switch {
	case d.plain || len(b.signature) > 0 || len(b.hidden) > 0:
	case len(b.text.raw) > 0 && !b.call && len(b.thinking.raw) == 0:
		d.text.Learn(data, b.text.from, b.text.to)
	case len(b.thinking.raw) > 0 && !b.call && len(b.text.raw) == 0:
		d.thoughts.Learn(data, b.thinking.from, b.thinking.to)
	case len(b.arguments.raw) > 0 && len(b.text.raw) == 0 && len(b.thinking.raw) == 0:
		d.arguments.Learn(data, b.arguments.from, b.arguments.to)
		d.argumentSlot = e.index
	}
}

// Whole decodes a response that was not streamed; see wire.Decoder.
func (d *decoder) Whole(body []byte) error {
	e := &d.event
	if err := e.parse(&d.lexer, body); err != nil {
		return wire.Malformed("the response is "+err.Error(), err)
	}
	if e.content == nil {
		return wire.StreamError(body)
	}
	d.envelope(e)
	d.state = wire.Done
	var l wire.Lexer
	l.Reset(e.content)
	l.Array()
	for index := int64(0); l.Elem(); index++ {
		var b block
		b.read(&l)
		if err := d.wholeBlock(index, &b); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) wholeBlock(index int64, b *block) error {
	if err := d.begin(index, b); err != nil {
		return err
	}
	if err := d.piece(index, b); err != nil {
		return err
	}
	if c := d.call(index); c != nil && len(b.input) > 0 {
		if err := d.assembly.CallObject(c, b.input); err != nil {
			return err
		}
	}
	return d.finish(index)
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
		Stop: stop, RawStop: d.stop, ServedModel: d.model, UsageReported: d.usage.reported,
	}
	if d.usage.reported {
		r.Usage = d.usage.usage()
	}
	return r, err
}

// end checks that the response is complete and closes its parts.
func (d *decoder) end() (llm.StopReason, error) {
	switch {
	case d.state == wire.Streaming:
		return "", wire.Truncated("messageStop")
	case d.stop == "":
		return "", wire.Truncated("stopReason")
	}
	stop, fault := d.stopReason()
	if fault != nil {
		return "", fault
	}
	if err := d.reveal(); err != nil {
		return "", wire.Stopped(err)
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

// stopReason translates a stop reason. An unknown one is an error that names it, never an end.
func (d *decoder) stopReason() (llm.StopReason, error) {
	class := llm.ClassUnknownStop
	switch d.stop {
	case "end_turn", "stop_sequence":
		return llm.StopEnd, nil
	case "tool_use":
		return llm.StopTools, nil
	case "max_tokens":
		return llm.StopLength, nil
	case "guardrail_intervened", "content_filtered", "refusal":
		class = llm.ClassRefused
	case "model_context_window_exceeded":
		class = llm.ClassContextOverflow
	case "malformed_model_output", "malformed_tool_use":
		class = llm.ClassProvider
	}
	return "", &llm.Error{Class: class, Code: d.stop, Message: wire.Cut(fmt.Sprintf("the response ended with stopReason %q", d.stop))}
}
