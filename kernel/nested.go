package kernel

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// callNested runs a call that the tool of parent makes. It takes the steps of every call, on the goroutine of its caller;
// the loop guard does not count it, since what a script repeats costs no turn, and its result is not shown to the model.
func (t *thread) callNested(ctx context.Context, parent *call, name string, arguments json.RawMessage) tool.Result {
	wish := &llm.ToolCall{ID: fmt.Sprintf("%s/%d", parent.ID, parent.nested.Add(1)), Name: name, Arguments: arguments}
	c := &call{ToolCall: wish, thread: t, turn: parent.turn, parent: parent, arguments: arguments, tool: t.agent.tools.FindScripted(name)}
	if c.tool == nil {
		c.refuse(codeUnknownTool, fmt.Sprintf("%s cannot be called from a script", cut(name, 100)))
	} else {
		t.prepareArguments(c)
	}
	if c.code == "" && c.waits() {
		c.refuse(codeBlocked, fmt.Sprintf("blocked: %s needs a decision before it runs, which a script cannot wait for; call it directly", c.Name))
	}
	if c.code == "" && ctx.Err() != nil {
		c.refuse(codeNotRun, "not run: the script ended first")
	}
	around := parent.span
	if parent.inner != nil {
		around = parent.inner
	}
	t.announce(c, around)
	if c.code != "" {
		c.result = tool.Errorf("%s", c.reason)
	} else {
		c.result = t.protected(ctx, c)
	}
	c.shape()
	parent.inside.note(&c.result)
	t.report(c)
	return c.result
}
