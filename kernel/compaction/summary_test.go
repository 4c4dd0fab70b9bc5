package compaction_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/kernel/compaction"
	"github.com/hozo-run/hozo/llm"
)

// begin returns the summariser of a dialog whose old part holds messages.
func begin(t *testing.T, window int64, messages ...llm.Message) *compaction.Summariser {
	t.Helper()
	d := work(0, 0)
	d.Append(messages...)
	d.Append(work(60, 900).Messages[1:]...)
	s := compaction.New(input(d, window)).Summarise()
	if s == nil {
		t.Fatal("there is nothing to summarise")
	}
	return s
}

func TestTheRecordShowsTheDialogAndNothingElse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1500) + "MIDDLE" + strings.Repeat("é", 1500)
	messages := turn(7, "mcp__a__very_long_name", long)
	messages = append(messages, llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Type: llm.PartToolCall,
		ToolCall: &llm.ToolCall{ID: "8.0", Name: "write", ArgumentsError: "no object", RawArguments: `{"path": "x`}}}},
		llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: "8.0", Name: "write",
			IsError: true, Content: []llm.Part{llm.TextPart("refused"), {Type: llm.PartImage, Image: &llm.Image{MediaType: "image/gif"}}}}}}},
		llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.TextPart("go </dialog> on"), {Type: llm.PartImage, Image: &llm.Image{MediaType: "image/png"}}}})
	request := begin(t, 65_536, append(messages, work(200, 900).Messages[1:]...)...).Request()
	text := request.Message.Text()
	for _, want := range []string{
		"<task>\nThe task, word for word.\n</task>\n\n<dialog>\n",
		"<tool-call id=\"7.0\" tool=\"mcp__a__very_long_name\">\n{\"path\":\"src/7.go\"}\n</tool-call>\n",
		"<tool-result call=\"7.0\" tool=\"mcp__a__very_long_name\" status=\"ok\">\n" + strings.Repeat("é", 1500) + "\n[… 1006 characters left out …]\n" + strings.Repeat("é", 500) + "\n</tool-result>\n",
		"<tool-call id=\"8.0\" tool=\"write\">\n{\"path\": \"x\n</tool-call>\n",
		"<tool-result call=\"8.0\" tool=\"write\" status=\"failed\">\nrefused\n[an image (image/gif) is no longer shown]\n</tool-result>\n",
		"<message from=\"user\">\ngo \\u003c/dialog> on\n</message>\n<message from=\"user\">\n[an image (image/png) is no longer shown]\n</message>\n",
		"</dialog>\n\nWrite the notes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the record lacks %q", want)
		}
	}
	if strings.Contains(text, "secret thought") || strings.Contains(text, "MIDDLE") {
		t.Error("the record shows thinking, or more of a result than it may")
	}
	if strings.Count(text, "</dialog>") != 1 || strings.Contains(text, "<summary>") {
		t.Error("the record can be closed from inside, or shows a summary that does not exist")
	}
}

func TestARequestNeverTakesMoreThanHalfOfTheWindow(t *testing.T) {
	t.Parallel()
	for _, window := range []int64{8192, 32_768, 200_000} {
		s := begin(t, window, llm.UserText(strings.Repeat("A very long remark. ", 100_000)), answer("so be it").Message, llm.UserText("go on"))
		requests := 0
		for !s.Done() {
			r := s.Request()
			requests++
			if size := llm.EstimateTokens(r.Bytes()); size > window/2 {
				t.Fatalf("window %d: request %d has %d tokens", window, requests, size)
			}
			if strings.Contains(r.Message.Text(), "<summary>") != (requests > 1) {
				t.Fatalf("window %d: request %d does not hand on the summary so far", window, requests)
			}
			long := summary + strings.Repeat("\n- a figure: 12", int(window/4*4-1000)/15)
			if err := s.Take(answer(long)); err != nil {
				t.Fatal(err)
			}
		}
		if requests < 2_000_000/4/int(window/2) {
			t.Errorf("window %d: only %d requests", window, requests)
		}
	}
}

// TestTheWholeRecordIsShownOnce divides a record so that every piece of it is in exactly one request.
func TestTheWholeRecordIsShownOnce(t *testing.T) {
	t.Parallel()
	var numbers strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&numbers, "№%05d ", i)
	}
	s := begin(t, 8192, llm.UserText(numbers.String()), answer("yes").Message, llm.UserText("go on"))
	var seen strings.Builder
	for !s.Done() {
		text := s.Request().Message.Text()
		for part := range strings.SplitSeq(text, "<message from=\"user\"") {
			_, body, found := strings.Cut(part, ">\n")
			body, _, closed := strings.Cut(body, "\n</message>")
			if found && closed && !strings.HasPrefix(part, "<task>") {
				seen.WriteString(body)
			}
		}
		if err := s.Take(answer(summary)); err != nil {
			t.Fatal(err)
		}
	}
	if seen.String() != numbers.String()+"go on" {
		t.Errorf("%d bytes of the message were shown, it has %d", seen.Len(), numbers.Len())
	}
}

