// Package scripttool holds codemode, the tool with which a model runs JavaScript that it wrote over the tools that only
// read. A script sees the language, a console and an object "tools"; what it calls goes through the kernel like any other
// call, and only what it returns or prints goes to the model.
//
// The engine never runs in this process. Each script has a process of its own, the same program started again (Child),
// with an empty environment, no file, no network and hardly a system call; it speaks JSON, one message a line, over its
// standard input and output, and is killed when its time is over. Whatever comes out of it is taken for a stranger's: the
// parent counts, bounds and decides. The package is not for code that needs the machine, which is what a shell is for.
package scripttool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// Name is the name of the tool.
const Name = "codemode"

// ChildArgument is the first argument with which a program that offers the tool is started again as its child. Its main
// function must call Child then, before it does anything else.
const ChildArgument = "codemode-child"

// Options say how scripts run. The zero value is what a program wants that calls Child.
type Options struct {
	// Program is the program that is started as the child, an absolute path; "" is the running one.
	Program string
	// Limits bound each script; what is zero has its default.
	Limits Limits
}

// Limits bound one script. Zero stands for the default.
type Limits struct {
	// Time is how long a script may take in all, its calls included; 120 seconds by default.
	Time time.Duration
	// SourceBytes is how long the script may be; 64 KiB by default.
	SourceBytes int
	// HeapBytes is how much memory the script may use; 64 MiB by default.
	HeapBytes int64
	// Calls is how many calls a script may make, 500 by default, and Parallel how many of them run at once, 8 by default;
	// the others wait.
	Calls, Parallel int
	// ResultBytes bounds the result of one call; 1 MiB by default.
	ResultBytes int
	// ConsoleBytes bounds what the script prints; 64 KiB by default.
	ConsoleBytes int
	// OutputTokens bounds what the model gets, by the estimate of llm.EstimateTokens; 8,000 by default.
	OutputTokens int
}

func (l Limits) withDefaults() Limits {
	l.Time = cmp.Or(l.Time, 120*time.Second)
	l.SourceBytes = cmp.Or(l.SourceBytes, 64<<10)
	l.HeapBytes = cmp.Or(l.HeapBytes, 64<<20)
	l.Calls = cmp.Or(l.Calls, 500)
	l.Parallel = cmp.Or(l.Parallel, 8)
	l.ResultBytes = cmp.Or(l.ResultBytes, 1<<20)
	l.ConsoleBytes = cmp.Or(l.ConsoleBytes, 64<<10)
	l.OutputTokens = cmp.Or(l.OutputTokens, 8000)
	return l
}

// sentence tells a model what it has to keep to.
func (l Limits) sentence() string {
	return fmt.Sprintf("Limits: %.0f seconds in all, %d calls, %d at a time, %s of memory, %d tokens of result. Each script starts anew.",
		l.Time.Seconds(), l.Calls, l.Parallel, size(l.HeapBytes), l.OutputTokens)
}

//go:embed codemode.md
var description string

const schema = `{
	"type": "object",
	"properties": {
		"code": {"type": "string", "description": "The body of an async JavaScript function; return what you want to see"}
	},
	"required": ["code"],
	"additionalProperties": false
}`

type arguments struct {
	Code string `json:"code"`
}

// New returns the tool. It is safe to use for any number of jobs at once; it holds nothing between calls.
func New(o Options) tool.Tool {
	o.Limits = o.Limits.withDefaults()
	about := strings.TrimSpace(description) + "\n\n" + o.Limits.sentence()
	return tool.New(tool.Declaration{
		Name:        Name,
		Description: about,
		InputSchema: json.RawMessage(schema),
		Effect:      tool.EffectRead,
		Describe:    func(callees []llm.ToolSpec) string { return about + "\n\n" + declarations(callees) },
		Span:        "hozo.codemode",
		Boundary: tool.Boundary{
			Reads:     "nothing itself; what the tools read, ls, grep, find and read-only tools of servers read for it",
			Writes:    "none",
			Network:   "none itself; the read-only tools of servers have theirs",
			Processes: "one child for each script, the same program confined, without a file, a socket or a descendant",
			Secrets:   "none",
		},
	}, func(ctx context.Context, env *tool.Env, a arguments) tool.Result { return run(ctx, env, o, a.Code) })
}
