package bedrock

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

// open opens a dialog for an account that needs no server.
func open(t *testing.T, o llm.Opening) *dialog {
	t.Helper()
	p, err := New(llm.Account{APIKey: "k", Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Converse(o)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*dialog)
}

// sent returns the body of the request for call after messages.
func sent(t *testing.T, c *dialog, call llm.Call, messages ...llm.Message) string {
	t.Helper()
	for _, m := range messages {
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Request(call)
	if err != nil {
		t.Fatal(err)
	}
	var body []byte
	for _, piece := range r.Body {
		body = append(body, piece...)
	}
	if !json.Valid(body) {
		t.Fatalf("the request is not JSON: %s", body)
	}
	return string(body)
}

func same(t *testing.T, want, got string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func assistant(parts ...llm.Part) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: parts, Origin: llm.Origin{API: API, Model: "m"}}
}

func call(id, providerID, arguments string) llm.Part {
	return llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, ProviderID: providerID, Name: "add", Arguments: []byte(arguments)}}
}

func result(id string, isError bool, content ...llm.Part) llm.Part {
	return llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id, Name: "add", Content: content, IsError: isError}}
}

func results(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleTool, Parts: parts} }

// gif is the smallest image that is one.
var gif = llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/gif", Data: []byte("GIF89a")}}

