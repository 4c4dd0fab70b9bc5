package llmtest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/anthropic"
	"github.com/hozo-run/hozo/provider/azure"
	"github.com/hozo-run/hozo/provider/bedrock"
	"github.com/hozo-run/hozo/provider/google"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/provider/openairesponses"
)

const (
	// proof is in every signature, so that one on the wire is seen.
	proof   = "UFJPT0Y="
	thought = "a thought of the other model"
	image   = "\x89PNG\r\n\x1a\n"
)

// family is one API as the writer of a history and as the reader of one.
type family struct {
	name, api string
	adapter   llm.Adapter
	base      string
	model     llm.Model
	// thinks are the thinking parts as this API's adapter keeps them, mark is what it keeps with texts and calls.
	thinks []llm.Part
	mark   string
	// id is what the API calls a call.
	id string
}

func families() []family {
	thinking := func(signature, field string) llm.Part {
		return llm.Part{Type: llm.PartThinking, Text: thought, Signature: signature, Field: field}
	}
	item := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + proof + `"}`
	return []family{
		{name: "chat", api: openaichat.API, adapter: openaichat.New, base: "https://openrouter.ai/api/v1", model: llm.Model{ID: "m"}, id: "call_one",
			thinks: []llm.Part{thinking(`[{"type":"reasoning.text","text":"`+thought+`","signature":"`+proof+`"}]`, "reasoning")}},
		{name: "responses", api: openairesponses.API, adapter: openairesponses.New, model: llm.Model{ID: "m"}, id: "call_one|fc_one",
			thinks: []llm.Part{thinking(item, "")}, mark: "commentary"},
		{name: "azure by chat", api: azure.API, adapter: azure.New, base: "https://name.openai.azure.com", model: llm.Model{ID: "m",
			Compat: llm.Compat{Method: azure.MethodChat}}, id: "call_one", thinks: []llm.Part{thinking("", "reasoning_content")}},
		{name: "azure by responses", api: azure.API, adapter: azure.New, base: "https://name.openai.azure.com", model: llm.Model{ID: "gpt-5"},
			id: "call_one|fc_one", thinks: []llm.Part{thinking(item, "")}},
		{name: "messages", api: anthropic.API, adapter: anthropic.New, model: llm.Model{ID: "claude-sonnet-4-5"}, id: "toolu_one",
			thinks: []llm.Part{thinking(proof, ""), {Type: llm.PartThinking, Redacted: true, Signature: proof}}},
		{name: "gemini", api: google.API, adapter: google.New, model: llm.Model{ID: "gemini-3-pro"}, id: "", thinks: []llm.Part{thinking(proof, "")}, mark: proof},
		{name: "converse", api: bedrock.API, adapter: bedrock.New, base: "http://127.0.0.1:9", model: llm.Model{ID: "us.anthropic.claude-sonnet-4-5-v1:0"},
			id: "tooluse_one", thinks: []llm.Part{thinking(proof, ""), {Type: llm.PartThinking, Redacted: true, Signature: proof}}},
	}
}

