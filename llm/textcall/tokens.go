package textcall

import "strings"

// The readers of the forms that stand between special tokens.

// tokenAt returns the name of the token at a place and its end: <|NAME|>, where the bars may be wide and the
// underscores may be the block of tokenizers, as distilled models mix them. The name is "" if there is no token.
func tokenAt(text string, at int) (name string, end int) {
	body, ok := cutBar(strings.TrimPrefix(text[at:], "<"))
	if !ok || text[at] != '<' {
		return "", at
	}
	const longest = 64
	for i := 0; i < min(len(body), longest); i++ {
		if rest, ok := cutBar(body[i:]); ok {
			if !strings.HasPrefix(rest, ">") {
				return "", at
			}
			return strings.ReplaceAll(body[:i], "▁", "_"), len(text) - len(rest) + 1
		}
	}
	return "", at
}

func cutBar(text string) (string, bool) {
	if rest, ok := strings.CutPrefix(text, "|"); ok {
		return rest, true
	}
	return strings.CutPrefix(text, "｜")
}

// token moves over blanks and the named token if it stands there; otherwise it stays.
func (p *parser) token(at int, name string) int {
	next := p.skip(at)
	if p.next(next) != '<' {
		return at
	}
	if got, end := tokenAt(p.text, next); got == name {
		return end
	}
	return at
}

// findToken returns the next token that has one of the names, with its beginning and end; "" at the end of the text.
func (p *parser) findToken(at int, names ...string) (name string, begin, end int) {
	for {
		begin = p.first(at, "<")
		if begin == len(p.text) {
			return "", begin, begin
		}
		got, end := tokenAt(p.text, begin)
		for _, name := range names {
			if got == name {
				return name, begin, end
			}
		}
		at = begin + 1
	}
}

// mistral reads what follows [TOOL_CALLS]: a list, or names with arguments.
func (p *parser) mistral(at, after int) (find, bool) {
	f := find{at: at, end: at}
	if body := p.skip(after); p.next(body) == '[' || p.next(body) == '{' {
		return p.list(f, after, MistralV1, "[/TOOL_CALLS]")
	}
	for {
		r := reader{text: p.text, pos: p.skip(after), work: p.work}
		name, id, format := r.dotted(), "", MistralV2
		at = r.pos
		if begin := p.over(at, "[CALL_ID]"); begin > at {
			r.pos = begin
			id, format = r.dotted(), MistralV3
			at = r.pos
		}
		body := p.skip(p.over(at, "[ARGS]"))
		if name == "" || p.next(body) != '{' || !p.object(&f, name, body, format, "[TOOL_CALLS]") {
			return f, len(f.wishes) > 0
		}
		if mistralID(id) {
			f.wishes[len(f.wishes)-1].id = id
		}
		if after = p.over(f.end, "[TOOL_CALLS]"); after == f.end {
			return f, true
		}
	}
}

// mistralID reports whether an id is one that these models accept when it is sent back: nine letters and digits.
func mistralID(id string) bool {
	return len(id) == 9 && !strings.ContainsFunc(id, func(c rune) bool { return c >= 0x80 || c == '_' || !wordByte(byte(c)) })
}

// deepSeek reads calls between the tokens of DeepSeek: with a type, a name and a fence, or with a name and an object.
func (p *parser) deepSeek(at, _ int) (find, bool) {
	f := find{at: at, end: at}
	next := p.token(at, "tool_calls_begin")
	for {
		begin := p.token(next, "tool_call_begin")
		if begin == next || !p.deepSeekCall(&f, begin) {
			break
		}
		f.end = p.token(f.end, "tool_call_end")
		next = f.end
	}
	f.end = p.token(f.end, "tool_calls_end")
	return f, len(f.wishes) > 0
}

func (p *parser) deepSeekCall(f *find, at int) bool {
	name, begin, after := p.findToken(at, "tool_sep", "tool_call_end", "tool_calls_end")
	if name != "tool_sep" {
		return false
	}
	format, tool := DeepSeekV31, strings.TrimSpace(p.text[at:begin])
	if tool == "function" {
		line := p.first(after, "\n", "`", "{")
		format, tool, after = DeepSeekV3, strings.TrimSpace(p.text[after:line]), line
	}
	fenced := p.over(after, "```json")
	if fenced == after {
		fenced = p.over(after, "```")
	}
	body := p.skip(fenced)
	if tool == "" || p.next(body) != '{' {
		return false
	}
	ok := p.object(f, tool, body, format, "```", "<｜", "<|")
	f.end = p.over(f.end, "```")
	return ok
}

// kimiOrDeepSeek decides whose call begins with the token that both write, in plain characters.
func (p *parser) kimiOrDeepSeek(at, after int) (find, bool) {
	name, _, _ := p.findToken(after, "tool_call_argument_begin", "tool_sep")
	if name == "tool_sep" {
		return p.deepSeek(at, after)
	}
	return p.kimi(at, after)
}

