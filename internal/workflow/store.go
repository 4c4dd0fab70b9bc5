package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/store"
)

// State is where a workflow or one of its steps is.
type State string

// The states. A workflow goes from running to one of the others; so does a step.
const (
	StateRunning   State = "running"
	StateCompleted State = "completed"
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
)

// Run is one run of a workflow.
type Run struct {
	ID        string            `json:"id"`
	Tenant    string            `json:"-"`
	Project   string            `json:"project,omitempty"`
	Workflow  string            `json:"workflow"`
	Digest    string            `json:"digest"`
	Arguments map[string]string `json:"arguments"`
	StartedBy string            `json:"startedBy,omitempty"`
	State     State             `json:"state"`
	// Position counts the steps that are done; Steps are those that were begun.
	Position int       `json:"position"`
	Steps    []StepRun `json:"steps"`
	// Message says why the workflow failed or was cancelled.
	Message   string    `json:"message,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`

	source string
	cancel string
}

// StepRun is a step that was begun.
type StepRun struct {
	Name  string `json:"name"`
	Agent string `json:"agent"`
	// Run is its run, "" if none could be started.
	Run   string `json:"run,omitempty"`
	State State  `json:"state"`
	// Answer is what the agent said at the end, Message why the step failed.
	Answer    string    `json:"answer,omitempty"`
	Message   string    `json:"message,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
}

// current is the step at the position, nil if it was not begun.
func (r *Run) current() *StepRun {
	if r.Position < len(r.Steps) {
		return &r.Steps[r.Position]
	}
	return nil
}

// column is a text as both databases take it.
func column(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func moment(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli).UTC()
}

func (r *Runner) millis() int64 { return r.now().UnixMilli() }

func (r *Runner) leaseEnd() int64 { return r.now().Add(r.config.Lease).UnixMilli() }

func (r *Runner) insert(ctx context.Context, run *Run) error {
	arguments, err := json.Marshal(run.Arguments)
	if err != nil {
		return err
	}
	return r.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO workflow_runs (tenant, id, workflow, digest, definition, project, arguments, started_by, state,
			position, message, cancel, owner, lease_until, created_at, updated_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', '', ?, ?, ?, ?, 0)`,
			run.Tenant, run.ID, run.Workflow, run.Digest, run.source, run.Project, string(arguments), run.StartedBy, string(run.State),
			r.owner, r.leaseEnd(), run.CreatedAt.UnixMilli(), run.UpdatedAt.UnixMilli())
		return err
	})
}

const runColumns = `SELECT tenant, id, workflow, digest, definition, project, arguments, started_by, state, position, message, cancel, created_at,
	updated_at, ended_at FROM workflow_runs WHERE tenant = ?`

func scanRun(scan func(...any) error) (*Run, error) {
	run := &Run{Steps: []StepRun{}}
	var arguments, state string
	var created, updated, ended int64
	if err := scan(&run.Tenant, &run.ID, &run.Workflow, &run.Digest, &run.source, &run.Project, &arguments, &run.StartedBy, &state,
		&run.Position, &run.Message, &run.cancel, &created, &updated, &ended); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(arguments), &run.Arguments); err != nil {
		return nil, fmt.Errorf("read the workflow %q: %w", run.ID, err)
	}
	run.State = State(state)
	run.CreatedAt, run.UpdatedAt, run.EndedAt = moment(created), moment(updated), moment(ended)
	return run, nil
}

// Get returns a run of a workflow with its steps. It is store.ErrNotFound for one that the tenant does not have.
func (r *Runner) Get(ctx context.Context, tenant, id string) (*Run, error) {
	if column(id) != id {
		return nil, store.ErrNotFound
	}
	run, err := scanRun(func(dest ...any) error {
		return r.db.QueryRow(ctx, runColumns+" AND id = ?", []any{tenant, id}, dest...)
	})
	if err != nil {
		return nil, err
	}
	err = r.db.Query(ctx, func(row store.Row) error {
		var s StepRun
		var state string
		var started, ended int64
		err := row.Scan(&s.Name, &s.Agent, &s.Run, &state, &s.Answer, &s.Message, &started, &ended)
		s.State, s.StartedAt, s.EndedAt = State(state), moment(started), moment(ended)
		run.Steps = append(run.Steps, s)
		return err
	}, `SELECT name, agent, run, state, answer, message, started_at, ended_at FROM workflow_run_steps WHERE tenant = ? AND workflow = ?
		ORDER BY position`, tenant, id)
	if err != nil {
		return nil, err
	}
	return run, nil
}

