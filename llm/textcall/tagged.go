package textcall

import "strings"

// The readers of the forms that stand between tags. Each gets where its mark begins and ends and returns what it found,
// or false if there is no call after all.

// skip returns the next place that holds no blank.
func (p *parser) skip(at int) int {
	from := at
	for at < len(p.text) && strings.IndexByte(blanks, p.text[at]) >= 0 {
		at++
	}
	p.work.spend(at - from)
	return at
}

// next returns the byte at a place, 0 at the end.
func (p *parser) next(at int) byte {
	if at < len(p.text) {
		return p.text[at]
	}
	return 0
}

func (p *parser) has(at int, text string) bool { return strings.HasPrefix(p.text[at:], text) }

// over moves over blanks and the text if it stands there; otherwise it stays.
func (p *parser) over(at int, text string) int {
	if next := p.skip(at); p.has(next, text) {
		return next + len(text)
	}
	return at
}

// first returns where the first of the texts stands from at on, the end if none does.
func (p *parser) first(at int, texts ...string) int {
	end := len(p.text)
	for _, text := range texts {
		n := strings.Index(p.text[at:end], text)
		if n < 0 {
			p.work.spend(end - at)
			continue
		}
		p.work.spend(n)
		end = at + n
	}
	return end
}

// json reads a value and returns its end.
func (p *parser) json(at int) (v value, end int, repaired bool, err error) {
	r := reader{text: p.text, pos: at, work: p.work}
	v, err = r.value()
	return v, r.pos, r.repaired, err
}

// add reads a value as calls and appends them. Broken text in which a name can be read is a call with an error; stop is
// where it ends at the latest.
func (p *parser) add(f *find, at int, format Format, stop ...string) bool {
	v, end, repaired, err := p.json(at)
	if err != nil {
		end = p.first(at, stop...)
		w, ok := p.broken(at, end, err)
		if ok {
			f.wishes, f.end, f.format = append(f.wishes, w), end, format
		}
		return ok
	}
	s, ok := p.shapeOf(v, format, false, false)
	if !ok {
		return false
	}
	for i := range s.wishes {
		s.wishes[i].from, s.wishes[i].to = at, end
	}
	s.wishes = append(f.wishes, s.wishes...)
	f.shape, f.end = s, end
	f.format = format
	f.repaired = f.repaired || repaired
	return true
}

// broken returns a call whose JSON cannot be read but whose name can.
func (p *parser) broken(from, to int, err error) (wish, bool) {
	w := wish{err: err, given: true, source: p.text[from:to], from: from, to: to}
	_, after, ok := strings.Cut(w.source, `"name"`)
	if !ok {
		return w, false
	}
	r := reader{text: after, work: p.work}
	if r.peek() != ':' {
		return w, false
	}
	r.pos++
	name, err := r.value()
	w.name = name.text
	return w, err == nil && name.kind == kindString && w.name != ""
}

// object reads the arguments of a call whose name is known.
func (p *parser) object(f *find, name string, at int, format Format, stop ...string) bool {
	if name == "" {
		return false
	}
	w := wish{name: name, given: true, from: max(f.at, f.end)}
	v, end, repaired, err := p.json(at)
	if err != nil {
		end = p.first(at, stop...)
	}
	w.args, w.err, w.source, w.to = v, err, p.text[at:end], end
	f.wishes, f.end, f.format = append(f.wishes, w), end, format
	f.repaired = f.repaired || repaired && err == nil
	return true
}

// toolCallTag reads <tool_call>: what follows tells whose it is.
func (p *parser) toolCallTag(at, after int) (find, bool) {
	f := find{at: at, end: at}
	for {
		body := p.skip(after)
		ok := false
		switch c := p.next(body); {
		case c == '{' || c == '[':
			ok = p.add(&f, body, Hermes, "</tool_call>")
		case p.has(body, "<function="):
			ok = p.xmlCall(&f, body)
		case nameByte(c):
			ok = p.glmCall(&f, body)
		}
		if !ok {
			return f, len(f.wishes) > 0
		}
		f.end = p.over(f.end, "</tool_call>")
		if after = p.over(f.end, "<tool_call>"); after == f.end {
			return f, true
		}
	}
}

// xmlCall reads <function=NAME> with parameters. Closing tags may be missing.
func (p *parser) xmlCall(f *find, at int) bool {
	from := at + len("<function=")
	nameEnd := from
	for nameEnd < len(p.text) && nameByte(p.text[nameEnd]) {
		nameEnd++
	}
	if nameEnd == from {
		return false
	}
	w := wish{name: p.text[from:nameEnd], args: emptyObject(), texts: true, from: at}
	at = p.over(nameEnd, ">")
	for {
		begin := p.over(at, "<parameter=")
		if begin == at {
			break
		}
		keyEnd := p.first(begin, ">")
		valueEnd := p.valueEnd(keyEnd)
		text := p.text[min(keyEnd+1, valueEnd):valueEnd]
		if n := strings.LastIndex(text, "</parameter>"); n >= 0 {
			text = text[:n]
		}
		w.given = true
		w.args.set(strings.TrimSpace(p.text[begin:keyEnd]), stringValue(oneLine(text)))
		at = valueEnd
	}
	end := p.over(at, "</function>")
	f.repaired = f.repaired || end == at
	w.to = end
	f.wishes, f.end, f.format = append(f.wishes, w), end, Qwen3XML
	return true
}

