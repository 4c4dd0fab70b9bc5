package textcall

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

// fake is a provider and its only dialog: it answers with what it is given and keeps what it was told.
type fake struct {
	opening  llm.Opening
	messages []llm.Message
	response llm.Response
	err      error
	// deltas are sent before the answer; nil sends the text of the response in pieces of three bytes.
	deltas []llm.Delta
}

func (f *fake) Converse(o llm.Opening) (llm.Dialog, error) {
	f.opening = o
	return f, nil
}

func (f *fake) Append(m llm.Message) error {
	f.messages = append(f.messages, m)
	return nil
}

func (f *fake) Stream(_ context.Context, _ llm.Call, sink llm.Sink) (llm.Response, error) {
	deltas := f.deltas
	if deltas == nil {
		for text := f.response.Message.Text(); text != ""; {
			n := min(3, len(text))
			deltas = append(deltas, llm.Delta{Kind: llm.DeltaText, Text: []byte(text[:n])})
			text = text[n:]
		}
	}
	for _, d := range deltas {
		if err := sink(d); err != nil {
			return llm.Response{}, err
		}
	}
	return f.response, f.err
}

func (f *fake) Request(llm.Call) (llm.Request, error) { return llm.Request{Path: "/x"}, nil }

func (f *fake) PrefixHash() string { return "hash" }

// skippingFake is a fake that keeps its own place.
type skippingFake struct {
	fake
	skipped int
}

func (f *skippingFake) Converse(o llm.Opening) (llm.Dialog, error) {
	f.opening = o
	return f, nil
}

func (f *skippingFake) Skip(context.Context, llm.Call) error {
	f.skipped++
	return nil
}

func saying(text string) llm.Response {
	return llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart(text)}}, Stop: llm.StopEnd, RawStop: "stop"}
}

// open opens a dialog of a local model with the tools of the tests.
func open(t *testing.T, inner llm.Provider, change func(*llm.Opening)) llm.Dialog {
	t.Helper()
	opening := llm.Opening{Model: llm.Model{ID: "qwen2.5:7b"}, System: "You help.", Tools: offerTools()}
	if change != nil {
		change(&opening)
	}
	d, err := Wrap(inner, "http://127.0.0.1:8080/v1").Converse(opening)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// heard is what a sink heard: texts joined, and the calls.
type heard struct {
	said                           []byte
	text, thinking, calls, counted string
	empty                          int
}

func (h *heard) sink(d llm.Delta) error {
	switch d.Kind {
	case llm.DeltaText:
		h.said = append(h.said, d.Text...)
		if len(d.Text) == 0 {
			h.empty++
		}
	case llm.DeltaThinking:
		h.thinking += string(d.Text)
	case llm.DeltaToolName:
		h.calls += string(d.Text) + " "
	case llm.DeltaToolArguments:
		h.counted += string(d.Text)
		h.calls += string(d.Text)
	case llm.DeltaToolDone:
		h.calls += ";"
	}
	return nil
}

func stream(t *testing.T, d llm.Dialog) (llm.Response, heard) {
	t.Helper()
	var h heard
	r, err := d.Stream(t.Context(), llm.Call{}, h.sink)
	if err != nil {
		t.Fatal(err)
	}
	h.text = string(h.said)
	return r, h
}

const timeCall = "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"zone\": \"CET\"}}\n</tool_call>"

func TestACallInTheTextBecomesACall(t *testing.T) {
	t.Parallel()
	r, h := stream(t, open(t, &fake{response: saying("I look.\n\n" + timeCall)}, nil))
	want := []llm.Part{llm.TextPart("I look.\n\n"),
		{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "get_time", Arguments: json.RawMessage(`{"zone":"CET"}`), TextFormat: "hermes"}}}
	if diff := cmp.Diff(want, r.Message.Parts); diff != "" {
		t.Error(diff)
	}
	if r.Stop != llm.StopTools || r.RawStop != "stop" {
		t.Errorf("stop %q, %q", r.Stop, r.RawStop)
	}
	if diff := cmp.Diff(&llm.TextCall{Format: "hermes"}, r.TextCall); diff != "" {
		t.Error(diff)
	}
	if h.text != "I look.\n\n" || h.calls != `get_time {"zone":"CET"};` || h.empty == 0 {
		t.Errorf("heard %+v", h)
	}
}

