package openaichat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialogAt opens a dialog with a host whose dialect is known.
func dialogAt(t *testing.T, base string, o llm.Opening) *dialog {
	t.Helper()
	p, err := New(llm.Account{BaseURL: base, APIKey: "key"})
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

const unknown = "https://models.example/v1"

// sent returns the request after the messages as text, checked to be JSON.
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

func messagesOf(t *testing.T, request string) string {
	t.Helper()
	var r struct{ Messages json.RawMessage }
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		t.Fatal(err)
	}
	return string(r.Messages)
}

func TestAWholeRequest(t *testing.T) {
	t.Parallel()
	warm := 0.25
	c := dialogAt(t, unknown, llm.Opening{
		Model: llm.Model{ID: "m-1"}, System: "Rules\n\"one\"", JobSystem: "Job", Temperature: &warm,
		Tools: []llm.ToolSpec{{Name: "read", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object", "properties":{}}`)},
			{Name: "ls", Description: "Lists."}},
	})
	got := sent(t, c, llm.Call{MaxOutputTokens: 77}, llm.UserText("Hi\n"))
	want := `{"model":"m-1","stream":true,"stream_options":{"include_usage":true},"temperature":0.25,"tools":[` +
		`{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object", "properties":{}}}},` +
		`{"type":"function","function":{"name":"ls","description":"Lists.","parameters":{"type":"object","properties":{}}}}],` +
		`"messages":[{"role":"system","content":"Rules\n\"one\"\n\nJob"},{"role":"user","content":"Hi\n"}],"max_tokens":77}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if prefix := string(c.buf[:c.prefix]); !strings.HasSuffix(prefix, `Rules\n\"one\"`) {
		t.Errorf("the prefix ends in %q", prefix[len(prefix)-20:])
	}
}

