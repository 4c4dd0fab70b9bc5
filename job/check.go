package job

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Codes of the problems that checking finds, beside codeInvalid, codeEncoding and codeOutOfRange.
const (
	codeRequired     = "required"
	codeUnknown      = "unknown"
	codeDuplicate    = "duplicate"
	codeNameReserved = "name-reserved"
	codeUnsupported  = "unsupported"
)

// maxSeconds keeps every duration of a spec within time.Duration.
const maxSeconds = 1e9

// Check returns everything that is wrong with a spec as far as the spec alone can tell, in the order of its fields; an
// empty list means that nothing is. What needs the machine or the runtime is checked by those who know it: directories by
// workspace, tool names and adapters by the kernel. Parse has checked what it returns; a runtime checks again, since a
// spec may come from Go code. No message holds a credential.
func (s *Spec) Check() problem.List {
	never := func(string) bool { return false }
	c := checker{spec: s, skip: never, skipWhole: never}
	c.texts("", reflect.ValueOf(s).Elem())
	c.check()
	if len(c.problems) > maxProblems {
		c.problems = c.problems[:maxProblems]
		c.problems.Add(codeTooMany, "", "there are more problems; the first %d are listed", maxProblems)
	}
	return c.problems
}

// checker collects the problems of a spec. It is silent about every place for which skip returns true: those did not
// decode and have a problem already.
type checker struct {
	spec *Spec
	skip func(pointer string) bool
	// skipWhole is true for a place that has a part which did not decode: rules about the whole cannot be applied.
	skipWhole func(pointer string) bool
	problems  problem.List
}

func (c *checker) add(code, pointer, format string, args ...any) {
	c.addHint(code, pointer, "", format, args...)
}

func (c *checker) addHint(code, pointer, hint, format string, args ...any) {
	if len(c.problems) > maxProblems || c.skip(pointer) {
		return
	}
	c.problems.AddHint(code, pointer, hint, format, args...)
}

// check runs every rule.
func (c *checker) check() {
	s := c.spec
	switch s.APIVersion {
	case APIVersion:
	case "":
		c.add(codeRequired, "/apiVersion", "must be %q", APIVersion)
	default:
		c.add(codeUnsupported, "/apiVersion", "version %q is not supported; this runtime reads %q", shorten(s.APIVersion), APIVersion)
	}
	if s.ID != "" {
		c.id("/id", s.ID)
	}
	c.agent("/agent", &s.Agent)
	c.text("/task", s.Task, "the task is the first message to the model")
	c.model()
	c.providers()
	c.workspace()
	c.limits()
	c.history()
	c.context()
	c.sampling()
	c.mcp()
	c.host()
	c.output()
	c.toolErrors()
	c.approvals()
	c.loop("/loop", s.Loop)
	c.subagents("/subagents", s.Subagents, 1)
	c.resume()
}

// text refuses a text that says nothing.
func (c *checker) text(pointer, text, hint string) {
	if strings.TrimSpace(text) == "" {
		c.addHint(codeRequired, pointer, hint, "must not be empty")
	}
}

// maxIDBytes bounds the ids that go into events, headers and file names.
const maxIDBytes = 128

// id refuses an id that is missing or that would not survive in a header, a log line or a file name.
func (c *checker) id(pointer, id string) {
	switch {
	case strings.TrimSpace(id) == "":
		c.add(codeRequired, pointer, "must not be empty")
	case len(id) > maxIDBytes:
		c.add(codeInvalid, pointer, "has %d characters; at most %d are allowed", len(id), maxIDBytes)
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }):
		c.add(codeInvalid, pointer, "may hold only printable ASCII characters without spaces, not %q", id)
	}
}

func (c *checker) agent(at string, a *Definition) {
	c.id(at+"/id", a.ID)
	if a.Version != "" {
		c.id(at+"/version", a.Version)
	}
	c.text(at+"/instructions", a.Instructions, "they are the beginning of the system prompt")
	c.skills(at, a)
	c.denyPatterns(at, a)
	c.level(at+"/thinking", a.Thinking)
}

// skillName reports whether a skill may have this name: [a-z][a-z0-9-]*, at most 64 bytes.
func skillName(name string) bool {
	if name == "" || len(name) > 64 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') })
}

func (c *checker) skills(agent string, a *Definition) {
	first := map[string]int{}
	for i, skill := range a.Skills {
		pointer := fmt.Sprintf("%s/skills/%d/name", agent, i)
		switch at, twice := first[skill.Name]; {
		case skill.Name == "":
			c.add(codeRequired, pointer, "must not be empty")
		case !skillName(skill.Name):
			c.addHint(codeInvalid, pointer, "a small letter, then small letters, digits and hyphens, at most 64 in all",
				"%q is no skill name", shorten(skill.Name))
		case twice:
			c.add(codeDuplicate, pointer, "the skill %q is given twice, first at %s/skills/%d", skill.Name, agent, at)
		default:
			first[skill.Name] = i
		}
	}
}

