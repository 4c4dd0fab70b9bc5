package bedrock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

// decode decodes a stream whole and byte by byte, with and without templates, and fails if the results differ.
func decode(t *testing.T, stream string) (llm.Response, error) {
	t.Helper()
	response, err := wire.DecodeFrames(strings.NewReader(stream), newDecoder("m", nil))
	for _, plain := range []bool{false, true} {
		d := newDecoder("m", nil)
		d.plain = plain
		again, errAgain := wire.DecodeFrames(iotest.OneByteReader(strings.NewReader(stream)), d)
		if diff := cmp.Diff(response, again); diff != "" || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Errorf("byte by byte, plain %v: error %v, whole %v (-whole +byte by byte)\n%s", plain, errAgain, err, diff)
		}
	}
	return response, err
}

// shape writes the parts of a message in short: T text, R thinking and its proof, X redacted thinking, C a call.
func shape(m llm.Message) string {
	var all []string
	for _, p := range m.Parts {
		switch {
		case p.Type == llm.PartText:
			all = append(all, "T:"+p.Text)
		case p.Redacted:
			all = append(all, "X:"+p.Signature)
		case p.Type == llm.PartThinking:
			all = append(all, "R:"+p.Text+"/"+p.Signature)
		case p.ToolCall.ArgumentsError != "":
			all = append(all, "C!"+p.ToolCall.RawArguments)
		default:
			all = append(all, "C:"+p.ToolCall.ProviderID+" "+p.ToolCall.Name+" "+string(p.ToolCall.Arguments))
		}
	}
	return strings.Join(all, ", ")
}

func TestStreams(t *testing.T) {
	t.Parallel()
	begin := padded("messageStart", `"role":"assistant"`)
	for _, tt := range []struct {
		name, stream, want string
		stop               llm.StopReason
	}{
		{"text", begin + text(0, "Hel") + text(0, "lo") + stopBlock(0) + stop("end_turn"), "T:Hello", llm.StopEnd},
		{"a stop sequence", begin + text(0, "a") + stopBlock(0) + stop("stop_sequence"), "T:a", llm.StopEnd},
		{"two blocks of text", begin + text(0, "a") + stopBlock(0) + text(1, "b") + stopBlock(1) + stop("end_turn"), "T:a, T:b", llm.StopEnd},
		{"text around a call", begin + text(0, "a") + stopBlock(0) + start(1, "c1", "add") + argument(1, `{"a":`) + argument(1, `1}`) + stopBlock(1) +
			text(2, "b") + stopBlock(2) + stop("tool_use"), `T:a, C:c1 add {"a":1}, T:b`, llm.StopTools},
		{"calls one after the other", begin + start(0, "c1", "add") + argument(0, `{"a":1}`) + stopBlock(0) + start(1, "c2", "find") + stopBlock(1) + stop("tool_use"),
			`C:c1 add {"a":1}, C:c2 find {}`, llm.StopTools},
		{"calls at the same time", begin + start(0, "c1", "add") + start(1, "c2", "add") + argument(0, `{"a":`) + argument(1, `{"b":`) + argument(0, `1}`) +
			argument(1, `2}`) + stopBlock(1) + stopBlock(0) + stop("tool_use"), `C:c1 add {"a":1}, C:c2 add {"b":2}`, llm.StopTools},
		{"thinking with its proof in pieces", begin + thinking(0, "text", "Let me ") + thinking(0, "text", "see.") + thinking(0, "signature", "ab") +
			thinking(0, "signature", "cd") + stopBlock(0) + text(1, "a") + stopBlock(1) + stop("end_turn"), "R:Let me see./abcd, T:a", llm.StopEnd},
		{"thinking without a proof", begin + thinking(0, "text", "t") + stopBlock(0) + text(1, "a") + stopBlock(1) + stop("end_turn"), "R:t/, T:a", llm.StopEnd},
		{"a proof without thinking", begin + thinking(0, "signature", "s") + stopBlock(0) + text(1, "a") + stopBlock(1) + stop("end_turn"), "R:/s, T:a", llm.StopEnd},
		{"redacted thinking", begin + thinking(0, "redactedContent", "ZGF0YQ==") + stopBlock(0) + text(1, "a") + stopBlock(1) + stop("end_turn"), "X:ZGF0YQ==, T:a", llm.StopEnd},
		{"redacted thinking in pieces", begin + thinking(0, "redactedContent", "ZGE=") + thinking(0, "redactedContent", "dGE=") + stopBlock(0) + text(1, "a") + stopBlock(1) + stop("end_turn"),
			"X:ZGF0YQ==, T:a", llm.StopEnd},
		{"a call cut at the limit", begin + start(0, "c1", "add") + argument(0, `{"a":`) + stopBlock(0) + stop("max_tokens"), `C!{"a":`, llm.StopLength},
		{"events and members of tomorrow", begin + padded("contentBlockAura", `"color":"red"`) + piece(0, `{"citation":{"title":"x"}}`) + text(0, "a") + stopBlock(0) +
			padded("messageStop", `"additionalModelResponseFields":{"stop":[1]},"stopReason":"end_turn"`) + padded("goodbye", `"x":1`), "T:a", llm.StopEnd},
		{"events without data", llmtest.Frame("initial-response", "") + begin + text(0, "a") + stopBlock(0) + stop("end_turn"), "T:a", llm.StopEnd},
		{"blocks without an end", begin + text(0, "a") + start(1, "c1", "add") + argument(1, `{}`) + stop("tool_use"), "T:a, C:c1 add {}", llm.StopTools},
		{"arguments for no call", begin + argument(7, `{"a":1}`) + text(0, "a") + stopBlock(0) + stop("end_turn"), "T:a", llm.StopEnd},
		{"a fault after the finish mark", begin + text(0, "a") + stopBlock(0) + stop("end_turn") + "\x00\x00\x00\x20", "T:a", llm.StopEnd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := decode(t, tt.stream+metadata(`{"inputTokens":1,"outputTokens":2,"totalTokens":3}`))
			if tt.name == "a fault after the finish mark" {
				r, err = decode(t, tt.stream)
			}
			if err != nil || shape(r.Message) != tt.want || r.Stop != tt.stop {
				t.Errorf("%s, stop %q, error %v; want %s, stop %q", shape(r.Message), r.Stop, err, tt.want, tt.stop)
			}
		})
	}
}

