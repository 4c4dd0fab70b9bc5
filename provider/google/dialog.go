package google

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialog is one growing request. buf is the head and the messages so far, the last one without its closing brackets; it
// only ever grows, so requests that are still being sent may keep reading it.
type dialog struct {
	sender   wire.Sender
	model    llm.Model
	traits   traits
	settings settings
	buf      []byte
	prefix   int
	ids      wire.CallIDs
	writer   writer
	last     llm.Role
}

// settings are what the API keeps in generationConfig.
type settings struct {
	thinking    thinking
	temperature *float64
}

// PrefixHash returns the hash of the shared prefix; see llm.Dialog. The API takes the model's name in the path and the
// settings in an object that holds the varying output limit too; the hash covers both in front of the bytes of the body.
func (c *dialog) PrefixHash() string {
	sum := sha256.New()
	_, _ = io.WriteString(sum, modelPath(c.model.ID))
	_, _ = sum.Write(c.settings.append(nil, 0))
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
	b, w := c.buf, c.writer
	w.parts = 0
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
	if w.parts > 0 {
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
	tail := append(make([]byte, 0, 160), "]}]"...)
	tail = c.settings.append(tail, call.MaxOutputTokens)
	return wire.Body{c.buf, append(tail, '}')}, nil
}

// append appends the member generationConfig with a comma before it, or nothing where there is nothing to set.
func (s settings) append(b []byte, most int64) []byte {
	const name = `,"generationConfig":{`
	from := len(b)
	b = append(b, name...)
	comma := func() {
		if len(b) > from+len(name) {
			b = append(b, ',')
		}
	}
	if t := s.thinking.within(most); t.sent {
		b = t.append(b)
	}
	if s.temperature != nil {
		comma()
		b = append(b, `"temperature":`...)
		b = strconv.AppendFloat(b, *s.temperature, 'f', -1, 64)
	}
	if most > 0 {
		comma()
		b = append(b, `"maxOutputTokens":`...)
		b = strconv.AppendInt(b, most, 10)
	}
	if len(b) == from+len(name) {
		return b[:from]
	}
	return append(b, '}')
}

func (t thinking) append(b []byte) []byte {
	b = append(b, `"thinkingConfig":{`...)
	if t.show {
		b = append(b, `"includeThoughts":true,`...)
	}
	if t.level != "" {
		b = append(b, `"thinkingLevel":`...)
		b = wire.AppendString(b, t.level)
	} else {
		b = append(b, `"thinkingBudget":`...)
		b = strconv.AppendInt(b, t.budget, 10)
	}
	return append(b, '}')
}