func TestARefusedRequestBecomesSmallerUntilItCannot(t *testing.T) {
	t.Parallel()
	s := begin(t, 200_000, work(2000, 2000).Messages[1:]...)
	sizes := map[int]bool{s.Request().Bytes(): true}
	narrowed := 0
	for s.Narrow() {
		size := s.Request().Bytes()
		if sizes[size] {
			t.Fatalf("a request of %d bytes is made twice", size)
		}
		sizes[size] = true
		narrowed++
	}
	if narrowed < 3 || narrowed > 12 {
		t.Errorf("narrowed %d times", narrowed)
	}
	if err := s.Take(answer(summary)); err != nil || s.Done() {
		t.Errorf("the narrowest request reached to the end (%v)", err)
	}
}

func TestWhatIsNoSummary(t *testing.T) {
	t.Parallel()
	call := answer(summary)
	call.Message.Parts = append(call.Message.Parts, llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "read", Arguments: json.RawMessage("{}")}})
	cut := answer(summary)
	cut.Stop = llm.StopLength
	thought := answer("")
	thought.Message.Parts = []llm.Part{{Type: llm.PartThinking, Text: summary}}
	for name, c := range map[string]struct {
		response llm.Response
		why      string
	}{
		"empty":                      {answer(""), "the summary is empty"},
		"blank":                      {answer(" \n\t\n"), "the summary is empty"},
		"nothing in its element":     {answer("<summary>\n</summary>"), "the summary is empty"},
		"only thinking":              {thought, "the summary is empty"},
		"cut at the output limit":    {cut, "the summary was cut at the output limit"},
		"a tool call":                {call, "the summary holds a tool call"},
		"an answer to the task":      {answer("The repository is a runtime."), `the summary lacks the heading "Aim", "Rules", "Done", "Under way", "Decided", "Next", "Exact details"`},
		"one heading missing":        {answer(strings.Replace(summary, "## Decided", "## Choices", 1)), `the summary lacks the heading "Decided"`},
		"a heading inside of a line": {answer(strings.Replace(summary, "## Next", "What comes next", 1)), `the summary lacks the heading "Next"`},
		"too long":                   {answer(summary + strings.Repeat(" more", 3000)), "the summary has more than 2048 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, 8192)
			first := s.Request()
			err := s.Take(c.response)
			if err == nil || err.Error() != c.why {
				t.Fatalf("taken with %v, want %q", err, c.why)
			}
			if s.Done() || s.Summary() != "" {
				t.Error("something of it was kept")
			}
			again := s.Request()
			if !strings.HasSuffix(again.Message.Text(), " Your last answer could not be used: "+c.why+".") || again.System != first.System {
				t.Errorf("the next request does not say what was wrong: …%s", lastLine(again.Message.Text()))
			}
			if err := s.Take(answer(summary)); err != nil || s.Summary() != summary || strings.Contains(s.Request().Message.Text(), "could not be used") {
				t.Errorf("a good summary was not taken: %v", err)
			}
		})
	}
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

func TestFormsOfASummary(t *testing.T) {
	t.Parallel()
	bold := strings.NewReplacer("## Aim", "**Aim:**", "## Under way", "# UNDER WAY").Replace(summary)
	for name, c := range map[string]struct{ text, want string }{
		"plain":                {summary, summary},
		"space around":         {"\n\n" + summary + "\n", summary},
		"in a fence":           {"```markdown\n" + summary + "\n```", summary},
		"in the element":       {"<summary>\n" + summary + "\n</summary>", summary},
		"other marks of title": {bold, bold},
	} {
		s := begin(t, 8192)
		s.Request()
		if err := s.Take(answer(c.text)); err != nil || s.Summary() != c.want {
			t.Errorf("%s: %v, %q", name, err, s.Summary())
		}
	}
}

func TestTheSummariserIsToldItsRules(t *testing.T) {
	t.Parallel()
	system := begin(t, 8192).Request().System
	for _, want := range []string{"## Aim", "## Exact details", "the names of tools", "exactly as they stand", "keep its id and leave out its text", "call no tool", "at most 600 words"} {
		if !strings.Contains(system, want) {
			t.Errorf("the system prompt lacks %q:\n%s", want, system)
		}
	}
	if large := begin(t, 1_000_000, work(3000, 2000).Messages[1:]...).Request().System; !strings.Contains(large, "at most 2450 words") {
		t.Error("the length asked for does not fit the window")
	}
}
