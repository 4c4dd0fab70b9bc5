package kernel_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/gittool"
	"github.com/hozo-run/hozo/tool/shelltool"
)

// runProcessJob runs a job whose tools may start processes as policy says.
func runProcessJob(t *testing.T, spec *job.Spec, policy *kernel.ProcessPolicy, sent *requests) ([]*job.Event, job.Outcome) {
	t.Helper()
	if !sandbox.Probe().Has(sandbox.ProtectionNamespaces) {
		t.Skip("without namespaces the test binary would have to be its own helper")
	}
	registry, err := tool.NewRegistry(append(filetool.Tools(), shelltool.New(shelltool.Options{}), gittool.New(gittool.Options{}))...)
	must(t, err)
	adapter := scripted.Adapter{OnRequest: sent.observe}
	rt, err := kernel.New(kernel.Config{
		Adapters:  map[string]llm.Adapter{job.APIScripted: adapter.New},
		Models:    func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id, Price: &llm.Price{}}, true },
		Tools:     registry,
		Processes: policy,
	})
	must(t, err)
	h, err := rt.Start(t.Context(), spec, job.Ports{})
	must(t, err)
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	checkStream(t, events, outcome)
	return events, outcome
}

// calls writes a script that makes calls one after another and then answers.
func callsOf(t *testing.T, calls ...string) []byte {
	t.Helper()
	var b strings.Builder
	b.WriteString("responses:\n")
	for _, c := range calls {
		fmt.Fprintf(&b, "- parts: [{call: %s}]\n", c)
	}
	b.WriteString("- text: done\n")
	return script(t, b.String())
}

func results(events []*job.Event) (all []*job.ToolResultData) {
	for _, e := range events {
		if d, ok := e.Data.(*job.ToolResultData); ok {
			all = append(all, d)
		}
	}
	return all
}

func TestShellInAJob(t *testing.T) {
	t.Parallel()
	spec := newSpec(t, t.TempDir(), nil, callsOf(t,
		`{name: shell, arguments: {command: "cd out; x=1; export x; echo hello > report.md; echo $HOME $TMPDIR > $TMPDIR/state"}}`,
		`{name: shell, arguments: {command: "pwd -P | grep -c /out; echo \"[$x]\"; cat out/report.md; exit 3"}}`,
		`{name: write, arguments: {path: more.md, content: "more"}}`))
	sent := &requests{}
	events, outcome := runProcessJob(t, spec, &kernel.ProcessPolicy{}, sent)
	if outcome.Completed == nil {
		t.Fatalf("outcome %+v", outcome.Failed)
	}
	if diff := cmp.Diff([]string{"more.md", "report.md"}, outcome.Completed.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	got := results(events)
	if len(got) != 3 || !got[0].Success || got[1].Success || got[1].Summary != "exit code 3, 3 lines" || !got[2].Success {
		t.Errorf("results %+v", got)
	}
	if !bytes.Contains(sent.all(), []byte(`0\n[]\nhello\n\n[exit code 3]`)) {
		t.Errorf("the model was told: %s", sent.all())
	}
}

// TestTheTemporaryDirectoryOfAJobGoesWithIt: a job that was given none has one for as long as it runs.
func TestTheTemporaryDirectoryOfAJobGoesWithIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := newSpec(t, dir, nil, callsOf(t, `{name: shell, arguments: {command: "echo x > $HOME/f && test $HOME = $TMPDIR && echo $TMPDIR > out/where"}}`,
		`{name: shell, arguments: {command: "cat $TMPDIR/f"}}`))
	events, outcome := runProcessJob(t, spec, &kernel.ProcessPolicy{}, &requests{})
	if outcome.Completed == nil || !results(events)[0].Success || !results(events)[1].Success {
		t.Fatalf("outcome %+v, results %+v", outcome.Failed, results(events))
	}
	where, err := os.ReadFile(filepath.Join(dir, "out", "where"))
	must(t, err)
	tmp := strings.TrimSpace(string(where))
	if !filepath.IsAbs(tmp) {
		t.Errorf("the directory is %q", tmp)
	}
	if _, err := os.Stat(tmp); err == nil {
		t.Errorf("%s is still there", tmp)
	}
}

