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
	codeRejected         = "rejected"
	codeNotRun           = "not-run"
)

// call is one tool call on its way through the kernel. Unknown, invalid, blocked, failing and aborted calls leave by the
// same door as those that succeed: announced once, answered once.
type call struct {
	*llm.ToolCall
	thread *thread
	turn   int64
	// parent is the call in whose name this one was made, nil for a call of the model.
	parent *call
	tool   *tool.Tool
	// agent is the subagent that the call is for, nil if the tool is none.
	agent     *agent
	arguments json.RawMessage
	// code and reason are set for a call that must not run.
	code, reason string
	// recalled says that an earlier attempt has recorded the start of the call, and before what its file was then.
	recalled bool
	before   string
	// started says that the call is under way, again that it may be although an earlier attempt began it.
	started, again bool
	// decided says that nobody has to be asked about the call any more.
	decided bool
	span    *span
	// inner is the span of the tool's own work, nil if it has none.
	inner *span
	start time.Time
	// finished takes the result of the tool once; result is what was taken.
	finished chan tool.Result
	result   tool.Result
	// interrupted says that nobody knows whether the call had its effect.
	interrupted bool
	// nested counts the calls made in the name of this one; inside are the files that they touched.
	nested atomic.Int64
	inside touched
}

// parentID returns the id of the call that this one happened in, "" for none.
func (c *call) parentID() string {
	if c.parent == nil {
		return c.thread.id
	}
	return c.parent.ID
}

// batch runs the calls of one response.
func (t *thread) batch(wished []*llm.ToolCall, parent *span) (llm.Message, *stop) {
	calls := make([]*call, len(wished))
	for i, c := range wished {
		calls[i] = t.prepare(c)
	}
	return t.perform(calls, parent)
}

// perform runs prepared calls and returns the message with their results, in the model's order. Neighbouring calls that
// only read run at the same time; any other call runs alone. After a stop that leaves the job open there are no results.
func (t *thread) perform(calls []*call, parent *span) (llm.Message, *stop) {
	results := llm.Message{Role: llm.RoleTool, Parts: make([]llm.Part, 0, len(calls))}
	var stopped *stop
	for len(calls) > 0 {
		if stopped == nil {
			if stopped = t.rest(); stopped == nil {
				stopped = t.decide(calls)
			}
		}
		n := t.together(calls)
		if left := t.group(calls[:n], parent, &stopped, &results); left != nil {
			return results, left
		}
		calls = calls[n:]
	}
	if stopped == nil {
		stopped = t.ended()
	}
	return results, stopped
}

// group runs calls that may run at the same time and adds their results. stopped is why they, and those after them, do not
// run, nil if they do. It returns a stop after which nothing more can be answered.
func (t *thread) group(calls []*call, parent *span, stopped **stop, results *llm.Message) *stop {
	if *stopped != nil && (*stopped).leaves() {
		return *stopped
	}
	for i, c := range calls {
		if *stopped != nil && c.code == "" {
			c.refuse(codeNotRun, "not run: the job ended first")
		}
		if left := t.recordStart(c, len(calls)-i); left != nil {
			return left
		}
		t.announce(c, parent)
	}
	if left := t.launch(calls); left != nil {
		return left
	}
	for _, c := range calls {
		if left := t.conclude(c); left != nil {
			return left
		}
		results.Parts = append(results.Parts, t.settle(c))
		looping := t.repeats.add(c.Name, c.arguments, c.result.Text)
		if looping == nil {
			looping = t.countFault(c)
		}
		if looping != nil && *stopped == nil {
			*stopped = looping
		}
	}
	return nil
}

// together returns how many of the next calls may run at the same time: as many as did, where that is recorded.
func (t *thread) together(calls []*call) int {
	var recorded job.CallStartedFrame
	if t.run.record.peek(job.FrameCallStarted, &recorded) && recorded.Group > 0 {
		return min(recorded.Group, len(calls))
	}
	for n, c := range calls {
		if c.code == "" && (c.tool.Effect != tool.EffectRead || n > 0 && c.waits()) {
			return max(n, 1)
		}
	}
	return len(calls)
}

// prepare decides whether a call may run and with which arguments.
func (t *thread) prepare(wish *llm.ToolCall) *call {
	c := &call{ToolCall: wish, thread: t, turn: t.turn, arguments: wish.Arguments, finished: make(chan tool.Result, 1)}
	c.tool, c.agent = t.agent.tools.Find(wish.Name), t.agent.find(wish.Name)
	switch {
	case c.tool == nil:
		c.refuse(codeUnknownTool, t.unknownTool(wish.Name))
	case wish.ArgumentsError != "":
		c.refuse(codeInvalidArguments, "the arguments are not a JSON object: "+wish.ArgumentsError+". Send the call again with valid JSON.")
	default:
		t.prepareArguments(c)
	}
	return c
}

// prepareArguments coerces and validates the arguments of a call and holds its command against the deny patterns.
func (t *thread) prepareArguments(c *call) {
	arguments, err := c.tool.PrepareArguments(c.arguments)
	if err != nil {
		c.refuse(codeInvalidArguments, fmt.Sprintf("the arguments do not fit the tool %s:\n%v", c.Name, err))
		return
	}
	c.arguments = arguments
	if pattern := t.agent.denials.Blocks(c.tool, arguments); pattern != "" {
		c.refuse(codeBlocked, fmt.Sprintf("blocked: the command matches the deny pattern %q of this agent", pattern))
		return
	}
	if c.tool.Guard != nil {
		if reason := c.tool.Guard(arguments); reason != "" {
			c.refuse(codeBlocked, "blocked: "+reason)
		}
	}
}

