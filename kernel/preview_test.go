package kernel_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
)

func previewSpec(t *testing.T) *job.Spec {
	root := t.TempDir()
	for _, name := range []string{"source", "out"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &job.Spec{APIVersion: job.APIVersion, Task: "Look around.",
		Agent: job.Definition{ID: "reader", Version: "3", Instructions: "Read.\n", Tools: []string{"read", "grep"},
			Skills: []job.Skill{{Name: "tone", Content: "Be short."}}},
		Model:     job.ModelRef{Provider: "s", ID: "m"},
		Providers: map[string]job.ProviderConfig{"s": {API: job.APIScripted, Script: json.RawMessage(`{"responses":[{"text":"Done."}]}`)}},
		Limits:    job.Limits{TimeoutSec: 10},
		Workspace: job.Workspace{Root: root, ReadOnly: []string{filepath.Join(root, "source")}, OutDir: filepath.Join(root, "out")},
	}
}

func TestPreviewIsWhatTheModelIsSent(t *testing.T) {
	t.Parallel()
	var body []byte
	rt := newRuntime(t, func(b []byte) { body = b })
	view, problems := rt.Preview(previewSpec(t))
	if problems != nil {
		t.Fatal(problems)
	}
	handle, err := rt.Start(t.Context(), previewSpec(t), job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	if end := handle.Wait(); end.Completed == nil {
		t.Fatalf("the job ended as %+v", end)
	}
	if !strings.Contains(view.System, "Read.\n\n\n<skill name=\"tone\">\nBe short.\n</skill>") {
		t.Errorf("system prompt %q", view.System)
	}
	for _, part := range []string{view.System, view.JobSystem} {
		encoded, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		if part == "" || !strings.Contains(string(body), strings.Trim(string(encoded), `"`)) {
			t.Errorf("the request does not hold the prompt %s:\n%s", encoded, body)
		}
	}
	names := []string{}
	for _, s := range view.Tools {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"read", "grep"}, names); diff != "" {
		t.Error(diff)
	}
	if len(view.Messages) != 1 || view.Messages[0].Text() != "Look around." {
		t.Errorf("messages %+v", view.Messages)
	}
}

func TestPreviewReportsWhyAJobWouldBeRefused(t *testing.T) {
	t.Parallel()
	spec := previewSpec(t)
	spec.Agent.Tools = []string{"read", "fly"}
	spec.Agent.DenyCommandPatterns = []string{"("}
	view, problems := newRuntime(t, nil).Preview(spec)
	if view != nil || len(problems) != 2 {
		t.Errorf("preview %v, problems %v", view, problems)
	}
}
