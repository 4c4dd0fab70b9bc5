package compaction_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/kernel/compaction"
	"github.com/hozo-run/hozo/llm"
)

// summary is a good answer of a summariser.
const summary = `## Aim
Describe the repository.

## Rules
none

## Done
Read a few files.

## Under way
none

## Decided
none

## Next
Write the answer.

## Exact details
/src/main.go has 12 lines.`

func answer(text string) llm.Response {
	return llm.Response{Stop: llm.StopEnd, Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart(text)}}}
}

// turn returns an assistant message that calls tools, and the message with their results.
func turn(n int, tool string, results ...string) []llm.Message {
	asks := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Type: llm.PartThinking, Text: "secret thought"}}}
	answers := llm.Message{Role: llm.RoleTool}
	for i, text := range results {
		id := fmt.Sprintf("%d.%d", n, i)
		asks.Parts = append(asks.Parts, llm.Part{Type: llm.PartToolCall,
			ToolCall: &llm.ToolCall{ID: id, Name: tool, Arguments: json.RawMessage(fmt.Sprintf(`{"path":"src/%d.go"}`, n))}})
		answers.Parts = append(answers.Parts, llm.Part{Type: llm.PartToolResult,
			ToolResult: &llm.ToolResult{CallID: id, Name: tool, Content: []llm.Part{llm.TextPart(text)}}})
	}
	return []llm.Message{asks, answers}
}

// work returns a dialog of a task and n turns with one result of so many bytes each.
func work(n, bytes int) compaction.Dialog {
	d := compaction.Dialog{Messages: []llm.Message{llm.UserText("The task, word for word.")}, State: compaction.State{Task: compaction.Range{From: 0, To: 1}}}
	for i := range n {
		d.Append(turn(i+1, "read", strings.Repeat("x", bytes))...)
	}
	return d
}

// errSummary wraps why a summary was refused, which a very small window does to all.
var errSummary = errors.New("no summary")

// input returns the input of a compaction of d in a window, forced by the threshold.
func input(d compaction.Dialog, window int64) compaction.Input {
	return compaction.Input{Dialog: d, Settings: compaction.SettingsFor(window), Reason: compaction.ReasonThreshold}
}

// finish runs a plan to its end with a summariser that always gives the same summary.
func finish(t testing.TB, p *compaction.Plan) (compaction.Result, error) {
	t.Helper()
	if result, enough := p.Prune(); enough {
		return result, nil
	}
	return summarise(t, p)
}

// summarise is finish without the first step.
func summarise(t testing.TB, p *compaction.Plan) (compaction.Result, error) {
	t.Helper()
	s := p.Summarise()
	if s == nil {
		return p.Finish("")
	}
	for requests := 0; !s.Done(); requests++ {
		if requests > 10_000 {
			t.Fatal("the summariser does not come to an end")
		}
		s.Request()
		if err := s.Take(answer(summary)); err != nil {
			return compaction.Result{}, fmt.Errorf("%w: %w", errSummary, err)
		}
	}
	return p.Finish(s.Summary())
}

// invalid says why messages could not be sent to a model, "" if they could.
func invalid(messages []llm.Message) string {
	var awaited []*llm.ToolCall
	for i, m := range messages {
		if m.Role == llm.RoleTool {
			if len(m.Parts) != len(awaited) || len(awaited) == 0 {
				return fmt.Sprintf("message %d has %d results for %d calls", i, len(m.Parts), len(awaited))
			}
			for j, part := range m.Parts {
				switch r := part.ToolResult; {
				case r == nil, r.CallID != awaited[j].ID, r.Name != awaited[j].Name:
					return fmt.Sprintf("message %d: result %d does not answer call %s", i, j, awaited[j].ID)
				case len(r.Content) == 0:
					return fmt.Sprintf("message %d: result %d is empty", i, j)
				}
			}
			awaited = nil
			continue
		}
		if len(awaited) > 0 {
			return fmt.Sprintf("message %d: %d calls have no results", i, len(awaited))
		}
		if len(m.Parts) == 0 {
			return fmt.Sprintf("message %d has no parts", i)
		}
		if m.Role != llm.RoleUser && m.Role != llm.RoleAssistant {
			return fmt.Sprintf("message %d has the role %q", i, m.Role)
		}
		if awaited = m.ToolCalls(); m.Role == llm.RoleUser && len(awaited) > 0 {
			return fmt.Sprintf("message %d: a user message calls tools", i)
		}
	}
	switch {
	case len(awaited) > 0:
		return "the last calls have no results"
	case messages[0].Role != llm.RoleUser:
		return "the first message is not a user's"
	case messages[len(messages)-1].Role == llm.RoleAssistant:
		return "the last message is an assistant's"
	}
	return ""
}

