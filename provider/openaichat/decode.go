package openaichat

import (
	"bytes"
	"fmt"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// decoder decodes one response. Most events repeat an envelope around one new string; the three templates recognise
// them, and everything else is read in full.
type decoder struct {
	assembly *wire.Assembly
	lexer    wire.Lexer
	chunk    chunk
	state    wire.State
	done     bool

	words, thoughts, arguments wire.Template
	// thoughtField and argumentSlot are what the templates of those names stand for.
	thoughtField int
	argumentSlot int64
	// field is the member in which this response's thinking came first, -1 before any came.
	field int

	origin            llm.Origin
	id, model, finish string
	refusal           []byte
	details           []detail
	usage             counts
	missingFinish     bool
	// plain turns the templates off, for tests.
	plain bool
}

func newDecoder(origin llm.Origin, missingFinish bool, sink llm.Sink) *decoder {
	return &decoder{assembly: wire.NewAssembly(sink), origin: origin, missingFinish: missingFinish, field: -1}
}

// State returns how far the response has come; see wire.Decoder.
func (d *decoder) State() wire.State { return d.state }

// Event decodes one event; see wire.Decoder.
func (d *decoder) Event(ev wire.Event) error {
	data := ev.Data
	if len(data) <= len(doneMark)+8 {
		switch data = bytes.TrimSpace(data); string(data) {
		case "":
			return nil
		case doneMark:
			d.done, d.state = true, wire.Done
			return nil
		}
	}
	if !d.plain {
		if raw, ok := d.words.Match(data); ok {
			return d.assembly.Text(raw)
		}
		if raw, ok := d.arguments.Match(data); ok {
			return d.addPiece(piece{slot: d.argumentSlot, arguments: text{raw: raw}})
		}
		if raw, ok := d.thoughts.Match(data); ok {
			return d.think(d.thoughtField, raw)
		}
	}
	if err := d.chunk.parse(&d.lexer, data); err != nil {
		return wire.Malformed("an event of the stream is "+err.Error(), err)
	}
	if err := d.apply(&d.chunk); err != nil {
		return err
	}
	d.learn(&d.chunk, data)
	return nil
}

const doneMark = "[DONE]"

// Whole decodes a response that was not streamed; see wire.Decoder.
func (d *decoder) Whole(body []byte) error {
	if err := d.chunk.parse(&d.lexer, body); err != nil {
		return wire.Malformed("the response is "+err.Error(), err)
	}
	if d.chunk.fault == nil && !d.chunk.hasChoice {
		return wire.Malformed("the response is JSON, but holds no choices", nil)
	}
	d.done = true
	return d.apply(&d.chunk)
}

// apply takes what one event says.
func (d *decoder) apply(c *chunk) error {
	if c.usage.reported {
		d.usage = c.usage
	}
	if d.id == "" && len(c.id) > 0 {
		d.id = wire.Cut(wire.Unquote(c.id))
	}
	if d.model == "" && len(c.model) > 0 {
		d.model = wire.Cut(wire.Unquote(c.model))
	}
	if c.fault != nil {
		return wire.StreamError(c.fault)
	}
	if !c.hasChoice {
		return nil
	}
	if err := d.applyChoice(&c.choice, c.whole); err != nil {
		return err
	}
	if len(c.choice.finish) > 0 && d.finish == "" {
		d.finish = wire.Cut(wire.Unquote(c.choice.finish))
		d.state = max(d.state, wire.Finished)
	}
	return nil
}

func (d *decoder) applyChoice(c *choice, whole bool) error {
	// A complete message after its own deltas says everything once more.
	if whole && (d.assembly.TextSize() > 0 || len(d.assembly.Calls()) > 0) {
		return nil
	}
	if err := d.applyThinking(c); err != nil {
		return err
	}
	if len(c.list) > 0 {
		if err := d.applyList(c.list); err != nil {
			return err
		}
	}
	if !(len(c.finish) > 0 && d.assembly.Repeated(c.content.raw)) {
		if err := d.assembly.Text(c.content.raw); err != nil {
			return err
		}
	}
	if len(c.refusal) > 0 {
		d.refusal = append(d.refusal, wire.Unquote(c.refusal)...)
		if err := d.assembly.Grow(len(c.refusal)); err != nil {
			return err
		}
	}
	for _, p := range c.calls {
		if err := d.addPiece(p); err != nil {
			return err
		}
	}
	return nil
}

// applyThinking takes the thinking of one event from one place, although some servers send it in several.
func (d *decoder) applyThinking(c *choice) error {
	heard := d.field >= 0 && len(c.thinking[d.field].raw) > 0
	for i := range c.thinking {
		heard = heard || len(c.thinking[i].raw) > 0
	}
	if len(c.details) > 0 {
		if err := d.applyDetails(c.details, heard); err != nil {
			return err
		}
	}
	if d.field >= 0 && len(c.thinking[d.field].raw) > 0 {
		return d.think(d.field, c.thinking[d.field].raw)
	}
	for i := range c.thinking {
		if len(c.thinking[i].raw) > 0 {
			return d.think(i, c.thinking[i].raw)
		}
	}
	return nil
}

func (d *decoder) think(field int, raw []byte) error {
	if d.field < 0 {
		d.field = field
	}
	return d.assembly.Thinking(thinkingFields[d.field], raw)
}

// applyDetails keeps a list of typed entries, and takes their thinking unless it was heard elsewhere.
func (d *decoder) applyDetails(list []byte, heard bool) error {
	var l wire.Lexer
	l.Reset(list)
	if !l.Array() {
		return nil
	}
	for l.Elem() {
		e := readDetail(&l)
		if err := d.keepDetail(e); err != nil {
			return err
		}
		if heard {
			continue
		}
		if err := d.assembly.Thinking(detailsField, e.said()); err != nil {
			return err
		}
	}
	return nil
}

// applyList takes content that came as a list of parts.
func (d *decoder) applyList(list []byte) error {
	var l wire.Lexer
	l.Reset(list)
	l.Array()
	for l.Elem() {
		if l.Kind() == '"' {
			if err := d.assembly.Text(l.String()); err != nil {
				return err
			}
			continue
		}
		if err := d.applyPart(&l); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) applyPart(l *wire.Lexer) error {
	var words, nested []byte
	for key := range l.Members() {
		switch string(key) {
		case "text":
			words = l.String()
		case "thinking":
			nested = l.Raw()
		default:
			l.Skip()
		}
	}
	if len(nested) > 0 {
		if nested[0] == '"' {
			return d.think(0, nested[1:len(nested)-1])
		}
		return d.applyDetails(nested, false)
	}
	return d.assembly.Text(words)
}

// learn makes an event that said exactly one thing a template for the events to come.
func (d *decoder) learn(c *chunk, data []byte) {
	if d.plain || !c.hasChoice || c.whole || c.usage.reported || len(c.choice.finish) > 0 || len(c.choice.list) > 0 ||
		len(c.choice.details) > 0 || len(c.choice.refusal) > 0 || len(c.choice.calls) > 1 {
		return
	}
	field, things := -1, 0
	for i := range c.choice.thinking {
		if len(c.choice.thinking[i].raw) > 0 {
			field = i
			things++
		}
	}
	words := c.choice.content
	switch {
	case things == 1 && len(words.raw) == 0 && len(c.choice.calls) == 0:
		t := c.choice.thinking[field]
		d.thoughts.Learn(data, t.from, t.to)
		d.thoughtField = field
	case things == 0 && len(words.raw) > 0 && len(c.choice.calls) == 0:
		d.words.Learn(data, words.from, words.to)
	case things == 0 && len(words.raw) == 0 && len(c.choice.calls) == 1:
		p := c.choice.calls[0]
		if len(p.id) == 0 && len(p.name) == 0 && p.object == nil && p.slot >= 0 && len(p.arguments.raw) > 0 {
			d.arguments.Learn(data, p.arguments.from, p.arguments.to)
			d.argumentSlot = p.slot
		}
	}
}

// Close returns the response; see wire.Decoder.
func (d *decoder) Close(err error) (llm.Response, error) {
	var stop llm.StopReason
	if err == nil {
		stop, err = d.end()
	}
	r := llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: d.parts(), Origin: d.origin},
		Stop:    stop, RawStop: d.finish, ServedModel: d.model, ID: d.id,
		UsageReported: d.usage.reported, Billed: d.usage.billed(),
	}
	if d.usage.reported {
		r.Usage = d.usage.usage()
	}
	return r, err
}

