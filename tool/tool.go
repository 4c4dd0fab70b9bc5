// Package tool holds what a tool is: its declaration, its security boundary, its input schema with coercion and
// validation, and the explicit registry from which an agent's allowlist selects. Tools live in one folder per family
// below this one and know neither models nor the kernel's loop. A tool failure is a Result for the model to read; a Go
// error never leaves a tool.
package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/workspace"
)

// Effect says what a call may change.
type Effect string

// The closed set of effects. Calls of effect read may run in parallel; any other call runs alone, in the model's order.
const (
	// EffectRead changes nothing anywhere.
	EffectRead Effect = "read"
	// EffectWrite changes files of the job's output directory.
	EffectWrite Effect = "write"
	// EffectExternal may change things outside of the job.
	EffectExternal Effect = "external"
)

// Boundary is the security boundary of a tool, for reviewers and for "hozo tools". Each field says in one phrase what the
// tool can reach; "none" must be written out. A tool without a complete boundary cannot be registered.
type Boundary struct {
	// Reads and Writes name the files that the tool can open.
	Reads  string `json:"reads"`
	Writes string `json:"writes"`
	// Network, Processes and Secrets name the connections it makes, the programs it starts and the credentials it sees.
	Network   string `json:"network"`
	Processes string `json:"processes"`
	Secrets   string `json:"secrets"`
}

// Declaration is what a tool says about itself.
type Declaration struct {
	// Name matches [a-z][a-z0-9_]* for kernel tools.
	Name string
	// Description is for the model; it is part of the byte-stable prefix of every request.
	Description string
	// InputSchema is a JSON Schema (draft 2020-12) of type object.
	InputSchema json.RawMessage
	Effect      Effect
	Boundary    Boundary
	// CommandArguments names the string arguments that deny patterns are matched against.
	CommandArguments []string
	// Describe, if not nil, makes the description of a tool whose calls can call others: callees are the declarations of
	// those that this agent's calls can reach (see Env.Nested), in order. Description then stands for the tool where no
	// agent is known. It must return the same bytes for the same callees.
	Describe func(callees []llm.ToolSpec) string
	// Scripted says that Env.Nested may call this tool; its effect must be EffectRead.
	Scripted bool
	// Guard, if not nil, decides about the arguments of a call that fit otherwise: a reason blocks the call, "" lets it run.
	Guard func(arguments json.RawMessage) (reason string)
	// Span names an inner span for the work of a call, "" for none.
	Span string
	// Version is the version of the tool, "" if it has none; a decision about a call covers it.
	Version string
	// Idempotent says that a call which is made again with the same id does no more than the first: after an interruption
	// it is made again instead of being given up.
	Idempotent bool
	// Target, if not nil, returns the one file of the output directory that a call replaces as a whole: after an
	// interruption its content tells whether the call had its effect.
	Target func(arguments json.RawMessage) string
}

// Tool is a declared capability that can run.
type Tool struct {
	Declaration
	// Run does the work of one call. Arguments have been coerced to and validated against InputSchema. It must return
	// when ctx ends; it may be called by several goroutines at once.
	Run func(ctx context.Context, env *Env, arguments json.RawMessage) Result

	compiled *lazySchema
}

// Env is what the kernel lends to a call.
type Env struct {
	Workspace *workspace.Workspace
	// Images says that the model takes images.
	Images bool
	// CallID is the call's id, for temporary names and logs.
	CallID string
	// Nested calls another tool of the agent in the name of this call: one that is Scripted. The call goes through the
	// same steps as any other (validation, deny patterns, events), but its result goes to the caller instead of the
	// model. A tool that cannot be called, or fails, gives a Result with IsError. Several goroutines may call at once;
	// a call ends when ctx does. It is nil for tools without Describe.
	Nested func(ctx context.Context, name string, arguments json.RawMessage) Result
	// Callees are the declarations of the tools that Nested can call, in order.
	Callees []llm.ToolSpec
	// Processes returns what confines the processes of this job, the same for every call; an error says why the job may
	// not start any. It is nil if the runtime lends none.
	Processes func() (*sandbox.Sandbox, error)
}

// Result is the end of a call.
type Result struct {
	// Text goes to the model. The kernel replaces an empty text by a placeholder.
	Text string
	// Images go to the model after Text.
	Images []llm.Image
	// IsError marks a failed call; Text then says what failed and what to do about it.
	IsError bool
	// Structured is the result as a JSON value for scripts, nil if Text is all there is; it never goes to a model.
	Structured json.RawMessage
	// Summary is one line for people, without content of files. Empty means that the kernel makes one.
	Summary string
	// Outputs are the files written.
	Outputs []Output
	// Reads are the lines of files that Text shows.
	Reads []SourceRead
	// Suspended, if not "", says that there is no result yet: the call waits, under this id, until somebody has decided,
	// and is then made again with the same call id. It had no effect so far.
	Suspended string
}

// Output is a file that a call wrote.
type Output struct {
	// Path is relative to the output directory, with slashes.
	Path  string
	Bytes int64
}

// SourceRead is a range of lines that a call showed to the model.
type SourceRead struct {
	// Path is relative to the workspace root, with slashes (see workspace.File.Display), shown by workspace.Escape.
	Path string
	// From and To count from 1; To 0 means the end of the file.
	From, To int64
}

// Errorf returns a failed result with a message in the manner of fmt.Sprintf.
func Errorf(format string, args ...any) Result {
	return Result{IsError: true, Text: fmt.Sprintf(format, args...)}
}

// New makes a tool whose arguments decode into A. It panics on a declaration that is incomplete, since that is a fault of
// the program; Registry.Add checks the same for tools built by hand.
func New[A any](d Declaration, run func(ctx context.Context, env *Env, arguments A) Result) Tool {
	t := Tool{Declaration: d, compiled: &lazySchema{raw: d.InputSchema}}
	t.Run = func(ctx context.Context, env *Env, raw json.RawMessage) Result {
		var a A
		if err := json.Unmarshal(raw, &a); err != nil {
			return Errorf("the arguments do not fit: %v", err)
		}
		return run(ctx, env, a)
	}
	if err := t.check(); err != nil {
		panic(err)
	}
	return t
}
