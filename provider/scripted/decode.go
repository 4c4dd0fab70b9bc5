package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/hozo-run/hozo/llm"
)

// decoder turns nodes into a Script and collects findings. Its methods return the zero value where something is wrong:
// the script is then refused as a whole, so a wrong value is never used.
type decoder struct {
	*findings
	templates *template.Template
}

// fields maps the keys that an object may have to what reads their values.
type fields map[string]func(n *node, pointer string)

// object reads the members of n and reports keys it does not know. It returns false if n is no object.
func (d *decoder) object(n *node, pointer string, known fields) bool {
	if n.kind != kindObject {
		d.wrongType(n, pointer, "an object")
		return false
	}
	for _, m := range n.object {
		at := pointer + "/" + escape(m.key)
		read, ok := known[m.key]
		if !ok {
			names := slices.Sorted(maps.Keys(known))
			d.addHint(m.value, "unknown-field", at, "known fields: "+strings.Join(names, ", "), "unknown field %q", m.key)
			continue
		}
		read(m.value, at)
	}
	return true
}

func (d *decoder) wrongType(n *node, pointer, want string) {
	d.add(n, "wrong-type", pointer, "must be %s, not %s", want, n.kind)
}

func (d *decoder) elements(n *node, pointer string, read func(n *node, pointer string)) {
	if n.kind != kindList {
		d.wrongType(n, pointer, "a list")
		return
	}
	for i, element := range n.list {
		read(element, pointer+"/"+strconv.Itoa(i))
	}
}

func (d *decoder) string(n *node, pointer string) string {
	if n.kind != kindString {
		d.wrongType(n, pointer, "a string")
		return ""
	}
	return n.text
}

func (d *decoder) bool(n *node, pointer string) bool {
	if n.kind != kindBool {
		d.wrongType(n, pointer, "a boolean")
	}
	return n.text == "true"
}