func TestSystemPrompts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ system, job, want string }{
		{"", "", `[{"role":"user","content":"q"}]`},
		{"S", "", `[{"role":"system","content":"S"},{"role":"user","content":"q"}]`},
		{"", "J", `[{"role":"system","content":"J"},{"role":"user","content":"q"}]`},
		{"S", "J", `[{"role":"system","content":"S\n\nJ"},{"role":"user","content":"q"}]`},
	} {
		c := dialogAt(t, unknown, llm.Opening{System: tt.system, JobSystem: tt.job})
		if got := messagesOf(t, sent(t, c, llm.Call{}, llm.UserText("q"))); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
		other := dialogAt(t, unknown, llm.Opening{System: tt.system, JobSystem: tt.job + "x"})
		if c.PrefixHash() != other.PrefixHash() {
			t.Errorf("the prefix of %q depends on the job", tt.system)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	call := func(id, args string) llm.Part {
		return llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, ProviderID: "p" + id[:1], Name: "f", Arguments: json.RawMessage(args)}}
	}
	result := func(id, text string) llm.Part {
		r := &llm.ToolResult{CallID: id, Name: "f"}
		if text != "" {
			r.Content = []llm.Part{llm.TextPart(text)}
		}
		return llm.Part{Type: llm.PartToolResult, ToolResult: r}
	}
	same := llm.Origin{API: API, Model: "m"}
	q := llm.UserText("q")
	for _, tt := range []struct {
		name     string
		messages []llm.Message
		want     string
	}{
		{"an assistant text", []llm.Message{q, {Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart("a")}}, q},
			`{"role":"assistant","content":"a"},{"role":"user","content":"q"}`},
		{"an empty assistant message is dropped", []llm.Message{q, {Role: llm.RoleAssistant}, q}, `{"role":"user","content":"q"}`},
		{"an assistant message of thinking only is dropped", []llm.Message{q, {Role: llm.RoleAssistant, Origin: same,
			Parts: []llm.Part{{Type: llm.PartThinking, Text: "t", Field: "reasoning"}}}, q}, `{"role":"user","content":"q"}`},
		{"calls and results", []llm.Message{q, {Role: llm.RoleAssistant, Origin: same, Parts: []llm.Part{llm.TextPart("a"),
			call("1.0", `{"x":"\"é"}`), call("2.0", `{}`)}}, {Role: llm.RoleTool, Parts: []llm.Part{result("2.0", "two"), result("1.0", "one")}}},
			`{"role":"assistant","content":"a","tool_calls":[{"id":"p1","type":"function","function":{"name":"f","arguments":"{\"x\":\"\\\"é\"}"}},` +
				`{"id":"p2","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"p2","content":"two"},{"role":"tool","tool_call_id":"p1","content":"one"}`},
		{"a call of another model gets an id of ours", []llm.Message{q, {Role: llm.RoleAssistant, Origin: llm.Origin{API: API, Model: "x"},
			Parts: []llm.Part{call("1.0", `{}`)}}, {Role: llm.RoleTool, Parts: []llm.Part{result("1.0", "one")}}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1.0","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"call_1.0","content":"one"}`},
		{"blank results get a placeholder", []llm.Message{q, {Role: llm.RoleAssistant, Origin: same, Parts: []llm.Part{call("1.0", `{}`), call("2.0", `{}`)}},
			{Role: llm.RoleTool, Parts: []llm.Part{result("1.0", ""), result("2.0", " \n\t")}}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"p1","type":"function","function":{"name":"f","arguments":"{}"}},` +
				`{"id":"p2","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"p1","content":"(no output)"},{"role":"tool","tool_call_id":"p2","content":"(no output)"}`},
		{"arguments that were no object", []llm.Message{q, {Role: llm.RoleAssistant, Origin: same, Parts: []llm.Part{{Type: llm.PartToolCall,
			ToolCall: &llm.ToolCall{ID: "1.0", ProviderID: "p1", Name: "f", ArgumentsError: "e", RawArguments: "{"}}}},
			{Role: llm.RoleTool, Parts: []llm.Part{result("1.0", "bad")}}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"p1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"p1","content":"bad"}`},
		{"several texts are one string", []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.TextPart("a"), llm.TextPart("b")}}}, `{"role":"user","content":"a\nb"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := messagesOf(t, sent(t, dialogAt(t, unknown, llm.Opening{}), llm.Call{}, tt.messages...))
			got = strings.TrimPrefix(strings.Trim(got, "[]"), `{"role":"user","content":"q"},`)
			if diff := cmp.Diff(strings.Trim(tt.want, "[]"), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImagesOfResultsFollowAfterAllResults(t *testing.T) {
	t.Parallel()
	png := []byte("\x89PNG\r\n\x1a\n")
	image := llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png", Data: png}}
	var calls, results []llm.Part
	for _, id := range []string{"1.0", "1.1"} {
		calls = append(calls, llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, Name: "f", Arguments: json.RawMessage(`{}`)}})
		results = append(results, llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id, Name: "f", Content: []llm.Part{image}}})
	}
	results[1].ToolResult.Content = append(results[1].ToolResult.Content, llm.TextPart("note"))
	c := dialogAt(t, unknown, llm.Opening{Model: llm.Model{ID: "m", Images: true}})
	got := messagesOf(t, sent(t, c, llm.Call{}, llm.UserText("q"), llm.Message{Role: llm.RoleAssistant, Parts: calls},
		llm.Message{Role: llm.RoleTool, Parts: results}))
	url := `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}`
	want := `{"role":"tool","tool_call_id":"call_1.0","content":"(The image follows after the results.)"},` +
		`{"role":"tool","tool_call_id":"call_1.1","content":"note"},` +
		`{"role":"user","content":[{"type":"text","text":"Images from the tool results above:"},` + url + `,` + url + `]}]`
	if !strings.HasSuffix(got, want) {
		t.Errorf("messages end in\n%s\nwant\n%s", got, want)
	}
}

func TestEachHostGetsItsDialect(t *testing.T) {
	t.Parallel()
	levels := llm.Levels()
	for _, tt := range []struct {
		name, base string
		thinking   llm.Level
		compat     llm.Compat
		want       []string
		absent     []string
	}{
		{"OpenAI", "", llm.LevelHigh, llm.Compat{}, []string{`"store":false`, `"reasoning_effort":"high"`, `"role":"developer"`, `"max_completion_tokens":9`}, []string{`"max_tokens"`}},
		{"OpenAI, all cached by one key", "", llm.LevelHigh, llm.Compat{}, []string{`"prompt_cache_key":"`}, []string{"cache_control"}},
		{"OpenAI, not cached", "", llm.LevelHigh, llm.Compat{PromptCache: new(false)}, nil, []string{"cache"}},
		{"Moonshot", "https://api.moonshot.ai/v1", llm.LevelLow, llm.Compat{}, []string{`"reasoning_content":"t"`}, []string{"cache"}},
		{"OpenRouter without usage", "https://openrouter.ai/api/v1", llm.LevelLow, llm.Compat{StreamUsage: new(false)}, nil, []string{"usage", "cache"}},
		{"OpenAI without thinking", "", llm.LevelOff, llm.Compat{}, []string{`"reasoning_effort":"none"`}, nil},
		{"Azure", "https://x.openai.azure.com/openai/v1", llm.LevelLow, llm.Compat{}, []string{`"role":"system"`, `"max_completion_tokens"`}, []string{`"store"`}},
		{"OpenRouter", "https://openrouter.ai/api/v1", llm.LevelLow, llm.Compat{}, []string{`"reasoning":{"effort":"low"}`, `"usage":{"include":true}`}, []string{"reasoning_effort"}},
		{"OpenRouter without thinking", "https://openrouter.ai/api/v1", llm.LevelOff, llm.Compat{}, []string{`"reasoning":{"effort":"none"}`}, nil},
		{"Groq", "https://api.groq.com/openai/v1", llm.LevelLow, llm.Compat{}, []string{`"reasoning_effort":"low"`}, []string{`"store"`, "developer"}},
		{"DeepSeek", "https://api.deepseek.com", llm.LevelHigh, llm.Compat{}, []string{`"thinking":{"type":"enabled"},"reasoning_effort":"high"`, `"max_tokens":9`}, nil},
		{"DeepSeek without thinking", "https://api.deepseek.com", llm.LevelOff, llm.Compat{}, []string{`"thinking":{"type":"disabled"}`}, []string{"reasoning_effort"}},
		{"xAI", "https://api.x.ai/v1", llm.LevelLow, llm.Compat{}, []string{`"reasoning_effort":"low"`}, nil},
		{"Together", "https://api.together.xyz/v1", llm.LevelLow, llm.Compat{}, []string{`"reasoning":{"enabled":true}`}, nil},
		{"Z.ai", "https://api.z.ai/api/paas/v4", llm.LevelLow, llm.Compat{}, []string{`"thinking":{"type":"enabled","clear_thinking":false}`}, nil},
		{"Qwen", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", llm.LevelOff, llm.Compat{}, []string{`"enable_thinking":false`}, nil},
		{"Mistral", "https://api.mistral.ai/v1", llm.LevelLow, llm.Compat{}, []string{`"name":"f"`}, []string{"stream_options"}},
		{"Hugging Face", "https://router.huggingface.co/v1", llm.LevelLow, llm.Compat{}, []string{`"stream_options"`}, nil},
		{"a local server", "http://localhost:8080/v1", llm.LevelLow, llm.Compat{}, []string{`"reasoning_effort":"low"`, `"max_tokens":9`, `"reasoning_content":"t"`}, []string{`"store"`, "developer", "strict", "parallel"}},
		{"a name that only ends like a known one", "https://evilapi.openai.com.example/v1", llm.LevelLow, llm.Compat{}, []string{`"max_tokens":9`}, []string{`"store"`}},
		{"a template", unknown, llm.LevelLow, llm.Compat{ThinkingDialect: "qwen-chat-template"}, []string{`"chat_template_kwargs":{"enable_thinking":true}`}, nil},
		{"no dialect", unknown, llm.LevelLow, llm.Compat{ThinkingDialect: "none"}, nil, []string{"reasoning", "thinking"}},
		{"other words for levels", unknown, llm.LevelMinimal, llm.Compat{ThinkingEfforts: map[llm.Level]string{llm.LevelMinimal: "low"}}, []string{`"reasoning_effort":"low"`}, nil},
		{"every switch on", unknown, llm.LevelLow, llm.Compat{DeveloperRole: new(true), Store: new(true), MaxTokensField: "max_completion_tokens", ReplayThinking: new(true),
			ToolResultName: new(true), EmptyContent: new(true), ParallelToolCalls: new(false), StrictTools: new(true)},
			[]string{`"role":"developer"`, `"store":false`, `"max_completion_tokens":9`, `"reasoning_content":"t"`, `"name":"f","content"`, `"content":"","reasoning_content"`, `"parallel_tool_calls":false`, `"strict":true`}, nil},
		{"every switch off", "", llm.LevelLow, llm.Compat{DeveloperRole: new(false), Store: new(false), StreamUsage: new(false), MaxTokensField: "max_tokens"},
			[]string{`"role":"system"`, `"max_tokens":9`}, []string{"store", "stream_options", "strict", "parallel", "reasoning_content"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			schema := json.RawMessage(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)
			c := dialogAt(t, tt.base, llm.Opening{Model: llm.Model{ID: "m", ThinkingLevels: levels, Compat: tt.compat}, Thinking: tt.thinking,
				System: "S", Tools: []llm.ToolSpec{{Name: "f", Description: "d", InputSchema: schema}}})
			got := sent(t, c, llm.Call{MaxOutputTokens: 9}, llm.UserText("q"), llm.Message{Role: llm.RoleAssistant, Origin: llm.Origin{API: API, Model: "m"},
				Parts: []llm.Part{{Type: llm.PartThinking, Text: "t", Field: "reasoning_content"},
					{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "1.0", Name: "f"}}}},
				llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: "1.0", Name: "f"}}}})
			for _, text := range tt.want {
				if !strings.Contains(got, text) {
					t.Errorf("no %s in %s", text, got)
				}
			}
			for _, text := range tt.absent {
				if strings.Contains(got, text) {
					t.Errorf("%s in %s", text, got)
				}
			}
		})
	}
}