// maxPatternBytes bounds what a deny pattern costs to compile.
const maxPatternBytes = 4096

func (c *checker) denyPatterns(at string, a *Definition) {
	for i, pattern := range a.DenyCommandPatterns {
		pointer := fmt.Sprintf("%s/denyCommandPatterns/%d", at, i)
		switch {
		case pattern == "":
			c.addHint(codeRequired, pointer, "leave it out to deny nothing", "must not be empty: it would match every command")
		case len(pattern) > maxPatternBytes:
			c.addHint(codeTooLarge, pointer, "use several patterns", "has %d bytes; at most %d are allowed", len(pattern), maxPatternBytes)
		default:
			if _, err := regexp.Compile(pattern); err != nil {
				reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
				c.addHint(codeInvalid, pointer, patternHint(pattern), "not a regular expression: %s", reason)
			}
		}
	}
}

// patternHint explains what RE2 leaves out, for authors who are used to backtracking engines.
func patternHint(pattern string) string {
	for _, group := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.Contains(pattern, group) {
			return "patterns are RE2, which has no look-around (" + group + "…): match the text itself, in several patterns if need be"
		}
	}
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] != '\\' {
			continue
		}
		if next := pattern[i+1]; next >= '1' && next <= '9' || next == 'k' {
			return `patterns are RE2, which has no back-references (\` + string(next) + "): write the repeated text out"
		}
		i++
	}
	if strings.Contains(pattern, "(?>") || strings.Contains(pattern, "*+") || strings.Contains(pattern, "++") {
		return "patterns are RE2, which needs no atomic groups and no possessive repeats: it never backtracks"
	}
	return "patterns are RE2, see https://golang.org/s/re2syntax"
}

func (c *checker) level(pointer string, level llm.Level) {
	if level != "" && !level.Valid() {
		c.addHint(codeUnknown, pointer, closestHint(string(level), llm.Levels()), "unknown thinking level %q", shorten(string(level)))
	}
}

// closestHint lists the known words, beginning with the one that was probably meant.
func closestHint[W ~string](word string, known []W) string {
	words := make([]string, len(known))
	for i, w := range known {
		words[i] = string(w)
	}
	hint := "known: " + strings.Join(words, ", ")
	if len(words) == 0 {
		hint = "none is known"
	}
	if closest := problem.Closest(word, words); closest != "" {
		hint = fmt.Sprintf("did you mean %q? %s", closest, hint)
	}
	return hint
}

func (c *checker) model() {
	m := c.spec.Model
	_, known := c.spec.Providers[m.Provider]
	switch {
	case m.Provider == "":
		c.add(codeRequired, "/model/provider", "must not be empty")
	case !known && !c.skip("/providers"):
		c.addHint(codeUnknown, "/model/provider", closestHint(m.Provider, sortedKeys(c.spec.Providers)),
			"no provider %q in /providers", shorten(m.Provider))
	}
	c.text("/model/id", m.ID, "the name of the model at its provider")
	c.level("/model/thinking", m.Thinking)
}

func (c *checker) workspace() {
	w := &c.spec.Workspace
	c.directory("/workspace/root", w.Root)
	if len(w.ReadOnly) == 0 {
		c.addHint(codeRequired, "/workspace/readOnly", "its first entry is the directory that searches look in", "must not be empty")
	}
	for i, path := range w.ReadOnly {
		c.directory("/workspace/readOnly/"+strconv.Itoa(i), path)
	}
	c.directory("/workspace/outDir", w.OutDir)
	if w.TmpDir != "" {
		c.directory("/workspace/tmpDir", w.TmpDir)
	}
}

func (c *checker) directory(pointer, path string) {
	switch {
	case strings.TrimSpace(path) == "":
		c.add(codeRequired, pointer, "must not be empty")
	case strings.ContainsRune(path, 0):
		c.add(codeInvalid, pointer, "a path has no NUL character")
	}
}

func (c *checker) limits() {
	l := &c.spec.Limits
	switch t := l.TimeoutSec; {
	case t == 0:
		c.add(codeRequired, "/limits/timeoutSec", "must be a number of seconds above 0; there is no job without a timeout")
	case math.IsNaN(t) || t < 0.001 || t > maxSeconds:
		c.add(codeOutOfRange, "/limits/timeoutSec", "must be from 0.001 to %d seconds, not %v", int64(maxSeconds), t)
	}
	c.optionalLimits("/limits", l)
}

// optionalLimits checks the limits that may be absent.
func (c *checker) optionalLimits(at string, l *Limits) {
	if t := l.IdleTimeoutSec; t != nil && (math.IsNaN(*t) || *t < 0 || *t > maxSeconds) {
		c.add(codeOutOfRange, at+"/idleTimeoutSec", "must be from 0 (off) to %d seconds, not %v", int64(maxSeconds), *t)
	}
	if n := l.MaxTurns; n != nil && (*n < 1 || *n > maxInteger) {
		c.addHint(codeOutOfRange, at+"/maxTurns", "leave it out for no bound", "must be 1 or more, not %d", *n)
	}
	if usd := l.MaxCostUSD; usd != nil && *usd <= 0 {
		c.addHint(codeOutOfRange, at+"/maxCostUsd", "leave it out for no bound", "must be above 0, not %s", llm.MicroUSD(*usd))
	}
}

func (c *checker) context() {
	places := []Place{PlaceSystemEnd, PlaceBeforeTask}
	for i, block := range c.spec.Context {
		pointer := fmt.Sprintf("/context/%d", i)
		c.text(pointer+"/label", block.Label, "it names the block to the model")
		if strings.ContainsFunc(block.Label, isControl) {
			c.add(codeInvalid, pointer+"/label", "must be one line without control characters")
		}
		switch {
		case block.Place == "":
			c.addHint(codeRequired, pointer+"/place", closestHint("", places), "must not be empty")
		case !slices.Contains(places, block.Place):
			c.addHint(codeUnknown, pointer+"/place", closestHint(string(block.Place), places), "unknown place %q", shorten(string(block.Place)))
		case block.Trusted && block.Place != PlaceSystemEnd:
			c.addHint(codeInvalid, pointer+"/trusted", "put it at system-end or leave trusted out",
				"a trusted block cannot stand at %q: messages hold data, not rules", block.Place)
		}
	}
	for i, notice := range c.spec.Notices {
		pointer := fmt.Sprintf("/notices/%d", i)
		c.text(pointer+"/code", notice.Code, "")
		c.text(pointer+"/message", notice.Message, "")
	}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func (c *checker) sampling() {
	s := c.spec.Sampling
	if t := s.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		c.add(codeOutOfRange, "/sampling/temperature", "must be from 0 to 2, not %v", *t)
	}
	if n := s.MaxOutputTokens; n != nil && (*n < 1 || *n > maxInteger) {
		c.add(codeOutOfRange, "/sampling/maxOutputTokens", "must be 1 or more, not %d", *n)
	}
}

// mcp refuses servers without a name or an address; the runtime that connects to them checks the rest.
func (c *checker) mcp() {
	if c.spec.MCP == nil {
		return
	}
	for i, server := range c.spec.MCP.Servers {
		at := pointerTo("/mcp/servers", strconv.Itoa(i))
		c.text(at+"/name", server.Name, "the agent names the tools of the server mcp__<name>__<tool>")
		c.text(at+"/url", server.URL, "the address of the server, http or https")
	}
}

// host refuses lent tools and checks that say too little; the runtime that calls them checks the rest.
func (c *checker) host() {
	for i, h := range c.spec.Host {
		at := pointerTo("/host", strconv.Itoa(i))
		c.text(at+"/name", h.Name, "the agent names the tool by it")
		c.text(at+"/description", h.Description, "it is what the model is told about the tool")
		if len(h.InputSchema) == 0 {
			c.add(codeRequired, at+"/inputSchema", "must not be empty")
		}
		switch h.Effect {
		case "":
			c.add(codeRequired, at+"/effect", "must not be empty")
		default:
			c.oneOf(at+"/effect", h.Effect, "read", "write", "external")
		}
	}
	for i, check := range c.spec.Checks {
		at := pointerTo("/checks", strconv.Itoa(i))
		c.text(at+"/id", check.ID, "it names the check in events")
		c.text(at+"/tool", check.Tool, "the name of an entry of host")
	}
}

// texts finds what JSON cannot carry in a spec that was built in Go: text that is not UTF-8 and raw JSON that is none.
// Parse has refused both.
func (c *checker) texts(pointer string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			c.add(codeEncoding, pointer, "the text has bytes that are not UTF-8")
		}
	case reflect.Pointer:
		if !v.IsNil() {
			c.texts(pointer, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			c.texts(pointer+"/"+name, v.Field(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			c.texts(pointerTo(pointer, key.String()), v.MapIndex(key))
		}
	case reflect.Slice:
		switch {
		case v.Type() == rawMessageType:
			if !v.IsNil() && !json.Valid(v.Bytes()) {
				c.add(codeSyntax, pointer, "not valid JSON")
			}
		case v.Type().Elem().Kind() != reflect.Uint8:
			for i := range v.Len() {
				c.texts(pointer+"/"+strconv.Itoa(i), v.Index(i))
			}
		}
	}
}
