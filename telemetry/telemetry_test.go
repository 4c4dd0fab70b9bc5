package telemetry_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/telemetry"
)

// canary is content: it must not be exported unless that is asked for.
const canary = "CANARY-of-content"

// wholeJob is a job with everything: a failed try, a script with nested calls, an MCP call, a refused call.
func wholeJob() *events {
	e := newEvents()
	e.usage("1.1", llm.Usage{}, func(c *job.CallUsage) { c.Error, c.Stop = "overloaded", "" })
	e.span(job.SpanRetry, job.SpanOK, 1, map[string]any{"turn": 1, "try": 1, "class": "overloaded", "waitMs": 500})
	e.add(&job.MessageDeltaData{Turn: 1, Try: 2, Text: canary})
	e.usage("1.2", llm.Usage{Input: 100, CacheRead: 20, CacheWrite: 3, Output: 40, Reasoning: 5}, func(c *job.CallUsage) {
		c.Stop, c.ServedModel, c.CostMicroUSD = llm.StopTools, "small-1-0815", 1500
	})
	e.add(&job.MessageData{Turn: 1, Text: "I will look. " + canary})
	e.add(&job.ToolCallData{CallID: "1.0", Turn: 1, Tool: "codemode", Allowed: true, Input: []byte(`{"code":"` + canary + `"}`)})
	e.addIn("1.0", &job.ToolCallData{CallID: "1.0/1", Turn: 1, Tool: "read", Allowed: true, Input: []byte(`{"path":"` + canary + `"}`)})
	e.addIn("1.0", &job.ToolResultData{CallID: "1.0/1", Tool: "read", Success: true, Summary: canary})
	e.span(job.SpanTool, job.SpanOK, 1, map[string]any{"callId": "1.0/1", "tool": "read", "allowed": true, "bytes": 9})
	e.span(job.SpanCodemode, job.SpanOK, 2, map[string]any{"callId": "1.0", "tool": "codemode", "nestedCalls": 1})
	e.add(&job.ToolResultData{CallID: "1.0", Tool: "codemode", Success: true, Summary: canary})
	e.span(job.SpanTool, job.SpanOK, 4, map[string]any{"callId": "1.0", "tool": "codemode", "allowed": true, "bytes": 10})
	e.add(&job.ToolCallData{CallID: "1.1", Turn: 1, Tool: "mcp__web__look", Allowed: true, Input: []byte(`{}`)})
	e.span(job.SpanMCP, job.SpanError, 1, map[string]any{"callId": "1.1", "tool": "mcp__web__look", "nestedCalls": 0})
	e.add(&job.ToolResultData{CallID: "1.1", Tool: "mcp__web__look", Summary: canary})
	e.span(job.SpanTool, job.SpanError, 1, map[string]any{"callId": "1.1", "tool": "mcp__web__look", "allowed": true, "bytes": 11})
	e.add(&job.ToolCallData{CallID: "1.2", Turn: 1, Tool: canary, Code: "unknown-tool", Reason: canary, Input: []byte(`{}`)})
	e.add(&job.ToolResultData{CallID: "1.2", Tool: canary, Summary: canary})
	e.span(job.SpanTool, job.SpanError, 1, map[string]any{"callId": "1.2", "allowed": false, "code": "unknown-tool", "bytes": 12})
	e.span(job.SpanTurn, job.SpanOK, 12, map[string]any{"turn": 1, "model": "small-1", "calls": 3})
	e.usage("2.1", llm.Usage{Input: 150, Output: 7}, func(c *job.CallUsage) { c.CostMicroUSD = 500 })
	e.add(&job.MessageData{Turn: 2, Text: canary, Final: true})
	e.span(job.SpanTurn, job.SpanOK, 3, map[string]any{"turn": 2, "model": "small-1", "calls": 0})
	e.span(job.SpanJob, job.SpanOK, 20, map[string]any{"agent": "reader", "turns": 2, "requests": 3, "outputs": 0, "costMicroUsd": 2000, "tools": 2})
	return e.add(&job.CompletedData{Summary: canary, Answer: canary})
}

