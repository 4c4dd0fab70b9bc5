package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/store"
)

// Claim is who wants to execute runs, and under which rules.
type Claim struct {
	// Owner is the incarnation of the process; "" makes Create queue the run.
	Owner string
	// Place names the directories in which the process executes runs. What an attempt left there is found by the next one
	// with the same place only.
	Place string
	// Lease is how long the lease lasts without Renew.
	Lease time.Duration
	// MaxRunning is how many runs of the whole database may run at once; 0 means any number.
	MaxRunning int64
	// MaxQueued is how many runs may wait before Create refuses more; 0 means any number.
	MaxQueued int64
	// MaxLosses is how many attempts in a row may end without a word; after that a run is parked as failed. Zero means
	// DefaultMaxLosses.
	MaxLosses int64
}

// DefaultMaxLosses is the number of a Claim that names none.
const DefaultMaxLosses = 5

// Created is what Create made, or found by its key.
type Created struct {
	Run Run
	// Lease is set if the run was born with the lease of the caller, who must execute it now.
	Lease *Lease
	// Found says that the run was there already.
	Found bool
}

// Create makes a run, durably. With an owner it is born running with a lease, in one commit, if there is room and it may
// start now; else it is queued and somebody is woken for it. It returns ErrFull if too many wait, and ErrOtherRequest if
// the idempotency key belongs to a request with other content.
func (s *Store) Create(ctx context.Context, request Request, claim Claim) (Created, error) {
	if request.Input == nil {
		request.Input = json.RawMessage("{}")
	}
	b := &birth{store: s, request: request, claim: claim, digest: digestOf(request), id: NewID(time.Now())}
	if err := s.write(ctx, func(tx *store.Tx) error { return b.make(ctx, tx) }); err != nil {
		return Created{}, fmt.Errorf("create a run: %w", err)
	}
	if b.refused != nil {
		return Created{}, fmt.Errorf("create a run: %w", b.refused)
	}
	return b.made, nil
}

