package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/journal"
	"github.com/hozo-run/hozo/provider/scripted"
)

// The crash harness. Each file in testdata/crash is a job that a script plays: "job.json" holds the parts of its spec that
// are its own, "script.yaml" the model, "src/" and "out/" what is there before. The job runs once undisturbed. Then it runs
// again and again, each time with its processes killed at up to two points drawn at random, and is resumed until it ends.
// Whatever was killed, the job must end as it did undisturbed, with the same requests, answers and files. Only where a call
// was running that may have had its effect may it end in another way: the model is told that the call was interrupted, and
// the effect has happened at most once.
//
// HOZO_CRASH_KILLS is how many points are drawn over all jobs, HOZO_CRASH_SEED decides which.

func TestCrash(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/crash/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d jobs, %v", len(files), err)
	}
	kills, seed := number(t, "HOZO_CRASH_KILLS", len(files)), number(t, "HOZO_CRASH_SEED", 1)
	for i, file := range files {
		share := kills*(i+1)/len(files) - kills*i/len(files)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			c := &crashJob{t: t, archive: readArchive(t, file)}
			c.exercise(rand.New(rand.NewPCG(uint64(seed), uint64(i))), share)
		})
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func readArchive(t *testing.T, file string) *txtar.Archive {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// crashJob is one job of the harness.
type crashJob struct {
	t       *testing.T
	archive *txtar.Archive
}

// ended is what a job came to: what must not depend on when it was killed.
type ended struct {
	Outcome    job.OutcomeFrame
	Transcript map[string]string
	Files      map[string]string
	Effects    []string
	// Interrupted are the calls of which nobody knows whether they had their effect, Settled those of which the next attempt
	// could see that they had.
	Interrupted, Settled []string

	frames, events int
}

// exercise runs the job once undisturbed and then until so many points have been reached.
func (c *crashJob) exercise(random *rand.Rand, kills int) {
	calm, reached := c.play(nil)
	if reached != 0 || len(calm.Interrupted) != 0 {
		c.t.Fatalf("undisturbed, the job was killed %d times and %v was interrupted", reached, calm.Interrupted)
	}
	c.wantOutcome(calm, "outcome.json")
	for tries, most := 0, 12*kills+24; kills > 0 && tries < most; tries++ {
		points := []crashPoint{c.draw(random, calm)}
		if kills > 1 && random.IntN(2) == 0 {
			points = append(points, c.draw(random, calm))
		}
		got, reached := c.play(points)
		kills -= reached
		c.compare(calm, got, points)
		if c.t.Failed() {
			return
		}
	}
	if kills > 0 {
		c.t.Errorf("%d points were not reached", kills)
	}
}

// draw chooses a point within what an undisturbed run has.
func (c *crashJob) draw(random *rand.Rand, calm *ended) crashPoint {
	kinds := []string{crashFrameBefore, crashFrameTorn, crashFrameStored, crashEvent, crashEvent}
	if len(calm.Effects) > 0 {
		kinds = append(kinds, crashEffectBefore, crashEffectAfter)
	}
	p := crashPoint{At: kinds[random.IntN(len(kinds))], Child: random.IntN(2) == 0}
	within := map[string]int{crashEvent: calm.events, crashEffectBefore: len(calm.Effects), crashEffectAfter: len(calm.Effects)}[p.At]
	if within == 0 {
		within = calm.frames
	}
	p.N = 1 + random.IntN(within)
	if p.At == crashFrameTorn {
		p.Child = false
	}
	return p
}

// play runs the job in new directories, one point after another, until it ends. It returns how many points were reached.
func (c *crashJob) play(points []crashPoint) (*ended, int) {
	c.t.Helper()
	dir := c.t.TempDir()
	c.plant(dir)
	outside := &outsideServer{dir: dir}
	spec := c.spec(dir, outside)
	reached := 0
	for attempts := 1; ; attempts++ {
		var point crashPoint
		if len(points) > 0 {
			point, points = points[0], points[1:]
		}
		outside.point.Store(&point)
		outside.calls.Store(0)
		code, log := runCrashAttempt(c.t, dir, point, outside)
		switch code {
		case -1, exitLost:
			reached++
		case job.ExitSuspended:
		case exitBroken:
			c.t.Fatalf("attempt %d at %+v:\n%s", attempts, point, log)
		default:
			return c.collect(dir, spec, reached), reached
		}
		if attempts > 12 {
			c.t.Fatalf("the job does not end; the last attempt ended with %d:\n%s", code, log)
		}
	}
}

// runCrashAttempt returns the exit code of an attempt, -1 if it was killed.
func runCrashAttempt(t *testing.T, dir string, point crashPoint, outside *outsideServer) (int, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(point)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	command := &exec.Cmd{Path: self, Args: []string{"crash-attempt", dir, string(encoded)}, Dir: dir, Env: []string{"TMPDIR=" + t.TempDir()}, Stderr: &log}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	outside.victim.Store(int64(command.Process.Pid))
	err = command.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		return exit.ExitCode(), log.String()
	}
	return 0, log.String()
}

