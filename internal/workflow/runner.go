package workflow

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hozo-run/hozo/internal/store"
)

// RunRequest asks a Starter for the run of one step.
type RunRequest struct {
	Tenant, Project string
	Agent           string
	// Version is 0 for the current one, Model nil for the agent's binding.
	Version int64
	Model   *Model
	Task    string
	Inputs  []RunInput
	// StartedBy is who started the workflow, Origin where the run comes from.
	StartedBy, Origin string
	// IdempotencyKey makes the second request the first one.
	IdempotencyKey string
}

// RunInput names what an earlier run left.
type RunInput struct {
	// Step is the name under which the files are put, Run the run that left them; nil Files take all of them.
	Step, Run string
	Files     []string
}

// Result is how the run of a step ended.
type Result struct {
	// Completed says that the run did what it should, Cancelled that somebody ended it.
	Completed, Cancelled bool
	// Answer is the last message of a run that completed, Message why another one did not.
	Answer, Message string
}

// Starter starts runs. It is safe for concurrent use.
type Starter interface {
	// Start accepts a run and returns its id. With a key that it knows it returns the id it gave before. A *Refusal is the
	// end of the step; any other error leaves the step to a later try.
	Start(ctx context.Context, request RunRequest) (run string, err error)
	// Wait returns when the run has ended. An error says nothing about the run.
	Wait(ctx context.Context, tenant, run string) (Result, error)
	// Cancel asks for the end of a run; one that has ended stays as it is.
	Cancel(ctx context.Context, tenant, run, cause string) error
}

// Refusal is the error of a run that cannot be started, however often it is tried: its agent is not known, for example.
type Refusal struct{ Err error }

// Error implements error.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns why.
func (r *Refusal) Unwrap() error { return r.Err }

