package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

// The kinds of a Step.
const (
	// StepCall is a call of a tool that has answered.
	StepCall = "call"
	// StepLoop is a step of the working-memory loop; its Output is the record of the step, whole.
	StepLoop = "step"
)

// maxRowOutput is the size above which an output is kept as a blob.
const maxRowOutput = 64 << 10

// Step is one line of the timeline of a run: what was done, and everything that came of it.
type Step struct {
	// N is the frame that recorded the step; steps are ordered by it.
	N int64 `json:"n"`
	// Kind is StepCall or StepLoop.
	Kind   string `json:"kind"`
	CallID string `json:"callId,omitempty"`
	// ParentID is the call inside of which a call was made; of a StepLoop it is the call of the subagent.
	ParentID string `json:"parentCallId,omitempty"`
	// Turn is the turn of a call, and the number of a StepLoop.
	Turn      int64           `json:"turn"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Status is "ok", "error", or "interrupted" for a call of which nobody knows whether it had its effect.
	Status string `json:"status"`
	// Output is the whole answer. Above 64 KiB, or with a NUL in it, it is empty, and Blob is the SHA-256 under which the content is kept.
	Output string `json:"output,omitempty"`
	Blob   string `json:"blob,omitempty"`
	// Bytes is the size of the answer, whole.
	Bytes      int64 `json:"bytes"`
	DurationMS int64 `json:"durationMs"`
}

// step returns the step that a frame records, nil if it only begins one.
func (r *Recorder) step(e entry) (*Step, error) {
	switch e.head.Type {
	case job.FrameCallStarted:
		return nil, r.note(e.frame)
	case job.FrameCallFinished:
		return r.callStep(e)
	}
	var frame job.StepFrame
	if err := dataOf(e.frame, &frame); err != nil {
		return nil, err
	}
	var step struct {
		N          int64           `json:"n"`
		CallID     string          `json:"callId"`
		Tool       string          `json:"tool"`
		Arguments  json.RawMessage `json:"args"`
		Status     string          `json:"status"`
		DurationMS int64           `json:"durationMs"`
	}
	if err := json.Unmarshal(frame.Step, &step); err != nil {
		return nil, fmt.Errorf("the step of journal frame %d: %w", e.head.N, err)
	}
	return &Step{N: e.head.N, Kind: StepLoop, CallID: step.CallID, ParentID: frame.Thread, Turn: step.N, Tool: step.Tool, Arguments: step.Arguments,
		Status: step.Status, Output: string(frame.Step), DurationMS: step.DurationMS}, nil
}

func (r *Recorder) callStep(e entry) (*Step, error) {
	var end job.CallFinishedFrame
	if err := dataOf(e.frame, &end); err != nil {
		return nil, err
	}
	r.mu.Lock()
	begin := r.calls[end.CallID]
	delete(r.calls, end.CallID)
	r.mu.Unlock()
	status := "ok"
	switch {
	case end.Interrupted:
		status = "interrupted"
	case end.IsError:
		status = "error"
	}
	return &Step{N: e.head.N, Kind: StepCall, CallID: end.CallID, ParentID: end.ParentCallID, Turn: begin.Turn, Tool: begin.Tool,
		Arguments: begin.Arguments, Status: status, Output: end.Text, DurationMS: end.DurationMS}, nil
}

// shorten moves a large output to the blobs, and one that a row of PostgreSQL cannot hold. Without a place for them it stays
// in the row.
func (s *Step) shorten(ctx context.Context, blobs Blobs) error {
	s.Bytes = int64(len(s.Output))
	if blobs == nil || s.Bytes <= maxRowOutput && !strings.ContainsRune(s.Output, 0) {
		return nil
	}
	sum := sha256.Sum256([]byte(s.Output))
	s.Blob = hex.EncodeToString(sum[:])
	if err := blobs.Put(ctx, s.Blob, strings.NewReader(s.Output)); err != nil {
		return fmt.Errorf("keep the answer of call %s: %w", s.CallID, err)
	}
	s.Output = ""
	return nil
}

// insert writes the row of a step. A step of the working-memory loop is recorded twice, and the second record stands for
// both.
func (s *Step) insert(ctx context.Context, tx *store.Tx, id string) error {
	if s.Kind == StepLoop {
		if _, err := tx.Exec(ctx, "DELETE FROM run_steps WHERE run = ? AND kind = ? AND parent_id = ? AND turn = ?", id, s.Kind, s.ParentID, s.Turn); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "INSERT INTO run_steps (run, n, kind, call_id, parent_id, turn, tool, arguments, status, output, blob, bytes, millis) VALUES ("+marks(13)+")",
		id, s.N, s.Kind, s.CallID, s.ParentID, s.Turn, s.Tool, string(s.Arguments), s.Status, strings.ReplaceAll(s.Output, "\x00", "\uFFFD"), s.Blob, s.Bytes, s.DurationMS)
	return err
}

// Steps returns up to limit steps of a tenant's run after the step with the number after (0 for the first ones); a limit
// of zero means 100.
func (s *Store) Steps(ctx context.Context, tenant, id string, after int64, limit int) ([]Step, error) {
	if _, err := s.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	var steps []Step
	err := s.db.Query(ctx, func(row store.Row) error {
		var step Step
		var arguments string
		err := row.Scan(&step.N, &step.Kind, &step.CallID, &step.ParentID, &step.Turn, &step.Tool, &arguments, &step.Status, &step.Output,
			&step.Blob, &step.Bytes, &step.DurationMS)
		if arguments != "" {
			step.Arguments = json.RawMessage(arguments)
		}
		steps = append(steps, step)
		return err
	}, "SELECT s.n, s.kind, s.call_id, s.parent_id, s.turn, s.tool, s.arguments, s.status, s.output, s.blob, s.bytes, s.millis FROM run_steps s "+
		"JOIN runs r ON r.id = s.run WHERE r.tenant = ? AND s.run = ? AND s.n > ? ORDER BY s.n LIMIT ?", tenant, id, after, limit)
	if err != nil {
		return nil, fmt.Errorf("the steps of run %s: %w", id, err)
	}
	return steps, nil
}

// OpenOutput returns the whole output of a step.
func (s *Store) OpenOutput(ctx context.Context, step Step) (io.ReadCloser, error) {
	if step.Blob == "" {
		return io.NopCloser(strings.NewReader(step.Output)), nil
	}
	if s.config.Blobs == nil {
		return nil, fmt.Errorf("the output of call %s is kept elsewhere, and this process has no place of blobs", step.CallID)
	}
	return s.config.Blobs.Open(ctx, step.Blob)
}
