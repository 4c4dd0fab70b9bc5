package job

import (
	"encoding/json"
	"fmt"

	"github.com/hozo-run/hozo/llm"
)

// FrameVersion is the version of the frames that this package writes and reads.
const FrameVersion = 1

// FrameType names what a Frame records.
type FrameType string

// The closed set of frame types.
const (
	// FrameSpec is the first frame of a journal.
	FrameSpec FrameType = "spec"
	// FrameLists records what was offered to a model and by which rules it was asked, once for the agent of the job and
	// once for each call of a subagent.
	FrameLists FrameType = "lists"
	// FrameMessage records one request to a model and what came back.
	FrameMessage FrameType = "message"
	// FrameCallDecided records a decision about a call that had to wait for one.
	FrameCallDecided FrameType = "call.decided"
	// FrameCallStarted is stored before a call that does not only read has any effect.
	FrameCallStarted FrameType = "call.started"
	// FrameCallFinished records what a call answered.
	FrameCallFinished FrameType = "call.finished"
	// FrameStep records a step of the working-memory loop, first when its call has answered and again when the document
	// has been rewritten.
	FrameStep FrameType = "step"
	// FrameCompaction records the shorter messages that replace a dialog.
	FrameCompaction FrameType = "compaction"
	// FrameCheckpoint records which files of the output directory a call changed; it comes before the call.finished of
	// that call.
	FrameCheckpoint FrameType = "checkpoint"
	// FrameSuspended ends an attempt that waits.
	FrameSuspended FrameType = "suspended"
	// FrameOutcome is the last frame of a journal.
	FrameOutcome FrameType = "outcome"
)

// Frame is one line of a job's journal: a private record, with content, of everything that the job took from outside.
// Together the frames are enough to run the job again up to their end without asking a model or a tool.
type Frame struct {
	V int `json:"v"`
	// N counts the frames from 1 without gaps, over all attempts.
	N int64 `json:"n"`
	// Seq is the number of the last event that was emitted before the frame. A frame is stored only when the events up to
	// there are.
	Seq int64 `json:"seq"`
	// ActiveMS is how long the attempts of the job have run until the frame.
	ActiveMS int64     `json:"activeMs"`
	Type     FrameType `json:"type"`
	// Data is one of the …Frame structs below.
	Data json.RawMessage `json:"data"`
}

// ParseFrame reads one line of a journal. The error says why it is none of this version.
func ParseFrame(line []byte) (Frame, error) {
	var f Frame
	if err := json.Unmarshal(line, &f); err != nil {
		return Frame{}, fmt.Errorf("journal frame: %w", err)
	}
	if f.V != FrameVersion {
		return Frame{}, fmt.Errorf("journal frame %d has version %d; this program reads version %d", f.N, f.V, FrameVersion)
	}
	return f, nil
}

// SpecFrame is what the job was asked for.
type SpecFrame struct {
	// Runtime is the version of the runtime that wrote the frame.
	Runtime string `json:"runtime"`
	JobID   string `json:"jobId"`
	// Digest is Spec.Digest.
	Digest string `json:"digest"`
	// Spec is the document without resume and without credentials (see Spec.Bare).
	Spec json.RawMessage `json:"spec"`
	// Notices are the remarks that were emitted when the job began.
	Notices []Notice `json:"notices,omitempty"`
}

// ListsFrame is what a model was offered.
type ListsFrame struct {
	// Thread is the call of the subagent, "" for the agent of the job.
	Thread   string         `json:"thread,omitempty"`
	Provider string         `json:"provider"`
	Model    llm.Model      `json:"model"`
	Thinking llm.Level      `json:"thinking"`
	Tools    []llm.ToolSpec `json:"tools"`
	// System and JobSystem are the two parts of the system prompt.
	System    string `json:"system"`
	JobSystem string `json:"jobSystem"`
}

// MessageFrame is one request and its end.
type MessageFrame struct {
	Thread  string      `json:"thread,omitempty"`
	Turn    int64       `json:"turn"`
	Try     int64       `json:"try"`
	Purpose llm.Purpose `json:"purpose"`
	// Request is the digest of what was sent; it is empty if the job was forked from another one, which had sent it.
	Request RequestTag `json:"request"`
	// Response is what had arrived when the request ended.
	Response llm.Response `json:"response"`
	// Fault is set if the response could not be used.
	Fault *Fault `json:"fault,omitempty"`
	// Received counts the bytes of all pieces of the response, for the estimate of its usage.
	Received      int     `json:"received"`
	StartUnixNano int64   `json:"startUnixNano"`
	DurationMS    float64 `json:"durationMs"`
}

// RequestTag identifies the bytes of a request.
type RequestTag struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	// SHA256 is the digest of the body, in hex.
	SHA256 string `json:"sha256"`
}

