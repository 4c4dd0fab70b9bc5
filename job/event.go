package job

import (
	"encoding/json"
	"time"

	"github.com/hozo-run/hozo/llm"
)

// EventType names what an Event reports.
type EventType string

// The closed set of event types. A reader must ignore types that it does not know: later versions add some.
const (
	EventStarted          EventType = "job.started"
	EventNotice           EventType = "notice"
	EventMessageDelta     EventType = "message.delta"
	EventMessage          EventType = "message"
	EventMessageDiscarded EventType = "message.discarded"
	EventToolCall         EventType = "tool.call"
	EventToolResult       EventType = "tool.result"
	EventOutput           EventType = "output"
	EventSourceRead       EventType = "source.read"
	EventUsage            EventType = "usage"
	EventSpan             EventType = "span"
	EventCompleted        EventType = "job.completed"
	EventFailed           EventType = "job.failed"
	EventSuspended        EventType = "job.suspended"
	EventResumed          EventType = "job.resumed"
	EventCompaction       EventType = "compaction"
	EventStepRecorded     EventType = "step.recorded"
	EventMemoryUpdated    EventType = "memory.updated"
)

// Terminal reports whether an event of this type is the last of its job.
func (t EventType) Terminal() bool { return t == EventCompleted || t == EventFailed }

// Event is one report of a job. Seq counts from 1 without gaps.
type Event struct {
	Seq   int64     `json:"seq"`
	At    time.Time `json:"at"`
	JobID string    `json:"jobId"`
	Type  EventType `json:"type"`
	// ParentCallID is the call in which a nested event happened.
	ParentCallID string `json:"parentCallId,omitempty"`
	// Data is a pointer to the …Data struct of the type; an event read from a stream with an unknown type has a
	// json.RawMessage.
	Data any `json:"data"`

	line []byte // the encoded event, made once by the runtime (see Line)
}

// StartedData is the first event of a job.
type StartedData struct {
	// Runtime is the version of the runtime.
	Runtime string   `json:"runtime"`
	Agent   AgentTag `json:"agent"`
	Model   ModelTag `json:"model"`
	// Tools are the names offered to the model, in the order of the request.
	Tools []string `json:"tools"`
	// Definition and Spec are the digests (SHA-256, hex, over RFC 8785 JSON) of the agent and of the spec without its
	// credentials.
	Definition string                     `json:"definition"`
	Spec       string                     `json:"spec"`
	Metadata   map[string]json.RawMessage `json:"metadata,omitempty"`
}

// AgentTag identifies an agent.
type AgentTag struct {
	ID      string `json:"id"`
	Version string `json:"version"`
}

// ModelTag identifies a model with the level it thinks at.
type ModelTag struct {
	Provider string    `json:"provider"`
	ID       string    `json:"id"`
	Thinking llm.Level `json:"thinking"`
	// Simulated marks a model that is no language model.
	Simulated bool `json:"simulated,omitempty"`
}

// NoticeData is a remark for people: a clamped level, an estimated usage, a protection that is not active.
type NoticeData = Notice

// MessageDeltaData is a piece of the text of a turn. Its borders are not contract: join the pieces of one (turn, try).
type MessageDeltaData struct {
	Turn int64  `json:"turn"`
	Try  int64  `json:"try"`
	Text string `json:"text"`
}

// MessageData is the durable text of a turn.
type MessageData struct {
	Turn int64  `json:"turn"`
	Text string `json:"text"`
	// Final says that this is the answer of the job.
	Final bool `json:"final"`
}

// MessageDiscardedData withdraws the deltas of one try.
type MessageDiscardedData struct {
	Turn int64  `json:"turn"`
	Try  int64  `json:"try"`
	Why  string `json:"why"`
}

// ToolCallData announces a call before it runs, or says why it does not.
type ToolCallData struct {
	CallID string `json:"callId"`
	Turn   int64  `json:"turn"`
	Tool   string `json:"tool"`
	// Input is the argument object; string values above 8 KiB are cut with their length noted.
	Input   json.RawMessage `json:"input"`
	Allowed bool            `json:"allowed"`
	// Code and Reason say why a call is not allowed: "blocked", "unknown-tool", "invalid-arguments", "not-run".
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// ToolResultData is the end of a call; each tool.call has exactly one.
type ToolResultData struct {
	CallID  string `json:"callId"`
	Tool    string `json:"tool"`
	Success bool   `json:"success"`
	// Summary is one line about the result, never its content.
	Summary    string `json:"summary"`
	DurationMS int64  `json:"durationMs"`
	// Bytes is the size of the text that went to the model.
	Bytes int64 `json:"bytes"`
}

// OutputData names a file written to the output directory, relative to it.
type OutputData struct {
	CallID string `json:"callId"`
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
}

// SourceReadData says which lines of a file the model was shown, never their content.
type SourceReadData struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	// Path is relative to the workspace root.
	Path string `json:"path"`
	From int64  `json:"from"`
	// To is null for "to the end of the file".
	To *int64 `json:"to"`
	// Nested marks reads of a script, which the model did not see.
	Nested bool `json:"nested,omitempty"`
}

// UsageData follows each request to a model; Total is the job so far.
type UsageData struct {
	Call  CallUsage  `json:"call"`
	Total TotalUsage `json:"total"`
}

