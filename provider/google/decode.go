package google

import (
	"bytes"
	"fmt"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// decoder decodes one response. Events hold whole parts of an answer and few come, so each is read in full.
type decoder struct {
	assembly *wire.Assembly
	lexer    wire.Lexer
	event    event
	state    wire.State
	// open is the call whose arguments still come piece by piece, nil if none does.
	open *streamed

	asked, id, model, stop, explanation string
	// blocked is why the prompt got no answer at all.
	blocked  string
	usage    counts
	hasUsage bool
}

func newDecoder(model string, sink llm.Sink) *decoder {
	return &decoder{assembly: wire.NewAssembly(sink), asked: model}
}

// State returns how far the response has come; see wire.Decoder.
func (d *decoder) State() wire.State { return d.state }

// Event decodes one event; see wire.Decoder.
func (d *decoder) Event(ev wire.Event) error {
	data := bytes.TrimSpace(ev.Data)
	if len(data) == 0 || string(data) == "[DONE]" {
		return nil
	}
	_, err := d.take(data, "an event of the stream")
	return err
}

// Whole decodes a response that was not streamed, or that a proxy has made a list of what would have been the events; see
// wire.Decoder.
func (d *decoder) Whole(body []byte) error {
	ours, err := d.take(body, "the response")
	if err == nil && !ours {
		return wire.Malformed("the response is JSON, but no answer of this API", nil)
	}
	return err
}

// take decodes an object, or each object of a list. It reports whether any of them belongs to this API.
func (d *decoder) take(data []byte, what string) (ours bool, err error) {
	l := &d.lexer
	l.Reset(data)
	if l.Kind() != '[' {
		ours, err = d.takeObject(l, what)
	} else {
		for l.Array(); err == nil && l.Elem(); {
			var one bool
			one, err = d.takeObject(l, what)
			ours = ours || one
		}
	}
	if err != nil {
		return ours, err
	}
	if err := l.End(); err != nil {
		return ours, wire.Malformed(what+" is "+err.Error(), err)
	}
	return ours, nil
}

func (d *decoder) takeObject(l *wire.Lexer, what string) (bool, error) {
	if err := d.event.read(l); err != nil {
		return false, wire.Malformed(what+" is "+err.Error(), err)
	}
	return d.event.ours, d.apply(&d.event)
}

// apply takes what one event says.
func (d *decoder) apply(e *event) error {
	if e.fault != nil {
		return wire.StreamError(e.fault)
	}
	if e.hasUsage {
		d.hasUsage = true
		d.usage.merge(&e.usage)
	}
	if d.id == "" && len(e.id) > 0 {
		d.id = wire.Cut(wire.Unquote(e.id))
	}
	if d.model == "" && len(e.model) > 0 {
		d.model = wire.Cut(wire.Unquote(e.model))
	}
	for i := range e.parts {
		if err := d.part(&e.parts[i]); err != nil {
			return err
		}
	}
	if len(e.stop) > 0 {
		d.stop, d.explanation = wire.Cut(wire.Unquote(e.stop)), wire.Cut(wire.Unquote(e.explanation))
		d.state = wire.Finished
	}
	if len(e.blocked) > 0 && d.stop == "" {
		d.blocked, d.explanation = wire.Cut(wire.Unquote(e.blocked)), wire.Cut(wire.Unquote(e.explanation))
		d.state = wire.Finished
	}
	return nil
}

func (d *decoder) part(p *part) error {
	kind := llm.PartText
	if p.thought {
		kind = llm.PartThinking
	}
	switch {
	case p.called:
		return d.call(&p.call, p.signature)
	case len(p.signature) > 0:
		return d.assembly.Signed(kind, p.text, p.signature)
	case p.thought:
		return d.assembly.Thinking("", p.text)
	}
	return d.assembly.Text(p.text)
}

// call takes a call. Most come whole; calls have no index and are told apart by their order alone.
func (d *decoder) call(c *call, signature []byte) error {
	if d.open != nil && !d.open.follows(c) {
		if err := d.closeCall(false); err != nil {
			return err
		}
	}
	if d.open == nil && c.empty() {
		return nil
	}
	if d.open == nil {
		opened, err := d.assembly.OpenCall(-1)
		if err != nil {
			return err
		}
		d.open = &streamed{call: opened}
	}
	if err := d.identify(d.open.call, c, signature); err != nil {
		return err
	}
	if err := d.pieces(c.pieces); err != nil {
		return err
	}
	if c.arguments != nil {
		d.open.whole = true
		if err := d.arguments(d.open.call, c.arguments); err != nil {
			return err
		}
	}
	if c.continues {
		return nil
	}
	return d.closeCall(false)
}

func (d *decoder) identify(to *wire.Call, c *call, signature []byte) error {
	if err := d.assembly.CallID(to, c.id); err != nil {
		return err
	}
	if err := d.assembly.CallName(to, c.name); err != nil {
		return err
	}
	return d.assembly.CallSignature(to, signature)
}

// pieces takes arguments that come piece by piece. What a hostile server may build of them is bounded like everything else
// that is kept.
func (d *decoder) pieces(raw []byte) error {
	if raw == nil {
		return nil
	}
	made := d.open.made
	if err := d.open.add(raw); err != nil {
		return err
	}
	return d.assembly.Grow(len(raw) + (d.open.made-made)*nodeCost)
}

// arguments takes arguments as JSON. Servers in front of other models send them as the text that those wrote.
func (d *decoder) arguments(to *wire.Call, raw []byte) error {
	if raw[0] == '"' {
		return d.assembly.CallArguments(to, raw[1:len(raw)-1])
	}
	return d.assembly.CallObject(to, raw)
}

// closeCall ends the open call. Arguments that came in pieces are written now; cut says that more would have come, so
// that they are left without an end.
func (d *decoder) closeCall(cut bool) error {
	s := d.open
	if s == nil {
		return nil
	}
	d.open = nil
	if !s.whole {
		text := s.text()
		if cut {
			text = bytes.TrimSuffix(text, []byte("}"))
		}
		if err := d.assembly.CallObject(s.call, text); err != nil {
			return err
		}
	}
	if s.call.Started() && !s.call.Whole() {
		// It may be known to be cut only when the finish mark comes.
		return nil
	}
	return d.assembly.EndCall(s.call)
}

// Close returns the response; see wire.Decoder.
func (d *decoder) Close(err error) (llm.Response, error) {
	var stop llm.StopReason
	if err == nil {
		stop, err = d.end()
	}
	r := llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: d.assembly.Parts(), Origin: llm.Origin{API: API, Model: d.asked}},
		Stop:    stop, RawStop: d.stop, ServedModel: d.model, ID: d.id, UsageReported: d.hasUsage,
	}
	if d.stop == "" {
		r.RawStop = d.blocked
	}
	if d.hasUsage {
		r.Usage = d.usage.usage()
	}
	return r, err
}