// Fault is why a response could not be used, and how the job ends if it is not asked for again.
type Fault struct {
	Class     string          `json:"class"`
	Retryable bool            `json:"retryable,omitempty"`
	Empty     bool            `json:"empty,omitempty"`
	WaitMS    int64           `json:"waitMs,omitempty"`
	Reason    Reason          `json:"reason"`
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Details   json.RawMessage `json:"details,omitempty"`
}

// CallDecidedFrame is a decision that was taken.
type CallDecidedFrame struct {
	CallID string `json:"callId"`
	Decision
}

// CallStartedFrame is a call that is about to run, or that is refused.
type CallStartedFrame struct {
	CallID       string `json:"callId"`
	ParentCallID string `json:"parentCallId,omitempty"`
	Turn         int64  `json:"turn"`
	Tool         string `json:"tool"`
	Version      string `json:"version,omitempty"`
	// Effect is that of the tool ("read", "write", "external"), or EffectSubagent: what such a call did is in the frames of
	// its own calls.
	Effect string `json:"effect,omitempty"`
	// Group is how many calls, this one counted, run at the same time from here on.
	Group int `json:"group"`
	// Arguments are those that the tool gets, after coercion.
	Arguments json.RawMessage `json:"arguments"`
	// Code and Reason are those of a call that does not run.
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Before identifies the file that the call is about to change: its SHA-256 in hex, "absent", or "" for a call that
	// does not say.
	Before string `json:"before,omitempty"`
}

// EffectSubagent is the effect of a call that runs a subagent.
const EffectSubagent = "subagent"

// CallFinishedFrame is the answer of a call.
type CallFinishedFrame struct {
	CallID       string `json:"callId"`
	ParentCallID string `json:"parentCallId,omitempty"`
	Text         string `json:"text"`
	IsError      bool   `json:"isError,omitempty"`
	// Interrupted says that an attempt ended while the call ran, so that nobody knows whether it had its effect.
	Interrupted bool `json:"interrupted,omitempty"`
	// Code is why a check of the answer, whose call is "check.<turn>", did not let it pass.
	Code    string       `json:"code,omitempty"`
	Summary string       `json:"summary,omitempty"`
	Images  []llm.Image  `json:"images,omitempty"`
	Outputs []OutputFile `json:"outputs,omitempty"`
	Reads   []ReadRange  `json:"reads,omitempty"`
	// NestedReads are the files that calls inside of the call read, in order.
	NestedReads []string `json:"nestedReads,omitempty"`
	DurationMS  int64    `json:"durationMs"`
}

// OutputFile is a file that a call wrote, relative to the output directory.
type OutputFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// ReadRange is a range of lines that a call read; To is 0 for the end of the file.
type ReadRange struct {
	Path string `json:"path"`
	From int64  `json:"from"`
	To   int64  `json:"to,omitempty"`
}

// StepFrame is a step of the working-memory loop; Step is the record that kernel/workingmemory defines.
type StepFrame struct {
	Thread string          `json:"thread,omitempty"`
	Step   json.RawMessage `json:"step"`
}

// CompactionFrame is a dialog made shorter.
type CompactionFrame struct {
	Thread string `json:"thread,omitempty"`
	CompactionData
	// Replaced are all messages of the dialog from there on.
	Replaced []llm.Message `json:"replaced"`
	// State is what the next compaction has to know of this one.
	State json.RawMessage `json:"state,omitempty"`
}

// CheckpointFrame says what a call changed in the output directory. Whoever stores the frame copies the files first, each
// only if it is a regular file with this digest.
type CheckpointFrame struct {
	CallID  string           `json:"callId,omitempty"`
	Turn    int64            `json:"turn"`
	Files   []CheckpointFile `json:"files"`
	Removed []string         `json:"removed,omitempty"`
	Total   TotalUsage       `json:"total"`
}

// CheckpointFile is a file of the output directory, with its path relative to it.
type CheckpointFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Hash is the SHA-256 of the content, in hex.
	Hash string `json:"hash"`
	// Executable says that its owner may run it.
	Executable bool `json:"executable,omitempty"`
}

// SuspendedFrame is why an attempt ended before the job did.
type SuspendedFrame struct {
	SuspendedData
}

// OutcomeFrame is the end of the job; one of the two is set.
type OutcomeFrame struct {
	Completed *CompletedData `json:"completed,omitempty"`
	Failed    *FailedData    `json:"failed,omitempty"`
	Usage     TotalUsage     `json:"usage"`
}

// CallIdentity is what a decision about a call covers.
type CallIdentity struct {
	Run          string          `json:"run"`
	CallID       string          `json:"callId"`
	AgentID      string          `json:"agentId"`
	AgentVersion string          `json:"agentVersion"`
	Tool         string          `json:"tool"`
	ToolVersion  string          `json:"toolVersion"`
	Arguments    json.RawMessage `json:"arguments"`
}

// Hash returns the SHA-256, in hex, of the identity in the canonical form of RFC 8785: the hash of a Wait and of the
// Decision about it.
func (c *CallIdentity) Hash() string { return digest(c) }
