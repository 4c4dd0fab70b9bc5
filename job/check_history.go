package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// history checks that the earlier messages are an exchange that every API accepts: each role holds the parts it may hold,
// each part the fields of its type, and every tool call is answered once, in order, by the message that follows it.
func (c *checker) history() {
	var awaited []*llm.ToolCall
	from, known := 0, true // known is false after a message that did not decode
	ids := map[string]bool{}
	for i, m := range c.spec.History {
		pointer := fmt.Sprintf("/history/%d", i)
		c.message(pointer, m, ids)
		whole := !c.skipWhole(pointer)
		switch {
		case !known || !whole:
		case m.Role == llm.RoleTool:
			c.answers(pointer, m, awaited)
		case len(awaited) > 0:
			c.addHint(codeInvalid, pointer, "a tool message with their results must follow",
				"the tool calls of /history/%d have no results", from)
		}
		awaited, from, known = completeCalls(m), i, whole
	}
	if known && len(awaited) > 0 && !c.skip("/history") {
		c.addHint(codeInvalid, fmt.Sprintf("/history/%d", from), "end it with a tool message that holds the results",
			"the history ends with tool calls that have no results")
	}
}

// completeCalls returns the calls of a message but those that are missing in their part, which is a problem of its own.
func completeCalls(m llm.Message) []*llm.ToolCall {
	return slices.DeleteFunc(m.ToolCalls(), func(call *llm.ToolCall) bool { return call == nil })
}

// partsOf returns the types of part that a message of this role may hold, nil for an unknown role.
func partsOf(role llm.Role) []llm.PartType {
	switch role {
	case llm.RoleUser:
		return []llm.PartType{llm.PartText, llm.PartImage}
	case llm.RoleAssistant:
		return []llm.PartType{llm.PartText, llm.PartThinking, llm.PartToolCall}
	case llm.RoleTool:
		return []llm.PartType{llm.PartToolResult}
	}
	return nil
}

func (c *checker) message(pointer string, m llm.Message, ids map[string]bool) {
	allowed := partsOf(m.Role)
	if allowed == nil {
		roles := []llm.Role{llm.RoleUser, llm.RoleAssistant, llm.RoleTool}
		c.addHint(codeUnknown, pointer+"/role", closestHint(string(m.Role), roles), "unknown role %q", shorten(string(m.Role)))
		return
	}
	if m.Origin != (llm.Origin{}) && m.Role != llm.RoleAssistant {
		c.add(codeInvalid, pointer+"/origin", "only an assistant message has an origin")
	}
	if len(m.Parts) == 0 {
		c.add(codeRequired, pointer+"/parts", "must not be empty")
	}
	for i := range m.Parts {
		at := fmt.Sprintf("%s/parts/%d", pointer, i)
		if c.partType(at, &m.Parts[i], allowed, "a message of role "+string(m.Role)) {
			c.part(at, &m.Parts[i], ids)
		}
	}
}

// partType checks the discriminator of a part and that nothing of another type is set.
func (c *checker) partType(pointer string, p *llm.Part, allowed []llm.PartType, holder string) bool {
	all := []llm.PartType{llm.PartText, llm.PartThinking, llm.PartImage, llm.PartToolCall, llm.PartToolResult}
	switch {
	case c.skip(pointer) || c.skip(pointer+"/type"):
		return false
	case !slices.Contains(all, p.Type):
		c.addHint(codeUnknown, pointer+"/type", closestHint(string(p.Type), all), "unknown type of part %q", shorten(string(p.Type)))
		return false
	case !slices.Contains(allowed, p.Type):
		c.add(codeInvalid, pointer+"/type", "%s holds no part of type %q", holder, p.Type)
		return false
	}
	thinking := p.Type == llm.PartThinking
	ofModel := slices.Contains(allowed, llm.PartThinking)
	for _, field := range []struct {
		name    string
		set, ok bool
	}{
		{"text", p.Text != "", thinking || p.Type == llm.PartText},
		{"signature", p.Signature != "", thinking || (ofModel && p.Type != llm.PartImage)},
		{"redacted", p.Redacted, thinking},
		{"field", p.Field != "", thinking},
		{"image", p.Image != nil, p.Type == llm.PartImage},
		{"toolCall", p.ToolCall != nil, p.Type == llm.PartToolCall},
		{"toolResult", p.ToolResult != nil, p.Type == llm.PartToolResult},
	} {
		if field.set && !field.ok {
			c.add(codeInvalid, pointer+"/"+field.name, "a part of type %q has no %s", p.Type, field.name)
		}
	}
	return true
}

