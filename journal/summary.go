package journal

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/hozo-run/hozo/job"
)

// Summary is what a journal says of its job as a whole.
type Summary struct {
	JobID string
	// Runtime is the version of the runtime that began the journal.
	Runtime string
	// Digest is that of the spec (job.Spec.Digest).
	Digest string
	// Spec is the document without credentials.
	Spec json.RawMessage
	// Model is what the agent of the job has, empty before it was offered anything.
	Model  job.ModelTag
	Frames int64
	// Last is the head of the last frame.
	Last job.FrameHead
	// Turns is the last turn of the job's agent that was answered, 0 before the first.
	Turns int64
	// Answered says that the last of these turns called no tool: it is the answer, or was to be.
	Answered bool
	// Suspensions counts the attempts that were suspended.
	Suspensions int
	// Suspended is set if the last frame says that the job waits.
	Suspended *job.SuspendedData
	// Outcome is set if the job has ended.
	Outcome *job.OutcomeFrame
}

// Ending says in a few words how the job ended, "" if it did not.
func (s *Summary) Ending() string {
	switch {
	case s.Outcome == nil:
		return ""
	case s.Outcome.Failed == nil:
		return "completed"
	case s.Outcome.Failed.Code == string(s.Outcome.Failed.Reason):
		return "failed: " + s.Outcome.Failed.Code
	}
	return fmt.Sprintf("failed: %s (%s)", s.Outcome.Failed.Reason, s.Outcome.Failed.Code)
}

// Summarize reads frames to their end. It returns the first error of the frames.
func Summarize(frames iter.Seq2[[]byte, error]) (*Summary, error) {
	s := new(Summary)
	for frame, err := range frames {
		if err != nil {
			return nil, err
		}
		if err := s.add(frame); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Summary) add(frame []byte) error {
	head, err := job.ParseFrameHead(frame)
	if err != nil {
		return err
	}
	s.Frames, s.Last, s.Suspended = s.Frames+1, head, nil
	switch head.Type {
	case job.FrameSpec:
		var d job.SpecFrame
		if err := dataOf(frame, &d); err != nil {
			return err
		}
		s.JobID, s.Runtime, s.Digest, s.Spec = d.JobID, d.Runtime, d.Digest, d.Spec
	case job.FrameLists:
		var d job.ListsFrame
		if err := dataOf(frame, &d); err != nil {
			return err
		}
		if d.Thread == "" {
			s.Model = job.ModelTag{Provider: d.Provider, ID: d.Model.ID, Thinking: d.Thinking, Simulated: d.Model.Simulated}
		}
	case job.FrameMessage:
		var d messageHead
		if err := dataOf(frame, &d); err != nil {
			return err
		}
		if d.answersTurn() && d.Turn >= s.Turns {
			s.Turns, s.Answered = d.Turn, !d.calls()
		}
	case job.FrameSuspended:
		d := new(job.SuspendedFrame)
		if err := dataOf(frame, d); err != nil {
			return err
		}
		s.Suspensions, s.Suspended = s.Suspensions+1, &d.SuspendedData
	case job.FrameOutcome:
		s.Outcome = new(job.OutcomeFrame)
		return dataOf(frame, s.Outcome)
	}
	return nil
}

// dataOf decodes the data of a frame.
func dataOf(frame []byte, data any) error {
	whole, err := job.ParseFrame(frame)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(whole.Data, data); err != nil {
		return fmt.Errorf("journal frame %d of type %q: %w", whole.N, whole.Type, err)
	}
	return nil
}
