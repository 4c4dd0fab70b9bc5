package openairesponses

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

const (
	official = "https://api.openai.com/v1"
	unknown  = "https://models.example/v1"
)

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

// sent returns the request after the messages as text, checked to be JSON.
func sent(t *testing.T, c *dialog, call llm.Call, messages ...llm.Message) string {
	t.Helper()
	for _, m := range messages {
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	request, err := c.Request(call)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, piece := range request.Body {
		text += string(piece)
	}
	if !json.Valid([]byte(text)) {
		t.Fatalf("not JSON: %s", text)
	}
	return text
}

// input returns the input items of a request.
func input(t *testing.T, request string) string {
	t.Helper()
	var r struct{ Input json.RawMessage }
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		t.Fatal(err)
	}
	return string(r.Input)
}

var thinks = []llm.Level{llm.LevelOff, llm.LevelLow, llm.LevelHigh}

func TestAWholeRequest(t *testing.T) {
	t.Parallel()
	warm := 0.25
	o := llm.Opening{
		Model: llm.Model{ID: "m-1", ThinkingLevels: thinks}, System: "Rules\n\"one\"", JobSystem: "Job", Temperature: &warm, Thinking: llm.LevelHigh,
		Tools: []llm.ToolSpec{{Name: "read", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object", "properties":{}}`)},
			{Name: "ls", Description: "Lists."}},
	}
	got := sent(t, dialogAt(t, unknown, o), llm.Call{MaxOutputTokens: 77}, llm.UserText("Hi\n"))
	want := `{"model":"m-1","stream":true,"store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"auto"},"temperature":0.25,"tools":[` +
		`{"type":"function","name":"read","description":"Reads.","strict":false,"parameters":{"type":"object", "properties":{}}},` +
		`{"type":"function","name":"ls","description":"Lists.","strict":false,"parameters":{"type":"object","properties":{}}}],` +
		`"input":[{"role":"system","content":"Rules\n\"one\"\n\nJob"},{"role":"user","content":[{"type":"input_text","text":"Hi\n"}]}],"max_output_tokens":77}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHeads(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	tools := []llm.ToolSpec{{Name: "f", InputSchema: schema}}
	for name, tt := range map[string]struct {
		base       string
		o          llm.Opening
		has, lacks string // words with a space between them
	}{
		"OpenAI and a model that thinks": {official, llm.Opening{Model: llm.Model{ThinkingLevels: thinks}, System: "S", Thinking: llm.LevelLow},
			`"role":"developer" "effort":"low" "summary":"auto" encrypted_content prompt_cache_key`, ``},
		"OpenAI and a model that does not": {official, llm.Opening{System: "S"}, `"role":"system" prompt_cache_key`, `reasoning`},
		"another server":                   {unknown, llm.Opening{Model: llm.Model{ThinkingLevels: thinks}, System: "S"}, `"role":"system" "store":false`, `prompt_cache_key summary`},
		"thinking is off":                  {official, llm.Opening{Model: llm.Model{ThinkingLevels: thinks}, Thinking: llm.LevelOff}, `"reasoning":{"effort":"none"}`, `summary`},
		"thinking cannot be off":           {official, llm.Opening{Model: llm.Model{ThinkingLevels: thinks[1:]}}, `encrypted_content`, `"reasoning":`},
		"another word for a level": {unknown, llm.Opening{Thinking: llm.LevelLow, Model: llm.Model{ThinkingLevels: thinks,
			Compat: llm.Compat{ThinkingEfforts: map[llm.Level]string{llm.LevelLow: "faint"}}}}, `"effort":"faint"`, `"low"`},
		"no summaries": {official, llm.Opening{Thinking: llm.LevelLow, Model: llm.Model{ThinkingLevels: thinks, Compat: llm.Compat{ThinkingDialect: "effort"}}},
			`"reasoning":{"effort":"low"}`, `summary`},
		"all off by name": {official, llm.Opening{System: "S", Tools: tools, Thinking: llm.LevelLow, Model: llm.Model{ThinkingLevels: thinks, Compat: llm.Compat{
			DeveloperRole: new(false), Store: new(false), PromptCache: new(false), ReplayThinking: new(false), ThinkingDialect: "none"}}},
			`"role":"system" "strict":false`, `store prompt_cache_key reasoning include`},
		"all on by name": {unknown, llm.Opening{System: "S", Tools: tools, Model: llm.Model{Compat: llm.Compat{
			DeveloperRole: new(true), PromptCache: new(true), StrictTools: new(true), ParallelToolCalls: new(false)}}},
			`"role":"developer" prompt_cache_key "strict":true "parallel_tool_calls":false`, ``},
		"a name of its own on the wire": {unknown, llm.Opening{Model: llm.Model{ID: "m", Compat: llm.Compat{Deployment: "mine"}}}, `"model":"mine"`, `"m"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sent(t, dialogAt(t, tt.base, tt.o), llm.Call{}, llm.UserText("q"))
			for _, word := range strings.Fields(tt.has) {
				if !strings.Contains(got, word) {
					t.Errorf("%s lacks %s", got, word)
				}
			}
			for _, word := range strings.Fields(tt.lacks) {
				if strings.Contains(got, word) {
					t.Errorf("%s has %s", got, word)
				}
			}
		})
	}
}

