package textcall

import "strings"

// The readers of <invoke name=…> with its parameters, under the tags of those who write it.

// dsmlMarks stand between the bracket and the name of a tag in DeepSeek's form. Either tag of a pair may lack them.
var dsmlMarks = []string{"｜DSML｜", "|DSML|"}

// xmlTag is one tag.
type xmlTag struct {
	name       string
	attributes string
	closing    bool
	dsml       bool
	end        int
}

// tagAt reads the tag behind blanks at a place; its name is "" if there is none.
func (p *parser) tagAt(at int) xmlTag {
	at = p.skip(at)
	if p.next(at) != '<' {
		return xmlTag{}
	}
	t := xmlTag{}
	body := at + 1
	if p.next(body) == '/' {
		t.closing = true
		body++
	}
	for _, m := range dsmlMarks {
		if p.has(body, m) {
			t.dsml = true
			body += len(m)
		}
	}
	nameEnd := body
	for nameEnd < len(p.text) && (nameByte(p.text[nameEnd]) || p.text[nameEnd] == ':') {
		nameEnd++
	}
	end := p.first(nameEnd, ">")
	if end == len(p.text) {
		return xmlTag{}
	}
	t.name, t.attributes, t.end = p.text[body:nameEnd], p.text[nameEnd:end], end+1
	return t
}

// attribute returns the value of an attribute in double quotes.
func (t xmlTag) attribute(name string) string {
	_, after, ok := strings.Cut(t.attributes, name+`="`)
	text, _, closed := strings.Cut(after, `"`)
	if !ok || !closed {
		return ""
	}
	return text
}

func (p *parser) functionCalls(at, after int) (find, bool) {
	if body := p.skip(after); p.next(body) != '<' {
		f, ok := p.python(find{at: at}, body, 0, Olmo3)
		f.end = p.over(f.end, "</function_calls>")
		return f, ok
	}
	return p.invokes(at, after, InvokeXML)
}

func (p *parser) invoke(at, _ int) (find, bool) { return p.invokes(at, at, InvokeXML) }

func (p *parser) miniMax(at, after int) (find, bool) { return p.invokes(at, after, MiniMax) }

func (p *parser) dsml(at, _ int) (find, bool) { return p.invokes(at, at, DeepSeekV32) }

// invokes reads calls until something else follows.
func (p *parser) invokes(at, next int, format Format) (find, bool) {
	f := find{at: at, end: next, shape: shape{format: format}}
	for {
		t := p.tagAt(next)
		if t.dsml {
			f.format = DeepSeekV32
		}
		switch {
		case t.name == "invoke" && !t.closing:
			next = p.invoked(&f, p.skip(next), t)
		case t.name == "function_calls", t.name == "minimax:tool_call":
			next = t.end
		default:
			return f, len(f.wishes) > 0
		}
		f.end = next
	}
}

// invoked reads one call and returns where it ends. A call without a name is left out.
func (p *parser) invoked(f *find, from int, t xmlTag) int {
	w := wish{name: t.attribute("name"), args: emptyObject(), texts: true, from: from}
	at := t.end
	if body := p.skip(at); p.next(body) == '{' {
		v, end, repaired, err := p.json(body)
		if err != nil {
			end = p.first(body, "</")
		}
		w.args, w.err, w.given, w.texts, w.source = v, err, true, false, p.text[body:end]
		f.repaired = f.repaired || repaired && err == nil
		at = end
	}
	for {
		param := p.tagAt(at)
		if param.name != "parameter" || param.closing {
			break
		}
		end := p.first(param.end, "</parameter>", "</"+dsmlMarks[0]+"parameter>", "</"+dsmlMarks[1]+"parameter>")
		if end == len(p.text) {
			end = p.first(param.end, "<parameter ", "</invoke>", "</"+dsmlMarks[0]+"invoke>")
			f.repaired = true
		}
		w.given = true
		w.args.set(param.attribute("name"), p.typed(oneLine(p.text[param.end:end]), param.attribute("string")))
		if at = end; p.tagAt(end).closing && p.tagAt(end).name == "parameter" {
			at = p.tagAt(end).end
		}
	}
	if closing := p.tagAt(at); closing.name == "invoke" && closing.closing {
		at = closing.end
	}
	w.to = at
	if w.name != "" {
		f.wishes = append(f.wishes, w)
	}
	return at
}

