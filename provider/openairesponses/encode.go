package openairesponses

import (
	"bytes"
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
	if d.store {
		b = append(b, `,"store":false`...)
	}
	if d.replay == replaySealed {
		b = append(b, `,"include":["reasoning.encrypted_content"]`...)
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
	b = append(b, `,"input":[`...)
	return appendSystem(b, o, d)
}

func appendThinking(b []byte, o llm.Opening, d dialect) []byte {
	effort := wire.Effort(o)
	if d.thinking == thinkingNone || effort == "" {
		return b
	}
	b = append(b, `,"reasoning":{"effort":`...)
	b = wire.AppendString(b, effort)
	if d.thinking == thinkingOpenAI && o.Thinking != "" && o.Thinking != llm.LevelOff {
		b = append(b, `,"summary":"auto"`...)
	}
	return append(b, '}')
}

// appendTools appends the tools. The API takes a tool for strict unless it is told otherwise.
func appendTools(b []byte, tools []llm.ToolSpec, d dialect) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `,"tools":[`...)
	for _, t := range tools {
		b = append(separate(b), `{"type":"function","name":`...)
		b = wire.AppendString(b, t.Name)
		b = append(b, `,"description":`...)
		b = wire.AppendString(b, t.Description)
		b = append(b, `,"strict":`...)
		b = strconv.AppendBool(b, d.strictTools && wire.StrictSchema(t.InputSchema))
		b = append(b, `,"parameters":`...)
		b = wire.AppendSchema(b, t)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendSystem(b []byte, o llm.Opening, d dialect) ([]byte, int) {
	prefix := len(b)
	if o.System == "" && o.JobSystem == "" {
		return b, prefix
	}
	role := "system"
	if d.developerRole {
		role = "developer"
	}
	b = append(b, `{"role":"`...)
	b = append(b, role...)
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

func appendUser(b []byte, m llm.Message, model llm.Model) []byte {
	b = append(b, `{"role":"user","content":[`...)
	for _, p := range m.Parts {
		b = appendInput(separate(b), p, model)
	}
	return append(b, "]}"...)
}

// appendInput appends a text or an image.
func appendInput(b []byte, p llm.Part, model llm.Model) []byte {
	text := p.Text
	if p.Type == llm.PartImage {
		if text = wire.ImageNote(model, p.Image); text == "" {
			b = append(b, `{"type":"input_image","detail":"auto","image_url":"data:`...)
			b = append(b, p.Image.MediaType...)
			b = append(b, ";base64,"...)
			b = base64.StdEncoding.AppendEncode(b, p.Image.Data)
			return append(b, `"}`...)
		}
	}
	b = append(b, `{"type":"input_text","text":`...)
	b = wire.AppendString(b, text)
	return append(b, '}')
}

// appendAssistant appends the items of an assistant message, or nothing if it holds neither text nor calls. Thinking is
// an item of its own and waits for the item after it: the API refuses one that nothing follows.
func (c *dialog) appendAssistant(b []byte, m llm.Message) []byte {
	same := m.Origin == c.origin
	c.ids.NewRound()
	var thought []byte
	follows := false
	for _, p := range m.Parts {
		switch {
		case p.Type == llm.PartThinking:
			if same {
				thought = c.appendThought(thought, p)
			}
			continue
		case p.Type == llm.PartText && p.Text == "":
			continue
		}
		if len(thought) > 0 {
			b = append(separate(b), thought...)
			thought, follows = nil, true
		}
		b = separate(b)
		if p.Type == llm.PartText {
			b = appendAnswer(b, p, same)
			continue
		}
		b = c.appendCall(b, p.ToolCall, same, follows)
	}
	return b
}

// appendAnswer appends a text that the model wrote. A model that marks its texts is told again what each of them was.
func appendAnswer(b []byte, p llm.Part, same bool) []byte {
	b = append(b, `{"type":"message","role":"assistant"`...)
	if same && isWord(p.Signature) {
		b = append(b, `,"phase":"`...)
		b = append(b, p.Signature...)
		b = append(b, '"')
	}
	b = append(b, `,"content":[{"type":"output_text","text":`...)
	b = wire.AppendString(b, p.Text)
	return append(b, `,"annotations":[]}]}`...)
}

// appendThought appends the stored item of a thinking part if the server will know it.
func (c *dialog) appendThought(b []byte, p llm.Part) []byte {
	raw := []byte(p.Signature)
	if c.dialect.replay == replayNone || wire.CheckObject(raw) != nil {
		return b
	}
	var l wire.Lexer
	l.Reset(raw)
	var i item
	i.read(&l)
	if string(i.kind) != itemReasoning || c.dialect.replay == replaySealed && len(i.encrypted) == 0 || !c.claim(i.id) {
		return b
	}
	if len(b) > 0 {
		b = append(b, ',')
	}
	return append(b, raw...)
}

// appendCall appends a call. The id of its item ties it to the thinking before it and is sent with that only: alone the
// API refuses it.
func (c *dialog) appendCall(b []byte, call *llm.ToolCall, same, follows bool) []byte {
	callID, itemID := splitID(call.ProviderID)
	bare := &llm.ToolCall{ID: call.ID, ProviderID: callID, Name: call.Name}
	b = append(b, `{"type":"function_call","call_id":`...)
	b = wire.AppendString(b, c.ids.Assign(bare, same))
	if same && follows && strings.HasPrefix(itemID, "fc_") && len(itemID) <= 64 && c.claim([]byte(itemID)) {
		b = append(b, `,"id":`...)
		b = wire.AppendString(b, itemID)
	}
	b = append(b, `,"name":`...)
	b = wire.AppendString(b, call.Name)
	b = append(b, `,"arguments":"`...)
	b = wire.AppendText(b, string(wire.Arguments(call)))
	return append(b, `"}`...)
}

// claim takes the id of an item and reports whether no other item on the wire has it. An empty id is always free.
func (c *dialog) claim(id []byte) bool {
	if len(id) == 0 {
		return true
	}
	if c.items[string(id)] {
		return false
	}
	if c.items == nil {
		c.items = map[string]bool{}
	}
	c.items[string(id)] = true
	return true
}

// splitID returns the two ids that the API gives a call: its own, which the result names, and that of its item.
func splitID(providerID string) (call, item string) {
	call, item, _ = strings.Cut(providerID, "|")
	return call, item
}

// appendResults appends the results of one turn. Images stay inside their result.
func (c *dialog) appendResults(b []byte, m llm.Message) ([]byte, error) {
	for _, p := range m.Parts {
		callID, _ := splitID(p.ToolResult.ProviderID)
		id, err := c.ids.Answer(&llm.ToolResult{CallID: p.ToolResult.CallID, ProviderID: callID, Name: p.ToolResult.Name})
		if err != nil {
			return b, err
		}
		b = append(separate(b), `{"type":"function_call_output","call_id":`...)
		b = wire.AppendString(b, id)
		b = append(b, `,"output":`...)
		b = c.appendOutput(b, p.ToolResult)
		b = append(b, '}')
	}
	return b, nil
}

// appendOutput appends what a result holds: text alone as a string, because not every server takes a list.
func (c *dialog) appendOutput(b []byte, r *llm.ToolResult) []byte {
	text := wire.ResultText(r)
	images := 0
	for _, p := range r.Content {
		if p.Type == llm.PartImage {
			images++
		}
	}
	if images == 0 {
		if text == "" {
			text = wire.EmptyResult
		}
		return wire.AppendString(b, text)
	}
	b = append(b, '[')
	if text != "" {
		b = appendInput(b, llm.TextPart(text), c.model)
	}
	for _, p := range r.Content {
		if p.Type == llm.PartImage {
			b = appendInput(separate(b), p, c.model)
		}
	}
	return append(b, ']')
}

// separate appends the comma between two elements of a list.
func separate(b []byte) []byte {
	if bytes.HasSuffix(b, []byte{'['}) {
		return b
	}
	return append(b, ',')
}
