package google

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
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
	c := dialogFor(t, llm.Opening{System: "Rules \"one\"", JobSystem: "Job", Temperature: &warm, Thinking: llm.LevelLow,
		Model: llm.Model{ID: "gemini-2.5-flash", ThinkingLevels: []llm.Level{llm.LevelLow}},
		Tools: []llm.ToolSpec{{Name: "read", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object", "properties":{}}`)}, {Name: "ls", Description: "Lists."}}})
	got := sent(t, c, llm.Call{MaxOutputTokens: 7777}, llm.UserText("Hi\n"))
	want := `{"tools":[{"functionDeclarations":[{"name":"read","description":"Reads.","parametersJsonSchema":{"type":"object", "properties":{}}},` +
		`{"name":"ls","description":"Lists.","parametersJsonSchema":{"type":"object","properties":{}}}]}],` +
		`"systemInstruction":{"parts":[{"text":"Rules \"one\""},{"text":"\n\nJob"}]},` +
		`"contents":[{"role":"user","parts":[{"text":"Hi\n"}]}],` +
		`"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2048},"temperature":0.25,"maxOutputTokens":7777}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if prefix := string(c.buf[:c.prefix]); !strings.HasSuffix(prefix, `{"text":"Rules \"one\""}`) {
		t.Errorf("the prefix ends in %q", prefix)
	}
}

func TestSystemPrompts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ system, job, want string }{
		{"", "", ``},
		{"S", "", `"systemInstruction":{"parts":[{"text":"S"}]},`},
		{"", "J", `"systemInstruction":{"parts":[{"text":"J"}]},`},
		{" \n", "J", `"systemInstruction":{"parts":[{"text":"J"}]},`},
		{"S", "J", `"systemInstruction":{"parts":[{"text":"S"},{"text":"\n\nJ"}]},`},
	} {
		c := dialogFor(t, llm.Opening{System: tt.system, JobSystem: tt.job})
		want := `{` + tt.want + `"contents":[{"role":"user","parts":[{"text":"q"}]}]}`
		if got := sent(t, c, llm.Call{}, llm.UserText("q")); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if other := dialogFor(t, llm.Opening{System: tt.system, JobSystem: tt.job + "x"}); c.PrefixHash() != other.PrefixHash() {
			t.Errorf("the prefix of %q depends on the job", tt.system)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, model, want string }{
		{"", "gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:streamGenerateContent"},
		{"https://h.example/", "m", "/v1beta/models/m:streamGenerateContent"},
		{"https://h.example/v1beta/", "m", "/v1beta/models/m:streamGenerateContent"},
		{"https://h.example/gateway/v1", "m", "/gateway/v1/models/m:streamGenerateContent"},
		{"https://h.example/v1alpha", "models/m", "/v1alpha/models/m:streamGenerateContent"},
		{"https://h.example", "tunedModels/mine-1", "/v1beta/tunedModels/mine-1:streamGenerateContent"},
		{"https://h.example", "a/../b?c", "/v1beta/models/a%2F..%2Fb%3Fc:streamGenerateContent"},
	} {
		p, err := New(llm.Account{BaseURL: tt.base, APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Converse(llm.Opening{Model: llm.Model{ID: tt.model}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Append(llm.UserText("q")); err != nil {
			t.Fatal(err)
		}
		r, err := c.Request(llm.Call{})
		if err != nil || r.Path != tt.want || r.Method != "POST" {
			t.Errorf("%s %s: %s %s (error %v), want %s", tt.base, tt.model, r.Method, r.Path, err, tt.want)
		}
	}
}

func TestTheKeyGoesIntoAHeaderAndNotIntoTheAddress(t *testing.T) {
	t.Parallel()
	var query, key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, key = r.URL.RawQuery, r.Header.Get("X-Goog-Api-Key")
		_, _ = io.WriteString(w, finish("STOP", someUsage))
	}))
	defer server.Close()
	p, err := New(llm.Account{BaseURL: server.URL, APIKey: "key-0123456789"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Converse(llm.Opening{Model: llm.Model{ID: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Append(llm.UserText("q")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stream(t.Context(), llm.Call{}, nil); err != nil || query != "alt=sse" || key != "key-0123456789" {
		t.Errorf("query %q, key %q, error %v", query, key, err)
	}
}

func TestOpeningsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	p, err := New(llm.Account{})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]llm.Opening{
		"model id":        {},
		"thinkingDialect": {Model: llm.Model{ID: "m", Compat: llm.Compat{ThinkingDialect: "morse"}}},
		"letter":          {Model: llm.Model{ID: "m"}, Tools: []llm.ToolSpec{{Name: "1st"}}},
		"underscore":      {Model: llm.Model{ID: "m"}, Tools: []llm.ToolSpec{{Name: "-x"}}},
		"declared twice":  {Model: llm.Model{ID: "m"}, Tools: []llm.ToolSpec{{Name: "x"}, {Name: "x"}}},
		"has no level":    {Model: llm.Model{ID: "m"}, Thinking: llm.LevelHigh},
	} {
		if _, err := p.Converse(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}

func TestThinkingLevels(t *testing.T) {
	t.Parallel()
	all := []llm.Level{llm.LevelOff, llm.LevelMinimal, llm.LevelLow, llm.LevelMedium, llm.LevelHigh, llm.LevelXHigh}
	always := []llm.Level{llm.LevelMinimal, llm.LevelLow, llm.LevelHigh}
	budget := func(n string) string { return `{"includeThoughts":true,"thinkingBudget":` + n + `}` }
	word := func(w string) string { return `{"includeThoughts":true,"thinkingLevel":"` + w + `"}` }
	for _, tt := range []struct {
		model  string
		levels []llm.Level
		level  llm.Level
		compat llm.Compat
		want   string
	}{
		{"gemini-2.5-pro", all, llm.LevelOff, llm.Compat{}, `{"thinkingBudget":128}`},
		{"gemini-2.5-pro", all, llm.LevelMinimal, llm.Compat{}, budget("128")},
		{"gemini-2.5-pro", all, llm.LevelMedium, llm.Compat{}, budget("8192")},
		{"gemini-2.5-pro-preview-05-06", all, llm.LevelXHigh, llm.Compat{}, budget("32768")},
		{"gemini-2.5-flash", all, llm.LevelOff, llm.Compat{}, `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", all, "", llm.Compat{}, `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", all, llm.LevelLow, llm.Compat{}, budget("2048")},
		{"gemini-2.5-flash", all, llm.LevelHigh, llm.Compat{}, budget("24576")},
		{"gemini-2.5-flash-lite", all, llm.LevelMinimal, llm.Compat{}, budget("512")},
		{"my-tuned-model", all, llm.LevelHigh, llm.Compat{}, budget("-1")},
		{"gemini-3-pro-preview", all, llm.LevelHigh, llm.Compat{}, word("HIGH")},
		{"google/gemini-3.1-pro", all, llm.LevelMedium, llm.Compat{}, word("MEDIUM")},
		{"gemini-4-neon", all, llm.LevelXHigh, llm.Compat{}, word("XHIGH")},
		{"gemini-flash-lite-latest", all, llm.LevelMinimal, llm.Compat{}, word("MINIMAL")},
		{"gemma-4-31b-it", all, llm.LevelLow, llm.Compat{}, word("LOW")},
		{"gemini-3-flash-preview", always, llm.LevelOff, llm.Compat{}, `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3-pro-preview", []llm.Level{llm.LevelOff, llm.LevelLow, llm.LevelHigh}, llm.LevelOff, llm.Compat{}, `{"thinkingLevel":"LOW"}`},
		{"gemini-3-pro", all, llm.LevelHigh, llm.Compat{ThinkingEfforts: map[llm.Level]string{llm.LevelHigh: "DEEP"}}, word("DEEP")},
		{"gemini-3-pro", all, llm.LevelLow, llm.Compat{ThinkingDialect: "budget"}, budget("-1")},
		{"mine", all, llm.LevelLow, llm.Compat{ThinkingDialect: "level"}, word("LOW")},
		{"gemini-3-pro", all, llm.LevelLow, llm.Compat{ThinkingDialect: "none"}, ""},
		{"gemini-2.0-flash", nil, llm.LevelOff, llm.Compat{}, ""},
		{"gemini-2.0-flash", []llm.Level{llm.LevelOff}, llm.LevelOff, llm.Compat{}, ""},
	} {
		c := dialogFor(t, llm.Opening{Model: llm.Model{ID: tt.model, ThinkingLevels: tt.levels, Compat: tt.compat}, Thinking: tt.level})
		got := sent(t, c, llm.Call{}, llm.UserText("q"))
		want := `{"contents":[{"role":"user","parts":[{"text":"q"}]}]}`
		if tt.want != "" {
			want = strings.TrimSuffix(want, "}") + `,"generationConfig":{"thinkingConfig":` + tt.want + `}}`
		}
		if got != want {
			t.Errorf("%s at %s: %s, want %s", tt.model, tt.level, got, want)
		}
	}
}

func TestThinkingLeavesRoomForTheAnswer(t *testing.T) {
	t.Parallel()
	o := llm.Opening{Model: llm.Model{ID: "gemini-2.5-pro", ThinkingLevels: []llm.Level{llm.LevelHigh}}, Thinking: llm.LevelHigh}
	for most, want := range map[int64]string{0: `:32768`, 65536: `:32768`, 10_000: `:5000`, 200: `:128`, 1: `:128`} {
		got := sent(t, dialogFor(t, o), llm.Call{MaxOutputTokens: most}, llm.UserText("q"))
		if !strings.Contains(got, `"thinkingBudget"`+want) {
			t.Errorf("at most %d tokens: %s, want a budget of %s", most, got, want)
		}
	}
}

func asked(id string) llm.Part {
	return llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, ProviderID: "p" + id[2:], Name: "f", Arguments: json.RawMessage(`{"x":1}`)}}
}

func signedCall(id, signature string) llm.Part {
	p := asked(id)
	p.Signature = signature
	return p
}

func result(id string, isError bool, content ...llm.Part) llm.Part {
	return llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id, Name: "f", Content: content, IsError: isError}}
}

const (
	askedQ  = `{"role":"user","parts":[{"text":"q"}]}`
	picture = `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}`
)

func TestMessages(t *testing.T) {
	t.Parallel()
	q := llm.UserText("q")
	image := llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}
	assistant := func(model string, parts ...llm.Part) llm.Message {
		return llm.Message{Role: llm.RoleAssistant, Origin: llm.Origin{API: API, Model: model}, Parts: parts}
	}
	results := func(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleTool, Parts: parts} }
	thinking := func(text, signature string) llm.Part {
		return llm.Part{Type: llm.PartThinking, Text: text, Signature: signature}
	}
	const old, modern, other = "gemini-2.5-pro", "gemini-3-pro-preview", "tuned"
	for _, tt := range []struct {
		name, model string
		messages    []llm.Message
		want        string
	}{
		{"messages of one role are one", other, []llm.Message{q, llm.UserText("r")}, `{"role":"user","parts":[{"text":"q"},{"text":"r"}]}`},
		{"an image", other, []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.TextPart("q"), image}}}, `{"role":"user","parts":[{"text":"q"},` + picture + `]}`},
		{"blank texts and empty messages are dropped", other, []llm.Message{q, llm.UserText(" \n"), assistant(other), assistant(other, llm.TextPart("")), llm.UserText("r")},
			`{"role":"user","parts":[{"text":"q"},{"text":"r"}]}`},
		{"results stand apart from the next question", other, []llm.Message{q, assistant(other, llm.TextPart("a"), asked("1.0")), results(result("1.0", false, llm.TextPart("one"))), q},
			askedQ + `,{"role":"model","parts":[{"text":"a"},{"functionCall":{"id":"p0","name":"f","args":{"x":1}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"p0","name":"f","response":{"output":"one"}}}]},` + askedQ},
		{"results of one turn are one", other, []llm.Message{q, assistant(other, asked("1.0"), asked("1.1")), results(result("1.1", true, llm.TextPart("bad")), result("1.0", false))},
			askedQ + `,{"role":"model","parts":[{"functionCall":{"id":"p0","name":"f","args":{"x":1}}},{"functionCall":{"id":"p1","name":"f","args":{"x":1}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"p1","name":"f","response":{"error":"bad"}}},{"functionResponse":{"id":"p0","name":"f","response":{"output":"(no output)"}}}]}`},
		{"an older model has no ids, and images follow the results of all calls", old,
			[]llm.Message{q, assistant(old, asked("1.0"), asked("1.1")), results(result("1.0", false, image)), results(result("1.1", false, llm.TextPart("ok"))), q},
			askedQ + `,{"role":"model","parts":[{"functionCall":{"name":"f","args":{"x":1}}},{"functionCall":{"name":"f","args":{"x":1}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"(The result is an image.)"}}},{"functionResponse":{"name":"f","response":{"output":"ok"}}}]},` +
				`{"role":"user","parts":[{"text":"Images from the results above:"},` + picture + `,{"text":"q"}]}`},
		{"a newer model takes images inside", modern, []llm.Message{q, assistant(modern, signedCall("1.0", "c2ln")), results(result("1.0", true, llm.TextPart("see"), image, image))},
			askedQ + `,{"role":"model","parts":[{"functionCall":{"id":"p0","name":"f","args":{"x":1}},"thoughtSignature":"c2ln"}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"p0","name":"f","response":{"error":"see"},"parts":[` + picture + `,` + picture + `]}}]}`},
		{"signatures go back where they came from", old, []llm.Message{q, assistant(old, thinking("t", ""), thinking("", "dGg="), llm.TextPart("a"),
			llm.Part{Type: llm.PartText, Signature: "ZW1w_-"}, signedCall("1.0", "c2ln")), results(result("1.0", false, llm.TextPart("one")))},
			askedQ + `,{"role":"model","parts":[{"text":"","thought":true,"thoughtSignature":"dGg="},{"text":"a"},{"text":"","thoughtSignature":"ZW1w_-"},` +
				`{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}}]}`},
		{"but not to another model", old, []llm.Message{q, assistant("gemini-2.5-flash", thinking("t", "dGg="), llm.TextPart("a"), llm.Part{Type: llm.PartText, Signature: "ZW1w"},
			signedCall("1.0", "c2ln")), results(result("1.0", false, llm.TextPart("one")))},
			askedQ + `,{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f","args":{"x":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}}]}`},
		{"nor if they are no base64", old, []llm.Message{q, assistant(old, thinking("t", "a b"), llm.Part{Type: llm.PartText, Text: "a", Signature: "x"}, signedCall("1.0", "{}")),
			results(result("1.0", false, llm.TextPart("one")))},
			askedQ + `,{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f","args":{"x":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}}]}`},
		{"a newer model is told that a call from elsewhere has no signature", modern, []llm.Message{q, assistant("gpt-5", signedCall("1.0", "c2ln"), asked("1.1")),
			results(result("1.0", false, llm.TextPart("one")), result("1.1", false, llm.TextPart("two")))},
			askedQ + `,{"role":"model","parts":[{"functionCall":{"id":"call_1_0","name":"f","args":{"x":1}},"thoughtSignature":"skip_thought_signature_validator"},` +
				`{"functionCall":{"id":"call_1_1","name":"f","args":{"x":1}}}]},{"role":"user","parts":[{"functionResponse":{"id":"call_1_0","name":"f","response":{"output":"one"}}},` +
				`{"functionResponse":{"id":"call_1_1","name":"f","response":{"output":"two"}}}]}`},
		{"a message of thinking only is dropped", modern, []llm.Message{q, assistant(modern, thinking("t", "c2ln")), llm.UserText("r")}, `{"role":"user","parts":[{"text":"q"},{"text":"r"}]}`},
		{"a message of an empty signed text is kept", modern, []llm.Message{q, assistant(modern, llm.Part{Type: llm.PartText, Signature: "c2ln"}), q},
			askedQ + `,{"role":"model","parts":[{"text":"","thoughtSignature":"c2ln"}]},` + askedQ},
		{"arguments that were no object", other, []llm.Message{q, assistant(other, llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "1.0", ProviderID: "p0", Name: "f", ArgumentsError: "e", RawArguments: "{"}}),
			results(result("1.0", true, llm.TextPart("bad")))},
			askedQ + `,{"role":"model","parts":[{"functionCall":{"id":"p0","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"p0","name":"f","response":{"error":"bad"}}}]}`},
		{"calls without an id get ours", other, []llm.Message{q, assistant(other, llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "1.0", Name: "f"}}), results(result("1.0", false, llm.TextPart("one")))},
			askedQ + `,{"role":"model","parts":[{"functionCall":{"id":"call_1_0","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"call_1_0","name":"f","response":{"output":"one"}}}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dialogFor(t, llm.Opening{Model: llm.Model{ID: tt.model, Images: true}})
			want := `{"contents":[` + tt.want + `]}`
			if diff := cmp.Diff(want, sent(t, c, llm.Call{}, tt.messages...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnsignedThinkingGoesBackWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	c := dialogFor(t, llm.Opening{Model: llm.Model{ID: "m", Compat: llm.Compat{ReplayThinking: new(true)}}})
	got := sent(t, c, llm.Call{}, llm.UserText("q"), llm.Message{Role: llm.RoleAssistant, Origin: llm.Origin{API: API, Model: "m"},
		Parts: []llm.Part{{Type: llm.PartThinking, Text: "t"}, {Type: llm.PartThinking, Text: " "}, llm.TextPart("a")}}, llm.UserText("q"))
	if want := `{"contents":[` + askedQ + `,{"role":"model","parts":[{"text":"t","thought":true},{"text":"a"}]},` + askedQ + `]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAMessageThatFailsLeavesTheDialogAsItWas(t *testing.T) {
	t.Parallel()
	c := dialogFor(t, llm.Opening{})
	q := llm.UserText("q")
	before := sent(t, c, llm.Call{}, q, llm.Message{Role: llm.RoleAssistant, Origin: llm.Origin{API: API, Model: "m"}, Parts: []llm.Part{asked("1.0")}},
		llm.Message{Role: llm.RoleTool, Parts: []llm.Part{result("1.0", false)}})
	more := llm.Message{Role: llm.RoleAssistant, Origin: llm.Origin{API: API, Model: "m"}, Parts: []llm.Part{asked("2.0"), asked("2.1")}}
	if err := c.Append(more); err != nil {
		t.Fatal(err)
	}
	if err := c.Append(llm.Message{Role: llm.RoleTool, Parts: []llm.Part{result("2.0", false), result("9.9", false)}}); err == nil {
		t.Fatal("a result without a call was taken")
	}
	after := sent(t, c, llm.Call{}, llm.Message{Role: llm.RoleTool, Parts: []llm.Part{result("2.0", false), result("2.1", false)}})
	if !strings.HasPrefix(after, strings.TrimSuffix(before, "]}]}")) || strings.Count(after, `"functionResponse"`) != 3 {
		t.Errorf("%s after %s", after, before)
	}
}

func TestSchemasLoseTheirConstants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"none", `{"type": "object"}`, `{"type": "object"}`},
		{"no schema", ``, `{"type":"object","properties":{}}`},
		{"a text", `{"properties": {"a": {"const": "x" }}}`, `{"properties":{"a":{"enum":["x"]}}}`},
		{"a number", `{"properties":{"a":{"description":"d","const":1.5e3}}}`, `{"properties":{"a":{"description":"d","enum":[1.5e3]}}}`},
		{"beside its enum", `{"properties":{"a":{"enum":["x","y"],"const":"x"}}}`, `{"properties":{"a":{"enum":["x"]}}}`},
		{"other values stay", `{"properties":{"a":{"const":true,"enum":[true]},"b":{"const":null},"c":{"const":{"const":"x"}}}}`,
			`{"properties":{"a":{"const":true,"enum":[true]},"b":{"const":null},"c":{"const":{"const":"x"}}}}`},
		{"a property of that name", `{"properties":{"const":{"const":"x"},"b":{"type":"string"}},"required":["const"]}`, `{"properties":{"const":{"enum":["x"]},"b":{"type":"string"}},"required":["const"]}`},
		{"in values it is data", `{"default":{"const":"x"},"examples":[{"const":"x"}],"enum":[{"const":"x"}]}`, `{"default":{"const":"x"},"examples":[{"const":"x"}],"enum":[{"const":"x"}]}`},
		{"in lists and definitions", `{"anyOf":[{"const":"x"},true],"$defs":{"d":{"items":[{"const":2}]}},"additionalProperties":{"not":{"const":"n"}},"properties":[]}`,
			`{"anyOf":[{"enum":["x"]},true],"$defs":{"d":{"items":[{"enum":[2]}]}},"additionalProperties":{"not":{"enum":["n"]}},"properties":[]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := string(appendSchema(nil, llm.ToolSpec{InputSchema: json.RawMessage(tt.in)}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