func TestAModelThatDoesNotThinkIsSentNothingAboutIt(t *testing.T) {
	t.Parallel()
	for _, h := range hosts() {
		c := dialogAt(t, "https://"+strings.Replace(h.suffix, "::1", "[::1]", 1)+"/v1", llm.Opening{System: "S"})
		got := sent(t, c, llm.Call{}, llm.UserText("q"))
		for _, word := range []string{"reasoning", "thinking", "developer"} {
			if strings.Contains(got, word) {
				t.Errorf("%s: %s in %s", h.suffix, word, got)
			}
		}
	}
}

func TestModelsThatCannotStopThinkingAreNotAskedTo(t *testing.T) {
	t.Parallel()
	c := dialogAt(t, "", llm.Opening{Model: llm.Model{ID: "m", ThinkingLevels: []llm.Level{llm.LevelLow}}})
	if got := sent(t, c, llm.Call{}, llm.UserText("q")); strings.Contains(got, "reasoning") {
		t.Error(got)
	}
}

func TestThinkingGoesBackToItsModelOnly(t *testing.T) {
	t.Parallel()
	thinking := func(origin llm.Origin, field string) llm.Message {
		return llm.Message{Role: llm.RoleAssistant, Origin: origin, Parts: []llm.Part{
			{Type: llm.PartThinking, Text: "private", Field: field}, llm.TextPart("a")}}
	}
	for _, tt := range []struct {
		name, base string
		message    llm.Message
		want       string
	}{
		{"the same model", "http://127.0.0.1:1/v1", thinking(llm.Origin{API: API, Model: "m"}, "reasoning"), `"content":"a","reasoning":"private"}`},
		{"another model", "http://127.0.0.1:1/v1", thinking(llm.Origin{API: API, Model: "x"}, "reasoning"), `"content":"a"}`},
		{"another API", "http://127.0.0.1:1/v1", thinking(llm.Origin{API: "anthropic-messages", Model: "m"}, ""), `"content":"a"}`},
		{"unknown origin", "http://127.0.0.1:1/v1", thinking(llm.Origin{}, "reasoning"), `"content":"a"}`},
		{"a server that does not read it", unknown, thinking(llm.Origin{API: API, Model: "m"}, "reasoning"), `"content":"a"}`},
		{"a field that was none", "http://127.0.0.1:1/v1", thinking(llm.Origin{API: API, Model: "m"}, "reasoning_details"), `"content":"a"}`},
		{"DeepSeek wants the field always", "https://api.deepseek.com", thinking(llm.Origin{API: API, Model: "x"}, "reasoning"), `"content":"a","reasoning_content":""}`},
	} {
		c := dialogAt(t, tt.base, llm.Opening{})
		got := sent(t, c, llm.Call{}, llm.UserText("q"), tt.message, llm.UserText("q"))
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %s in %s", tt.name, tt.want, got)
		}
	}
}

