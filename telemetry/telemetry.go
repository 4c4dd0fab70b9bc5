// Package telemetry exports what jobs report to an OpenTelemetry collector: their spans and a few metrics, over OTLP/HTTP
// in the words of the GenAI conventions. It is an observer of the event stream and nothing of a job depends on it: a
// Recorder translates events at once into spans of a bounded queue, one goroutine sends them, and what cannot be sent is
// dropped and counted. Without an endpoint in the environment Open returns nil, and everything on a nil Exporter does
// nothing: no goroutine, no connection.
//
// Names and counts are exported, content is not, unless the operator asks for it with the official variable; credentials
// are taken out even then. The words come in two sets (names.go), since the conventions still move.
//
// The messages are encoded here (wire.go, encode.go) rather than by the OpenTelemetry SDK, which would add megabytes and
// start-up work to a program that exports nothing most of the time; docs/adr/0008-telemetry.md has the figures.
package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// FlushTimeout is how long Close may take.
const FlushTimeout = 2 * time.Second

// Config configures an Exporter. The zero value reads the environment and drops warnings.
type Config struct {
	// Getenv reads the OTEL_… variables; nil means os.Getenv.
	Getenv func(string) string
	// Version is the version of the program, for the resource and the scope.
	Version string
	// Warn gets at most one line about settings that cannot be followed and one about what could not be exported. It
	// holds no credential and must be safe for concurrent use. Nil drops them.
	Warn func(string)
}

// Exporter sends spans and metrics. It is safe for concurrent use; a nil Exporter does nothing.
type Exporter struct {
	settings settings
	client   *http.Client
	resource []byte
	scope    []byte
	warn     func(string)
	meter    *meter

	wake    chan struct{} // holds a token if a whole batch waits
	closing chan struct{}
	done    chan struct{}
	cancel  context.CancelFunc
	closed  sync.Once

	mu      sync.Mutex
	queue   [][]byte
	size    int // the bytes of queue
	stats   Stats
	problem string // the first failure
	warned  bool
}

// Stats says what became of the spans of an Exporter. Sent + Dropped + Waiting is what was recorded.
type Stats struct {
	Sent, Dropped, Waiting int64
	// MetricReports counts the reports of metrics that arrived, FailedMetricReports those that did not.
	MetricReports, FailedMetricReports int64
}

// Open returns an Exporter for the endpoints that the environment names, or nil if it names none, is told not to export
// or cannot be followed (then Warn says why). The caller closes it.
func Open(c Config) *Exporter {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Warn == nil {
		c.Warn = func(string) {}
	}
	s, problems := readSettings(c.Getenv, c.Version)
	if len(problems) > 0 {
		c.Warn("telemetry: " + strings.Join(problems, "; "))
	}
	if s.traces == nil && s.metrics == nil {
		return nil
	}
	var scope message
	scope.text(1, scopeName)
	scope.text(2, c.Version)
	ctx, cancel := context.WithCancel(context.Background())
	e := &Exporter{settings: s, client: newClient(), resource: encodeResource(s.resource), scope: scope, warn: c.Warn,
		meter: newMeter(s.delta, time.Now()), wake: make(chan struct{}, 1), closing: make(chan struct{}),
		done: make(chan struct{}), cancel: cancel}
	go e.work(ctx)
	return e
}

// Close sends what is waiting, for at most FlushTimeout, and ends the exporter. What is recorded afterwards is dropped.
// Calls after the first wait for it.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	e.closed.Do(func() {
		limit := time.AfterFunc(FlushTimeout, e.cancel)
		close(e.closing)
		<-e.done
		limit.Stop()
		e.cancel()
		e.client.CloseIdleConnections()
		e.report()
	})
	<-e.done
}

// Stats returns the counts so far.
func (e *Exporter) Stats() Stats {
	if e == nil {
		return Stats{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	stats := e.stats
	stats.Waiting = int64(len(e.queue))
	return stats
}

// report warns of losses, once.
func (e *Exporter) report() {
	e.mu.Lock()
	s, problem, warned := e.stats, e.problem, e.warned
	lost := s.Dropped > 0 || s.FailedMetricReports > 0
	e.warned = warned || lost
	e.mu.Unlock()
	if !lost || warned {
		return
	}
	if problem == "" {
		problem = "they came faster than they could be sent"
	}
	e.warn(fmt.Sprintf("telemetry: %d spans and %d reports of metrics could not be exported: %s; jobs are not affected",
		s.Dropped, s.FailedMetricReports, problem))
}
