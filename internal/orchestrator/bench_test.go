package orchestrator_test

import (
	"context"
	"database/sql"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/hozo-run/hozo/internal/orchestrator"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

func benchmarkEach(b *testing.B, bench func(b *testing.B, db *store.DB)) {
	for name, config := range map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) { bench(b, storetest.Open(b, config(b))) })
	}
}

func benchWorker(b *testing.B, db *store.DB, slots int, play func(*fakeJob)) *orchestrator.Worker {
	b.Helper()
	queue, err := orchestrator.NewRiver(b.Context(), db, nil)
	if err != nil {
		b.Fatal(err)
	}
	runs := run.New(db, run.Config{Queue: queue})
	w := orchestrator.New(orchestrator.Config{Runs: runs, Queue: queue, Runtime: &fakeRuntime{play: play}, Compiler: compilerFunc(emptySpec), Slots: slots})
	b.Cleanup(func() {
		if err := w.Stop(context.Background()); err != nil {
			b.Error(err)
		}
		runs.Close()
	})
	return w
}

// BenchmarkSubmitToStart is the time from a request to the start of its job on an idle process, one run at a time.
func BenchmarkSubmitToStart(b *testing.B) {
	benchmarkEach(b, func(b *testing.B, db *store.DB) {
		started := make(chan time.Time)
		w := benchWorker(b, db, 16, func(j *fakeJob) {
			started <- time.Now()
			j.end(done())
		})
		if err := w.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			if _, err := w.Submit(b.Context(), ask()); err != nil {
				b.Fatal(err)
			}
			took = append(took, (<-started).Sub(began))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	})
}

// BenchmarkBacklog works off runs that were queued before, each with its lease, its records and its end.
func BenchmarkBacklog(b *testing.B) {
	benchmarkEach(b, func(b *testing.B, db *store.DB) {
		left, all := atomic.Int64{}, make(chan struct{})
		left.Store(int64(b.N))
		w := benchWorker(b, db, 64, func(j *fakeJob) {
			j.end(done())
			if left.Add(-1) == 0 {
				close(all)
			}
		})
		front := benchWorker(b, db, -1, nil)
		for range b.N {
			if _, err := front.Submit(b.Context(), ask()); err != nil {
				b.Fatal(err)
			}
		}
		b.ResetTimer()
		if err := w.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		<-all
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	})
}

type bareArgs struct {
	N int `json:"n"`
}

// Kind implements river.JobArgs.
func (bareArgs) Kind() string { return "bare" }

// BenchmarkBareRiver is the queue alone, with jobs that do nothing: what BenchmarkBacklog is compared with.
func BenchmarkBareRiver(b *testing.B) {
	benchmarkEach(b, func(b *testing.B, db *store.DB) {
		if _, err := orchestrator.NewRiver(b.Context(), db, nil); err != nil {
			b.Fatal(err)
		}
		left, all := atomic.Int64{}, make(chan struct{})
		left.Store(int64(b.N))
		workers := river.NewWorkers()
		river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[bareArgs]) error {
			if left.Add(-1) == 0 {
				close(all)
			}
			return nil
		}))
		config := &river.Config{Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 64}}, FetchCooldown: 10 * time.Millisecond, PollOnly: db.Dialect() == store.SQLite}
		var client *river.Client[*sql.Tx]
		var err error
		if db.Dialect() == store.Postgres {
			client, err = river.NewClient(riverdatabasesql.NewWithPgxListener(db.Writer(), db.Pool()), config)
		} else {
			client, err = river.NewClient(riversqlite.New(db.Writer()), config)
		}
		if err != nil {
			b.Fatal(err)
		}
		for n := range b.N {
			if _, err := client.Insert(b.Context(), bareArgs{N: n}, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ResetTimer()
		if err := client.Start(context.Background()); err != nil {
			b.Fatal(err)
		}
		<-all
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		b.StopTimer()
		if err := client.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
	})
}
