package openaichat

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// appendHead appends everything before the first message. The second result is the length of the part that depends on
// model, system, tools, thinking and temperature alone.
func appendHead(b []byte, o llm.Opening, d dialect) ([]byte, int) {
	b = append(b, `{"model":`...)
	b = wire.AppendString(b, o.Model.WireName())
	b = append(b, `,"stream":true`...)
	if d.streamUsage {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	if d.usageInclude {
		b = append(b, `,"usage":{"include":true}`...)
	}
	if d.store {
		b = append(b, `,"store":false`...)
	}
	b = appendThinking(b, o, d)
	b = wire.AppendTemperature(b, o.Temperature)
	if d.parallelTools != nil && len(o.Tools) > 0 {
		b = append(b, `,"parallel_tool_calls":`...)
		b = strconv.AppendBool(b, *d.parallelTools)
	}
	b = appendTools(b, o.Tools, d)
	if d.cacheKey {
		b = append(b, `,"prompt_cache_key":"`...)
		b = append(b, wire.CacheKey(b, o.System)...)
		b = append(b, '"')
	}
	b = append(b, `,"messages":[`...)
	return appendSystem(b, o, d)
}

func appendSystem(b []byte, o llm.Opening, d dialect) ([]byte, int) {
	if o.System == "" && o.JobSystem == "" {
		return b, len(b)
	}
	prefix := len(b)
	role := "system"
	if d.developerRole {
		role = "developer"
	}
	b = append(b, `{"role":"`...)
	b = append(b, role...)
	if d.cacheMarks && o.System != "" {
		return appendMarkedSystem(b, o)
	}
	b = append(b, `","content":"`...)
	if o.System != "" {
		b = wire.AppendText(b, o.System)
		prefix = len(b)
		if o.JobSystem != "" {
			b = append(b, `\n\n`...)
		}
	}
	b = wire.AppendText(b, o.JobSystem)
	return append(b, `"}`...), prefix
}

// appendMarkedSystem appends the rest of the system message as two texts; the first ends the part that is shared between
// jobs.
func appendMarkedSystem(b []byte, o llm.Opening) ([]byte, int) {
	b = append(b, `","content":[{"type":"text","text":"`...)
	b = wire.AppendText(b, o.System)
	prefix := len(b)
	b = append(b, '"')
	b = append(b, cacheControl...)
	b = append(b, '}')
	if o.JobSystem != "" {
		b = append(b, ',')
		b = appendTextPart(b, "\n\n"+o.JobSystem)
	}
	return append(b, "]}"...), prefix
}

const cacheControl = `,"cache_control":{"type":"ephemeral"}`

func appendTools(b []byte, tools []llm.ToolSpec, d dialect) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","function":{"name":`...)
		b = wire.AppendString(b, t.Name)
		b = append(b, `,"description":`...)
		b = wire.AppendString(b, t.Description)
		b = append(b, `,"parameters":`...)
		b = wire.AppendSchema(b, t)
		if d.strictTools && wire.StrictSchema(t.InputSchema) {
			b = append(b, `,"strict":true`...)
		}
		b = append(b, "}}"...)
	}
	return append(b, ']')
}

// appendThinking appends the thinking level in the words of the dialect. Nothing is sent for models that do not think.
func appendThinking(b []byte, o llm.Opening, d dialect) []byte {
	if !wire.Thinks(o.Model) {
		return b
	}
	on := o.Thinking != "" && o.Thinking != llm.LevelOff
	effort := wire.Effort(o)
	switch d.thinking {
	case "openai":
		if effort != "" {
			b = append(b, `,"reasoning_effort":`...)
			b = wire.AppendString(b, effort)
		}
	case "openrouter":
		if effort != "" {
			b = append(b, `,"reasoning":{"effort":`...)
			b = wire.AppendString(b, effort)
			b = append(b, '}')
		}
	case "deepseek":
		b = appendSwitch(b, on, "")
		if on {
			b = append(b, `,"reasoning_effort":`...)
			b = wire.AppendString(b, effort)
		}
	case "zai":
		more := ""
		if on {
			more = `,"clear_thinking":false`
		}
		b = appendSwitch(b, on, more)
	case "qwen":
		b = append(b, `,"enable_thinking":`...)
		b = strconv.AppendBool(b, on)
	case "qwen-chat-template":
		b = append(b, `,"chat_template_kwargs":{"enable_thinking":`...)
		b = strconv.AppendBool(b, on)
		b = append(b, '}')
	case "together":
		b = append(b, `,"reasoning":{"enabled":`...)
		b = strconv.AppendBool(b, on)
		b = append(b, '}')
	}
	return b
}

func appendSwitch(b []byte, on bool, more string) []byte {
	word := "disabled"
	if on {
		word = "enabled"
	}
	b = append(b, `,"thinking":{"type":"`...)
	b = append(b, word...)
	b = append(b, '"')
	b = append(b, more...)
	return append(b, '}')
}