func TestTheCacheKeyIsThatOfTheAgentAndNotOfTheJob(t *testing.T) {
	t.Parallel()
	key := func(change func(*llm.Opening)) string {
		o := llm.Opening{System: "S", JobSystem: "J", Tags: llm.Tags{JobID: "job-1"}, Tools: []llm.ToolSpec{{Name: "f"}}}
		change(&o)
		var r struct {
			Key string `json:"prompt_cache_key"`
		}
		if err := json.Unmarshal([]byte(sent(t, dialogAt(t, official, o), llm.Call{}, llm.UserText("q"))), &r); err != nil {
			t.Fatal(err)
		}
		return r.Key
	}
	first := key(func(*llm.Opening) {})
	if len(first) != 32 {
		t.Errorf("key %q", first)
	}
	if other := key(func(o *llm.Opening) { o.JobSystem, o.Tags.JobID = "K", "job-2" }); other != first {
		t.Errorf("keys %s and %s of two jobs of one agent", first, other)
	}
	for name, change := range map[string]func(*llm.Opening){
		"system prompt": func(o *llm.Opening) { o.System = "T" },
		"tool":          func(o *llm.Opening) { o.Tools[0].Name = "g" },
		"model":         func(o *llm.Opening) { o.Model.ID = "n" },
	} {
		if key(change) == first {
			t.Errorf("another %s has the same key", name)
		}
	}
}

func TestTheOutputLimitIsAtLeastWhatTheAPITakes(t *testing.T) {
	t.Parallel()
	c := dialogAt(t, unknown, llm.Opening{})
	if got := sent(t, c, llm.Call{MaxOutputTokens: 3}, llm.UserText("q")); !strings.HasSuffix(got, `"max_output_tokens":16}`) {
		t.Error(got)
	}
	if got := sent(t, c, llm.Call{}); strings.Contains(got, "max_output_tokens") {
		t.Error(got)
	}
}

func assistant(model string, parts ...llm.Part) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: parts, Origin: llm.Origin{API: API, Model: model}}
}

func toolCall(id, providerID string) llm.Part {
	return llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, ProviderID: providerID, Name: "f", Arguments: json.RawMessage(`{"a":1}`)}}
}

func result(id, providerID string, content ...llm.Part) llm.Part {
	return llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id, ProviderID: providerID, Name: "f", Content: content}}
}

func tools(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleTool, Parts: parts} }

