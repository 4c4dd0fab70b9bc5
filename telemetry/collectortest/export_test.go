package collectortest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	canary = "CANARY-of-content"
	key    = "sk-CANARY-of-credentials"
	caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// taken is what the collector took.
type taken struct {
	spans    []ptrace.Span
	resource []pcommon.Map
	metrics  []pmetric.Metric
}

func read(t *testing.T, output []byte) taken {
	t.Helper()
	var all taken
	for row := range bytes.Lines(output) {
		if len(bytes.TrimSpace(row)) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(row, &l); err != nil {
			t.Fatalf("the collector wrote %q: %v", row, err)
		}
		if l.Traces != nil {
			traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(l.Traces)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range traces.ResourceSpans().All() {
				all.resource = append(all.resource, r.Resource().Attributes())
				for _, scope := range r.ScopeSpans().All() {
					for _, s := range scope.Spans().All() {
						all.spans = append(all.spans, s)
					}
				}
			}
		}
		if l.Metrics != nil {
			metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(l.Metrics)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range metrics.ResourceMetrics().All() {
				for _, scope := range r.ScopeMetrics().All() {
					for _, m := range scope.Metrics().All() {
						all.metrics = append(all.metrics, m)
					}
				}
			}
		}
	}
	return all
}

// tree lists the spans with their parents and statuses, sorted.
func (a taken) tree() []string {
	names := map[pcommon.SpanID]string{}
	for _, s := range a.spans {
		names[s.SpanID()] = s.Name()
	}
	var lines []string
	for _, s := range a.spans {
		parent := names[s.ParentSpanID()]
		if parent == "" {
			parent = s.ParentSpanID().String()
		}
		lines = append(lines, fmt.Sprintf("%s < %s | %s %s %s", s.Name(), parent, s.Kind(), s.Status().Code(), s.Status().Message()))
	}
	slices.Sort(lines)
	return lines
}

func (a taken) span(t *testing.T, name string) ptrace.Span {
	t.Helper()
	for _, s := range a.spans {
		if s.Name() == name {
			return s
		}
	}
	t.Fatalf("no span %q among\n%s", name, strings.Join(a.tree(), "\n"))
	return ptrace.Span{}
}

func (a taken) metric(t *testing.T, name string) pmetric.Metric {
	t.Helper()
	for _, m := range a.metrics {
		if m.Name() == name {
			return m
		}
	}
	t.Fatalf("no metric %q", name)
	return pmetric.Metric{}
}

// document returns a job over new directories.
func document(t *testing.T, script string, more map[string]any) []byte {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "in", "a.txt"), []byte(canary), 0o644); err != nil {
		t.Fatal(err)
	}
	doc := map[string]any{
		"apiVersion": "hozo/v1", "id": "job-1", "task": "Look. " + canary,
		"agent":     map[string]any{"id": "reader", "version": "7", "instructions": canary, "tools": []string{"read"}},
		"model":     map[string]any{"provider": "mistral", "id": "small-1"},
		"providers": map[string]any{"mistral": map[string]any{"api": "scripted", "apiKey": key, "script": json.RawMessage(script)}},
		"workspace": map[string]any{"root": dir, "readOnly": []string{filepath.Join(dir, "in")}, "outDir": filepath.Join(dir, "out")},
		"limits":    map[string]any{"timeoutSec": 60},
	}
	for name, value := range more {
		doc[name] = value
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// run runs the program with an environment of its own and returns its output.
func run(t *testing.T, env []string, stdin []byte, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.Command(program(t), args...)
	command.Env = append([]string{"TMPDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	command.Stdin = bytes.NewReader(stdin)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), log.String(), command.ProcessState.ExitCode()
}

const threeTries = `{"model": {"price": {"inputPerMTok": 1, "outputPerMTok": 10}}, "responses": [
	{"error": {"class": "overloaded", "retryAfterMs": 1}},
	{"parts": [{"text": "I will look: ` + canary + `"}, {"call": {"name": "read", "arguments": {"path": "in/a.txt"}}},
		{"call": {"name": "` + canary + `", "arguments": {}}}], "servedModel": "small-1-0815", "usage": {"input": 100, "cacheRead": 20, "cacheWrite": 3, "output": 40, "reasoning": 5}},
	{"text": "Done. ` + canary + `", "usage": {"input": 150, "output": 7}}]}`

func TestJobIsExportedToACollector(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, optIn, cacheWrite, tokens, compression string
	}{
		{"names of 1.41", "", "gen_ai.usage.cache_creation.input_tokens", "gen_ai.client.token.usage", "gzip"},
		{"newest names", "gen_ai_latest_experimental", "gen_ai.usage.cache_write.input_tokens", "gen_ai.client.inference.usage.input_tokens", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := startCollector(t)
			env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address, "OTEL_SERVICE_NAME=checked", "TRACEPARENT=" + caller,
				"OTEL_SEMCONV_STABILITY_OPT_IN=" + tc.optIn, "OTEL_EXPORTER_OTLP_COMPRESSION=" + tc.compression}
			stdout, stderr, code := run(t, env, document(t, threeTries, nil), "job")
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
			}
			all, output := c.end(t)
			want := []string{
				"chat small-1 < turn | Client Error overloaded",
				"chat small-1 < turn | Client Unset ",
				"chat small-1 < turn | Client Unset ",
				"execute_tool < turn | Internal Error unknown-tool",
				"execute_tool read < turn | Internal Unset ",
				"hozo.retry < turn | Internal Unset ",
				"invoke_agent reader < b7ad6b7169203331 | Internal Unset ",
				"turn < invoke_agent reader | Internal Unset ",
				"turn < invoke_agent reader | Internal Unset ",
			}
			if got := all.tree(); !slices.Equal(got, want) {
				t.Errorf("spans:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			checkAttributes(t, all, tc.cacheWrite)
			all.metric(t, tc.tokens)
			if jobs := all.metric(t, "hozo.jobs").Sum(); jobs.DataPoints().At(0).IntValue() != 1 || !jobs.IsMonotonic() {
				t.Error("the job was not counted")
			}
			for _, secret := range []string{canary, key} {
				if strings.Contains(output, secret) {
					t.Errorf("%s was exported", secret)
				}
			}
		})
	}
}

func checkAttributes(t *testing.T, all taken, cacheWrite string) {
	t.Helper()
	var first ptrace.Span
	for _, s := range all.spans {
		if s.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in the trace %s", s.Name(), s.TraceID())
		}
		if s.EndTimestamp() < s.StartTimestamp() || s.StartTimestamp() == 0 {
			t.Errorf("%s lasts from %d to %d", s.Name(), s.StartTimestamp(), s.EndTimestamp())
		}
		if turn, ok := s.Attributes().Get("hozo.try"); ok && turn.Int() == 2 {
			first = s
		}
	}
	if first == (ptrace.Span{}) {
		t.Fatal("no second try")
	}
	got := first.Attributes().AsRaw()
	for name, value := range map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "mistral_ai", "gen_ai.request.model": "small-1",
		"gen_ai.response.model": "small-1-0815", "gen_ai.usage.input_tokens": int64(123), "gen_ai.usage.output_tokens": int64(40),
		"gen_ai.usage.cache_read.input_tokens": int64(20), cacheWrite: int64(3), "gen_ai.usage.reasoning.output_tokens": int64(5),
		"hozo.span": "hozo.request", "hozo.turn": int64(1)} {
		if got[name] != value {
			t.Errorf("the request has %s = %v, want %v", name, got[name], value)
		}
	}
	if reasons := fmt.Sprint(got["gen_ai.response.finish_reasons"]); reasons != "[tool_call]" {
		t.Errorf("finish reasons %s", reasons)
	}
	if cost, _ := got["hozo.cost.usd"].(float64); cost <= 0 {
		t.Errorf("cost %v", got["hozo.cost.usd"])
	}
	if name, _ := all.resource[0].Get("service.name"); name.Str() != "checked" {
		t.Errorf("service.name is %q", name.Str())
	}
}

