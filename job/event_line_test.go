package job_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

var eventTime = time.Date(2026, 3, 4, 5, 6, 7, 890_123_456, time.FixedZone("east", 2*3600))

func payloads() []job.EventPayload {
	to := int64(14)
	peak := 41.5
	return []job.EventPayload{
		&job.StartedData{
			Runtime: "hozo 0.1.0", Agent: job.AgentTag{ID: "inventory", Version: "1"},
			Model: job.ModelTag{Provider: "local", ID: "m", Thinking: llm.LevelLow, Simulated: true},
			Tools: []string{"read"}, Definition: "aa", Spec: "bb",
			Metadata: map[string]json.RawMessage{"a": json.RawMessage(`[1.50,"<x>"]`)},
		},
		&job.Notice{Code: "thinking-clamped", Message: "level max is not available: high is used"},
		&job.MessageDeltaData{Turn: 1, Try: 2, Text: "a \"quoted\"\tline\n\u2028é"},
		&job.MessageData{Turn: 1, Text: "done", Final: true},
		&job.MessageDiscardedData{Turn: 1, Try: 1, Why: "cut"},
		&job.ToolCallData{CallID: "1.0", Turn: 1, Tool: "read", Input: json.RawMessage(`{"path":"a"}`), Allowed: true},
		&job.ToolResultData{CallID: "1.0", Tool: "read", Success: true, Summary: "3 lines", DurationMS: 4, Bytes: 5},
		&job.OutputData{CallID: "1.1", Path: "REPORT.md", Bytes: 10},
		&job.SourceReadData{CallID: "1.0", Tool: "read", Path: "a", From: 10, To: &to},
		&job.UsageData{
			Call:  job.CallUsage{ID: "c", Purpose: llm.PurposeTurn, Model: "m", Tokens: llm.Usage{Input: 1}, CostMicroUSD: 7},
			Total: job.TotalUsage{Tokens: llm.Usage{Input: 1}, Requests: 1, Turns: 1, ContextPeakPct: &peak},
		},
		&job.SpanData{ID: "s", Name: "hozo.turn", StartUnixNano: 1 << 60, DurationMS: 1.5, Status: "ok",
			Attributes: map[string]any{"tool": "read", "bytes": 12.0}},
		&job.CompletedData{Summary: "s", Answer: "a", Outputs: []string{"REPORT.md"}},
		&job.FailedData{Reason: job.ReasonBudget, Code: job.CodeBudget, Message: "m", Details: json.RawMessage(`{"x":1}`),
			Outputs: []string{}},
	}
}

func TestEventLineRoundTripsEveryType(t *testing.T) {
	t.Parallel()
	for i, data := range payloads() {
		t.Run(string(data.EventType()), func(t *testing.T) {
			t.Parallel()
			made := job.NewEvent(int64(i+1), eventTime, "job-1", "3.0", data)
			line := made.Line()
			if !json.Valid(line) || !utf8.Valid(line) || bytes.ContainsAny(line, "\n\r") {
				t.Fatalf("not one line of JSON: %q", line)
			}
			read, err := job.ParseEvent(append(bytes.Clone(line), '\n'))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(made, read, cmpopts.IgnoreUnexported(job.Event{})); diff != "" {
				t.Errorf("event changed on the way (-made +read):\n%s", diff)
			}
			if got := read.Line(); !bytes.Equal(got, line) {
				t.Errorf("line changed on the way: %s", got)
			}
		})
	}
}

