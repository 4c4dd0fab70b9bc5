package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/tool"
)

const (
	// maxSubagentCalls bounds the calls of subagents in one job.
	maxSubagentCalls = 100
	// maxReportBytes is what a parent sees of the report of a subagent: about 8,000 tokens.
	maxReportBytes = 32_000
)

const subagentSchema = `{"type":"object","properties":{` +
	`"objective":{"type":"string","description":"What is to be found out or done, complete in itself: nothing of this conversation is known there"},` +
	`"context":{"type":"string","description":"What the subagent has to know for it"}},` +
	`"required":["objective"],"additionalProperties":false}`

// subagentTool declares a subagent to the model of its parent.
func subagentTool(a *agent) (tool.Tool, error) {
	return tool.Raw(tool.Declaration{Name: a.name, Description: a.description, InputSchema: json.RawMessage(subagentSchema),
		Effect: tool.EffectExternal,
		Boundary: tool.Boundary{Reads: "what its own tools read", Writes: "what its own tools write", Network: "what its own tools reach",
			Processes: "what its own tools start", Secrets: "those of the job's provider"}},
		func(context.Context, *tool.Env, json.RawMessage) tool.Result {
			return tool.Errorf("a subagent cannot be called from here")
		})
}

// subagentSpec is the spec that the subagent's own job would have. It inherits everything but what the parent was told:
// rules hold for both, data and history stay with the parent.
func subagentSpec(parent *job.Spec, s *job.Subagent) *job.Spec {
	spec := *parent
	spec.Agent, spec.Loop, spec.Subagents = s.Agent, s.Loop, s.Subagents
	spec.History, spec.Notices, spec.Output, spec.Checks, spec.Metadata = nil, nil, nil, nil, nil
	spec.Context = nil
	for _, c := range parent.Context {
		if c.Trusted {
			spec.Context = append(spec.Context, c)
		}
	}
	if s.Agent.Thinking != "" {
		spec.Model.Thinking = ""
	}
	idle := parent.Limits.IdleTimeoutSec
	spec.Limits = job.Limits{}
	if s.Limits != nil {
		spec.Limits = job.Limits(*s.Limits)
	}
	if spec.Limits.IdleTimeoutSec == nil {
		spec.Limits.IdleTimeoutSec = idle
	}
	if spec.Limits.MaxTurns == nil {
		turns := int64(job.DefaultSubagentTurns)
		spec.Limits.MaxTurns = &turns
	}
	return &spec
}

// delegate runs a subagent for one call and returns its report. Whatever ends the subagent alone is an outcome for its
// parent to read; a stop is returned for what leaves nothing more to be answered.
func (t *thread) delegate(c *call) (tool.Result, *stop) {
	var arguments struct{ Objective, Context string }
	if err := json.Unmarshal(c.arguments, &arguments); err != nil {
		return tool.Errorf("the arguments cannot be read: %v", err), nil
	}
	r := t.run
	if r.delegated++; r.delegated > maxSubagentCalls {
		return tool.Errorf("not run: a job calls subagents at most %d times", maxSubagentCalls), nil
	}
	child := t.child(c, &arguments.Objective, arguments.Context)
	cancel := child.limitTime()
	defer cancel()
	if stopped := child.openThread(nil); stopped != nil {
		return child.reported(endOfLoop{}, stopped)
	}
	end, stopped := child.loop()
	return child.reported(end, stopped)
}

// child returns the thread of a call of a subagent.
func (t *thread) child(c *call, objective *string, told string) *thread {
	spec := *c.agent.spec
	spec.Task = *objective
	if strings.TrimSpace(told) != "" {
		spec.Task += "\n\n" + told
	}
	own := *c.agent
	own.spec = &spec
	return &thread{run: t.run, agent: &own, ctx: t.ctx, call: c, id: c.ID, around: c.span,
		ledger: &ledger{parent: t.ledger, maxCost: spec.Limits.MaxCostUSD}}
}

// limitTime gives the thread its own time limit, if it has one.
func (t *thread) limitTime() (cancel func()) {
	limit := t.agent.spec.Limits.TimeoutSec
	if limit <= 0 {
		return func() {}
	}
	ctx, done := context.WithTimeoutCause(t.ctx, seconds(limit), stopf(job.ReasonTimeout, job.CodeTimeout,
		"stopped after the subagent's time limit of %g s", limit))
	t.ctx = ctx
	return done
}

// reported writes what the parent sees of a subagent that has ended.
func (t *thread) reported(end endOfLoop, stopped *stop) (tool.Result, *stop) {
	switch {
	case stopped != nil && stopped.leaves():
		return tool.Result{}, stopped
	case t.run.ctx.Err() != nil: // the parent ends with the same cause
		return tool.Errorf("not finished: the job ended first"), nil
	}
	status, text := "finished", end.answer
	if stopped != nil {
		status, text = string(stopped.reason), stopped.message
		if end.answer != "" {
			text += "\n\n" + end.answer
		}
	}
	total := t.ledger.total
	head := fmt.Sprintf("status: %s\nturns: %d\ncostUsd: %s\n\n", status, total.Turns, total.CostMicroUSD)
	if len(text) > maxReportBytes {
		text = cut(text, maxReportBytes) + fmt.Sprintf("\n\n[cut at %d of %d bytes]", maxReportBytes, len(text))
	}
	return tool.Result{Text: head + text, IsError: stopped != nil, Summary: fmt.Sprintf("%s after %s", status, describeCount(int(total.Turns), "turn"))}, nil
}
