package calendar

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
)

// Outcome is what became of one proposed event.
type Outcome string

// The closed set of outcomes.
const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
	// Kept events were not touched: a person has decided about them.
	Kept Outcome = "kept"
	// Invalid proposals were not taken; Result.Problems says why.
	Invalid Outcome = "invalid"
)

// Outcomes returns all five.
func Outcomes() []Outcome { return []Outcome{Created, Updated, Unchanged, Kept, Invalid} }

// Proposal is a list of events that one call of one run proposes.
type Proposal struct {
	RunID  string
	CallID string
	// Approve puts the events into the calendar at once. Otherwise they wait for a person.
	Approve bool
	Events  []Details
}

// Result is what became of one event of a proposal.
type Result struct {
	// Index is the place of the event in the proposal.
	Index   int     `json:"index"`
	Title   string  `json:"title"`
	Date    string  `json:"date"`
	Outcome Outcome `json:"outcome"`
	// ID and Status are those of the event in the calendar; empty for an invalid one.
	ID     string `json:"id,omitempty"`
	Status Status `json:"status,omitempty"`
	// Problems are all problems of an invalid event.
	Problems problem.List `json:"problems,omitempty"`
}

// Propose takes the events of a proposal that are valid, all in one transaction, and reports on every event. An event
// that the calendar has already, by Details.ID, is updated and not added, so that proposing twice is the same as once. A
// run without Approve that changes an approved event puts it back before a person; what a person has decided, no run
// changes. The report is kept under the run and the call: a call that is made again replaces its own.
func (s *Store) Propose(ctx context.Context, p Proposal) ([]Result, error) {
	results := make([]Result, len(p.Events))
	err := database.Change(ctx, s.db, func(tx *sql.Tx) error {
		for i, d := range p.Events {
			r, err := s.propose(ctx, tx, p, d.trimmed())
			if err != nil {
				return err
			}
			r.Index = i
			results[i] = r
			if err := record(ctx, tx, p, r); err != nil {
				return err
			}
		}
		return nil
	})
	return results, err
}

func (s *Store) propose(ctx context.Context, tx *sql.Tx, p Proposal, d Details) (Result, error) {
	r := Result{Title: d.Title, Date: d.Date}
	now := s.now().UTC()
	if r.Problems = d.Check(now); len(r.Problems) > 0 {
		r.Outcome = Invalid
		return r, nil
	}
	before, err := findSame(ctx, tx, d.ID())
	isNew := problem.KindOf(err) == problem.NotFound
	if err != nil && !isNew {
		return Result{}, err
	}
	if isNew {
		before = Event{ID: d.ID(), CreatedAt: now}
	}
	after := merge(before, p, d, now)
	switch {
	case isNew:
		r.Outcome = Created
	case before.DecidedBy == ByPerson:
		r.Outcome, after = Kept, before
	case after == before:
		r.Outcome = Unchanged
	default:
		r.Outcome = Updated
	}
	r.ID, r.Status = after.ID, after.Status
	if r.Outcome == Unchanged || r.Outcome == Kept {
		return r, nil
	}
	after.RunID, after.Version, after.UpdatedAt = p.RunID, before.Version+1, now
	return r, write(ctx, tx, after)
}

// merge returns the event as the proposal wants it.
func merge(before Event, p Proposal, d Details, now time.Time) Event {
	after := before
	after.Details = d
	switch {
	case p.Approve:
		after.Status, after.DecidedBy = Approved, ByAgent
	case before.Status == "" || before.Details != d:
		after.Status, after.DecidedBy = Proposed, ""
	}
	return after
}

func record(ctx context.Context, tx *sql.Tx, p Proposal, r Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO proposals (run_id, call_id, position, result) VALUES (?, ?, ?, ?)
		ON CONFLICT (run_id, call_id, position) DO UPDATE SET result = excluded.result`, p.RunID, p.CallID, r.Index, string(text))
	if err != nil {
		return fmt.Errorf("record the proposal of %s: %w", p.RunID, err)
	}
	return nil
}
