package job_test

import (
	"testing"

	"github.com/hozo-run/hozo/job"
)

func TestExitCodesOfOutcomes(t *testing.T) {
	t.Parallel()
	want := map[job.Reason]int{
		job.ReasonError: 1, job.ReasonTimeout: 7, job.ReasonMaxTurns: 7, job.ReasonBudget: 7, job.ReasonContextOverflow: 7, job.ReasonLoop: 7,
		job.ReasonAborted: 130,
	}
	for _, reason := range job.Reasons() {
		outcome := job.Outcome{Failed: &job.FailedData{Reason: reason}}
		if got := outcome.ExitCode(); got != want[reason] {
			t.Errorf("%s exits with %d, want %d", reason, got, want[reason])
		}
	}
	if len(job.Reasons()) != len(want) {
		t.Errorf("there are %d reasons", len(job.Reasons()))
	}
	if got := (job.Outcome{Completed: &job.CompletedData{}}).ExitCode(); got != 0 {
		t.Errorf("success exits with %d", got)
	}
	if got := (job.Outcome{Suspended: &job.SuspendedData{}}).ExitCode(); got != 8 {
		t.Errorf("a suspended job exits with %d", got)
	}
	if got := (job.Outcome{Lost: &job.Lost{}}).ExitCode(); got != 1 {
		t.Errorf("a lost job exits with %d", got)
	}
}

func TestOnlyTwoEventTypesAreTerminal(t *testing.T) {
	t.Parallel()
	for _, data := range payloads() {
		_, completed := data.(*job.CompletedData)
		_, failed := data.(*job.FailedData)
		if got := data.EventType().Terminal(); got != (completed || failed) {
			t.Errorf("%s: terminal %v", data.EventType(), got)
		}
	}
	if job.EventSuspended.Terminal() {
		t.Error("a suspended job has not ended")
	}
}
