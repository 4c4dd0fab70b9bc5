package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/store"
)

// Blobs keeps content by its digest: output files of checkpoints and answers of calls that are too large for a row. It is
// shared by every process that executes runs of one database, and safe for concurrent use.
type Blobs interface {
	// Put stores what content yields under its SHA-256 in small hex digits, durably. Content that is there already need
	// not be read. An error of reading content is returned and leaves nothing under the name.
	Put(ctx context.Context, hash string, content io.Reader) error
	// Open returns what is stored under a hash, or an error that is fs.ErrNotExist.
	Open(ctx context.Context, hash string) (io.ReadCloser, error)
}

// Queue wakes a process for a run that does not start at once.
type Queue interface {
	// Enqueue adds a wake-up for a run at a time, zero for at once, in the transaction that makes the run wait. It
	// returns the number by which it can be taken back.
	Enqueue(ctx context.Context, tx *store.Tx, run string, at time.Time) (int64, error)
}

// Config configures a Store.
type Config struct {
	// Blobs is needed by runs that write files.
	Blobs Blobs
	// Queue is told about every run that begins to wait; nil tells nobody, and only Waiting finds them.
	Queue Queue
	// Clock says what time it is; nil asks the clock that all processes share: the machine's for SQLite, the server's for
	// PostgreSQL.
	Clock func() time.Time
	// Poll is how often the events of followed runs that other processes execute are looked for; zero means 100 ms.
	Poll time.Duration
}

// Store keeps runs in a database. It is safe for concurrent use.
type Store struct {
	db     *store.DB
	config Config
	hub    *hub
}

// New returns a Store. Close it when nobody follows a run any more.
func New(db *store.DB, config Config) *Store {
	if config.Poll == 0 {
		config.Poll = 100 * time.Millisecond
	}
	s := &Store{db: db, config: config}
	s.hub = newHub(config.Poll, s.lastSeqs)
	return s
}

// Close ends what looks for events of other processes. Calls of Follow that wait end with an error.
func (s *Store) Close() { s.hub.close() }

// write makes a transaction that changes one run. On SQLite, where one writes at a time, it shares a commit with others. On
// PostgreSQL it goes beside them: it locks nothing but its run, and may wait for others who count.
func (s *Store) write(ctx context.Context, do func(*store.Tx) error) error {
	if s.db.Dialect() == store.SQLite {
		return s.db.Append(ctx, do)
	}
	return s.db.Write(ctx, do)
}

// now returns the time by which leases are judged.
func (s *Store) now(ctx context.Context, q store.Querier) (time.Time, error) {
	if s.config.Clock != nil {
		return s.config.Clock(), nil
	}
	if s.db.Dialect() == store.SQLite {
		return time.Now(), nil
	}
	var millis int64
	err := q.QueryRow(ctx, "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", nil, &millis)
	return time.UnixMilli(millis), err
}

// millis and instant convert times; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// columns are those of a Run, in the order in which scan reads them.
const columns = "id, tenant, project, agent, version, origin, started_by, parent, request, project_limit, state, not_before, " +
	"attempts, losses, retries, place, cancel_cause, waits, reason, code, message, outcome, usage, resolved, definition, created_at, updated_at, " +
	"started_at, ended_at, queue_id, fence"

// scanned is where the columns of a Run go that are not of its types.
type scanned struct {
	run                                           Run
	input, waits, reason, state, outcome, usage   string
	notBefore, created, updated, started, stopped int64
}

func (c *scanned) targets() []any {
	r := &c.run
	return []any{&r.ID, &r.Tenant, &r.Project, &r.Agent, &r.Version, &r.Origin, &r.StartedBy, &r.Parent, &c.input, &r.ProjectLimit,
		&c.state, &c.notBefore, &r.Attempts, &r.Losses, &r.Retries, &r.Place, &r.CancelCause, &c.waits, &c.reason, &r.Code, &r.Message,
		&c.outcome, &c.usage, &r.Resolved, &r.Definition, &c.created, &c.updated, &c.started, &c.stopped, &r.QueueID, &r.fence}
}

func (c *scanned) finish() (Run, error) {
	r := c.run
	r.State, r.Input, r.Reason = State(c.state), json.RawMessage(c.input), reasonOf(c.reason)
	r.NotBefore, r.CreatedAt, r.UpdatedAt = instant(c.notBefore), instant(c.created), instant(c.updated)
	r.StartedAt, r.EndedAt = instant(c.started), instant(c.stopped)
	if c.outcome != "" {
		r.Outcome = json.RawMessage(c.outcome)
	}
	if c.usage != "" {
		r.Usage = json.RawMessage(c.usage)
	}
	if c.waits != "" {
		if err := json.Unmarshal([]byte(c.waits), &r.Waits); err != nil {
			return Run{}, fmt.Errorf("the waits of run %s: %w", r.ID, err)
		}
	}
	return r, nil
}