func TestEventLineHasTheDocumentedEnvelope(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		event *job.Event
		want  string
	}{
		"delta": {
			job.NewEvent(7, eventTime, "j", "", &job.MessageDeltaData{Turn: 1, Try: 1, Text: "hi <b>"}),
			`{"seq":7,"at":"2026-03-04T03:06:07.890Z","jobId":"j","type":"message.delta","data":{"turn":1,"try":1,"text":"hi <b>"}}`,
		},
		"nested call": {
			job.NewEvent(8, eventTime, "j", "2.0", &job.OutputData{CallID: "2.0/1", Path: "a&b", Bytes: 3}),
			`{"seq":8,"at":"2026-03-04T03:06:07.890Z","jobId":"j","type":"output","parentCallId":"2.0","data":{"callId":"2.0/1","path":"a&b","bytes":3}}`,
		},
		"lists are never null": {
			job.NewEvent(9, eventTime.Truncate(time.Second), "j", "", &job.FailedData{Reason: job.ReasonError, Code: "internal"}),
			`{"seq":9,"at":"2026-03-04T03:06:07.000Z","jobId":"j","type":"job.failed","data":{"reason":"error","code":"internal","message":"","outputs":[]}}`,
		},
		"rest of the file": {
			job.NewEvent(1, eventTime, "j", "", &job.SourceReadData{CallID: "1.0", Tool: "read", Path: "a", From: 1}),
			`{"seq":1,"at":"2026-03-04T03:06:07.890Z","jobId":"j","type":"source.read","data":{"callId":"1.0","tool":"read","path":"a","from":1,"to":null}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, string(c.event.Line())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventTimeIsRFC3339(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{
		{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(2024, 2, 29, 0, 0, 0, 1_000_000, time.UTC),
		time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC), eventTime,
	} {
		line := string(job.NewEvent(1, at, "j", "", &job.MessageData{}).Line())
		if want := `"at":"` + at.UTC().Format("2006-01-02T15:04:05.000Z") + `"`; !strings.Contains(line, want) {
			t.Errorf("%s does not hold %s", line, want)
		}
	}
}

func TestEventLineIsEncodedOnce(t *testing.T) {
	t.Parallel()
	e := job.NewEvent(1, eventTime, "j", "", &job.MessageData{Text: "x"})
	if a, b := e.Line(), e.Line(); &a[0] != &b[0] {
		t.Error("two calls of Line return two buffers")
	}
	line := bytes.Clone(e.Line())
	read, err := job.ParseEvent(line)
	if err != nil {
		t.Fatal(err)
	}
	clear(line)
	if !bytes.Equal(read.Line(), e.Line()) {
		t.Error("a parsed event depends on the buffer it was read from")
	}
}

func TestEventBuiltByHandStillEncodes(t *testing.T) {
	t.Parallel()
	e := &job.Event{Seq: 1, At: eventTime, JobID: "j", Type: job.EventMessage, Data: &job.MessageData{Turn: 1, Text: "x"}}
	want := job.NewEvent(1, eventTime, "j", "", &job.MessageData{Turn: 1, Text: "x"}).Line()
	if diff := cmp.Diff(string(want), string(e.Line())); diff != "" {
		t.Error(diff)
	}
	embedded, err := json.Marshal(map[string]any{"event": e})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"event":`+string(want)+`}`, string(embedded)); diff != "" {
		t.Error(diff)
	}
	var back struct{ Event job.Event }
	if err := json.Unmarshal(embedded, &back); err != nil {
		t.Fatal(err)
	}
	if _, ok := back.Event.Data.(*job.MessageData); !ok {
		t.Errorf("embedded event has data of type %T", back.Event.Data)
	}
}

