package workingmemory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/llm"
)

// StepVersion is the version of the step records that this package writes and reads.
const StepVersion = 1

// StepKind says what a step did.
type StepKind string

// The closed set of kinds.
const (
	// KindFunction is a call of a tool of this job.
	KindFunction StepKind = "function"
	// KindMCP is a call of a tool of an MCP server.
	KindMCP StepKind = "mcp"
	// KindSubagent is a call that another agent answered.
	KindSubagent StepKind = "subagent"
	// KindRecall is a look at an earlier step.
	KindRecall StepKind = "recall"
	// KindFinish is the end of the loop, or an attempt to end it.
	KindFinish StepKind = "finish"
	// KindNone is a reply without a call.
	KindNone StepKind = "none"
)

// Status says how the call of a step ended.
type Status string

// The closed set of statuses.
const (
	StatusOK    Status = "ok"
	StatusError Status = "error"
	// StatusUnknown is a call of which nobody knows whether it had its effect: the job's process ended while it ran.
	StatusUnknown Status = "unknown"
	// StatusNone is a step without a call.
	StatusNone Status = "none"
)

// Mode says who wrote the document of a step.
type Mode string

// The closed set of modes.
const (
	ModeWriter   Mode = "writer"
	ModeFallback Mode = "fallback"
)

// Step is the record of one step. It is written twice: when the call has answered, without the fields from After on, and
// again when the document has been rewritten. The document and the number of the step are all that the next step needs.
type Step struct {
	V int   `json:"v"`
	N int64 `json:"n"`
	// ParentStep is the step of the calling agent, for a step of a subagent.
	ParentStep int64  `json:"parentStep,omitempty"`
	Agent      string `json:"agent"`
	// CallID is the call of the step, "" if there was none.
	CallID    string          `json:"callId,omitempty"`
	Objective string          `json:"objective,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Kind      StepKind        `json:"kind"`
	Arguments json.RawMessage `json:"args,omitempty"`
	Output    Output          `json:"output"`
	Status    Status          `json:"status"`
	// Source is "structured" for a call that the provider reported as one, or "text:<format>" for one read from text.
	Source string `json:"source,omitempty"`
	// Dropped are the further calls of the same reply, none of which ran.
	Dropped   []DroppedCall `json:"droppedCalls,omitempty"`
	StartedAt time.Time     `json:"startedAt"`
	// DurationMS is the time from the request of the step to the answer of its call.
	DurationMS int64 `json:"durationMs"`
	// Usage and CostMicroUSD are those of the step so far: in the second record the writer is included.
	Usage        llm.Usage    `json:"usage"`
	CostMicroUSD llm.MicroUSD `json:"costMicroUsd"`
	// Before is the hash of the document that the step was shown.
	Before string `json:"stmBefore"`

	// After is the hash of the document that the step left, Document the document.
	After    string `json:"stmAfter,omitempty"`
	Document string `json:"document,omitempty"`
	Mode     Mode   `json:"stm,omitempty"`
	// Tries counts the requests to the writer.
	Tries int `json:"writerTries,omitempty"`
	// Why lists what was wrong with the writer's documents, also with one that a second try replaced.
	Why []string `json:"why,omitempty"`
	// LeftOut is what the writer says it dropped.
	LeftOut string `json:"leftOut,omitempty"`
}

// DroppedCall is a call that was asked for together with another one and did not run.
type DroppedCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"args,omitempty"`
}

// Output is the whole outcome of a step. Text is "" for one that is larger than MaxInlineBytes: it then stands under
// SHA256 where whoever keeps the record keeps large texts.
type Output struct {
	Text   string `json:"text,omitempty"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// OutputOf returns the record of an outcome.
func OutputOf(text string) Output {
	sum := sha256.Sum256([]byte(text))
	o := Output{Bytes: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
	if len(text) <= MaxInlineBytes {
		o.Text = text
	}
	return o
}

// Inline reports whether Text is the whole outcome.
func (o Output) Inline() bool { return o.Bytes == int64(len(o.Text)) }

// Settled reports whether the document of the step is known, so that a job that goes on begins with the next step. With an
// outcome and no document only the writer is asked again.
func (s Step) Settled() bool { return s.After != "" }

// Rewritten returns the second record of a step.
func (s Step) Rewritten(document Document, mode Mode) Step {
	s.Document, s.Mode = document.String(), mode
	s.After = document.Hash()
	return s
}

// ParseStep reads a step record. It returns an error for another version and for a document that does not have the
// recorded hash.
func ParseStep(text []byte) (Step, error) {
	var s Step
	if err := json.Unmarshal(text, &s); err != nil {
		return Step{}, fmt.Errorf("step record: %w", err)
	}
	switch {
	case s.V != StepVersion:
		return Step{}, fmt.Errorf("step record %d has version %d; this program reads version %d", s.N, s.V, StepVersion)
	case s.N < 1:
		return Step{}, fmt.Errorf("step record %d: steps count from 1", s.N)
	}
	sum := sha256.Sum256([]byte(s.Document))
	if s.Settled() && hex.EncodeToString(sum[:]) != s.After {
		return Step{}, fmt.Errorf("step record %d: the document does not have the recorded hash", s.N)
	}
	return s, nil
}