// parts returns the message parts. The proof of the thinking goes with its first part, or is a part of its own where
// there is no thinking to read.
func (d *decoder) parts() []llm.Part {
	parts := d.assembly.Parts()
	proof := d.proof()
	if proof == "" {
		return parts
	}
	for i := range parts {
		if parts[i].Type == llm.PartThinking {
			parts[i].Signature = proof
			return parts
		}
	}
	hidden := llm.Part{Type: llm.PartThinking, Signature: proof, Redacted: true, Field: detailsField}
	return append([]llm.Part{hidden}, parts...)
}

// end checks that the response is complete and closes its parts.
func (d *decoder) end() (llm.StopReason, error) {
	if d.finish == "" && (!d.done || !d.missingFinish) {
		return "", wire.Truncated("finish_reason")
	}
	stop, fault := stopReason(d.finish, string(d.refusal))
	if fault != nil {
		return "", fault
	}
	if d.finish == "" && len(d.assembly.Calls()) > 0 {
		stop = llm.StopTools
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

// stopReason translates a finish_reason. An unknown one is an error that names it, never an end.
func stopReason(finish, refusal string) (llm.StopReason, error) {
	class := llm.ClassUnknownStop
	switch finish {
	case "stop", "end", "eos", "eos_token", "end_turn", "stop_sequence", "":
		if refusal == "" {
			return llm.StopEnd, nil
		}
		return "", &llm.Error{Class: llm.ClassRefused, Code: "refusal", Message: wire.Cut("the model refused: " + refusal)}
	case "tool_calls", "function_call", "tool_use":
		return llm.StopTools, nil
	case "length", "max_tokens", "MAX_TOKENS":
		return llm.StopLength, nil
	case "content_filter", "refusal", "safety", "SAFETY", "sensitive":
		class = llm.ClassRefused
	case "error", "network_error", "malformed_function_call", "MALFORMED_FUNCTION_CALL", "insufficient_system_resource":
		class = llm.ClassProvider
	case "model_context_window_exceeded":
		class = llm.ClassContextOverflow
	}
	return "", &llm.Error{Class: class, Code: finish,
		Message: wire.Cut(fmt.Sprintf("the response ended with finish_reason %q", finish))}
}
