// Package kernel runs jobs in this process: it checks a job.Spec against the adapters, models and tools it was built
// with, drives the model turn by turn, runs the tools that the agent may use, enforces every limit, and reports all of it
// as events that end in exactly one outcome. It knows no agent and discovers nothing: what a job does not name does not
// exist for it. It has no state between jobs; one Runtime may hold many jobs at once.
//
// The files follow a job through the kernel: validate.go (what is refused before the start), prompt.go (what the model is
// told), loop.go (turns), workingloop.go, workingwriter.go and workingend.go (turns around a document in the place of the
// transcript), turn.go and stream.go (one model response, its retries and guards), call.go and nested.go (tool calls, and
// those that a call makes), subagent.go (calls that another agent answers), suspend.go (calls that wait for a decision),
// lent.go and process.go (tools from outside, and the sandbox of a job's commands), compact.go (a window that is full),
// answer.go (typed and checked answers), limits.go and loopguard.go (what stops a job), emit.go and span.go (what is
// reported), record.go, recall.go, callrecord.go and checkpoint.go (what the journal holds, and how it is taken from there
// again), replay.go (all of it without the world).
package kernel

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// Config is what a Runtime is built from. Tools, Adapters and Models are required.
type Config struct {
	// Version is reported on job.started; "" is reported as "unknown".
	Version string
	// Adapters are the API families that jobs can use, by the name in ProviderConfig.API.
	Adapters map[string]llm.Adapter
	// Models is the model table: it returns the entry of a model at an API and base URL ("" is the API's own address),
	// false if the table has none. It is called once a job.
	Models func(api, baseURL, id string) (llm.Model, bool)
	Tools  *tool.Registry
	// Withheld are tools that an agent gets only if it names them, Refused are tools that no agent gets; each with the
	// reason. An agent that names no tools goes without both and its job has a notice; naming a refused one is a problem.
	Withheld, Refused map[string]string
	// Processes permits tools to start processes; nil means that none can.
	Processes *ProcessPolicy
	// Lenders connect jobs to tools outside of this process; none means that no spec may ask for such tools.
	Lenders []Lender
	// NewID makes job ids for specs without one; nil makes random ones.
	NewID func() string
	// Jitter returns a number in [0, 1) that spreads retry waits; nil is random.
	Jitter func() float64
	// Wait waits for a retry, or until ctx ends, and then returns its cause; nil waits on the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

// Runtime is a job.Runtime in this process. It is safe for concurrent use.
type Runtime struct{ config Config }

var _ job.Runtime = (*Runtime)(nil)

// New returns a Runtime, or an error that names what the config lacks.
func New(config Config) (*Runtime, error) {
	if config.Tools == nil || config.Models == nil || len(config.Adapters) == 0 {
		return nil, errors.New("kernel: config needs Tools, Models and Adapters")
	}
	if config.Version == "" {
		config.Version = "unknown"
	}
	if config.NewID == nil {
		config.NewID = func() string { return "job_" + rand.Text() }
	}
	if config.Jitter == nil {
		config.Jitter = mathrand.Float64
	}
	if config.Wait == nil {
		config.Wait = wait
	}
	return &Runtime{config: config}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Start implements job.Runtime.
func (rt *Runtime) Start(ctx context.Context, spec *job.Spec, ports job.Ports) (job.Handle, error) {
	plan, problems := rt.validate(spec, ports)
	if err := problems.Err("job refused"); err != nil {
		closePorts(ports)
		return nil, err
	}
	r := newRun(ctx, rt, spec, plan)
	r.ports = ports
	go r.execute()
	return r, nil
}
