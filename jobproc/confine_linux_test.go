package jobproc_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/sandbox"
)

// TestSmokeIsolationOfConfinedChildren opens files in the child, without any tool in between.
func TestSmokeIsolationOfConfinedChildren(t *testing.T) {
	t.Parallel()
	if !sandbox.Probe().Has(sandbox.ProtectionLandlock) {
		t.Skip("landlock is not active on this machine")
	}
	dir := t.TempDir()
	for _, name := range []string{"source", "out", "tmp", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "file"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name, "file") }
	spec := newSpec("open " + strings.Join([]string{at("source"), at("out"), at("tmp"), at("elsewhere"), "/etc/passwd", "/etc/hosts"}, " "))
	spec.Workspace = job.Workspace{Root: dir, ReadOnly: []string{filepath.Join(dir, "source"), "not/sound", "/no/such/place"},
		OutDir: filepath.Join(dir, "out"), TmpDir: filepath.Join(dir, "tmp")}
	for want, confine := range map[string]bool{"true true true false false true": true, "true true true true true true": false} {
		_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{Confine: confine}), spec))
		if outcome.Completed == nil || outcome.Completed.Answer != want {
			t.Errorf("confined %t: %+v", confine, outcome)
		}
	}
}

func TestConfinedChildHasNothingElseInItsEnvironment(t *testing.T) {
	t.Parallel()
	_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{Confine: true}), newSpec("environment")))
	if outcome.Completed == nil {
		t.Fatalf("outcome: %+v", outcome)
	}
	var got struct{ Env []string }
	if err := json.Unmarshal([]byte(outcome.Completed.Answer), &got); err != nil {
		t.Fatal(err)
	}
	for _, variable := range got.Env {
		if !strings.HasPrefix(variable, "TMPDIR=") && !strings.HasPrefix(variable, "HOZO_CGROUP=") {
			t.Errorf("the child has %q", variable)
		}
	}
}
