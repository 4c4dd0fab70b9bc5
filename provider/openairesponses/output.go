package openairesponses

import (
	"bytes"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// enter makes at the place to which text is added.
func (d *decoder) enter(at place) error {
	if d.open == at && d.heard[at] {
		return nil
	}
	d.heard[at] = true
	before := d.open
	d.open = at
	if before.kind == llm.PartThinking && at.kind == llm.PartThinking && before.item == at.item {
		// The parts of one summary are one text.
		return d.assembly.Thinking("", []byte(`\n\n`))
	}
	if err := d.assembly.EndPart(); err != nil {
		return err
	}
	return d.assembly.Grow(placeCost)
}

// placeCost is what a place is counted as, so that many empty ones are bounded too.
const placeCost = 128

// item returns what is known of the item at an index of the output.
func (d *decoder) item(index int64) *output {
	o := d.items[index]
	if o == nil {
		o = &output{}
		d.items[index] = o
	}
	return o
}

func (d *decoder) say(at place, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	if err := d.enter(at); err != nil {
		return err
	}
	return d.assembly.Text(raw)
}

// settleText takes the text of a place in full, which replaces what was streamed.
func (d *decoder) settleText(at place, raw []byte) error {
	if len(raw) == 0 || d.heard[at] && d.open != at {
		return nil
	}
	if err := d.enter(at); err != nil {
		return err
	}
	return d.assembly.SettleText(raw)
}

// think adds thinking that came in events of the source.
func (d *decoder) think(source string, at place, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	o := d.item(at.item)
	if o.source == "" {
		o.source = source
	}
	if o.source != source || o.hasSeal {
		return nil
	}
	if err := d.enter(at); err != nil {
		return err
	}
	return d.assembly.Thinking("", raw)
}

// settleThinking takes thinking in full unless it was streamed. What the model gets back is the item, not this text.
func (d *decoder) settleThinking(source string, at place, raw []byte) error {
	if d.heard[at] {
		return nil
	}
	return d.think(source, at, raw)
}

func (d *decoder) refuse(raw []byte) error {
	d.refusal.WriteString(wire.Unquote(raw))
	return d.assembly.Grow(len(raw))
}

func (d *decoder) settleRefusal(raw []byte) error {
	if d.refusal.Len() > 0 {
		return nil
	}
	return d.refuse(raw)
}

// call returns the call at an index of the output and begins it if it is new.
func (d *decoder) call(index int64) (*wire.Call, error) {
	o := d.item(index)
	if o.call != nil {
		return o.call, nil
	}
	c, err := d.assembly.OpenCall(index)
	o.call, d.open = c, place{}
	return c, err
}

func (d *decoder) argue(index int64, raw []byte) error {
	c, err := d.call(index)
	if err != nil {
		return err
	}
	return d.assembly.CallArguments(c, raw)
}

func (d *decoder) settleCall(index int64, raw []byte) error {
	c, err := d.call(index)
	if err != nil {
		return err
	}
	return d.assembly.SettleArguments(c, raw)
}

// takeItem takes an item of the output as it begins or, if it is whole, as it is in the end. What has come before is
// completed and not said again.
func (d *decoder) takeItem(index int64, raw []byte, whole bool) error {
	var i item
	d.lexer.Reset(raw)
	i.read(&d.lexer)
	switch string(i.kind) {
	case itemMessage:
		if whole {
			return d.takeMessage(index, &i)
		}
	case itemReasoning:
		if whole {
			return d.takeReasoning(index, &i, raw)
		}
	case itemCall:
		return d.takeCall(index, &i, whole)
	}
	return nil
}

func (d *decoder) takeMessage(index int64, i *item) error {
	err := eachPart(i.content, func(n int64, p textPart) error {
		if len(p.refusal) > 0 {
			return d.settleRefusal(p.refusal)
		}
		return d.settleText(place{llm.PartText, index, n}, p.text)
	})
	if err != nil || d.open.kind != llm.PartText || d.open.item != index || !isWord(string(i.stage)) {
		return err
	}
	return d.assembly.SealText(i.stage)
}

// isWord reports whether a text is a plain word, which needs no quoting anywhere.
func isWord(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// takeReasoning keeps the item as it came. Some servers leave the encrypted part out until the response is complete.
func (d *decoder) takeReasoning(index int64, i *item, raw []byte) error {
	o := d.item(index)
	if o.hasSeal {
		if o.encrypted || len(i.encrypted) == 0 {
			return nil
		}
		o.encrypted = true
		return d.assembly.Reseal(o.sealed, raw)
	}
	for _, from := range []struct {
		source string
		parts  []byte
	}{{sourceSummary, i.summary}, {sourceText, i.content}} {
		err := eachPart(from.parts, func(n int64, p textPart) error {
			return d.settleThinking(from.source, place{llm.PartThinking, index, n}, p.text)
		})
		if err != nil {
			return err
		}
	}
	if d.open.kind != llm.PartThinking || d.open.item != index {
		if err := d.assembly.EndPart(); err != nil {
			return err
		}
	}
	o.hasSeal, o.encrypted, d.open = true, len(i.encrypted) > 0, place{}
	var err error
	o.sealed, err = d.assembly.Seal(raw)
	return err
}

// takeCall takes a call. Its id holds both ids that the API gives it; see splitID.
func (d *decoder) takeCall(index int64, i *item, whole bool) error {
	c, err := d.call(index)
	if err != nil {
		return err
	}
	id := bytes.Clone(i.callID)
	if len(i.id) > 0 {
		id = append(append(id, '|'), i.id...)
	}
	if err := d.assembly.CallID(c, id); err != nil {
		return err
	}
	if err := d.assembly.CallName(c, i.name); err != nil {
		return err
	}
	if !whole {
		return d.assembly.CallArguments(c, i.arguments)
	}
	if err := d.assembly.SettleArguments(c, i.arguments); err != nil || !i.complete() {
		return err
	}
	d.item(index).done = true
	if c.Started() && !c.Whole() {
		// A response that was cut at its output limit may call such an item complete.
		return nil
	}
	return d.assembly.EndCall(c)
}

// eachPart calls f for each part of a list with its place in it.
func eachPart(parts []byte, f func(int64, textPart) error) error {
	if len(parts) == 0 {
		return nil
	}
	var l wire.Lexer
	l.Reset(parts)
	l.Array()
	for n := int64(0); l.Elem(); n++ {
		var p textPart
		p.read(&l)
		if err := f(n, p); err != nil {
			return err
		}
	}
	return nil
}
