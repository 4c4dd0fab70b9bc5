package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/journal"
	"github.com/hozo-run/hozo/tool"
)

// crashPoint is where an attempt is killed: at the N-th frame of the attempt (before it is stored, when a part of its line
// is written, or when it is stored and not yet acknowledged), at the N-th event, or at the N-th call of a host tool, before
// or after its effect. Of the two processes of an attempt the parent is killed, and the child with it, or the child alone.
type crashPoint struct {
	At    string `json:"at"`
	N     int    `json:"n"`
	Child bool   `json:"child,omitempty"`
}

// The places of a crashPoint.
const (
	crashFrameBefore  = "frame-before"
	crashFrameTorn    = "frame-torn"
	crashFrameStored  = "frame-stored"
	crashEvent        = "event"
	crashEffectBefore = "effect-before"
	crashEffectAfter  = "effect-after"
)

// The exit codes of an attempt beside those of outcomes.
const (
	exitLost   = 99
	exitBroken = 98
)

// crashPrograms are what this test binary is besides hozo: a program that runs one attempt of the job in a directory, with
// "DIR/spec.json", "DIR/run.journal" and "DIR/events", and kills itself or its child where it is told to.
func crashPrograms() map[string]func() {
	return map[string]func(){"crash-attempt": func() {
		code, err := crashAttempt(os.Args[1], os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}}
}

func crashAttempt(dir, point string) (int, error) {
	k := &crasher{dir: dir, child: make(chan int, 1)}
	if err := json.Unmarshal([]byte(point), &k.point); err != nil {
		return exitBroken, err
	}
	data, err := os.ReadFile(filepath.Join(dir, "spec.json"))
	if err != nil {
		return exitBroken, err
	}
	spec := new(job.Spec)
	if err := json.Unmarshal(data, spec); err != nil {
		return exitBroken, err
	}
	a := &attempt{spec: spec, out: spec.Workspace.OutDir, path: filepath.Join(dir, "run.journal")}
	if outcome := recordedOutcome(a.path); outcome != nil {
		return outcome.ExitCode(), nil
	}
	if err := a.openForCrash(dir); err != nil {
		return exitBroken, err
	}
	outcome, err := k.run(a)
	err = errors.Join(err, a.closeJournal(), a.log.close())
	switch {
	case err != nil:
		return exitBroken, err
	case outcome.Lost != nil:
		return exitLost, errors.New(outcome.Lost.Message + " " + outcome.Lost.Log)
	}
	return outcome.ExitCode(), nil
}

// recordedOutcome is how the job has ended, nil if it has not. A process that is killed after the outcome was recorded has
// not reported it.
func recordedOutcome(path string) *job.Outcome {
	summary, err := journal.Summarize(journal.Read(path))
	if err != nil || summary.Outcome == nil {
		return nil
	}
	return &job.Outcome{Completed: summary.Outcome.Completed, Failed: summary.Outcome.Failed}
}

// openForCrash begins a journal or goes on with it, as hozo run and hozo resume do. Every wait is approved.
func (a *attempt) openForCrash(dir string) (err error) {
	options := journal.Options{OutDir: a.out, Stored: a.followed.wait}
	if info, err := os.Stat(a.path); err != nil || info.Size() == 0 {
		if a.log, err = openEventLog(filepath.Join(dir, "events")); err != nil {
			return err
		}
		return a.createJournal(a.path, options)
	}
	summary, err := journal.Summarize(journal.Read(a.path))
	if err != nil {
		return err
	}
	if summary.Frames == 0 { // nothing was recorded: the job begins anew
		if err := os.Remove(a.path); err != nil {
			return err
		}
		return a.openForCrash(dir)
	}
	if a.journal, err = journal.Open(a.path, options); err != nil {
		return err
	}
	var last int64
	if a.log, last, err = reopenEventLog(filepath.Join(dir, "events"), a.spec.ID); err != nil {
		return err
	}
	a.spec.Resume = &job.Resume{Attempt: a.journal.Attempt(), NextSeq: nextSeq(a.journal.Summary(), last)}
	if suspended := a.journal.Summary().Suspended; suspended != nil {
		a.spec.Resume.Decisions, err = (&decisionFlags{all: job.VerdictApprove}).decide(suspended.Waits)
	}
	a.followed.reach(a.spec.Resume.NextSeq - 1)
	return err
}

// crasher kills an attempt at its point. It is the job.Journal of the attempt.
type crasher struct {
	dir   string
	point crashPoint
	child chan int // gets the number of the child's process

	journal *journal.File
	frames  int
	effects atomic.Int64
	mu      sync.Mutex // of the file of effects
}

var _ job.Journal = (*crasher)(nil)

func (k *crasher) run(a *attempt) (job.Outcome, error) {
	k.journal = a.journal
	arguments := []string{"--sandbox=none", "--private-mcp"}
	rt, err := jobproc.New(jobproc.Config{Logs: os.Stderr, Arguments: arguments})
	if err != nil {
		return job.Outcome{}, err
	}
	ports := job.Ports{Journal: k}
	if len(a.spec.Host) > 0 {
		if ports.Host, err = k.lendTools(a.spec); err != nil {
			return job.Outcome{}, err
		}
	}
	handle, err := rt.Start(context.Background(), a.spec, ports)
	if err != nil {
		return job.Outcome{}, err
	}
	k.child <- handle.(*jobproc.Handle).PID()
	events := 0
	for e := range handle.Events() {
		events++
		k.reach(crashEvent, events)
		if err := a.log.add(e); err != nil {
			return job.Outcome{}, err
		}
		a.followed.reach(e.Seq)
	}
	a.followed.end(errors.New("the job has no more events"))
	return handle.Wait(), nil
}

// reach kills if this is the point.
func (k *crasher) reach(at string, n int) {
	if k.point.At != at || k.point.N != n {
		return
	}
	if k.point.Child {
		pid := <-k.child
		k.child <- pid
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	rest()
}

// rest waits to be killed.
func rest() {
	r, _, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	_, _ = r.Read(make([]byte, 1))
}

// Earlier implements job.Journal.
func (k *crasher) Earlier() iter.Seq2[[]byte, error] { return k.journal.Earlier() }

// Append implements job.Journal.
func (k *crasher) Append(frame []byte) (<-chan error, error) {
	k.frames++
	k.reach(crashFrameBefore, k.frames)
	if k.point.At == crashFrameTorn && k.point.N == k.frames && !k.point.Child {
		k.tear(frame)
	}
	stored, err := k.journal.Append(frame)
	if err != nil || k.point.At != crashFrameStored || k.point.N != k.frames {
		return stored, err
	}
	if err := <-stored; err != nil {
		return nil, err
	}
	k.reach(crashFrameStored, k.frames)
	return nil, nil
}

// tear writes a part of a frame behind everything that is stored, as a process does that dies while it writes.
func (k *crasher) tear(frame []byte) {
	if err := k.journal.Close(); err != nil {
		panic(err)
	}
	f, err := os.OpenFile(filepath.Join(k.dir, "run.journal"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		panic(err)
	}
	if _, err := f.Write(frame[:1+len(frame)*k.frames%7/7]); err != nil {
		panic(err)
	}
	k.reach(crashFrameTorn, k.frames)
}

// lendTools serves the tools of the harness: "post" has an effect each time that it is called, "book" has one for each key,
// "look" has none, "judge" passes every answer.
func (k *crasher) lendTools(spec *job.Spec) (job.Host, error) {
	var names []string
	for _, t := range spec.Host {
		names = append(names, t.Name)
	}
	server, err := hostserver.NewServer(hostserver.Config{Tools: k.hostTools()})
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	_, err = server.Connect(context.Background(), far, hostserver.Run{ID: spec.ID, Tools: names})
	return near, err
}

// crashDeclarations are the host tools as a spec has them.
func crashDeclarations() []job.HostTool {
	schema := json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`)
	return []job.HostTool{
		{Name: "post", Version: "1.0.0", Description: "Posts a note.", Effect: string(tool.EffectExternal), InputSchema: schema},
		{Name: "book", Version: "1.0.0", Description: "Books once.", Effect: string(tool.EffectExternal), Idempotent: true, InputSchema: schema},
		{Name: "look", Version: "1.0.0", Description: "Looks.", Effect: string(tool.EffectRead), InputSchema: schema},
		{Name: "judge", Version: "1.0.0", Description: "Judges an answer.", Effect: string(tool.EffectRead),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)},
	}
}

func (k *crasher) hostTools() []hostserver.Tool {
	type query struct {
		ID string `json:"id"`
	}
	declared := crashDeclarations()
	return []hostserver.Tool{
		hostserver.New(declared[0], func(_ context.Context, c *hostserver.Call, q query) hostserver.Result {
			k.effect("post " + q.ID)
			return hostserver.Text("posted %s", q.ID)
		}),
		hostserver.New(declared[1], func(_ context.Context, c *hostserver.Call, q query) hostserver.Result {
			k.effectOnce("book " + q.ID + " " + c.Run + " " + c.ID)
			return hostserver.Text("booked %s", q.ID)
		}),
		hostserver.New(declared[2], func(_ context.Context, c *hostserver.Call, q query) hostserver.Result {
			return hostserver.Text("there is %s", q.ID)
		}),
		hostserver.New(declared[3], func(context.Context, *hostserver.Call, struct{ Answer string }) hostserver.Result {
			return hostserver.Passed()
		}),
	}
}

func (k *crasher) effect(line string) {
	n := int(k.effects.Add(1))
	k.reach(crashEffectBefore, n)
	k.mu.Lock()
	err := appendEffect(k.dir, line)
	k.mu.Unlock()
	if err != nil {
		panic(err)
	}
	k.reach(crashEffectAfter, n)
}

// effectOnce is what a host does that promises to be idempotent: it keeps the key with the effect.
func (k *crasher) effectOnce(line string) {
	k.mu.Lock()
	done := slices.Contains(effectsIn(k.dir), line)
	k.mu.Unlock()
	if !done {
		k.effect(line)
	}
}

func appendEffect(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// effectsIn returns the lines of the outside counter.
func effectsIn(dir string) []string {
	data, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		return nil // nothing had an effect yet
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
