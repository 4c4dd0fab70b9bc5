package orchestrator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/hozo-run/hozo/internal/store"
)

// Queue wakes processes for runs that wait. It knows nothing of runs: a wake-up that comes twice, late or never does no
// harm, because whoever is woken has to take the run first, and every process looks for runs that nobody was woken for.
type Queue interface {
	// Enqueue adds a wake-up, in the transaction that makes the run wait; the zero time is now.
	Enqueue(ctx context.Context, tx *store.Tx, run string, at time.Time) (int64, error)
	// Cancel takes back a wake-up that was not delivered yet. One that is gone is no error.
	Cancel(ctx context.Context, id int64) error
	// Work delivers wake-ups to do, up to so many at once, until Stop. What do returns is when the same wake-up has to
	// come again; zero is never.
	Work(ctx context.Context, width int, do func(ctx context.Context, run string) time.Duration) error
	// Stats counts the wake-ups.
	Stats(ctx context.Context) (QueueStats, error)
	// Stop ends the deliveries, and returns when do does not run any more.
	Stop(ctx context.Context) error
}

// QueueStats counts the wake-ups of a Queue.
type QueueStats struct {
	// Due may be delivered now, Scheduled later.
	Due, Scheduled int64
}

// River is the Queue on the tables of River, in the same database as the runs. Its jobs are short: a job ends when the run
// has been started, and neither its time limits nor its search for lost jobs matter.
type River struct {
	db     *store.DB
	logger *slog.Logger
	insert *river.Client[*sql.Tx]
	client *river.Client[*sql.Tx] // nil unless it works
}

var _ Queue = (*River)(nil)

// wakeUp is the argument of River's jobs.
type wakeUp struct {
	Run string `json:"run"`
}

// Kind implements river.JobArgs.
func (wakeUp) Kind() string { return "run_wake_up" }

// NewRiver returns the queue of a database, and brings its tables up to date. Of several processes that start at once one
// does that. A nil logger drops what River says.
func NewRiver(ctx context.Context, db *store.DB, logger *slog.Logger) (*River, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	q := &River{db: db, logger: logger}
	if err := q.migrate(ctx); err != nil {
		return nil, fmt.Errorf("prepare the queue: %w", err)
	}
	client, err := q.newClient(&river.Config{})
	if err != nil {
		return nil, fmt.Errorf("prepare the queue: %w", err)
	}
	q.insert = client
	return q, nil
}

// newClient completes a configuration for the database.
func (q *River) newClient(c *river.Config) (*river.Client[*sql.Tx], error) {
	c.Logger = q.logger
	if q.db.Dialect() == store.Postgres {
		return river.NewClient(riverdatabasesql.NewWithPgxListener(q.db.Writer(), q.db.Pool()), c)
	}
	c.PollOnly = true // a listener would be one more writer of the file
	return river.NewClient(riversqlite.New(q.db.Writer()), c)
}

// migrate brings River's tables up to date.
func (q *River) migrate(ctx context.Context) error {
	config := &rivermigrate.Config{Logger: q.logger}
	if q.db.Dialect() == store.SQLite {
		migrator, err := rivermigrate.New(riversqlite.New(q.db.Writer()), config)
		if err != nil {
			return err
		}
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		if err != nil { // another process may have been at it
			_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		}
		return err
	}
	conn, err := q.db.Pool().Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	const lock = 0x686f7a6f71 // "hozoq"
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lock); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverdatabasesql.New(q.db.Writer()), config)
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	_, failed := conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", lock)
	return errors.Join(err, failed)
}

// Enqueue implements Queue.
func (q *River) Enqueue(ctx context.Context, tx *store.Tx, run string, at time.Time) (int64, error) {
	added, err := q.insert.InsertTx(ctx, tx.SQL(), wakeUp{Run: run}, &river.InsertOpts{ScheduledAt: at})
	if err != nil {
		return 0, err
	}
	return added.Job.ID, nil
}

// Cancel implements Queue.
func (q *River) Cancel(ctx context.Context, id int64) error {
	if _, err := q.insert.JobCancel(ctx, id); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
		return fmt.Errorf("take back the wake-up %d: %w", id, err)
	}
	return nil
}

// Work implements Queue. It is called once.
func (q *River) Work(ctx context.Context, width int, do func(ctx context.Context, run string) time.Duration) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[wakeUp]) error {
		if again := do(ctx, job.Args.Run); again > 0 {
			return river.JobSnooze(again)
		}
		return nil
	}))
	cooldown, poll := 10*time.Millisecond, 100*time.Millisecond
	if q.db.Dialect() == store.Postgres {
		poll = time.Second // notifications come at once
	}
	client, err := q.newClient(&river.Config{
		Workers:                     workers,
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: width}},
		JobTimeout:                  -1,
		FetchCooldown:               cooldown,
		FetchPollInterval:           poll,
		CompletedJobRetentionPeriod: 10 * time.Minute,
	})
	if err != nil {
		return fmt.Errorf("work on the queue: %w", err)
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("work on the queue: %w", err)
	}
	q.client = client
	return nil
}

// Stats implements Queue.
func (q *River) Stats(ctx context.Context) (QueueStats, error) {
	var s QueueStats
	err := q.db.Query(ctx, func(row store.Row) error {
		var state string
		var n int64
		if err := row.Scan(&state, &n); err != nil {
			return err
		}
		switch rivertype.JobState(state) {
		case rivertype.JobStateAvailable:
			s.Due = n
		case rivertype.JobStateScheduled, rivertype.JobStateRetryable:
			s.Scheduled += n
		}
		return nil
	}, "SELECT state, count(*) FROM river_job WHERE state IN ('available', 'scheduled', 'retryable') GROUP BY state")
	if err != nil {
		return QueueStats{}, fmt.Errorf("count the wake-ups: %w", err)
	}
	return s, nil
}

// Stop implements Queue.
func (q *River) Stop(ctx context.Context) error {
	if q.client == nil {
		return nil
	}
	if err := q.client.Stop(ctx); err != nil {
		return fmt.Errorf("stop the queue: %w", err)
	}
	return nil
}
