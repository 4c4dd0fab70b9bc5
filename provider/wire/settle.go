package wire

import (
	"bytes"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// Some APIs repeat at the end of a piece what it holds in full. The full form is what counts: these methods make it that
// of the message, and tell the sink what it has not heard. What the sink has heard cannot be taken back, so where the two
// differ the message alone is right.

// SettleText says what the open text part holds in full; without an open one it begins one.
func (a *Assembly) SettleText(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	if err := a.enter(llm.PartText, ""); err != nil {
		return err
	}
	full := Unquote(raw)
	a.joiner.flush()
	p := &a.parts[a.open]
	if rest, ok := strings.CutPrefix(full, p.text.String()); ok {
		return a.say([]byte(rest))
	}
	a.textSize += len(full) - p.text.Len()
	p.text.Reset()
	p.text.WriteString(full)
	return a.Grow(len(full))
}

// SettleArguments says what the argument text of a call is in full.
func (a *Assembly) SettleArguments(c *Call, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	full := []byte(Unquote(raw))
	c.joiner.flush()
	if rest, ok := bytes.CutPrefix(full, c.arguments); ok {
		return a.argue(c, rest)
	}
	c.arguments = full
	if c.told > 0 {
		c.told = len(full)
	}
	if err := a.Grow(len(full)); err != nil {
		return err
	}
	return a.tell(c)
}

// Seal ends the open thinking part with its proof, which is kept as it is. Where no thinking is open, the proof is a
// part of its own: the provider keeps the text to itself. The result names the part for Reseal.
func (a *Assembly) Seal(proof []byte) (int, error) {
	sealed := a.open
	if sealed >= 0 && a.parts[sealed].kind != llm.PartThinking {
		sealed = -1
	}
	if err := a.EndPart(); err != nil {
		return 0, err
	}
	if sealed < 0 {
		sealed = len(a.parts)
		a.parts = append(a.parts, part{kind: llm.PartThinking, redacted: true})
	}
	return sealed, a.Reseal(sealed, proof)
}

// SealText sets what the provider said about the open text part, if there is one.
func (a *Assembly) SealText(note []byte) error {
	if a.open < 0 || a.parts[a.open].kind != llm.PartText {
		return nil
	}
	return a.Reseal(a.open, note)
}

// Reseal replaces the proof of a part that Seal has named.
func (a *Assembly) Reseal(sealed int, proof []byte) error {
	a.parts[sealed].signature = bytes.ToValidUTF8(proof, []byte("\uFFFD"))
	return a.Grow(len(proof) + partCost)
}
