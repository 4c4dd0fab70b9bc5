package textcall

import (
	"encoding/json"
	"strings"
	"unicode"
)

const (
	// maxText is the longest reply that is read, in bytes.
	maxText = 400_000
	// maxCalls is how many calls of one reply are taken.
	maxCalls = 128
	// minEcho is the shortest text that counts as an echo.
	minEcho = 8
)

// Reason says why what looks like a call was not taken.
type Reason string

// The closed set of reasons.
const (
	// UnknownTool: the name is not offered, nor close enough to one that is.
	UnknownTool Reason = "unknown-tool"
	// Echoed: the text stands in a tool result, but for white space.
	Echoed Reason = "echoed"
	// Quoted: the call is shown as an example, in a code fence amid prose, in quotation marks, or inside of a document.
	Quoted Reason = "quoted"
	// Cut: the reply ended at its output limit. Parse does not know the limit; the dialog of Wrap says so.
	Cut Reason = "cut"
	// TooLong: the reply is longer than 400,000 bytes.
	TooLong Reason = "too-long"
	// TooComplex: reading the reply would take more than linear time.
	TooComplex Reason = "too-complex"
)

// Options say how a reply is read. The zero value takes every call of any form.
type Options struct {
	// Format is the only form to take; "" takes any.
	Format Format
	// Thinking is reasoning that came outside of the text. Calls in it count only if there is no text at all.
	Thinking string
	// Results are recent tool results as the tools gave them. A call that stands in one, but for white space, is not taken.
	Results []string
	// Limit is how many calls to take; 0 takes all.
	Limit int
}

// Call is one call of an offered tool.
type Call struct {
	// Name is the tool's name as it is offered.
	Name string
	// ID is the id that the model wrote, "" if it wrote none.
	ID string
	// Arguments is a JSON object, nil exactly when ArgumentsError says why there is none.
	Arguments      json.RawMessage
	ArgumentsError string
	// RawArguments is the argument text as written, if there is an error.
	RawArguments string

	repaired bool
}

// Result is what a reply holds. Without calls, a refusal or an answer it is plain text.
type Result struct {
	// Calls are the calls in the model's order; each name is an offered one.
	Calls []Call
	// Format is the form of the calls, of the answer, or of what was refused.
	Format Format
	// Repaired says that the text was no valid JSON until small slips were set right.
	Repaired bool
	// Leading is the text before the calls, without thinking.
	Leading string
	// Thinking is what the reply thinks aloud before its text.
	Thinking string
	// Dropped counts calls beyond Options.Limit.
	Dropped int
	// Unknown are the names that are not offered, in the model's order.
	Unknown []string
	// Refused says why there are no calls although it looks like it, "" if nothing does.
	Refused Reason
	// Answer is the text that the reply only wraps, if Answers is set.
	Answer  string
	Answers bool

	// at is where the calls begin in the text, -1 if they stand in the thinking.
	at int
}

// find is a place of the reply that reads as calls.
type find struct {
	shape
	at, end  int
	repaired bool
}

type parser struct {
	text    string
	offer   *Offer
	options Options
	work    *meter
	// refused is what to report if nothing is found in the end.
	refused Result
	// shown is how much of the text was shown while it streamed: no call begins there.
	shown int
	// results are the tool results in which echoes are looked for, nil before one was.
	results []string
}

// Parse looks for tool calls in the text of a finished reply. It is a pure function that takes time linear in the text,
// and the callers decide about everything around it: whether the reply may hold calls at all, and what happens then.
func Parse(text string, offer *Offer, options Options) Result {
	p := &parser{text: text, offer: offer, options: options, work: newMeter(len(text) + len(options.Thinking))}
	if len(text)+len(options.Thinking) > maxText {
		return Result{Refused: TooLong}
	}
	t := splitThinking(text)
	r, found := Result{}, false
	if strings.TrimSpace(text[t.end:]) != "" {
		p.shown = t.shown + newScanner(offer).add([]byte(text[t.shown:]))
		r, found = p.read(t.end)
	} else {
		r, found = p.readThinking(options.Thinking, t.text)
	}
	switch {
	case found:
	case p.work.empty():
		r = Result{Refused: TooComplex}
	default:
		r = p.refused
	}
	r.Thinking = t.text
	if found && r.at >= t.end {
		r.Leading = text[t.end:r.at]
	}
	return r
}

// read looks for calls from start on: those with a mark first, then those without.
func (p *parser) read(start int) (Result, bool) {
	if r, ok := p.marked(start); ok || p.refused.Refused == Echoed {
		return r, ok
	}
	for _, look := range []func(int) (find, bool){p.whole, p.fenced, p.inline, p.react} {
		if f, ok := look(start); ok && f.at >= p.shown && accepts(p.options.Format, f.format) {
			return p.finish(f)
		}
	}
	return Result{}, false
}

// readThinking looks behind the last mark of the reasoning: some models call a tool without ending their thoughts.
func (p *parser) readThinking(outside, inside string) (Result, bool) {
	thinking := outside
	if strings.TrimSpace(inside) != "" {
		thinking = inside
	}
	for at := len(thinking) - 1; at >= 0; at-- {
		if _, ok := markAt(thinking, at); !ok {
			continue
		}
		p.text, p.shown = thinking, 0
		at = firstOfRun(thinking, at)
		r, ok := p.marked(at)
		r.at = -1
		return r, ok
	}
	return Result{}, false
}