func TestContentIsExportedToACollectorIfAskedFor(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	script := strings.ReplaceAll(threeTries, "I will look", key)
	_, stderr, code := run(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"},
		document(t, script, nil), "job")
	_, output := c.end(t)
	if code != 0 || !strings.Contains(output, canary) || !strings.Contains(output, "[redacted]") || strings.Contains(output, key) {
		t.Errorf("exit code %d, content %t, key %t\n%s", code, strings.Contains(output, canary), strings.Contains(output, key), stderr)
	}
}

func TestJobProcessIsExportedByItsParent(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"agent.md": "---\nname: agent\ndescription: Works.\n---\nAnswer.\n", "script.json": threeTries} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, code := run(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address}, nil, "run", filepath.Join(dir, "agent.md"), "Look.",
		"--script", filepath.Join(dir, "script.json"), "--workspace", t.TempDir(), "--out", filepath.Join(t.TempDir(), "out"))
	all, output := c.end(t)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	root := all.span(t, "invoke_agent agent")
	if !root.ParentSpanID().IsEmpty() || strings.Contains(output, canary) {
		t.Errorf("the job has the parent %s", root.ParentSpanID())
	}
	for _, s := range all.spans {
		if s.TraceID() != root.TraceID() {
			t.Errorf("%s is in another trace", s.Name())
		}
	}
}

func TestDeadCollectorIsOneWarning(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	c.end(t)
	stdout, stderr, code := run(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address}, document(t, threeTries, nil), "job")
	if code != 0 || !strings.Contains(stdout, `"job.completed"`) {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "telemetry: 9 spans and 1 reports") {
		t.Errorf("standard error: %s", stderr)
	}
}

// look is a tool of the MCP server; it takes nothing.
type look struct{}

func TestMCPServersGetTheSpanOfTheirCall(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]bool{}
	server := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "look", Description: "Looks.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, r *mcp.CallToolRequest, _ look) (*mcp.CallToolResult, any, error) {
			mu.Lock()
			defer mu.Unlock()
			parent, _ := r.Params.Meta["traceparent"].(string)
			seen[parent] = true
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "seen"}}}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	c := startCollector(t)
	script := `{"responses": [{"parts": [{"call": {"name": "mcp__web__look", "arguments": {}}}]}, {"text": "Done."}]}`
	doc := document(t, script, map[string]any{
		"agent": map[string]any{"id": "reader", "version": "7", "instructions": "Look.", "tools": []string{"mcp__web__look"}},
		"mcp":   map[string]any{"servers": []any{map[string]any{"name": "web", "url": web.URL, "required": true}}},
	})
	stdout, stderr, code := run(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address}, doc, "job", "--private-mcp")
	all, _ := c.end(t)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	s := all.span(t, "execute_tool mcp__web__look")
	if want := fmt.Sprintf("00-%s-%s-01", s.TraceID(), s.SpanID()); len(seen) != 1 || !seen[want] {
		t.Errorf("the server was told %v, want %s", seen, want)
	}
	if own, _ := s.Attributes().Get("hozo.span"); own.Str() != "hozo.mcp" || s.Kind() != ptrace.SpanKindClient {
		t.Errorf("hozo.span %q of kind %s", own.Str(), s.Kind())
	}
}
