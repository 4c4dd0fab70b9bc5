package harness

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// each calls f for 0 to n-1 from conc goroutines and returns the first error.
func each(n, conc int, f func(i int) error) error {
	var next atomic.Int64
	var first atomic.Pointer[error]
	var wg sync.WaitGroup
	for range conc {
		wg.Go(func() {
			for first.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// runs measures whole runs, a few of them at once.
func (r *runner) runs(ctx context.Context, record *Record) error {
	w := r.work
	warm := min(w.Conc, 50)
	if err := each(warm, warm, func(int) error { return r.one(ctx, "fake-t2-c5") }); err != nil {
		return err
	}
	if err := r.forget(); err != nil {
		return err
	}
	model := fmt.Sprintf("fake-t%d-c%d-b%d", w.Turns, w.Pieces, w.Burst)
	settle()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, wall := cpuMicros(), time.Now()
	if err := each(w.Runs, w.Conc, func(int) error { return r.one(ctx, model) }); err != nil {
		return err
	}
	elapsed := time.Since(wall)
	cpu = cpuMicros() - cpu
	runtime.ReadMemStats(&after)
	stats, err := ReadStats(r.base)
	if err != nil {
		return err
	}
	calls := float64(max(stats.Requests, 1))
	record.Requests, record.ToolCalls, record.Deltas = stats.Requests, toolCalls.Load(), deltas.Load()
	record.RequestKB = float64(stats.RequestBytes) / calls / 1024
	record.CPUMicros = cpu / calls
	record.CallsPerSec = calls / elapsed.Seconds()
	record.Allocs = float64(after.Mallocs-before.Mallocs) / calls
	record.AllocKB = float64(after.TotalAlloc-before.TotalAlloc) / calls / 1024
	record.PeakRSSMB = statusKB("VmHWM") / 1024
	if auditor, ok := r.peer.(Auditor); ok {
		return auditor.Audit(w, stats.Requests)
	}
	return nil
}

// forget sets every counter to 0.
func (r *runner) forget() error {
	toolCalls.Store(0)
	deltas.Store(0)
	if auditor, ok := r.peer.(Auditor); ok {
		auditor.Reset()
	}
	return ResetStats(r.base)
}

// agents measures what it takes to have an agent that is ready for its first request.
func (r *runner) agents(record *Record) error {
	model := fmt.Sprintf("fake-t%d-c%d", r.work.Turns, r.work.Pieces)
	create := func() (any, error) { return r.peer.New(r.base, model) }
	if p, ok := r.peer.(Preparer); ok {
		create = func() (any, error) { return p.Prepare(r.base, model) }
	}
	first, err := create() // what a process does once is not what an agent costs
	if err != nil {
		return err
	}
	settle()
	keep := make([]any, r.work.Runs)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuMicros()
	for i := range keep {
		if keep[i], err = create(); err != nil {
			return err
		}
	}
	cpu = cpuMicros() - cpu
	settle()
	runtime.ReadMemStats(&after)
	n := float64(len(keep))
	record.AgentMicros = cpu / n
	live := func(m *runtime.MemStats) float64 { return float64(m.HeapAlloc) + float64(m.StackInuse) }
	record.AgentKB = (live(&after) - live(&before)) / n / 1024
	for _, k := range append(keep, first) {
		if release, ok := k.(func()); ok {
			release()
		}
	}
	return nil
}

// active measures the memory of runs that are in the middle of a response.
func (r *runner) active(ctx context.Context, record *Record) error {
	if err := r.one(ctx, "fake-t2-c5"); err != nil {
		return err
	}
	settle()
	if err := ResetStats(r.base); err != nil {
		return err
	}
	rss := statusKB("VmRSS")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	model := fmt.Sprintf("fake-t0-c%d-h1", r.work.Pieces)
	done := make(chan error, 1)
	go func() { done <- each(r.work.Runs, r.work.Runs, func(int) error { return r.one(ctx, model) }) }()
	if err := r.awaitHeld(record, done); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond) // what has been sent is read
	settle()
	runtime.ReadMemStats(&after)
	n := float64(r.work.Runs)
	record.BaseRSSMB = rss / 1024
	record.RunRSSKB = (statusKB("VmRSS") - rss) / n
	record.RunHeapKB = (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n / 1024
	if err := tell(r.base + "/release"); err != nil {
		return err
	}
	return <-done
}

// awaitHeld returns when every run is held, or after a minute: the record then shows how many were.
func (r *runner) awaitHeld(record *Record, done <-chan error) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		stats, err := ReadStats(r.base)
		if err != nil {
			return err
		}
		if record.Held = stats.Held; record.Held >= int64(r.work.Runs) {
			return nil
		}
		select {
		case err := <-done:
			return fmt.Errorf("the runs ended early: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