func TestStopReasonsThatAreNoEnd(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]struct {
		class     llm.Class
		retryable bool
	}{
		"guardrail_intervened":          {llm.ClassRefused, false},
		"content_filtered":              {llm.ClassRefused, false},
		"model_context_window_exceeded": {llm.ClassContextOverflow, false},
		"malformed_model_output":        {llm.ClassProvider, true},
		"malformed_tool_use":            {llm.ClassProvider, true},
		"out_of_ink":                    {llm.ClassUnknownStop, false},
	} {
		r, err := decode(t, padded("messageStart", `"role":"assistant"`)+text(0, "a")+stopBlock(0)+stop(reason)+metadata(`{"inputTokens":5,"outputTokens":1}`))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != want.class || e.Retryable() != want.retryable || e.Code != reason || r.RawStop != reason || !strings.Contains(e.Message, reason) {
			t.Errorf("%s: %v, raw %q; want class %s that names it", reason, err, r.RawStop, want.class)
		}
		if r.Usage.Input != 5 || r.Message.Text() != "a" {
			t.Errorf("%s: usage %+v and text %q are lost", reason, r.Usage, r.Message.Text())
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, usage string
		want        llm.Usage
		reported    bool
	}{
		{"without a cache", `{"inputTokens":10,"outputTokens":5,"totalTokens":15}`, llm.Usage{Input: 10, Output: 5}, true},
		{"buckets of a cache", `{"inputTokens":10,"outputTokens":5,"cacheReadInputTokens":100,"cacheWriteInputTokens":20,"totalTokens":135}`,
			llm.Usage{Input: 10, Output: 5, CacheRead: 100, CacheWrite: 20}, true},
		{"what stays for an hour", `{"inputTokens":1,"outputTokens":1,"cacheWriteInputTokens":30,"cacheDetails":[{"ttl":"5m","inputTokens":10},{"ttl":"1h","inputTokens":20}]}`,
			llm.Usage{Input: 1, Output: 1, CacheWrite: 30, CacheWrite1h: 20}, true},
		{"negative counts", `{"inputTokens":-1,"outputTokens":1}`, llm.Usage{Output: 1}, true},
		{"counts of another kind", `{"inputTokens":"ten"}`, llm.Usage{}, false},
		{"nothing", `null`, llm.Usage{}, false},
	} {
		r, err := decode(t, text(0, "a")+stopBlock(0)+stop("end_turn")+metadata(tt.usage))
		if err != nil || r.Usage != tt.want || r.UsageReported != tt.reported {
			t.Errorf("%s: usage %+v (reported %v), error %v; want %+v", tt.name, r.Usage, r.UsageReported, err, tt.want)
		}
	}
}

func TestTheModelThatARouterChose(t *testing.T) {
	t.Parallel()
	r, err := decode(t, text(0, "a")+stop("end_turn")+
		padded("metadata", `"usage":{"inputTokens":1,"outputTokens":1},"trace":{"promptRouter":{"invokedModelId":"anthropic.claude-x"}}`))
	if err != nil || r.ServedModel != "anthropic.claude-x" {
		t.Errorf("served by %q, error %v", r.ServedModel, err)
	}
}