func TestSpansHaveTheNamesOfTheConventions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		optIn, cacheWrite string
		agentID           any
	}{
		{"", "gen_ai.usage.cache_creation.input_tokens", "reader"},
		{"http, gen_ai_latest_experimental", "gen_ai.usage.cache_write.input_tokens", nil},
	} {
		r := newReceiver(t, nil)
		trace := telemetry.NewTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		replay(opened(t, r.with("OTEL_SEMCONV_STABILITY_OPT_IN", tc.optIn), nil), trace, wholeJob(), nil)
		spans := r.spans(t)
		root := named(t, spans, "invoke_agent reader")
		turns := map[any]*span{}
		var lines []string
		for _, s := range spans {
			if s.trace != "0af7651916cd43dd8448eb211c80319c" {
				t.Errorf("%s is in the trace %s", s.name, s.trace)
			}
			if s.name == "turn" {
				turns[s.attributes["hozo.turn"]] = s
			}
			parent := "the caller"
			if p := spans[s.parent]; p != nil {
				parent = p.name
			} else if s.parent != "b7ad6b7169203331" {
				t.Errorf("%s has the parent %s, which nobody exported", s.name, s.parent)
			}
			lines = append(lines, fmt.Sprintf("%s < %s [%s] kind %d status %d %s", s.name, parent, s.attributes["hozo.span"], s.kind, s.status, s.message))
		}
		slices.Sort(lines)
		want := []string{
			"chat small-1 < turn [hozo.request] kind 3 status 0 ",
			"chat small-1 < turn [hozo.request] kind 3 status 0 ",
			"chat small-1 < turn [hozo.request] kind 3 status 2 overloaded",
			"execute_tool < turn [hozo.tool] kind 1 status 2 unknown-tool",
			"execute_tool codemode < turn [hozo.codemode] kind 1 status 0 ",
			"execute_tool mcp__web__look < turn [hozo.mcp] kind 3 status 2 tool_error",
			"execute_tool read < execute_tool codemode [hozo.tool] kind 1 status 0 ",
			"hozo.retry < turn [hozo.retry] kind 1 status 0 ",
			"invoke_agent reader < the caller [hozo.job] kind 1 status 0 ",
			"turn < invoke_agent reader [hozo.turn] kind 1 status 0 ",
			"turn < invoke_agent reader [hozo.turn] kind 1 status 0 ",
		}
		if d := cmp.Diff(want, lines); d != "" {
			t.Errorf("spans (-want +got):\n%s", d)
		}
		for key, value := range map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "reader", "gen_ai.agent.version": "7",
			"gen_ai.agent.id": tc.agentID, "gen_ai.provider.name": "mistral_ai", "gen_ai.request.model": "small-1", "hozo.outcome": "completed",
			"hozo.cost.usd": 0.002, "hozo.job.id": "job-1", "hozo.turns": int64(2)} {
			if root.attributes[key] != value {
				t.Errorf("the job has %s = %v, want %v", key, root.attributes[key], value)
			}
		}
		checkChats(t, spans, turns, tc.cacheWrite)
	}
}

func checkChats(t *testing.T, spans map[string]*span, turns map[any]*span, cacheWrite string) {
	t.Helper()
	for _, s := range spans {
		if s.name != "chat small-1" || s.parent != turns[int64(1)].id {
			continue
		}
		want := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "mistral_ai", "gen_ai.request.model": "small-1",
			"hozo.span": "hozo.request", "hozo.job.id": "job-1", "hozo.turn": int64(1), "hozo.purpose": "turn"}
		if s.attributes["hozo.try"] == int64(1) {
			want["hozo.try"], want["error.type"] = int64(1), "overloaded" // and no usage: nothing arrived
		} else {
			for key, value := range map[string]any{"hozo.try": int64(2), "gen_ai.response.model": "small-1-0815",
				"gen_ai.response.finish_reasons": "tool_call", "gen_ai.usage.input_tokens": int64(123), "gen_ai.usage.output_tokens": int64(40),
				"gen_ai.usage.cache_read.input_tokens": int64(20), cacheWrite: int64(3), "gen_ai.usage.reasoning.output_tokens": int64(5),
				"hozo.cost.usd": 0.0015} {
				want[key] = value
			}
		}
		got := map[string]any{}
		for key, value := range s.attributes {
			if key != "gen_ai.request.reasoning.level" {
				got[key] = value
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("attributes of a request (-want +got):\n%s", d)
		}
	}
}

