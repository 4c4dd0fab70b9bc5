package openairesponses

import (
	"bytes"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// decoder decodes one response.
type decoder struct {
	assembly *wire.Assembly
	lexer    wire.Lexer
	event    event
	state    wire.State

	// words, thoughts and arguments recognise the events that differ from the last one of their kind in one string; the
	// places and the source are what those are about.
	words, thoughts, arguments       wire.Template
	wordsAt, thoughtsAt, argumentsAt place
	source                           string

	origin llm.Origin
	price  *llm.Price
	// open is the place of the text that is being streamed, heard the places whose text has come.
	open  place
	heard map[place]bool
	items map[int64]*output

	id, model, status, reason, tier string
	refusal                         strings.Builder
	usage                           counts
	// named says that the event says its type itself.
	named bool
	// plain turns the templates off, for tests.
	plain bool
}

// place is where a text belongs in the output.
type place struct {
	kind       llm.PartType
	item, part int64
}

// output is what is known of one item of the output.
type output struct {
	call *wire.Call
	// done says that the item is complete.
	done bool
	// sealed names the thinking part that holds the item, if hasSeal; encrypted says that the model can read it again.
	sealed             int
	hasSeal, encrypted bool
	// source is the first kind of event that brought thinking; servers that send it twice are heard once.
	source string
}

func newDecoder(origin llm.Origin, price *llm.Price, sink llm.Sink) *decoder {
	return &decoder{assembly: wire.NewAssembly(sink), origin: origin, price: price, heard: map[place]bool{},
		items: map[int64]*output{}}
}

// State returns how far the response has come; see wire.Decoder.
func (d *decoder) State() wire.State { return d.state }

const doneMark = "[DONE]"

// Event decodes one event; see wire.Decoder.
func (d *decoder) Event(ev wire.Event) error {
	data := bytes.TrimSpace(ev.Data)
	if len(data) == 0 || string(data) == doneMark {
		return nil
	}
	if !d.plain {
		if raw, ok := d.words.Match(data); ok {
			return d.say(d.wordsAt, raw)
		}
		if raw, ok := d.arguments.Match(data); ok {
			return d.argue(d.argumentsAt.item, raw)
		}
		if raw, ok := d.thoughts.Match(data); ok {
			return d.think(d.source, d.thoughtsAt, raw)
		}
	}
	e := &d.event
	if err := e.parse(&d.lexer, data); err != nil {
		return wire.Malformed("an event of the stream is "+err.Error(), err)
	}
	// The bytes of an event that says its type elsewhere do not tell events of two types apart.
	if d.named = e.kind != nil; !d.named {
		e.kind = ev.Name
	}
	return d.apply(e, data)
}

// The beginnings of the types of events that bring thinking.
const (
	sourceSummary = "response.reasoning_summary_text"
	sourceText    = "response.reasoning_text"
)

// apply takes what one event says. Events of unknown types say nothing to us.
func (d *decoder) apply(e *event, data []byte) error {
	words, thoughts := place{llm.PartText, e.output, e.content}, place{llm.PartThinking, e.output, e.content + e.summary}
	switch string(e.kind) {
	case "response.output_text.delta":
		d.learn(&d.words, &d.wordsAt, words, data)
		return d.say(words, e.delta)
	case "response.output_text.done":
		return d.settleText(words, e.text)
	case sourceSummary + ".delta":
		return d.hear(sourceSummary, thoughts, data)
	case sourceSummary + ".done":
		return d.settleThinking(sourceSummary, thoughts, e.text)
	case sourceText + ".delta":
		return d.hear(sourceText, thoughts, data)
	case sourceText + ".done":
		return d.settleThinking(sourceText, thoughts, e.text)
	case "response.function_call_arguments.delta":
		d.learn(&d.arguments, &d.argumentsAt, words, data)
		return d.argue(e.output, e.delta)
	case "response.function_call_arguments.done":
		return d.settleCall(e.output, e.arguments)
	case "response.refusal.delta":
		return d.refuse(e.delta)
	case "response.refusal.done":
		return d.settleRefusal(e.refusal)
	case "response.output_item.added":
		return d.takeItem(e.output, e.item, false)
	case "response.output_item.done":
		return d.takeItem(e.output, e.item, true)
	case "error":
		return wire.StreamError(data)
	}
	return d.applyResponse(string(e.kind), e)
}

func (d *decoder) hear(source string, at place, data []byte) error {
	if d.learn(&d.thoughts, &d.thoughtsAt, at, data) {
		d.source = source
	}
	return d.think(source, at, d.event.delta)
}

// learn makes an event that is one string at a place a template for the events to come, and reports whether it is one.
func (d *decoder) learn(t *wire.Template, known *place, at place, data []byte) bool {
	if !d.named || len(d.event.delta) == 0 {
		return false
	}
	*known = at
	t.Learn(data, d.event.from, d.event.to)
	return true
}

// applyResponse takes an event about the response as a whole.
func (d *decoder) applyResponse(kind string, e *event) error {
	status, ok := strings.CutPrefix(kind, "response.")
	switch {
	case e.fault != nil && !ok:
		return wire.StreamError(e.fault)
	case !ok || e.response == nil:
		return nil
	}
	var r response
	d.lexer.Reset(e.response)
	r.read(&d.lexer)
	switch status {
	case "completed", "incomplete", "failed", "cancelled", "done":
		if len(r.status) == 0 {
			r.status = []byte(status)
		}
		return d.finish(&r)
	}
	d.envelope(&r)
	return nil
}

// envelope takes what the response says about itself.
func (d *decoder) envelope(r *response) {
	for _, m := range []struct {
		field *string
		raw   []byte
	}{{&d.id, r.id}, {&d.model, r.model}, {&d.tier, r.tier}} {
		if len(m.raw) > 0 {
			*m.field = wire.Cut(wire.Unquote(m.raw))
		}
	}
	if r.usage.reported {
		d.usage = r.usage
	}
}

// finish takes the response as it is in the end. Its output fills in what the stream left out.
func (d *decoder) finish(r *response) error {
	d.envelope(r)
	d.status, d.reason = wire.Cut(wire.Unquote(r.status)), wire.Cut(wire.Unquote(r.reason))
	d.state = wire.Done
	if d.status == "failed" || d.status == "cancelled" {
		return d.failure(r)
	}
	var l wire.Lexer
	l.Reset(r.output)
	if len(r.output) == 0 || !l.Array() {
		return nil
	}
	for index := int64(0); l.Elem(); index++ {
		if err := d.takeItem(index, l.Raw(), true); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) failure(r *response) error {
	if r.fault != nil {
		return wire.StreamError(r.fault)
	}
	return &llm.Error{Class: llm.ClassProvider, Code: d.status,
		Message: "the response ended with status " + d.status + " and no reason"}
}

// Whole decodes a response that was not streamed; see wire.Decoder.
func (d *decoder) Whole(body []byte) error {
	d.lexer.Reset(body)
	if d.lexer.Kind() != '{' {
		d.lexer.Skip()
	}
	var r response
	r.read(&d.lexer)
	if err := d.lexer.End(); err != nil {
		return wire.Malformed("the response is "+err.Error(), err)
	}
	switch {
	case r.fault != nil && len(r.status) == 0:
		return wire.StreamError(r.fault)
	case len(r.status) == 0 || r.output == nil:
		return wire.Malformed("the response is JSON, but holds no status and output", nil)
	}
	return d.finish(&r)
}

// Close returns the response; see wire.Decoder.
func (d *decoder) Close(err error) (llm.Response, error) {
	var stop llm.StopReason
	if err == nil {
		stop, err = d.end()
	}
	r := llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: d.assembly.Parts(), Origin: d.origin},
		Stop:    stop, RawStop: d.rawStop(), ServedModel: d.model, ID: d.id, UsageReported: d.usage.reported,
		Billed: d.usage.billed(d.tier, d.model, d.price),
	}
	if d.usage.reported {
		r.Usage = d.usage.usage()
	}
	return r, err
}

