package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/hozo-run/hozo/llm"
)

// scene is what conditions and templates can see of an exchange: the opening, the calls with their results, and the
// message that the model has to answer. It grows as messages are appended and copies none of their texts.
type scene struct {
	opening *llm.Opening
	task    string
	calls   []*pastCall
	pending []*pastCall // calls of the latest assistant message that still wait for their results
	turns   int         // assistant messages
	last    *llm.Message

	call    llm.Call
	attempt int
	item    string
	index   int

	ticks     int // spent
	maxTicks  int
	depth     int               // of include
	included  map[string]string // what snippets gave for this request and item
	alive     func() error      // reports that the request was given up
	templates *template.Template
}

// pastCall is a tool call and its result.
type pastCall struct {
	call   *llm.ToolCall
	result *llm.ToolResult // nil while it is missing
	text   string
}

// append takes in a message that is known to be in order.
func (s *scene) append(m *llm.Message) {
	s.last = m
	switch m.Role {
	case llm.RoleUser:
		if s.turns == 0 {
			s.task = m.Text()
		}
	case llm.RoleAssistant:
		s.turns++
		s.pending = nil
		for _, call := range m.ToolCalls() {
			s.pending = append(s.pending, &pastCall{call: call})
		}
		s.calls = append(s.calls, s.pending...)
	case llm.RoleTool:
		for i, p := range m.Parts {
			if i < len(s.pending) && p.ToolResult != nil {
				s.pending[i].result, s.pending[i].text = p.ToolResult, resultText(p.ToolResult)
			}
		}
		s.pending = nil
	}
}

func resultText(r *llm.ToolResult) string { return llm.Message{Parts: r.Content}.Text() }

// lastResult returns the result that came last, nil before the first.
func (s *scene) lastResult() *pastCall {
	for _, c := range slices.Backward(s.calls) {
		if c.result != nil {
			return c
		}
	}
	return nil
}

func (s *scene) offers(name string) bool {
	return slices.ContainsFunc(s.opening.Tools, func(t llm.ToolSpec) bool { return t.Name == name })
}

// holds reports whether a condition holds; a nil condition always does.
func (c *condition) holds(s *scene) (bool, error) {
	switch {
	case c == nil:
		return true, nil
	case c.attempt != 0 && c.attempt != s.attempt,
		c.purpose != "" && c.purpose != s.call.Purpose,
		slices.ContainsFunc(c.offered, func(name string) bool { return !s.offers(name) }),
		slices.ContainsFunc(c.notOffered, s.offers),
		!c.lastResult.holdsResult(s),
		!c.lastMessage.holdsMessage(s):
		return false, nil
	case c.test.empty():
		return true, nil
	}
	answer, err := s.render(c.test)
	answer = bytes.TrimSpace(answer)
	return len(answer) > 0 && string(answer) != "false", err
}

func (m *match) holdsResult(s *scene) bool {
	if m == nil {
		return true
	}
	c := s.lastResult()
	return c != nil && (m.tool == "" || m.tool == c.call.Name) && (m.isError == nil || *m.isError == c.result.IsError) &&
		m.holdsText(c.text)
}

func (m *match) holdsMessage(s *scene) bool {
	if m == nil {
		return true
	}
	if s.last == nil || m.role != "" && m.role != s.last.Role {
		return false
	}
	return m.holdsText(s.lastText())
}

func (m *match) holdsText(text string) bool {
	return strings.Contains(text, m.contains) && (m.matches == nil || m.matches.MatchString(text))
}

// lastText returns the text of the latest message; of tool results, their texts on lines of their own.
func (s *scene) lastText() string {
	if s.last == nil {
		return ""
	}
	if s.last.Role != llm.RoleTool {
		return s.last.Text()
	}
	var b []byte
	for i, p := range s.last.Parts {
		if i > 0 {
			b = append(b, '\n')
		}
		if p.ToolResult != nil {
			b = append(b, resultText(p.ToolResult)...)
		}
	}
	return string(b)
}

// begin prepares the scene for one more request.
func (s *scene) begin(ctx context.Context, call llm.Call) {
	s.call, s.alive = call, ctx.Err
	s.ticks, s.depth, s.included = 0, 0, nil
	s.attempt++
	s.on("", 0)
}

// on sets the item of "each" that templates see.
func (s *scene) on(item string, index int) {
	if s.included == nil || s.item != item || s.index != index {
		s.included = make(map[string]string)
	}
	s.item, s.index = item, index
}

// render returns the text of t, executed if it is a template.
func (s *scene) render(t text) ([]byte, error) {
	if t.template == "" {
		return t.bytes, nil
	}
	var out output
	if err := s.templates.ExecuteTemplate(&out, t.template, nil); err != nil {
		return nil, err
	}
	return bytes.ToValidUTF8(out.data, []byte("\uFFFD")), nil
}

// bind prepares the templates of a script for this exchange, once.
func (s *scene) bind(script *Script) error {
	if s.templates != nil || script.templates == nil {
		return nil
	}
	bound, err := script.templates.Clone()
	if err != nil {
		return err
	}
	s.templates, s.maxTicks = bound.Funcs(s.functions()), script.maxTicks
	return nil
}