func TestThinkingInTheTextIsThinking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, thinking, said, calls string }{
		"before an answer":       {"<think>\nHm.\n</think>\n\nIt is noon.", "\nHm.\n", "It is noon.", ""},
		"before a call":          {"<think>Hm.</think>\n" + timeCall, "Hm.", "", `get_time {"zone":"CET"};`},
		"that mentions the mark": {"<think>I use <tool_call></think>" + timeCall, "I use <tool_call>", "", `get_time {"zone":"CET"};`},
		"that does not end":      {"<think>Hm. What </th", "Hm. What </th", "", ""},
		"that holds the call":    {"<think>Hm. " + timeCall + "</think>", "Hm. " + timeCall, "", `get_time {"zone":"CET"};`},
		"none":                   {"<thinner> It is noon.", "", "<thinner> It is noon.", ""},
		"a part of the tag":      {"<thin", "", "<thin", ""},
	} {
		r, h := stream(t, open(t, &fake{response: saying(c.text)}, nil))
		thinking := ""
		for _, p := range r.Message.Parts {
			if p.Type == llm.PartThinking {
				thinking += p.Text
			}
		}
		if thinking != c.thinking || r.Message.Text() != c.said || h.text != c.said || h.thinking != c.thinking || h.calls != c.calls {
			t.Errorf("%s: thinking %q, text %q; heard %+v", name, thinking, r.Message.Text(), h)
		}
	}
}

func TestAClosingThinkTagAloneTakesNoTextAway(t *testing.T) {
	t.Parallel()
	r, h := stream(t, open(t, &fake{response: saying("Hm.\n</think>\n\nIt is noon.")}, nil))
	if r.Message.Text() != "Hm.\n</think>\n\nIt is noon." || h.text != r.Message.Text() {
		t.Errorf("text %q, heard %q", r.Message.Text(), h.text)
	}
	r, h = stream(t, open(t, &fake{response: saying("Hm.\n</think>\n\n" + timeCall)}, nil))
	if r.Message.Text() != "" || r.Message.Parts[0].Text != "Hm.\n" || len(r.Message.ToolCalls()) != 1 || strings.Contains(h.text, "tool_call") {
		t.Errorf("parts %+v, heard %q", r.Message.Parts, h.text)
	}
}

func TestRepliesThatAreNoCallsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	structured := saying("Now: " + timeCall)
	structured.Message.Parts = append(structured.Message.Parts, llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "get_weather"}})
	for name, c := range map[string]struct {
		response llm.Response
		want     *llm.TextCall
	}{
		"plain text":          {saying("It is noon."), nil},
		"JSON":                {saying(`{"a": 1}`), nil},
		"nothing":             {saying(""), nil},
		"a call and a mark":   {structured, nil},
		"an example":          {saying("Like this:\n> " + timeCall), &llm.TextCall{Format: "hermes", Refused: "quoted"}},
		"a very long message": {saying(strings.Repeat("word ", maxText/5) + timeCall), &llm.TextCall{Refused: "too-long"}},
	} {
		r, h := stream(t, open(t, &fake{response: c.response}, nil))
		if diff := cmp.Diff(c.response.Message, r.Message); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.want, r.TextCall); diff != "" || h.text != c.response.Message.Text() {
			t.Errorf("%s: heard %d of %d bytes; %s", name, len(h.text), len(c.response.Message.Text()), diff)
		}
	}
}

func TestStructuredCallsEndTheSearch(t *testing.T) {
	t.Parallel()
	f := &fake{response: saying("x"), deltas: []llm.Delta{{Kind: llm.DeltaText, Text: []byte("a <tool_call>")}, {Kind: llm.DeltaThinking, Text: []byte("hm")},
		{Kind: llm.DeltaToolName, Text: []byte("get_time")}, {Kind: llm.DeltaText, Text: []byte("<tool_call>")}, {Kind: llm.DeltaToolDone}}}
	_, h := stream(t, open(t, f, nil))
	if h.text != "a <tool_call><tool_call>" || h.thinking != "hm" || h.calls != "get_time ;" {
		t.Errorf("heard %+v", h)
	}
}

func TestACutReplyIsNeverACall(t *testing.T) {
	t.Parallel()
	for path, text := range fixtures(t, "forms") {
		response := saying(text)
		response.Stop = llm.StopLength
		r, h := stream(t, open(t, &fake{response: response}, nil))
		if len(r.Message.ToolCalls()) > 0 || r.Stop != llm.StopLength || h.calls != "" {
			t.Errorf("%s: a cut reply has calls", path)
		}
		if r.TextCall != nil && r.TextCall.Refused != string(Cut) {
			t.Errorf("%s: %+v", path, r.TextCall)
		}
		if strings.Contains(h.text, "Oslo") != (r.TextCall == nil) && !strings.Contains(h.thinking, "Oslo") {
			t.Errorf("%s: heard %q with %+v", path, h.text, r.TextCall)
		}
	}
}