// TestBlockedCommandsAreNotStarted: a deny pattern stops a call before any process is started, for git with and without
// its leading word.
func TestBlockedCommandsAreNotStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	overlay := []byte(`{"agent":{"id":"tester","version":"1","instructions":"x","denyCommandPatterns":["\\brm -rf\\b","^git blame"]}}`)
	spec := newSpec(t, dir, overlay, callsOf(t, `{name: shell, arguments: {command: "touch out/ran; r''m   -rf out"}}`,
		`{name: git, arguments: {command: "blame a.txt"}}`, `{name: git, arguments: {command: "git  blame a.txt"}}`))
	events, _ := runProcessJob(t, spec, &kernel.ProcessPolicy{}, &requests{})
	blocked := 0
	for _, e := range events {
		if d, ok := e.Data.(*job.ToolCallData); ok && !d.Allowed && d.Code == "blocked" && strings.Contains(d.Reason, "deny pattern") {
			blocked++
		}
	}
	if blocked != 3 {
		t.Errorf("%d calls were blocked", blocked)
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "ran")); err == nil {
		t.Error("a blocked command ran")
	}
}

func TestProcessesNeedTheOperatorsWord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := newSpec(t, dir, nil, callsOf(t, `{name: shell, arguments: {command: "touch out/ran"}}`, `{name: git, arguments: {command: status}}`))
	sent := &requests{}
	events, outcome := runProcessJob(t, spec, nil, sent)
	if outcome.Completed == nil || results(events)[0].Success || results(events)[1].Success || !bytes.Contains(sent.all(), []byte("hozo doctor")) {
		t.Errorf("outcome %+v, results %+v", outcome.Failed, results(events))
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "ran")); err == nil {
		t.Error("a command ran")
	}
}

// TestTheEndOfAJobEndsItsCommands aborts a job in the middle of a command.
func TestTheEndOfAJobEndsItsCommands(t *testing.T) {
	t.Parallel()
	overlay := []byte(`{"limits":{"timeoutSec":2}}`)
	spec := newSpec(t, t.TempDir(), overlay, callsOf(t, `{name: shell, arguments: {command: "(setsid sleep 60611 &); echo begun; sleep 60611"}}`))
	began := time.Now()
	events, outcome := runProcessJob(t, spec, &kernel.ProcessPolicy{}, &requests{})
	wantFailure(t, outcome, job.ReasonTimeout, job.CodeTimeout)
	if got := results(events); len(got) != 1 || got[0].Success || got[0].Summary != "ended early, 1 line" {
		t.Errorf("results %+v", got)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, l := range lines {
		if data, err := os.ReadFile(l); err == nil && bytes.Contains(data, []byte("60611")) {
			t.Errorf("%s is left", l)
		}
	}
}

// TestGitInAJob asks a repository whose configuration names a program.
func TestGitInAJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := newSpec(t, dir, nil, callsOf(t, `{name: git, arguments: {command: "log --oneline"}}`, `{name: git, arguments: {command: status}}`,
		`{name: git, arguments: {command: "log; id"}}`, `{name: git, arguments: {command: "commit -m x"}}`))
	source := spec.Workspace.ReadOnly[0]
	marker := filepath.Join(dir, "out", "ran")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first-commit"}, {"config", "core.fsmonitor", "touch " + marker + "; false"}} {
		c := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@localhost"}, args...)...)
		c.Dir = source
		if output, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	_ = os.Remove(marker) // the configuration itself may have run it
	sent := &requests{}
	events, outcome := runProcessJob(t, spec, &kernel.ProcessPolicy{}, sent)
	if outcome.Completed == nil {
		t.Fatalf("outcome %+v", outcome.Failed)
	}
	var success []bool
	for _, r := range results(events) {
		success = append(success, r.Success)
	}
	if diff := cmp.Diff([]bool{true, true, false, false}, success); diff != "" {
		t.Errorf("results (-want +got):\n%s: %s", diff, sent.all())
	}
	for _, want := range []string{"first-commit", "nothing to commit", "only a shell understands", "changes a repository"} {
		if !bytes.Contains(sent.all(), []byte(want)) {
			t.Errorf("the model was not told %q", want)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the program of the repository ran")
	}
}

// TestAJobWithoutSandboxSaysSoOnce: the notice comes with the first process, and jobs without any have none.
func TestAJobWithoutSandboxSaysSoOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		calls []string
		want  int
	}{
		"two commands": {[]string{`{name: shell, arguments: {command: "true"}}`, `{name: shell, arguments: {command: "true"}}`}, 1},
		"none":         {[]string{`{name: ls, arguments: {}}`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, outcome := runProcessJob(t, newSpec(t, t.TempDir(), nil, callsOf(t, tc.calls...)), &kernel.ProcessPolicy{Unconfined: true}, &requests{})
			if outcome.Completed == nil {
				t.Fatalf("outcome %+v", outcome.Failed)
			}
			said := 0
			for _, e := range events {
				if n, ok := e.Data.(*job.NoticeData); ok && n.Code == "sandbox-off" {
					said++
				}
			}
			if said != tc.want {
				t.Errorf("%d notices, want %d", said, tc.want)
			}
		})
	}
}
