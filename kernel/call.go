package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

const (
	// maxParallel bounds the read calls of one batch that run at once.
	maxParallel = 8
	// maxResultBytes bounds the text of any result; tools cut theirs sooner and say how to go on.
	maxResultBytes = 64 << 10
	// maxInputString is the longest string that tool.call shows of an argument.
	maxInputString = 8 << 10
	// grace is how long a tool may take to return after the job has ended.
	grace = 3 * time.Second
)

// Codes of calls that are not run; they appear on tool.call.
const (
	codeUnknownTool      = "unknown-tool"
	codeInvalidArguments = "invalid-arguments"
	codeBlocked          = "blocked"
	codeNotRun           = "not-run"
)

// call is one tool call on its way through the kernel. Unknown, invalid, blocked, failing and aborted calls leave by the
// same door as those that succeed: announced once, answered once.
type call struct {
	*llm.ToolCall
	turn int64
	// parent is the call in whose name this one was made, nil for a call of the model.
	parent    *call
	tool      *tool.Tool
	arguments json.RawMessage
	// code and reason are set for a call that must not run.
	code, reason string
	span         *span
	// inner is the span of the tool's own work, nil if it has none.
	inner *span
	start time.Time
	// finished takes the result of the tool once; result is what was taken.
	finished chan tool.Result
	result   tool.Result
	// nested counts the calls made in the name of this one.
	nested atomic.Int64
}

// parentID returns the id of the parent, "" for none.
func (c *call) parentID() string {
	if c.parent == nil {
		return ""
	}
	return c.parent.ID
}

// batch runs the calls of one response and returns the message with their results, in the model's order. Neighbouring
// calls that only read run at the same time; any other call runs alone.
func (r *run) batch(turn int64, wished []*llm.ToolCall, parent *span) (llm.Message, *stop) {
	calls := make([]*call, len(wished))
	for i, c := range wished {
		calls[i] = r.prepare(turn, c)
	}
	results := llm.Message{Role: llm.RoleTool, Parts: make([]llm.Part, 0, len(calls))}
	var stopped *stop
	for len(calls) > 0 {
		n := together(calls)
		if stopped == nil {
			stopped = r.ended()
		}
		for _, c := range calls[:n] {
			if stopped != nil && c.code == "" {
				c.refuse(codeNotRun, "not run: the job ended first")
			}
			r.announce(c, parent)
		}
		r.launch(calls[:n])
		for _, c := range calls[:n] {
			c.result = r.await(c)
			results.Parts = append(results.Parts, r.settle(c))
			if looping := r.repeats.add(c.Name, c.arguments, c.result.Text); looping != nil && stopped == nil {
				stopped = looping
			}
		}
		calls = calls[n:]
	}
	if stopped == nil {
		stopped = r.ended()
	}
	return results, stopped
}

// together returns how many of the next calls may run at the same time.
func together(calls []*call) int {
	for n, c := range calls {
		if c.code == "" && c.tool.Effect != tool.EffectRead {
			return max(n, 1)
		}
	}
	return len(calls)
}

// prepare decides whether a call may run and with which arguments.
func (r *run) prepare(turn int64, wish *llm.ToolCall) *call {
	c := &call{ToolCall: wish, turn: turn, arguments: wish.Arguments, finished: make(chan tool.Result, 1)}
	c.tool = r.plan.tools.Find(wish.Name)
	switch {
	case c.tool == nil:
		c.refuse(codeUnknownTool, r.unknownTool(wish.Name))
	case wish.ArgumentsError != "":
		c.refuse(codeInvalidArguments, "the arguments are not a JSON object: "+wish.ArgumentsError+". Send the call again with valid JSON.")
	default:
		r.prepareArguments(c)
	}
	return c
}

// prepareArguments coerces and validates the arguments of a call and holds its command against the deny patterns.
func (r *run) prepareArguments(c *call) {
	arguments, err := c.tool.PrepareArguments(c.arguments)
	if err != nil {
		c.refuse(codeInvalidArguments, fmt.Sprintf("the arguments do not fit the tool %s:\n%v", c.Name, err))
		return
	}
	c.arguments = arguments
	if pattern := r.plan.denials.Blocks(c.tool, arguments); pattern != "" {
		c.refuse(codeBlocked, fmt.Sprintf("blocked: the command matches the deny pattern %q of this agent", pattern))
		return
	}
	if c.tool.Guard != nil {
		if reason := c.tool.Guard(arguments); reason != "" {
			c.refuse(codeBlocked, "blocked: "+reason)
		}
	}
}

func (r *run) unknownTool(name string) string {
	if r.plan.tools.Len() == 0 {
		return fmt.Sprintf("there is no tool %q: this agent has no tools", cut(name, 100))
	}
	return fmt.Sprintf("there is no tool %q; the tools are: %s", cut(name, 100), strings.Join(r.plan.tools.Names(), ", "))
}

func (c *call) refuse(code, reason string) { c.code, c.reason = code, reason }

func (r *run) announce(c *call, parent *span) {
	c.start = time.Now()
	c.span = r.startSpan(parent, job.SpanTool, map[string]any{"callId": c.ID, "allowed": c.code == ""})
	if c.tool != nil {
		c.span.attributes["tool"] = c.tool.Name
	}
	r.emitIn(c.parentID(), &job.ToolCallData{CallID: c.ID, Turn: c.turn, Tool: c.Name, Input: shownInput(c.arguments), Allowed: c.code == "",
		Code: c.code, Reason: c.reason})
}

