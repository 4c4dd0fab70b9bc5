package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// clock is a clock that a test turns.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.UnixMilli(1_700_000_000_000)} }

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// memoryBlobs keeps blobs for a test.
type memoryBlobs struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (b *memoryBlobs) Put(_ context.Context, hash string, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = map[string][]byte{}
	}
	b.kept[hash] = data
	return nil
}

func (b *memoryBlobs) Open(_ context.Context, hash string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.kept[hash]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// wakeUps is a queue that counts.
type wakeUps struct {
	mu   sync.Mutex
	runs map[string]int
}

func (w *wakeUps) Enqueue(_ context.Context, _ *store.Tx, id string, _ time.Time) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = map[string]int{}
	}
	w.runs[id]++
	return int64(len(w.runs)), nil
}

func (w *wakeUps) count(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[id]
}

// fixture is a store of runs with everything around it.
type fixture struct {
	*run.Store
	t     *testing.T
	db    *store.DB
	clock *clock
	blobs *memoryBlobs
	queue *wakeUps
}

func newFixture(t *testing.T, db *store.DB) *fixture {
	f := &fixture{t: t, db: db, clock: newClock(), blobs: &memoryBlobs{}, queue: &wakeUps{}}
	f.Store = run.New(db, run.Config{Blobs: f.blobs, Queue: f.queue, Clock: f.clock.time, Poll: time.Millisecond})
	t.Cleanup(f.Close)
	return f
}

const lease = 10 * time.Second

func claim(owner string) run.Claim {
	return run.Claim{Owner: owner, Place: "disk-" + owner, Lease: lease}
}

func request() run.Request {
	return run.Request{Tenant: "acme", Project: "p1", Agent: "clerk", Origin: "test"}
}

func (f *fixture) create(r run.Request, c run.Claim) run.Created {
	f.t.Helper()
	made, err := f.Create(f.t.Context(), r, c)
	if err != nil {
		f.t.Fatal(err)
	}
	return made
}

func (f *fixture) get(id string) run.Run {
	f.t.Helper()
	r, err := f.Get(f.t.Context(), "acme", id)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fixture) take(id, owner string) (run.Run, *run.Lease) {
	f.t.Helper()
	r, l, err := f.Take(f.t.Context(), id, claim(owner))
	if err != nil {
		f.t.Fatal(err)
	}
	return r, l
}

func (f *fixture) record(l *run.Lease) *run.Recorder {
	f.t.Helper()
	r, err := f.Record(f.t.Context(), *l)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(r.Abandon)
	return r
}

func event(id string, seq int64, data job.EventPayload) *job.Event {
	return job.NewEvent(seq, time.UnixMilli(1_700_000_000_000+seq), id, "", data)
}

func note(id string, seq int64) *job.Event {
	return event(id, seq, &job.Notice{Code: "n", Message: fmt.Sprint(seq)})
}

func frame(t *testing.T, n, seq int64, kind job.FrameType, data any) []byte {
	t.Helper()
	return mustFrame(n, seq, kind, data)
}

func mustFrame(n, seq int64, kind job.FrameType, data any) []byte {
	encoded, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	line, err := json.Marshal(job.Frame{V: job.FrameVersion, N: n, Seq: seq, Type: kind, Data: encoded})
	if err != nil {
		panic(err)
	}
	return line
}
