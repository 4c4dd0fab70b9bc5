package scripted

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
)

// maxItems bounds the copies that "each" makes of one part.
const maxItems = 64

// castPart is a part with its texts settled for one request.
type castPart struct {
	*part
	text []byte
}

// sent returns the first n bytes as a string, without a copy where the script has it.
func (c *castPart) sent(n int) string {
	if n == len(c.part.text.literal) && c.part.text.template == "" && c.arguments == nil {
		return c.part.text.literal
	}
	return string(c.text[:n])
}

// cast settles the parts of a response: conditions decided, lists unrolled, templates executed.
func (r *response) cast(s *scene) ([]castPart, error) {
	settled := make([]castPart, 0, len(r.parts))
	for i := range r.parts {
		p := &r.parts[i]
		if holds, err := p.when.holds(s); err != nil {
			return nil, err
		} else if !holds {
			continue
		}
		items, err := s.itemsOf(p)
		if err != nil {
			return nil, err
		}
		for index, item := range items {
			s.on(item, index)
			text, err := s.partText(p)
			if err != nil {
				return nil, err
			}
			settled = append(settled, castPart{p, text})
		}
	}
	return settled, nil
}

// itemsOf returns one item for each copy of a part.
func (s *scene) itemsOf(p *part) ([]string, error) {
	if p.each.empty() {
		return []string{""}, nil
	}
	text, err := s.render(p.each)
	if err != nil {
		return nil, err
	}
	var items []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			items = append(items, line)
		}
	}
	if len(items) > maxItems {
		return nil, fmt.Errorf(`"each" makes %d copies of a part; at most %d are allowed`, len(items), maxItems)
	}
	return items, nil
}

func (s *scene) partText(p *part) ([]byte, error) {
	if p.arguments == nil {
		return s.render(p.text)
	}
	filled, err := s.fill(p.arguments, p.pointer)
	if err != nil {
		return nil, err
	}
	return filled.appendJSON(nil), nil
}

// fill returns a copy of n in which templates are replaced by their output.
func (s *scene) fill(n *node, pointer string) (*node, error) {
	filled := *n
	var err error
	switch n.kind {
	case kindString:
		if s.templates.Lookup(pointer) == nil {
			return n, nil
		}
		var out []byte
		out, err = s.render(text{template: pointer})
		filled.text = string(out)
	case kindList:
		filled.list = make([]*node, len(n.list))
		for i, v := range n.list {
			if filled.list[i], err = s.fill(v, fmt.Sprintf("%s/%d", pointer, i)); err != nil {
				return nil, err
			}
		}
	case kindObject:
		filled.object = make([]member, len(n.object))
		for i, m := range n.object {
			filled.object[i].key = m.key
			if filled.object[i].value, err = s.fill(m.value, pointer+"/"+escape(m.key)); err != nil {
				return nil, err
			}
		}
	}
	return &filled, err
}

// player streams one response.
type player struct {
	sink     llm.Sink
	response *response
	parts    []castPart

	sent  int // deltas
	bytes int // of text, thinking and arguments that were sent
	calls int // opened
	timer *time.Timer
}

// errFail ends the playing of parts where the script wants the response to fail.
var errFail = errors.New("the response fails here")

// play streams the response and returns it as it had arrived. Request is the size of the request in bytes.
func (p *player) play(ctx context.Context, origin llm.Origin, request int) (llm.Response, error) {
	r := p.response
	out := llm.Response{RawStop: r.rawStop, ServedModel: r.servedModel, ID: r.id}
	out.Message = llm.Message{Role: llm.RoleAssistant, Parts: make([]llm.Part, 0, len(p.parts)), Origin: origin}
	err := p.wait(ctx, r.delay)
	for i := 0; err == nil && i < len(p.parts); i++ {
		err = p.part(ctx, &p.parts[i], &out.Message)
	}
	if r.usage != nil {
		out.Usage, out.UsageReported = *r.usage, true
	}
	if err == nil && r.failure != nil {
		err = errFail
	}
	if errors.Is(err, errFail) {
		return out, p.fail(ctx)
	}
	if err != nil {
		return out, err
	}
	p.finish(&out, request)
	return out, nil
}

