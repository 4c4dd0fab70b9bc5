package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/job"
)

// What a person sees of the work inside of calls, of working memories and of dialogs that were made shorter.

// printIn writes a line about what happened inside of a call, indented below the line that names the call.
func (s *show) printIn(parent, line string) {
	if parent != "" && !inside(s.within, parent) {
		head := "call " + visibleLine(parent) // of an earlier attempt, which told what it is
		if c, ok := s.calls[parent]; ok {
			head = strings.TrimSpace(c.tool + " " + c.input)
		}
		s.print(indented(outer(parent), s.style.bold(head)))
	}
	s.within = parent
	s.print(indented(parent, line))
}

// inside reports whether a call is the other one or happened inside of it. The id of a call begins with that of the call
// around it.
func inside(call, other string) bool { return call == other || strings.HasPrefix(call, other+"/") }

// outer is the call around a call, "" if there is none.
func outer(call string) string { return call[:max(strings.LastIndexByte(call, '/'), 0)] }

// indented indents the lines of what happened inside of a call, by two columns for each call around it.
func indented(parent, line string) string {
	if parent == "" {
		return line
	}
	indent := strings.Repeat("  ", strings.Count(parent, "/")+1)
	return indent + strings.ReplaceAll(line, "\n", "\n"+indent)
}

// asks notes the call of a subagent: a call inside of which a model is asked is one. It is counted when it ends or when
// the job does.
func (s *show) asks(call string) {
	if call != "" {
		s.tally.asked[call] = true
	}
}

// answered counts a call that has ended if it was one of a subagent.
func (s *show) answered(call, tool string) {
	if t := &s.tally; t.asked[call] {
		delete(t.asked, call)
		t.subagents[tool]++
	}
}

// step tells of a step of a working memory. The line of its call stands above.
func (s *show) step(d *job.StepRecordedData) string {
	line := fmt.Sprintf("step %d", d.Step)
	if d.Tool != "" {
		line += ", " + visibleLine(d.Tool)
	}
	if d.Status != "ok" {
		line += " (" + visibleLine(d.Status) + ")"
	}
	if d.Objective != "" {
		line += ": " + visibleLine(d.Objective)
	}
	return s.style.dim(line)
}

// memory tells what became of a working memory after a step.
func (s *show) memory(d *job.MemoryUpdatedData) string {
	if d.Mode == "writer" {
		return s.style.dim(fmt.Sprintf("working memory: rewritten, %s bytes", thousands(int64(len(d.Document)))))
	}
	s.tally.folded++
	line := "working memory: the outcome was folded in without the writer"
	var why []string // what was wrong with both tries is told once
	for _, fault := range d.Why {
		if !slices.Contains(why, fault) {
			why = append(why, fault)
		}
	}
	if len(why) > 0 {
		line += ": " + visibleLine(why[0])
	}
	if len(why) > 1 {
		line += fmt.Sprintf(" and %s", count(len(why)-1, "other fault"))
	}
	return s.style.dim(line)
}

// summarizeWork tells of subagents, working memories and dialogs that were made shorter, where there were any.
func (s *show) summarizeWork() {
	t := &s.tally
	for id := range t.asked {
		if c, ok := s.calls[id]; ok {
			s.answered(id, c.tool)
		}
	}
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(t.subagents)) {
		calls = append(calls, fmt.Sprintf("%s (%s)", name, count(t.subagents[name], "call")))
	}
	if len(calls) > 0 {
		fmt.Fprintf(s.err, "  subagents: %s\n", strings.Join(calls, ", "))
	}
	if t.steps > 0 {
		folded := ""
		if t.folded > 0 {
			folded = fmt.Sprintf(", %s without the writer", thousands(int64(t.folded)))
		}
		fmt.Fprintf(s.err, "  working memory: %s%s\n", count(t.steps, "step"), folded)
	}
	if t.usage.Compactions > 0 {
		fmt.Fprintf(s.err, "  compactions: %s\n", thousands(t.usage.Compactions))
	}
}