// functions are the template functions that look at the exchange.
func (s *scene) functions() template.FuncMap {
	return template.FuncMap{
		"task":        func() string { return s.task },
		"system":      func() string { return joinSystem(s.opening) },
		"model":       func() string { return s.opening.Model.ID },
		"thinking":    func() string { return string(s.opening.Thinking) },
		"purpose":     func() string { return string(s.call.Purpose) },
		"attempt":     func() int { return s.attempt },
		"turn":        func() int { return s.turns + 1 },
		"offered":     s.offeredNames,
		"offers":      s.offers,
		"item":        func() string { return s.item },
		"itemIndex":   func() int { return s.index },
		"lastMessage": s.lastText,
		"lastResult":  s.lastResultText,
		"result":      s.resultOf,
		"hasResult":   func(id string) bool { return s.find(id) != nil },
		"results":     s.results,
		"calls":       s.callList,
		"takes":       s.takes,
		"include":     s.include,
		"tick":        s.tick,
	}
}

func joinSystem(o *llm.Opening) string {
	if o.System != "" && o.JobSystem != "" {
		return o.System + "\n\n" + o.JobSystem
	}
	return o.System + o.JobSystem
}

// tick spends one step of a template.
func (s *scene) tick() (string, error) {
	if s.ticks++; s.ticks > s.maxTicks {
		return "", fmt.Errorf("the templates take more than %d steps", s.maxTicks)
	}
	if s.alive != nil {
		return "", s.alive()
	}
	return "", nil
}

// include returns the output of a snippet as a text, to be worked on. Unlike a template action it can be recursive, so that its depth
// is bounded here.
func (s *scene) include(name string, data ...any) (string, error) {
	const deepest = 50
	if s.templates.Lookup(name) == nil || strings.HasPrefix(name, "/") {
		return "", fmt.Errorf("there is no snippet %q", name)
	}
	if s.depth++; s.depth > deepest {
		return "", fmt.Errorf("snippets are included more than %d deep", deepest)
	}
	defer func() { s.depth-- }()
	// Without data a snippet depends on the exchange alone, so it gives the same each time.
	if text, ok := s.included[name]; ok && len(data) == 0 {
		return text, nil
	}
	var out output
	if err := s.templates.ExecuteTemplate(&out, name, firstOf(data)); err != nil {
		return "", err
	}
	text := string(out.data)
	if len(data) == 0 {
		s.included[name] = text
	}
	return text, nil
}

func firstOf(values []any) any {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}

// takes reports whether a tool is on offer and has a parameter of this name.
func (s *scene) takes(tool, parameter string) bool {
	for _, t := range s.opening.Tools {
		if t.Name == tool {
			var schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			}
			// A schema that cannot be read has no parameters that a script could use.
			return json.Unmarshal(t.InputSchema, &schema) == nil && schema.Properties[parameter] != nil
		}
	}
	return false
}

func (s *scene) offeredNames() []string {
	names := make([]string, len(s.opening.Tools))
	for i, t := range s.opening.Tools {
		names[i] = t.Name
	}
	slices.Sort(names)
	return names
}

func (s *scene) lastResultText() (string, error) {
	if c := s.lastResult(); c != nil {
		return c.text, nil
	}
	return "", errors.New("there is no tool result yet")
}

func (s *scene) find(id string) *pastCall {
	for _, c := range s.calls {
		if c.call.ID == id && c.result != nil {
			return c
		}
	}
	return nil
}

func (s *scene) resultOf(id string) (string, error) {
	if c := s.find(id); c != nil {
		return c.text, nil
	}
	return "", fmt.Errorf("there is no result of a call %s", strconv.Quote(id))
}

// results returns the texts of the results of one tool, or of all, without those of failed calls.
func (s *scene) results(tool ...string) []string {
	var found []string
	for _, c := range s.calls {
		if c.result != nil && !c.result.IsError && (len(tool) == 0 || slices.Contains(tool, c.call.Name)) {
			found = append(found, c.text)
		}
	}
	return found
}

// callList returns the calls that have a result as dictionaries.
func (s *scene) callList(tool ...string) []any {
	var list []any
	for _, c := range s.calls {
		if c.result == nil || len(tool) > 0 && !slices.Contains(tool, c.call.Name) {
			continue
		}
		list = append(list, map[string]any{
			"id": c.call.ID, "tool": c.call.Name, "arguments": argumentsOf(c.call), "text": c.text, "isError": c.result.IsError,
		})
	}
	return list
}

// argumentsOf returns the arguments of a call, an empty dictionary if they were no object.
func argumentsOf(call *llm.ToolCall) map[string]any {
	dec := json.NewDecoder(bytes.NewReader(call.Arguments))
	dec.UseNumber()
	arguments := map[string]any{}
	if err := dec.Decode(&arguments); err != nil || arguments == nil {
		return map[string]any{} // the fault is in ArgumentsError already
	}
	plainNumbers(arguments)
	return arguments
}