func TestMetricsHaveTheNamesOfTheConventions(t *testing.T) {
	t.Parallel()
	ours := map[string]float64{"hozo.jobs": 1, "hozo.turns": 2, "hozo.tool.calls": 4, "hozo.cost": 0.002}
	for optIn, theirs := range map[string]map[string]float64{
		// for a histogram the sum of counts
		"": {"gen_ai.client.token.usage": 4, "gen_ai.client.operation.duration": 3},
		"gen_ai_latest_experimental": {"gen_ai.client.inference.duration": 3, "gen_ai.client.inference.usage.input_tokens": 273,
			"gen_ai.client.inference.usage.output_tokens": 47, "gen_ai.client.inference.usage.cache_read.input_tokens": 20,
			"gen_ai.client.inference.usage.cache_write.input_tokens": 3, "gen_ai.client.inference.usage.reasoning.output_tokens": 5,
			"gen_ai.invoke_agent.duration": 1, "gen_ai.invoke_agent.inference_calls": 1, "gen_ai.invoke_agent.tool_calls": 1,
			"gen_ai.execute_tool.duration": 4},
	} {
		r := newReceiver(t, nil)
		replay(opened(t, r.with("OTEL_SEMCONV_STABILITY_OPT_IN", optIn), nil), telemetry.NewTrace(""), wholeJob(), nil)
		got := map[string]float64{}
		for name, points := range r.metrics(t) {
			for _, p := range points {
				got[name] += p.value + float64(p.count)
				in := uint64(0)
				for _, n := range p.buckets {
					in += n
				}
				if p.temporality != 2 || in != p.count {
					t.Errorf("%s: temporality %d, %d of %d in buckets", name, p.temporality, in, p.count)
				}
			}
		}
		for name, value := range ours {
			theirs[name] = value
		}
		if d := cmp.Diff(theirs, got); d != "" {
			t.Errorf("metrics of the set %q (-want +got):\n%s", optIn, d)
		}
		for _, p := range r.metrics(t)["hozo.tool.calls"] {
			if p.attributes["gen_ai.tool.name"] == nil && p.attributes["hozo.tool.success"] != false {
				t.Errorf("a call of no tool: %v", p.attributes)
			}
		}
	}
}

func TestContentIsExportedOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	const variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	for value, exported := range map[string]bool{"": false, "false": false, "NO_CONTENT": false, "EVENT_ONLY": false, "yes": false,
		"true": true, "SPAN_ONLY": true, "span_and_event": true} {
		r := newReceiver(t, nil)
		replay(opened(t, r.with(variable, value), nil), telemetry.NewTrace(""), wholeJob(), nil)
		if got := strings.Contains(r.everything(), canary); got != exported {
			t.Errorf("%s=%s: content exported is %t", variable, value, got)
		}
		if !exported {
			continue
		}
		var output, arguments bool
		for _, s := range r.spans(t) {
			if s.attributes["gen_ai.output.messages"] == `[{"role":"assistant","parts":[{"type":"text","content":"`+canary+`"}],"finish_reason":"stop"}]` {
				output = true
			}
			if s.attributes["gen_ai.tool.call.arguments"] == `{"code":"`+canary+`"}` {
				arguments = true
			}
		}
		if !output || !arguments {
			t.Errorf("%s=%s: output messages exported %t, tool arguments %t", variable, value, output, arguments)
		}
	}
}

