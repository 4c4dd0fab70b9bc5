package anthropic

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/claude"
	"github.com/hozo-run/hozo/provider/wire"
)

const cacheControl = `,"cache_control":{"type":"ephemeral"}`

// appendHead appends everything before the first message.
func (c *dialog) appendHead(o llm.Opening) {
	b := append([]byte(nil), `{"model":`...)
	b = wire.AppendString(b, o.Model.WireName())
	b = append(b, `,"stream":true`...)
	c.from = len(b)
	b = appendThinking(b, c.thinking)
	c.to = len(b)
	b = wire.AppendTemperature(b, o.Temperature)
	b = c.appendTools(b, o)
	b = c.appendSystem(b, o)
	c.buf = append(b, `"messages":[`...)
}

func appendThinking(b []byte, t claude.Thinking) []byte {
	if !t.Asks() {
		return b
	}
	return t.Append(append(b, ','))
}

func (c *dialog) appendTools(b []byte, o llm.Opening) []byte {
	if len(o.Tools) == 0 {
		return b
	}
	parallel := o.Model.Compat.ParallelToolCalls
	if parallel != nil {
		b = append(b, `,"tool_choice":{"type":"auto","disable_parallel_tool_use":`...)
		b = strconv.AppendBool(b, !*parallel)
		b = append(b, '}')
	}
	b = append(b, `,"tools":[`...)
	for i, t := range o.Tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = wire.AppendString(b, t.Name)
		b = append(b, `,"description":`...)
		b = wire.AppendString(b, t.Description)
		b = append(b, `,"input_schema":`...)
		b = wire.AppendSchema(b, t)
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendSystem appends the system prompt as two blocks; the first ends the part that is shared between jobs. The API
// refuses blocks of white space only.
func (c *dialog) appendSystem(b []byte, o llm.Opening) []byte {
	shared, job := strings.TrimSpace(o.System) != "", strings.TrimSpace(o.JobSystem) != ""
	b = append(b, ',')
	c.prefix = len(b)
	if !shared && !job {
		return b
	}
	b = append(b, `"system":[`...)
	if shared {
		b = append(b, `{"type":"text","text":`...)
		b = wire.AppendString(b, o.System)
		if c.cache {
			b = append(b, cacheControl...)
		}
		b = append(b, '}')
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
		b = append(b, `{"type":"text","text":`...)
		b = wire.AppendString(b, text)
		b = append(b, '}')
	}
	return append(b, "],"...)
}

// block appends what comes before the next content block of a message of the role: the beginning of a new message, or a
// comma if the last message has the same role. A message is left open, because the next one may continue it.
func (c *dialog) block(b []byte, role string, w *writer) []byte {
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

// appendText appends a text block unless it is blank, which the API refuses.
func (c *dialog) appendText(b []byte, role, text string, w *writer) []byte {
	if strings.TrimSpace(text) == "" {
		return b
	}
	b = c.block(b, role, w)
	w.blocks++
	return appendTextBlock(b, text)
}

func appendTextBlock(b []byte, text string) []byte {
	b = append(b, `{"type":"text","text":`...)
	b = wire.AppendString(b, text)
	return append(b, '}')
}

func (c *dialog) appendUser(b []byte, m llm.Message, w *writer) []byte {
	for _, p := range m.Parts {
		if p.Type == llm.PartImage {
			b = c.appendImage(b, p.Image, w)
			continue
		}
		b = c.appendText(b, roleUser, p.Text, w)
	}
	return b
}

func (c *dialog) appendImage(b []byte, image *llm.Image, w *writer) []byte {
	if note := wire.ImageNote(c.model, image); note != "" {
		return c.appendText(b, roleUser, note, w)
	}
	b = c.block(b, roleUser, w)
	w.blocks++
	return appendImageBlock(b, image)
}

func appendImageBlock(b []byte, image *llm.Image) []byte {
	b = append(b, `{"type":"image","source":{"type":"base64","media_type":"`...)
	b = append(b, image.MediaType...)
	b = append(b, `","data":"`...)
	b = base64.StdEncoding.AppendEncode(b, image.Data)
	return append(b, `"}}`...)
}

// appendAssistant appends an assistant message. Thinking goes back to the model that wrote it only, and only with the
// signature that the API demands.
func (c *dialog) appendAssistant(b []byte, m llm.Message, w *writer) []byte {
	same := m.Origin == llm.Origin{API: API, Model: c.model.ID}
	c.ids.NewRound()
	if !sendable(m) {
		return b
	}
	for _, p := range m.Parts {
		switch p.Type {
		case llm.PartText:
			b = c.appendText(b, roleAssistant, p.Text, w)
		case llm.PartThinking:
			if same && p.Signature != "" {
				b = appendThinkingBlock(c.block(b, roleAssistant, w), p)
				w.blocks++
			}
		case llm.PartToolCall:
			b = c.block(b, roleAssistant, w)
			w.blocks++
			b = append(b, `{"type":"tool_use","id":`...)
			b = wire.AppendString(b, c.ids.Assign(p.ToolCall, same))
			b = append(b, `,"name":`...)
			b = wire.AppendString(b, p.ToolCall.Name)
			b = append(b, `,"input":`...)
			b = append(b, wire.Arguments(p.ToolCall)...)
			b = append(b, '}')
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
		b = append(b, `{"type":"redacted_thinking","data":`...)
		b = wire.AppendString(b, p.Signature)
		return append(b, '}')
	}
	b = append(b, `{"type":"thinking","thinking":`...)
	b = wire.AppendString(b, p.Text)
	b = append(b, `,"signature":`...)
	b = wire.AppendString(b, p.Signature)
	return append(b, '}')
}

// appendResults appends the results of one turn. Images stay inside their result, except those of a failed call: the API
// refuses them there, so they follow after all results.
func (c *dialog) appendResults(b []byte, m llm.Message, w *writer) ([]byte, error) {
	var late []*llm.Image
	for _, p := range m.Parts {
		r := p.ToolResult
		id, err := c.ids.Answer(r)
		if err != nil {
			return b, err
		}
		b = c.block(b, roleUser, w)
		w.blocks++
		b = append(b, `{"type":"tool_result","tool_use_id":`...)
		b = wire.AppendString(b, id)
		b, late = c.appendResultContent(b, r, late)
		if r.IsError {
			b = append(b, `,"is_error":true`...)
		}
		b = append(b, '}')
	}
	if len(late) > 0 {
		b = c.appendText(b, roleUser, "Images from the failed tool calls above:", w)
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