func TestARequestHoldsEverything(t *testing.T) {
	t.Parallel()
	warm := 0.5
	c := open(t, llm.Opening{
		Model:  llm.Model{ID: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", MaxOutputTokens: 64000, Images: true},
		System: "Shared.", JobSystem: "Of the job.", Temperature: &warm,
		Tools: []llm.ToolSpec{{Name: "add", Description: "Adds.", InputSchema: []byte(`{"type":"object"}`)}, {Name: "now"}},
	})
	got := sent(t, c, llm.Call{}, llm.UserText("Hello"))
	same(t, `{
		"toolConfig": {"tools": [
			{"toolSpec": {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object"}}}},
			{"toolSpec": {"name": "now", "inputSchema": {"json": {"type": "object", "properties": {}}}}}]},
		"system": [{"text": "Shared."}, {"cachePoint": {"type": "default"}}, {"text": "\n\nOf the job."}],
		"messages": [{"role": "user", "content": [{"text": "Hello"}, {"cachePoint": {"type": "default"}}]}],
		"inferenceConfig": {"maxTokens": 64000, "temperature": 0.5}}`, got)
	r, err := c.Request(llm.Call{})
	if err != nil || r.Method != "POST" || r.Path != "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream" {
		t.Errorf("request %s %s, error %v", r.Method, r.Path, err)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	q := llm.UserText("q")
	const begin = `{"role":"user","content":[{"text":"q"}]},`
	think := llm.Part{Type: llm.PartThinking, Text: "t", Signature: "s"}
	for _, tt := range []struct {
		name     string
		messages []llm.Message
		want     string
	}{
		{"consecutive messages of one role are one", []llm.Message{q, llm.UserText("r")}, `{"role":"user","content":[{"text":"q"},{"text":"r"}]}`},
		{"blank text beside text is dropped", []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.TextPart(" \n"), llm.TextPart("q")}}},
			`{"role":"user","content":[{"text":"q"}]}`},
		{"a message of blank text stands as a note", []llm.Message{llm.UserText(" \n")}, `{"role":"user","content":[{"text":"(empty)"}]}`},
		{"an image", []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{gif}}},
			`{"role":"user","content":[{"image":{"format":"gif","source":{"bytes":"R0lGODlh"}}}]}`},
		{"results are in one message, in the order of their parts", []llm.Message{q, assistant(call("1.0", "a", `{"x":1}`), call("1.1", "b", `{}`)),
			results(result("1.1", false, llm.TextPart("two")), result("1.0", true, llm.TextPart("one")))},
			begin + `{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"add","input":{"x":1}}},{"toolUse":{"toolUseId":"b","name":"add","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"b","content":[{"text":"two"}]}},` +
				`{"toolResult":{"toolUseId":"a","content":[{"text":"one"}],"status":"error"}}]}`},
		{"an empty result", []llm.Message{q, assistant(call("1.0", "a", `{}`)), results(result("1.0", false))},
			begin + `{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"add","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"(no output)"}]}}]}`},
		{"the image of a result stays in it, that of a failed call does not", []llm.Message{q, assistant(call("1.0", "a", `{}`), call("1.1", "b", `{}`)),
			results(result("1.0", false, gif), result("1.1", true, llm.TextPart("no"), gif))},
			begin + `{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"add","input":{}}},{"toolUse":{"toolUseId":"b","name":"add","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"image":{"format":"gif","source":{"bytes":"R0lGODlh"}}}]}},` +
				`{"toolResult":{"toolUseId":"b","content":[{"text":"no"}],"status":"error"}},` +
				`{"text":"Images from the failed tool calls above:"},{"image":{"format":"gif","source":{"bytes":"R0lGODlh"}}}]}`},
		{"thinking goes back with its proof", []llm.Message{q, assistant(think, llm.Part{Type: llm.PartThinking, Redacted: true, Signature: "ZGF0YQ=="},
			llm.Part{Type: llm.PartThinking, Text: "unsigned"}, llm.TextPart("a")), q},
			begin + `{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},` +
				`{"reasoningContent":{"redactedContent":"ZGF0YQ=="}},{"text":"a"}]},{"role":"user","content":[{"text":"q"}]}`},
		{"thinking of another model does not", []llm.Message{q, {Role: llm.RoleAssistant, Origin: llm.Origin{API: "anthropic-messages", Model: "m"},
			Parts: []llm.Part{think, llm.TextPart("a")}}, q}, begin + `{"role":"assistant","content":[{"text":"a"}]},{"role":"user","content":[{"text":"q"}]}`},
		{"a message of thinking only is dropped", []llm.Message{q, assistant(think), llm.UserText("r")}, `{"role":"user","content":[{"text":"q"},{"text":"r"}]}`},
		{"the id of another provider", []llm.Message{q, {Role: llm.RoleAssistant, Parts: []llm.Part{call("1.0", "call|fc_1", `{}`)}}, results(result("1.0", false, llm.TextPart("x")))},
			begin + `{"role":"assistant","content":[{"toolUse":{"toolUseId":"call_1_0","name":"add","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"call_1_0","content":[{"text":"x"}]}}]}`},
		{"members with an empty name are taken out", []llm.Message{q, assistant(call("1.0", "a", `{"":1,"b":{"":[{"":{}},""],"c":""},"d":[{"":0,"e":null}]}`)), results(result("1.0", false, llm.TextPart("x")))},
			begin + `{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"add","input":{"b":{"c":""},"d":[{"e":null}]}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"x"}]}}]}`},
		{"arguments that were no JSON", []llm.Message{q, assistant(llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "1.0", ProviderID: "a", Name: "add",
			ArgumentsError: "the argument text is no JSON", RawArguments: `{"a":`}}), results(result("1.0", true, llm.TextPart("no JSON")))},
			begin + `{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"add","input":{}}}]},` +
				`{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"no JSON"}],"status":"error"}}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := open(t, llm.Opening{Model: llm.Model{ID: "m", Images: true}, Tools: []llm.ToolSpec{{Name: "add"}}})
			got := sent(t, c, llm.Call{}, tt.messages...)
			_, rest, _ := strings.Cut(got, `"messages":`)
			same(t, "["+tt.want+"]", strings.TrimSuffix(rest, "}"))
		})
	}
}

func TestUnsignedThinkingGoesBackWhereItIsWanted(t *testing.T) {
	t.Parallel()
	yes := true
	c := open(t, llm.Opening{Model: llm.Model{ID: "m", Compat: llm.Compat{ReplayThinking: &yes}}})
	got := sent(t, c, llm.Call{}, llm.UserText("q"), assistant(llm.Part{Type: llm.PartThinking, Text: "t"}, llm.TextPart("a")), llm.UserText("r"))
	if !strings.Contains(got, `{"reasoningContent":{"reasoningText":{"text":"t"}}},{"text":"a"}`) {
		t.Error(got)
	}
}

func TestToolsThatOnlyTheHistoryCallsAreDeclared(t *testing.T) {
	t.Parallel()
	c := open(t, llm.Opening{Model: llm.Model{ID: "m"}})
	got := sent(t, c, llm.Call{}, llm.UserText("q"), assistant(call("1.0", "a", `{}`)), results(result("1.0", false)),
		assistant(call("2.0", "b", `{}`)), results(result("2.0", false)))
	if n := strings.Count(got, `"toolSpec"`); n != 1 || !strings.Contains(got, `{"toolSpec":{"name":"add","description":"Not available any more."`) {
		t.Errorf("%d tools are declared, want add once: %s", n, got)
	}
	if got := sent(t, open(t, llm.Opening{Model: llm.Model{ID: "m"}}), llm.Call{}, llm.UserText("q")); strings.Contains(got, "toolConfig") {
		t.Errorf("tools are declared although none are called: %s", got)
	}
}

func TestThinkingAndOutputLimit(t *testing.T) {
	t.Parallel()
	all := llm.Levels()
	const sonnet = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
	profile := "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x"
	for _, tt := range []struct {
		name         string
		model        llm.Model
		level        llm.Level
		most         int64
		want, absent string
	}{
		{"Claude without any limit", llm.Model{ID: "anthropic.claude-3-5-haiku-20241022-v1:0"}, "", 0, `"inferenceConfig":{"maxTokens":4096}`, "additional"},
		{"Claude, switched off", llm.Model{ID: sonnet, ThinkingLevels: all}, llm.LevelOff, 0, `{"additionalModelRequestFields":{"thinking":{"type":"disabled"}},`, "budget"},
		{"Claude by budget", llm.Model{ID: sonnet, ThinkingLevels: all, MaxOutputTokens: 64000}, llm.LevelMedium, 0,
			`{"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":8192}},`, "reasoning"},
		{"Claude in a call with a smaller limit", llm.Model{ID: sonnet, ThinkingLevels: all, MaxOutputTokens: 64000}, llm.LevelMedium, 4000,
			`{"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2976}},`, "8192"},
		{"Claude that decides itself", llm.Model{ID: "us.anthropic.claude-opus-4-6-v1", ThinkingLevels: all}, llm.LevelMax, 0,
			`{"additionalModelRequestFields":{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"}},`, "budget"},
		{"a profile that is Claude by switch", llm.Model{ID: profile, ThinkingLevels: all, Compat: llm.Compat{ThinkingDialect: "budget"}}, llm.LevelLow, 0,
			`"thinking":{"type":"enabled","budget_tokens":2048}`, "reasoning"},
		{"Nova", llm.Model{ID: "us.amazon.nova-2-lite-v1:0", ThinkingLevels: all, MaxOutputTokens: 100}, llm.LevelMedium, 0,
			`{"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"medium"}},`, "budget"},
		{"Nova at high effort takes no limit", llm.Model{ID: "us.amazon.nova-2-lite-v1:0", ThinkingLevels: all, MaxOutputTokens: 100}, llm.LevelMax, 50,
			`"maxReasoningEffort":"high"`, "inferenceConfig"},
		{"another model", llm.Model{ID: "openai.gpt-oss-120b-1:0", ThinkingLevels: all}, llm.LevelHigh, 0, `{"additionalModelRequestFields":{"reasoning_effort":"high"},`, "inferenceConfig"},
		{"another model with words of its own", llm.Model{ID: "m", ThinkingLevels: all, Compat: llm.Compat{ThinkingEfforts: map[llm.Level]string{llm.LevelLow: "mini"}}},
			llm.LevelLow, 0, `{"reasoning_effort":"mini"}`, "low"},
		{"GovCloud takes no summary of thinking", llm.Model{ID: "arn:aws-us-gov:bedrock:us-gov-west-1:1:inference-profile/us-gov.anthropic.claude-opus-4-6-v1", ThinkingLevels: all},
			llm.LevelHigh, 0, `"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, "display"},
		{"a model of OpenAI with closed weights", llm.Model{ID: "openai.gpt-5-4", ThinkingLevels: all}, llm.LevelLow, 0, `{"reasoning":{"effort":"low"}}`, "reasoning_effort"},
		{"another model, switched off", llm.Model{ID: "m", ThinkingLevels: all, MaxOutputTokens: 7}, llm.LevelOff, 0, `"inferenceConfig":{"maxTokens":7}`, "additional"},
		{"another model, not asked by switch", llm.Model{ID: "m", ThinkingLevels: all, Compat: llm.Compat{ThinkingDialect: "none"}}, llm.LevelHigh, 9, `"inferenceConfig":{"maxTokens":9}`, "additional"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := open(t, llm.Opening{Model: tt.model, Thinking: tt.level})
			before := c.PrefixHash()
			got := sent(t, c, llm.Call{MaxOutputTokens: tt.most}, llm.UserText("q"))
			if !strings.Contains(got, tt.want) || strings.Contains(got, tt.absent) {
				t.Errorf("%s\nwant %s and not %s", got, tt.want, tt.absent)
			}
			if c.PrefixHash() != before {
				t.Error("the prefix changed")
			}
		})
	}
}

func TestCacheMarks(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for id, want := range map[string]bool{
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": true, "anthropic.claude-3-7-sonnet-20250219-v1:0": true, "anthropic.claude-3-5-haiku-20241022-v1:0": true,
		"anthropic.claude-3-haiku-20240307-v1:0": false, "anthropic.claude-3-5-sonnet-20240620-v1:0": false, "us.amazon.nova-pro-v1:0": true,
		"amazon.nova-sonic-v1:0": false, "amazon.titan-text-express-v1": false, "meta.llama4-maverick-17b-instruct-v1:0": false,
		"arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-4-20250514-v1:0": true,
	} {
		for _, ask := range []*bool{nil, &yes, &no} {
			c := open(t, llm.Opening{Model: llm.Model{ID: id, Compat: llm.Compat{PromptCache: ask}}, System: "s"})
			marks, expected := strings.Count(sent(t, c, llm.Call{}, llm.UserText("q")), "cachePoint"), 0
			if (ask == nil && want) || ask == &yes {
				expected = 2
			}
			if marks != expected {
				t.Errorf("%s: %d cache marks, want %d", id, marks, expected)
			}
		}
	}
}

func TestASystemPromptInParts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ shared, job, want string }{
		{"", "", `{"messages":`},
		{"s", "", `{"system":[{"text":"s"}],"messages":`},
		{" \n", "j", `{"system":[{"text":"j"}],"messages":`},
		{"s", "j", `{"system":[{"text":"s"},{"text":"\n\nj"}],"messages":`},
	} {
		c := open(t, llm.Opening{Model: llm.Model{ID: "m"}, System: tt.shared, JobSystem: tt.job})
		if got := sent(t, c, llm.Call{}, llm.UserText("q")); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q and %q: %s, want %s", tt.shared, tt.job, got, tt.want)
		}
	}
}

func TestOpeningsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	p, err := New(llm.Account{APIKey: "k", Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	half := 0.5
	for name, o := range map[string]llm.Opening{
		"model id":        {},
		"thinkingDialect": {Model: llm.Model{ID: "m", Compat: llm.Compat{ThinkingDialect: "qwen"}}},
		"temperature: this API": {Model: llm.Model{ID: "anthropic.claude-sonnet-4-5", ThinkingLevels: llm.Levels()}, Thinking: llm.LevelLow,
			Temperature: &half},
		"temperature: this model": {Model: llm.Model{ID: "amazon.nova-2-lite-v1:0", ThinkingLevels: llm.Levels()}, Thinking: llm.LevelHigh,
			Temperature: &half},
		"ARN names no region": {Model: llm.Model{ID: "arn:aws:bedrock:evil.example/:1:inference-profile/x"}},
	} {
		if _, err := p.Converse(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
	}
}

// FuzzDocument checks that taking out members with an empty name leaves every other member.
func FuzzDocument(f *testing.F) {
	for _, text := range []string{`{"":1}`, `{"a":{"":{"b":1}},"c":[{"":""}]}`, `{ "a" : "" , "b":[[],{}] }`, `{"\u0000":"","":""}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]any
		if json.Unmarshal([]byte(text), &want) != nil || want == nil || strings.Contains(text, `\ud`) || strings.Contains(text, `\uD`) {
			return
		}
		got := appendDocument(nil, []byte(text))
		var after map[string]any
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%s becomes %s: %v", text, got, err)
		}
		if diff := cmp.Diff(stripped(want), any(after)); diff != "" {
			t.Errorf("%s becomes %s (-want +got)\n%s", text, got, diff)
		}
	})
}

func stripped(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, member := range v {
			if key != "" {
				kept[key] = stripped(member)
			}
		}
		return kept
	case []any:
		for i := range v {
			v[i] = stripped(v[i])
		}
	}
	return v
}
