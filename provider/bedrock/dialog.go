package bedrock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialog is one growing request. buf is the head and the messages so far, the last one without its closing brackets; it
// only ever grows, so requests that are still being sent may keep reading it.
type dialog struct {
	sender      wire.Sender
	model       llm.Model
	temperature *float64
	asked       asked
	// cache says that the model takes cache marks.
	cache  bool
	buf    []byte
	prefix int
	// buf[from:to] is the member that asks for thinking.
	from, to int
	// declared says that the opening has tools; used are the names of the tools that the messages call.
	declared bool
	used     []string
	ids      wire.CallIDs
	writer   writer
	last     llm.Role
}

// PrefixHash returns the hash of the shared prefix; see llm.Dialog. The model is part of the address and the temperature
// of the tail, so both are added.
func (c *dialog) PrefixHash() string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n%s\n", c.model.ID, wire.AppendTemperature(nil, c.temperature)) // a hash takes everything
	_, _ = sum.Write(c.buf[:c.prefix])
	return hex.EncodeToString(sum.Sum(nil))
}

// Append encodes a message; see llm.Dialog. After an error the dialog is as it was.
func (c *dialog) Append(m llm.Message) error {
	if err := wire.CheckMessage(m); err != nil {
		return fmt.Errorf("append message: %w", err)
	}
	if m.Role != llm.RoleTool {
		if err := c.ids.Settled(); err != nil {
			return fmt.Errorf("append message: %w", err)
		}
	}
	b, w := c.buf, writer{role: c.writer.role}
	switch m.Role {
	case llm.RoleUser:
		b = c.appendUser(b, m, &w)
	case llm.RoleAssistant:
		b = c.appendAssistant(b, m, &w)
	case llm.RoleTool:
		c.ids.Begin()
		var err error
		if b, err = c.appendResults(b, m, &w); err != nil {
			c.ids.Undo()
			return fmt.Errorf("append message: %w", err)
		}
	}
	if w.blocks > 0 {
		c.buf, c.writer, c.last = b, w, m.Role
		c.use(m)
	}
	return nil
}

// use notes the tools that a message calls.
func (c *dialog) use(m llm.Message) {
	for _, call := range m.ToolCalls() {
		if !c.declared && !slices.Contains(c.used, call.Name) {
			c.used = append(c.used, call.Name)
		}
	}
}

// Stream sends the dialog; see llm.Dialog.
func (c *dialog) Stream(ctx context.Context, call llm.Call, sink llm.Sink) (llm.Response, error) {
	body, err := c.request(call)
	return c.sender.Stream(ctx, call, body, err, newDecoder(c.model.ID, sink))
}

// Request describes what Stream would send; see llm.Dialog.
func (c *dialog) Request(call llm.Call) (llm.Request, error) {
	return c.sender.Request(c.request(call))
}

// request returns the body of a request: what has been encoded so far and a tail.
func (c *dialog) request(call llm.Call) (wire.Body, error) {
	if err := wire.CheckSend(c.last, &c.ids, call); err != nil {
		return nil, err
	}
	tail := make([]byte, 0, 160)
	if c.cache {
		tail = append(append(tail, ','), cachePoint...)
	}
	tail = append(tail, "]}]"...)
	tail = c.appendUsedTools(tail)
	most := c.asked.maxTokens(call, c.model)
	tail = append(c.appendInference(tail, most), '}')
	if less := c.asked.within(most); less != c.asked {
		return wire.Body{c.buf[:c.from], less.append(nil), c.buf[c.to:], tail}, nil
	}
	return wire.Body{c.buf, tail}, nil
}

// appendInference appends the output limit and the temperature, where there are any.
func (c *dialog) appendInference(b []byte, most int64) []byte {
	if most == 0 && c.temperature == nil {
		return b
	}
	b = append(b, `,"inferenceConfig":{`...)
	from := len(b)
	if most > 0 {
		b = strconv.AppendInt(append(b, `,"maxTokens":`...), most, 10)
	}
	b = wire.AppendTemperature(b, c.temperature)
	b = slices.Delete(b, from, from+1) // the first comma
	return append(b, '}')
}

// appendUsedTools declares the tools that the messages call although the opening has none: the API refuses messages with
// calls of tools that nobody declared.
func (c *dialog) appendUsedTools(b []byte) []byte {
	if len(c.used) == 0 {
		return b
	}
	b = append(b, `,"toolConfig":{"tools":[`...)
	for i, name := range c.used {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"toolSpec":{"name":`...)
		b = wire.AppendString(b, name)
		b = append(b, `,"description":"Not available any more.","inputSchema":{"json":{"type":"object"}}}}`...)
	}
	return append(b, "]}"...)
}
