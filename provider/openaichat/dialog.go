package openaichat

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialog is one growing request. buf is the head and the messages so far; it only ever grows, so requests that
// are still being sent may keep reading it.
type dialog struct {
	sender  wire.Sender
	model   llm.Model
	dialect dialect
	origin  llm.Origin
	buf     []byte
	prefix  int
	ids     wire.CallIDs
	// mark is where the last text that can be marked for the cache ends, 0 if marks are not sent.
	mark int
	last llm.Role
}

// PrefixHash returns the hash of the shared prefix; see llm.Dialog.
func (c *dialog) PrefixHash() string { return wire.PrefixHash(c.buf[:c.prefix]) }

// Append encodes a message; see llm.Dialog. After an error the dialog is as it was.
func (c *dialog) Append(m llm.Message) error {
	if err := wire.CheckNext(m, &c.ids); err != nil {
		return fmt.Errorf("append message: %w", err)
	}
	b, mark := c.buf, c.mark
	switch m.Role {
	case llm.RoleUser:
		b = c.appendUser(separate(b), m)
	case llm.RoleAssistant:
		if b = c.appendAssistant(b, m); len(b) == len(c.buf) {
			return nil
		}
	case llm.RoleTool:
		c.ids.Begin()
		var err error
		if b, err = c.appendResults(b, m); err != nil {
			c.ids.Undo()
			c.mark = mark
			return fmt.Errorf("append message: %w", err)
		}
	}
	c.buf, c.last = b, m.Role
	return nil
}

// Stream sends the dialog; see llm.Dialog.
func (c *dialog) Stream(ctx context.Context, call llm.Call, sink llm.Sink) (llm.Response, error) {
	body, err := c.request(call)
	return c.sender.Stream(ctx, call, body, err, newDecoder(c.origin, c.dialect.missingFinish, sink))
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
	tail := append(make([]byte, 0, 64), ']')
	if call.MaxOutputTokens > 0 {
		tail = append(tail, `,"`...)
		tail = append(tail, c.dialect.maxTokens...)
		tail = append(tail, `":`...)
		tail = strconv.AppendInt(tail, call.MaxOutputTokens, 10)
	}
	tail = append(tail, '}')
	if c.mark > 0 {
		return wire.Body{c.buf[:c.mark], []byte(cacheControl), c.buf[c.mark:], tail}, nil
	}
	return wire.Body{c.buf, tail}, nil
}