// firstOfRun goes from the last mark back to the mark that opens the same list of calls.
func firstOfRun(text string, at int) int {
	for _, opener := range []string{"<|tool_calls_section_begin|>", "<function_calls>", "<tool_calls>"} {
		if i := strings.LastIndex(text[:at], opener); i >= 0 {
			return i
		}
	}
	return at
}

// marked looks for the first mark behind which there are calls.
func (p *parser) marked(start int) (Result, bool) {
	around := newSurroundings(p.text, start)
	for at := start; at < len(p.text) && !p.work.empty(); at++ {
		p.work.spend(1)
		m, ok := markAt(p.text, at)
		if !ok {
			continue
		}
		f, ok := m.read(p, at, at+len(m.text))
		if !ok || !accepts(p.options.Format, f.format) {
			continue
		}
		if f.at, ok = around.begin(f, p.work); !ok || f.at < p.shown {
			p.refuse(Result{Refused: Quoted, Format: f.format})
			at = max(at, f.end-1)
			continue
		}
		return p.finish(f)
	}
	return Result{}, false
}

// markAt returns the mark that begins at a place.
func markAt(text string, at int) (mark, bool) {
	if !mayBegin(text[at]) {
		return mark{}, false
	}
	for _, m := range knownMarks() {
		if strings.HasPrefix(text[at:], m.text) && (!m.line || at == 0 || text[at-1] == '\n') {
			return m, true
		}
	}
	return mark{}, false
}

// refuse keeps the first refusal.
func (p *parser) refuse(r Result) {
	if p.refused.Refused == "" {
		p.refused = r
	}
}

// finish turns a find into the result: the calls of offered tools, or why they are not taken.
func (p *parser) finish(f find) (Result, bool) {
	r := Result{Format: f.format, Repaired: f.repaired, at: f.at}
	if p.echoed(f) {
		p.refuse(Result{Refused: Echoed, Format: f.format})
		return Result{}, false
	}
	if f.answers {
		r.Answer, r.Answers = f.answer, true
		return r, true
	}
	for _, w := range f.wishes {
		t := p.offer.find(w.name)
		switch {
		case strings.TrimSpace(w.name) == "":
		case len(r.Calls) == maxCalls || p.options.Limit > 0 && len(r.Calls)+len(r.Unknown) == p.options.Limit:
			r.Dropped++
		case t == nil:
			r.Unknown = append(r.Unknown, w.name)
		default:
			call := settle(w, t, p.work)
			r.Repaired = r.Repaired || call.repaired
			r.Calls = append(r.Calls, call)
		}
	}
	if len(r.Calls) == 0 {
		r.Refused = UnknownTool
	}
	return r, len(r.Calls)+len(r.Unknown) > 0
}

// echoed reports whether the calls stand in a tool result: then somebody else wrote them. White space does not count, since
// models lay out what they copy in their own way.
func (p *parser) echoed(f find) bool {
	spans := []string{p.text[f.at:f.end]}
	for _, w := range f.wishes[:min(len(f.wishes), maxCalls)] {
		if w.to > w.from {
			spans = append(spans, p.text[w.from:w.to])
		}
	}
	for _, span := range spans {
		span = squeezed(span)
		if len(span) < minEcho {
			continue
		}
		for _, result := range p.squeezedResults() {
			if strings.Contains(result, span) {
				return true
			}
		}
	}
	return false
}

// squeezedResults are the recent tool results without white space, made when a call is found.
func (p *parser) squeezedResults() []string {
	if p.results == nil {
		p.results = make([]string, 0, len(p.options.Results))
		for _, result := range p.options.Results {
			p.results = append(p.results, squeezed(result))
		}
	}
	return p.results
}

// squeezed returns a text without its white space.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// thinkTags are the pairs of tags between which replies think.
var thinkTags = [][2]string{{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"[THINK]", "[/THINK]"}}

// thoughts are what a text thinks before it answers.
type thoughts struct {
	text string
	// end is where the answer begins: the end of the text if the thinking does not end.
	end int
	// shown is where the text begins that was shown as an answer while it streamed. A closing tag without an opening one,
	// as under templates that end with the opening one, shows only afterwards what was thinking.
	shown int
}

func splitThinking(text string) thoughts {
	body := strings.TrimLeft(text, blanks)
	for _, tag := range thinkTags {
		opened := strings.HasPrefix(body, tag[0])
		from := 0
		if opened {
			from = len(text) - len(body) + len(tag[0])
		}
		end := strings.Index(text[from:], tag[1])
		switch {
		case end < 0 && opened:
			return thoughts{text: text[from:], end: len(text), shown: len(text)}
		case end < 0 || !opened && strings.Contains(text[:end], tag[0]):
			continue
		}
		t := thoughts{text: text[from : from+end]}
		t.end = len(text) - len(strings.TrimLeft(text[from+end+len(tag[1]):], "\r\n"))
		if opened {
			t.shown = t.end
		}
		return t
	}
	return thoughts{}
}

const blanks = " \t\r\n"