func (c *checker) part(pointer string, p *llm.Part, ids map[string]bool) {
	switch p.Type {
	case llm.PartThinking:
		if p.Redacted && p.Signature == "" {
			c.add(codeRequired, pointer+"/signature", "redacted thinking is nothing without its signature")
		}
	case llm.PartImage:
		c.image(pointer+"/image", p.Image)
	case llm.PartToolCall:
		c.toolCall(pointer+"/toolCall", p.ToolCall, ids)
	case llm.PartToolResult:
		c.toolResult(pointer+"/toolResult", p.ToolResult)
	}
}

func (c *checker) image(pointer string, image *llm.Image) {
	known := []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	switch {
	case image == nil:
		c.add(codeRequired, pointer, "must be given for this type of part")
		return
	case !slices.Contains(known, image.MediaType):
		c.addHint(codeUnknown, pointer+"/mediaType", closestHint(image.MediaType, known), "unknown type of image %q", shorten(image.MediaType))
	}
	if len(image.Data) == 0 {
		c.add(codeRequired, pointer+"/data", "must not be empty")
	}
}

func (c *checker) toolCall(pointer string, call *llm.ToolCall, ids map[string]bool) {
	if call == nil {
		c.add(codeRequired, pointer, "must be given for this type of part")
		return
	}
	switch {
	case call.ID == "":
		c.add(codeRequired, pointer+"/id", "must not be empty")
	case ids[call.ID]:
		c.add(codeDuplicate, pointer+"/id", "another call of the history has the id %q", shorten(call.ID))
	}
	ids[call.ID] = true
	c.text(pointer+"/name", call.Name, "the name of the tool")
	c.oneOf(pointer+"/textFormat", call.TextFormat, llm.TextCallFormats()...)
	switch object := bytes.HasPrefix(bytes.TrimLeft(call.Arguments, " \t\r\n"), []byte("{")); {
	case call.ArgumentsError == "" && len(call.Arguments) == 0:
		c.addHint(codeRequired, pointer+"/arguments", "{} for none", "must be given")
	case call.ArgumentsError == "" && !object:
		c.add(codeWrongType, pointer+"/arguments", "must be an object")
	case call.ArgumentsError != "" && len(call.Arguments) > 0:
		c.add(codeInvalid, pointer+"/argumentsError", "a call has arguments or an error about them, not both")
	case call.ArgumentsError == "" && call.RawArguments != "":
		c.add(codeInvalid, pointer+"/rawArguments", "are kept only with argumentsError")
	}
}

func (c *checker) toolResult(pointer string, result *llm.ToolResult) {
	if result == nil {
		c.add(codeRequired, pointer, "must be given for this type of part")
		return
	}
	if result.CallID == "" {
		c.add(codeRequired, pointer+"/callId", "must not be empty")
	}
	if len(result.Content) == 0 {
		c.addHint(codeRequired, pointer+"/content", "a model needs a text, be it only that there was no output", "must not be empty")
	}
	for i := range result.Content {
		at := fmt.Sprintf("%s/content/%d", pointer, i)
		part := &result.Content[i]
		if c.partType(at, part, []llm.PartType{llm.PartText, llm.PartImage}, "a tool result") && part.Type == llm.PartImage {
			c.image(at+"/image", part.Image)
		}
	}
}

// answers compares the results of a tool message with the calls that wait for them.
func (c *checker) answers(pointer string, m llm.Message, calls []*llm.ToolCall) {
	var want, got []string
	for _, call := range calls {
		want = append(want, call.ID)
	}
	for _, p := range m.Parts {
		if p.ToolResult == nil {
			return // reported where it stands
		}
		got = append(got, p.ToolResult.CallID)
	}
	switch {
	case len(want) == 0:
		c.add(codeInvalid, pointer, "a tool message must follow the assistant message whose calls it answers")
	case !slices.Equal(want, got):
		c.addHint(codeInvalid, pointer, "each call has exactly one result, in the order of the calls",
			"answers the calls %s, but those before it are %s", quoteAll(got), quoteAll(want))
	default:
		for i, call := range calls {
			if name := m.Parts[i].ToolResult.Name; name != call.Name {
				c.add(codeInvalid, fmt.Sprintf("%s/parts/%d/toolResult/name", pointer, i), "the call is of %q, not of %q",
					shorten(call.Name), shorten(name))
			}
		}
	}
}

func quoteAll(ids []string) string {
	short := make([]string, 0, len(ids))
	for _, id := range ids[:min(len(ids), 8)] {
		short = append(short, shorten(id))
	}
	text, _ := json.Marshal(short) // strings always have a form
	if len(ids) > len(short) {
		return strings.TrimSuffix(string(text), "]") + ",…]"
	}
	return string(text)
}
