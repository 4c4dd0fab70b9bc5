package anthropic

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/claude"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialog is one growing request. buf is the head and the messages so far, the last one without its closing
// brackets; it only ever grows, so requests that are still being sent may keep reading it.
type dialog struct {
	sender   wire.Sender
	model    llm.Model
	thinking claude.Thinking
	cache    bool
	buf      []byte
	prefix   int
	// buf[from:to] is the thinking member.
	from, to int
	ids      wire.CallIDs
	writer   writer
	last     llm.Role
}

// PrefixHash returns the hash of the shared prefix; see llm.Dialog.
func (c *dialog) PrefixHash() string { return wire.PrefixHash(c.buf[:c.prefix]) }

// Append encodes a message; see llm.Dialog. After an error the dialog is as it was.
func (c *dialog) Append(m llm.Message) error {
	if err := wire.CheckNext(m, &c.ids); err != nil {
		return fmt.Errorf("append message: %w", err)
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
	}
	return nil
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
	most := c.thinking.MaxTokens(call, c.model)
	tail := append(make([]byte, 0, 96), "]}]"...)
	if c.cache {
		tail = append(tail, cacheControl...)
	}
	tail = append(tail, `,"max_tokens":`...)
	tail = strconv.AppendInt(tail, most, 10)
	tail = append(tail, '}')
	if !c.thinking.Fits(most) {
		return wire.Body{c.buf[:c.from], appendThinking(nil, c.thinking.Within(most)), c.buf[c.to:], tail}, nil
	}
	return wire.Body{c.buf, tail}, nil
}
