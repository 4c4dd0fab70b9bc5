package google

import (
	"encoding/base64"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// appendHead appends everything before the first message.
func (c *dialog) appendHead(o llm.Opening) {
	b := []byte{'{'}
	if len(o.Tools) > 0 {
		b = append(b, `"tools":[{"functionDeclarations":[`...)
		for i, t := range o.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"name":`...)
			b = wire.AppendString(b, t.Name)
			b = append(b, `,"description":`...)
			b = wire.AppendString(b, t.Description)
			b = append(b, `,"parametersJsonSchema":`...)
			b = appendSchema(b, t)
			b = append(b, '}')
		}
		b = append(b, "]}],"...)
	}
	b = c.appendSystem(b, o)
	c.buf = append(b, `"contents":[`...)
}

// appendSystem appends the system prompt as two parts; the first ends what is shared between jobs. The API refuses empty
// parts.
func (c *dialog) appendSystem(b []byte, o llm.Opening) []byte {
	shared, job := strings.TrimSpace(o.System) != "", strings.TrimSpace(o.JobSystem) != ""
	c.prefix = len(b)
	if !shared && !job {
		return b
	}
	b = append(b, `"systemInstruction":{"parts":[`...)
	text := o.JobSystem
	if shared {
		b = append(b, `{"text":`...)
		b = wire.AppendString(b, o.System)
		b = append(b, '}')
		c.prefix = len(b)
		text = "\n\n" + text
	}
	if shared && job {
		b = append(b, ',')
	}
	if job {
		b = append(b, `{"text":`...)
		b = wire.AppendString(b, text)
		b = append(b, '}')
	}
	return append(b, "]},"...)
}

// turn is what a content of the request holds. The results of calls stand alone although their role is the user's: the
// API counts the parts of the content after a call.
type turn uint8

const (
	turnNone turn = iota
	turnUser
	turnModel
	turnResults
)

// writer is where the messages have come to.
type writer struct {
	// turn is the open content.
	turn turn
	// parts counts the parts that the message being appended has added.
	parts int
	// late are images of results that may only follow when every call has its result.
	late []*llm.Image
}

// part appends what comes before the next part: the beginning of a new content, or a comma if the last one goes on. A
// content is left open, because the next message may continue it.
func (w *writer) part(b []byte, t turn) []byte {
	w.parts++
	switch {
	case w.turn == t:
		return append(b, ',')
	case w.turn != turnNone:
		b = append(b, "]},"...)
	}
	w.turn = t
	if t == turnModel {
		return append(b, `{"role":"model","parts":[`...)
	}
	return append(b, `{"role":"user","parts":[`...)
}

// appendText appends a text part unless it is blank.
func (w *writer) appendText(b []byte, t turn, text string) []byte {
	if strings.TrimSpace(text) == "" {
		return b
	}
	b = append(w.part(b, t), `{"text":`...)
	b = wire.AppendString(b, text)
	return append(b, '}')
}

func (c *dialog) appendUser(b []byte, m llm.Message, w *writer) []byte {
	for _, p := range m.Parts {
		if p.Type == llm.PartImage {
			b = c.appendImage(b, p.Image, w)
			continue
		}
		b = w.appendText(b, turnUser, p.Text)
	}
	return b
}

func (c *dialog) appendImage(b []byte, image *llm.Image, w *writer) []byte {
	if note := wire.ImageNote(c.model, image); note != "" {
		return w.appendText(b, turnUser, note)
	}
	return appendInlineData(w.part(b, turnUser), image)
}

func appendInlineData(b []byte, image *llm.Image) []byte {
	b = append(b, `{"inlineData":{"mimeType":"`...)
	b = append(b, image.MediaType...)
	b = append(b, `","data":"`...)
	b = base64.StdEncoding.AppendEncode(b, image.Data)
	return append(b, `"}}`...)
}

// noSignature is what the API's documentation gives for calls that no model of this API has made, such as those of a
// history from elsewhere: without any signature such a call of the current turn would be refused.
const noSignature = "skip_thought_signature_validator"

// appendAssistant appends an assistant message. Signatures go back to the model that wrote them only, thinking only with
// one.
func (c *dialog) appendAssistant(b []byte, m llm.Message, w *writer) []byte {
	same := m.Origin == llm.Origin{API: API, Model: c.model.ID}
	c.ids.NewRound()
	if !sendable(m, same) {
		return b
	}
	calls := 0
	for _, p := range m.Parts {
		signature := ""
		if same && isBase64(p.Signature) {
			signature = p.Signature
		}
		switch p.Type {
		case llm.PartText:
			b = appendModelText(b, p.Text, signature, w)
		case llm.PartThinking:
			if signature != "" || (same && c.replaysThinking() && strings.TrimSpace(p.Text) != "") {
				b = append(w.part(b, turnModel), `{"text":`...)
				b = wire.AppendString(b, p.Text)
				b = append(b, `,"thought":true`...)
				b = appendSignature(b, signature)
			}
		case llm.PartToolCall:
			if calls++; calls == 1 && signature == "" && c.traits.signed {
				signature = noSignature
			}
			b = c.appendCall(b, p.ToolCall, signature, same, w)
		}
	}
	return b
}

func (c *dialog) replaysThinking() bool {
	replay := c.model.Compat.ReplayThinking
	return replay != nil && *replay
}

// sendable reports whether an assistant message holds text, a call or a signed part that is no thinking; thinking alone
// is no message.
func sendable(m llm.Message, same bool) bool {
	for _, p := range m.Parts {
		switch {
		case p.Type == llm.PartToolCall, p.Type == llm.PartText && strings.TrimSpace(p.Text) != "":
			return true
		case p.Type == llm.PartText && same && isBase64(p.Signature):
			return true
		}
	}
	return false
}

// appendModelText appends a text of the model. A signed one goes back even if it is empty.
func appendModelText(b []byte, text, signature string, w *writer) []byte {
	if signature == "" {
		return w.appendText(b, turnModel, text)
	}
	b = append(w.part(b, turnModel), `{"text":`...)
	b = wire.AppendString(b, text)
	return appendSignature(b, signature)
}

// appendSignature ends a part.
func appendSignature(b []byte, signature string) []byte {
	if signature != "" {
		b = append(b, `,"thoughtSignature":"`...)
		b = append(b, signature...)
		b = append(b, '"')
	}
	return append(b, '}')
}

func (c *dialog) appendCall(b []byte, call *llm.ToolCall, signature string, same bool, w *writer) []byte {
	id := c.ids.Assign(call, same)
	b = append(w.part(b, turnModel), `{"functionCall":{`...)
	b = c.appendID(b, id)
	b = append(b, `"name":`...)
	b = wire.AppendString(b, call.Name)
	b = append(b, `,"args":`...)
	b = append(b, wire.Arguments(call)...)
	b = append(b, '}')
	return appendSignature(b, signature)
}

func (c *dialog) appendID(b []byte, id string) []byte {
	if !c.traits.ids {
		return b
	}
	b = append(b, `"id":`...)
	b = wire.AppendString(b, id)
	return append(b, ',')
}

// appendResults appends the results of one turn as one content. Images stand inside their result where the model takes
// them there, else in a content of their own after the results of all calls.
func (c *dialog) appendResults(b []byte, m llm.Message, w *writer) ([]byte, error) {
	late := w.late
	for _, p := range m.Parts {
		r := p.ToolResult
		id, err := c.ids.Answer(r)
		if err != nil {
			return b, err
		}
		text, images := c.resultContent(r)
		b = append(w.part(b, turnResults), `{"functionResponse":{`...)
		b = c.appendID(b, id)
		b = append(b, `"name":`...)
		b = wire.AppendString(b, r.Name)
		b = append(b, `,"response":{`...)
		if r.IsError {
			b = append(b, `"error":`...)
		} else {
			b = append(b, `"output":`...)
		}
		b = wire.AppendString(b, text)
		b = append(b, '}')
		if c.traits.nested {
			b = appendNested(b, images)
		} else {
			late = append(late[:len(late):len(late)], images...)
		}
		b = append(b, "}}"...)
	}
	if c.ids.Settled() == nil && len(late) > 0 {
		b = w.appendText(b, turnUser, "Images from the results above:")
		for _, image := range late {
			b = appendInlineData(w.part(b, turnUser), image)
		}
		late = nil
	}
	w.late = late
	return b, nil
}

// resultContent returns the text of a result and the images that can be sent.
func (c *dialog) resultContent(r *llm.ToolResult) (string, []*llm.Image) {
	var texts []string
	if text := wire.ResultText(r); text != "" {
		texts = append(texts, text)
	}
	var images []*llm.Image
	for _, p := range r.Content {
		if p.Type != llm.PartImage {
			continue
		}
		if note := wire.ImageNote(c.model, p.Image); note != "" {
			texts = append(texts, note)
			continue
		}
		images = append(images, p.Image)
	}
	switch {
	case len(texts) == 0 && len(images) > 0:
		return "(The result is an image.)", images
	case len(texts) == 0:
		return wire.EmptyResult, nil
	}
	return strings.Join(texts, "\n"), images
}

func appendNested(b []byte, images []*llm.Image) []byte {
	for i, image := range images {
		if i == 0 {
			b = append(b, `,"parts":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendInlineData(b, image)
	}
	if len(images) > 0 {
		b = append(b, ']')
	}
	return b
}

// isBase64 reports whether a signature is what the API takes for bytes: base64 in either alphabet, with padding or
// without. Anything else would have the whole request refused.
func isBase64(signature string) bool {
	text := strings.TrimRight(signature, "=")
	if padding := len(signature) - len(text); text == "" || len(text)%4 == 1 || (padding > 0 && len(signature)%4 != 0) || padding > 2 {
		return false
	}
	for _, c := range []byte(text) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && strings.IndexByte("+/-_", c) < 0 {
			return false
		}
	}
	return true
}
