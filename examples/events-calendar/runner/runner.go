// Package runner turns a request into a job and a job into a run. It compiles the agent's package, the prompts, the
// lessons and the settings of the installation into one job document, starts it on a job.Runtime with the calendar's tools
// lent to it, keeps every event, step and document, and writes the report when the job has ended. At the start of a run it
// recalls lessons, at the end it learns those that the run has noted.
//
// Everything outside of it is lent: the runtime, the stores, the memory and the prompt source are interfaces or values in
// its Config. What is missing in a run (the search server, the prompt source, the memory) degrades the run and is in its
// record; it never ends it.
package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/agent"
	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/prompt"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// MaxInput is the longest task, in bytes.
const MaxInput = 32 << 10

// Config is what a Runner is built from. All fields are required unless they say otherwise.
type Config struct {
	Runtime  job.Runtime
	Agent    *agent.Agent
	Runs     *run.Store
	Calendar *calendar.Store
	Memory   memory.Memory
	// Prompts is where prompts are looked up; nil means that the embedded ones are all there are.
	Prompts prompt.Source
	// PromptLabel replaces the label of every prompt of the agent; empty keeps them.
	PromptLabel string
	// Model and Provider are the model of every run and its account.
	Model    job.ModelRef
	Provider job.ProviderConfig
	// Priced says that the price of the model is known, so that a budget in money can be kept.
	Priced bool
	// Simulated marks a model that is a script.
	Simulated bool
	// Search is the server of the search tools; nil means that there is none.
	Search *job.MCPServer
	// Dir is where runs have their directories.
	Dir string
	// Concurrent is how many runs go on at once; 0 means 2. Waiting is how many more may wait; 0 means 50.
	Concurrent, Waiting int
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
	// Log gets what goes wrong; nil drops it.
	Log *slog.Logger
}

// Runner runs the agent. It is safe for concurrent use.
type Runner struct {
	config Config
	host   *hostserver.Server

	tickets chan struct{} // one for each run that is queued or goes on
	queue   chan string
	workers sync.WaitGroup
	quit    chan struct{}

	mu      sync.Mutex
	stopped bool
	active  map[string]*attempt
}

