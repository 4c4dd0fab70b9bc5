package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hozo-run/hozo/bench/harness"
)

// measurement is one thing that every subject is asked to do.
type measurement struct {
	name string
	mode string
	work harness.Work
	// passes is how often it is done in a full run; the median counts.
	passes int
}

// The names of the measurements, by which the rows of the table find them.
const (
	steady = "steady" // one run at a time, the provider sends event by event
	burst  = "burst"  // 100 runs at a time, the provider sends a response at once: it is not the limit
	deep   = "deep"   // 200 tool calls in each run
	crowd  = "crowd"  // 1,000 runs at a time
	active = "active" // 1,000 runs in the middle of a response
	agents = "agents"
	starts = "starts"
)

// measurements returns the plan of a run.
func (b *bench) measurements() []measurement {
	if b.quick {
		return []measurement{
			{burst, "runs", harness.Work{Runs: 300, Conc: 100, Turns: 10, Pieces: 20, Burst: 100}, 1},
			{deep, "runs", harness.Work{Runs: 3, Conc: 1, Turns: 200, Pieces: 20, Burst: 100}, 1},
			{crowd, "runs", harness.Work{Runs: 1000, Conc: 1000, Turns: 2, Pieces: 20, Burst: 100}, 1},
			{active, "active", harness.Work{Runs: 1000, Conc: 1000, Pieces: 20}, 1},
			{agents, "agents", harness.Work{Runs: 1000}, 1},
			{starts, "start", harness.Work{Runs: 5, Pieces: 20}, 1},
		}
	}
	return []measurement{
		{steady, "runs", harness.Work{Runs: 300, Conc: 1, Turns: 10, Pieces: 20, Burst: 1}, 3},
		{burst, "runs", harness.Work{Runs: 900, Conc: 100, Turns: 10, Pieces: 20, Burst: 100}, 3},
		{deep, "runs", harness.Work{Runs: 5, Conc: 1, Turns: 200, Pieces: 20, Burst: 100}, 3},
		{crowd, "runs", harness.Work{Runs: 1500, Conc: 1000, Turns: 10, Pieces: 20, Burst: 1}, 1},
		{active, "active", harness.Work{Runs: 1000, Conc: 1000, Pieces: 20}, 1},
		{agents, "agents", harness.Work{Runs: 3000}, 1},
		{starts, "start", harness.Work{Runs: 15, Pieces: 20}, 1},
	}
}

// results are all records by subject and measurement, in the order of the passes.
type results map[string]map[string][]*harness.Record

func (r results) add(subject, measurement string, record *harness.Record) {
	if r[subject] == nil {
		r[subject] = map[string][]*harness.Record{}
	}
	r[subject][measurement] = append(r[subject][measurement], record)
}

// median returns the middle of what the passes gave, and false if there was none.
func (r results) median(subject, measurement string, value func(*harness.Record) float64) (float64, bool) {
	var values []float64
	for _, record := range r[subject][measurement] {
		values = append(values, value(record))
	}
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	return values[len(values)/2], true
}

// measure does everything that is measured. The error is about hozo's own runs only: what another runtime fails at is
// reported with the results.
func (b *bench) measure(ctx context.Context) error {
	b.results = results{}
	var own error
	if len(b.subjects) > 0 {
		base, stop, err := b.provider(ctx)
		if err != nil {
			return err
		}
		own = b.passes(ctx, base)
		stop()
	}
	if b.wanted("files") && ctx.Err() == nil {
		own = errors.Join(own, b.searchFiles(ctx))
	}
	return errors.Join(own, b.toolCalls(ctx))
}

// passes lets the subjects take turns, so that a machine that grows slower does so for all.
func (b *bench) passes(ctx context.Context, base string) error {
	if err := b.writeStartSpec(base); err != nil {
		return err
	}
	var own []error
	for pass := range 3 {
		for _, s := range b.subjects {
			progress("pass %d: %s", pass+1, s.name)
			for _, m := range b.measurements() {
				if pass >= m.passes || ctx.Err() != nil {
					continue
				}
				record, err := b.one(ctx, base, s, m)
				switch {
				case ctx.Err() != nil:
				case err != nil && s.name == "hozo":
					own = append(own, fmt.Errorf("hozo, %s: %w", m.name, err))
				case err != nil:
					b.failures = append(b.failures, fmt.Sprintf("%s, %s: %v", s.name, m.name, err))
				default:
					b.keep(s, m, record)
				}
			}
		}
		if b.quick {
			break
		}
	}
	return errors.Join(own...)
}

func (b *bench) keep(s subject, m measurement, record *harness.Record) {
	if !record.OK() {
		b.failures = append(b.failures, fmt.Sprintf("%s, %s: %d requests and %d tool calls, held %d: the work was not done as asked",
			s.name, m.name, record.Requests, record.ToolCalls, record.Held))
		return
	}
	record.Peer, record.Mode = s.name, m.name
	b.results.add(s.name, m.name, record)
}

// provider starts fakellm and returns its address and what ends it.
func (b *bench) provider(ctx context.Context) (base string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return "", nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, b.program("fakellm"), "-addr", address)
	cmd.Stderr = os.Stderr
	core, _, ok := cores()
	if err := onCore(core, ok, cmd.Start); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, so it fails
	}
	base = "http://" + address
	for range 100 {
		if _, err = harness.ReadStats(base); err == nil {
			return base, stop, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("fakellm does not answer: %w", err)
}

// onCore starts a process on one core, or anywhere if there are not enough of them.
func onCore(core int, pin bool, start func() error) error {
	if !pin {
		return start()
	}
	return pinned(core, start)
}

// patience is how long one measurement may take.
const patience = 5 * time.Minute

// one does one measurement of one subject, in a process of its own.
func (b *bench) one(ctx context.Context, base string, s subject, m measurement) (*harness.Record, error) {
	w := m.work
	var command []string
	if m.mode == "start" {
		command = []string{b.program("launch"), "-n", strconv.Itoa(w.Runs), "-base", base}
		if s.stdin != "" {
			command = append(command, "-stdin", s.stdin)
		}
		command = append(command, "--")
		if s.start != nil {
			command = append(command, s.start...)
		} else {
			command = append(command, s.command...)
			command = append(command, "-base", base, "-mode", "start", "-pieces", strconv.Itoa(w.Pieces))
		}
	} else {
		runs := w.Runs
		if m.name == steady || m.name == burst || m.name == agents {
			runs /= s.share
		}
		command = append(slices.Clone(s.command), "-base", base, "-mode", m.mode, "-runs", strconv.Itoa(runs), "-conc", strconv.Itoa(w.Conc),
			"-turns", strconv.Itoa(w.Turns), "-pieces", strconv.Itoa(w.Pieces), "-burst", strconv.Itoa(max(w.Burst, 1)))
	}
	_, core, pin := cores()
	record := &harness.Record{}
	return record, execute(ctx, command, s.env, core, pin, record)
}

// execute runs a command that prints a value of JSON, and decodes it.
func execute(ctx context.Context, command, env []string, core int, pin bool, value any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := onCore(core, pin, cmd.Start); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, lastLines(stderr.String(), 3))
	}
	if err := json.Unmarshal(stdout.Bytes(), value); err != nil {
		return fmt.Errorf("%s printed no record: %w", filepath.Base(command[0]), err)
	}
	return nil
}
