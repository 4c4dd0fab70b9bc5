package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// startProblems returns for what in the agent's package the runtime would refuse a job. The rest of the job is made up.
func startProblems(compiled *catalog.Job, rt *kernel.Runtime) problem.List {
	script := job.ProviderConfig{API: job.APIScripted, Script: json.RawMessage(`{"responses":[]}`)}
	spec := &job.Spec{APIVersion: job.APIVersion, Task: "check", Model: job.ModelRef{Provider: job.APIScripted, ID: "model"},
		Providers: map[string]job.ProviderConfig{job.APIScripted: script}}
	compiled.Apply(spec)
	if spec.Limits.TimeoutSec == 0 {
		spec.Limits.TimeoutSec = 1
	}
	given := map[*job.ModelRef]string{}
	for _, model := range catalog.Writers(spec) {
		given[model] = model.Provider
		if model.Provider == "" {
			model.Provider = job.APIScripted
		}
		spec.Providers[model.Provider] = script
	}
	found := compiled.Locate(rt.Check(spec))
	for model, provider := range given {
		model.Provider = provider
	}
	return slices.DeleteFunc(found, func(p problem.Problem) bool {
		// Servers and journals belong to a run. What has no place in the package is made up.
		return p.Path == "" || p.Code == "unknown-server" || p.Code == "journal-missing"
	})
}

// describeJob says in a few lines what a package says of a job beside instructions, skills and tools.
func describeJob(j *catalog.Job) []string {
	if j == nil {
		return nil
	}
	var lines []string
	add := func(what, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("%-11s %s", what, text))
		}
	}
	add("loop", describeLoop(j.Loop))
	lines = append(lines, describeRoster(j.Subagents, "")...)
	add("answer", describeOutput(j.Output))
	if l := j.Limits; l != nil {
		add("limits", describeLimits(l))
	}
	if a := j.Approvals; a != nil {
		var rules []string
		for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
			rules = append(rules, name+" "+a.Tools[name])
		}
		add("approvals", strings.Join(rules, ", "))
	}
	if e := j.ToolErrors; e != nil {
		add("tool errors", fmt.Sprintf("%s to the model (%s)", count(int(e.MaxRetries), "failure"), strings.Join(e.RetryOn, ", ")))
	}
	return lines
}

func describeLoop(l *job.Loop) string {
	if l == nil {
		return ""
	}
	text := l.Kind
	if w := l.Writer; w != nil {
		if w.MaxTokens != nil {
			text += ", at most " + thousands(*w.MaxTokens) + " tokens"
		}
		if w.Model != nil {
			text += ", written by " + strings.TrimPrefix(w.Model.Provider+"/"+w.Model.ID, "/")
		}
		if w.Prompt != "" {
			text += ", with a prompt of its own"
		}
	}
	return text
}

// describeRoster has a line for each subagent, those of a subagent below it.
func describeRoster(roster []job.Subagent, indent string) []string {
	var lines []string
	for i := range roster {
		s := &roster[i]
		var parts []string
		if s.Loop != nil {
			parts = append(parts, describeLoop(s.Loop))
		}
		switch {
		case s.Agent.Tools == nil:
			parts = append(parts, "every kernel tool")
		case len(s.Agent.Tools) == 0:
			parts = append(parts, "no tools")
		default:
			parts = append(parts, "tools "+strings.Join(s.Agent.Tools, " "))
		}
		limits := catalog.Budget{}
		if l := s.Limits; l != nil {
			limits = catalog.Budget{MaxCostUSD: l.MaxCostUSD, MaxTurns: l.MaxTurns, IdleTimeoutSec: l.IdleTimeoutSec}
			if l.TimeoutSec > 0 {
				limits.TimeoutSec = &l.TimeoutSec
			}
		}
		if limits.MaxTurns == nil {
			turns := int64(job.DefaultSubagentTurns)
			limits.MaxTurns = &turns
		}
		parts = append(parts, describeLimits(&limits))
		lines = append(lines, fmt.Sprintf("%-11s %s%s: %s", "subagent", indent, s.Name, strings.Join(parts, "; ")))
		lines = append(lines, describeRoster(s.Subagents, indent+"  ")...)
	}
	return lines
}

func describeOutput(o *job.OutputSchema) string {
	if o == nil {
		return ""
	}
	text := "JSON by a schema"
	if o.Name != "" {
		text = "JSON, " + strconv.Quote(o.Name)
	}
	if o.MaxRepairs != nil {
		text += ", at most " + count(int(*o.MaxRepairs), "repair")
	}
	return text
}

func describeLimits(b *catalog.Budget) string {
	var parts []string
	if b.MaxCostUSD != nil {
		parts = append(parts, "$"+llm.MicroUSD(*b.MaxCostUSD).String())
	}
	if b.MaxTurns != nil {
		parts = append(parts, count(int(*b.MaxTurns), "turn"))
	}
	if b.TimeoutSec != nil {
		parts = append(parts, fmt.Sprintf("%g s", *b.TimeoutSec))
	}
	if b.IdleTimeoutSec != nil {
		parts = append(parts, fmt.Sprintf("%g s without progress", *b.IdleTimeoutSec))
	}
	return strings.Join(parts, ", ")
}
