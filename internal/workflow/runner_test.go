package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/internal/workflow"
	"github.com/hozo-run/hozo/problem"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const tenant = "acme"

// runs stands for whatever executes runs. It survives the runners that use it.
type runs struct {
	mutex   sync.Mutex
	asked   []workflow.RunRequest
	byKey   map[string]string
	results map[string]chan workflow.Result
	// started gets the id of each new run.
	started chan string
	// faults are the errors of the next calls of Start and Wait.
	faults []error
}

func newRuns() *runs {
	return &runs{byKey: map[string]string{}, results: map[string]chan workflow.Result{}, started: make(chan string, 100)}
}

func (r *runs) fault() error {
	if len(r.faults) == 0 {
		return nil
	}
	err := r.faults[0]
	r.faults = r.faults[1:]
	return err
}

func (r *runs) Start(_ context.Context, request workflow.RunRequest) (string, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.fault(); err != nil {
		return "", err
	}
	if request.Agent == "no-such-agent" {
		return "", &workflow.Refusal{Err: fmt.Errorf("unknown agent %q", request.Agent)}
	}
	if id := r.byKey[request.IdempotencyKey]; id != "" {
		return id, nil
	}
	id := fmt.Sprintf("run-%d", len(r.byKey)+1)
	r.byKey[request.IdempotencyKey], r.results[id] = id, make(chan workflow.Result, 1)
	r.asked = append(r.asked, request)
	r.started <- id
	return id, nil
}

func (r *runs) Wait(ctx context.Context, _, run string) (workflow.Result, error) {
	r.mutex.Lock()
	results, err := r.results[run], r.fault()
	r.mutex.Unlock()
	if err != nil {
		return workflow.Result{}, err
	}
	select {
	case result := <-results:
		results <- result // for whoever asks next
		return result, nil
	case <-ctx.Done():
		return workflow.Result{}, ctx.Err()
	}
}

func (r *runs) Cancel(_ context.Context, _, run, cause string) error {
	r.end(run, workflow.Result{Cancelled: true, Message: cause})
	return nil
}

// end ends a run that has not ended.
func (r *runs) end(run string, result workflow.Result) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	select {
	case r.results[run] <- result:
	default:
	}
}

func (r *runs) requests() []workflow.RunRequest {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]workflow.RunRequest{}, r.asked...)
}

func parse(t *testing.T, text string) *workflow.Definition {
	t.Helper()
	d, problems := workflow.Parse("review.yaml", []byte(text))
	if problems != nil {
		t.Fatal(problems)
	}
	return d
}

const review = `name: review
description: Looks and then judges.
arguments:
  - {name: focus, description: What to look at., default: all}
steps:
  - {name: look, agent: reader, task: "Look at {{ focus }}."}
  - name: judge
    agent: judge
    version: 3
    model: {provider: p, id: m}
    inputs: [{from: look, files: [REPORT.md]}]
    task: "Judge: {{ steps.look.answer }}"
`

