package bedrock

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

const (
	cachePoint = `{"cachePoint":{"type":"default"}}`
	// emptyText stands for a message without any text, which the API refuses.
	emptyText = "(empty)"
)

// appendHead appends everything before the first message.
func (c *dialog) appendHead(o llm.Opening) {
	b := []byte{'{'}
	c.from = len(b)
	b = c.asked.append(b)
	c.to = len(b)
	b = c.appendTools(b, o)
	b = c.appendSystem(b, o)
	c.buf = append(b, `"messages":[`...)
}

func (c *dialog) appendTools(b []byte, o llm.Opening) []byte {
	if c.declared = len(o.Tools) > 0; !c.declared {
		return b
	}
	b = append(b, `"toolConfig":{"tools":[`...)
	for i, t := range o.Tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"toolSpec":{"name":`...)
		b = wire.AppendString(b, t.Name)
		if strings.TrimSpace(t.Description) != "" {
			b = append(b, `,"description":`...)
			b = wire.AppendString(b, t.Description)
		}
		b = append(b, `,"inputSchema":{"json":`...)
		b = appendDocument(b, wire.AppendSchema(nil, t))
		b = append(b, "}}}"...)
	}
	return append(b, "]},"...)
}

// appendSystem appends the system prompt as two blocks; a cache mark ends the part that is shared between jobs. The API
// refuses blank blocks.
func (c *dialog) appendSystem(b []byte, o llm.Opening) []byte {
	shared, job := strings.TrimSpace(o.System) != "", strings.TrimSpace(o.JobSystem) != ""
	c.prefix = len(b)
	if !shared && !job {
		return b
	}
	b = append(b, `"system":[`...)
	if shared {
		b = appendTextBlock(b, o.System)
		if c.cache {
			b = append(append(b, ','), cachePoint...)
		}
		c.prefix = len(b)
		if job {
			b = append(b, ',')
		}
	}
	if job {
		text := o.JobSystem
		if shared {
			text = "\n\n" + text
		}
		b = appendTextBlock(b, text)
	}
	return append(b, "],"...)
}

// writer is where the messages have come to.
type writer struct {
	// role is the role of the open message, "" before the first.
	role string
	// blocks counts the blocks that the message being appended has added.
	blocks int
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// block appends what comes before the next content block of a message of the role: the beginning of a new message, or a
// comma if the last message has the same role. A message is left open, because the next one may continue it.
func (w *writer) block(b []byte, role string) []byte {
	w.blocks++
	switch {
	case w.role == role:
		return append(b, ',')
	case w.role != "":
		b = append(b, "]},"...)
	}
	w.role = role
	b = append(b, `{"role":"`...)
	b = append(b, role...)
	return append(b, `","content":[`...)
}

// text appends a text block unless it is blank, which the API refuses.
func (w *writer) text(b []byte, role, text string) []byte {
	if strings.TrimSpace(text) == "" {
		return b
	}
	return appendTextBlock(w.block(b, role), text)
}

func appendTextBlock(b []byte, text string) []byte {
	b = append(b, `{"text":`...)
	b = wire.AppendString(b, text)
	return append(b, '}')
}

// appendUser appends a user message. One without any text stands as a note, so that turns keep alternating.
func (c *dialog) appendUser(b []byte, m llm.Message, w *writer) []byte {
	for _, p := range m.Parts {
		if p.Type == llm.PartImage {
			b = c.appendImage(b, p.Image, w)
			continue
		}
		b = w.text(b, roleUser, p.Text)
	}
	if w.blocks == 0 {
		b = w.text(b, roleUser, emptyText)
	}
	return b
}

func (c *dialog) appendImage(b []byte, image *llm.Image, w *writer) []byte {
	if note := wire.ImageNote(c.model, image); note != "" {
		return w.text(b, roleUser, note)
	}
	return appendImageBlock(w.block(b, roleUser), image)
}

func appendImageBlock(b []byte, image *llm.Image) []byte {
	b = append(b, `{"image":{"format":"`...)
	b = append(b, strings.TrimPrefix(image.MediaType, "image/")...)
	b = append(b, `","source":{"bytes":"`...)
	b = base64.StdEncoding.AppendEncode(b, image.Data)
	return append(b, `"}}}`...)
}

// appendAssistant appends an assistant message. Thinking goes back to the model that wrote it only, and with the
// signature that the API demands; unsigned thinking only where the model is known to want it.
func (c *dialog) appendAssistant(b []byte, m llm.Message, w *writer) []byte {
	same := m.Origin == llm.Origin{API: API, Model: c.model.ID}
	c.ids.NewRound()
	if !sendable(m) {
		return b
	}
	unsigned := c.model.Compat.ReplayThinking != nil && *c.model.Compat.ReplayThinking
	for _, p := range m.Parts {
		switch p.Type {
		case llm.PartText:
			b = w.text(b, roleAssistant, p.Text)
		case llm.PartThinking:
			if same && (p.Signature != "" || unsigned && strings.TrimSpace(p.Text) != "") {
				b = appendThinkingBlock(w.block(b, roleAssistant), p)
			}
		case llm.PartToolCall:
			b = w.block(b, roleAssistant)
			b = append(b, `{"toolUse":{"toolUseId":`...)
			b = wire.AppendString(b, c.ids.Assign(p.ToolCall, same))
			b = append(b, `,"name":`...)
			b = wire.AppendString(b, p.ToolCall.Name)
			b = append(b, `,"input":`...)
			b = appendDocument(b, wire.Arguments(p.ToolCall))
			b = append(b, "}}"...)
		}
	}
	return b
}

// sendable reports whether an assistant message holds text or a call; thinking alone is no message.
func sendable(m llm.Message) bool {
	for _, p := range m.Parts {
		if p.Type == llm.PartToolCall || (p.Type == llm.PartText && strings.TrimSpace(p.Text) != "") {
			return true
		}
	}
	return false
}

func appendThinkingBlock(b []byte, p llm.Part) []byte {
	if p.Redacted {
		b = append(b, `{"reasoningContent":{"redactedContent":`...)
		b = wire.AppendString(b, p.Signature)
		return append(b, "}}"...)
	}
	b = append(b, `{"reasoningContent":{"reasoningText":{"text":`...)
	b = wire.AppendString(b, p.Text)
	if p.Signature != "" {
		b = append(b, `,"signature":`...)
		b = wire.AppendString(b, p.Signature)
	}
	return append(b, "}}}"...)
}

// appendResults appends the results of one turn, all in one user message. Images stay inside their result, except those
// of a failed call: Claude refuses them there, so they follow after all results.
func (c *dialog) appendResults(b []byte, m llm.Message, w *writer) ([]byte, error) {
	var late []*llm.Image
	for _, p := range m.Parts {
		r := p.ToolResult
		id, err := c.ids.Answer(r)
		if err != nil {
			return b, err
		}
		b = w.block(b, roleUser)
		b = append(b, `{"toolResult":{"toolUseId":`...)
		b = wire.AppendString(b, id)
		b, late = c.appendResultContent(b, r, late)
		if r.IsError {
			b = append(b, `,"status":"error"`...)
		}
		b = append(b, "}}"...)
	}
	if len(late) > 0 {
		b = w.text(b, roleUser, "Images from the failed tool calls above:")
		for _, image := range late {
			b = c.appendImage(b, image, w)
		}
	}
	return b, nil
}

func (c *dialog) appendResultContent(b []byte, r *llm.ToolResult, late []*llm.Image) ([]byte, []*llm.Image) {
	b = append(b, `,"content":[`...)
	from := len(b)
	add := func() {
		if len(b) > from {
			b = append(b, ',')
		}
	}
	if text := wire.ResultText(r); text != "" {
		b = appendTextBlock(b, text)
	}
	for _, p := range r.Content {
		if p.Type != llm.PartImage {
			continue
		}
		note := wire.ImageNote(c.model, p.Image)
		switch {
		case note != "":
			add()
			b = appendTextBlock(b, note)
		case r.IsError:
			late = append(late, p.Image)
		default:
			add()
			b = appendImageBlock(b, p.Image)
		}
	}
	if len(b) == from {
		b = appendTextBlock(b, wire.EmptyResult)
	}
	return append(b, ']'), late
}

// appendDocument appends JSON without the members whose key is empty, which the API refuses. raw has been checked to be
// JSON.
func appendDocument(b, raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`""`)) {
		return append(b, raw...)
	}
	var l wire.Lexer
	l.Reset(raw)
	return appendValue(b, &l)
}

func appendValue(b []byte, l *wire.Lexer) []byte {
	switch l.Kind() {
	case '{':
		b = append(b, '{')
		from := len(b)
		for key := range l.Members() {
			if len(key) == 0 {
				l.Skip()
				continue
			}
			if len(b) > from {
				b = append(b, ',')
			}
			b = append(append(append(b, '"'), key...), `":`...)
			b = appendValue(b, l)
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		from := len(b)
		l.Array()
		for l.Elem() {
			if len(b) > from {
				b = append(b, ',')
			}
			b = appendValue(b, l)
		}
		return append(b, ']')
	}
	return append(b, l.Raw()...)
}