func thought(signature string) llm.Part {
	return llm.Part{Type: llm.PartThinking, Text: "hm", Signature: signature}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	const (
		sealed = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`
		open   = `{"type":"reasoning","id":"rs_2","summary":[]}`
		text   = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}`
	)
	callItem := func(ids string) string {
		return `{"type":"function_call",` + ids + `,"name":"f","arguments":"{\"a\":1}"}`
	}
	output := func(id, out string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":` + out + `}`
	}
	answered := tools(result("1.0", "call_1|fc_1", llm.TextPart("1")))
	for name, tt := range map[string]struct {
		compat   llm.Compat
		messages []llm.Message
		want     string
	}{
		"thinking goes back before its call": {llm.Compat{}, []llm.Message{assistant("m", thought(sealed), toolCall("1.0", "call_1|fc_1")), answered},
			sealed + "," + callItem(`"call_id":"call_1","id":"fc_1"`) + "," + output("call_1", `"1"`)},
		"thinking goes back before its text": {llm.Compat{}, []llm.Message{assistant("m", thought(sealed), llm.TextPart("x"))}, sealed + "," + text},
		"thinking that is not encrypted does not": {llm.Compat{}, []llm.Message{assistant("m", thought(open), toolCall("1.0", "call_1|fc_1")), answered},
			callItem(`"call_id":"call_1"`) + "," + output("call_1", `"1"`)},
		"unless the server reads it": {llm.Compat{ReplayThinking: new(true)}, []llm.Message{assistant("m", thought(open), llm.TextPart("x"))}, open + "," + text},
		"nor if it is off":           {llm.Compat{ReplayThinking: new(false)}, []llm.Message{assistant("m", thought(sealed), llm.TextPart("x"))}, text},
		"thinking of another model does not, nor its ids": {llm.Compat{}, []llm.Message{assistant("n", thought(sealed), toolCall("1.0", "call_1|fc_1")), answered},
			callItem(`"call_id":"call_1_0"`) + "," + output("call_1_0", `"1"`)},
		"thinking that nothing follows does not": {llm.Compat{}, []llm.Message{assistant("m", llm.TextPart("x"), thought(sealed))}, text},
		"thinking alone is no message":           {llm.Compat{}, []llm.Message{assistant("m", thought(sealed))}, ""},
		"an item goes back once":                 {llm.Compat{}, []llm.Message{assistant("m", thought(sealed), thought(sealed), llm.TextPart("x"))}, sealed + "," + text},
		"what is no item does not go back":       {llm.Compat{}, []llm.Message{assistant("m", thought("c2ln"), thought(`{"type":"message"}`), llm.TextPart("x"))}, text},
		"an id that is used twice is replaced": {llm.Compat{}, []llm.Message{assistant("m", toolCall("1.0", "call_1|fc_1"), toolCall("1.1", "call_1|fc_1")),
			tools(result("1.0", "call_1|fc_1"), result("1.1", "call_1|fc_1", llm.TextPart("2")))},
			callItem(`"call_id":"call_1"`) + "," + callItem(`"call_id":"call_1_1"`) + "," + output("call_1", `"(no output)"`) + "," + output("call_1_1", `"2"`)},
		"a result is found by the provider's id": {llm.Compat{}, []llm.Message{assistant("m", toolCall("", "call_1|fc_1")), tools(result("", "call_1|fc_1", llm.TextPart("1")))},
			callItem(`"call_id":"call_1"`) + "," + output("call_1", `"1"`)},
		"a text keeps its mark": {llm.Compat{}, []llm.Message{assistant("m", llm.Part{Type: llm.PartText, Text: "x", Signature: "commentary"})},
			strings.Replace(text, `"assistant",`, `"assistant","phase":"commentary",`, 1)},
		"the mark of another model is dropped": {llm.Compat{}, []llm.Message{assistant("n", llm.Part{Type: llm.PartText, Text: "x", Signature: "commentary"})}, text},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dialogAt(t, unknown, llm.Opening{Model: llm.Model{ID: "m", ThinkingLevels: thinks, Compat: tt.compat}})
			got := input(t, sent(t, c, llm.Call{}, append(append([]llm.Message{llm.UserText("q")}, tt.messages...), llm.UserText("q"))...))
			const user = `{"role":"user","content":[{"type":"input_text","text":"q"}]}`
			want := "[" + user + "," + tt.want + "," + user + "]"
			if tt.want == "" {
				want = "[" + user + "," + user + "]"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImagesStayInsideTheirResult(t *testing.T) {
	t.Parallel()
	png := llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}
	const image = `{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBORw0KGgo="}`
	for name, tt := range map[string]struct {
		images  bool
		content []llm.Part
		want    string
	}{
		"an image":                     {true, []llm.Part{png}, "[" + image + "]"},
		"text and an image":            {true, []llm.Part{llm.TextPart("a"), png, llm.TextPart("b")}, `[{"type":"input_text","text":"a\nb"},` + image + "]"},
		"a model that takes no images": {false, []llm.Part{png}, `[{"type":"input_text","text":"(An image belongs here, but this model takes no images.)"}]`},
	} {
		c := dialogAt(t, unknown, llm.Opening{Model: llm.Model{ID: "m", Images: tt.images}})
		got := sent(t, c, llm.Call{}, llm.UserText("q"), assistant("m", toolCall("1.0", "call_1")), tools(result("1.0", "call_1", tt.content...)))
		if !strings.Contains(got, `"output":`+tt.want+`}`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestOpeningsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	p, err := New(llm.Account{BaseURL: unknown})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]llm.Opening{
		"model id":        {},
		"thinkingDialect": {Model: llm.Model{ID: "m", Compat: llm.Compat{ThinkingDialect: "deepseek"}}},
		"no level":        {Model: llm.Model{ID: "m"}, Thinking: llm.LevelHigh},
	} {
		if _, err := p.Converse(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %s", err, want)
		}
	}
}