// rawStop is the provider's word for the end: the reason where it gives one, else the status.
func (d *decoder) rawStop() string {
	if d.reason != "" {
		return d.reason
	}
	return d.status
}

// end checks that the response is complete and closes its parts.
func (d *decoder) end() (llm.StopReason, error) {
	if d.state != wire.Done {
		return "", wire.Truncated("response.completed")
	}
	stop, fault := d.stopReason()
	if fault != nil {
		return "", fault
	}
	if stop == llm.StopLength {
		if err := d.assembly.EndCut(); err != nil {
			return "", wire.Stopped(err)
		}
		return stop, nil
	}
	for _, o := range d.items {
		if o.call != nil && !o.done {
			return "", wire.Malformed("the response completed, but a tool call in it never did", nil)
		}
	}
	if err := d.assembly.End(); err != nil {
		return "", wire.Stopped(err)
	}
	if len(d.assembly.Calls()) > 0 {
		return llm.StopTools, nil
	}
	return stop, nil
}

// stopReason translates the status. An unknown one is an error that names it, never an end.
func (d *decoder) stopReason() (llm.StopReason, error) {
	switch {
	case d.status == "completed" && d.refusal.Len() > 0:
		return "", &llm.Error{Class: llm.ClassRefused, Code: "refusal",
			Message: wire.Cut("the model refused: " + d.refusal.String())}
	case d.status == "completed":
		return llm.StopEnd, nil
	case d.status == "queued" || d.status == "in_progress":
		return "", wire.Truncated("status completed")
	}
	class := llm.ClassUnknownStop
	if d.status == "incomplete" {
		switch d.reason {
		case "max_output_tokens", "":
			// A server that gives no reason knows only this one.
			return llm.StopLength, nil
		case "content_filter":
			class = llm.ClassRefused
		}
	}
	return "", &llm.Error{Class: class, Code: d.rawStop(),
		Message: wire.Cut("the response ended with status " + d.status + " and reason " + d.rawStop())}
}
