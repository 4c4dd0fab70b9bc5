package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/job"
)

// canaryKey is a key whose every way to be written differs: raw, in JSON, in a URL, in base64.
const canaryKey = `sk-canary"/+%&<0123456789>`

// canaries are the ways in which the key could get out.
func canaries() map[string]string {
	text, err := json.Marshal(canaryKey)
	if err != nil {
		panic(err)
	}
	return map[string]string{
		"raw":        canaryKey,
		"JSON":       string(text[1 : len(text)-1]),
		"plain JSON": strings.ReplaceAll(canaryKey, `"`, `\"`),
		"query":      url.QueryEscape(canaryKey),
		"path":       url.PathEscape(canaryKey),
		"base64":     base64.StdEncoding.EncodeToString([]byte(canaryKey))[:32],
		"base64 URL": base64.URLEncoding.EncodeToString([]byte(canaryKey))[:32],
	}
}

// wantNoCanary fails if any spelling of the key is in text.
func wantNoCanary(t *testing.T, where, text string) {
	t.Helper()
	for spelling, canary := range canaries() {
		if strings.Contains(text, canary) {
			t.Errorf("the key (%s) is in %s:\n%.2000s", spelling, where, text)
		}
	}
}

// wantNoCanaryBelow looks through every file of a directory.
func wantNoCanaryBelow(t *testing.T, dir string, except ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		for _, name := range except {
			if entry.Name() == name {
				return nil
			}
		}
		data, err := os.ReadFile(path)
		wantNoCanary(t, path, string(data))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// echoServer answers the first request as answer says and any later one by quoting the key in an error, in each spelling.
// It fails the test if a request does not carry the key.
func echoServer(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	first := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+canaryKey {
			t.Errorf("the request has the authorization %q", got)
		}
		if first && answer != nil {
			first = false
			answer(w, r)
			return
		}
		var quoted []string
		for _, canary := range canaries() {
			quoted = append(quoted, canary)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		body := map[string]any{"error": map[string]string{"message": "bad key: " + strings.Join(quoted, " or "), "code": "invalid_api_key"}}
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// writesNotes is a response that calls the tool write.
func writesNotes(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range []string{
		`{"id":"r","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"write","arguments":"{\"path\":\"notes.md\",\"content\":\"hello\"}"}}]},"finish_reason":null}]}`,
		`{"id":"r","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`,
		"[DONE]",
	} {
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}

func TestSmokeCredentialsOfARunReachTheProviderOnly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env  []string
		args []string
	}{
		"from the environment":    {[]string{"LOCAL_API_KEY=" + canaryKey}, nil},
		"from a named variable":   {[]string{"MY_KEY=" + canaryKey}, []string{"--api-key-env", "MY_KEY"}},
		"from a file":             {nil, []string{"--api-key-file", "key"}},
		"from a file of accounts": {nil, []string{"--provider-config", "accounts.json"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := plant(t, map[string]string{"agent.md": agentFile, "src/a.txt": "hello", "key": canaryKey + "\n"})
			server := echoServer(t, func(w http.ResponseWriter, _ *http.Request) {
				wantNoCanaryInProcesses(t, dir)
				writesNotes(w)
			})
			accounts, err := json.Marshal(map[string]job.ProviderConfig{"local": {API: job.APIOpenAIChat, BaseURL: server.URL, APIKey: canaryKey}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "accounts.json"), accounts, 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"run", "agent.md", "Go.", "--model", "local/m", "--base-url", server.URL,
				"--workspace", "src", "--out", "out", "--events", "events.jsonl"}, test.args...)
			stdout, stderr, code := finished(t, hozo(t, dir, test.env, args...))
			if code != 1 || !strings.Contains(stderr, "provider-auth") {
				t.Errorf("exit code %d, standard error:\n%s", code, stderr)
			}
			if notes, err := os.ReadFile(filepath.Join(dir, "out/notes.md")); err != nil || string(notes) != "hello" {
				t.Errorf("notes: %q, %v", notes, err)
			}
			wantNoCanary(t, "standard output", stdout)
			wantNoCanary(t, "standard error", stderr)
			wantNoCanaryBelow(t, dir, "key", "accounts.json")
		})
	}
}

func TestSmokeCredentialsOfADocumentReachTheProviderOnly(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{"src/a.txt": "hello", "out/.keep": ""})
	server := echoServer(t, func(w http.ResponseWriter, _ *http.Request) { writesNotes(w) })
	document, err := json.Marshal(job.Spec{
		APIVersion: job.APIVersion,
		Agent:      job.Definition{ID: "a", Version: "1", Instructions: "Go."},
		Task:       "Go.",
		Model:      job.ModelRef{Provider: "local", ID: "m"},
		Providers:  map[string]job.ProviderConfig{"local": {API: job.APIOpenAIChat, BaseURL: server.URL, APIKey: canaryKey}},
		Workspace:  job.Workspace{Root: "src", ReadOnly: []string{"src"}, OutDir: "out"},
		Limits:     job.Limits{TimeoutSec: 60},
	})
	if err != nil {
		t.Fatal(err)
	}
	command := hozo(t, dir, nil, "job")
	command.Stdin = strings.NewReader(string(document))
	stdout, stderr, code := finished(t, command)
	if code != 1 || !strings.Contains(stdout, `"code":"provider-auth"`) {
		t.Errorf("exit code %d, standard output:\n%s", code, stdout)
	}
	wantNoCanary(t, "standard output", stdout)
	wantNoCanary(t, "standard error", stderr)
	wantNoCanaryBelow(t, dir)
}

func TestSmokeCredentialsAreNotInARefusal(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{"agent.md": agentFile, "src/a.txt": "hello"})
	stdout, stderr, code := finished(t, hozo(t, dir, []string{"LOCAL_API_KEY= " + canaryKey + "\n"},
		"run", "agent.md", "Go.", "--model", "local/m", "--base-url", "http://127.0.0.1:1", "--workspace", "src", "--out", "out"))
	if code != 3 || !strings.Contains(stderr, "the API key: ") {
		t.Errorf("exit code %d, standard error:\n%s", code, stderr)
	}
	wantNoCanary(t, "standard output", stdout)
	wantNoCanary(t, "standard error", stderr)
}