// List returns the newest runs of workflows without their steps, at most limit of them.
func (r *Runner) List(ctx context.Context, tenant string, limit int) ([]*Run, error) {
	runs := []*Run{}
	err := r.db.Query(ctx, func(row store.Row) error {
		run, err := scanRun(row.Scan)
		runs = append(runs, run)
		return err
	}, runColumns+" ORDER BY created_at DESC, id LIMIT ?", tenant, limit)
	return runs, err
}

// beginStep keeps the run of the step at the position. Another process may have done so: the run is the same.
func (r *Runner) beginStep(ctx context.Context, run *Run, step *Step, id string) error {
	return r.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO workflow_run_steps (tenant, workflow, position, name, agent, run, state, answer, message, started_at,
			ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, '', '', ?, 0) ON CONFLICT (tenant, workflow, position) DO NOTHING`,
			run.Tenant, run.ID, run.Position, step.Name, step.Agent, id, string(StateRunning), r.millis())
		return err
	})
}

// endStep keeps how a step ended and moves the workflow on, or ends it.
func (r *Runner) endStep(ctx context.Context, run *Run, step *Step, id string, result Result) error {
	state, after, text := StateFailed, StateFailed, fmt.Sprintf("the step %q failed: %s", step.Name, result.Message)
	switch {
	case result.Completed:
		state, after, text = StateCompleted, StateRunning, ""
	case result.Cancelled:
		state, after, text = StateCancelled, StateCancelled, fmt.Sprintf("the step %q was cancelled: %s", step.Name, result.Message)
	}
	now, position, ended := r.millis(), run.Position, int64(0)
	if result.Completed {
		position++
	}
	if after != StateRunning {
		ended = now
	}
	return r.db.Write(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE workflow_runs SET state = ?, position = ?, message = ?, updated_at = ?, ended_at = ?
			WHERE tenant = ? AND id = ? AND position = ? AND state = ?`,
			string(after), position, column(text), now, ended, run.Tenant, run.ID, run.Position, string(StateRunning))
		if err != nil || n == 0 { // another process has seen the end of the step
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO workflow_run_steps (tenant, workflow, position, name, agent, run, state, answer, message, started_at,
			ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, workflow, position)
			DO UPDATE SET state = excluded.state, answer = excluded.answer, message = excluded.message, ended_at = excluded.ended_at`,
			run.Tenant, run.ID, run.Position, step.Name, step.Agent, id, string(state), column(result.Answer), column(result.Message), now, now)
		return err
	})
}

// end keeps the end of a workflow.
func (r *Runner) end(ctx context.Context, run *Run, state State, text string) error {
	return r.db.Write(ctx, func(tx *store.Tx) error {
		now := r.millis()
		_, err := tx.Exec(ctx, "UPDATE workflow_runs SET state = ?, message = ?, updated_at = ?, ended_at = ? WHERE tenant = ? AND id = ? AND state = ?",
			string(state), column(text), now, now, run.Tenant, run.ID, string(StateRunning))
		return err
	})
}

// markCancelled keeps that somebody wants the workflow to end.
func (r *Runner) markCancelled(ctx context.Context, tenant, id, cause string) error {
	return r.db.Write(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE workflow_runs SET cancel = CASE WHEN state = ? AND cancel = '' THEN ? ELSE cancel END WHERE tenant = ? AND id = ?",
			string(StateRunning), column(cause), tenant, id)
		if err == nil && n == 0 {
			return store.ErrNotFound
		}
		return err
	})
}

// claimed is a workflow that this process took over.
type claimed struct{ tenant, id string }

// claim takes over what no process has said anything about for the length of a lease.
func (r *Runner) claim(ctx context.Context) ([]claimed, error) {
	var found []claimed
	err := r.db.Write(ctx, func(tx *store.Tx) error {
		found = nil
		return tx.Query(ctx, func(row store.Row) error {
			var c claimed
			err := row.Scan(&c.tenant, &c.id)
			found = append(found, c)
			return err
		}, "UPDATE workflow_runs SET owner = ?, lease_until = ? WHERE state = ? AND lease_until < ? RETURNING tenant, id",
			r.owner, r.leaseEnd(), string(StateRunning), r.millis())
	})
	return found, err
}

// extend says that this process still works on the workflow.
func (r *Runner) extend(ctx context.Context, tenant, id string) error {
	return r.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE workflow_runs SET lease_until = ? WHERE tenant = ? AND id = ? AND owner = ?", r.leaseEnd(), tenant, id, r.owner)
		return err
	})
}