// end checks that the response is complete and closes its parts.
func (d *decoder) end() (llm.StopReason, error) {
	switch {
	case d.stop == "" && d.blocked != "":
		return "", d.fault(llm.ClassRefused, d.blocked, "the prompt was blocked with blockReason")
	case d.stop == "":
		return "", wire.Truncated("finishReason")
	}
	stop, fault := d.stopReason()
	if fault != nil {
		return "", fault
	}
	end := d.assembly.End
	if stop == llm.StopLength {
		end = d.assembly.EndCut
	}
	if err := d.closeCall(stop == llm.StopLength); err != nil {
		return "", wire.Stopped(err)
	}
	if err := end(); err != nil {
		return "", wire.Stopped(err)
	}
	return stop, nil
}

// stopReason translates a finishReason. An unknown one is an error that names it, never an end. The API has no word for an
// answer that waits for results; servers that speak like it say FUNCTION_CALL.
func (d *decoder) stopReason() (llm.StopReason, error) {
	class := llm.ClassUnknownStop
	switch d.stop {
	case "STOP", "FUNCTION_CALL":
		if len(d.assembly.Calls()) > 0 {
			return llm.StopTools, nil
		}
		return llm.StopEnd, nil
	case "MAX_TOKENS", "CONTINUATION":
		return llm.StopLength, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		class = llm.ClassRefused
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
		// What the model wrote instead is in the explanation, so it is kept out of the error.
		d.explanation = ""
		class = llm.ClassProvider
	case "OTHER", "NO_IMAGE", "IMAGE_OTHER":
		class = llm.ClassProvider
	case "MISSING_THOUGHT_SIGNATURE":
		class = llm.ClassInvalidRequest
	}
	return "", d.fault(class, d.stop, "the response ended with finishReason")
}

func (d *decoder) fault(class llm.Class, reason, text string) error {
	message := fmt.Sprintf("%s %q", text, reason)
	if d.explanation != "" {
		message += ": " + d.explanation
	}
	return &llm.Error{Class: class, Code: reason, Message: wire.Cut(message)}
}
