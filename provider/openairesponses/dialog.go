package openairesponses

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialog is one growing request. buf is the head and the input items so far; it only ever grows, so requests that are
// still being sent may keep reading it.
type dialog struct {
	sender  wire.Sender
	model   llm.Model
	dialect dialect
	origin  llm.Origin
	buf     []byte
	prefix  int
	ids     wire.CallIDs
	// items are the ids of items on the wire: a second item with one of them is refused.
	items map[string]bool
	last  llm.Role
}

// PrefixHash returns the hash of the shared prefix; see llm.Dialog.
func (c *dialog) PrefixHash() string { return wire.PrefixHash(c.buf[:c.prefix]) }

// Append encodes a message; see llm.Dialog. After an error the dialog is as it was.
func (c *dialog) Append(m llm.Message) error {
	if err := wire.CheckNext(m, &c.ids); err != nil {
		return fmt.Errorf("append message: %w", err)
	}
	b := c.buf
	switch m.Role {
	case llm.RoleUser:
		b = appendUser(separate(b), m, c.model)
	case llm.RoleAssistant:
		if b = c.appendAssistant(b, m); len(b) == len(c.buf) {
			return nil
		}
	case llm.RoleTool:
		c.ids.Begin()
		var err error
		if b, err = c.appendResults(b, m); err != nil {
			c.ids.Undo()
			return fmt.Errorf("append message: %w", err)
		}
	}
	c.buf, c.last = b, m.Role
	return nil
}

// Stream sends the dialog; see llm.Dialog.
func (c *dialog) Stream(ctx context.Context, call llm.Call, sink llm.Sink) (llm.Response, error) {
	body, err := c.request(call)
	return c.sender.Stream(ctx, call, body, err, newDecoder(c.origin, c.model.Price, sink))
}

// Request describes what Stream would send; see llm.Dialog.
func (c *dialog) Request(call llm.Call) (llm.Request, error) {
	return c.sender.Request(c.request(call))
}

// leastOutput is the smallest output limit that the API takes.
const leastOutput = 16

// request returns the body of a request: what has been encoded so far and a tail.
func (c *dialog) request(call llm.Call) (wire.Body, error) {
	if err := wire.CheckSend(c.last, &c.ids, call); err != nil {
		return nil, err
	}
	tail := append(make([]byte, 0, 48), ']')
	if call.MaxOutputTokens > 0 {
		tail = append(tail, `,"max_output_tokens":`...)
		tail = strconv.AppendInt(tail, max(call.MaxOutputTokens, leastOutput), 10)
	}
	return wire.Body{c.buf, append(tail, '}')}, nil
}
