package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// modelServer is a server of local models: it streams what reply returns for the n-th request, and has a /props page if
// a template is given.
func modelServer(t *testing.T, template string, reply func(n int, body []byte) (status int, events string)) string {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/props" && template != "":
			if r.Header.Get("Authorization") != "" {
				t.Error("the key was sent to /props")
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"chat_template": template})
		case r.URL.Path == "/v1/chat/completions":
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			status, events := reply(int(n.Add(1)), body)
			if status == http.StatusOK {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, events)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// streamed is a reply of text in one piece, with thinking before it, and with usage if it is counted.
func streamed(thinking, text string, counted bool) string {
	var b strings.Builder
	event := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "data: %s\n\n", data)
	}
	choice := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	if thinking != "" {
		event(choice(map[string]any{"reasoning_content": thinking}, nil))
	}
	event(choice(map[string]any{"content": text}, nil))
	event(choice(map[string]any{}, "stop"))
	if counted {
		event(map[string]any{"choices": []any{}, "usage": map[string]int{"prompt_tokens": 9, "completion_tokens": 3}})
	}
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

// examined runs hozo doctor model --json and returns its report and its exit code.
func examined(t *testing.T, args ...string) (modelReport, int) {
	t.Helper()
	var out, failures bytes.Buffer
	p := &program{stdout: &out, stderr: &failures, getenv: func(name string) string {
		if name == "LOCAL_API_KEY" {
			return "secret-key"
		}
		return ""
	}}
	code := p.main(append([]string{"doctor", "model", "--json"}, args...))
	var r modelReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("code %d, %v: %s%s", code, err, out.String(), failures.String())
	}
	return r, code
}

const textReply = "<tool_call>\n{\"name\": \"report_number\", \"arguments\": {\"number\": 7}}\n</tool_call>"

func TestDoctorFindsCallsInTheTextOfALocalModel(t *testing.T) {
	t.Parallel()
	url := modelServer(t, "{% if tools %}{{ tools }}{% endif %}", func(int, []byte) (int, string) { return 200, streamed("Hm.", textReply, false) })
	r, code := examined(t, "--model", "local/qwen2.5:7b", "--base-url", url, "--requests", "3")
	if code != 0 || r.Calls != "text" || r.Format != "hermes" || r.Text != 3 || !r.Thinking || r.UsageReported || len(r.Replies) != 3 {
		t.Errorf("code %d, report %+v", code, r)
	}
	if r.Server == nil || r.Server.Template != "tools" {
		t.Errorf("server %+v", r.Server)
	}
	if len(r.Compat) != 1 || r.Compat["streamUsage"] != true {
		t.Errorf("to set: %v", r.Compat)
	}
}

func TestDoctorTriesTheToolInThePrompt(t *testing.T) {
	t.Parallel()
	url := modelServer(t, "{{ messages }}", func(n int, body []byte) (int, string) {
		if bytes.Contains(body, []byte(`"tools"`)) {
			return 400, `{"error":{"message":"this model does not support tools"}}`
		}
		if !bytes.Contains(body, []byte("report_number")) {
			t.Errorf("request %d does not name the tool: %s", n, body)
		}
		return 200, streamed("", textReply, true)
	})
	r, code := examined(t, "--model", "local/some-model", "--base-url", url)
	if code != 1 || r.Calls != "none" || r.AsText == nil || r.AsText.Calls != "text" || r.Compat["toolsAsText"] != true {
		t.Errorf("code %d, report %+v", code, r)
	}
	if !strings.Contains(r.Replies[0].Problem, "does not support tools") || r.Server == nil || r.Server.Template != "plain" {
		t.Errorf("reply %+v, server %+v", r.Replies[0], r.Server)
	}
}

func TestDoctorNeedsNoProps(t *testing.T) {
	t.Parallel()
	url := modelServer(t, "", func(int, []byte) (int, string) { return 200, streamed("", "Seven.", true) })
	r, code := examined(t, "--model", "local/qwen2.5", "--base-url", url)
	if code != 1 || r.Server != nil || r.None != 1 || !r.UsageReported || len(r.Compat) != 0 {
		t.Errorf("code %d, report %+v", code, r)
	}
}

func TestDoctorReportFailsWithItsWriter(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	r := &modelReport{Model: "a/b", Compat: map[string]any{"x": true}}
	if err := r.print(failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