// history is an exchange that the family's model wrote: it calls two tools at once, then one more with an id that was
// used before, and a last one that nobody answered.
func (f family) history() []llm.Message {
	origin := llm.Origin{API: f.api, Model: f.model.ID}
	says := func(text string, ids ...string) llm.Message {
		parts := append(slices.Clone(f.thinks), llm.Part{Type: llm.PartText, Text: text, Signature: f.mark})
		for i, id := range ids {
			p := llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: id, Name: "look", Arguments: json.RawMessage(`{"at":"` + id + `"}`)}}
			if f.id != "" {
				p.ToolCall.ProviderID = f.id + strings.Repeat("x", i)
			}
			if f.mark == proof {
				p.Signature = proof
			}
			parts = append(parts, p)
		}
		return llm.Message{Role: llm.RoleAssistant, Origin: origin, Parts: parts}
	}
	result := func(id, text string, more ...llm.Part) llm.Part {
		return llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id, Name: "look", Content: append([]llm.Part{llm.TextPart(text)}, more...)}}
	}
	tools := func(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleTool, Parts: parts} }
	return []llm.Message{
		llm.UserText("first question"),
		says("I look twice", "1.0", "1.1"),
		tools(result("1.0", "result one"), result("1.1", "result two", llm.Part{Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png", Data: []byte(image)}})),
		says("and once more", "2.0"),
		tools(result("2.0", "result three")),
		says("and again", "3.0"),
		llm.UserText("second question"),
	}
}

// open returns the request that a model of the family is sent after the history.
func (f family) open(t *testing.T, id string, history []llm.Message) string {
	t.Helper()
	p, err := f.adapter(llm.Account{BaseURL: f.base, APIKey: "key"})
	if err != nil {
		t.Fatal(err)
	}
	m := f.model
	m.ID, m.Images, m.ThinkingLevels = id, true, []llm.Level{llm.LevelOff, llm.LevelLow, llm.LevelHigh}
	c, err := p.Converse(llm.Opening{Model: m, System: "S", Thinking: llm.LevelHigh, Tools: []llm.ToolSpec{{Name: "look"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, message := range history {
		if err := c.Append(message); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	request, err := c.Request(llm.Call{MaxOutputTokens: 20_000})
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

// TestAHistoryOfAnyModelOpensOnEveryOther takes the history that each API's model wrote to a model of each API.
func TestAHistoryOfAnyModelOpensOnEveryOther(t *testing.T) {
	t.Parallel()
	for _, from := range families() {
		for _, to := range families() {
			t.Run(fmt.Sprintf("%s to %s", from.name, to.name), func(t *testing.T) {
				t.Parallel()
				request := to.open(t, to.model.ID+"-2", llm.Answered(from.history()))
				for _, text := range []string{"first question", "I look twice", "result one", "result two", "and once more", "result three", "and again", "second question"} {
					if strings.Count(request, text) != 1 {
						t.Errorf("%q is there %d times", text, strings.Count(request, text))
					}
				}
				for _, text := range []string{thought, proof, "rs_1", "commentary"} {
					if strings.Contains(request, text) {
						t.Errorf("%q of another model went along", text)
					}
				}
				wantPairs(t, request, from.id)
				if t.Failed() {
					t.Log(request)
				}
			})
		}
	}
}

// TestThinkingGoesBackToTheModelThatWroteIt is the other half: the same history on the same model keeps everything.
func TestThinkingGoesBackToTheModelThatWroteIt(t *testing.T) {
	t.Parallel()
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			request := f.open(t, f.model.ID, llm.Answered(f.history()))
			want := proof
			if f.thinks[0].Signature == "" {
				want = ""
			}
			if !strings.Contains(request, want) {
				t.Errorf("no %q in %s", want, request)
			}
			if f.mark != "" && !strings.Contains(request, f.mark) {
				t.Errorf("no mark %q in %s", f.mark, request)
			}
			wantPairs(t, request, "")
		})
	}
}

// wantPairs checks that each of the four calls has an id of its own that its result names, and that no id is one that
// the other model gave. An API may do without ids, where the order says what belongs together.
func wantPairs(t *testing.T, request, foreign string) {
	t.Helper()
	var body any
	if err := json.Unmarshal([]byte(request), &body); err != nil {
		t.Fatal(err)
	}
	calls, results, anonymous := pairs(body)
	if anonymous > 0 && len(calls)+len(results) == 0 {
		if anonymous != 8 {
			t.Errorf("%d calls and results without ids, want 8", anonymous)
		}
		return
	}
	if len(calls) != 4 || anonymous > 0 || !slices.Equal(calls, results) {
		t.Errorf("calls %q, results %q, %d without an id", calls, results, anonymous)
	}
	slices.Sort(calls)
	if len(slices.Compact(calls)) != 4 {
		t.Error("an id is used twice")
	}
	call, _, _ := strings.Cut(foreign, "|")
	for _, id := range calls {
		if foreign != "" && strings.HasPrefix(id, call) {
			t.Errorf("the call has the id %q of another model", id)
		}
	}
}

// pairs finds the ids of calls and of results, whatever the API calls them, in the order of the request.
func pairs(value any) (calls, results []string, anonymous int) {
	var walk func(value any)
	note := func(list *[]string, object any, key string) {
		m, _ := object.(map[string]any)
		if id, ok := m[key].(string); ok {
			*list = append(*list, id)
		} else {
			anonymous++
		}
	}
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			switch {
			case v["type"] == "function" && v["arguments"] == nil && v["id"] != nil:
				note(&calls, v, "id")
			case v["role"] == "tool":
				note(&results, v, "tool_call_id")
			case v["type"] == "function_call":
				note(&calls, v, "call_id")
			case v["type"] == "function_call_output":
				note(&results, v, "call_id")
			case v["type"] == "tool_use":
				note(&calls, v, "id")
			case v["type"] == "tool_result":
				note(&results, v, "tool_use_id")
			case v["functionCall"] != nil:
				note(&calls, v["functionCall"], "id")
			case v["functionResponse"] != nil:
				note(&results, v["functionResponse"], "id")
			case v["toolUse"] != nil:
				note(&calls, v["toolUse"], "toolUseId")
			case v["toolResult"] != nil:
				note(&results, v["toolResult"], "toolUseId")
			default:
				for _, key := range []string{"messages", "input", "contents", "content", "parts", "tool_calls"} {
					walk(v[key])
				}
			}
		}
	}
	walk(value)
	return calls, results, anonymous
}
