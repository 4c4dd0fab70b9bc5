package textcall_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/llm/textcall"
	"github.com/hozo-run/hozo/provider/openaichat"
)

// localServer answers as servers of local models do: text in small pieces, an empty list of calls, "stop" at the end.
func localServer(text string) llmtest.Answer {
	var events []string
	event := func(format string, args ...any) {
		events = append(events, "data: "+fmt.Sprintf(format, args...)+"\n\n")
	}
	event(`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}`)
	for text != "" {
		n := min(5, len(text))
		piece, err := json.Marshal(text[:n])
		if err != nil {
			panic(err)
		}
		event(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":%s,"tool_calls":[]},"finish_reason":null}]}`, piece)
		text = text[n:]
	}
	event(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29}}`)
	event("[DONE]")
	return llmtest.Stream(events...)
}

func tools() []llm.ToolSpec {
	return []llm.ToolSpec{{Name: "read_page", Description: "Read a page.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"},"lines":{"type":"integer"}},"required":["url"]}`)}}
}

// ask runs a dialog of two turns: a call in the text, its result, and an answer. It returns both requests.
func ask(t *testing.T, compat llm.Compat, call string) (deltas string, bodies [2]map[string]any) {
	t.Helper()
	server := llmtest.NewServer(t, localServer("I look.\n"+call), localServer("Done."))
	inner, err := openaichat.New(llm.Account{BaseURL: server.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := textcall.Wrap(inner, server.URL+"/v1").Converse(llm.Opening{Model: llm.Model{ID: "qwen2.5:7b", Compat: compat}, System: "You help.", Tools: tools()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Append(llm.UserText("Read it.")); err != nil {
		t.Fatal(err)
	}
	r, err := d.Stream(t.Context(), llm.Call{}, func(delta llm.Delta) error {
		if delta.Kind == llm.DeltaText {
			deltas += string(delta.Text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := r.Message.ToolCalls()
	if len(calls) != 1 || calls[0].Name != "read_page" || string(calls[0].Arguments) != `{"url":"https://example.com","lines":10}` || r.Stop != llm.StopTools ||
		r.Usage.Output != 9 {
		t.Fatalf("response %+v, calls %+v", r, calls)
	}
	calls[0].ID = "1.0"
	result := llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: "1.0", Name: "read_page",
		Content: []llm.Part{llm.TextPart("A page.")}}}}}
	for _, m := range []llm.Message{r.Message, result} {
		if err := d.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	if r, err = d.Stream(t.Context(), llm.Call{}, nil); err != nil || r.Message.Text() != "Done." || r.TextCall != nil {
		t.Fatalf("second response %+v, %v", r, err)
	}
	for i, request := range server.Requests() {
		if err := json.Unmarshal(request.Body, &bodies[i]); err != nil {
			t.Fatal(err)
		}
	}
	return deltas, bodies
}

const pageCall = "<tool_call>\n{\"name\": \"read_page\", \"arguments\": {\"url\": \"https://example.com\", \"lines\": \"10\"}}\n</tool_call>"

func TestAServerThatTakesTools(t *testing.T) {
	t.Parallel()
	deltas, bodies := ask(t, llm.Compat{}, pageCall)
	if deltas != "I look.\n" {
		t.Errorf("shown %q", deltas)
	}
	if bodies[0]["tools"] == nil {
		t.Error("the tools are not declared")
	}
	messages := bodies[1]["messages"].([]any)
	assistant, result := messages[2].(map[string]any), messages[3].(map[string]any)
	if assistant["tool_calls"] == nil || strings.Contains(fmt.Sprint(assistant["content"]), "tool_call") || result["role"] != "tool" {
		t.Errorf("the history is %v", messages)
	}
}

func TestAServerThatTakesNoTools(t *testing.T) {
	t.Parallel()
	deltas, bodies := ask(t, llm.Compat{ToolsAsText: new(true)}, pageCall)
	if deltas != "I look.\n" {
		t.Errorf("shown %q", deltas)
	}
	if _, declared := bodies[1]["tools"]; declared {
		t.Error("the request declares tools")
	}
	messages := bodies[1]["messages"].([]any)
	system, assistant, result := messages[0].(map[string]any), messages[2].(map[string]any), messages[3].(map[string]any)
	if !strings.Contains(fmt.Sprint(system["content"]), `{"name":"read_page"`) {
		t.Errorf("the prompt is %v", system)
	}
	want := "I look.\n<tool_call>\n{\"name\":\"read_page\",\"arguments\":{\"url\":\"https://example.com\",\"lines\":10}}\n</tool_call>"
	if assistant["content"] != want || assistant["tool_calls"] != nil {
		t.Errorf("the call is sent as %v", assistant)
	}
	if result["role"] != "user" || fmt.Sprint(result["content"]) != "<tool_response>\nresult of read_page (call 1.0):\nA page.\n</tool_response>\n" {
		t.Errorf("the result is sent as %v", result)
	}
}

func TestAModelOfAnotherForm(t *testing.T) {
	t.Parallel()
	call := "[TOOL_CALLS]read_page[ARGS]{\"url\": \"https://example.com\", \"lines\": 10}"
	_, bodies := ask(t, llm.Compat{ToolsAsText: new(true)}, call)
	assistant := bodies[1]["messages"].([]any)[2].(map[string]any)
	if assistant["content"] != "I look.\n[TOOL_CALLS]read_page[ARGS]{\"url\":\"https://example.com\",\"lines\":10}" {
		t.Errorf("the call is sent as %v", assistant["content"])
	}
}

func TestAServerThatFails(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Status(http.StatusBadRequest, "", "", `{"error":{"message":"tools are not supported"}}`))
	inner, err := openaichat.New(llm.Account{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	d, err := textcall.Wrap(inner, server.URL).Converse(llm.Opening{Model: llm.Model{ID: "qwen2.5"}, Tools: tools()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Append(llm.UserText("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Stream(t.Context(), llm.Call{}, nil); err == nil || !strings.Contains(err.Error(), "tools are not supported") {
		t.Errorf("error %v", err)
	}
}