// launch starts the calls of a group, at most maxParallel at a time.
func (r *run) launch(calls []*call) {
	slots := make(chan struct{}, maxParallel)
	for _, c := range calls {
		if c.code != "" {
			c.finished <- tool.Result{IsError: true, Text: c.reason}
			continue
		}
		go func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				c.finished <- r.protected(r.ctx, c)
			case <-r.ctx.Done():
				c.finished <- tool.Errorf("not run: the job ended first")
			}
		}()
	}
}

// await returns the result of a call. A tool that does not return after the end of the job is left behind, so that the
// job can end in time.
func (r *run) await(c *call) tool.Result {
	select {
	case result := <-c.finished:
		return result
	case <-r.ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case result := <-c.finished:
		return result
	case <-timer.C:
		return tool.Errorf("the tool did not stop within %s after the end of the job", grace)
	}
}

// protected turns a panic of a tool into a failed call.
func (r *run) protected(ctx context.Context, c *call) (result tool.Result) {
	defer func() {
		if fault := recover(); fault != nil {
			r.emit(&job.Notice{Code: "tool-panic", Message: fmt.Sprintf("the tool %s failed inside: %v", c.tool.Name, fault)})
			result = tool.Errorf("the tool failed inside; calling it again in the same way will not help")
		}
	}()
	if c.tool.Span != "" {
		inner := r.startSpan(c.span, c.tool.Span, map[string]any{"callId": c.ID, "tool": c.tool.Name})
		c.inner = inner
		defer func() { inner.end(!result.IsError, map[string]any{"nestedCalls": c.nested.Load()}) }()
	}
	return c.tool.Run(job.WithCall(ctx, c.ID), r.env(c), c.arguments)
}

// env is what a call is lent.
func (r *run) env(c *call) *tool.Env {
	env := &tool.Env{Workspace: r.plan.workspace, Images: r.plan.model.Images, CallID: c.ID, Processes: r.processes}
	if c.tool.Describe != nil {
		env.Callees = r.plan.tools.Scripted()
		env.Nested = func(ctx context.Context, name string, arguments json.RawMessage) tool.Result {
			return r.callNested(ctx, c, name, arguments)
		}
	}
	return env
}

// settle reports the end of a call of the model and returns its part of the tool message.
func (r *run) settle(c *call) llm.Part {
	r.report(c)
	for _, o := range c.result.Outputs {
		r.outputs[o.Path] = true
	}
	content := []llm.Part{llm.TextPart(c.result.Text)}
	for i := range c.result.Images {
		content = append(content, llm.Part{Type: llm.PartImage, Image: &c.result.Images[i]})
	}
	return llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name,
		Content: content, IsError: c.result.IsError}}
}

// report shapes the text of a result, emits what came of the call and settles its span.
func (r *run) report(c *call) {
	text := strings.ToValidUTF8(c.result.Text, "\uFFFD")
	if len(text) > maxResultBytes {
		text = cut(text, maxResultBytes) + fmt.Sprintf("\n\n[cut at %d of %d bytes]", maxResultBytes, len(text))
	}
	if strings.TrimSpace(text) == "" && len(c.result.Images) == 0 {
		text = "(no output)"
	}
	c.result.Text = text
	success := !c.result.IsError
	// What a guarded tool answers comes from where its arguments go: to send it there again gives nothing away.
	if c.code == "" && c.tool.Guard == nil {
		r.observe(text)
	}
	r.emitIn(c.parentID(), &job.ToolResultData{CallID: c.ID, Tool: c.Name, Success: success, Summary: c.summary(),
		Bytes: int64(len(text)), DurationMS: time.Since(c.start).Milliseconds()})
	for _, o := range c.result.Outputs {
		r.emitIn(c.parentID(), &job.OutputData{CallID: c.ID, Path: o.Path, Bytes: o.Bytes})
	}
	for _, read := range c.result.Reads {
		data := &job.SourceReadData{CallID: c.ID, Tool: c.Name, Path: read.Path, From: read.From, Nested: c.parent != nil}
		if read.To > 0 {
			data.To = &read.To
		}
		r.emitIn(c.parentID(), data)
	}
	c.span.attributes["bytes"] = len(text)
	if c.code != "" {
		c.span.attributes["code"] = c.code
	}
	c.span.end(success, nil)
}

// summary is one line about the result, without its content.
func (c *call) summary() string {
	switch {
	case c.result.Summary != "":
		return c.result.Summary
	case c.result.IsError:
		line, _, _ := strings.Cut(c.result.Text, "\n")
		return cut(line, 200)
	}
	return fmt.Sprintf("%s, %s", describeCount(strings.Count(c.result.Text, "\n")+1, "line"), describeCount(len(c.result.Text), "byte"))
}

// shownInput returns the arguments for the event: long strings are cut, with their length noted.
func shownInput(arguments json.RawMessage) json.RawMessage {
	if arguments == nil {
		return json.RawMessage("null")
	}
	if len(arguments) <= maxInputString {
		return arguments
	}
	var value any
	if json.Unmarshal(arguments, &value) != nil {
		return json.RawMessage("null")
	}
	shown, err := json.Marshal(shorten(value))
	if err != nil {
		return json.RawMessage("null")
	}
	return shown
}

func shorten(value any) any {
	switch v := value.(type) {
	case string:
		if len(v) > maxInputString {
			return cut(v, maxInputString) + fmt.Sprintf("… [cut, %d bytes in all]", len(v))
		}
	case []any:
		for i := range v {
			v[i] = shorten(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = shorten(v[key])
		}
	}
	return value
}