func TestCredentialsAreNotExportedWithContent(t *testing.T) {
	t.Parallel()
	const secret = "sk-credential-0123456789"
	e := newEvents()
	e.usage("1.1", llm.Usage{Input: 1}, func(c *job.CallUsage) { c.ServedModel = "model-" + secret })
	e.add(&job.MessageData{Turn: 1, Text: "the key is " + secret})
	e.add(&job.ToolCallData{CallID: "1.0", Turn: 1, Tool: secret, Allowed: true, Input: []byte(`{"key":"` + secret + `"}`)})
	e.span(job.SpanTool, job.SpanOK, 1, map[string]any{"callId": "1.0", "tool": "run"})
	e.add(&job.FailedData{Reason: job.ReasonError, Code: "internal", Message: secret})
	r := newReceiver(t, nil)
	replay(opened(t, r.with("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"), nil), telemetry.NewTrace(""), e,
		func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") })
	if sent := r.everything(); strings.Contains(sent, secret) || strings.Count(sent, "[redacted]") < 4 {
		t.Errorf("the credential was exported, or what should hold it was not")
	}
}

func TestOpenSpansEndWithTheJob(t *testing.T) {
	t.Parallel()
	killed := func(e *events) *events {
		return e.add(&job.FailedData{Reason: job.ReasonError, Code: "job-process-lost"})
	}
	for name, tc := range map[string]struct {
		events *events
		want   []string
	}{
		"before the first request": {killed(newEvents()), []string{"invoke_agent reader < "}},
		"in a request": {killed(newEvents().add(&job.MessageDeltaData{Turn: 1, Try: 1, Text: "half"})),
			[]string{"invoke_agent reader < ", "turn < invoke_agent reader"}},
		"in a nested call": {killed(newEvents().usage("1.1", llm.Usage{Input: 1}, nil).
			add(&job.ToolCallData{CallID: "1.0", Turn: 1, Tool: "codemode", Allowed: true}).
			addIn("1.0", &job.ToolCallData{CallID: "1.0/1", Turn: 1, Tool: "read", Allowed: true})),
			[]string{"execute_tool < execute_tool", "execute_tool < turn", "invoke_agent reader < ", "turn < invoke_agent reader"}},
	} {
		r := newReceiver(t, nil)
		replay(opened(t, r.with(), nil), telemetry.NewTrace(""), tc.events, nil)
		spans := r.spans(t)
		var got []string
		for _, s := range spans {
			if strings.HasPrefix(s.name, "chat") {
				continue
			}
			parent := ""
			if spans[s.parent] != nil {
				parent = spans[s.parent].name
			}
			got = append(got, s.name+" < "+parent)
			if s.status != 2 || s.attributes["error.type"] == nil || s.attributes["hozo.interrupted"] != true || s.end < s.start || s.start == 0 {
				t.Errorf("%s: %s ended with status %d, %v", name, s.name, s.status, s.attributes)
			}
		}
		slices.Sort(got)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: spans (-want +got):\n%s", name, d)
		}
	}
}

func TestFailureHasItsReason(t *testing.T) {
	t.Parallel()
	e := newEvents().usage("1.1", llm.Usage{}, func(c *job.CallUsage) { c.Error = "aborted" })
	e.span(job.SpanTurn, job.SpanError, 1, map[string]any{"turn": 1.0})
	e.span(job.SpanJob, job.SpanError, 2, map[string]any{"turns": 0.0})
	e.add(&job.FailedData{Reason: job.ReasonAborted, Code: "aborted", Message: canary})
	r := newReceiver(t, nil)
	replay(opened(t, r.with(), nil), telemetry.NewTrace(""), e, nil)
	spans := r.spans(t)
	for _, name := range []string{"invoke_agent reader", "turn", "chat small-1"} {
		if s := named(t, spans, name); s.status != 2 || s.message != "aborted" || s.attributes["error.type"] != "aborted" {
			t.Errorf("%s has status %d %q", name, s.status, s.message)
		}
	}
	jobs := r.metrics(t)["hozo.jobs"]
	if len(jobs) != 1 || jobs[0].attributes["hozo.outcome"] != "failed" || jobs[0].attributes["hozo.reason"] != "aborted" {
		t.Errorf("jobs: %v", jobs)
	}
}

