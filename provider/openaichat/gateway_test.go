package openaichat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

const openRouter = "https://openrouter.ai/api/v1"

func results(id string, content ...llm.Part) llm.Message {
	return llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id, Name: "f", Content: content}}}}
}

func calls(id string) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, Name: "f"}}}}
}

func TestAGatewayIsAskedToCacheForClaude(t *testing.T) {
	t.Parallel()
	const mark = `,"cache_control":{"type":"ephemeral"}`
	c := dialogAt(t, openRouter, llm.Opening{Model: llm.Model{ID: "anthropic/claude-haiku-4.5", Images: true}, System: "S", JobSystem: "J"})
	first := messagesOf(t, sent(t, c, llm.Call{}, llm.UserText("q")))
	want := `[{"role":"system","content":[{"type":"text","text":"S"` + mark + `},{"type":"text","text":"\n\nJ"}]},` +
		`{"role":"user","content":[{"type":"text","text":"q"` + mark + `}]}]`
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	second := messagesOf(t, sent(t, c, llm.Call{}, calls("1.0"), results("1.0", llm.TextPart("r"))))
	unmarked := strings.TrimSuffix(strings.Replace(first, `"q"`+mark, `"q"`, 1), "]")
	if !strings.HasPrefix(second, unmarked) || strings.Count(second, mark) != 2 ||
		!strings.HasSuffix(second, `,"content":[{"type":"text","text":"r"`+mark+`}]}]`) {
		t.Errorf("after a tool: %s", second)
	}
	png := llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}
	third := messagesOf(t, sent(t, c, llm.Call{}, calls("2.0"), results("2.0", png)))
	if strings.Count(third, mark) != 2 || !strings.Contains(third, `(The image follows after the results.)"`+mark+`}]}`) {
		t.Errorf("after an image: %s", third)
	}
	if err := c.Append(results("9.0", llm.TextPart("stray"))); err == nil {
		t.Error("a stray result was taken")
	}
	if again := messagesOf(t, sent(t, c, llm.Call{})); again != third {
		t.Errorf("a message that was refused moved the mark: %s", again)
	}
}

