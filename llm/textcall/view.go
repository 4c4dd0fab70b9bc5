package textcall

import (
	"bytes"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// view passes the deltas of a reply on and holds back what may be a call.
type view struct {
	sink    llm.Sink
	scanner *scanner
	// sent counts the bytes of the text, without thinking, that were passed on.
	sent int
	// open says that nothing is held back any more: the API delivers calls itself, or the text is too long to be read.
	open, long bool

	stage viewStage
	// head is text that is not passed on yet, from before the scanner.
	head []byte
	tag  [2]string
}

// viewStage is where in the reply the text is.
type viewStage uint8

const (
	atStart    viewStage = iota // the reply may begin with thinking
	inThinking                  // between the tags
	behindTag                   // line ends behind the closing tag
	inText
)

// delta implements llm.Sink.
func (v *view) delta(d llm.Delta) error {
	switch d.Kind {
	case llm.DeltaText:
		if v.open {
			return v.sink(d)
		}
		return v.text(d.Text)
	case llm.DeltaThinking:
		return v.sink(d)
	}
	if err := v.release(); err != nil {
		return err
	}
	return v.sink(d)
}

// text takes a piece of the text.
func (v *view) text(piece []byte) error {
	if v.stage == inText {
		return v.scan(piece)
	}
	v.head = append(v.head, piece...)
	if v.stage == atStart && !v.begin() {
		return v.progress()
	}
	if v.stage == inThinking {
		if err := v.think(); err != nil || v.stage == inThinking {
			return err
		}
	}
	if v.stage == behindTag {
		if v.head = bytes.TrimLeft(v.head, "\r\n"); len(v.head) == 0 {
			return v.progress()
		}
		v.stage = inText
	}
	head := v.head
	v.head = nil
	return v.scan(head)
}

// begin decides whether the reply begins with thinking, and returns false if that takes more text.
func (v *view) begin() bool {
	body := bytes.TrimLeft(v.head, blanks)
	for _, tag := range thinkTags {
		if bytes.HasPrefix(body, []byte(tag[0])) {
			v.stage, v.tag, v.head = inThinking, tag, body[len(tag[0]):]
			return true
		}
		if strings.HasPrefix(tag[0], string(body)) {
			return false
		}
	}
	v.stage = inText
	return true
}

// think passes thinking on, up to what may be the closing tag.
func (v *view) think() error {
	before, after, closed := bytes.Cut(v.head, []byte(v.tag[1]))
	rest := after
	if closed {
		v.stage = behindTag
	} else {
		keep := len(v.head)
		for n := min(len(v.tag[1])-1, len(v.head)); n > 0; n-- {
			if strings.HasPrefix(v.tag[1], string(v.head[len(v.head)-n:])) {
				keep = len(v.head) - n
				break
			}
		}
		before, rest = v.head[:keep], v.head[keep:]
	}
	v.head = bytes.Clone(rest)
	if len(before) == 0 {
		return v.progress()
	}
	return v.sink(llm.Delta{Kind: llm.DeltaThinking, Text: before})
}

// scan passes on as much of the text as may be shown.
func (v *view) scan(piece []byte) error {
	shown := v.scanner.add(piece)
	if len(v.scanner.text) > maxText {
		v.long = true
		return v.release()
	}
	if shown <= v.sent {
		return v.progress()
	}
	text := v.scanner.text[v.sent:shown]
	v.sent = shown
	return v.sink(llm.Delta{Kind: llm.DeltaText, Text: text})
}

// progress tells the sink that the model goes on, although there is nothing to see.
func (v *view) progress() error { return v.sink(llm.Delta{Kind: llm.DeltaText}) }

// held returns what was not passed on, and whether it is thinking.
func (v *view) held() (text []byte, thinking bool) {
	return append(bytes.Clone(v.scanner.text[v.sent:]), v.head...), v.stage == inThinking
}

// release passes everything on and holds nothing back any more.
func (v *view) release() error {
	if v.open {
		return nil
	}
	v.open = true
	text, thinking := v.held()
	if len(text) == 0 {
		return nil
	}
	kind := llm.DeltaText
	if thinking {
		kind = llm.DeltaThinking
	}
	return v.sink(llm.Delta{Kind: kind, Text: text})
}

// abandon reports what was held back of a response that broke, as arguments: it was received, and must not be shown. The
// sink's opinion of it does not matter any more.
func (v *view) abandon() {
	if text, _ := v.held(); len(text) > 0 && !v.open {
		_ = v.sink(llm.Delta{Kind: llm.DeltaToolArguments, Text: text})
	}
}

// finish passes on the rest of the text and the calls of the message.
func (v *view) finish(rest string, m llm.Message) error {
	if v.stage == inThinking && len(v.head) > 0 {
		if err := v.sink(llm.Delta{Kind: llm.DeltaThinking, Text: v.head}); err != nil {
			return err
		}
	}
	if rest != "" {
		if err := v.sink(llm.Delta{Kind: llm.DeltaText, Text: []byte(rest)}); err != nil {
			return err
		}
	}
	for i, call := range m.ToolCalls() {
		arguments := string(call.Arguments)
		if call.ArgumentsError != "" {
			arguments = call.RawArguments
		}
		for _, d := range []llm.Delta{{Kind: llm.DeltaToolName, Text: []byte(call.Name)},
			{Kind: llm.DeltaToolArguments, Text: []byte(arguments)}, {Kind: llm.DeltaToolDone}} {
			d.Index = i
			if err := v.sink(d); err != nil {
				return err
			}
		}
	}
	return nil
}