// digestOf identifies what was asked for: everything but the key and the rules under which it was asked.
func digestOf(r Request) string {
	encoded, err := json.Marshal([]any{r.Project, r.Agent, r.Version, r.Parent, millis(r.NotBefore), r.Input})
	if err != nil {
		encoded = r.Input // no JSON; it is refused when it is stored
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// birth is one call of Create. Its transaction may be made several times and shares a commit with others, which a refusal
// must not undo: it is noted in refused.
type birth struct {
	store   *Store
	request Request
	claim   Claim
	digest  string
	id      string

	made    Created
	refused error
}

func (b *birth) make(ctx context.Context, tx *store.Tx) error {
	b.made, b.refused = Created{}, nil
	if found, err := b.find(ctx, tx); found || err != nil {
		return err
	}
	now, err := b.store.now(ctx, tx)
	if err != nil {
		return err
	}
	leased := b.claim.Owner != "" && !b.request.NotBefore.After(now)
	if leased {
		if leased, err = hasRoom(ctx, tx, b.request.Tenant, b.request.Project, b.request.ProjectLimit, b.claim.MaxRunning); err != nil {
			return err
		}
	}
	r := b.run(now)
	if leased {
		r.State, r.Attempts, r.StartedAt, r.Place, r.fence = Running, 1, r.CreatedAt, b.claim.Place, 1
		b.made.Lease = &Lease{Run: r.ID, Owner: b.claim.Owner, Fence: 1, Attempt: 1}
	} else if full, err := isFull(ctx, tx, b.claim.MaxQueued); err != nil || full {
		b.refused = ErrFull
		return err
	} else if r.QueueID, err = b.store.wake(ctx, tx, r.ID, r.NotBefore); err != nil {
		return err
	}
	b.made.Run = r
	return b.insert(ctx, tx, now)
}

// find looks for the run of the same key.
func (b *birth) find(ctx context.Context, tx *store.Tx) (bool, error) {
	if b.request.IdempotencyKey == "" {
		return false, nil
	}
	r, err := query(ctx, tx, "tenant = ? AND idempotency_key = ?", b.request.Tenant, b.request.IdempotencyKey)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var digest string
	if err := tx.QueryRow(ctx, "SELECT request_digest FROM runs WHERE tenant = ? AND id = ?", []any{r.Tenant, r.ID}, &digest); err != nil {
		return false, err
	}
	if digest != b.digest {
		b.refused = fmt.Errorf("%w: run %s", ErrOtherRequest, r.ID)
	}
	b.made = Created{Run: r, Found: true}
	return true, nil
}

func (b *birth) run(now time.Time) Run {
	q := b.request
	now = instant(millis(now))
	return Run{ID: b.id, Tenant: q.Tenant, Project: q.Project, Agent: q.Agent, Version: q.Version, Origin: q.Origin, StartedBy: q.StartedBy,
		Parent: q.Parent, Input: q.Input, ProjectLimit: q.ProjectLimit, State: Queued, NotBefore: instant(millis(q.NotBefore)),
		CreatedAt: now, UpdatedAt: now}
}

func (b *birth) insert(ctx context.Context, tx *store.Tx, now time.Time) error {
	r, lease := &b.made.Run, b.made.Lease
	var key any
	if b.request.IdempotencyKey != "" {
		key = b.request.IdempotencyKey
	}
	owner, until := "", int64(0)
	if lease != nil {
		owner, until = lease.Owner, millis(now.Add(b.claim.Lease))
	}
	n, err := tx.Exec(ctx, "INSERT INTO runs (id, tenant, project, agent, version, origin, parent, started_by, idempotency_key, request_digest, "+
		"request, project_limit, state, owner, fence, lease_until, not_before, queue_id, attempts, losses, retries, place, cancel_cause, waits, "+
		"reason, code, message, outcome, usage, resolved, definition, created_at, updated_at, started_at, ended_at) VALUES ("+marks(19)+", 0, 0, ?, '', '', '', '', '', '', '', '', '', ?, ?, ?, 0) "+
		"ON CONFLICT DO NOTHING",
		r.ID, r.Tenant, r.Project, r.Agent, r.Version, r.Origin, r.Parent, r.StartedBy, key, b.digest, string(r.Input), r.ProjectLimit,
		string(r.State), owner, r.fence, until, millis(r.NotBefore), r.QueueID, r.Attempts, r.Place, millis(r.CreatedAt), millis(r.UpdatedAt),
		millis(r.StartedAt))
	if err != nil {
		return err
	}
	if n == 0 { // somebody else was faster with the key; a wake-up that was added finds nothing to do
		b.made = Created{}
		_, err := b.find(ctx, tx)
		return err
	}
	if lease == nil {
		return nil
	}
	return beginAttempt(ctx, tx, *lease, b.claim.Place, now)
}

// beginAttempt adds the row of an attempt.
func beginAttempt(ctx context.Context, tx *store.Tx, l Lease, place string, now time.Time) error {
	_, err := tx.Exec(ctx, "INSERT INTO run_attempts (run, attempt, owner, fence, place, started_at, ended_at, ending, message) VALUES (?, ?, ?, ?, ?, ?, 0, '', '')",
		l.Run, l.Attempt, l.Owner, l.Fence, place, millis(now))
	return err
}

// wake tells the queue about a run.
func (s *Store) wake(ctx context.Context, tx *store.Tx, id string, at time.Time) (int64, error) {
	if s.config.Queue == nil {
		return 0, nil
	}
	n, err := s.config.Queue.Enqueue(ctx, tx, id, at)
	if err != nil {
		return 0, fmt.Errorf("queue the run: %w", err)
	}
	return n, nil
}

// hasRoom reports whether one more run may run. On PostgreSQL those who count wait for each other; on SQLite one writes
// at a time anyhow.
func hasRoom(ctx context.Context, tx *store.Tx, tenant, project string, projectLimit, maxRunning int64) (bool, error) {
	below := func(limit int64, lock, condition string, args ...any) (bool, error) {
		if limit <= 0 {
			return true, nil
		}
		if tx.Dialect() == store.Postgres {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended(?, 50))", lock); err != nil {
				return false, err
			}
		}
		var n int64
		err := tx.QueryRow(ctx, "SELECT count(*) FROM runs WHERE state = 'running'"+condition, args, &n)
		return n < limit, err
	}
	room, err := below(maxRunning, "hozo/runs", "")
	if err != nil || !room {
		return false, err
	}
	return below(projectLimit, "hozo/runs/"+tenant+"/"+project, " AND tenant = ? AND project = ?", tenant, project)
}

// isFull reports whether as many runs wait as may.
func isFull(ctx context.Context, tx *store.Tx, limit int64) (bool, error) {
	if limit <= 0 {
		return false, nil
	}
	var one int
	err := tx.QueryRow(ctx, "SELECT 1 FROM runs WHERE state = 'queued' ORDER BY not_before, id LIMIT 1 OFFSET ?", []any{limit - 1}, &one)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
