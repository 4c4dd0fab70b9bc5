package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestTelemetryOfTheProgram(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	dir := plant(t, map[string]string{"agent.md": agentFile, "in/a.txt": "a", "script.yaml": "responses:\n- text: Done.\n"})
	run := []string{"run", "agent.md", "Look.", "--script", "script.yaml", "--workspace", "in", "--out", "out"}
	for name, tc := range map[string]struct {
		env      []string
		args     []string
		code     int
		requests int64
		stderr   string
	}{
		"no endpoint":     {[]string{"OTEL_SERVICE_NAME=x", "TRACEPARENT=nonsense"}, run, 0, 0, ""},
		"an endpoint":     {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "TRACEPARENT=nonsense"}, run, 0, 2, ""},
		"switched off":    {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_SDK_DISABLED=true"}, run, 0, 0, ""},
		"a bad flag":      {nil, []string{"job", "--spec", "script.yaml", "--traceparent", "00-12"}, 2, 0, "--traceparent: \"00-12\" is no traceparent"},
		"a bad setting":   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=localhost"}, run, 0, 0, "OTEL_EXPORTER_OTLP_ENDPOINT must be an address"},
		"nobody listens":  {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}, run, 0, 0, "could not be exported"},
		"a refused agent": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL}, append(run, "--timeout", "-1s"), 3, 0, ""},
	} {
		before := requests.Load()
		_, stderr, code := finished(t, hozo(t, dir, tc.env, tc.args...))
		if code != tc.code || !strings.Contains(stderr, tc.stderr) {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
		if got := requests.Load() - before; got != tc.requests {
			t.Errorf("%s: %d requests, want %d", name, got, tc.requests)
		}
		if tc.stderr == "" && strings.Contains(stderr, "telemetry") {
			t.Errorf("%s: %s", name, stderr)
		}
	}
}
