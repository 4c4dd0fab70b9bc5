package textcall

import "strings"

// surroundings know where in a document a place of the reply stands, so that an example is not taken for a call. They
// go through the text once: places are asked for in their order.
type surroundings struct {
	text  string
	start int
	// line is where the line begins up to which the fences are known.
	line int
	// fence is where the open code fence begins, -1 if none is open; body is the line below it.
	fence, body int
}

func newSurroundings(text string, start int) *surroundings {
	return &surroundings{text: text, start: start, line: start, fence: -1}
}

// begin returns where the message divides into text and calls, or false if the calls are only shown.
func (c *surroundings) begin(f find, work *meter) (int, bool) {
	c.advance(f.at, work)
	before := c.text[c.line:f.at]
	fence, body := c.fence, c.body
	if fence < 0 && isFence(before) && strings.Count(before, "`")+strings.Count(before, "~") == 3 {
		fence, body = c.line+indent(before), f.at
	}
	switch {
	case fence >= 0:
		whole := strings.TrimSpace(c.text[body:f.at]) == "" && onlyFenceEnd(c.text[f.end:])
		return fence, whole
	case strings.HasPrefix(strings.TrimLeft(before, blanks), ">"),
		strings.Count(before, "`")%2 == 1 && strings.Contains(c.rest(f.end), "`"),
		endsInQuote(before),
		strings.TrimSpace(before) != "" && prose(c.rest(f.end)),
		c.inDocument(f, work):
		return 0, false
	}
	return f.at, true
}

// advance notes the fences of all lines before the one that holds at.
func (c *surroundings) advance(at int, work *meter) {
	for {
		n := strings.IndexByte(c.text[c.line:at], '\n')
		if n < 0 {
			return
		}
		work.spend(n)
		if line := c.text[c.line : c.line+n]; isFence(line) {
			if c.fence < 0 {
				c.fence, c.body = c.line+indent(line), c.line+n+1
			} else {
				c.fence = -1
			}
		}
		c.line += n + 1
	}
}

// rest returns the rest of the line.
func (c *surroundings) rest(from int) string {
	line, _, _ := strings.Cut(c.text[from:], "\n")
	return line
}

// indent returns how many blanks a line begins with.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// isFence reports whether a line begins or ends a code fence.
func isFence(line string) bool {
	line = line[indent(line):]
	return strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")
}

// onlyFenceEnd reports whether a text holds the end of a fence, if anything.
func onlyFenceEnd(text string) bool {
	return strings.TrimSpace(trimEnd(strings.TrimLeft(strings.TrimLeft(text, blanks), "`~"))) == ""
}

// endsInQuote reports whether a quotation opens right at the end of a text.
func endsInQuote(text string) bool {
	for _, quote := range []string{`"`, `'`, "“", "‘", "«"} {
		if strings.HasSuffix(text, quote) {
			return true
		}
	}
	return false
}

// prose reports whether a sentence goes on behind the calls; the tokens that end a message do not count.
func prose(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && !strings.HasPrefix(text, "<")
}

// documentTags enclose what was written by others.
var documentTags = []string{"document", "example", "quote", "blockquote", "file", "context", "tool_response", "source"}

// inDocument reports whether the calls stand between the tags of a quoted document.
func (c *surroundings) inDocument(f find, work *meter) bool {
	if !strings.Contains(c.text[f.end:], "</") {
		return false
	}
	before, after := c.text[c.start:f.at], c.text[f.end:]
	work.spend(len(c.text) - c.start)
	for _, tag := range documentTags {
		open := max(strings.LastIndex(before, "<"+tag+">"), strings.LastIndex(before, "<"+tag+" "))
		if open >= 0 && !strings.Contains(before[open:], "</"+tag+">") && strings.Contains(after, "</"+tag+">") {
			return true
		}
	}
	return false
}

// endTokens end a message in the templates of some models; servers should remove them and do not always.
var endTokens = []string{"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<|call|>", "</s>",
	"<｜end▁of▁sentence｜>", "<end_of_turn>"}

// trimEnd returns a text without blanks and end tokens at its end.
func trimEnd(text string) string {
	for {
		text = strings.TrimRight(text, blanks)
		before := len(text)
		for _, token := range endTokens {
			text = strings.TrimSuffix(text, token)
		}
		if len(text) == before {
			return text
		}
	}
}