// valueEnd returns where a parameter's text and its closing tag end.
func (p *parser) valueEnd(at int) int {
	end := p.first(at, "<parameter=", "</function>", "<function=")
	if end < len(p.text) && !p.has(end, "<function=") {
		return end
	}
	if n := strings.Index(p.text[at:end], "</tool_call>"); n >= 0 {
		return at + n
	}
	return end
}

// oneLine returns a text without the line end on each side that the form adds.
func oneLine(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n")
}

// glmCall reads a name and pairs of <arg_key> and <arg_value>.
func (p *parser) glmCall(f *find, at int) bool {
	r := reader{text: p.text, pos: at, work: p.work}
	w := wish{name: r.dotted(), args: emptyObject(), texts: true, from: at}
	at = r.pos
	for {
		key := p.over(at, "<arg_key>")
		if key == at {
			break
		}
		keyEnd := p.first(key, "</arg_key>", "<arg_value>")
		begin := p.over(p.over(keyEnd, "</arg_key>"), "<arg_value>")
		end := p.first(begin, "</arg_value>", "<arg_key>", "</tool_call>")
		w.given = true
		w.args.set(strings.TrimSpace(p.text[key:keyEnd]), stringValue(p.text[begin:end]))
		at = p.over(end, "</arg_value>")
		f.repaired = f.repaired || at == end
	}
	if !w.given && !p.has(p.skip(at), "</tool_call>") {
		return false
	}
	w.to = at
	f.wishes, f.end, f.format = append(f.wishes, w), at, GLM45
	return true
}

// toolsTag reads <tools> around JSON. Models that were shown their tools in this tag sometimes only repeat them.
func (p *parser) toolsTag(at, after int) (find, bool) {
	f := find{at: at}
	return p.list(f, after, QwenCoderJSON, "</tools>")
}

// list reads JSON values up to a closing tag.
func (p *parser) list(f find, at int, format Format, closing string) (find, bool) {
	for {
		at = p.skip(at)
		if c := p.next(at); c != '{' && c != '[' {
			f.end = p.over(f.end, closing)
			return f, len(f.wishes) > 0
		}
		if !p.add(&f, at, format, closing) {
			return f, len(f.wishes) > 0
		}
		at = f.end
		for next := p.skip(at); p.next(next) == ',' || p.next(next) == ';'; next = p.skip(at) {
			at = next + 1
		}
	}
}

// functionTag reads <function=NAME> with JSON or with parameters.
func (p *parser) functionTag(at, after int) (find, bool) {
	f := find{at: at, end: at}
	for {
		nameEnd := after
		for nameEnd < len(p.text) && nameByte(p.text[nameEnd]) {
			nameEnd++
		}
		body := p.skip(p.over(nameEnd, ">"))
		ok := nameEnd > after
		switch {
		case ok && p.next(body) == '{':
			ok = p.object(&f, p.text[after:nameEnd], body, FunctionTag, "</function>")
		case ok && (p.has(body, "<parameter=") || p.has(body, "</function>")):
			ok = p.xmlCall(&f, after-len("<function="))
		default:
			ok = false
		}
		if !ok {
			return f, len(f.wishes) > 0
		}
		f.end = p.over(p.over(f.end, "</function>"), "</tool_call>")
		if after = p.over(p.over(f.end, "<tool_call>"), "<function="); after == f.end {
			return f, true
		}
	}
}

func (p *parser) jamba(at, after int) (find, bool) {
	return p.list(find{at: at}, after, Jamba, "</tool_calls>")
}

func (p *parser) granite(at, after int) (find, bool) {
	return p.list(find{at: at}, after, Granite, "<|/tool_call|>")
}

func (p *parser) commandR(at, after int) (find, bool) {
	return p.list(find{at: at}, after, CommandR, "<|END_ACTION|>")
}

func (p *parser) fireFunction(at, after int) (find, bool) {
	f := find{at: at}
	ok := p.add(&f, after-1, FireFunction)
	return f, ok && len(f.wishes) > 0
}

func (p *parser) gigaChat(at, after int) (find, bool) {
	f := find{at: at}
	ok := p.next(p.skip(after)) == '{' && p.add(&f, p.skip(after), GigaChat)
	return f, ok
}
