package orchestrator_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

// counter is the world outside of the runs: it counts how often each of its keys was named.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
	// left is how many counts are to come until the world holds its breath: it says so on held, and answers nobody who is
	// still there until released.
	left           int
	held, released chan struct{}
}

func newCounter(t *testing.T) (*counter, string) {
	c := &counter{counts: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-c.count(r.FormValue("key")):
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return c, server.URL
}

// count counts, and returns a channel that is closed when the world may answer.
func (c *counter) count(key string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[key]++
	if c.left--; c.left == 0 {
		close(c.held)
	}
	if c.left > 0 {
		now := make(chan struct{})
		close(now)
		return now
	}
	return c.released
}

// holdAfter returns a channel that is closed after so many more counts. From then on nobody is answered until release.
func (c *counter) holdAfter(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.held, c.released = n, make(chan struct{}), make(chan struct{})
	return c.held
}

func (c *counter) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.released)
}

// child is a process that executes runs.
type child struct {
	t       *testing.T
	command *exec.Cmd
	log     bytes.Buffer
	ended   bool
}

// startChild starts a process and waits until it works.
func startChild(t *testing.T, config childConfig) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t}
	c.command = &exec.Cmd{Path: self, Args: []string{childName, "", string(encoded)}, Dir: config.Dir, Env: []string{"TMPDIR=" + t.TempDir()}, Stderr: &c.log}
	// A process that is left alone sees the end of its input and ends too.
	if _, err := c.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.signal(syscall.SIGKILL) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "works\n" {
		c.signal(syscall.SIGKILL)
		t.Fatalf("the process does not work: %v\n%s", err, c.log.String())
	}
	return c
}

// signal sends a signal and waits for the end of the process.
func (c *child) signal(s syscall.Signal) error {
	if c.ended {
		return nil
	}
	c.ended = true
	if err := c.command.Process.Signal(s); err != nil {
		return err
	}
	return c.command.Wait()
}

// observer reads what the processes do.
func observer(t *testing.T, config store.Config) *fixture {
	t.Helper()
	db := storetest.Open(t, config)
	return newFixture(t, db, nil)
}

func (f *fixture) all() []run.Run {
	f.t.Helper()
	runs, _, err := f.runs.List(f.t.Context(), "acme", run.Filter{Limit: 500})
	if err != nil {
		f.t.Fatal(err)
	}
	return runs
}

// checkEnds waits for the end of every run and checks how it ended: as the script says, with every effect once, or at most
// once where the model was told that nobody knows.
func (f *fixture) checkEnds(world *counter, want int) (interrupted int) {
	f.t.Helper()
	runs := f.all()
	if len(runs) != want {
		f.t.Fatalf("there are %d runs", len(runs))
	}
	for _, r := range runs {
		r = f.ended(r.ID)
		var end job.CompletedData
		if err := json.Unmarshal(r.Outcome, &end); err != nil || r.State != run.Completed || end.Answer != "Done." || len(end.Outputs) != 2 {
			f.t.Errorf("run %s is %s: %s %s %s", r.ID, r.State, r.Code, r.Message, r.Outcome)
			continue
		}
		f.checkRecords(r)
		steps, err := f.runs.Steps(f.t.Context(), r.Tenant, r.ID, 0, 0)
		if err != nil || len(steps) != 5 {
			f.t.Errorf("run %s has %d steps, %v", r.ID, len(steps), err)
			continue
		}
		for i, key := range map[int]string{1: r.ID + " one", 3: r.ID + " two"} {
			world.mu.Lock()
			n := world.counts[key]
			world.mu.Unlock()
			unknown := steps[i].Status == "interrupted"
			if unknown {
				interrupted++
			}
			if n > 1 || n == 0 && !unknown {
				f.t.Errorf("%s was counted %d times, and the model was told %q", key, n, steps[i].Output)
			}
		}
	}
	return interrupted
}

// checkRecords checks that the journal has no gap and the events say once that the job started and once that it ended.
func (f *fixture) checkRecords(r run.Run) {
	f.t.Helper()
	frames, err := f.runs.Journal(f.t.Context(), r.Tenant, r.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	n := int64(0)
	for line, err := range frames {
		head, failed := job.ParseFrameHead(line)
		if n++; err != nil || failed != nil || head.N != n {
			f.t.Fatalf("run %s, frame %d: %v %v", r.ID, n, err, failed)
		}
	}
	kinds := map[job.EventType]int{}
	for e, err := range f.runs.Follow(f.t.Context(), r.Tenant, r.ID, 0) {
		if err != nil {
			f.t.Fatal(err)
		}
		kinds[e.Type]++
	}
	if kinds[job.EventStarted] != 1 || kinds[job.EventCompleted] != 1 || n == 0 {
		f.t.Errorf("run %s has %d frames and the events %v after %d attempts", r.ID, n, kinds, r.Attempts)
	}
}

func TestAProcessThatIsKilledLosesNoRun(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const runs = 50
			world, address := newCounter(t)
			c := childConfig{DB: config(t), Dir: t.TempDir(), Blobs: t.TempDir(), Counter: address, Submit: runs, Slots: 64, Lease: 10 * time.Second, Alone: true}
			see := observer(t, c.DB)
			for _, counts := range []int{20, 15} {
				reached := world.holdAfter(counts)
				process := startChild(t, c)
				<-reached
				if err := process.signal(syscall.SIGKILL); err == nil {
					t.Fatal("the process ended before it was killed")
				}
				world.release()
			}
			process := startChild(t, c)
			interrupted := see.checkEnds(world, runs)
			t.Logf("%d counts were under way when their process was killed", interrupted)
			if err := process.signal(syscall.SIGTERM); err != nil {
				t.Errorf("a process that is told to stop: %v\n%s", err, process.log.String())
			}
		})
	}
}

func TestRunsOfAKilledMachineMove(t *testing.T) {
	t.Parallel()
	const runs = 45
	world, address := newCounter(t)
	c := childConfig{DB: storetest.Postgres(t), Blobs: t.TempDir(), Counter: address, Slots: 16, Lease: 3 * time.Second}
	see := observer(t, c.DB)
	reached := world.holdAfter(30)
	var machines []*child
	for i := range 3 {
		own := c
		own.Dir, own.Submit = t.TempDir(), 0
		if i == 0 {
			own.Submit = runs
		}
		machines = append(machines, startChild(t, own))
	}
	<-reached
	if err := machines[0].signal(syscall.SIGKILL); err == nil {
		t.Fatal("the machine ended before it was killed")
	}
	world.release()
	see.checkEnds(world, runs)
	owners := map[string]bool{}
	moved := 0
	for _, r := range see.all() {
		attempts, err := see.runs.Attempts(t.Context(), "acme", r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range attempts {
			owners[a.Owner] = true
			if i > 0 && a.Owner != attempts[i-1].Owner {
				moved++
			}
		}
	}
	if moved == 0 || len(owners) < 2 {
		t.Errorf("%d runs moved between %d machines", moved, len(owners))
	}
	t.Logf("%d runs moved; owners: %s", moved, strings.Join(slices.Sorted(maps.Keys(owners)), ", "))
	for _, m := range machines[1:] {
		if err := m.signal(syscall.SIGTERM); err != nil {
			t.Error(fmt.Errorf("%w\n%s", err, m.log.String()))
		}
	}
}
