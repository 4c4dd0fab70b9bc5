package job_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// plainData is what encoding/json makes of data.
func plainData(t *testing.T, data any) []byte {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// lineData is the data of an event's line.
func lineData(t *testing.T, data job.EventPayload) []byte {
	t.Helper()
	line := job.NewEvent(1, eventTime, "j", "", data).Line()
	_, rest, ok := bytes.Cut(line, []byte(`,"data":`))
	if !ok || !json.Valid(line) {
		t.Fatalf("no line of JSON with data: %s", line)
	}
	return rest[:len(rest)-1]
}

// perTurn returns the data that is written without reflection, with every field set, or the optional ones empty.
func perTurn(text string, n int64, number float64, set bool) []job.EventPayload {
	optional, small := "", int64(0)
	var peak *float64
	if set {
		optional, small, peak = text, n, &number
	}
	tokens := llm.Usage{Input: n, CacheRead: n + 1, CacheWrite: n + 2, Output: n + 3, Reasoning: small, CacheWrite1h: small}
	input := json.RawMessage(nil)
	if set {
		input = json.RawMessage(` { "path" : "a<b>" , "n" : [ 1.50 ] } `)
	}
	var textCall *llm.TextCall
	if set {
		textCall = &llm.TextCall{Format: optional, Repaired: n > 0, Dropped: n, Refused: optional}
	}
	return []job.EventPayload{
		&job.MessageDeltaData{Turn: n, Try: n, Text: text},
		&job.MessageData{Turn: n, Text: text, Final: set},
		&job.ToolCallData{CallID: text, Turn: n, Tool: text, Input: input, Allowed: set, Code: optional, Reason: optional},
		&job.ToolResultData{CallID: text, Tool: text, Success: set, Summary: text, DurationMS: n, Bytes: n},
		&job.UsageData{
			Call: job.CallUsage{ID: text, Purpose: llm.Purpose(text), Model: text, ServedModel: optional, Tokens: tokens, CostMicroUSD: llm.MicroUSD(n),
				PrefixHash: text, Estimated: set, StartUnixNano: n, DurationMS: number, Stop: llm.StopReason(optional), Error: optional,
				TextCall: textCall},
			Total: job.TotalUsage{Tokens: tokens, CostMicroUSD: llm.MicroUSD(n), Unpriced: set, Requests: n, Turns: n, Compactions: n, ContextPeakPct: peak},
		},
		&job.SpanData{ID: text, ParentID: optional, Name: text, StartUnixNano: n, DurationMS: number, Status: text,
			Attributes: map[string]any{"text": text, "whole": int(n), "count": n, "flag": set, "number": number, "list": []string{text}, text: nil}},
	}
}

// checkPlain compares the bytes; where text has invalid bytes, what they mean.
func checkPlain(t *testing.T, text string, data job.EventPayload) {
	t.Helper()
	want, got := plainData(t, data), lineData(t, data)
	if utf8.ValidString(text) {
		if !bytes.Equal(want, got) {
			t.Errorf("%T is not what encoding/json makes of it:\nwant %s\n got %s", data, want, got)
		}
		return
	}
	var wanted, read any
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, read); diff != "" {
		t.Errorf("%T means something else (-want +got):\n%s", data, diff)
	}
}

func TestDataOfATurnIsWhatEncodingJSONMakesOfIt(t *testing.T) {
	t.Parallel()
	texts := []string{"", "plain", "a \"quoted\" \\ \b\f\n\r\t\x00\x1f\x7f <b> & \u2028\u2029 é 🪵", "cut \xff\xc3", "\ufffd"}
	numbers := []float64{0, math.Copysign(0, -1), 1, -1.5, 0.001, 1e-6, 9.99e-7, 1e20, 1e21, math.MaxFloat64, math.SmallestNonzeroFloat64, 1.0 / 3}
	for _, text := range texts {
		for i, number := range numbers {
			for _, set := range []bool{false, true} {
				for _, data := range perTurn(text, []int64{0, 1, -7, math.MaxInt64 - 3}[i%4], number, set) {
					checkPlain(t, text, data)
				}
			}
		}
	}
}

// TestDataOfATurnHasEveryField fails when a field is added to a type and not to what writes it.
func TestDataOfATurnHasEveryField(t *testing.T) {
	t.Parallel()
	for _, data := range perTurn("x", 5, 2.5, true) {
		checkSet(t, reflect.TypeOf(data).String(), reflect.ValueOf(data).Elem())
	}
}

// checkSet reports fields that the test leaves at zero, since what is left out of a line would not show then.
func checkSet(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		field, name := v.Field(i), path+"."+v.Type().Field(i).Name
		if field.Kind() == reflect.Struct {
			checkSet(t, name, field)
		} else if field.IsZero() {
			t.Errorf("%s is not set: the comparison with encoding/json does not cover it", name)
		}
	}
}

func TestSpanWithoutAttributesHasAnEmptyObject(t *testing.T) {
	t.Parallel()
	if got := lineData(t, &job.SpanData{}); !bytes.HasSuffix(got, []byte(`,"attributes":{}}`)) {
		t.Errorf("got %s", got)
	}
}

func TestSpanRefusesNumbersWithoutJSONForm(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]job.EventPayload{
		"duration":  &job.SpanData{DurationMS: math.NaN()},
		"attribute": &job.SpanData{Attributes: map[string]any{"a": math.Inf(1)}},
		"usage":     &job.UsageData{Call: job.CallUsage{DurationMS: math.Inf(-1)}},
	} {
		if _, err := (&job.Event{Data: data}).MarshalJSON(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzDataOfATurn: whatever the texts and numbers are, the data means what encoding/json makes of it.
func FuzzDataOfATurn(f *testing.F) {
	f.Add("a\u2028\xffb", int64(1), 0.25, true)
	f.Add("", int64(-1), 1e-9, false)
	f.Fuzz(func(t *testing.T, text string, n int64, number float64, set bool) {
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return
		}
		for _, data := range perTurn(text, n, number, set) {
			checkPlain(t, text, data)
		}
	})
}

// BenchmarkTurnEvents makes the events of one turn.
func BenchmarkTurnEvents(b *testing.B) {
	events := perTurn("call_12 of a turn", 5, 2.5, true)
	b.ReportAllocs()
	for b.Loop() {
		for _, data := range events {
			job.NewEvent(12345, eventTime, "0198c7d2-7c8e-7b5a-9f3e-2f6a1c0d9e8b", "", data)
		}
	}
}