func TestStrictToolsOnlyWhereTheSchemaAllowsIt(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                                true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                                                   false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                             false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"x"}},"required":["a"],"additionalProperties":false}`:                                                  false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`:                                       false,
		`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`:                                                                             false,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"string"}}}`: true,
		`{"type":"string"}`: false, ``: false,
	} {
		if got := wire.StrictSchema(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %v, want %v", schema, got, want)
		}
	}
}

func TestOpeningsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	p, err := New(llm.Account{})
	if err != nil {
		t.Fatal(err)
	}
	model := llm.Model{ID: "m", ThinkingLevels: []llm.Level{llm.LevelLow}}
	for name, o := range map[string]llm.Opening{
		"model id":        {},
		"thinking":        {Model: model, Thinking: llm.LevelHigh},
		"temperature":     {Model: model, Temperature: new(-1.0)},
		"tool":            {Model: model, Tools: []llm.ToolSpec{{Name: "a b"}}},
		"tool f":          {Model: model, Tools: []llm.ToolSpec{{Name: "f"}, {Name: "f"}}},
		"tool g":          {Model: model, Tools: []llm.ToolSpec{{Name: "g", InputSchema: json.RawMessage(`{"type":`)}}},
		"thinkingDialect": {Model: llm.Model{ID: "m", Compat: llm.Compat{ThinkingDialect: "morse"}}},
		"maxTokensField":  {Model: llm.Model{ID: "m", Compat: llm.Compat{MaxTokensField: "limit"}}},
	} {
		if _, err := p.Converse(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that names %s", err, name)
		}
	}
}

func TestSchemasPassThrough(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"description":"d","default":1,"enum":[1,2]}}}`
	c := dialogAt(t, unknown, llm.Opening{Tools: []llm.ToolSpec{{Name: "f", InputSchema: json.RawMessage(schema)}}})
	if got := sent(t, c, llm.Call{}, llm.UserText("q")); !strings.Contains(got, schema) || strings.Contains(got, "strict") {
		t.Error(got)
	}
}
