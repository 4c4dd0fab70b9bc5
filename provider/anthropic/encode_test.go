package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

func dialogFor(t *testing.T, o llm.Opening) *dialog {
	t.Helper()
	p, err := New(llm.Account{APIKey: "key"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Model.ID == "" {
		o.Model.ID = "m"
	}
	c, err := p.Converse(o)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*dialog)
}

func sent(t *testing.T, c *dialog, call llm.Call, messages ...llm.Message) string {
	t.Helper()
	for _, m := range messages {
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	body, err := c.request(call)
	if err != nil {
		t.Fatal(err)
	}
	text := string(body.Bytes())
	if !json.Valid([]byte(text)) {
		t.Fatalf("not JSON: %s", text)
	}
	return text
}

func TestAWholeRequest(t *testing.T) {
	t.Parallel()
	warm := 0.25
	c := dialogFor(t, llm.Opening{System: "Rules \"one\"", JobSystem: "Job", Temperature: &warm,
		Tools: []llm.ToolSpec{{Name: "read", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object", "properties":{}}`)}, {Name: "ls", Description: "Lists."}}})
	got := sent(t, c, llm.Call{MaxOutputTokens: 77}, llm.UserText("Hi\n"))
	want := `{"model":"m","stream":true,"temperature":0.25,"tools":[{"name":"read","description":"Reads.","input_schema":{"type":"object", "properties":{}}},` +
		`{"name":"ls","description":"Lists.","input_schema":{"type":"object","properties":{}}}],` +
		`"system":[{"type":"text","text":"Rules \"one\"","cache_control":{"type":"ephemeral"}},{"type":"text","text":"\n\nJob"}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"Hi\n"}]}],"cache_control":{"type":"ephemeral"},"max_tokens":77}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if prefix := string(c.buf[:c.prefix]); !strings.HasSuffix(prefix, `"cache_control":{"type":"ephemeral"}}`) {
		t.Errorf("the prefix ends in %q", prefix)
	}
}

func TestSystemPrompts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ system, job, want string }{
		{"", "", ``},
		{"S", "", `"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],`},
		{"", "J", `"system":[{"type":"text","text":"J"}],`},
		{" \n", "J", `"system":[{"type":"text","text":"J"}],`},
		{"S", "J", `"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}},{"type":"text","text":"\n\nJ"}],`},
	} {
		c := dialogFor(t, llm.Opening{System: tt.system, JobSystem: tt.job})
		want := `{"model":"m","stream":true,` + tt.want + `"messages":[{"role":"user"`
		if got := sent(t, c, llm.Call{}, llm.UserText("q")); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		if other := dialogFor(t, llm.Opening{System: tt.system, JobSystem: tt.job + "x"}); c.PrefixHash() != other.PrefixHash() {
			t.Errorf("the prefix of %q depends on the job", tt.system)
		}
	}
}

func TestTheCacheIsNotAskedForWhenSwitchedOff(t *testing.T) {
	t.Parallel()
	c := dialogFor(t, llm.Opening{Model: llm.Model{ID: "m", Compat: llm.Compat{PromptCache: new(false)}}, System: "S"})
	if got := sent(t, c, llm.Call{}, llm.UserText("q")); strings.Contains(got, "cache_control") {
		t.Error(got)
	}
}

func call(id string) llm.Part {
	return llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, ProviderID: "toolu_" + id[2:], Name: "f", Arguments: json.RawMessage(`{"x":1}`)}}
}

func result(id string, isError bool, content ...llm.Part) llm.Part {
	return llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id, Name: "f", Content: content, IsError: isError}}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	same := llm.Origin{API: API, Model: "m"}
	q := llm.UserText("q")
	image := llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}
	const picture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
	const use = `{"type":"tool_use","id":"toolu_0","name":"f","input":{"x":1}}`
	assistant := func(parts ...llm.Part) llm.Message {
		return llm.Message{Role: llm.RoleAssistant, Origin: same, Parts: parts}
	}
	results := func(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleTool, Parts: parts} }
	for _, tt := range []struct {
		name     string
		messages []llm.Message
		want     string
	}{
		{"messages of one role are one", []llm.Message{q, llm.UserText("r")},
			`{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"r"}]}`},
		{"blank texts and empty messages are dropped", []llm.Message{q, llm.UserText(" \n"), assistant(), assistant(llm.TextPart("")), llm.UserText("r")},
			`{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"r"}]}`},
		{"results and the next question are one message", []llm.Message{q, assistant(llm.TextPart("a"), call("1.0")), results(result("1.0", false, llm.TextPart("one"))), q},
			`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"},` + use + `]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":[{"type":"text","text":"one"}]},{"type":"text","text":"q"}]}`},
		{"an empty result", []llm.Message{q, assistant(call("1.0")), results(result("1.0", true))},
			`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[` + use + `]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":[{"type":"text","text":"(no output)"}],"is_error":true}]}`},
		{"an image in a result", []llm.Message{q, assistant(call("1.0")), results(result("1.0", false, llm.TextPart("see"), image))},
			`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[` + use + `]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":[{"type":"text","text":"see"},` + picture + `]}]}`},
		{"an image in a failed result comes after all results", []llm.Message{q, assistant(call("1.0"), call("1.1")), results(result("1.0", true, image), result("1.1", false, llm.TextPart("ok")))},
			`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[` + use + `,{"type":"tool_use","id":"toolu_1","name":"f","input":{"x":1}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":[{"type":"text","text":"(no output)"}],"is_error":true},` +
				`{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"ok"}]},{"type":"text","text":"Images from the failed tool calls above:"},` + picture + `]}`},
		{"thinking goes back with its signature", []llm.Message{q, assistant(llm.Part{Type: llm.PartThinking, Text: "t", Signature: "s"}, llm.Part{Type: llm.PartThinking, Redacted: true, Signature: "d"},
			llm.Part{Type: llm.PartThinking, Text: "unsigned"}, llm.TextPart("a")), q},
			`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},` +
				`{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"q"}]}`},
		{"thinking of another model does not", []llm.Message{q, {Role: llm.RoleAssistant, Origin: llm.Origin{API: API, Model: "x"},
			Parts: []llm.Part{{Type: llm.PartThinking, Text: "t", Signature: "s"}, llm.TextPart("a"), call("1.0")}}, results(result("1.0", false, llm.TextPart("one")))},
			`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"call_1_0","name":"f","input":{"x":1}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_0","content":[{"type":"text","text":"one"}]}]}`},
		{"a message of thinking only is dropped", []llm.Message{q, assistant(llm.Part{Type: llm.PartThinking, Text: "t", Signature: "s"}), llm.UserText("r")},
			`{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"r"}]}`},
		{"arguments that were no object", []llm.Message{q, assistant(llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "1.0", ProviderID: "toolu_0", Name: "f", ArgumentsError: "e", RawArguments: "{"}}),
			results(result("1.0", true, llm.TextPart("bad")))},
			`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":[{"type":"text","text":"bad"}],"is_error":true}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dialogFor(t, llm.Opening{Model: llm.Model{ID: "m", Images: true}})
			got := sent(t, c, llm.Call{}, tt.messages...)
			want := `{"model":"m","stream":true,"messages":[` + tt.want + `],"cache_control":{"type":"ephemeral"},"max_tokens":4096}`
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThinkingIsSentAsTheModelTakesIt(t *testing.T) {
	t.Parallel()
	all := llm.Levels()
	for _, tt := range []struct {
		name   string
		model  llm.Model
		level  llm.Level
		most   int64
		want   string
		absent string
	}{
		{"a model that does not think", llm.Model{ID: "claude-3-5-haiku"}, llm.LevelOff, 0, `"max_tokens":4096`, "thinking"},
		{"switched off", llm.Model{ID: "claude-sonnet-4-5", ThinkingLevels: all}, llm.LevelOff, 0, `,"thinking":{"type":"disabled"},`, "budget"},
		{"minimal", llm.Model{ID: "claude-sonnet-4-5", ThinkingLevels: all}, llm.LevelMinimal, 0, `"budget_tokens":1024}`, ""},
		{"low", llm.Model{ID: "claude-sonnet-4-5", ThinkingLevels: all}, llm.LevelLow, 0, `"budget_tokens":2048}`, ""},
		{"medium", llm.Model{ID: "claude-sonnet-4-5", ThinkingLevels: all}, llm.LevelMedium, 0, `"budget_tokens":8192}`, ""},
		{"high, with room for the answer", llm.Model{ID: "claude-sonnet-4-5", ThinkingLevels: all}, llm.LevelHigh, 0, `"max_tokens":20480}`, ""},
		{"a model with little room", llm.Model{ID: "claude-x-4-5", ThinkingLevels: all, MaxOutputTokens: 4096}, llm.LevelHigh, 0, `"budget_tokens":3072}`, ""},
		{"a call with little room", llm.Model{ID: "claude-sonnet-4-5", ThinkingLevels: all, MaxOutputTokens: 64000}, llm.LevelHigh, 5000, `"budget_tokens":3976}`, "16384"},
		{"a call without room for thinking", llm.Model{ID: "claude-sonnet-4-5", ThinkingLevels: all, MaxOutputTokens: 64000}, llm.LevelHigh, 1500, `"thinking":{"type":"disabled"}`, "budget"},
		{"adaptive", llm.Model{ID: "claude-opus-4-6", ThinkingLevels: all}, llm.LevelMax, 0, `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"}`, "budget"},
		{"adaptive at the least", llm.Model{ID: "claude-sonnet-5", ThinkingLevels: all}, llm.LevelMinimal, 0, `"effort":"low"`, "budget"},
		{"adaptive by switch", llm.Model{ID: "m", ThinkingLevels: all, Compat: llm.Compat{ThinkingDialect: "adaptive", ThinkingEfforts: map[llm.Level]string{"high": "very"}}},
			llm.LevelHigh, 0, `"effort":"very"`, "budget"},
		{"budget by switch", llm.Model{ID: "claude-opus-4-7", ThinkingLevels: all, Compat: llm.Compat{ThinkingDialect: "budget"}}, llm.LevelLow, 0, `"budget_tokens":2048`, "adaptive"},
		{"none by switch", llm.Model{ID: "m", ThinkingLevels: all, Compat: llm.Compat{ThinkingDialect: "none"}}, llm.LevelLow, 0, `"model":"m"`, "thinking"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dialogFor(t, llm.Opening{Model: tt.model, Thinking: tt.level, System: "S"})
			before := c.PrefixHash()
			got := sent(t, c, llm.Call{MaxOutputTokens: tt.most}, llm.UserText("q"))
			if !strings.Contains(got, tt.want) || (tt.absent != "" && strings.Contains(got, tt.absent)) {
				t.Errorf("%s\nwant %s and not %s", got, tt.want, tt.absent)
			}
			if c.PrefixHash() != before {
				t.Error("the prefix changed")
			}
		})
	}
}

func TestOpeningsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	p, err := New(llm.Account{})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]llm.Opening{
		"temperature":     {Model: llm.Model{ID: "m", ThinkingLevels: llm.Levels()}, Thinking: llm.LevelLow, Temperature: new(0.5)},
		"thinkingDialect": {Model: llm.Model{ID: "m", Compat: llm.Compat{ThinkingDialect: "openai"}}},
		"model id":        {},
	} {
		if _, err := p.Converse(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that names %s", err, name)
		}
	}
}

func TestTheBaseURLMayEndInV1OrNot(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "https://h.example", "https://h.example/", "https://h.example/v1", "https://h.example/v1/", "https://h.example/api/anthropic"} {
		if _, err := New(llm.Account{BaseURL: base}); err != nil {
			t.Errorf("%q: %v", base, err)
		}
	}
	if _, err := New(llm.Account{BaseURL: "https://h.example/v1/messages"}); err == nil {
		t.Error("a base URL that holds the method was taken")
	}
}

func TestParallelCallsCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	for value, want := range map[bool]string{false: `"disable_parallel_tool_use":true`, true: `"disable_parallel_tool_use":false`} {
		c := dialogFor(t, llm.Opening{Model: llm.Model{ID: "m", Compat: llm.Compat{ParallelToolCalls: &value}}, Tools: []llm.ToolSpec{{Name: "f"}}})
		if got := sent(t, c, llm.Call{}, llm.UserText("q")); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
