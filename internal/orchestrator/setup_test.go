package orchestrator_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/orchestrator"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[0] == childName {
		os.Exit(childMain(os.Args[1], os.Args[2]))
	}
	storetest.Main(m)
}

// folderBlobs keeps blobs in a directory.
type folderBlobs string

func (b folderBlobs) Put(_ context.Context, hash string, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(string(b), "new-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(file, bytes.NewReader(data))
	return errors.Join(err, file.Close(), os.Rename(file.Name(), filepath.Join(string(b), hash)))
}

func (b folderBlobs) Open(_ context.Context, hash string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(b), hash))
}

// fakeJob is a job that a test plays.
type fakeJob struct {
	spec   *job.Spec
	ports  job.Ports
	events chan *job.Event
	// abort and detach get what the worker asks for.
	abort   chan string
	detach  chan struct{}
	outcome job.Outcome
	done    chan struct{}
}

func (j *fakeJob) Events() <-chan *job.Event { return j.events }
func (j *fakeJob) Discard() {
	go func() {
		for range j.events { // so that the job can end
		}
	}()
}
func (j *fakeJob) Wait() job.Outcome { <-j.done; return j.outcome }
func (j *fakeJob) Abort(cause string) {
	select {
	case j.abort <- cause:
	default:
	}
}
func (j *fakeJob) Detach() {
	select {
	case j.detach <- struct{}{}:
	default:
	}
}

// end ends the job with an outcome, and the event that reports it.
func (j *fakeJob) end(outcome job.Outcome) {
	j.outcome = outcome
	close(j.events)
	close(j.done)
}

// fakeRuntime starts jobs that a function plays.
type fakeRuntime struct {
	play func(j *fakeJob)
	fail func(spec *job.Spec) error
}

func (r *fakeRuntime) Start(_ context.Context, spec *job.Spec, ports job.Ports) (job.Handle, error) {
	if r.fail != nil {
		if err := r.fail(spec); err != nil {
			return nil, err
		}
	}
	j := &fakeJob{spec: spec, ports: ports, events: make(chan *job.Event), abort: make(chan string, 1), detach: make(chan struct{}, 1), done: make(chan struct{})}
	go r.play(j)
	return j, nil
}

// compilerFunc is a Compiler.
type compilerFunc func(r run.Run) (*job.Spec, error)

func (c compilerFunc) Compile(_ context.Context, r run.Run) (*job.Spec, job.Host, error) {
	spec, err := c(r)
	return spec, nil, err
}

func emptySpec(run.Run) (*job.Spec, error) { return &job.Spec{}, nil }

func done() job.Outcome {
	return job.Outcome{Completed: &job.CompletedData{Answer: "Done.", Outputs: []string{}}}
}

// complete plays a job that is done at once.
func complete(j *fakeJob) { j.end(done()) }

// fixture is a worker with everything around it.
type fixture struct {
	t      *testing.T
	db     *store.DB
	runs   *run.Store
	queue  *orchestrator.River
	config orchestrator.Config
}

func newFixture(t *testing.T, db *store.DB, play func(*fakeJob)) *fixture {
	t.Helper()
	queue, err := orchestrator.NewRiver(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	runs := run.New(db, run.Config{Queue: queue, Poll: 5 * time.Millisecond})
	t.Cleanup(runs.Close)
	return &fixture{t: t, db: db, runs: runs, queue: queue, config: orchestrator.Config{Runs: runs, Queue: queue,
		Runtime: &fakeRuntime{play: play}, Compiler: compilerFunc(emptySpec), Slots: 4, Sweep: 10 * time.Millisecond, RetryAfter: time.Millisecond}}
}

// start starts a worker that ends with the test.
func (f *fixture) start() *orchestrator.Worker {
	f.t.Helper()
	w := orchestrator.New(f.config)
	if err := w.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	var once sync.Once
	f.t.Cleanup(func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = w.Stop(ctx) // tests that care stop it themselves
		})
	})
	return w
}

func ask() run.Request { return run.Request{Tenant: "acme", Project: "p1", Agent: "clerk"} }

func (f *fixture) submit(w *orchestrator.Worker, r run.Request) run.Created {
	f.t.Helper()
	made, err := w.Submit(f.t.Context(), r)
	if err != nil {
		f.t.Fatal(err)
	}
	return made
}

// ended follows a run to its end.
func (f *fixture) ended(id string) run.Run {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	var last int64
	for e, err := range f.runs.Follow(ctx, "acme", id, 0) {
		if err != nil {
			f.t.Fatal(err)
		}
		if e.Seq != last+1 {
			f.t.Errorf("run %s: event %d after event %d", id, e.Seq, last)
		}
		last = e.Seq
	}
	r, err := f.runs.Get(f.t.Context(), "acme", id)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}