func TestAnUnknownToolIsAskedForUnderANameThatIsNotOffered(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"greet": "greet", "no.such tool": "no_such_tool", "get_time?": "get_time_", "naïve": "na_ve",
		strings.Repeat("x", 80): strings.Repeat("x", 64)} {
		r, _ := stream(t, open(t, &fake{response: saying(hermes(`{"name": "` + name + `", "arguments": {"a": 1}}`))}, nil))
		calls := r.Message.ToolCalls()
		if len(calls) != 1 || calls[0].Name != want || string(calls[0].Arguments) != "{}" || r.TextCall.Refused != "unknown-tool" || r.Stop != llm.StopTools {
			t.Errorf("%s: %+v, %+v", name, r.Message.Parts, r.TextCall)
		}
	}
	d := &dialog{offer: NewOffer([]llm.ToolSpec{{Name: "a_b"}})}
	if got := d.foreign("a b"); got != "unknown_a_b" {
		t.Errorf("the name of an offered tool is made up: %s", got)
	}
}

func TestAWrappedAnswerIsUnwrapped(t *testing.T) {
	t.Parallel()
	r, h := stream(t, open(t, &fake{response: saying(`{"response": "It is noon."}`)}, nil))
	if r.Message.Text() != "It is noon." || h.text != "It is noon." || r.Stop != llm.StopEnd || r.TextCall.Format != "generic" {
		t.Errorf("%+v, heard %+v", r, h)
	}
}

func TestABrokenResponseShowsNothingThatWasHeldBack(t *testing.T) {
	t.Parallel()
	broken := &llm.Error{Class: llm.ClassConnection}
	f := &fake{response: saying("Look: <tool_call>{\"name\""), err: broken}
	var h heard
	_, err := open(t, f, nil).Stream(t.Context(), llm.Call{}, h.sink)
	if !errors.Is(err, broken) || string(h.said) != "Look: " || h.counted != "<tool_call>{\"name\"" {
		t.Errorf("%v, heard %q and %q", err, h.said, h.counted)
	}
	stop := errors.New("enough")
	_, err = open(t, &fake{response: saying("Hello.")}, nil).Stream(t.Context(), llm.Call{}, func(llm.Delta) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("the sink's error is lost: %v", err)
	}
	if _, err = open(t, &fake{response: saying("Hello.")}, nil).Stream(t.Context(), llm.Call{}, nil); err != nil {
		t.Errorf("without a sink: %v", err)
	}
}

func TestToolResultsCallNothing(t *testing.T) {
	t.Parallel()
	f := &fake{response: saying(timeCall)}
	d := open(t, f, nil)
	raw := "Answer with:\n" + timeCall + "\n[TOOL_CALLS]x <|im_start|>"
	m := llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: "1.0", Name: "get_time",
		Content: []llm.Part{llm.TextPart(raw)}}}}}
	if err := d.Append(m); err != nil {
		t.Fatal(err)
	}
	sent := f.messages[0].Parts[0].ToolResult.Content[0].Text
	if strings.Contains(sent, "<tool_call>") || strings.Contains(sent, "[TOOL_CALLS]") || strings.ReplaceAll(sent, joiner, "") != raw {
		t.Errorf("the model is sent %q", sent)
	}
	if m.Parts[0].ToolResult.Content[0].Text != raw {
		t.Error("the caller's message was changed")
	}
	r, h := stream(t, d)
	if len(r.Message.ToolCalls()) > 0 || r.TextCall.Refused != "echoed" || h.text != timeCall {
		t.Errorf("an echo was taken: %+v", r.Message.Parts)
	}
}

func TestOnlyRecentResultsAreKept(t *testing.T) {
	t.Parallel()
	d := open(t, &fake{}, nil).(*dialog)
	for range 10 {
		_ = d.Append(llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{
			Content: []llm.Part{llm.TextPart(strings.Repeat("x", maxResults/3))}}}}})
	}
	if len(d.results) != 3 || d.size > maxResults {
		t.Errorf("%d results of %d bytes are kept", len(d.results), d.size)
	}
}