func newRunner(t *testing.T, db *store.DB, starter workflow.Starter, change func(*workflow.RunnerConfig)) *workflow.Runner {
	t.Helper()
	config := workflow.RunnerConfig{DB: db, Starter: starter}
	if change != nil {
		change(&config)
	}
	r, err := workflow.NewRunner(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func start(t *testing.T, r *workflow.Runner, d *workflow.Definition, arguments map[string]string) string {
	t.Helper()
	run, err := r.Start(t.Context(), workflow.StartRequest{Tenant: tenant, Project: "web", Definition: d, Arguments: arguments, StartedBy: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	return run.ID
}

// until returns the workflow once it has ended.
func until(t *testing.T, r *workflow.Runner, id string) *workflow.Run {
	t.Helper()
	r.Await(t.Context(), id)
	run, err := r.Get(t.Context(), tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestTheOutputOfAStepFeedsTheNext(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs := newRuns()
		r := newRunner(t, db, runs, nil)
		id := start(t, r, parse(t, review), map[string]string{"focus": "{{ steps.look.answer }}"})
		runs.end(<-runs.started, workflow.Result{Completed: true, Answer: "Seen {{ focus }}."})
		runs.end(<-runs.started, workflow.Result{Completed: true, Answer: "Good."})
		run := until(t, r, id)
		if run.State != workflow.StateCompleted || run.Position != 2 || run.EndedAt.IsZero() || len(run.Steps) != 2 ||
			run.Steps[1].Answer != "Good." || run.Steps[1].State != workflow.StateCompleted {
			t.Errorf("%+v", run)
		}
		want := []workflow.RunRequest{
			{Tenant: tenant, Project: "web", Agent: "reader", Task: "Look at {{ steps.look.answer }}.", StartedBy: "ada", Origin: "workflow", IdempotencyKey: id + "/0"},
			{Tenant: tenant, Project: "web", Agent: "judge", Version: 3, Model: &workflow.Model{Provider: "p", ID: "m"}, Task: "Judge: Seen {{ focus }}.",
				Inputs: []workflow.RunInput{{Step: "look", Run: "run-1", Files: []string{"REPORT.md"}}}, StartedBy: "ada", Origin: "workflow", IdempotencyKey: id + "/1"},
		}
		if diff := cmp.Diff(want, runs.requests()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAStepWithAMissingAgentFailsWhenItsTurnComes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs := newRuns()
		r := newRunner(t, db, runs, nil)
		id := start(t, r, parse(t, strings.Replace(review, "agent: judge", "agent: no-such-agent", 1)), nil)
		runs.end(<-runs.started, workflow.Result{Completed: true, Answer: "Seen."})
		run := until(t, r, id)
		if run.State != workflow.StateFailed || run.Position != 1 || len(run.Steps) != 2 {
			t.Fatalf("%+v", run)
		}
		if s := run.Steps[0]; s.State != workflow.StateCompleted {
			t.Errorf("the step before it: %+v", s)
		}
		if s := run.Steps[1]; s.State != workflow.StateFailed || s.Message != `unknown agent "no-such-agent"` || s.Run != "" {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(run.Message, `the step "judge" failed: unknown agent`) {
			t.Error(run.Message)
		}
	})
}

func TestAStepThatFailsEndsTheWorkflow(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs := newRuns()
		r := newRunner(t, db, runs, nil)
		id := start(t, r, parse(t, review), nil)
		runs.end(<-runs.started, workflow.Result{Message: "the model is gone"})
		run := until(t, r, id)
		if run.State != workflow.StateFailed || run.Message != `the step "look" failed: the model is gone` || len(runs.requests()) != 1 {
			t.Errorf("%+v", run)
		}
	})
}

func TestAWorkflowGoesOnWhereItWasAfterACrash(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs, now := newRuns(), time.UnixMilli(1_700_000_000_000)
		clock := func(c *workflow.RunnerConfig) { c.Now = func() time.Time { return now } }
		first := newRunner(t, db, runs, clock)
		id := start(t, first, parse(t, review), nil)
		run1 := <-runs.started
		first.Close()
		second := newRunner(t, db, runs, clock)
		if n, err := second.Resume(t.Context()); n != 0 || err != nil {
			t.Fatalf("%d workflows were taken from a process that may live, %v", n, err)
		}
		now = now.Add(31 * time.Second)
		if n, err := second.Resume(t.Context()); n != 1 || err != nil {
			t.Fatalf("%d workflows, %v", n, err)
		}
		runs.end(run1, workflow.Result{Completed: true, Answer: "Seen."})
		runs.end(<-runs.started, workflow.Result{Completed: true})
		if run := until(t, second, id); run.State != workflow.StateCompleted {
			t.Errorf("%+v", run)
		}
		if asked := runs.requests(); len(asked) != 2 {
			t.Errorf("%d runs were started for two steps", len(asked))
		}
	})
}

func TestARunThatWasStartedJustBeforeACrashIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs, now := newRuns(), time.UnixMilli(1_700_000_000_000)
		clock := func(c *workflow.RunnerConfig) { c.Now = func() time.Time { return now } }
		lost := &lostAnswer{runs: runs}
		first := newRunner(t, db, lost, clock)
		id := start(t, first, parse(t, review), nil)
		run1 := <-runs.started
		first.Await(t.Context(), id)
		first.Close()
		now = now.Add(time.Minute)
		second := newRunner(t, db, runs, clock)
		if n, err := second.Resume(t.Context()); n != 1 || err != nil {
			t.Fatalf("%d workflows, %v", n, err)
		}
		runs.end(run1, workflow.Result{Completed: true})
		runs.end(<-runs.started, workflow.Result{Completed: true})
		if run := until(t, second, id); run.State != workflow.StateCompleted || run.Steps[0].Run != run1 {
			t.Errorf("%+v", run)
		}
		if asked := runs.requests(); len(asked) != 2 {
			t.Errorf("%d runs were started for two steps", len(asked))
		}
	})
}

