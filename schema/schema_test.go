package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/schema"
)

// noLoader refuses every reference that leaves the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) { return nil, errors.New("refers to " + url) }

func compile(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	const address = "urn:test"
	if err := compiler.AddResource(address, document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(address)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func valid(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return s.Validate(document)
}

const goodSpec = `{"apiVersion":"hozo/v1","agent":{"id":"a","version":"1","instructions":"i"},"task":"t","model":{"provider":"p","id":"m"},` +
	`"providers":{"p":{"api":"openai-chat"}},"workspace":{"root":"w","readOnly":["r"],"outDir":"o"},"limits":{"timeoutSec":1}}`

// set returns goodSpec with one top-level field replaced, or removed if value is empty.
func set(t *testing.T, field, value string) string {
	t.Helper()
	document := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(goodSpec), &document); err != nil {
		t.Fatal(err)
	}
	delete(document, field)
	if value != "" {
		document[field] = json.RawMessage(value)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSchemaAndParseAgree(t *testing.T) {
	t.Parallel()
	const (
		call   = `{"role":"assistant","parts":[{"type":"tool-call","toolCall":{"id":"1.0","name":"ls","arguments":{}}}]}`
		result = `{"role":"tool","parts":[{"type":"tool-result","toolResult":{"callId":"1.0","name":"ls","content":[{"type":"text","text":"a"}]}}]}`
	)
	provider := func(fields string) string { return `{"p":{"api":"openai-chat",` + fields + `}}` }
	access := func(aws string) string { return `{"p":{"api":"bedrock-converse","aws":` + aws + `}}` }
	user := func(parts string) string { return `[{"role":"user","parts":` + parts + `}]` }
	cases := []struct {
		field, value string
		ok           bool
	}{
		{"task", `"t"`, true}, {"task", ``, false}, {"task", `" \n"`, false}, {"task", `5`, false}, {"task", `null`, false},
		{"apiVersion", ``, false}, {"apiVersion", `"hozo/v2"`, false},
		{"id", `"x-1"`, true}, {"id", `""`, true}, {"id", `"a b"`, false}, {"id", `"` + strings.Repeat("a", 129) + `"`, false},
		{"Task", `"t"`, false}, {"extra", `1`, false},
		{"agent", ``, false}, {"agent", `{"id":"a"}`, false}, {"agent", `{"id":"a","instructions":"i"}`, true},
		{"agent", `{"id":"","instructions":"i"}`, false}, {"agent", `{"id":"é","instructions":"i"}`, false},
		{"agent", `{"id":"a","instructions":"i","tools":[],"thinking":"max","skills":[{"name":"s-1","content":""}]}`, true},
		{"agent", `{"id":"a","instructions":"i","thinking":"huge"}`, false},
		{"agent", `{"id":"a","instructions":"i","tools":[1]}`, false}, {"agent", `{"id":"a","instructions":"i","tools":null}`, false},
		{"agent", `{"id":"a","instructions":"i","skills":[{"name":"S","content":""}]}`, false},
		{"agent", `{"id":"a","instructions":"i","skills":[{"content":""}]}`, false},
		{"agent", `{"id":"a","instructions":"i","denyCommandPatterns":[""]}`, false},
		{"model", ``, false}, {"model", `{"provider":"p"}`, false}, {"model", `{"provider":"p","id":"m","thinking":"off"}`, true},
		{"model", `{"provider":"p","id":"m","thinking":"of"}`, false}, {"model", `{"provider":"p","id":"m","level":"low"}`, false},
		{"providers", ``, false}, {"providers", `[]`, false}, {"providers", `{"p":{}}`, false}, {"providers", `{"p":{"api":"nope"}}`, false},
		{"providers", `{"p":{"api":"scripted","script":{"turns":[]}}}`, true}, {"providers", `{"p":{"api":"scripted","script":null}}`, false},
		{"providers", `{"p":{"api":"offline"},"q r":{"api":"offline"}}`, false},
		{"providers", provider(`"baseUrl":"https://h/v1"`), true}, {"providers", provider(`"baseUrl":""`), true},
		{"providers", provider(`"baseUrl":"HTTP://[::1]:80"`), true},
		{"providers", provider(`"baseUrl":"h/v1"`), false}, {"providers", provider(`"baseUrl":"ftp://h"`), false},
		{"providers", provider(`"baseUrl":"https://u:p@h"`), false}, {"providers", provider(`"baseUrl":"https://h?x"`), false},
		{"providers", provider(`"baseUrl":"https://h#x"`), false}, {"providers", provider(`"baseUrl":"https://h /"`), false},
		{"providers", provider(`"apiKey":"k"`), true}, {"providers", provider(`"apiKey":"k\n"`), false}, {"providers", provider(`"apiKey":1`), false},
		{"providers", access(`{"accessKeyId":"i","secretAccessKey":"s","region":"eu-west-1"}`), true}, {"providers", access(`{"region":""}`), true},
		{"providers", access(`{"accessKeyId":"i"}`), false}, {"providers", access(`{"sessionToken":"t"}`), false},
		{"providers", access(`{"region":"a.b"}`), false}, {"providers", access(`{"profile":"x"}`), false},
		{"providers", provider(`"headers":{"X-A":"v w"}`), true}, {"providers", provider(`"headers":{"X A":"v"}`), false},
		{"providers", provider(`"headers":{"X-A":"a\nb"}`), false}, {"providers", provider(`"headers":{"":"v"}`), false},
		{"providers", provider(`"tagHeaders":{"X":"j/{jobId}"}`), true}, {"providers", provider(`"tagHeaders":{"X":"{job}"}`), false},
		{"providers", provider(`"tagHeaders":{"X":"{jobId"}`), false},
		{"providers", provider(`"models":{"m":{"contextWindow":10,"images":true,"thinkingLevels":["off"],"compat":{"store":false}}}`), true},
		{"providers", provider(`"models":{"m":{"contextWindow":0}}`), false}, {"providers", provider(`"models":{"m":{"contextWindow":1.5}}`), false},
		{"providers", provider(`"models":{"m":{"contextWindow":1.0}}`), true}, {"providers", provider(`"models":{"":{}}`), false},
		{"providers", provider(`"models":{"m":{"contextWindow":9007199254740992}}`), false},
		{"providers", provider(`"models":{"m":{"thinkingLevels":["low","low"]}}`), false},
		{"providers", provider(`"models":{"m":{"price":{"inputPerMTok":"0.1","outputPerMTok":3}}}`), true},
		{"providers", provider(`"models":{"m":{"price":{"inputPerMTok":-1,"outputPerMTok":1}}}`), false}, {"providers", provider(`"models":{"m":{"price":{"inputPerMTok":"x","outputPerMTok":1}}}`), false},
		{"providers", provider(`"models":{"m":{"price":{"inputPerMTok":1,"outputPerMTok":1,"tiers":[{"promptAbove":1,"inputPerMTok":1,"outputPerMTok":1}]}}}`), true},
		{"providers", provider(`"models":{"m":{"price":{}}}`), false}, {"providers", provider(`"models":{"m":{"price":{"inputPerMTok":1}}}`), false},
		{"providers", provider(`"models":{"m":{"price":{"inputPerMTok":1,"outputPerMTok":1,"tiers":[{"inputPerMTok":1,"outputPerMTok":1}]}}}`), false},
		{"providers", provider(`"models":{"m":{"compat":{"thinkingDialect":"zai","thinkingEfforts":{"low":"x"}}}}`), true},
		{"providers", provider(`"models":{"m":{"compat":{"thinkingDialect":"x"}}}`), false},
		{"providers", provider(`"models":{"m":{"compat":{"thinkingEfforts":{"lowest":"x"}}}}`), false},
		{"workspace", ``, false}, {"workspace", `{"root":"w","readOnly":[],"outDir":"o"}`, false}, {"workspace", `{"root":"w","readOnly":[""],"outDir":"o"}`, false},
		{"workspace", `{"root":"w","readOnly":["r"]}`, false}, {"workspace", `{"root":"w","readOnly":["r","s"],"outDir":"o","tmpDir":"t"}`, true},
		{"limits", ``, false}, {"limits", `{}`, false}, {"limits", `{"timeoutSec":0}`, false}, {"limits", `{"timeoutSec":-1}`, false},
		{"limits", `{"timeoutSec":1e10}`, false}, {"limits", `{"timeoutSec":"1"}`, false}, {"limits", `{"timeoutSec":0.5,"idleTimeoutSec":0}`, true},
		{"limits", `{"timeoutSec":1,"idleTimeoutSec":-1}`, false}, {"limits", `{"timeoutSec":1,"maxTurns":0}`, false},
		{"limits", `{"timeoutSec":1,"maxTurns":2.5}`, false}, {"limits", `{"timeoutSec":1,"maxTurns":4e1}`, true},
		{"limits", `{"timeoutSec":1,"maxCostUsd":0}`, false}, {"limits", `{"timeoutSec":1,"maxCostUsd":"0.000"}`, false},
		{"limits", `{"timeoutSec":1,"maxCostUsd":"0.5"}`, true}, {"limits", `{"timeoutSec":1,"maxCostUsd":0.5}`, true},
		{"limits", `{"timeoutSec":1,"maxCostUsd":1e10}`, false}, {"limits", `{"timeoutSec":1,"maxCostUsd":true}`, false},
		{"limits", `{"timeoutSec":1,"maxCost":1}`, false},
		{"metadata", `{"a":[1,null]}`, true}, {"metadata", `[]`, false}, {"metadata", `null`, false},
		{"context", `[{"label":"l","data":"d","place":"before-task"}]`, true}, {"context", `[{"label":"l","place":"system-end","trusted":true}]`, true},
		{"context", `[{"label":"l","data":"d","place":"before-task","trusted":true}]`, false},
		{"context", `[{"label":"l","data":"d","place":"before-task","trusted":false}]`, true},
		{"context", `[{"label":" ","data":"d","place":"before-task"}]`, false}, {"context", `[{"label":"a\tb","data":"d","place":"before-task"}]`, false},
		{"context", `[{"label":"l","data":"d","place":"x"}]`, false}, {"context", `[{"label":"l","data":"d"}]`, false},
		{"notices", `[{"code":"c","message":"m"}]`, true}, {"notices", `[{"code":"c"}]`, false},
		{"sampling", `{"temperature":0,"maxOutputTokens":1}`, true}, {"sampling", `{"temperature":3}`, false}, {"sampling", `{"topP":1}`, false},
		{"mcp", `{"servers":[]}`, true}, {"mcp", `{"servers":[{"name":"s","url":"http://h"}]}`, true}, {"mcp", `{"servers":[{"name":"s"}]}`, false}, {"output", `{"schema":{}}`, true}, {"output", `{}`, false}, {"output", `{"schema":[]}`, false},
		{"checks", `[]`, true}, {"checks", `[{"id":"a","tool":"t"}]`, true}, {"toolErrors", `{"maxRetries":1,"retryOn":[]}`, true}, {"toolErrors", `{"maxRetries":11,"retryOn":[]}`, false}, {"toolErrors", `{"maxRetries":1,"retryOn":["x"]}`, false},
		{"approvals", `{"tools":{"shell":"always"}}`, true}, {"approvals", `{"tools":{"shell":"x"}}`, false}, {"loop", `{"kind":"transcript"}`, true}, {"loop", `{"kind":"working-memory","writer":{"maxTokens":4000}}`, true}, {"loop", `{"kind":"transcript","writer":{}}`, false},
		{"loop", `{}`, false}, {"subagents", `[]`, true}, {"subagents", `[{"name":"s"}]`, false}, {"host", `[]`, true}, {"host", `[{"name":"s"}]`, false},
		{"resume", `{"attempt":1,"nextSeq":2}`, false}, {"resume", `{"attempt":2,"nextSeq":2}`, true}, {"resume", `{"attempt":1,"nextSeq":1,"fork":true}`, true},
		{"subagents", `[{"name":"s","description":"d","agent":{"id":"a","version":"1","instructions":"i"},"limits":{"maxTurns":3}}]`, true}, {"subagents", `[{"name":"s s","description":"d","agent":{"id":"a","version":"1","instructions":"i"}}]`, false},
		{"history", `[]`, true}, {"history", `[` + call + `,` + result + `]`, true}, {"history", user(`[{"type":"text","text":"x"}]`), true},
		{"history", user(`[]`), false}, {"history", user(`[{"type":"thinking","text":"x"}]`), false}, {"history", user(`[{"type":"x"}]`), false},
		{"history", user(`[{"type":"image","image":{"mediaType":"image/png","data":"AAAA"}}]`), true},
		{"history", user(`[{"type":"image","image":{"mediaType":"image/tiff","data":"AAAA"}}]`), false}, {"history", user(`[{"type":"image"}]`), false},
		{"history", `[{"role":"system","parts":[{"type":"text","text":"x"}]}]`, false}, {"history", `[{"parts":[{"type":"text","text":"x"}]}]`, false},
		{"history", `[{"role":"assistant","parts":[{"type":"thinking","text":"x","signature":"s"}],"origin":{"api":"a","model":"m"}}]`, true},
		{"history", `[` + strings.Replace(call, `{}`, `[]`, 1) + `,` + result + `]`, false},
		{"history", `[` + strings.Replace(call, `,"arguments":{}`, ``, 1) + `,` + result + `]`, false},
		{"history", `[` + strings.Replace(call, `"arguments":{}`, `"argumentsError":"e","rawArguments":"{"`, 1) + `,` + result + `]`, true},
		{"history", `[` + call + `,` + strings.Replace(result, `[{"type":"text","text":"a"}]`, `[]`, 1) + `]`, false},
	}
	spec := compile(t, schema.Job())
	for _, c := range cases {
		text := set(t, c.field, c.value)
		_, parsed := job.Parse([]byte(text))
		validated := valid(t, spec, text)
		if (parsed == nil) != c.ok {
			t.Errorf("%s = %s: Parse says %v", c.field, c.value, parsed)
		}
		if (validated == nil) != c.ok {
			t.Errorf("%s = %s: the schema says %v", c.field, c.value, validated)
		}
	}
}

func TestEventsOfThisVersionFitTheirSchema(t *testing.T) {
	t.Parallel()
	events := compile(t, schema.Event())
	to := int64(3)
	data := []job.EventPayload{
		&job.StartedData{Runtime: "r", Model: job.ModelTag{Thinking: llm.LevelOff}},
		&job.Notice{Code: "c", Message: "m"},
		&job.MessageDeltaData{Turn: 1, Try: 1, Text: "x"},
		&job.MessageData{Turn: 1, Text: "x", Final: true},
		&job.MessageDiscardedData{Turn: 1, Try: 1, Why: "cut"},
		&job.ToolCallData{CallID: "1.0", Turn: 1, Tool: "read", Input: json.RawMessage(`{}`), Allowed: true},
		&job.ToolResultData{CallID: "1.0", Tool: "read", Success: true},
		&job.OutputData{CallID: "1.0", Path: "a", Bytes: 1},
		&job.SourceReadData{CallID: "1.0", Tool: "read", Path: "a", From: 1, To: &to},
		&job.SourceReadData{CallID: "1.0", Tool: "read", Path: "a", From: 1},
		&job.UsageData{Call: job.CallUsage{Purpose: llm.PurposeTurn}},
		&job.SpanData{ID: "s", Name: "hozo.turn", StartUnixNano: time.Now().UnixNano(), Status: "ok", Attributes: map[string]any{"n": 1, "ok": true}},
		&job.SuspendedData{Waits: []job.Wait{{CallID: "1.0", Tool: "shell", Arguments: json.RawMessage(`{}`), Hash: "h", WaitID: "w"}}},
		&job.ResumedData{Attempt: 2, Turn: 3, VoidFromSeq: 9},
		&job.CompactionData{Turn: 3, Reason: "overflow", Kind: "summary", TokensBefore: 9, TokensAfter: 3, Messages: 4},
		&job.StepRecordedData{Step: 1, Objective: "o", Tool: "read", Status: "ok", Hash: "h"},
		&job.MemoryUpdatedData{Step: 1, Mode: "fallback", Why: []string{"empty"}, Document: "d", Hash: "h"},
		&job.CompletedData{Answer: "a"},
		&job.FailedData{Reason: job.ReasonLoop, Code: job.CodeRepeatedCall, Message: "m"},
	}
	for _, d := range data {
		line := job.NewEvent(1, time.Now(), "j", "", d).Line()
		if err := valid(t, events, string(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for name, line := range map[string]string{
		"no seq":         `{"at":"2026-01-02T03:04:05.678Z","jobId":"j","type":"notice","data":{"code":"c","message":"m"}}`,
		"local time":     `{"seq":1,"at":"2026-01-02T03:04:05.678+01:00","jobId":"j","type":"notice","data":{"code":"c","message":"m"}}`,
		"data of others": `{"seq":1,"at":"2026-01-02T03:04:05.678Z","jobId":"j","type":"message","data":{"code":"c","message":"m"}}`,
		"unknown reason": `{"seq":1,"at":"2026-01-02T03:04:05.678Z","jobId":"j","type":"job.failed","data":{"reason":"x","code":"c","message":"m","outputs":[]}}`,
	} {
		if valid(t, events, line) == nil {
			t.Errorf("%s is valid: %s", name, line)
		}
	}
}

// TestExamplesInTheDocumentationAreJobs reads every JSON example that claims to be a job spec.
func TestExamplesInTheDocumentationAreJobs(t *testing.T) {
	t.Parallel()
	spec := compile(t, schema.Job())
	var paths []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range block.FindAllSubmatch(text, -1) {
			if !bytes.Contains(example[1], []byte(`"apiVersion"`)) {
				continue
			}
			if err := valid(t, spec, string(example[1])); err != nil {
				t.Errorf("%s: %v\n%s", path, err, example[1])
			}
			if _, err := job.Parse(example[1]); err != nil {
				t.Errorf("%s: %v\n%s", path, err, example[1])
			}
		}
	}
}

func TestSchemasAreMarkedAsGenerated(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][]byte{"job": schema.Job(), "event": schema.Event()} {
		if !bytes.Contains(text, []byte("Code generated by internal/schemagen; DO NOT EDIT.")) {
			t.Errorf("the %s schema does not say that it is generated", name)
		}
	}
}