func TestOddValuesAreLeftOutOrMended(t *testing.T) {
	t.Parallel()
	nan := 0.0
	nan /= nan
	e := newEvents()
	e.all[0].Data.(*job.StartedData).Agent.ID = "bad\xff\xfebytes" + strings.Repeat("é", 400)
	e.usage("1.1", llm.Usage{}, func(c *job.CallUsage) { c.DurationMS, c.ServedModel = nan, "\xc3\x28" })
	e.usage("what", llm.Usage{Input: 3}, func(c *job.CallUsage) { c.DurationMS = -5; c.Estimated = true })
	e.span("hozo.compaction", job.SpanOK, 1, map[string]any{"ratio": nan, "share": 0.5, "bytes": []byte("\xff"), "text": canary, "before": 9, "nested": map[string]any{"a": 1}})
	e.add(&job.CompletedData{})
	r := newReceiver(t, nil)
	replay(opened(t, r.with(), nil), telemetry.NewTrace(""), e, nil)
	for _, s := range r.spans(t) {
		for key, value := range s.attributes {
			if f, ok := value.(float64); ok && f != f {
				t.Errorf("%s of %s is no number", key, s.name)
			}
			if text, ok := value.(string); ok && (!utf8.ValidString(text) || len(text) > 800) {
				t.Errorf("%s of %s: %q", key, s.name, text)
			}
		}
		if !utf8.ValidString(s.name) || s.end < s.start {
			t.Errorf("span %q from %d to %d", s.name, s.start, s.end)
		}
		switch {
		case s.name == "hozo.compaction":
			if d := cmp.Diff(map[string]any{"hozo.span": s.name, "hozo.job.id": "job-1", "hozo.share": 0.5, "hozo.before": int64(9)}, s.attributes); d != "" {
				t.Errorf("attributes (-want +got):\n%s", d)
			}
		case strings.HasPrefix(s.name, "chat") && s.attributes["hozo.usage.estimated"] == nil:
			for key := range s.attributes {
				if strings.HasPrefix(key, "gen_ai.usage") || key == "hozo.cost.usd" {
					t.Errorf("a request without usage has %s", key)
				}
			}
		}
	}
}