// lostAnswer starts runs and loses the answer.
type lostAnswer struct{ *runs }

func (l *lostAnswer) Start(ctx context.Context, request workflow.RunRequest) (string, error) {
	_, err := l.runs.Start(ctx, request)
	return "", errors.Join(errors.New("the connection is gone"), err)
}

func TestAFaultOutsideLeavesTheWorkflowToALaterTry(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs, now := newRuns(), time.UnixMilli(1_700_000_000_000)
		runs.faults = []error{errors.New("no database")}
		told := make(chan error, 1)
		r := newRunner(t, db, runs, func(c *workflow.RunnerConfig) {
			c.Now = func() time.Time { return now }
			c.Failed = func(_ string, err error) { told <- err }
		})
		id := start(t, r, parse(t, review), nil)
		if err := <-told; !strings.Contains(err.Error(), "no database") {
			t.Error(err)
		}
		r.Await(t.Context(), id)
		if run, err := r.Get(t.Context(), tenant, id); err != nil || run.State != workflow.StateRunning {
			t.Errorf("%+v, %v", run, err)
		}
		now = now.Add(time.Minute)
		if n, err := r.Resume(t.Context()); n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		runs.end(<-runs.started, workflow.Result{Completed: true})
		runs.end(<-runs.started, workflow.Result{Completed: true})
		if run := until(t, r, id); run.State != workflow.StateCompleted {
			t.Errorf("%+v", run)
		}
	})
}

func TestACancelledWorkflowEndsItsRunAndStartsNoOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs := newRuns()
		r := newRunner(t, db, runs, nil)
		id := start(t, r, parse(t, review), nil)
		<-runs.started
		if err := r.Cancel(t.Context(), tenant, id, "no longer needed"); err != nil {
			t.Fatal(err)
		}
		run := until(t, r, id)
		if run.State != workflow.StateCancelled || !strings.Contains(run.Message, "no longer needed") || len(runs.requests()) != 1 {
			t.Errorf("%+v", run)
		}
		if err := r.Cancel(t.Context(), tenant, id, "again"); err != nil {
			t.Errorf("cancelled again: %v", err)
		}
		if err := r.Cancel(t.Context(), "other", id, "x"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("by another tenant: %v", err)
		}
	})
}

func TestAWorkflowWhoseRunCompletesInSpiteOfACancelStopsThere(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs := newRuns()
		r := newRunner(t, db, &deaf{runs}, nil)
		id := start(t, r, parse(t, review), nil)
		first := <-runs.started
		if err := r.Cancel(t.Context(), tenant, id, "enough"); err != nil {
			t.Fatal(err)
		}
		runs.end(first, workflow.Result{Completed: true})
		if run := until(t, r, id); run.State != workflow.StateCancelled || run.Message != "enough" || run.Position != 1 {
			t.Errorf("%+v", run)
		}
	})
}

// deaf does not cancel.
type deaf struct{ *runs }

func (*deaf) Cancel(context.Context, string, string, string) error { return nil }

func TestWrongArgumentsStartNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		r := newRunner(t, db, newRuns(), nil)
		_, err := r.Start(t.Context(), workflow.StartRequest{Tenant: tenant, Definition: parse(t, review), Arguments: map[string]string{"fokus": "x"}})
		if found := problem.Of(err); len(found) != 1 || found[0].Code != workflow.CodeArgumentUnknown {
			t.Error(err)
		}
		if list, err := r.List(t.Context(), tenant, 10); err != nil || len(list) != 0 {
			t.Errorf("%v, %v", list, err)
		}
	})
}

func TestRunsOfWorkflowsAreListedForTheirTenant(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		runs := newRuns()
		r := newRunner(t, db, runs, nil)
		d := parse(t, review)
		id := start(t, r, d, nil)
		list, err := r.List(t.Context(), tenant, 10)
		if err != nil || len(list) != 1 || list[0].ID != id || list[0].Digest != d.Digest() {
			t.Errorf("%+v, %v", list, err)
		}
		if others, err := r.List(t.Context(), "other", 10); err != nil || len(others) != 0 {
			t.Errorf("%v, %v", others, err)
		}
	})
}
