package jobproc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/problem"
)

// TestMain makes this test binary the job process of its own tests. What a job process does is the task of its spec, see
// fakeRuntime and misbehave. "parent" is a process that starts one, and "rest" one that only waits to be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "job":
			os.Exit(childMain())
		case "parent":
			os.Exit(parentMain())
		case "rest":
			rest()
		}
	}
	goleak.VerifyTestMain(m)
}

// rest blocks for good. It is no empty select, which the runtime would take for a deadlock.
func rest() {
	r, _, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	_, _ = io.ReadAll(r)
}

func childMain() int {
	in := bufio.NewReader(os.Stdin)
	line, _ := in.Peek(1)
	if len(line) == 0 {
		return 1
	}
	out := &announcer{written: make(chan struct{})}
	journal, err := openJournal()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := jobproc.Child{
		Runtime: eitherRuntime{fakeRuntime{started: out.written, raw: journal}},
		In:      in,
		Out:     out,
		Grace:   50 * time.Millisecond,
	}
	if journal != nil {
		c.Journal = journal
	}
	return c.Serve(context.Background())
}

// announcer is the standard output of a job process that says when the first event has been written.
type announcer struct {
	once    sync.Once
	written chan struct{}
}

func (a *announcer) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	a.once.Do(func() { close(a.written) })
	return n, err
}

// parentMain starts a job that never ends, prints the number of its process and waits to be killed.
func parentMain() int {
	rt, err := jobproc.New(jobproc.Config{})
	if err != nil {
		panic(err)
	}
	h, err := rt.Start(context.Background(), newSpec("deaf"), job.Ports{})
	if err != nil {
		panic(err)
	}
	<-h.Events()
	fmt.Println(h.(*jobproc.Handle).PID())
	rest()
	return 0
}

func newSpec(task string) *job.Spec {
	return &job.Spec{
		APIVersion: job.APIVersion,
		ID:         "job-1",
		Agent:      job.Definition{ID: "clerk", Version: "1", Instructions: "Do as you are told."},
		Task:       task,
		Limits:     job.Limits{TimeoutSec: 600},
		Providers:  map[string]job.ProviderConfig{"p": {API: job.APIScripted, APIKey: canary}},
	}
}

const canary = `sk-"canary"/+<&>é`

// fakeRuntime runs jobs that do what the task says, without a model. A job that misbehaves does so when started is closed.
type fakeRuntime struct {
	started <-chan struct{}
	raw     *os.File // the journal without its protocol
}

// fakeJob is a running fake job and its handle.
type fakeJob struct {
	spec    *job.Spec
	started <-chan struct{}
	raw     *os.File
	frames  recorder
	detach  chan struct{}
	events  chan *job.Event
	taken   bool
	drop    chan struct{}
	once    sync.Once
	abort   chan string
	done    chan struct{}
	seq     int64
	outcome job.Outcome
}

func (f fakeRuntime) Start(ctx context.Context, spec *job.Spec, ports job.Ports) (job.Handle, error) {
	if spec.Task == "" {
		var problems problem.List
		problems.Add("required", "/task", "the task is empty")
		problems.Add("required", "/model/id", "the model is missing")
		return nil, problems.Err("start job")
	}
	if spec.Task == "unavailable" {
		return nil, &problem.Error{Kind: problem.Unavailable, Message: "no file descriptors left"}
	}
	misbehaveEarly(spec.Task)
	j := &fakeJob{
		spec:    spec,
		started: f.started,
		raw:     f.raw,
		frames:  recorder{journal: ports.Journal},
		detach:  make(chan struct{}, 1),
		events:  make(chan *job.Event),
		drop:    make(chan struct{}),
		abort:   make(chan string, 1),
		done:    make(chan struct{}),
	}
	stop := context.AfterFunc(ctx, func() { j.Abort(context.Cause(ctx).Error()) })
	go func() {
		defer stop()
		j.run()
	}()
	return j, nil
}

func (j *fakeJob) Events() <-chan *job.Event { j.taken = true; return j.events }
func (j *fakeJob) Discard()                  { j.once.Do(func() { close(j.drop) }) }

func (j *fakeJob) Wait() job.Outcome {
	if !j.taken {
		j.Discard()
	}
	<-j.done
	return j.outcome
}

func (j *fakeJob) Abort(cause string) {
	select {
	case j.abort <- cause:
	default:
	}
}

func (j *fakeJob) emit(data job.EventPayload) {
	j.seq++
	e := job.NewEvent(j.seq, time.Unix(1, 0), j.spec.ID, "", data)
	select {
	case j.events <- e:
	case <-j.drop:
	}
}

