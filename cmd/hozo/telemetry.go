package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/telemetry"
)

// observation is how a job is seen from outside: the trace it belongs to and the exporter of its spans. The zero value
// observes nothing.
type observation struct {
	exporter *telemetry.Exporter
	trace    telemetry.Trace
	// parent is what --traceparent said; without an exporter somebody else exports the events.
	parent string
}

// observe reads the environment of OpenTelemetry. Parent is the flag, "" to take TRACEPARENT. Without an endpoint nothing
// is started and nothing leaves the machine.
func (p *program) observe(parent string) (*observation, error) {
	o := &observation{parent: parent}
	if parent != "" {
		if err := telemetry.CheckTraceParent(parent); err != nil {
			return nil, usageError("--traceparent: %v", err)
		}
	}
	o.exporter = telemetry.Open(telemetry.Config{Getenv: p.getenv, Version: programVersion(), Warn: p.warner()})
	if o.exporter != nil {
		if parent == "" {
			parent = p.getenv("TRACEPARENT")
		}
		o.trace = telemetry.NewTrace(parent)
	}
	return o, nil
}

// warner returns a function that writes lines to what is the standard error at that time.
func (p *program) warner() func(string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(p.stderr, "hozo: "+visible(line))
	}
}

// traceParent is what a runtime or a job process is told, "" if the job belongs to no trace.
func (o *observation) traceParent() string {
	if o.exporter == nil {
		return o.parent
	}
	return o.trace.String()
}

// context puts the job that is started with it into the trace.
func (o *observation) context(ctx context.Context) context.Context {
	if parent := o.traceParent(); parent != "" {
		return job.WithTrace(ctx, parent)
	}
	return ctx
}

// watch returns a handle whose events are exported, without the credentials of the spec.
func (o *observation) watch(handle job.Handle, spec *job.Spec) job.Handle {
	if o.exporter == nil {
		return handle
	}
	return o.exporter.Watch(handle, o.trace, jobproc.NewRedactor(spec).Redact)
}

// close exports what is left; that takes two seconds at most.
func (o *observation) close() { o.exporter.Close() }