// query returns the run that a condition selects.
func query(ctx context.Context, q store.Querier, condition string, args ...any) (Run, error) {
	var c scanned
	if err := q.QueryRow(ctx, "SELECT "+columns+" FROM runs WHERE "+condition, args, c.targets()...); err != nil {
		return Run{}, err
	}
	return c.finish()
}

// Get returns a run of a tenant.
func (s *Store) Get(ctx context.Context, tenant, id string) (Run, error) {
	r, err := query(ctx, s.db, "tenant = ? AND id = ?", tenant, id)
	if err != nil {
		return Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	return r, nil
}

// Filter chooses runs. Empty fields choose all.
type Filter struct {
	Project, Agent, Parent string
	States                 []State
	// Before is the id of the last run of the page before: runs are listed from the newest to the oldest.
	Before string
	// Limit is how many runs to return at most; zero means 50, and there are never more than 500.
	Limit int
}

// List returns runs of a tenant, the newest first. If there may be more, next is what Filter.Before has to be for them.
func (s *Store) List(ctx context.Context, tenant string, f Filter) (runs []Run, next string, err error) {
	limit := min(f.Limit, 500)
	if limit <= 0 {
		limit = 50
	}
	where, args := "tenant = ?", []any{tenant}
	add := func(condition string, values ...any) {
		where += " AND " + condition
		args = append(args, values...)
	}
	for column, value := range map[string]string{"project": f.Project, "agent": f.Agent, "parent": f.Parent} {
		if value != "" {
			add(column+" = ?", value)
		}
	}
	if len(f.States) > 0 {
		states := make([]any, len(f.States))
		for i, state := range f.States {
			states[i] = string(state)
		}
		add("state IN ("+marks(len(states))+")", states...)
	}
	if f.Before != "" {
		add("id < ?", f.Before)
	}
	err = s.db.Query(ctx, func(row store.Row) error {
		var c scanned
		if err := row.Scan(c.targets()...); err != nil {
			return err
		}
		r, err := c.finish()
		runs = append(runs, r)
		return err
	}, "SELECT "+columns+" FROM runs WHERE "+where+" ORDER BY id DESC LIMIT ?", append(args, limit+1)...)
	if err != nil {
		return nil, "", fmt.Errorf("list the runs: %w", err)
	}
	if len(runs) > limit {
		runs = runs[:limit]
		next = runs[limit-1].ID
	}
	return runs, next, nil
}

// marks returns n question marks.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// Attempts returns the attempts of a tenant's run, the first one first.
func (s *Store) Attempts(ctx context.Context, tenant, id string) ([]Attempt, error) {
	if _, err := s.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	var all []Attempt
	err := s.db.Query(ctx, func(row store.Row) error {
		var a Attempt
		var started, ended int64
		if err := row.Scan(&a.N, &a.Owner, &started, &ended, &a.Ending, &a.Message); err != nil {
			return err
		}
		a.StartedAt, a.EndedAt = instant(started), instant(ended)
		all = append(all, a)
		return nil
	}, "SELECT a.attempt, a.owner, a.started_at, a.ended_at, a.ending, a.message FROM run_attempts a JOIN runs r ON r.id = a.run "+
		"WHERE r.tenant = ? AND r.id = ? ORDER BY a.attempt", tenant, id)
	if err != nil {
		return nil, fmt.Errorf("the attempts of run %s: %w", id, err)
	}
	return all, nil
}

// Counts says how many runs of all tenants are in each state that is not final.
type Counts struct {
	Queued, Running, Suspended int64
	// Oldest is since when the run that has waited the longest could have started, zero if none waits.
	Oldest time.Time
}

// Counts counts the runs that have not ended.
func (s *Store) Counts(ctx context.Context) (Counts, error) {
	var c Counts
	err := s.db.Query(ctx, func(row store.Row) error {
		var state string
		var n int64
		if err := row.Scan(&state, &n); err != nil {
			return err
		}
		switch State(state) {
		case Queued:
			c.Queued = n
		case Running:
			c.Running = n
		case Suspended:
			c.Suspended = n
		}
		return nil
	}, "SELECT state, count(*) FROM runs WHERE state IN ('queued', 'running', 'suspended') GROUP BY state")
	if err != nil {
		return Counts{}, fmt.Errorf("count the runs: %w", err)
	}
	var oldest int64
	err = s.db.QueryRow(ctx, "SELECT CASE WHEN not_before > created_at THEN not_before ELSE created_at END FROM runs WHERE state = 'queued' ORDER BY not_before, id LIMIT 1", nil, &oldest)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Counts{}, fmt.Errorf("count the runs: %w", err)
	}
	c.Oldest = instant(oldest)
	return c, nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