// integer reads a whole number of at least low.
func (d *decoder) integer(n *node, pointer string, low int64) int64 {
	if n.kind != kindNumber {
		d.wrongType(n, pointer, "a whole number")
		return low
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || v < low {
		d.add(n, "out-of-range", pointer, "must be a whole number of at least %d, not %s", low, n.text)
		return low
	}
	return v
}

// milliseconds reads a duration; fractions are allowed.
func (d *decoder) milliseconds(n *node, pointer string) time.Duration {
	if n.kind != kindNumber {
		d.wrongType(n, pointer, "a number of milliseconds")
		return 0
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || v < 0 || v > math.MaxInt64/float64(2*time.Millisecond) {
		d.add(n, "out-of-range", pointer, "must be a number of milliseconds from 0, not %s", n.text)
		return 0
	}
	return time.Duration(v * float64(time.Millisecond))
}

// word reads a string that must be one of a closed set.
func word[T ~string](d *decoder, n *node, pointer string, allowed ...T) T {
	v := T(d.string(n, pointer))
	if n.kind == kindString && !slices.Contains(allowed, v) {
		names := make([]string, len(allowed))
		for i, a := range allowed {
			names[i] = string(a)
		}
		d.addHint(n, "unknown-value", pointer, "one of: "+strings.Join(names, ", "), "unknown value %q", n.text)
	}
	return v
}

// template reads a string and compiles it if it has template actions.
func (d *decoder) template(n *node, pointer string) text {
	source := d.string(n, pointer)
	if !strings.Contains(source, "{{") {
		return literal(source)
	}
	if err := d.compile(pointer, source); err != nil {
		d.add(n, "template", pointer, "%v", err)
	}
	return text{template: pointer}
}

// compile adds a template to the script's set.
func (d *decoder) compile(name, source string) error {
	if d.templates == nil {
		d.templates = newTemplates()
	}
	return compile(d.templates, name, source)
}

func (d *decoder) pattern(n *node, pointer string) *regexp.Regexp {
	re, err := regexp.Compile(d.string(n, pointer))
	if err != nil {
		d.addHint(n, "pattern", pointer, "patterns use RE2 syntax", "%v", err)
		return nil
	}
	return re
}

func (d *decoder) script(n *node) *Script {
	s := &Script{model: defaultModel()}
	d.object(n, "", fields{
		"name": func(n *node, p string) { s.name = d.string(n, p) },
		"model": func(n *node, p string) {
			s.describesModel = true
			d.model(n, p, &s.model)
		},
		"snippets": d.snippets,
		"responses": func(n *node, p string) {
			d.elements(n, p, func(n *node, p string) {
				s.responses = append(s.responses, d.response(n, p, len(s.responses)))
			})
		},
	})
	if n.kind == kindObject && n.find("responses") == nil {
		d.add(n, "missing-field", "/responses", "a script needs a list of responses; it may be empty")
	}
	if d.templates != nil {
		for _, wrong := range checkIncludes(d.templates) {
			d.add(n, "template", "", "%s", wrong)
		}
	}
	return s
}

func (d *decoder) model(n *node, pointer string, m *llm.Model) {
	d.object(n, pointer, fields{
		"name":            func(n *node, p string) { m.Name = d.string(n, p) },
		"contextWindow":   func(n *node, p string) { m.ContextWindow = d.integer(n, p, 1) },
		"maxOutputTokens": func(n *node, p string) { m.MaxOutputTokens = d.integer(n, p, 1) },
		"images":          func(n *node, p string) { m.Images = d.bool(n, p) },
		"price":           func(n *node, p string) { m.Price = d.price(n, p) },
		"thinkingLevels": func(n *node, p string) {
			d.elements(n, p, func(n *node, p string) {
				m.ThinkingLevels = append(m.ThinkingLevels, word(d, n, p, llm.Levels()...))
			})
		},
	})
}

// price reads a price; null makes it unknown.
func (d *decoder) price(n *node, pointer string) *llm.Price {
	if n.kind == kindNull {
		return nil
	}
	var price llm.Price
	into := func(amount *llm.USD) func(*node, string) {
		return func(n *node, p string) { *amount = llm.USD(d.dollars(n, p)) }
	}
	cache := func(amount **llm.USD) func(*node, string) {
		return func(n *node, p string) { *amount = new(llm.USD(d.dollars(n, p))) }
	}
	d.object(n, pointer, fields{
		"inputPerMTok":      into(&price.Input),
		"outputPerMTok":     into(&price.Output),
		"cacheReadPerMTok":  cache(&price.CacheRead),
		"cacheWritePerMTok": cache(&price.CacheWrite),
		"tiers": func(n *node, p string) {
			d.elements(n, p, func(n *node, p string) {
				var tier llm.PriceTier
				d.object(n, p, fields{
					"promptAbove":       func(n *node, p string) { tier.Above = d.integer(n, p, 0) },
					"inputPerMTok":      into(&tier.Input),
					"outputPerMTok":     into(&tier.Output),
					"cacheReadPerMTok":  cache(&tier.CacheRead),
					"cacheWritePerMTok": cache(&tier.CacheWrite),
				})
				price.Tiers = append(price.Tiers, tier)
			})
		},
	})
	return &price
}

func (d *decoder) dollars(n *node, pointer string) llm.MicroUSD {
	if n.kind != kindNumber && n.kind != kindString {
		d.wrongType(n, pointer, "a number of dollars")
		return 0
	}
	amount, err := llm.ParseUSD(n.text)
	if err != nil {
		d.add(n, "out-of-range", pointer, "%v", err)
	}
	return amount
}

// snippets reads templates that others can include by name.
func (d *decoder) snippets(n *node, pointer string) {
	if n.kind != kindObject {
		d.wrongType(n, pointer, "an object of templates")
		return
	}
	for _, m := range n.object {
		at := pointer + "/" + escape(m.key)
		if m.key == "" || strings.HasPrefix(m.key, "/") {
			d.add(m.value, "unknown-value", at, "a snippet's name must not be empty or begin with a slash")
			continue
		}
		if err := d.compile(m.key, d.string(m.value, at)); err != nil {
			d.add(m.value, "template", at, "%v", err)
		}
	}
}

func (d *decoder) response(n *node, pointer string, index int) *response {
	r := &response{repeat: 1, countUsage: true}
	var name string
	d.object(n, pointer, fields{
		"name":   func(n *node, p string) { name = d.string(n, p) },
		"when":   func(n *node, p string) { r.when = d.condition(n, p) },
		"repeat": func(n *node, p string) { r.repeat = d.repeat(n, p) },
		"text":   func(n *node, p string) { r.parts = []part{{kind: llm.PartText, text: d.template(n, p)}} },
		"parts": func(n *node, p string) {
			d.elements(n, p, func(n *node, p string) { r.parts = append(r.parts, d.part(n, p)) })
		},
		"chunkBytes":  func(n *node, p string) { r.chunk = int(min(d.integer(n, p, 1), math.MaxInt32)) },
		"delayMs":     func(n *node, p string) { r.delay = d.milliseconds(n, p) },
		"paceMs":      func(n *node, p string) { r.pace = d.milliseconds(n, p) },
		"stop":        func(n *node, p string) { r.stop = word(d, n, p, llm.StopEnd, llm.StopTools, llm.StopLength) },
		"rawStop":     func(n *node, p string) { r.rawStop = d.string(n, p) },
		"servedModel": func(n *node, p string) { r.servedModel = d.string(n, p) },
		"id":          func(n *node, p string) { r.id = d.string(n, p) },
		"billedUsd": func(n *node, p string) {
			amount := d.dollars(n, p)
			r.billed = &amount
		},
		"usage": func(n *node, p string) { d.usage(n, p, r) },
		"error": func(n *node, p string) { r.failure = d.failure(n, p) },
		"cut":   func(n *node, p string) { r.failure = d.cut(n, p) },
		"stall": func(n *node, p string) { r.failure = d.stall(n, p) },
	})
	r.label = labelOf(index, name)
	d.exclusive(n, pointer, "error", "cut", "stall")
	d.exclusive(n, pointer, "text", "parts")
	if r.failure != nil && n.find("stop") != nil {
		d.add(n.find("stop"), "conflict", pointer+"/stop", "a response that fails has no stop reason")
	}
	return r
}

// exclusive reports every key after the first that n has of keys.
func (d *decoder) exclusive(n *node, pointer string, keys ...string) {
	first := ""
	for _, key := range keys {
		switch v := n.find(key); {
		case v == nil:
		case first == "":
			first = key
		default:
			d.add(v, "conflict", pointer+"/"+key, "%q and %q exclude each other", first, key)
		}
	}
}

func (d *decoder) repeat(n *node, pointer string) int {
	if n.kind == kindString && n.text == "forever" {
		return 0
	}
	if n.kind != kindNumber {
		d.wrongType(n, pointer, `a whole number or "forever"`)
		return 1
	}
	return int(min(d.integer(n, pointer, 1), math.MaxInt32))
}

func (d *decoder) part(n *node, pointer string) part {
	var p part
	kind := func(k llm.PartType) func(*node, string) {
		return func(n *node, at string) { p.kind, p.text = k, d.template(n, at) }
	}
	d.object(n, pointer, fields{
		"text":      kind(llm.PartText),
		"thinking":  kind(llm.PartThinking),
		"signature": func(n *node, at string) { p.signature = d.string(n, at) },
		"redacted":  func(n *node, at string) { p.redacted = d.bool(n, at) },
		"call":      func(n *node, at string) { d.call(n, at, &p) },
		"when":      func(n *node, at string) { p.when = d.condition(n, at) },
		"each":      func(n *node, at string) { p.each = d.template(n, at) },
	})
	d.exclusive(n, pointer, "text", "thinking", "call")
	if p.kind == "" && n.kind == kindObject {
		d.add(n, "missing-field", pointer, `a part needs "text", "thinking" or "call"`)
	}
	for _, key := range []string{"signature", "redacted"} {
		if v := n.find(key); v != nil && p.kind != llm.PartThinking {
			d.add(v, "conflict", pointer+"/"+key, "only a thinking part can have %q", key)
		}
	}
	if p.redacted && !p.text.empty() {
		d.add(n, "conflict", pointer+"/redacted", "redacted thinking has a signature, but no text")
	}
	return p
}

func (d *decoder) call(n *node, pointer string, p *part) {
	p.kind, p.text = llm.PartToolCall, text{}
	if !d.object(n, pointer, fields{
		"name":         func(n *node, at string) { p.tool = d.string(n, at) },
		"id":           func(n *node, at string) { p.providerID = d.string(n, at) },
		"arguments":    func(n *node, at string) { d.arguments(n, at, p) },
		"rawArguments": func(n *node, at string) { p.text = d.template(n, at) },
	}) {
		return
	}
	d.exclusive(n, pointer, "arguments", "rawArguments")
	if n.find("name") == nil {
		d.add(n, "missing-field", pointer+"/name", "a call needs the name of a tool")
	}
}

// arguments reads an argument object; without templates its text is made here, once for all uses.
func (d *decoder) arguments(n *node, pointer string, p *part) {
	if n.kind != kindObject {
		d.addHint(n, "wrong-type", pointer, `"rawArguments" can be any text`, "must be an object, not %s", n.kind)
		return
	}
	if d.compileStrings(n, pointer) {
		p.arguments, p.pointer = n, pointer
		return
	}
	p.text = literal(string(n.appendJSON(nil)))
}

// compileStrings compiles every template among the strings below n and reports whether there is one.
func (d *decoder) compileStrings(n *node, pointer string) bool {
	any := false
	switch n.kind {
	case kindString:
		any = d.template(n, pointer).template != ""
	case kindList:
		for i, v := range n.list {
			any = d.compileStrings(v, pointer+"/"+strconv.Itoa(i)) || any
		}
	case kindObject:
		for _, m := range n.object {
			any = d.compileStrings(m.value, pointer+"/"+escape(m.key)) || any
		}
	}
	return any
}

func (d *decoder) usage(n *node, pointer string, r *response) {
	if n.kind == kindString {
		r.countUsage = word(d, n, pointer, "auto", "none") == "auto"
		return
	}
	r.countUsage, r.usage = false, &llm.Usage{}
	into := func(count *int64) func(*node, string) {
		return func(n *node, p string) { *count = d.integer(n, p, 0) }
	}
	d.object(n, pointer, fields{
		"input":        into(&r.usage.Input),
		"cacheRead":    into(&r.usage.CacheRead),
		"cacheWrite":   into(&r.usage.CacheWrite),
		"cacheWrite1h": into(&r.usage.CacheWrite1h),
		"output":       into(&r.usage.Output),
		"reasoning":    into(&r.usage.Reasoning),
	})
}

// classes returns every class that a script can name.
func classes() []llm.Class {
	return []llm.Class{llm.ClassAuth, llm.ClassQuota, llm.ClassRateLimit, llm.ClassOverloaded, llm.ClassConnection,
		llm.ClassTruncated, llm.ClassMalformed, llm.ClassProvider, llm.ClassContextOverflow, llm.ClassInvalidRequest,
		llm.ClassRefused, llm.ClassUnknownStop}
}

func (d *decoder) failure(n *node, pointer string) *failure {
	f := &failure{}
	d.object(n, pointer, fields{
		"class":        func(n *node, p string) { f.err.Class = word(d, n, p, classes()...) },
		"status":       func(n *node, p string) { f.err.Status = d.status(n, p) },
		"code":         func(n *node, p string) { f.err.Code = d.string(n, p) },
		"message":      func(n *node, p string) { f.err.Message = d.string(n, p) },
		"requestId":    func(n *node, p string) { f.err.RequestID = d.string(n, p) },
		"retryAfterMs": func(n *node, p string) { f.err.RetryAfter = d.milliseconds(n, p) },
		"final":        func(n *node, p string) { f.err.Final = d.bool(n, p) },
		"afterDeltas":  func(n *node, p string) { f.after = d.deltas(n, p) },
	})
	if n.kind == kindObject && n.find("class") == nil {
		d.addHint(n, "missing-field", pointer+"/class", fmt.Sprint("one of: ", classes()), "an error needs a class")
	}
	if f.err.Message == "" {
		f.err.Message = "scripted failure"
	}
	return f
}

func (d *decoder) status(n *node, pointer string) int {
	status := d.integer(n, pointer, 100)
	if status > 599 {
		d.add(n, "out-of-range", pointer, "must be an HTTP status, not %s", n.text)
	}
	return int(min(status, 599))
}

func (d *decoder) deltas(n *node, pointer string) int {
	return int(min(d.integer(n, pointer, 0), math.MaxInt32))
}

func (d *decoder) cut(n *node, pointer string) *failure {
	f := &failure{err: llm.Error{Class: llm.ClassTruncated, Message: "the stream ended before its finish mark"}}
	d.object(n, pointer, fields{
		"afterDeltas": func(n *node, p string) { f.after = d.deltas(n, p) },
		"by": func(n *node, p string) {
			if word(d, n, p, "end", "reset") == "reset" {
				f.err = llm.Error{Class: llm.ClassConnection, Message: "the connection was reset"}
			}
		},
	})
	return f
}

func (d *decoder) stall(n *node, pointer string) *failure {
	f := &failure{stall: true}
	d.object(n, pointer, fields{
		"afterDeltas": func(n *node, p string) { f.after = d.deltas(n, p) },
	})
	return f
}

func (d *decoder) condition(n *node, pointer string) *condition {
	c := &condition{}
	d.object(n, pointer, fields{
		"offered":     func(n *node, p string) { c.offered = d.names(n, p) },
		"notOffered":  func(n *node, p string) { c.notOffered = d.names(n, p) },
		"lastResult":  func(n *node, p string) { c.lastResult = d.lastResult(n, p) },
		"lastMessage": func(n *node, p string) { c.lastMessage = d.lastMessage(n, p) },
		"attempt":     func(n *node, p string) { c.attempt = int(min(d.integer(n, p, 1), math.MaxInt32)) },
		"purpose": func(n *node, p string) {
			c.purpose = word(d, n, p, llm.PurposeTurn, llm.PurposeCompaction, llm.PurposeRepair, llm.PurposeWriter,
				llm.PurposeSubagent, llm.PurposeCheck)
		},
		"test": func(n *node, p string) { c.test = d.template(n, p) },
	})
	return c
}

// names reads one name or a list of them.
func (d *decoder) names(n *node, pointer string) []string {
	if n.kind == kindString {
		return []string{n.text}
	}
	var names []string
	d.elements(n, pointer, func(n *node, p string) { names = append(names, d.string(n, p)) })
	return names
}

func (d *decoder) lastResult(n *node, pointer string) *match {
	m := &match{}
	d.object(n, pointer, fields{
		"tool":     func(n *node, p string) { m.tool = d.string(n, p) },
		"contains": func(n *node, p string) { m.contains = d.string(n, p) },
		"matches":  func(n *node, p string) { m.matches = d.pattern(n, p) },
		"isError": func(n *node, p string) {
			v := d.bool(n, p)
			m.isError = &v
		},
	})
	return m
}

func (d *decoder) lastMessage(n *node, pointer string) *match {
	m := &match{}
	d.object(n, pointer, fields{
		"role":     func(n *node, p string) { m.role = word(d, n, p, llm.RoleUser, llm.RoleTool) },
		"contains": func(n *node, p string) { m.contains = d.string(n, p) },
		"matches":  func(n *node, p string) { m.matches = d.pattern(n, p) },
	})
	return m
}

// decodeArguments reads argument text as the adapters of real providers do: an object, {} for no text at all, or the
// reason why it is neither.
func decodeArguments(raw string) (json.RawMessage, string) {
	if strings.TrimSpace(raw) == "" {
		return json.RawMessage("{}"), ""
	}
	text := []byte(raw)
	if strings.TrimLeft(raw, " \t\r\n")[0] == '{' && json.Valid(text) {
		return text, ""
	}
	var object map[string]json.RawMessage
	err := json.Unmarshal(text, &object)
	if err == nil {
		return nil, "not a JSON object: null"
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Sprintf("not valid JSON at byte %d of %d", syntax.Offset, len(raw))
	}
	return nil, "not a JSON object"
}