func TestMalformedEvents(t *testing.T) {
	t.Parallel()
	for name, frame := range map[string]string{
		"no JSON":              llmtest.Frame("contentBlockDelta", `{"secret-text`),
		"no object":            llmtest.Frame("contentBlockDelta", `["secret-text"]`),
		"text after the event": llmtest.Frame("messageStop", `{"stopReason":"end_turn"} secret-text`),
		"no base64":            thinking(0, "redactedContent", "secret-text!"),
	} {
		_, err := decode(t, text(0, "a")+frame+stop("end_turn"))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != llm.ClassMalformed || strings.Contains(e.Error(), "secret-text") {
			t.Errorf("%s: error %v, want a malformed response that is not quoted", name, err)
		}
	}
}

func TestAResponseThatEndsEarlyIsTruncated(t *testing.T) {
	t.Parallel()
	all := events(llmtest.Reply{Thinking: []string{"t"}, Signature: "s", Text: []string{"a", "b"},
		Calls: []llmtest.ReplyCall{{ID: "c1", Name: "add", Arguments: []string{`{"a":`, `1}`}}}, Stop: llmtest.Calls})
	whole := strings.Join(all[:len(all)-2], "")
	for cut := range len(whole) + 1 {
		_, err := wire.DecodeFrames(strings.NewReader(whole[:cut]), newDecoder("m", nil))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Class != llm.ClassTruncated || !e.Retryable() {
			t.Fatalf("cut at byte %d: error %v, want a retryable truncation", cut, err)
		}
	}
	_, err := decode(t, whole+padded("messageStop", `"stopReason":null`))
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Class != llm.ClassTruncated {
		t.Errorf("a finish mark without a reason: error %v", err)
	}
}

func TestAResponseThatWasNotStreamed(t *testing.T) {
	t.Parallel()
	d := newDecoder("m", nil)
	r, err := d.Close(d.Whole([]byte(`{"metrics":{"latencyMs":5},"output":{"message":{"role":"assistant","content":[
		{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},{"reasoningContent":{"redactedContent":"ZGF0YQ=="}},
		{"text":"a"},{"toolUse":{"toolUseId":"c1","name":"add","input":{"a":1}}},{"toolUse":{"toolUseId":"c2","name":"now","input":{}}}]}},
		"stopReason":"tool_use","usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7}}`)))
	if want := `R:t/s, X:ZGF0YQ==, T:a, C:c1 add {"a":1}, C:c2 now {}`; err != nil || shape(r.Message) != want || r.Stop != llm.StopTools ||
		r.Usage != (llm.Usage{Input: 3, Output: 4}) {
		t.Errorf("%s, stop %q, usage %+v, error %v; want %s", shape(r.Message), r.Stop, r.Usage, err, want)
	}
	for body, want := range map[string]llm.Class{
		`{"message":"Too many tokens, please wait before trying again."}`:            llm.ClassRateLimit,
		`{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"}}`: llm.ClassProvider,
		`[]`: llm.ClassMalformed, `{`: llm.ClassMalformed,
	} {
		d := newDecoder("m", nil)
		_, err := d.Close(d.Whole([]byte(body)))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Class != want {
			t.Errorf("%s: error %v, want class %s", body, err, want)
		}
	}
}

// FuzzDecode checks that no stream of frames makes the decoder fail otherwise than by an error, and that templates and
// the way in which the bytes are cut change nothing.
func FuzzDecode(f *testing.F) {
	f.Add("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"a"},"p":"ab"}`, `{"contentBlockIndex":0,"delta":{"text":"b"},"p":"abc"}`)
	f.Add("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"a"}}}`, `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"a"}}}`)
	f.Add("contentBlockDelta", `{"delta":{"toolUse":{"input":"{"}},"contentBlockIndex":1}`, `{"delta":{"toolUse":{"input":"}"}},"contentBlockIndex":1}`)
	f.Add("messageStop", `{"stopReason":"end_turn"}`, `{"stopReason":"max_tokens","p":"\u00fc"}`)
	f.Add("metadata", `{"usage":{"inputTokens":1e3}}`, `{"usage":{"cacheDetails":[{"ttl":"1h","inputTokens":9}]}}`)
	f.Fuzz(func(t *testing.T, name, first, second string) {
		if len(name) > 200 {
			return
		}
		_, _ = decode(t, start(1, "c1", "add")+llmtest.Frame(name, first)+llmtest.Frame(name, second)+llmtest.Frame(name, first)+stop("end_turn"))
	})
}

func BenchmarkDecode(b *testing.B) {
	const pieces = 5000
	var all strings.Builder
	for i := range pieces {
		all.WriteString(padded("contentBlockDelta", `"contentBlockIndex":0,"delta":{"text":" lorem`+strings.Repeat("x", i%3)+`"}`))
	}
	stream := all.String() + stopBlock(0) + stop("end_turn") + metadata(`{"inputTokens":1,"outputTokens":2}`)
	for _, plain := range []bool{false, true} {
		b.Run(fmt.Sprintf("plain=%v", plain), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := newDecoder("m", func(llm.Delta) error { return nil })
				d.plain = plain
				if _, err := wire.DecodeFrames(strings.NewReader(stream), d); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pieces, "ns/piece")
		})
	}
}
