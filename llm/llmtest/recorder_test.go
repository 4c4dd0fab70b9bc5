package llmtest_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm/llmtest"
)

func post(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"q":1}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer canary")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, " ", string(body))
}

func TestARecordingCanBeReadAndReplayedAndHoldsNoCredential(t *testing.T) {
	provider := llmtest.NewServer(t, llmtest.Stream("data: a\n\n", "data: b\n\n"), llmtest.Status(429, "", "", `{"error":"slow"}`))
	recorder := llmtest.NewRecorder(t, provider.URL+"/api")
	want := []string{post(t, recorder.URL+"/chat/completions?key=canary"), post(t, recorder.URL+"/chat/completions")}
	if got := provider.Requests(); len(got) != 2 || got[0].Path != "/api/chat/completions" || got[0].Header.Get("Authorization") != "Bearer canary" {
		t.Fatalf("the provider saw %+v", got)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "one.yaml")
	if err := recorder.Save(file); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("the recording holds the credential (error %v):\n%s", err, text)
	}
	t.Setenv(llmtest.RecordingsVariable, folder)
	recorded := llmtest.Recordings(t, "/chat/completions")
	replay := llmtest.NewServer(t, llmtest.Replay(recorded...)...)
	got := []string{post(t, replay.URL), post(t, replay.URL)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-recorded +replayed)\n%s", diff)
	}
	if recorded[0].Request != `{"q":1}` || !recorded[0].Streamed || recorded[1].Streamed || recorded[1].Status != 429 {
		t.Errorf("read back %+v", recorded)
	}
}
