package wire

import "bytes"

// Template recognises events that differ from an earlier one in a single string. Most of a stream is such events: the
// same envelope around one new piece of text. An event matches if it has the template's bytes before the string, a valid
// string, and the template's bytes after it; decoding it in full could then only find the same values again, so the
// adapter takes the string and skips the rest. Three kinds of change after the string are understood: white space between
// closing brackets, and the value of a last member named "obfuscation" or "p", because providers pad with them; and the
// number after them in a member named "sequence_number", by which a provider counts its events.
type Template struct {
	prefix, suffix []byte
	// closing says that suffix is closing brackets and white space only.
	closing bool
	// hole is the position in suffix of a padding value, 0 if there is none.
	hole int
	// count is the position in suffix of a counted number, 0 if there is none.
	count int
}

var counter = []byte(`"sequence_number":`)

// paddings are how the members begin that providers pad with.
func paddings() [2][]byte { return [...][]byte{[]byte(`,"obfuscation":"`), []byte(`,"p":"`)} }

// Learn makes the event data, whose string lies at [from, to) between its quotes, the template.
func (t *Template) Learn(data []byte, from, to int) {
	t.prefix = append(t.prefix[:0], data[:from]...)
	t.suffix = append(t.suffix[:0], data[to:]...)
	t.closing = onlyClosing(t.suffix[1:])
	t.hole, t.count = 0, 0
	t.learnPadding()
	if at := bytes.Index(t.suffix, counter); at > t.hole {
		at += len(counter)
		if n := digits(t.suffix[at:]); n > 0 {
			t.count = at
			t.suffix = append(t.suffix[:at], t.suffix[at+n:]...)
		}
	}
}

func (t *Template) learnPadding() {
	for _, padding := range paddings() {
		at := bytes.Index(t.suffix, padding)
		if at < 0 {
			continue
		}
		if end, fault := stringEnd(t.suffix, at+len(padding)); fault == "" {
			t.hole = at + len(padding)
			t.suffix = append(t.suffix[:t.hole], t.suffix[end:]...)
		}
		return
	}
}

// Match returns the string of data, escaped, if data is an event like the one learned.
func (t *Template) Match(data []byte) ([]byte, bool) {
	if len(t.prefix) == 0 || !bytes.HasPrefix(data, t.prefix) {
		return nil, false
	}
	from := len(t.prefix)
	to, fault := stringEnd(data, from)
	if fault != "" || !t.matchSuffix(data[to:]) {
		return nil, false
	}
	return data[from:to:to], true
}

func (t *Template) matchSuffix(rest []byte) bool {
	suffix := t.suffix
	if t.hole > 0 {
		if !bytes.HasPrefix(rest, suffix[:t.hole]) {
			return false
		}
		end, fault := stringEnd(rest, t.hole)
		if fault != "" {
			return false
		}
		rest, suffix = rest[end:], suffix[t.hole:]
	}
	if t.count > 0 {
		at := t.count - t.hole
		if !bytes.HasPrefix(rest, suffix[:at]) {
			return false
		}
		n := digits(rest[at:])
		if n == 0 {
			return false
		}
		rest, suffix = rest[at+n:], suffix[at:]
	}
	if bytes.Equal(rest, suffix) {
		return true
	}
	return t.closing && equalClosing(rest[1:], suffix[1:])
}

// digits returns the length of the whole number at the beginning of text, 0 if there is none that JSON allows.
func digits(text []byte) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	if n > 1 && text[0] == '0' {
		return 0
	}
	return n
}

func onlyClosing(text []byte) bool {
	for _, c := range text {
		if c != '}' && c != ']' && !isSpace(c) {
			return false
		}
	}
	return true
}

// equalClosing compares two runs of closing brackets without their white space.
func equalClosing(a, b []byte) bool {
	i, j := 0, 0
	for {
		for i < len(a) && isSpace(a[i]) {
			i++
		}
		for j < len(b) && isSpace(b[j]) {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if a[i] != b[j] {
			return false
		}
		i++
		j++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