func (t *thread) unknownTool(name string) string {
	if t.agent.tools.Len() == 0 {
		return fmt.Sprintf("there is no tool %q: this agent has no tools", cut(name, 100))
	}
	return fmt.Sprintf("there is no tool %q; the tools are: %s", cut(name, 100), strings.Join(t.agent.tools.Names(), ", "))
}

// took is how long a call has run.
func (c *call) took() time.Duration { return time.Since(c.start) }

func (c *call) refuse(code, reason string) { c.code, c.reason = code, reason }

func (t *thread) announce(c *call, parent *span) {
	c.start = time.Now()
	c.span = t.run.startSpan(parent, job.SpanTool, map[string]any{"callId": c.ID, "allowed": c.code == ""})
	if c.tool != nil {
		c.span.attributes["tool"] = c.tool.Name
	}
	t.run.emitIn(c.parentID(), &job.ToolCallData{CallID: c.ID, Turn: c.turn, Tool: c.Name, Input: shownInput(c.arguments), Allowed: c.code == "",
		Code: c.code, Reason: c.reason})
}

// launch starts the calls of a group, at most maxParallel at a time. While earlier frames are left, each call waits for
// its turn in conclude.
func (t *thread) launch(calls []*call) *stop {
	if t.run.record.replaying() {
		return nil
	}
	for _, c := range calls {
		if c.code == "" && c.tool.Effect != tool.EffectRead {
			if failed := t.run.record.settle(); failed != nil {
				return failed
			}
		}
	}
	slots := make(chan struct{}, maxParallel)
	for _, c := range calls {
		if c.agent == nil && !c.recalled {
			t.start(c, slots)
		}
	}
	return nil
}

// start begins the work of one call.
func (t *thread) start(c *call, slots chan struct{}) {
	c.started = true
	if c.code != "" {
		c.finished <- tool.Result{IsError: true, Text: c.reason}
		return
	}
	go func() {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			c.finished <- t.protected(t.ctx, c)
		case <-t.ctx.Done():
			c.finished <- tool.Errorf("not run: the job ended first")
		}
	}()
}

// await returns the result of a call. A tool that does not return after the end of the job is left behind, so that the
// job can end in time.
func (t *thread) await(c *call) tool.Result {
	select {
	case result := <-c.finished:
		return result
	case <-t.ctx.Done():
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
func (t *thread) protected(ctx context.Context, c *call) (result tool.Result) {
	defer func() {
		if fault := recover(); fault != nil {
			t.run.emit(&job.Notice{Code: "tool-panic", Message: fmt.Sprintf("the tool %s failed inside: %v", c.tool.Name, fault)})
			result = tool.Errorf("the tool failed inside; calling it again in the same way will not help")
		}
	}()
	if c.tool.Span != "" {
		inner := t.run.startSpan(c.span, c.tool.Span, map[string]any{"callId": c.ID, "tool": c.tool.Name})
		c.inner = inner
		defer func() { inner.end(!result.IsError, map[string]any{"nestedCalls": c.nested.Load()}) }()
	}
	return c.tool.Run(job.WithCall(ctx, c.ID), t.env(c), c.arguments)
}

// env is what a call is lent.
func (t *thread) env(c *call) *tool.Env {
	env := &tool.Env{Workspace: t.run.plan.workspace, Images: t.agent.model.Images, CallID: c.ID, Processes: t.run.processes}
	if c.tool.Describe != nil {
		env.Callees = t.agent.tools.Scripted()
		env.Nested = func(ctx context.Context, name string, arguments json.RawMessage) tool.Result {
			return t.callNested(ctx, c, name, arguments)
		}
	}
	return env
}

// settle reports the end of a call of the model and returns its part of the tool message.
func (t *thread) settle(c *call) llm.Part {
	t.report(c)
	for _, o := range c.result.Outputs {
		t.run.outputs[o.Path] = true
	}
	t.short.files.note(&c.result)
	inside, _ := c.inside.lists()
	t.short.files.noteRead(inside)
	content := []llm.Part{llm.TextPart(c.result.Text)}
	for i := range c.result.Images {
		content = append(content, llm.Part{Type: llm.PartImage, Image: &c.result.Images[i]})
	}
	return llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: c.ID, ProviderID: c.ProviderID, Name: c.Name,
		Content: content, IsError: c.result.IsError}}
}

// shape makes the text of a result one that every model takes.
func (c *call) shape() {
	text := strings.ToValidUTF8(c.result.Text, "\uFFFD")
	if len(text) > maxResultBytes {
		text = cut(text, maxResultBytes) + fmt.Sprintf("\n\n[cut at %d of %d bytes]", maxResultBytes, len(text))
	}
	if strings.TrimSpace(text) == "" && len(c.result.Images) == 0 {
		text = "(no output)"
	}
	c.result.Text = text
}

// report emits what came of the call and settles its span.
func (t *thread) report(c *call) {
	r, text := t.run, c.result.Text
	success := !c.result.IsError
	// What a guarded tool answers comes from where its arguments go: to send it there again gives nothing away.
	if c.code == "" && c.tool != nil && c.tool.Guard == nil {
		r.observe(text)
	}
	r.emitIn(c.parentID(), &job.ToolResultData{CallID: c.ID, Tool: c.Name, Success: success, Summary: c.summary(),
		Bytes: int64(len(text)), DurationMS: c.took().Milliseconds()})
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