func TestNoEndpointNoExport(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	for name, pairs := range map[string]map[string]string{
		"nothing":          {"OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"},
		"switched off":     {"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_SDK_DISABLED": "true"},
		"exporters off":    {"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
		"another protocol": {"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
	} {
		var warned []string
		e := telemetry.Open(telemetry.Config{Getenv: environment(pairs), Warn: func(line string) { warned = append(warned, line) }})
		if e != nil {
			t.Errorf("%s: there is an exporter", name)
		}
		if (name == "another protocol") != (len(warned) == 1) {
			t.Errorf("%s: warnings %q", name, warned)
		}
		h := handle{}
		if e.Watch(h, telemetry.NewTrace(""), nil) != job.Handle(h) {
			t.Errorf("%s: the handle is not the one that was given", name)
		}
		replay(e, telemetry.NewTrace(""), wholeJob(), nil)
	}
	if len(r.got("/v1/traces"))+len(r.got("/v1/metrics")) > 0 {
		t.Error("something was exported")
	}
}

// handle is a job that reports the given events.
type handle struct{ job.Handle }

func TestSettingsAreFollowed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	e := opened(t, r.with(
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", r.URL+"/own/path",
		"OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc, x-team = a%2Cb",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-only=traces",
		"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none",
		"OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other,service.instance.id=one",
		"OTEL_SERVICE_NAME", "mine", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"), func(line string) { t.Error(line) })
	replay(e, telemetry.NewTrace(""), wholeJob(), nil)
	if len(r.got("/own/path")) != 1 || len(r.got("/v1/metrics")) != 1 || len(r.got("/v1/traces")) != 0 {
		t.Fatal("the requests went elsewhere")
	}
	for _, request := range r.requests {
		traces := request.URL.Path == "/own/path"
		if got := request.Header.Get("Authorization"); (got == "Bearer abc") == traces {
			t.Errorf("%s: authorization %q", request.URL.Path, got)
		}
		if got := request.Header.Get("X-Only"); (got == "traces") != traces {
			t.Errorf("%s: x-only %q", request.URL.Path, got)
		}
		if got := request.Header.Get("Content-Encoding"); (got == "gzip") == traces || request.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s: encoding %q", request.URL.Path, got)
		}
	}
	resource := fields(t, fields(t, r.got("/own/path")[0])[1][0].([]byte))
	want := map[string]any{"service.name": "mine", "service.version": "1.2.3", "service.instance.id": "one", "deployment.environment.name": "test",
		"telemetry.sdk.name": "hozo", "telemetry.sdk.language": "go", "telemetry.sdk.version": "1.2.3"}
	if d := cmp.Diff(want, attributes(t, fields(t, resource[1][0].([]byte))[1])); d != "" {
		t.Errorf("resource (-want +got):\n%s", d)
	}
	for name, points := range r.metrics(t) {
		if points[0].temporality != 1 {
			t.Errorf("%s is not delta", name)
		}
	}
}

func TestMistakesInSettingsAreNamedWithoutValuesThatMayBeSecret(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "must be an address"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "s3cret", "key=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a b=s3cret", "no HTTP header"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=s3cret%0d%0ab", "no HTTP header"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "gzip or none"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem", "SSL_CERT_FILE"},
		{"OTEL_TRACES_SAMPLER", "traceidratio", "not supported"},
		{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "EVENT_ONLY", "SPAN_ONLY"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "otlp or none"},
		{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "x", "cumulative"},
	} {
		var warned []string
		pairs := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", tc[0]: tc[1]}
		telemetry.Open(telemetry.Config{Getenv: environment(pairs), Warn: func(line string) { warned = append(warned, line) }}).Close()
		if len(warned) != 1 || strings.Count(warned[0], tc[0]) != 1 || !strings.Contains(warned[0], tc[2]) || strings.Contains(warned[0], "s3cret") {
			t.Errorf("%s=%s: warnings %q", tc[0], tc[1], warned)
		}
	}
}

func TestUnsampledTracesAreNotExported(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	replay(opened(t, r.with(), nil), telemetry.NewTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"), wholeJob(), nil)
	if len(r.got("/v1/traces")) != 0 || len(r.metrics(t)["hozo.jobs"]) != 1 {
		t.Error("spans of a trace that is not sampled were exported, or metrics were not")
	}
}

func TestDeadEndpointDoesNotHoldUpAJob(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + listener.Addr().String()
	listener.Close()
	var warned []string
	e := opened(t, environment(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": dead + "?token=s3cret", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=s3cret"}),
		func(line string) { warned = append(warned, line) })
	recorder := e.NewRecorder(telemetry.NewTrace(""), nil)
	const n = 10_000
	all := newEvents()
	recorder.Observe(all.all[0])
	for range n {
		all.all = nil
		recorder.Observe(all.span(job.SpanRetry, job.SpanOK, 1, map[string]any{"turn": 1, "class": "overloaded"}).all[0])
		if waiting := e.Stats().Waiting; waiting > 2048 {
			t.Fatalf("%d spans wait", waiting)
		}
	}
	e.Close()
	stats := e.Stats()
	if stats.Sent != 0 || stats.Waiting != 0 || stats.Dropped != n {
		t.Errorf("stats %+v, want %d dropped", stats, n)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "10000 spans") || !strings.Contains(warned[0], dead+"/v1/") || strings.Contains(warned[0], "s3cret") {
		t.Errorf("warnings %q", warned)
	}
}