func TestDeltaTextIsAlwaysLegalJSON(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ text, want string }{
		"control characters":  {"\x00\b\f\n\r\t\x1f\x7f", "\x00\b\f\n\r\t\x1f\x7f"},
		"quotes":              {`"\/`, `"\/`},
		"invalid bytes":       {"a\xffb\xc3", "a\ufffdb\ufffd"},
		"encoded surrogate":   {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		"replacement itself":  {"\ufffd", "\ufffd"},
		"line separators":     {"a\u2028b\u2029c", "a\u2028b\u2029c"},
		"beyond the BMP":      {"🪵枘", "🪵枘"},
		"long, nothing to do": {strings.Repeat("word ", 1000), strings.Repeat("word ", 1000)},
		"empty":               {"", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := job.NewEvent(1, eventTime, "j", "", &job.MessageDeltaData{Turn: 1, Try: 1, Text: c.text}).Line()
			if !utf8.Valid(line) || bytes.ContainsAny(line, "\n\r\u2028\u2029") {
				t.Errorf("line is not safe: %q", line)
			}
			read, err := job.ParseEvent(line)
			if err != nil {
				t.Fatal(err)
			}
			if got := read.Data.(*job.MessageDeltaData).Text; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRawDataWithInvalidBytesIsMended(t *testing.T) {
	t.Parallel()
	line := job.NewEvent(1, eventTime, "j", "", &job.ToolCallData{Input: json.RawMessage("{\"a\":\n\"\xff\"}")}).Line()
	if !utf8.Valid(line) || !json.Valid(line) || bytes.Contains(line, []byte("\n")) {
		t.Errorf("line is not safe: %q", line)
	}
}

func TestNewEventRefusesDataWithoutJSONForm(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	job.NewEvent(1, eventTime, "j", "", &job.ToolCallData{Input: json.RawMessage(`{`)})
}

func TestParseEventKeepsUnknownTypes(t *testing.T) {
	t.Parallel()
	const line = `{"seq":3,"at":"2026-03-04T03:06:07.890Z","jobId":"j","type":"later.thing","new":1,"data":{"x":[1, 2]}}`
	e, err := job.ParseEvent([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if raw, ok := e.Data.(json.RawMessage); !ok || string(raw) != `{"x":[1, 2]}` {
		t.Errorf("data is %T %s", e.Data, e.Data)
	}
	if string(e.Line()) != line {
		t.Errorf("line changed: %s", e.Line())
	}
}

func TestParseEventRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"no JSON":      `panic: boom`,
		"empty line":   ``,
		"two values":   `{"seq":1,"at":"2026-03-04T03:06:07Z","jobId":"j","type":"x","data":{}} {}`,
		"no seq":       `{"at":"2026-03-04T03:06:07Z","jobId":"j","type":"x","data":{}}`,
		"no time":      `{"seq":1,"jobId":"j","type":"x","data":{}}`,
		"no type":      `{"seq":1,"at":"2026-03-04T03:06:07Z","jobId":"j","data":{}}`,
		"no data":      `{"seq":1,"at":"2026-03-04T03:06:07Z","jobId":"j","type":"x"}`,
		"data null":    `{"seq":1,"at":"2026-03-04T03:06:07Z","jobId":"j","type":"message","data":null}`,
		"wrong data":   `{"seq":1,"at":"2026-03-04T03:06:07Z","jobId":"j","type":"message","data":{"turn":"one"}}`,
		"other object": `{"problems":[]}`,
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e, err := job.ParseEvent([]byte(line)); err == nil {
				t.Errorf("got %+v, want an error", e)
			}
		})
	}
}

// FuzzParseEvent: a line that is read is what the standard decoder makes of it, and is kept as it is.
func FuzzParseEvent(f *testing.F) {
	for i, data := range payloads() {
		f.Add(job.NewEvent(int64(i+1), eventTime, "job-1", "3.0", data).Line())
	}
	f.Add([]byte(`{"seq":1,"at":"2026-03-04T03:06:07.890Z","jobId":"j","type":"message","data":{"turn":1},"later":{}}`))
	f.Add([]byte(`{"seq":01,"at":"2026-03-04T03:06:07.890Z","jobId":"j","type":"message","data":{}}`))
	f.Add([]byte(`{"seq":1,"at":"2026-03-04T03:06:07.890Z","jobId":"\u0041","type":"x","data":{}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := job.ParseEvent(line)
		if err != nil {
			return
		}
		var plain struct {
			Seq                       int64
			At                        time.Time
			JobID, Type, ParentCallID string
		}
		if err := json.Unmarshal(line, &plain); err != nil {
			t.Fatalf("read, but not valid: %v", err)
		}
		if e.Seq != plain.Seq || !e.At.Equal(plain.At) || e.JobID != plain.JobID || string(e.Type) != plain.Type || e.ParentCallID != plain.ParentCallID {
			t.Fatalf("read as %+v, but it is %+v", e, plain)
		}
		if !bytes.Equal(e.Line(), bytes.TrimRight(line, "\r\n")) {
			t.Fatal("the line changed")
		}
	})
}

func BenchmarkDeltaEvent(b *testing.B) {
	data := &job.MessageDeltaData{Turn: 3, Try: 1, Text: "The quick brown fox jumps over the lazy dog. It was a day like any other.\n"}
	b.ReportAllocs()
	for b.Loop() {
		job.NewEvent(12345, eventTime, "0198c7d2-7c8e-7b5a-9f3e-2f6a1c0d9e8b", "", data)
	}
}

func BenchmarkParseDeltaEvent(b *testing.B) {
	data := &job.MessageDeltaData{Turn: 3, Try: 1, Text: "The quick brown fox jumps over the lazy dog. It was a day like any other.\n"}
	line := job.NewEvent(12345, eventTime, "0198c7d2-7c8e-7b5a-9f3e-2f6a1c0d9e8b", "", data).Line()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := job.ParseEvent(line); err != nil {
			b.Fatal(err)
		}
	}
}
