package hostserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/problem"
)

// TestMain makes this test binary the job process of its own tests. What a job does is the task of its spec, see script.
// "parent" is a process that starts a job and serves its tools, and "descriptors" one that a job starts to see what it
// inherits.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "job":
			os.Exit(childMain())
		case "parent":
			parentMain()
		case "descriptors":
			printDescriptors()
			return
		}
	}
	goleak.VerifyTestMain(m)
}

func childMain() int {
	c := jobproc.Child{Runtime: eitherRuntime{}, In: os.Stdin, Out: os.Stdout}
	for i, argument := range os.Args {
		if argument != "--host-fd" {
			continue
		}
		fd, err := strconv.Atoi(os.Args[i+1])
		if err != nil {
			panic(err)
		}
		if c.Host, err = jobproc.OpenHost(fd); err != nil {
			panic(err)
		}
	}
	return c.Serve(context.Background())
}

// parentMain starts a job that waits in a slow tool, prints the number of its process and waits to be killed.
func parentMain() {
	o := newOffice()
	s, err := hostserver.NewServer(hostserver.Config{Tools: o.tools()})
	if err != nil {
		panic(err)
	}
	host, lent, err := jobproc.SocketPair()
	if err != nil {
		panic(err)
	}
	if _, err := s.Connect(context.Background(), host, everything(o, "job-1")); err != nil {
		panic(err)
	}
	rt, err := jobproc.New(jobproc.Config{})
	if err != nil {
		panic(err)
	}
	spec, err := specFor(s, o, step{Tool: "slow", Arguments: `{}`})
	if err != nil {
		panic(err)
	}
	h, err := rt.Start(context.Background(), spec, job.Ports{Host: lent})
	if err != nil {
		panic(err)
	}
	<-o.entered
	fmt.Println(h.(*jobproc.Handle).PID())
	r, _, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	_, _ = io.ReadAll(r)
}

// step is one thing that a scripted job does: a call, or a look at what a process of it inherits.
type step struct{ Tool, Arguments string }

func specFor(s *hostserver.Server, o *office, steps ...step) (*job.Spec, error) {
	task, err := json.Marshal(steps)
	if err != nil {
		return nil, err
	}
	declared, err := s.Declarations(names(o.tools())...)
	if err != nil {
		return nil, err
	}
	return &job.Spec{
		APIVersion: job.APIVersion, ID: "job-1", Agent: job.Definition{ID: "clerk", Version: "1", Instructions: "Do as you are told."},
		Task: string(task), Limits: job.Limits{TimeoutSec: 600}, Host: declared,
	}, nil
}

// callerRuntime runs jobs that call host tools as their task says, without a model. A job without a task is refused.
type callerRuntime struct{}

// callerJob is a running job and its handle.
type callerJob struct {
	spec   *job.Spec
	host   job.Host
	ctx    context.Context
	cancel context.CancelCauseFunc
	events chan *job.Event
	drop   chan struct{}
	once   sync.Once
	done   chan struct{}
	seq    int64
	end    job.Outcome
}

func (callerRuntime) Start(ctx context.Context, spec *job.Spec, ports job.Ports) (job.Handle, error) {
	if spec.Task == "" {
		return nil, problem.List{{Code: "required", Pointer: "/task", Message: "the task is empty"}}.Err("start job")
	}
	j := &callerJob{spec: spec, host: ports.Host, events: make(chan *job.Event), drop: make(chan struct{}), done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	go j.run()
	return j, nil
}

func (j *callerJob) Events() <-chan *job.Event { return j.events }
func (j *callerJob) Discard()                  { j.once.Do(func() { close(j.drop) }) }
func (j *callerJob) Abort(cause string)        { j.cancel(fmt.Errorf("%s", cause)) }
func (j *callerJob) Detach()                   {}

func (j *callerJob) Wait() job.Outcome {
	<-j.done
	return j.end
}

func (j *callerJob) emit(data job.EventPayload) {
	j.seq++
	select {
	case j.events <- job.NewEvent(j.seq, time.Unix(1, 0), j.spec.ID, "", data):
	case <-j.drop:
	}
}

func (j *callerJob) run() {
	defer close(j.done)
	defer close(j.events)
	j.emit(&job.StartedData{Runtime: "caller"})
	session, err := openSession(j.ctx, j.host, j.spec.ID, j.spec.Host)
	if err != nil {
		panic(err)
	}
	var steps []step
	if err := json.Unmarshal([]byte(j.spec.Task), &steps); err != nil {
		panic(err)
	}
	for i, s := range steps {
		text := ""
		if s.Tool == "descriptors" {
			text = inherited()
		}
		for _, tl := range session.Tools() {
			if tl.Name == s.Tool {
				text = describe(callTool(j.ctx, tl, fmt.Sprintf("%d.0", i+1), s.Arguments))
			}
		}
		j.emit(&job.MessageData{Turn: int64(i + 1), Text: text})
	}
	session.Close()
	if j.ctx.Err() != nil {
		j.end.Failed = &job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted, Message: context.Cause(j.ctx).Error()}
		j.emit(j.end.Failed)
		return
	}
	j.end.Completed = &job.CompletedData{Answer: "done"}
	j.emit(j.end.Completed)
}

// inherited starts a process and returns the descriptors that it found open.
func inherited() string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c := exec.Command(self)
	c.Args = []string{"hozo", "descriptors"}
	out, err := c.CombinedOutput()
	if err != nil {
		panic(err)
	}
	return string(out)
}

func printDescriptors() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			fmt.Println(e.Name(), target)
		}
	}
}
