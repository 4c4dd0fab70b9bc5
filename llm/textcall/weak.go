package textcall

import "strings"

// The forms without a mark count in few places only: as the whole message, or at its very end.

// whole reads a message that is nothing but calls.
func (p *parser) whole(start int) (find, bool) {
	at := p.skip(start)
	end := len(trimEnd(p.text))
	if at >= end {
		return find{}, false
	}
	switch c := p.text[at]; {
	case c == '[' && p.pythonList(at):
		f, ok := p.python(find{at: at}, at+1, ']', Pythonic)
		return f, ok && f.end >= end && p.plausible(f)
	case c == '{' || c == '[':
		return p.sequence(at, end, true)
	case nameByte(c):
		return p.nameAndObject(at, end)
	}
	return find{}, false
}

// pythonList reports whether a bracket is followed by a name and a parenthesis.
func (p *parser) pythonList(at int) bool {
	r := reader{text: p.text, pos: p.skip(at + 1), work: p.work}
	return r.dotted() != "" && p.next(r.pos) == '('
}

// plausible reports whether Python calls are calls of tools rather than some other text in brackets.
func (p *parser) plausible(f find) bool {
	for _, w := range f.wishes {
		if w.unnamed != nil && p.offer.find(w.name) == nil {
			return false
		}
	}
	return true
}

// sequence reads JSON values up to end. Commas, semicolons and line ends stand between them, and brackets that close
// nothing may follow.
func (p *parser) sequence(at, end int, bare bool) (find, bool) {
	f := find{at: at}
	for next := at; ; {
		v, to, repaired, err := p.json(next)
		if err != nil || to > end && strings.TrimSpace(p.text[end:to]) != "" {
			return f, false
		}
		to = min(to, end)
		s, ok := p.shapeOf(v, bareJSON, true, bare && next == at)
		if !ok || s.answers && len(f.wishes) > 0 {
			return f, false
		}
		if s.format == QwenCoderJSON && v.kind == kindArray {
			s.format = XLAM
		}
		for i := range s.wishes {
			s.wishes[i].from, s.wishes[i].to = next, to
		}
		s.wishes = append(f.wishes, s.wishes...)
		f.shape, f.end, f.repaired = s, to, f.repaired || repaired
		rest := strings.TrimLeft(p.text[to:end], blanks+",;")
		if rest == "" {
			return f, true
		}
		if junk := strings.Trim(rest, blanks+"}]"); junk == "" {
			f.end, f.repaired = end, true
			return f, true
		}
		if next = end - len(rest); p.text[next] != '{' {
			return f, false
		}
	}
}

// nameAndObject reads NAME and, on the next line, its arguments: Functionary's prompt ends before the name.
func (p *parser) nameAndObject(at, end int) (find, bool) {
	line := p.text[at:p.first(at, "\n")]
	if p.offer.exact[line] == nil {
		return find{}, false
	}
	f, ok := p.functionary(at, at)
	return f, ok && f.end >= end
}

// fenced reads a code fence after which nothing follows. A fence that does not end reaches to the end of the text.
func (p *parser) fenced(start int) (find, bool) {
	end := len(trimEnd(p.text))
	if end <= start {
		return find{}, false
	}
	c := newSurroundings(p.text[:end], start)
	c.advance(end, p.work)
	if c.fence < 0 {
		return find{}, false
	}
	if last := p.text[c.line:end]; isFence(last) && c.line >= c.body {
		end = c.line
	} else {
		end = len(strings.TrimRight(p.text[:end], "`~"))
	}
	end = len(strings.TrimRight(p.text[:end], blanks))
	body := p.skip(c.body)
	if body >= end || p.text[body] != '{' && p.text[body] != '[' {
		return find{}, false
	}
	f, ok := p.sequence(body, end, false)
	if !ok || f.answers {
		return find{}, false
	}
	f.at = c.fence
	return f, true
}

// inline reads an object amid prose that is the last thing of the message, in strict JSON: what would have to be
// repaired is more likely to be something else.
func (p *parser) inline(start int) (find, bool) {
	end := len(trimEnd(p.text))
	if end <= start || p.text[end-1] != '}' {
		return find{}, false
	}
	c := newSurroundings(p.text, start)
	for at := start; at < end && !p.work.empty(); {
		if at = p.first(at, "{"); at >= end {
			return find{}, false
		}
		to := at + 1
		if p.next(p.skip(to)) == '"' {
			to = p.balanced(at)
		}
		if to != end {
			at = to
			continue
		}
		v, to, repaired, err := p.json(at)
		if err != nil || repaired || to != end {
			return find{}, false
		}
		s, ok := p.shapeOf(v, bareJSON, true, false)
		if !ok || s.answers {
			return find{}, false
		}
		f := find{at: at, end: end, shape: s}
		if f.at, ok = c.begin(f, p.work); !ok || f.at != at {
			p.refuse(Result{Refused: Quoted, Format: s.format})
			return find{}, false
		}
		return f, true
	}
	return find{}, false
}

// balanced returns the end of the object at a place, going by its brackets only.
func (p *parser) balanced(at int) int {
	s := scanner{state: object}
	for i := at; i < len(p.text); i++ {
		if s.settleObject(p.text[i], false); s.state == afterObject {
			p.work.spend(i - at)
			return i + 1
		}
	}
	p.work.spend(len(p.text) - at)
	return len(p.text) + 1
}

const (
	reactAction = "Action:"
	reactInput  = "Action Input:"
)

// react reads Action and Action Input, up to the observation that some models invent.
func (p *parser) react(start int) (find, bool) {
	c := newSurroundings(p.text, start)
	for at := start; at < len(p.text) && !p.work.empty(); {
		line := p.first(at, "\n")
		name, ok := strings.CutPrefix(strings.TrimSpace(p.text[at:line]), reactAction)
		input := line
		if ok {
			input = p.over(line, reactInput)
		}
		if input == line {
			at = line + 1
			continue
		}
		f := find{at: at + indent(p.text[at:line]), end: input}
		name = strings.Trim(strings.TrimSpace(name), "`*\"'")
		body := p.skip(input)
		if p.next(body) != '{' || name == "" || !p.object(&f, name, body, ReAct, "\nObservation:") {
			return find{}, false
		}
		rest := strings.TrimSpace(trimEnd(p.text[f.end:]))
		if rest != "" && !strings.HasPrefix(rest, "Observation:") {
			return find{}, false
		}
		_, ok = c.begin(f, p.work)
		return f, ok
	}
	return find{}, false
}
