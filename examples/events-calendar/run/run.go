// Package run keeps what happened: the runs themselves, every event of each in order, the journal that a run can go on
// from after a crash, the steps with their whole outputs, the working-memory document after each step, and the report.
// Store is durable and knows nothing of models; Follow lets any number of readers see the events of a run without ever
// holding the run up.
package run

import (
	"encoding/json"
	"time"

	"github.com/hozo-run/hozo/job"

	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/prompt"
)

// Status is the state of a run.
type Status string

// The closed set of statuses. A run is queued, then running, then one of the others for ever.
const (
	Queued  Status = "queued"
	Running Status = "running"
	// Completed runs ended because the agent said that it is done.
	Completed Status = "completed"
	// Stopped runs were ended by a limit: turns, time, money, a loop or the context window.
	Stopped Status = "stopped"
	Failed  Status = "failed"
	Aborted Status = "aborted"
)

// Statuses returns all of them.
func Statuses() []Status { return []Status{Queued, Running, Completed, Stopped, Failed, Aborted} }

// Ended reports whether the status is final.
func (s Status) Ended() bool { return s != Queued && s != Running }

// StatusOf returns the status that an outcome gives a run.
func StatusOf(o job.Outcome) Status {
	if o.Failed == nil {
		return Completed
	}
	switch o.Failed.Reason {
	case job.ReasonAborted:
		return Aborted
	case job.ReasonTimeout, job.ReasonMaxTurns, job.ReasonBudget, job.ReasonLoop, job.ReasonContextOverflow:
		return Stopped
	}
	return Failed
}

// Mode says what a run may do to the calendar.
type Mode string

// The closed set of modes.
const (
	// Auto approves valid events at once.
	Auto Mode = "auto"
	// Review proposes them to people.
	Review Mode = "review"
)

// Run is one run.
type Run struct {
	ID     string `json:"id"`
	Status Status `json:"status"`
	Mode   Mode   `json:"mode"`
	// Input is the task, as it was given.
	Input string `json:"input"`
	Model Model  `json:"model"`
	// Attempt counts the processes that have worked on the run.
	Attempt int64 `json:"attempt"`
	// Prompts are the texts that the run works by, with their origin.
	Prompts []prompt.Prompt `json:"prompts"`
	// Applied are the lessons that the run was given, Learned those that it left.
	Applied []memory.Lesson `json:"applied"`
	Learned []memory.Lesson `json:"learned"`
	// Degraded lists what the run had to do without.
	Degraded []job.Notice `json:"degraded"`
	// Answer is what the agent said at the end.
	Answer string `json:"answer,omitempty"`
	// Failure is set if the run was not completed.
	Failure *Failure       `json:"failure,omitempty"`
	Usage   job.TotalUsage `json:"usage"`
	// Steps counts the steps of the agent itself, without those of subagents.
	Steps     int64      `json:"steps"`
	CreatedAt time.Time  `json:"createdAt"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// Model names the model of a run.
type Model struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
	// Simulated marks a script, which is no language model.
	Simulated bool `json:"simulated,omitempty"`
}

// Failure is why a run was not completed.
type Failure struct {
	Reason  job.Reason `json:"reason"`
	Code    string     `json:"code"`
	Message string     `json:"message"`
}

// Step is one step of a run: the agent's own, or one of a subagent.
type Step struct {
	// N counts all steps of a run from 1, in the order in which they began.
	N int64 `json:"n"`
	// CallID is the id of the call in events.
	CallID string `json:"callId"`
	// ParentCallID is the call of the subagent whose step this is.
	ParentCallID string `json:"parentCallId,omitempty"`
	// Objective is what the agent wanted to achieve.
	Objective string `json:"objective,omitempty"`
	Tool      string `json:"tool"`
	// Arguments are those that the tool got.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Status is "running", "ok", "error", or "blocked" for a call that was not made.
	Status string `json:"status"`
	// Output is the whole answer of the tool. A list of steps leaves it out and has its size.
	Output      string `json:"output,omitempty"`
	OutputBytes int64  `json:"outputBytes"`
	DurationMS  int64  `json:"durationMs"`
	// Memory says how the working-memory document was rewritten after the step: "writer" or "fallback".
	Memory string `json:"memory,omitempty"`
}

// Document is the working-memory document after a step.
type Document struct {
	// Step is the step of the agent itself, 0 for the document that the run started with.
	Step     int64  `json:"step"`
	Mode     string `json:"mode"`
	Document string `json:"document"`
}