// New returns a Runner that does nothing yet; Start starts it.
func New(c Config) (*Runner, error) {
	if c.Runtime == nil || c.Agent == nil || c.Runs == nil || c.Calendar == nil || c.Memory == nil || c.Dir == "" {
		return nil, errors.New("runner: config needs Runtime, Agent, Runs, Calendar, Memory and Dir")
	}
	if c.Concurrent <= 0 {
		c.Concurrent = 2
	}
	if c.Waiting <= 0 {
		c.Waiting = 50
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	host, err := hostserver.NewServer(hostserver.Config{Tools: append(c.Calendar.Tools(), memory.Tool()), Log: c.Log})
	if err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	return &Runner{config: c, host: host, quit: make(chan struct{}), active: map[string]*attempt{}}, nil
}

// Start takes up the runs that an earlier process left, the oldest first, and then those that are submitted. It is called
// once, before Submit.
func (r *Runner) Start(ctx context.Context) error {
	left, err := r.config.Runs.Unfinished(ctx)
	if err != nil {
		return err
	}
	room := r.config.Concurrent + r.config.Waiting + len(left)
	r.tickets, r.queue = make(chan struct{}, room), make(chan string, room)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range left {
		r.tickets <- struct{}{}
		r.active[l.ID] = &attempt{}
		r.queue <- l.ID
	}
	for range r.config.Concurrent {
		r.workers.Go(r.work)
	}
	return nil
}

// Stop ends the runner: nothing more is submitted, and the runs that go on are suspended where the next process takes
// them up, or aborted when ctx ends. It returns when all of them have let go.
func (r *Runner) Stop(ctx context.Context) {
	r.mu.Lock()
	if !r.stopped {
		r.stopped = true
		close(r.quit)
	}
	for _, a := range r.active {
		a.detach()
	}
	r.mu.Unlock()
	done := make(chan struct{})
	go func() { r.workers.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		r.mu.Lock()
		for _, a := range r.active {
			a.abort("the server has stopped")
		}
		r.mu.Unlock()
		<-done
	}
}

// Request is what a client asks for.
type Request struct {
	// Input is the task.
	Input string
	// Mode is auto or review.
	Mode run.Mode
	// Key makes a request that is made twice one run.
	Key run.Key
}

func (q Request) check() error {
	var list problem.List
	switch {
	case strings.TrimSpace(q.Input) == "":
		list.AddHint("missing", "/input", "say which events are wanted", "the input is missing")
	case len(q.Input) > MaxInput:
		list.Add("too-long", "/input", "the input has %d bytes; at most %d are allowed", len(q.Input), MaxInput)
	case !utf8.ValidString(q.Input):
		list.Add("text-invalid", "/input", "the input is not UTF-8")
	}
	if q.Mode != run.Auto && q.Mode != run.Review {
		list.AddHint("mode-unknown", "/mode", "known: auto, review", "there is no mode %q", q.Mode)
	}
	return list.Err("start a run")
}

// ErrBusy says that too many runs wait already; the same request may work later.
var ErrBusy = &problem.Error{Kind: problem.Unavailable, Message: "too many runs wait already; try again later"}

// Submit queues a run and returns it at once. Every problem of the request comes in one *problem.Error of kind Invalid; a
// key that was used for another request is one of kind Conflict; ErrBusy means that there is no room now.
func (r *Runner) Submit(ctx context.Context, q Request) (run.Run, error) {
	if err := q.check(); err != nil {
		return run.Run{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock() // so that Stop finds either the run or no room for it
	if r.stopped {
		return run.Run{}, ErrBusy
	}
	select {
	case r.tickets <- struct{}{}:
	default:
		return run.Run{}, ErrBusy
	}
	created, isNew, err := r.config.Runs.Create(ctx, run.Run{ID: "run_" + strings.ToLower(rand.Text()), Mode: q.Mode, Input: q.Input,
		Model:   run.Model{Provider: r.config.Model.Provider, ID: r.config.Model.ID, Simulated: r.config.Simulated},
		Prompts: []prompt.Prompt{}, Applied: []memory.Lesson{}, Learned: []memory.Lesson{}, Degraded: []job.Notice{}}, q.Key)
	if err != nil || !isNew {
		<-r.tickets
		return created, err
	}
	r.active[created.ID] = &attempt{}
	r.queue <- created.ID
	return created, nil
}

// Abort ends a run that is queued or goes on. One that has ended is a *problem.Error of kind Conflict, an unknown one of
// kind NotFound. The run may be a moment from its end when Abort returns.
func (r *Runner) Abort(ctx context.Context, id, cause string) error {
	r.mu.Lock()
	a := r.active[id]
	r.mu.Unlock()
	if a != nil {
		a.abort(cause) // a run that waits for a worker is ended by it
		return nil
	}
	known, err := r.config.Runs.Find(ctx, id)
	if err != nil {
		return err
	}
	return &problem.Error{Kind: problem.Conflict, Message: fmt.Sprintf("the run %s is not in work here: it is %s", id, known.Status)}
}

func (r *Runner) work() {
	for {
		select {
		case <-r.quit:
			return
		case id := <-r.queue:
			r.take(id)
			<-r.tickets
		}
	}
}

// take makes one attempt at a run. A run that cannot be attempted ends as failed; only a store that fails leaves it, for
// the next process.
func (r *Runner) take(id string) {
	ctx := context.Background()
	r.mu.Lock()
	a, stopped := r.active[id], r.stopped
	r.mu.Unlock()
	if stopped {
		return // the next process takes it up
	}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.active, id)
	}()
	if err := r.attempt(ctx, id, a); err != nil {
		r.config.Log.Error("a run could not be recorded", "run", id, "error", err)
	}
}