// finish fills in what a complete response has.
func (p *player) finish(out *llm.Response, request int) {
	r := p.response
	out.Stop = r.stop
	if out.Stop == "" {
		out.Stop = llm.StopEnd
		if p.calls > 0 {
			out.Stop = llm.StopTools
		}
	}
	if out.RawStop == "" {
		out.RawStop = string(out.Stop)
	}
	if r.countUsage {
		out.Usage = llm.Usage{Input: llm.EstimateTokens(request), Output: llm.EstimateTokens(p.bytes)}
		out.UsageReported = true
	}
	if r.billed != nil {
		billed := *r.billed
		out.Billed = &billed
	}
}

// fail returns the failure of the script.
func (p *player) fail(ctx context.Context) error {
	f := p.response.failure
	if f.stall {
		<-ctx.Done()
		return ended(ctx)
	}
	err := f.err
	return &err
}

// part streams one part and adds it to the message. A part that is cut holds what was sent, and a call that is cut is
// left out: its arguments are not complete.
func (p *player) part(ctx context.Context, c *castPart, m *llm.Message) error {
	switch c.kind {
	case llm.PartToolCall:
		return p.call(ctx, c, m)
	case llm.PartThinking:
		if c.redacted {
			m.Parts = append(m.Parts, llm.Part{Type: llm.PartThinking, Redacted: true, Signature: c.signature})
			return nil
		}
		sent, err := p.stream(ctx, llm.DeltaThinking, 0, c.text)
		thought := llm.Part{Type: llm.PartThinking, Text: c.sent(sent)}
		if err == nil {
			thought.Signature = c.signature
		}
		if sent > 0 || err == nil {
			m.Parts = append(m.Parts, thought)
		}
		return err
	}
	sent, err := p.stream(ctx, llm.DeltaText, 0, c.text)
	if sent > 0 {
		m.Parts = append(m.Parts, llm.TextPart(c.sent(sent)))
	}
	return err
}

func (p *player) call(ctx context.Context, c *castPart, m *llm.Message) error {
	index := p.calls
	p.calls++
	if err := p.send(ctx, llm.Delta{Kind: llm.DeltaToolName, Index: index, Text: []byte(c.tool)}); err != nil {
		return err
	}
	if _, err := p.stream(ctx, llm.DeltaToolArguments, index, c.text); err != nil {
		return err
	}
	if err := p.send(ctx, llm.Delta{Kind: llm.DeltaToolDone, Index: index}); err != nil {
		return err
	}
	call := &llm.ToolCall{ProviderID: c.providerID, Name: c.tool}
	raw := c.sent(len(c.text))
	if call.Arguments, call.ArgumentsError = decodeArguments(raw); call.ArgumentsError != "" {
		call.RawArguments = raw
	}
	m.Parts = append(m.Parts, llm.Part{Type: llm.PartToolCall, ToolCall: call})
	return nil
}

// stream sends text in pieces and returns how many bytes of it were sent.
func (p *player) stream(ctx context.Context, kind llm.DeltaKind, index int, text []byte) (int, error) {
	sent := 0
	for sent < len(text) {
		size := pieceOf(text[sent:], p.response.chunk)
		if err := p.send(ctx, llm.Delta{Kind: kind, Index: index, Text: text[sent : sent+size]}); err != nil {
			return sent, err
		}
		sent += size
		p.bytes += size
	}
	return sent, nil
}

// pieceOf returns the size of the first piece of text: at most chunk bytes, but at least one whole rune.
func pieceOf(text []byte, chunk int) int {
	if chunk == 0 || chunk >= len(text) {
		return len(text)
	}
	size := chunk
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	if size == 0 {
		_, size = utf8.DecodeRune(text)
	}
	return size
}

// send gives one delta to the sink, after the pause that the script wants.
func (p *player) send(ctx context.Context, d llm.Delta) error {
	if f := p.response.failure; f != nil && p.sent >= f.after {
		return errFail
	}
	if p.sent > 0 && p.response.pace > 0 {
		if err := p.wait(ctx, p.response.pace); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	p.sent++
	if err := p.sink(d); err != nil {
		return fmt.Errorf("model request ended: %w", err)
	}
	return nil
}

// wait sleeps unless ctx ends.
func (p *player) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	select {
	case <-p.timer.C:
		return nil
	case <-ctx.Done():
		p.timer.Stop()
		return ended(ctx)
	}
}