// kimi reads functions.NAME:0 and an object between tokens. The tokens around all calls may be missing.
func (p *parser) kimi(at, _ int) (find, bool) {
	f := find{at: at, end: at}
	next := p.token(at, "tool_calls_section_begin")
	for {
		begin := p.token(next, "tool_call_begin")
		if begin == next {
			break
		}
		name, nameEnd, body := p.findToken(begin, "tool_call_argument_begin", "tool_call_end")
		if name != "tool_call_argument_begin" {
			break
		}
		tool, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(p.text[begin:nameEnd]), "functions."), ":")
		if body = p.skip(body); p.next(body) != '{' || !p.object(&f, tool, body, KimiK2, "<|") {
			break
		}
		f.end = p.token(f.end, "tool_call_end")
		next = f.end
	}
	f.end = p.token(f.end, "tool_calls_section_end")
	return f, len(f.wishes) > 0
}

// harmony reads the messages of a reply and takes those that are addressed to a tool.
func (p *parser) harmony(at, _ int) (find, bool) {
	f := find{at: at, end: at}
	for {
		token, begin, body := p.findToken(at, "message")
		if token == "" {
			return f, len(f.wishes) > 0
		}
		to := recipient(p.text[at:begin])
		switch start := p.skip(body); {
		case to == "":
			f.end = max(f.end, begin)
		case p.next(start) != '{':
			return f, len(f.wishes) > 0
		case !p.object(&f, to, start, Harmony, "<|call|>", "<|end|>"):
			return f, false
		default:
			f.end = p.token(f.end, "call")
		}
		if _, at, _ = p.findToken(max(f.end, body), "start", "channel"); at == len(p.text) {
			return f, len(f.wishes) > 0
		}
	}
}

// recipient returns the tool to which the header of a message is addressed, "" if it is none.
func recipient(header string) string {
	_, to, ok := strings.Cut(header, " to=")
	if !ok {
		return ""
	}
	end := strings.IndexFunc(to, func(c rune) bool { return c >= 0x80 || !nameByte(byte(c)) })
	if end < 0 {
		end = len(to)
	}
	return strings.TrimPrefix(to[:end], "functions.")
}

// pythonTag reads what follows <|python_tag|>: JSON objects, a built-in tool, or a list of Python calls.
func (p *parser) pythonTag(at, after int) (find, bool) {
	f := find{at: at, end: at}
	switch body := p.skip(after); p.next(body) {
	case '{':
		return p.list(f, body, Llama3JSON, "")
	case '[':
		return p.python(f, body+1, ']', Pythonic)
	default:
		r := reader{text: p.text, pos: body, work: p.work, python: true}
		w, err := r.call()
		name, builtin := strings.CutSuffix(w.name, ".call")
		if err != nil || !builtin {
			return f, false
		}
		w.name = name
		f.wishes, f.end, f.format, f.repaired = []wish{w}, r.pos, Llama3Builtin, r.repaired
		return f, true
	}
}

// python reads Python calls from at on up to the bracket.
func (p *parser) python(f find, at int, bracket byte, format Format) (find, bool) {
	r := reader{text: p.text, pos: at, work: p.work, python: true}
	wishes, err := r.calls(bracket)
	if err != nil || len(wishes) == 0 {
		return f, false
	}
	f.wishes, f.end, f.format, f.repaired = wishes, r.pos, format, r.repaired
	return f, true
}

func (p *parser) pythonStart(at, after int) (find, bool) {
	body := p.skip(after)
	if p.next(body) != '[' {
		return find{}, false
	}
	f, ok := p.python(find{at: at}, body+1, ']', Pythonic)
	f.end = p.token(f.end, "python_end")
	return f, ok
}

func (p *parser) lfm2(at, after int) (find, bool) {
	body := p.skip(after)
	if p.next(body) != '[' {
		return find{}, false
	}
	f, ok := p.python(find{at: at}, body+1, ']', LFM2)
	f.end = p.token(f.end, "tool_call_end")
	return f, ok
}

// functionary reads >>>NAME with the arguments on the next line. >>>all is text.
func (p *parser) functionary(at, after int) (find, bool) {
	f := find{at: at, end: at}
	for {
		r := reader{text: p.text, pos: after, work: p.work}
		name := r.dotted()
		body := p.skip(r.pos)
		if name == "" || p.next(r.pos) != '\n' || p.next(body) != '{' || p.offer.find(name) == nil {
			return f, len(f.wishes) > 0
		}
		if !p.object(&f, name, body, Functionary32, "\n>>>") {
			return f, false
		}
		if after = p.over(f.end, ">>>"); after == f.end {
			return f, true
		}
	}
}