// plant writes what is there before the job.
func (c *crashJob) plant(dir string) {
	c.t.Helper()
	for _, sub := range []string{"src", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, f := range c.archive.Files {
		if !strings.HasPrefix(f.Name, "src/") && !strings.HasPrefix(f.Name, "out/") {
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *crashJob) file(name string) []byte {
	for _, f := range c.archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// spec writes the whole spec of the job to DIR/spec.json.
func (c *crashJob) spec(dir string, outside *outsideServer) *job.Spec {
	c.t.Helper()
	script, err := scripted.FromYAML(c.file("script.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	spec := &job.Spec{
		APIVersion: job.APIVersion, ID: "job-1", Task: "Do it.",
		Agent:     job.Definition{ID: "clerk", Version: "1", Instructions: "Do as you are told."},
		Model:     job.ModelRef{Provider: "test", ID: "actor"},
		Providers: map[string]job.ProviderConfig{"test": {API: job.APIScripted}},
		Workspace: job.Workspace{Root: filepath.Join(dir, "src"), ReadOnly: []string{filepath.Join(dir, "src"), out}, OutDir: out},
		Limits:    job.Limits{TimeoutSec: 120},
	}
	own := c.file("job.json")
	if err := json.Unmarshal(own, spec); err != nil {
		c.t.Fatalf("job.json: %v", err)
	}
	account := spec.Providers["test"]
	account.Script = script
	spec.Providers["test"] = account
	for _, t := range crashDeclarations() {
		if bytes.Contains(own, []byte(`"`+t.Name+`"`)) {
			spec.Host = append(spec.Host, t)
		}
	}
	if bytes.Contains(own, []byte("mcp__outside__")) {
		outside.start(c.t)
		spec.MCP = &job.MCP{Servers: []job.MCPServer{{Name: "outside", URL: outside.url, AllowedTools: []string{"send"}}}}
	}
	data, err := json.Marshal(spec)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "spec.json"), data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return spec
}

// collect reads what the job came to, and checks what holds for every journal and every stream of events.
func (c *crashJob) collect(dir string, spec *job.Spec, reached int) *ended {
	c.t.Helper()
	path := filepath.Join(dir, "run.journal")
	_, problems, err := journal.Verify(path)
	if err != nil || len(problems) > 0 {
		c.t.Fatalf("the journal is damaged: %v %v", problems, err)
	}
	e := &ended{Transcript: map[string]string{}, Effects: effectsIn(dir)}
	for line, err := range journal.Read(path) {
		if err != nil {
			c.t.Fatal(err)
		}
		e.frames++
		if err := e.add(line); err != nil {
			c.t.Fatal(err)
		}
	}
	slices.Sort(e.Effects)
	e.Files = readTree(c.t, spec.Workspace.OutDir)
	e.events = checkEventFile(c.t, filepath.Join(dir, "events"), reached > 0)
	c.checkReplay(path)
	return e
}

// add takes a frame into the transcript: what the model was asked and said, and what the calls answered.
func (e *ended) add(line []byte) error {
	frame, err := job.ParseFrame(line)
	if err != nil {
		return err
	}
	put := func(key string, value any) error {
		text, err := json.Marshal(value)
		for n := 0; ; n++ {
			full := fmt.Sprintf("%s #%d", key, n)
			if _, taken := e.Transcript[full]; !taken {
				e.Transcript[full] = string(text)
				return err
			}
		}
	}
	switch frame.Type {
	case job.FrameMessage:
		var d job.MessageFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		place := fmt.Sprintf("%s %d %s", d.Thread, d.Turn, d.Purpose)
		return errors.Join(put("request "+place, d.Request), put("message "+place, []any{d.Response.Message, d.Fault != nil}))
	case job.FrameCallFinished:
		var d job.CallFinishedFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		if d.Interrupted {
			e.Interrupted = append(e.Interrupted, d.CallID)
		} else if strings.Contains(d.Text, "interrupted during this call") {
			e.Settled = append(e.Settled, d.CallID)
			return nil
		}
		return put("call "+d.CallID, []any{d.Text, d.IsError})
	case job.FrameCompaction:
		var d job.CompactionFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		return put("compaction", d.Replaced)
	case job.FrameOutcome:
		if err := json.Unmarshal(frame.Data, &e.Outcome); err != nil {
			return err
		}
		e.Outcome.Usage = job.TotalUsage{} // a request that was lost on its way is paid twice
	}
	return nil
}

func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = fmt.Sprintf("%v %s", info.Mode()&0o100 != 0, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkEventFile checks that the events of all attempts are one stream, and returns how many there are. The last one may be
// missing if a process was killed: then only the journal says how the job has ended.
func checkEventFile(t *testing.T, path string, killed bool) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	var last job.EventType
	for line := range bytes.Lines(data) {
		e, err := job.ParseEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		if count++; e.Seq != int64(count) {
			t.Fatalf("event %d has seq %d", count, e.Seq)
		}
		if e.Type == job.EventStarted && count > 1 || last.Terminal() {
			t.Fatalf("event %d is %s after %s", count, e.Type, last)
		}
		last = e.Type
	}
	if !last.Terminal() && !killed {
		t.Fatalf("the events end in %s", last)
	}
	return count
}

func (c *crashJob) checkReplay(path string) {
	c.t.Helper()
	rt, err := newKernel(&operator{})
	if err != nil {
		c.t.Fatal(err)
	}
	report, err := rt.Replay(context.Background(), journal.Read(path))
	if err != nil || report.Differs > 0 || !report.Ended {
		c.t.Fatalf("the journal cannot be replayed: %d of %d requests differ, ended %v, %v", report.Differs, len(report.Requests), report.Ended, err)
	}
}

// compare checks a job that was killed against the undisturbed one.
func (c *crashJob) compare(calm, got *ended, points []crashPoint) {
	c.t.Helper()
	for i, effect := range got.Effects {
		if i > 0 && effect == got.Effects[i-1] {
			c.t.Errorf("%+v: the effect %q happened twice", points, effect)
		}
	}
	if len(got.Interrupted) > 0 {
		c.compareInterrupted(got, points)
		return
	}
	if d := cmp.Diff(calm.Outcome, got.Outcome); d != "" {
		c.t.Errorf("%+v: outcome (-undisturbed +killed):\n%s", points, d)
	}
	undisturbed := maps.Clone(calm.Transcript)
	if len(got.Settled) > 0 { // the answers of these calls are other ones, and so are the requests that hold them
		request := func(key, _ string) bool { return strings.HasPrefix(key, "request ") }
		maps.DeleteFunc(undisturbed, request)
		maps.DeleteFunc(got.Transcript, request)
	}
	for _, id := range got.Settled {
		delete(undisturbed, "call "+id+" #0")
	}
	if d := cmp.Diff(undisturbed, got.Transcript); d != "" {
		c.t.Errorf("%+v: transcript (-undisturbed +killed):\n%s", points, d)
	}
	if d := cmp.Diff(calm.Files, got.Files); d != "" {
		c.t.Errorf("%+v: output directory (-undisturbed +killed):\n%s", points, d)
	}
	if d := cmp.Diff(calm.Effects, got.Effects); d != "" {
		c.t.Errorf("%+v: effects (-undisturbed +killed):\n%s", points, d)
	}
}

// compareInterrupted checks a job in which a call was interrupted.
func (c *crashJob) compareInterrupted(got *ended, points []crashPoint) {
	c.t.Helper()
	if c.file("interrupted.json") == nil {
		c.t.Errorf("%+v: the calls %v were interrupted, although none may be", points, got.Interrupted)
		return
	}
	for _, id := range got.Interrupted {
		if text := got.Transcript["call "+id+" #0"]; !strings.Contains(text, "interrupted") {
			c.t.Errorf("%+v: the model was not told that call %s was interrupted: %s", points, id, text)
		}
	}
	c.wantOutcome(got, "interrupted.json")
}

// wantOutcome checks the outcome that the file of the job names: {"answer": …} or {"code": …}.
func (c *crashJob) wantOutcome(got *ended, name string) {
	c.t.Helper()
	var want, have struct{ Answer, Code string }
	if err := json.Unmarshal(c.file(name), &want); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	if got.Outcome.Completed != nil {
		have.Answer = got.Outcome.Completed.Answer
	}
	if got.Outcome.Failed != nil {
		have.Code = got.Outcome.Failed.Code
	}
	if want != have {
		c.t.Errorf("the job ended with %+v, %s says %+v; keys %v", have, name, want, slices.Sorted(maps.Keys(got.Transcript)))
	}
}

// outsideServer is an MCP server that outlives the processes of the job, with the tools "send", which has an effect, and
// "fetch", which only reads. It kills the attempt in its own calls, where it is told to.
type outsideServer struct {
	dir    string
	url    string
	point  atomic.Pointer[crashPoint]
	victim atomic.Int64 // the process of the attempt
	calls  atomic.Int64 // of this attempt
}

func (o *outsideServer) start(t *testing.T) {
	t.Helper()
	type query struct {
		ID string `json:"id"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "outside", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "send", Description: "Sends."}, func(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, any, error) {
		n := int(o.calls.Add(1))
		o.reach(crashEffectBefore, n)
		err := appendEffect(o.dir, "send "+q.ID)
		o.reach(crashEffectAfter, n)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sent " + q.ID}}}, nil, err
	})
	mcp.AddTool(server, &mcp.Tool{Name: "fetch", Description: "Fetches.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "fetched " + q.ID}}}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	o.url = web.URL
}

func (o *outsideServer) reach(at string, n int) {
	if p := o.point.Load(); p.At == at && p.N == n {
		_ = syscall.Kill(int(o.victim.Load()), syscall.SIGKILL)
	}
}