func (j *fakeJob) run() {
	defer close(j.done)
	defer close(j.events)
	if j.frames.journal != nil {
		if j.begin(); j.outcome.Failed == nil {
			j.workWithJournal()
		}
	} else {
		j.emit(&job.StartedData{Runtime: "fake", Metadata: j.spec.Metadata})
		j.work()
	}
	if j.outcome.Suspended != nil {
		j.emit(j.outcome.Suspended)
		return
	}
	if j.outcome.Failed != nil {
		j.emit(j.outcome.Failed)
		return
	}
	j.emit(j.outcome.Completed)
}

func (j *fakeJob) answer(text string) { j.outcome.Completed = &job.CompletedData{Answer: text} }

func (j *fakeJob) work() {
	task, argument, _ := strings.Cut(j.spec.Task, " ")
	switch task {
	case "answer":
		j.answer(argument)
	case "environment":
		text, _ := json.Marshal(map[string][]string{"args": os.Args, "env": os.Environ()})
		j.answer(string(text))
	case "open":
		// The text is what became of each file.
		var all []string
		for name := range strings.FieldsSeq(argument) {
			_, err := os.ReadFile(name)
			all = append(all, fmt.Sprint(err == nil))
		}
		j.answer(strings.Join(all, " "))
	case "count":
		n := 0
		fmt.Sscan(argument, &n)
		for i := range n {
			j.emit(&job.MessageDeltaData{Turn: 1, Try: 1, Text: fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000))})
		}
		j.answer(argument)
	case "log":
		fmt.Fprintf(os.Stderr, "key %s\n", canary)
		fmt.Fprintf(os.Stderr, "long %s%s\n", strings.Repeat("y", 8<<10-8), canary)
		j.answer("")
	case "flood":
		for range 4000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("z", 1000))
		}
		j.answer("")
	case "partial":
		j.emit(&job.OutputData{CallID: "1.0", Path: "b.md"})
		j.emit(&job.OutputData{CallID: "1.1", Path: "a.md"})
		j.emit(&job.OutputData{CallID: "1.2", Path: "b.md"})
		j.emit(&job.UsageData{Total: job.TotalUsage{Requests: 7, CostMicroUSD: 42}})
		fmt.Fprintf(os.Stderr, "panic: %s\n", canary)
		rest()
	case "tree":
		j.tree(argument)
	case "wait":
		cause := <-j.abort
		j.outcome.Failed = &job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted, Message: cause}
	case "late":
		<-j.abort
		j.answer("in time after all")
	case "linger":
		j.answer("done")
		j.emit(j.outcome.Completed)
		rest()
	default:
		<-j.started
		misbehave(task)
		rest() // "deaf"
	}
}

// tree starts processes that would outlive the job, says their numbers and waits; with "end" it ends instead.
func (j *fakeJob) tree(argument string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	var pids []string
	for range 3 {
		c := exec.Command(self)
		c.Args = []string{"hozo", "rest"}
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			panic(err)
		}
		pids = append(pids, fmt.Sprint(c.Process.Pid))
	}
	if argument == "end" {
		j.answer(strings.Join(pids, " "))
		return
	}
	j.emit(&job.MessageData{Turn: 1, Text: strings.Join(pids, " ")})
	rest()
}

// misbehaveEarly does what a process does that never starts its job.
func misbehaveEarly(task string) {
	switch task {
	case "stillborn":
		fmt.Fprintf(os.Stderr, "cannot start: %s\n", canary)
		os.Exit(66)
	case "mute":
		rest()
	case "foreign":
		fmt.Println("Usage: true [ignored]")
		rest()
	case "no-start":
		fmt.Println(`{"seq":1,"at":"2026-01-01T00:00:00Z","jobId":"job-1","type":"message","data":{}}`)
		rest()
	}
}

// misbehave writes what no job process should, after event 1.
func misbehave(task string) {
	const event = `{"seq":%d,"at":"2026-01-01T00:00:00Z","jobId":"%s","type":"notice","data":{"code":"c","message":"m"}}`
	switch task {
	case "garbage":
		fmt.Println("goroutine 1 [running]:")
	case "gap":
		fmt.Printf(event+"\n", 3, "job-1")
	case "repeat":
		fmt.Printf(event+"\n", 1, "job-1")
	case "stranger":
		fmt.Printf(event+"\n", 2, "job-2")
	case "late-refusal":
		fmt.Println(`{"problems":[{"code":"c","message":"m"}]}`)
	case "oversize":
		line := strings.Repeat("w", 1<<20)
		for range 17 {
			fmt.Print(line)
		}
		fmt.Println()
	case "half":
		fmt.Printf(event, 2, "job-1")
		os.Exit(0)
	case "exit":
		os.Exit(7)
	case "suicide":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}