func TestNoCacheMarksWhereNobodyKnowsThem(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]struct {
		base  string
		model llm.Model
	}{
		"another model":    {openRouter, llm.Model{ID: "openai/gpt-5"}},
		"another server":   {unknown, llm.Model{ID: "anthropic/claude-haiku-4.5"}},
		"switched off":     {openRouter, llm.Model{ID: "anthropic/claude-haiku-4.5", Compat: llm.Compat{PromptCache: new(false)}}},
		"a server of ours": {"http://localhost:8080/v1", llm.Model{ID: "claude-like-7b"}},
	} {
		got := sent(t, dialogAt(t, o.base, llm.Opening{Model: o.model, System: "S"}), llm.Call{}, llm.UserText("q"))
		if strings.Contains(got, "cache") || !strings.Contains(got, `"content":"q"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestFaultsOfTheProviderBehindAGateway(t *testing.T) {
	t.Parallel()
	const metadata = `"metadata":{"provider_name":"Someone","raw":"{\"message\":\"upstream is on fire\"}"}`
	for name, tt := range map[string]struct {
		body  string
		whole bool
		class llm.Class
		says  string
	}{
		"in the stream": {part(`"content":"a"`) + data(`{"id":"g","error":{"code":502,"message":"Provider returned error",`+metadata+`},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
			false, llm.ClassOverloaded, "upstream is on fire"},
		"in the choice":       {data(`{"choices":[{"index":0,"delta":{},"error":{"code":429,"message":"slow"},"finish_reason":"error"}]}`), false, llm.ClassRateLimit, "slow"},
		"as a reason alone":   {data(`{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), false, llm.ClassProvider, "error"},
		"no money":            {data(`{"error":{"code":402,"message":"Insufficient credits"}}`), false, llm.ClassQuota, "credits"},
		"not streamed":        {`{"error":{"code":503,"message":"Provider returned error",` + metadata + `}}`, true, llm.ClassOverloaded, "upstream is on fire"},
		"a choice with fault": {`{"choices":[{"error":{"code":400,"message":"prompt is too long: 9 tokens > 8 maximum"},"message":{"content":""},"finish_reason":"error"}]}`, true, llm.ClassContextOverflow, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDecoder(llm.Origin{}, false, nil)
			var err error
			if tt.whole {
				_, err = d.Close(d.Whole([]byte(tt.body)))
			} else {
				_, err = wire.Decode(strings.NewReader(tt.body), d)
			}
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Class != tt.class || !strings.Contains(e.Message, tt.says) {
				t.Errorf("error %v, want class %s and %q", err, tt.class, tt.says)
			}
		})
	}
}

// unknownMembers returns what a server that knows only the oldest members of the API would refuse in a request.
func unknownMembers(t *testing.T, body []byte) []string {
	t.Helper()
	var request map[string]any
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	var found []string
	check := func(place string, value any, known ...string) map[string]any {
		object, _ := value.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if !slices.Contains(known, key) {
				found = append(found, place+key)
			}
		}
		return object
	}
	check("", request, "model", "stream", "messages", "tools", "max_tokens")
	tools, _ := request["tools"].([]any)
	for _, tool := range tools {
		check("function.", check("tool.", tool, "type", "function")["function"], "name", "description", "parameters")
	}
	messages, _ := request["messages"].([]any)
	for _, m := range messages {
		message := check("message.", m, "role", "content", "tool_calls", "tool_call_id")
		if role := message["role"]; !slices.Contains([]any{"system", "user", "assistant", "tool"}, role) {
			found = append(found, fmt.Sprint("role ", role))
		}
		if _, isList := message["content"].([]any); isList {
			found = append(found, "content as a list")
		}
	}
	return found
}

// TestServersThatRefuseWhatTheyDoNotKnow sends to a server of each dialect that answers 400 to every member it does not
// know. Each switch of the model turns one of them off, until the server is content.
func TestServersThatRefuseWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	plain := llm.Compat{DeveloperRole: new(false), StreamUsage: new(false), Store: new(false), MaxTokensField: "max_tokens",
		ThinkingDialect: "none", ReplayThinking: new(false), ToolResultName: new(false), StrictTools: new(false), PromptCache: new(false)}
	for _, h := range hosts() {
		t.Run(h.suffix, func(t *testing.T) {
			t.Parallel()
			refused := 0
			server := llmtest.NewServer(t)
			answer := func(w http.ResponseWriter, r *http.Request) {
				requests := server.Requests()
				if wrong := unknownMembers(t, requests[len(requests)-1].Body); len(wrong) > 0 {
					refused++
					llmtest.Status(400, "", "", fmt.Sprintf(`{"error":{"message":"unknown: %s"}}`, strings.Join(wrong, ", ")))(w, r)
					return
				}
				llmtest.Stream(llmtest.ChatEvents(llmtest.Reply{Text: []string{"ok"}, Stop: llmtest.Ends})...)(w, r)
			}
			endpoint, err := wire.NewEndpoint(llm.Account{BaseURL: server.URL}, "", Path, wire.Auth{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ask := func(compat llm.Compat) error {
				server.Queue(answer)
				c, err := Variant{API: API, Host: h.suffix}.Provider(endpoint).Converse(llm.Opening{System: "S", Thinking: llm.LevelLow,
					Model: llm.Model{ID: "claude-like", ThinkingLevels: llm.Levels(), Compat: compat},
					Tools: []llm.ToolSpec{{Name: "f", InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}}})
				if err != nil {
					t.Fatal(err)
				}
				thought := calls("1.0")
				thought.Origin = llm.Origin{API: API, Model: "claude-like"}
				thought.Parts = append([]llm.Part{{Type: llm.PartThinking, Text: "hm", Field: "reasoning"}}, thought.Parts...)
				for _, m := range []llm.Message{llm.UserText("q"), thought, results("1.0", llm.TextPart("r"))} {
					if err := c.Append(m); err != nil {
						t.Fatal(err)
					}
				}
				_, err = c.Stream(t.Context(), llm.Call{MaxOutputTokens: 9}, nil)
				return err
			}
			e, ok := errors.AsType[*llm.Error](ask(llm.Compat{}))
			if !ok || e.Class != llm.ClassInvalidRequest || e.Retryable() || refused != 1 {
				t.Errorf("with every default of %s: error %v", h.suffix, e)
			}
			if err := ask(plain); err != nil {
				t.Errorf("with everything off by name: %v", err)
			}
		})
	}
}
