package compaction

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
)

// maxBody bounds, in code points, a tool result and the arguments of a call in the record.
const maxBody = 2000

// entry is one line of the record: an element and what it holds.
type entry struct{ name, attributes, body string }

// place is a place in the record: an entry, and how many bytes of its body are behind.
type place struct{ entry, offset int }

// appendEntries adds a message to the record. Thinking is left out, and so are images but for a word about them.
func appendEntries(record []entry, m llm.Message) []entry {
	for _, part := range m.Parts {
		switch part.Type {
		case llm.PartText:
			if part.Text != "" {
				record = append(record, entry{"message", attribute("from", string(m.Role)), inert(part.Text)})
			}
		case llm.PartImage:
			record = append(record, entry{"message", attribute("from", string(m.Role)), imageStub(part).Text})
		case llm.PartToolCall:
			record = append(record, callEntry(part.ToolCall))
		case llm.PartToolResult:
			record = append(record, resultEntry(part.ToolResult))
		}
	}
	return record
}

func callEntry(c *llm.ToolCall) entry {
	arguments := string(c.Arguments)
	if c.ArgumentsError != "" {
		arguments = c.RawArguments
	}
	return entry{"tool-call", attribute("id", c.ID) + attribute("tool", c.Name), inert(cutMiddleRunes(arguments, maxBody))}
}

func resultEntry(r *llm.ToolResult) entry {
	status := "ok"
	if r.IsError {
		status = "failed"
	}
	var texts []string
	for _, inner := range r.Content {
		if inner.Type == llm.PartImage {
			inner = imageStub(inner)
		}
		texts = append(texts, inner.Text)
	}
	body := cutMiddleRunes(strings.Join(texts, "\n"), maxBody)
	return entry{"tool-result", attribute("call", r.CallID) + attribute("tool", r.Name) + attribute("status", status), inert(body)}
}

func attribute(name, value string) string {
	return " " + name + "=" + strings.ReplaceAll(strconv.Quote(cutBytes(value, maxName)), "<", `\u003c`)
}

// write adds the element of e with this piece of its body.
func (e entry) write(b *strings.Builder, piece, more string) {
	fmt.Fprintf(b, "<%s%s%s>\n%s\n</%s>\n", e.name, e.attributes, more, piece, e.name)
}

// frame is how many bytes the element takes around its body, with the mark of a piece.
func (e entry) frame() int { return 2*len(e.name) + len(e.attributes) + 32 }

// chunk returns the record from s.at on in about limit bytes, and where it ends. An entry is divided only if it fills a
// chunk alone.
func (s *Summariser) chunk(limit int) (string, place) {
	var b strings.Builder
	at := s.at
	for at.entry < len(s.record) {
		e := s.record[at.entry]
		rest, more := e.body[at.offset:], ""
		if at.offset > 0 {
			more = ` continued="true"`
		}
		left := limit - b.Len() - e.frame()
		if len(rest) <= left {
			e.write(&b, rest, more)
			at = place{at.entry + 1, 0}
			continue
		}
		if b.Len() > 0 {
			break
		}
		piece := cutBytes(rest, max(left, minChunk/2))
		e.write(&b, piece, more)
		if at.offset += len(piece); at.offset >= len(e.body) {
			at = place{at.entry + 1, 0}
		}
		break
	}
	return b.String(), at
}

// elements are the names of the elements that requests and summaries are made of.
var elements = []string{"task", "summary", "dialog", "message", "tool-call", "tool-result", "tools-used", "files-read", "files-changed"}

// inert writes the "<" of everything that looks like one of elements as an escape, so that no text of a file or a web
// page can close the element that it is shown in, or pass for another.
func inert(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '<')
		if at < 0 {
			break
		}
		b.WriteString(text[:at])
		text = text[at+1:]
		if opensElement(text) {
			b.WriteString(`\u003c`)
		} else {
			b.WriteByte('<')
		}
	}
	if b.Len() == 0 {
		return text
	}
	b.WriteString(text)
	return b.String()
}

// opensElement reports whether text, which follows a "<", begins with the name of an element.
func opensElement(text string) bool {
	text = strings.TrimLeft(text, "/ \t\r\n")
	for _, name := range elements {
		if len(text) >= len(name) && strings.EqualFold(text[:len(name)], name) {
			return true
		}
	}
	return false
}

// cutMiddleRunes returns text with at most limit code points of it: its beginning and its end, with the count of what is
// missing between them.
func cutMiddleRunes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	total := utf8.RuneCountInString(text)
	if total <= limit {
		return text
	}
	tail := limit / 4
	head := runePrefix(text, limit-tail)
	return fmt.Sprintf("%s\n[… %d characters left out …]\n%s", text[:head], total-limit, text[runePrefix(text, total-tail):])
}

// runePrefix returns how many bytes the first n code points of text take.
func runePrefix(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