// RunnerConfig is what a Runner is made of. DB and Starter are required.
type RunnerConfig struct {
	DB      *store.DB
	Starter Starter
	// Lease is how long a process may be silent about a workflow before another one goes on with it; zero means 30 seconds.
	Lease time.Duration
	// Failed hears of an error that leaves a workflow to the next Resume; nil ignores it.
	Failed func(workflow string, err error)
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Runner takes workflows through their steps. It is safe for concurrent use.
type Runner struct {
	config RunnerConfig
	db     *store.DB
	now    func() time.Time
	// owner is the name of this process that no other has.
	owner   string
	closing chan struct{}
	close   func()
	drivers sync.WaitGroup
	mutex   sync.Mutex
	// driven are the workflows that this process works on now; each channel is closed when it stops.
	driven map[string]chan struct{}
}

// NewRunner returns a runner. It starts nothing; Close ends what its methods start.
func NewRunner(config RunnerConfig) (*Runner, error) {
	if config.DB == nil || config.Starter == nil {
		return nil, errors.New("a runner needs a database and a starter of runs")
	}
	if config.Lease <= 0 {
		config.Lease = 30 * time.Second
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Failed == nil {
		config.Failed = func(string, error) {}
	}
	r := &Runner{config: config, db: config.DB, now: config.Now, owner: rand.Text(), closing: make(chan struct{}),
		driven: make(map[string]chan struct{})}
	r.close = sync.OnceFunc(func() { close(r.closing) })
	return r, nil
}

// Close stops working on workflows and waits until that is so. They stay as they are, for another process or the next
// start; their runs go on.
func (r *Runner) Close() {
	r.close()
	r.drivers.Wait()
}

// StartRequest asks for a run of a workflow.
type StartRequest struct {
	Tenant, Project string
	Definition      *Definition
	Arguments       map[string]string
	StartedBy       string
}

// Start accepts a workflow and works on it until Close. Wrong arguments are a *problem.Error of kind Invalid.
func (r *Runner) Start(ctx context.Context, request StartRequest) (*Run, error) {
	values, problems := fill(request.Definition.Arguments, request.Arguments)
	if err := problems.Err("start the workflow " + request.Definition.Name); err != nil {
		return nil, err
	}
	now := r.now().UTC().Truncate(time.Millisecond)
	for name, value := range values {
		values[name] = column(value)
	}
	run := &Run{ID: "wf_" + rand.Text(), Tenant: request.Tenant, Project: request.Project, Workflow: request.Definition.Name,
		Digest: request.Definition.Digest(), Arguments: values, StartedBy: request.StartedBy, State: StateRunning,
		CreatedAt: now, UpdatedAt: now, Steps: []StepRun{}, source: string(request.Definition.source)}
	if err := r.insert(ctx, run); err != nil {
		return nil, fmt.Errorf("keep the workflow: %w", err)
	}
	r.drive(request.Tenant, run.ID)
	return run, nil
}

// Resume works on every workflow that was left in its middle, of all tenants, and returns how many these are. A process
// calls it at its start and then from time to time.
func (r *Runner) Resume(ctx context.Context) (int, error) {
	claimed, err := r.claim(ctx)
	for _, c := range claimed {
		r.drive(c.tenant, c.id)
	}
	return len(claimed), err
}

// Cancel ends a workflow: its current run is cancelled and no further one is started. A workflow that has ended stays as it
// is. It is store.ErrNotFound for one that the tenant does not have.
func (r *Runner) Cancel(ctx context.Context, tenant, id, cause string) error {
	if cause == "" {
		cause = "cancelled"
	}
	if _, err := r.Get(ctx, tenant, id); err != nil {
		return err
	}
	if err := r.markCancelled(ctx, tenant, id, cause); err != nil {
		return err
	}
	run, err := r.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	if step := run.current(); step != nil && step.Run != "" && run.State == StateRunning {
		return r.config.Starter.Cancel(ctx, tenant, step.Run, cause)
	}
	return nil
}

// Await returns when this process does not work on a workflow any more: because it has ended, because of a fault that
// leaves it to a later Resume, or because of Close. It returns at once for one that it does not work on.
func (r *Runner) Await(ctx context.Context, id string) {
	r.mutex.Lock()
	stopped := r.driven[id]
	r.mutex.Unlock()
	if stopped == nil {
		return
	}
	select {
	case <-stopped:
	case <-ctx.Done():
	}
}

// drive works on a workflow in the background, until Close. One that this process works on already is left alone.
func (r *Runner) drive(tenant, id string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.driven[id] != nil {
		return
	}
	stopped := make(chan struct{})
	r.driven[id] = stopped
	r.drivers.Go(func() {
		ctx, done := context.WithCancel(context.Background())
		var beside sync.WaitGroup
		beside.Go(func() { r.renew(ctx, done, tenant, id) })
		err := r.steps(ctx, tenant, id)
		closed := ctx.Err() != nil
		done()
		beside.Wait()
		r.mutex.Lock()
		delete(r.driven, id)
		r.mutex.Unlock()
		close(stopped)
		if err != nil && !closed {
			r.config.Failed(id, err)
		}
	})
}

// renew keeps other processes away until ctx ends, and ends it with Close.
func (r *Runner) renew(ctx context.Context, done context.CancelFunc, tenant, id string) {
	ticker := time.NewTicker(r.config.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := r.extend(ctx, tenant, id); err != nil && ctx.Err() == nil {
				r.config.Failed(id, err) // at worst another process works on it too, which changes nothing
			}
		case <-r.closing:
			done()
			return
		case <-ctx.Done():
			return
		}
	}
}

// steps takes a workflow from where it is to its end.
func (r *Runner) steps(ctx context.Context, tenant, id string) error {
	for {
		run, err := r.Get(ctx, tenant, id)
		if err != nil || run.State != StateRunning {
			return err
		}
		definition, problems := Parse(run.Workflow+".yaml", []byte(run.source))
		if err := problems.Err("read the workflow"); err != nil {
			return r.end(ctx, run, StateFailed, err.Error())
		}
		switch {
		case run.cancel != "" && (run.current() == nil || run.current().Run == ""):
			err = r.end(ctx, run, StateCancelled, run.cancel)
		case run.Position >= len(definition.Steps):
			err = r.end(ctx, run, StateCompleted, "")
		default:
			err = r.step(ctx, run, definition)
		}
		if err != nil {
			return err
		}
	}
}

// step starts the step at the position of run, or finds it started, and waits for its end.
func (r *Runner) step(ctx context.Context, run *Run, definition *Definition) error {
	step := &definition.Steps[run.Position]
	current := run.current()
	if current == nil || current.Run == "" {
		id, err := r.config.Starter.Start(ctx, request(run, step))
		if refusal, refused := errors.AsType[*Refusal](err); refused {
			return r.endStep(ctx, run, step, "", Result{Message: refusal.Error()})
		}
		if err != nil {
			return fmt.Errorf("start the step %q: %w", step.Name, err)
		}
		if err := r.beginStep(ctx, run, step, id); err != nil {
			return err
		}
		return r.cancelIfAsked(ctx, run, id)
	}
	result, err := r.config.Starter.Wait(ctx, run.Tenant, current.Run)
	if err != nil {
		return fmt.Errorf("wait for the step %q: %w", step.Name, err)
	}
	return r.endStep(ctx, run, step, current.Run, result)
}

// cancelIfAsked cancels the run of a step that was started while somebody cancelled the workflow.
func (r *Runner) cancelIfAsked(ctx context.Context, run *Run, started string) error {
	again, err := r.Get(ctx, run.Tenant, run.ID)
	if err != nil || again.cancel == "" {
		return err
	}
	return r.config.Starter.Cancel(ctx, run.Tenant, started, again.cancel)
}

// request is what the starter is asked for.
func request(run *Run, step *Step) RunRequest {
	values := make(map[string]string, len(run.Arguments)+len(run.Steps))
	for name, value := range run.Arguments {
		values[name] = value
	}
	for _, s := range run.Steps {
		values["steps."+s.Name+".answer"] = s.Answer
	}
	asked := RunRequest{Tenant: run.Tenant, Project: run.Project, Agent: step.Agent, Version: step.Version, Model: step.Model,
		Task: step.template.render(values), StartedBy: run.StartedBy, Origin: "workflow",
		IdempotencyKey: fmt.Sprintf("%s/%d", run.ID, run.Position)}
	for _, input := range step.Inputs {
		for _, s := range run.Steps {
			if s.Name == input.From {
				asked.Inputs = append(asked.Inputs, RunInput{Step: s.Name, Run: s.Run, Files: input.Files})
			}
		}
	}
	return asked
}
