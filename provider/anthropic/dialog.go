package anthropic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialog is one growing request. buf is the head and the messages so far, the last one without its closing
// brackets; it only ever grows, so requests that are still being sent may keep reading it.
type dialog struct {
	sender   wire.Sender
	model    llm.Model
	thinking thinking
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
func (c *dialog) PrefixHash() string {
	sum := sha256.Sum256(c.buf[:c.prefix])
	return hex.EncodeToString(sum[:])
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

// defaultMaxTokens is the output limit where neither the call nor the model has one; the API demands a limit.
const defaultMaxTokens = 4096

// request returns the body of a request: what has been encoded so far and a tail.
func (c *dialog) request(call llm.Call) (wire.Body, error) {
	if err := wire.CheckSend(c.last, &c.ids, call); err != nil {
		return nil, err
	}
	most := call.MaxOutputTokens
	if most == 0 {
		most = c.model.MaxOutputTokens
	}
	if most == 0 {
		most = defaultMaxTokens + c.thinking.budget
	}
	tail := append(make([]byte, 0, 96), "]}]"...)
	if c.cache {
		tail = append(tail, cacheControl...)
	}
	tail = append(tail, `,"max_tokens":`...)
	tail = strconv.AppendInt(tail, most, 10)
	tail = append(tail, '}')
	if c.thinking.budget > 0 && c.thinking.budget > most-leastBudget {
		return wire.Body{c.buf[:c.from], appendThinking(nil, c.thinking.within(most)), c.buf[c.to:], tail}, nil
	}
	return wire.Body{c.buf, tail}, nil
}

// within returns the thinking for a call with a smaller output limit than the budget needs. Such a call gives up the
// shared prefix; the API would refuse it otherwise.
func (t thinking) within(most int64) thinking {
	if most < 2*leastBudget {
		return thinking{off: true}
	}
	t.budget = most - leastBudget
	return t
}