func TestQueueIsBoundedWhileAReceiverIsSilent(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-free:
		case <-request.Context().Done():
		}
	})
	e := opened(t, r.with(), nil)
	recorder := e.NewRecorder(telemetry.NewTrace(""), nil)
	all := newEvents()
	recorder.Observe(all.all[0])
	const n = 10_000
	for range n {
		all.all = nil
		recorder.Observe(all.span(job.SpanRetry, job.SpanOK, 1, map[string]any{"turn": 1}).all[0])
	}
	stats := e.Stats()
	if stats.Waiting > 2048 || stats.Dropped < n-2048-2*512 {
		t.Errorf("stats %+v with a receiver that does not answer", stats)
	}
	close(free)
	e.Close()
	if stats := e.Stats(); stats.Sent+stats.Dropped != n || stats.Sent == 0 {
		t.Errorf("stats %+v, want %d in all", stats, n)
	}
}

func TestAnswersOfReceivers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer        func(w http.ResponseWriter, n int)
		tries         int
		sent, dropped bool
		warning       string
	}{
		"refused for good":   {func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusUnauthorized) }, 1, false, true, "status 401"},
		"redirected":         {func(w http.ResponseWriter, _ int) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(307) }, 1, false, true, "status 307"},
		"partly refused":     {func(w http.ResponseWriter, _ int) { _, _ = w.Write([]byte("\x0a\x08\x08\x01\x12\x04full")) }, 1, true, true, "refused some of it: full"},
		"nonsense as answer": {func(w http.ResponseWriter, _ int) { _, _ = w.Write([]byte("\xff\xff\xff")) }, 1, true, false, ""},
	} {
		n := 0
		r := newReceiver(t, func(w http.ResponseWriter, request *http.Request) {
			if request.URL.Path == "/v1/traces" {
				n++
				tc.answer(w, n)
			}
		})
		var warned []string
		e := opened(t, r.with("OTEL_METRICS_EXPORTER", "none"), func(line string) { warned = append(warned, line) })
		replay(e, telemetry.NewTrace(""), wholeJob(), nil)
		stats := e.Stats()
		if n != tc.tries || (stats.Sent > 0) != tc.sent || (stats.Dropped > 0) != tc.dropped {
			t.Errorf("%s: %d tries, %+v", name, n, stats)
		}
		if (len(warned) == 1) != (tc.warning != "") || tc.warning != "" && !strings.Contains(warned[0], tc.warning) {
			t.Errorf("%s: warnings %q", name, warned)
		}
	}
}

func TestTraceParentOfACallIsTheIDOfItsSpan(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	trace := telemetry.NewTrace("")
	ctx := job.WithTrace(context.Background(), trace.String())
	replay(opened(t, r.with(), nil), trace, wholeJob(), nil)
	spans := r.spans(t)
	tool, root := named(t, spans, "execute_tool mcp__web__look"), named(t, spans, "invoke_agent reader")
	if got, want := telemetry.TraceParent(job.WithCall(ctx, "1.1")), "00-"+tool.trace+"-"+tool.id+"-01"; got != want {
		t.Errorf("traceparent of a call is %s, want %s", got, want)
	}
	if got, want := telemetry.TraceParent(ctx), "00-"+root.trace+"-"+root.id+"-01"; got != want {
		t.Errorf("traceparent of the job is %s, want %s", got, want)
	}
	if root.parent != "" {
		t.Errorf("a job without a caller has the parent %s", root.parent)
	}
	if got := telemetry.TraceParent(context.Background()); got != "" {
		t.Errorf("traceparent without a trace is %q", got)
	}
	if a, b := telemetry.NewTrace("").String(), telemetry.NewTrace("").String(); a[:35] == b[:35] {
		t.Error("two jobs have the same trace")
	}
}

func TestTraceParentsAreChecked(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for text, ok := range map[string]bool{
		good: true, "01" + good[2:] + "-more": true,
		"": false, good + "-more": false, "ff" + good[2:]: false, strings.ToUpper(good): false, good[:54]: false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
		"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01": false,
	} {
		if err := telemetry.CheckTraceParent(text); (err == nil) != ok {
			t.Errorf("CheckTraceParent(%q) = %v", text, err)
		}
		if inherits := strings.Contains(telemetry.NewTrace(text).String(), "0af7651916cd43dd8448eb211c80319c"); inherits != ok {
			t.Errorf("NewTrace(%q) continues the trace: %t", text, inherits)
		}
	}
}
