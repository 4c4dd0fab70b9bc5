package job

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	maxRepairs    = 10
	maxToolErrors = 10
	// minWriterTokens is the smallest document that has room for its headings and an objective.
	minWriterTokens = 256
)

func (c *checker) output() {
	o := c.spec.Output
	if o == nil {
		return
	}
	var schema map[string]any
	switch {
	case len(o.Schema) == 0:
		c.add(codeRequired, "/output/schema", "must be a JSON Schema")
	case json.Unmarshal(o.Schema, &schema) != nil || schema == nil:
		c.add(codeInvalid, "/output/schema", "must be a JSON Schema, which is an object")
	}
	if strings.ContainsFunc(o.Name, isControl) {
		c.add(codeInvalid, "/output/name", "must be one line without control characters")
	}
	if n := o.MaxRepairs; n != nil && (*n < 0 || *n > maxRepairs) {
		c.add(codeOutOfRange, "/output/maxRepairs", "must be from 0 to %d, not %d", maxRepairs, *n)
	}
}

func (c *checker) toolErrors() {
	e := c.spec.ToolErrors
	if e == nil {
		return
	}
	if e.MaxRetries < 0 || e.MaxRetries > maxToolErrors {
		c.add(codeOutOfRange, "/toolErrors/maxRetries", "must be from 0 to %d, not %d", maxToolErrors, e.MaxRetries)
	}
	kinds := []string{"invalid-arguments", "unknown-tool", ToolErrorFailed}
	for i, kind := range e.RetryOn {
		at := fmt.Sprintf("/toolErrors/retryOn/%d", i)
		switch {
		case !slices.Contains(kinds, kind):
			c.addHint(codeUnknown, at, closestHint(kind, kinds), "unknown kind %q", shorten(kind))
		case slices.Contains(e.RetryOn[:i], kind):
			c.add(codeDuplicate, at, "%q is listed twice", kind)
		}
	}
}

func (c *checker) approvals() {
	if c.spec.Approvals == nil {
		return
	}
	when := []string{ApproveNever, ApproveFirstUse, ApproveAlways}
	for _, name := range sortedKeys(c.spec.Approvals.Tools) {
		value, at := c.spec.Approvals.Tools[name], pointerTo("/approvals/tools", name)
		if strings.TrimSpace(name) == "" {
			c.add(codeRequired, at, "a tool has a name")
		}
		if !slices.Contains(when, value) {
			c.addHint(codeUnknown, at, closestHint(value, when), "unknown rule %q", shorten(value))
		}
	}
}

func (c *checker) loop(at string, l *Loop) {
	if l == nil {
		return
	}
	kinds := []string{LoopTranscript, LoopWorkingMemory}
	switch {
	case l.Kind == "":
		c.addHint(codeRequired, at+"/kind", closestHint("", kinds), "must not be empty")
	case !slices.Contains(kinds, l.Kind):
		c.addHint(codeUnknown, at+"/kind", closestHint(l.Kind, kinds), "unknown loop %q", shorten(l.Kind))
	case l.Kind == LoopTranscript && l.Writer != nil:
		c.addHint(codeInvalid, at+"/writer", "leave it out", "a transcript loop has no writer")
	}
	if l.Writer == nil {
		return
	}
	if n := l.Writer.MaxTokens; n != nil && (*n < minWriterTokens || *n > maxInteger) {
		c.add(codeOutOfRange, at+"/writer/maxTokens", "must be %d or more, not %d", minWriterTokens, *n)
	}
	if m := l.Writer.Model; m != nil {
		if _, known := c.spec.Providers[m.Provider]; !known && !c.skip("/providers") {
			c.addHint(codeUnknown, at+"/writer/model/provider", closestHint(m.Provider, sortedKeys(c.spec.Providers)),
				"no provider %q in /providers", shorten(m.Provider))
		}
		c.text(at+"/writer/model/id", m.ID, "the name of the model at its provider")
		c.level(at+"/writer/model/thinking", m.Thinking)
	}
}

// toolName reports whether every model service takes the name.
func toolName(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

func (c *checker) subagents(at string, roster []Subagent, depth int) {
	switch {
	case len(roster) == 0:
		return
	case depth > MaxSubagentDepth:
		c.add(codeOutOfRange, at, "rosters may be %d deep, and this one is deeper", MaxSubagentDepth)
		return
	case len(roster) > MaxSubagents:
		c.add(codeTooMany, at, "has %d entries; at most %d are allowed", len(roster), MaxSubagents)
		return
	}
	first := map[string]int{}
	for i := range roster {
		s, pointer := &roster[i], fmt.Sprintf("%s/%d", at, i)
		switch before, twice := first[s.Name]; {
		case s.Name == "":
			c.add(codeRequired, pointer+"/name", "must not be empty")
		case !toolName(s.Name):
			c.addHint(codeInvalid, pointer+"/name", "letters, digits, hyphens and underscores, at most 64", "%q is no name for a tool", shorten(s.Name))
		case strings.HasPrefix(s.Name, "mcp__"):
			c.addHint(codeNameReserved, pointer+"/name", "names that begin with mcp__ belong to the tools of MCP servers", "the name %q is reserved", s.Name)
		case twice:
			c.add(codeDuplicate, pointer+"/name", "the subagent %q is given twice, first at %s/%d", s.Name, at, before)
		default:
			first[s.Name] = i
		}
		c.text(pointer+"/description", s.Description, "it tells the model what the subagent is for")
		c.agent(pointer+"/agent", &s.Agent)
		c.loop(pointer+"/loop", s.Loop)
		if l := s.Limits; l != nil {
			if t := l.TimeoutSec; t != 0 && (math.IsNaN(t) || t < 0.001 || t > maxSeconds) {
				c.addHint(codeOutOfRange, pointer+"/limits/timeoutSec", "leave it out for the job's own", "must be from 0.001 to %d seconds, not %v", int64(maxSeconds), t)
			}
			c.optionalLimits(pointer+"/limits", (*Limits)(l))
		}
		c.subagents(pointer+"/subagents", s.Subagents, depth+1)
	}
}

func (c *checker) resume() {
	r := c.spec.Resume
	if r == nil {
		return
	}
	least := int64(2)
	if r.Fork {
		least = 1
	}
	if r.Attempt < least || r.Attempt > maxInteger {
		c.addHint(codeOutOfRange, "/resume/attempt", "attempts are counted from 1, and the first resumes nothing", "must be %d or more, not %d", least, r.Attempt)
	}
	if r.NextSeq < 1 || r.NextSeq > maxInteger {
		c.add(codeOutOfRange, "/resume/nextSeq", "must be 1 or more, not %d", r.NextSeq)
	}
	verdicts := []string{VerdictApprove, VerdictReject, VerdictWithdraw}
	for i, d := range r.Decisions {
		at := fmt.Sprintf("/resume/decisions/%d", i)
		c.text(at+"/waitId", d.WaitID, "the wait that is decided")
		c.text(at+"/hash", d.Hash, "the hash of the wait: a decision counts for one exact call")
		if !slices.Contains(verdicts, d.Verdict) {
			c.addHint(codeUnknown, at+"/verdict", closestHint(d.Verdict, verdicts), "unknown verdict %q", shorten(d.Verdict))
		}
		if len(d.Arguments) > 0 && d.Verdict != VerdictApprove {
			c.add(codeInvalid, at+"/arguments", "only an approval can change the arguments")
		}
	}
}
