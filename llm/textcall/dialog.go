package textcall

import (
	"context"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// maxResults is how much of the latest tool results is kept to recognise an echo.
const maxResults = 400_000

// dialog is a dialog in which the model may call tools in its text.
type dialog struct {
	inner llm.Dialog
	offer *Offer
	// pinned is the only form to take, "" for any; limit is how many calls of one reply to take, 0 for all.
	pinned Format
	limit  int
	// asText says that the API takes no tools. family is then how calls are written in the history: as in the first call
	// of the dialog, and before that as the model's family does. settled says that a call has decided.
	asText  bool
	family  Format
	settled bool
	// results are the latest tool results as the tools gave them.
	results []string
	size    int
}

// skippingDialog is a dialog of a provider that keeps its own place.
type skippingDialog struct {
	*dialog
	llm.Skipper
}

// Append implements llm.Dialog. Towards the model, tool results hold no marks of calls.
func (d *dialog) Append(m llm.Message) error {
	if m.Role == llm.RoleTool {
		d.remember(m)
		m = neutral(m)
	}
	if d.asText {
		d.settle(m)
		m = rendered(d.family, m)
	}
	return d.inner.Append(m)
}

// settle takes the form of the first call for the history. It depends on the messages alone, so that a dialog that is
// built again says the same.
func (d *dialog) settle(m llm.Message) {
	for _, call := range m.ToolCalls() {
		if !d.settled && call != nil && call.TextFormat != "" {
			d.family, d.settled = Format(call.TextFormat), true
		}
	}
}

// remember keeps the texts of tool results and drops the oldest beyond maxResults.
func (d *dialog) remember(m llm.Message) {
	for _, part := range m.Parts {
		if part.ToolResult == nil {
			continue
		}
		text := llm.Message{Parts: part.ToolResult.Content}.Text()
		d.results = append(d.results, text)
		d.size += len(text)
	}
	for len(d.results) > 1 && d.size > maxResults {
		d.size -= len(d.results[0])
		d.results = slices.Delete(d.results, 0, 1)
	}
}

// Request implements llm.Dialog.
func (d *dialog) Request(call llm.Call) (llm.Request, error) { return d.inner.Request(call) }

// PrefixHash implements llm.Dialog.
func (d *dialog) PrefixHash() string { return d.inner.PrefixHash() }

// Stream implements llm.Dialog. Text that may be a call is held back until the reply has ended; meanwhile the sink gets
// empty deltas, so that the model is not taken for silent.
func (d *dialog) Stream(ctx context.Context, call llm.Call, sink llm.Sink) (llm.Response, error) {
	if sink == nil {
		sink = func(llm.Delta) error { return nil }
	}
	v := &view{sink: sink, scanner: newScanner(d.offer)}
	response, err := d.inner.Stream(ctx, call, v.delta)
	switch {
	case err != nil:
		v.abandon()
		return response, err
	case v.long:
		response.TextCall = &llm.TextCall{Refused: string(TooLong)}
		return response, nil
	case v.open || len(response.Message.ToolCalls()) > 0:
		return response, v.release()
	case response.Stop == llm.StopLength && v.scanner.sure:
		response.TextCall = &llm.TextCall{Refused: string(Cut)}
		return response, nil
	case response.Stop == llm.StopLength:
		return response, v.release()
	}
	return d.read(response, v)
}

// reply is the text of a response, divided into what it thinks and what it says.
type reply struct {
	thinking, text string
	Result
}

// read looks for calls in a complete response and returns the response with them.
func (d *dialog) read(response llm.Response, v *view) (llm.Response, error) {
	y := reply{text: response.Message.Text()}
	t := splitThinking(y.text)
	if t.shown > 0 {
		y.thinking, y.text = t.text, y.text[t.shown:]
	}
	y.Result = Parse(y.text, d.offer, Options{Format: d.pinned, Results: d.results, Limit: d.limit,
		Thinking: thoughtsOf(response.Message) + y.thinking})
	called := len(y.Calls)+len(y.Unknown) > 0
	if called || y.Answers || y.Refused != "" {
		response.TextCall = &llm.TextCall{Format: string(y.Format), Repaired: y.Repaired, Dropped: int64(y.Dropped), Refused: string(y.Refused)}
	}
	switch shown := min(v.sent, len(y.text)); {
	case called:
		response.Stop = llm.StopTools
		if y.thinking == "" {
			y.thinking = y.Thinking
		}
		response.Message.Parts = d.parts(response.Message, y, y.Leading)
		if y.at > shown {
			return response, v.finish(y.text[shown:y.at], response.Message)
		}
		return response, v.finish("", response.Message)
	case y.Answers:
		response.Message.Parts = d.parts(response.Message, y, y.Answer)
		return response, v.finish(y.Answer, response.Message)
	case t.shown > 0:
		response.Message.Parts = d.parts(response.Message, y, y.text)
	}
	return response, v.finish(y.text[min(v.sent, len(y.text)):], response.Message)
}

// thoughtsOf returns the thinking that came apart from the text.
func thoughtsOf(m llm.Message) string {
	var all strings.Builder
	for _, p := range m.Parts {
		if p.Type == llm.PartThinking {
			all.WriteString(p.Text)
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// parts returns the parts of a message with this text, and with the calls that were found in it. A call of an unknown
// tool is one too: its answer tells the model which tools there are.
func (d *dialog) parts(m llm.Message, y reply, text string) []llm.Part {
	parts := slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool { return p.Type == llm.PartText })
	if strings.TrimSpace(y.thinking) != "" {
		parts = append(parts, llm.Part{Type: llm.PartThinking, Text: y.thinking})
	}
	if strings.TrimSpace(text) != "" {
		parts = append(parts, llm.TextPart(text))
	}
	add := func(call llm.ToolCall) {
		call.TextFormat = string(y.Format)
		parts = append(parts, llm.Part{Type: llm.PartToolCall, ToolCall: &call})
	}
	for _, c := range y.Calls {
		add(llm.ToolCall{ProviderID: c.ID, Name: c.Name, Arguments: c.Arguments, ArgumentsError: c.ArgumentsError, RawArguments: c.RawArguments})
	}
	for _, name := range y.Unknown {
		add(llm.ToolCall{Name: d.foreign(name), Arguments: []byte("{}")})
	}
	return parts
}

// foreign returns a name that is not offered in the characters that APIs take for names, since the call is sent back.
func (d *dialog) foreign(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && r != '.' && nameByte(byte(r)) {
			return r
		}
		return '_'
	}, name)
	if d.offer.exact[name] != nil {
		name = "unknown_" + name
	}
	const longest = 64
	return name[:min(len(name), longest)]
}