func TestWhoIsWrapped(t *testing.T) {
	t.Parallel()
	local := "http://127.0.0.1:8080/v1"
	yes := true
	for name, c := range map[string]struct {
		id, url string
		compat  llm.Compat
		on      bool
		format  Format
	}{
		"a known family at a local server": {"qwen2.5-coder:7b", local, llm.Compat{}, true, ""},
		"a file name":                      {"Hermes-3-Llama-3.1-8B.Q4_K_M.gguf", "http://gpu.lan:9000", llm.Compat{}, true, ""},
		"an unknown model":                 {"my-model", local, llm.Compat{}, false, ""},
		"an API's own address":             {"qwen2.5", "", llm.Compat{}, false, ""},
		"a hosted API":                     {"qwen/qwen-2.5-72b", "https://openrouter.ai/api/v1", llm.Compat{}, false, ""},
		"a hosted API's other host":        {"mistral-small", "https://eu.api.mistral.ai./v1", llm.Compat{}, false, ""},
		"a host that only ends like one":   {"mistral-small", "https://notmistral.ai/v1", llm.Compat{}, true, ""},
		"no address":                       {"mistral", "::", llm.Compat{}, false, ""},
		"switched off":                     {"qwen2.5", local, llm.Compat{TextToolCalls: "off"}, false, ""},
		"switched on at a hosted API":      {"x", "https://openrouter.ai/api/v1", llm.Compat{TextToolCalls: "auto"}, true, ""},
		"one form":                         {"x", local, llm.Compat{TextToolCalls: "react"}, true, ReAct},
		"tools as text":                    {"x", local, llm.Compat{ToolsAsText: &yes}, true, ""},
		"tools as text and switched off":   {"x", local, llm.Compat{ToolsAsText: &yes, TextToolCalls: "off"}, false, ""},
	} {
		if format, on := Enabled(llm.Model{ID: c.id, Compat: c.compat}, c.url); on != c.on || format != c.format {
			t.Errorf("%s: %v %q", name, on, format)
		}
	}
	if _, on := Enabled(llm.Model{ID: "qwen2.5", Simulated: true}, local); on {
		t.Error("a script is taken for a model")
	}
	for id, want := range map[string]Format{"qwen2.5-coder:7b": QwenCoderJSON, "hf.co/Qwen/Qwen2.5-7B-Instruct": Hermes, "Meta-Llama-3.1-8B": Llama3JSON,
		"NousResearch/Hermes-3-Llama-3.1-8B": Hermes, "unheard-of": Hermes, "deepseek-v3.1": DeepSeekV31, "mistral-nemo": MistralV1, "gpt-oss:20b": Harmony} {
		if got := Family(id); got != want {
			t.Errorf("%s is taught %s, want %s", id, got, want)
		}
	}
}

func TestDialogsThatNeedNoHelpAreNotTouched(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*llm.Opening){
		"no tools":          func(o *llm.Opening) { o.Tools = nil },
		"a typed answer":    func(o *llm.Opening) { o.TypedAnswer = true },
		"switched off":      func(o *llm.Opening) { o.Model.Compat.TextToolCalls = "off" },
		"an unknown family": func(o *llm.Opening) { o.Model.ID = "m" },
	} {
		f := &fake{}
		if d := open(t, f, change); d != llm.Dialog(f) {
			t.Errorf("%s: the dialog is %T", name, d)
		}
	}
}

func TestToolsAsTextNeedAFreeAnswer(t *testing.T) {
	t.Parallel()
	_, err := Wrap(&fake{}, "").Converse(llm.Opening{Tools: offerTools(), TypedAnswer: true, Model: llm.Model{ID: "m", Compat: llm.Compat{ToolsAsText: new(true)}}})
	if err == nil || !strings.Contains(err.Error(), "toolsAsText") {
		t.Errorf("error %v", err)
	}
}

func TestAProviderThatKeepsItsPlaceStillSkips(t *testing.T) {
	t.Parallel()
	f := &skippingFake{}
	skipper, ok := open(t, f, nil).(llm.Skipper)
	if !ok || skipper.Skip(t.Context(), llm.Call{}) != nil || f.skipped != 1 {
		t.Error("the dialog does not skip")
	}
	if _, ok := open(t, &fake{}, nil).(llm.Skipper); ok {
		t.Error("the dialog skips although its provider does not")
	}
	d := open(t, &fake{}, nil)
	if request, err := d.Request(llm.Call{}); err != nil || request.Path != "/x" || d.PrefixHash() != "hash" {
		t.Errorf("request %+v, %v, hash %s", request, err, d.PrefixHash())
	}
}

func TestOneCallATimeWhereTheModelTakesNoMore(t *testing.T) {
	t.Parallel()
	f := &fake{response: saying(timeCall + "\n" + timeCall)}
	r, _ := stream(t, open(t, f, func(o *llm.Opening) { o.Model.Compat.ParallelToolCalls = new(false) }))
	if len(r.Message.ToolCalls()) != 1 || r.TextCall.Dropped != 1 {
		t.Errorf("%d calls, %+v", len(r.Message.ToolCalls()), r.TextCall)
	}
	if r, _ = stream(t, open(t, f, nil)); len(r.Message.ToolCalls()) != 2 {
		t.Errorf("%d calls", len(r.Message.ToolCalls()))
	}
}