// typed reads a parameter that says itself whether it is a string.
func (p *parser) typed(text, isString string) value {
	if isString != "false" {
		return stringValue(text)
	}
	r := reader{text: text, work: p.work}
	v, err := r.value()
	if err != nil || r.peek() != 0 || r.repaired {
		return stringValue(text)
	}
	return v
}

// functionGemma reads call:NAME{key:<escape>text<escape>}, which is no JSON.
func (p *parser) functionGemma(at, after int) (find, bool) {
	f := find{at: at, end: at, shape: shape{format: FunctionGemma}}
	for {
		body := p.over(after, "call:")
		r := reader{text: p.text, pos: body, work: p.work}
		w := wish{name: r.dotted(), given: true, from: body}
		if body == after || w.name == "" || p.next(r.pos) != '{' {
			return f, len(f.wishes) > 0
		}
		g := gemma{p: p, pos: r.pos}
		w.args, w.err = g.value()
		w.to = g.pos
		if w.err != nil {
			w.to = p.first(r.pos, "<end_function_call>")
			w.source = p.text[r.pos:w.to]
		}
		f.wishes = append(f.wishes, w)
		f.end = p.over(w.to, "<end_function_call>")
		if after = p.over(f.end, "<start_function_call>"); after == f.end {
			return f, true
		}
	}
}

// gemma reads the values of FunctionGemma.
type gemma struct {
	p     *parser
	pos   int
	depth int
}

const gemmaQuote = "<escape>"

func (g *gemma) value() (value, error) {
	g.p.work.spend(1)
	if g.depth++; g.depth > maxDepth {
		return value{}, errTooDeep
	}
	defer func() { g.depth-- }()
	g.pos = g.p.skip(g.pos)
	switch g.p.next(g.pos) {
	case '{':
		return g.list('}')
	case '[':
		return g.list(']')
	}
	if g.p.has(g.pos, gemmaQuote) {
		from := g.pos + len(gemmaQuote)
		end := g.p.first(from, gemmaQuote)
		if end == len(g.p.text) {
			return value{}, errNoObject
		}
		g.pos = end + len(gemmaQuote)
		return stringValue(g.p.text[from:end]), nil
	}
	end := g.p.first(g.pos, ",", "}", "]", "<")
	text := strings.TrimSpace(g.p.text[g.pos:end])
	g.pos = end
	r := reader{text: text, work: g.p.work}
	if v, err := r.value(); err == nil && r.pos == len(text) {
		return v, nil
	}
	return stringValue(text), nil
}

// list reads the elements up to the bracket; those of an object have a key before a colon.
func (g *gemma) list(bracket byte) (value, error) {
	v := value{kind: kindArray}
	if bracket == '}' {
		v.kind = kindObject
	}
	g.pos++
	for {
		g.pos = g.p.skip(g.pos)
		switch c := g.p.next(g.pos); {
		case c == bracket:
			g.pos++
			return v, nil
		case c == ',':
			g.pos++
			continue
		case c == 0 || c == '}' || c == ']' || c == '<' && (v.kind == kindObject || !g.p.has(g.pos, gemmaQuote)):
			return value{}, errNoObject
		case g.p.work.empty():
			return value{}, errTooMuch
		}
		key := ""
		if v.kind == kindObject {
			end := g.p.first(g.pos, ":")
			key = strings.TrimSpace(g.p.text[g.pos:end])
			g.pos = min(end+1, len(g.p.text))
		}
		item, err := g.value()
		if err != nil {
			return value{}, err
		}
		v.keys, v.items = append(v.keys, key), append(v.items, item)
	}
}
