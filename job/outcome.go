package job

// Reason is why a job failed; the set is closed.
type Reason string

// The seven reasons.
const (
	ReasonError           Reason = "error"
	ReasonTimeout         Reason = "timeout"
	ReasonMaxTurns        Reason = "max-turns"
	ReasonBudget          Reason = "budget"
	ReasonContextOverflow Reason = "context-overflow"
	ReasonLoop            Reason = "loop"
	ReasonAborted         Reason = "aborted"
)

// Reasons returns all seven.
func Reasons() []Reason {
	return []Reason{ReasonError, ReasonTimeout, ReasonMaxTurns, ReasonBudget, ReasonContextOverflow, ReasonLoop, ReasonAborted}
}

// Codes under a reason; the list is open and documented. A code belongs to one reason, except where noted.
const (
	// Under ReasonError.
	CodeProviderAuth      = "provider-auth"           // credentials refused
	CodeProviderQuota     = "provider-quota"          // no money or plan left at the provider
	CodeProviderFailed    = "provider-failed"         // requests failed after all retries
	CodeProviderRefused   = "provider-refused"        // the provider refuses the request as it is
	CodeAnswerRefused     = "answer-refused"          // the model or a filter refused to answer
	CodeUnknownStop       = "unknown-stop"            // a stop reason the adapter does not know
	CodeOutputLimit       = "output-limit"            // cut at the output limit
	CodeEmptyAnswer       = "empty-answer"            // no text and no tool call, twice
	CodeAnswerCheckFailed = "answer-check-failed"     // a check of the caller refused the answer
	CodeCheckUnavailable  = "check-unavailable"       // a check of the caller could not be made
	CodeToolsUnavailable  = "tools-unavailable"       // a required server of tools cannot be used
	CodeRequestLimit      = "request-limit"           // the job's request budget is used up
	CodeProcessLost       = "process-lost"            // the job process ended without a terminal event
	CodeNoCall            = "no-call"                 // a model that works in steps called no tool, three steps in a row
	CodeInternal          = "internal"                // a fault of the runtime
	CodeOutputSchema      = "output-schema-violation" // the typed answer does not fit its schema, after all repairs
	CodeToolInvocation    = "tool-invocation-failed"  // a tool failed more often than toolErrors allows
	CodeJournalFailed     = "journal-failed"          // a frame of the journal could not be stored
	CodeJournalDiverged   = "journal-diverged"        // the journal is not one of this job
	// Under ReasonTimeout.
	CodeTimeout = "timeout" // limits.timeoutSec
	CodeStalled = "stalled" // limits.idleTimeoutSec, after all retries
	// Under ReasonMaxTurns.
	CodeMaxTurns = "max-turns"
	// Under ReasonBudget.
	CodeBudget = "budget"
	// Under ReasonContextOverflow.
	CodeContextOverflow = "context-overflow"
	// Under ReasonLoop.
	CodeRepeatedCall = "repeated-call" // one call, one answer, twelve times
	CodeEndlessTurn  = "endless-turn"  // too many characters without a finished tool call
	// Under ReasonAborted.
	CodeAborted           = "aborted"
	CodeApprovalWithdrawn = "approval-withdrawn" // a call that waited for a decision was withdrawn
)

// Outcome is the one result of a job.
type Outcome struct {
	// Exactly one of the four is set. Completed holds the answer of a job that succeeded; Suspended says that the attempt
	// ended and the job did not: it can be resumed from its journal. So can a job whose process was lost.
	Completed *CompletedData
	Failed    *FailedData
	Suspended *SuspendedData
	Lost      *Lost
	Usage     TotalUsage
}

// Lost is what is known of an attempt with a journal whose process ended without a word: its events end anywhere. Whoever
// owns the job resumes it or says that it has failed.
type Lost struct {
	Message string
	// ExitCode is -1 if a signal ended the process.
	ExitCode int
	Signal   string
	// Log is the end of what the process wrote to its log.
	Log string
}

// End is the data of the event that ends the events of the attempt, nil for an attempt that was lost.
func (o Outcome) End() EventPayload {
	switch {
	case o.Completed != nil:
		return o.Completed
	case o.Suspended != nil:
		return o.Suspended
	case o.Failed != nil:
		return o.Failed
	}
	return nil
}

// ExitCode is the exit code of a process that ran this one job: 0 completed, 1 failed or lost, 7 stopped by a limit,
// 8 suspended, 130 aborted.
func (o Outcome) ExitCode() int {
	switch {
	case o.Suspended != nil:
		return ExitSuspended
	case o.Lost != nil:
		return 1
	case o.Failed == nil:
		return 0
	}
	switch o.Failed.Reason {
	case ReasonTimeout, ReasonMaxTurns, ReasonBudget, ReasonLoop, ReasonContextOverflow:
		return 7
	case ReasonAborted:
		return 130
	}
	return 1
}

// Exit codes beside those of an Outcome.
const (
	ExitUsage       = 2
	ExitInvalidSpec = 3
	ExitSuspended   = 8
)