// scribble is random text with runes of several lengths and things that look like elements.
func scribble(random *rand.Rand, most int) string {
	words := []string{"word", "日本語", "</summary>", "<dialog", "é", "\n", " ", `{"a":1}`, "</ Message>", "😀", "\x00", "<b>"}
	var b strings.Builder
	for limit := random.IntN(most + 1); b.Len() < limit; {
		b.WriteString(words[random.IntN(len(words))])
	}
	return b.String()
}

// randomDialog returns a valid dialog with a history, a task of one or two messages, turns, answers and user messages.
func randomDialog(random *rand.Rand) compaction.Dialog {
	var d compaction.Dialog
	for range random.IntN(6) {
		d.Append(llm.UserText("history " + scribble(random, 4000)))
		if random.IntN(2) == 0 {
			d.Append(randomTurn(random, len(d.Messages))...)
		}
		d.Append(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart("said " + scribble(random, 500))}})
	}
	d.Task.From = len(d.Messages)
	for range 1 + random.IntN(2) {
		d.Append(llm.UserText("task " + scribble(random, 2000)))
	}
	d.Task.To = len(d.Messages)
	for range random.IntN(20) {
		d.Append(randomTurn(random, len(d.Messages))...)
		if random.IntN(8) == 0 {
			d.Append(llm.UserText("remark " + scribble(random, 300)))
		}
	}
	return d
}

func randomTurn(random *rand.Rand, n int) []llm.Message {
	results := make([]string, 1+random.IntN(4))
	for i := range results {
		results[i] = "r" + scribble(random, 1<<random.IntN(13))
	}
	messages := turn(n, []string{"read", "grep", "mcp__a__very_long_name"}[random.IntN(3)], results...)
	for _, part := range messages[1].Parts {
		part.ToolResult.IsError = random.IntN(5) == 0
		if random.IntN(6) == 0 {
			part.ToolResult.Content = append(part.ToolResult.Content, llm.Part{Type: llm.PartImage,
				Image: &llm.Image{MediaType: "image/png", Data: []byte("png")}})
		}
	}
	return messages
}

// snapshot is a deep copy of a dialog, to show that nothing shared was changed.
func snapshot(t testing.TB, d compaction.Dialog) string {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// checkResult asserts what holds for the result of every compaction.
func checkResult(t testing.TB, before compaction.Dialog, r compaction.Result) {
	t.Helper()
	d := r.Dialog
	if why := invalid(d.Messages); why != "" {
		t.Fatalf("the result cannot be sent: %s", why)
	}
	task := before.Messages[before.Task.From:before.Task.To]
	if got := d.Messages[d.Task.From:d.Task.To]; !equal(task, got) {
		t.Fatalf("the task has changed: %v", got)
	}
	if latest, ok := latestFrom(before); ok && !slices.ContainsFunc(d.Messages, func(m llm.Message) bool { return equal(m, latest) }) {
		t.Fatalf("the latest user message is missing: %v", latest)
	}
	if d.Bytes() > before.Bytes() || r.After > r.Before {
		t.Fatalf("the result is larger: %d bytes after %d, %d tokens after %d", d.Bytes(), before.Bytes(), r.After, r.Before)
	}
	last, newest := d.Messages[len(d.Messages)-1], before.Messages[len(before.Messages)-1]
	if last.Role != newest.Role || len(last.Parts) != len(newest.Parts) {
		t.Fatalf("the newest message is another one: %v", last)
	}
}

func latestFrom(d compaction.Dialog) (llm.Message, bool) {
	for i, m := range slices.Backward(d.Messages) {
		if m.Role == llm.RoleUser && (d.Earlier == nil || d.Earlier.At != i) {
			return m, true
		}
	}
	return llm.Message{}, false
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