// appendUser appends a user message. Text alone is sent as a plain string, because not every server takes a list.
func (c *dialog) appendUser(b []byte, m llm.Message) []byte {
	b = append(b, `{"role":"user","content":`...)
	var texts []string
	images := false
	for _, p := range m.Parts {
		text := p.Text
		if p.Type == llm.PartImage {
			if text = wire.ImageNote(c.model, p.Image); text == "" {
				images = true
				continue
			}
		}
		texts = append(texts, text)
	}
	if !images {
		b = c.appendContent(b, strings.Join(texts, "\n"))
		return append(b, '}')
	}
	b = append(b, '[')
	for i, p := range m.Parts {
		if i > 0 {
			b = append(b, ',')
		}
		text := p.Text
		if p.Type == llm.PartImage {
			if text = wire.ImageNote(c.model, p.Image); text == "" {
				b = appendImage(b, p.Image)
				continue
			}
		}
		b = c.markable(appendTextPart(b, text), text)
	}
	return append(b, "]}"...)
}

// appendContent appends text as the whole content of a message.
func (c *dialog) appendContent(b []byte, text string) []byte {
	if !c.dialect.cacheMarks {
		return wire.AppendString(b, text)
	}
	b = c.markable(appendTextPart(append(b, '['), text), text)
	return append(b, ']')
}

// markable remembers that a text which can be marked for the cache ends here. A blank one cannot.
func (c *dialog) markable(b []byte, text string) []byte {
	if c.dialect.cacheMarks && strings.TrimSpace(text) != "" {
		c.mark = len(b) - 1
	}
	return b
}

func appendTextPart(b []byte, text string) []byte {
	b = append(b, `{"type":"text","text":`...)
	b = wire.AppendString(b, text)
	return append(b, '}')
}

func appendImage(b []byte, image *llm.Image) []byte {
	b = append(b, `{"type":"image_url","image_url":{"url":"data:`...)
	b = append(b, image.MediaType...)
	b = append(b, ";base64,"...)
	b = base64.StdEncoding.AppendEncode(b, image.Data)
	return append(b, `"}}`...)
}

// appendAssistant appends an assistant message, or nothing if it holds neither text nor calls.
func (c *dialog) appendAssistant(b []byte, m llm.Message) []byte {
	same := m.Origin == c.origin
	text, calls := m.Text(), m.ToolCalls()
	c.ids.NewRound()
	if text == "" && len(calls) == 0 {
		return b
	}
	b = separate(b)
	b = append(b, `{"role":"assistant","content":`...)
	switch {
	case text != "" || c.dialect.emptyContent:
		b = wire.AppendString(b, text)
	default:
		b = append(b, "null"...)
	}
	b = c.appendEarlierThinking(b, m, same)
	for i, call := range calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"id":`...)
		b = wire.AppendString(b, c.ids.Assign(call, same))
		b = append(b, `,"type":"function","function":{"name":`...)
		b = wire.AppendString(b, call.Name)
		b = append(b, `,"arguments":"`...)
		b = wire.AppendText(b, string(wire.Arguments(call)))
		b = append(b, `"}}`...)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendEarlierThinking replays thinking of the same model in the field in which it came. Where a proof came with it,
// the proof is sent instead; it holds the thinking as well.
func (c *dialog) appendEarlierThinking(b []byte, m llm.Message, same bool) []byte {
	if !c.dialect.replayThinking {
		return b
	}
	field, text := "", ""
	for _, p := range m.Parts {
		if !same || p.Type != llm.PartThinking {
			continue
		}
		if p.Signature != "" && wire.IsArray(p.Signature) {
			b = append(b, `,"reasoning_details":`...)
			return append(b, p.Signature...)
		}
		if p.Text != "" && knownField(p.Field) && (field == "" || field == p.Field) {
			field = p.Field
			text += p.Text
		}
	}
	if field == "" {
		if !c.dialect.everyThinking {
			return b
		}
		field = "reasoning_content"
	}
	b = append(b, `,"`...)
	b = append(b, field...)
	b = append(b, `":`...)
	return wire.AppendString(b, text)
}

// appendResults appends the results of one turn, and their images in one user message after all of them, because a tool
// message holds text only.
func (c *dialog) appendResults(b []byte, m llm.Message) ([]byte, error) {
	var images []*llm.Image
	for _, p := range m.Parts {
		r := p.ToolResult
		id, err := c.ids.Answer(r)
		if err != nil {
			return b, err
		}
		text, shown := wire.ResultText(r), 0
		for _, part := range r.Content {
			if part.Type != llm.PartImage {
				continue
			}
			if note := wire.ImageNote(c.model, part.Image); note != "" {
				text = strings.TrimPrefix(text+"\n"+note, "\n")
				continue
			}
			images = append(images, part.Image)
			shown++
		}
		switch {
		case text == "" && shown > 0:
			text = "(The image follows after the results.)"
		case text == "":
			text = wire.EmptyResult
		}
		b = c.appendResult(separate(b), id, r.Name, text)
	}
	if len(images) == 0 {
		return b, nil
	}
	b = append(separate(b), `{"role":"user","content":[{"type":"text","text":"Images from the tool results above:"}`...)
	for _, image := range images {
		b = appendImage(append(b, ','), image)
	}
	return append(b, "]}"...), nil
}

func (c *dialog) appendResult(b []byte, id, name, text string) []byte {
	b = append(b, `{"role":"tool","tool_call_id":`...)
	b = wire.AppendString(b, id)
	if c.dialect.toolResultName {
		b = append(b, `,"name":`...)
		b = wire.AppendString(b, name)
	}
	b = append(b, `,"content":`...)
	b = c.appendContent(b, text)
	return append(b, '}')
}

// separate appends the comma between two messages.
func separate(b []byte) []byte {
	if b[len(b)-1] == '[' {
		return b
	}
	return append(b, ',')
}
