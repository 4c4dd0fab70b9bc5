package wire

import "github.com/hozo-run/hozo/llm"

// Signed adds a text or thinking part together with the proof that came with it. APIs that prove single parts want each
// of them back as it was, so it is joined neither with the piece before it nor with the one after. The text may be empty.
func (a *Assembly) Signed(kind llm.PartType, raw, signature []byte) error {
	if err := a.EndPart(); err != nil {
		return err
	}
	if err := a.enter(kind, ""); err != nil {
		return err
	}
	if kind == llm.PartText && len(raw) > 0 {
		a.texts++
	}
	if err := a.say(a.joiner.join(unquote(raw, &a.scratch))); err != nil {
		return err
	}
	a.parts[a.open].signature = []byte(Unquote(signature))
	if err := a.Grow(len(signature)); err != nil {
		return err
	}
	return a.EndPart()
}

// CallSignature sets the proof of a call that has none yet.
func (a *Assembly) CallSignature(c *Call, raw []byte) error {
	if c.signature != "" || len(raw) == 0 {
		return nil
	}
	c.signature = Unquote(raw)
	return a.Grow(len(raw))
}
