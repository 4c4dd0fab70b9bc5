package run_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

func benchmarkEach(b *testing.B, bench func(b *testing.B, s *run.Store)) {
	for name, config := range map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			s := run.New(storetest.Open(b, config(b)), run.Config{})
			b.Cleanup(s.Close)
			bench(b, s)
		})
	}
}

// journalOf begins to record a run. It returns a function that appends one frame of a kibibyte and waits until it is stored.
func journalOf(b *testing.B, s *run.Store) func() error {
	b.Helper()
	born, err := s.Create(b.Context(), request(), claim("bench"))
	if err != nil {
		b.Fatal(err)
	}
	r, err := s.Record(b.Context(), *born.Lease)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Abandon)
	n, data := int64(0), job.CallDecidedFrame{CallID: strings.Repeat("x", 1000)}
	return func() error {
		n++
		stored, err := r.Append(benchFrame(n, data))
		if err != nil {
			return err
		}
		return <-stored
	}
}

func benchFrame(n int64, data any) []byte {
	return mustFrame(n, 0, job.FrameSuspended, data)
}

// BenchmarkDurableFrame is one frame after the other in one run.
func BenchmarkDurableFrame(b *testing.B) {
	benchmarkEach(b, func(b *testing.B, s *run.Store) {
		add := journalOf(b, s)
		for b.Loop() {
			if err := add(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDurableFramesOf64 is the same in 64 runs at once.
func BenchmarkDurableFramesOf64(b *testing.B) {
	benchmarkEach(b, func(b *testing.B, s *run.Store) {
		var runs []func() error
		for range 64 {
			runs = append(runs, journalOf(b, s))
		}
		left := atomic.Int64{}
		left.Store(int64(b.N))
		var all sync.WaitGroup
		b.ResetTimer()
		for _, add := range runs {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					if err := add(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
	})
}

// BenchmarkCreateLeased is accepting runs that start at once, 32 at a time.
func BenchmarkCreateLeased(b *testing.B) {
	benchmarkEach(b, func(b *testing.B, s *run.Store) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Create(b.Context(), request(), claim("bench")); err != nil {
					b.Error(err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	})
}