// CallUsage is the usage of one request.
type CallUsage struct {
	ID           string       `json:"id"`
	Purpose      llm.Purpose  `json:"purpose"`
	Model        string       `json:"model"`
	ServedModel  string       `json:"servedModel,omitempty"`
	Tokens       llm.Usage    `json:"tokens"`
	CostMicroUSD llm.MicroUSD `json:"costMicroUsd"`
	// PrefixHash is the digest of the request's stable prefix.
	PrefixHash string `json:"prefixHash"`
	// Estimated marks tokens that the provider did not report.
	Estimated bool `json:"estimated,omitempty"`
	// StartUnixNano and DurationMS say when the request was made and how long it took.
	StartUnixNano int64   `json:"startUnixNano"`
	DurationMS    float64 `json:"durationMs"`
	// Stop is why the response ended, absent if it did not end by itself.
	Stop llm.StopReason `json:"stop,omitempty"`
	// Error is the class of the failure if the response could not be used.
	Error string `json:"error,omitempty"`
	// TextCall says what became of tool calls that the model wrote into its text.
	TextCall *llm.TextCall `json:"textCall,omitempty"`
}

// TotalUsage is the usage of a job so far.
type TotalUsage struct {
	Tokens       llm.Usage    `json:"tokens"`
	CostMicroUSD llm.MicroUSD `json:"costMicroUsd"`
	// Unpriced says that the model has no known price: the cost is then not zero but unknown.
	Unpriced    bool  `json:"unpriced,omitempty"`
	Requests    int64 `json:"requests"`
	Turns       int64 `json:"turns"`
	Compactions int64 `json:"compactions"`
	// ContextPeakPct is the fullest the window has been, in per cent; absent if the window is unknown.
	ContextPeakPct *float64 `json:"contextPeakPct,omitempty"`
}

// SpanData is one settled span. Attributes are counts and names, never content.
type SpanData struct {
	ID            string         `json:"id"`
	ParentID      string         `json:"parentId,omitempty"`
	Name          string         `json:"name"`
	StartUnixNano int64          `json:"startUnixNano"`
	DurationMS    float64        `json:"durationMs"`
	Status        string         `json:"status"`
	Attributes    map[string]any `json:"attributes"`
}

// SuspendedData ends an attempt whose job goes on later: when the calls that wait have been decided, or, without any, when
// there is room for it again.
type SuspendedData struct {
	Waits []Wait `json:"waits"`
}

// Wait is a call that must not run before a decision.
type Wait struct {
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	// Version is the tool's, if it has one.
	Version string `json:"version,omitempty"`
	// Arguments are whole, as the tool would get them.
	Arguments json.RawMessage `json:"arguments"`
	// Hash covers the job, the call, the agent and its version, the tool and its version and the arguments: a decision
	// names it and counts for this one call only.
	Hash   string `json:"hash"`
	WaitID string `json:"waitId"`
}

// ResumedData begins the events of a further attempt.
type ResumedData struct {
	Attempt int64 `json:"attempt"`
	// Turn is the turn in which the job goes on.
	Turn int64 `json:"turn"`
	// VoidFromSeq is the first event of earlier attempts that no longer counts: what it and those after it report had not
	// been recorded and happens again.
	VoidFromSeq int64 `json:"voidFromSeq"`
}

// CompactionData reports that the messages of a dialog were made shorter.
type CompactionData struct {
	Turn int64 `json:"turn"`
	// Reason is "threshold", "overflow" or "length".
	Reason string `json:"reason"`
	// Kind is "prune" if only old tool results were dropped, "summary" if a model wrote a summary, "omission" if old messages
	// were left out because no summary could be had.
	Kind         string `json:"kind"`
	TokensBefore int64  `json:"tokensBefore"`
	TokensAfter  int64  `json:"tokensAfter"`
	// Messages counts the messages that a summary replaced, or the tool results that lost their text or a part of it.
	Messages   int64   `json:"messages"`
	DurationMS float64 `json:"durationMs"`
}

// StepRecordedData reports a step of the working-memory loop.
type StepRecordedData struct {
	Step      int64  `json:"step"`
	CallID    string `json:"callId,omitempty"`
	Objective string `json:"objective"`
	Tool      string `json:"tool"`
	// Status is "ok", "error" or "none" for a step without a call.
	Status string `json:"status"`
	// Bytes is the size of the outcome, Hash its SHA-256 in hex.
	Bytes int64  `json:"bytes"`
	Hash  string `json:"hash"`
}

// MemoryUpdatedData is the working-memory document after a step.
type MemoryUpdatedData struct {
	Step int64 `json:"step"`
	// Mode is "writer", or "fallback" where the writer's document could not be used.
	Mode string `json:"mode"`
	// Why lists what was wrong with the writer's document.
	Why      []string `json:"why,omitempty"`
	Document string   `json:"document"`
	Hash     string   `json:"hash"`
}

// CompletedData ends a job that succeeded.
type CompletedData struct {
	// Summary is the beginning of the answer, at most 4 KiB.
	Summary string `json:"summary"`
	Answer  string `json:"answer"`
	// Output is the typed answer, if the spec asked for one.
	Output json.RawMessage `json:"output,omitempty"`
	// Outputs are the files written, relative to the output directory, sorted.
	Outputs []string `json:"outputs"`
}

// FailedData ends a job that did not succeed.
type FailedData struct {
	Reason  Reason          `json:"reason"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
	// Outputs are the files written until then, relative to the output directory, sorted.
	Outputs []string `json:"outputs"`
}
