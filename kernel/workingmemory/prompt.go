package workingmemory

import (
	"embed"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// The names of the two prompts that whoever runs jobs may replace.
const (
	// StepPrompt is the name of what a model is told about working in steps.
	StepPrompt = "kernel/step"
	// WriterPrompt is the name of what a writer is told; all agents share it.
	WriterPrompt = "kernel/stm-writer"
)

// texts holds every text of this package that is longer than a sentence.
//
//go:embed prompts/*.md
var texts embed.FS

// prompt returns an embedded text without the line feed at its end.
func prompt(name string) string {
	data, err := texts.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic(err) // the names are constants of this package
	}
	return strings.TrimRight(string(data), "\n")
}

// Prompt returns the embedded text of StepPrompt or WriterPrompt, "" for another name.
func Prompt(name string) string {
	switch name {
	case StepPrompt:
		return prompt("step")
	case WriterPrompt:
		return prompt("stm-writer")
	}
	return ""
}

// StepInput is what one step is shown. Between two steps nothing else changes in the request.
type StepInput struct {
	Document Document
	// Step counts from 1; MaxSteps is the last one that there can be, 0 if there is no bound.
	Step, MaxSteps int64
	// Task is the task of the job, only if the document's objective is not the whole of it (see ObjectiveOf).
	Task string
	// Notes are remarks about the last reply, such as those of NoteDropped.
	Notes []string
}

// StepMessage returns the message of one step.
func StepMessage(in StepInput) string {
	var b strings.Builder
	if in.Task != "" {
		fmt.Fprintf(&b, "<task>\n%s\n</task>\n\n", in.Task)
	}
	fmt.Fprintf(&b, "<working-memory>\n%s</working-memory>\n\n", in.Document)
	for _, note := range in.Notes {
		fmt.Fprintf(&b, "Note: %s\n\n", note)
	}
	fmt.Fprintf(&b, "This is step %d", in.Step)
	switch left := in.MaxSteps - in.Step; {
	case in.MaxSteps <= 0:
	case left == 0:
		b.WriteString(", the last one: call finish now with the best result that there is")
	default:
		fmt.Fprintf(&b, "; at most %d more can follow", left)
	}
	b.WriteString(". Call exactly one tool.")
	return b.String()
}

// NoteDropped tells the model that it asked for more than one call.
func NoteDropped(ran string, dropped []DroppedCall) string {
	names := make([]string, len(dropped))
	for i, d := range dropped {
		names[i] = d.Tool
	}
	return fmt.Sprintf("the last reply asked for %d calls. Only the first, %s, was run; these were dropped: %s. Ask for one call a step.",
		len(dropped)+1, ran, strings.Join(firstItems(names), ", "))
}

// NoteNoCall tells the model that its reply held no call.
func NoteNoCall() string {
	return "the last reply called no tool, so nothing happened. Answer with one tool call; when the objective is met, call " + FinishTool + "."
}

// NoteObjections tells the model why its finish was not accepted.
func NoteObjections(why []string) string {
	return "finish was not accepted yet: " + strings.Join(why, "; ") +
		". Work on these, or call finish again with a confidence and gaps that say what is left open; the second finish is accepted."
}

// WriterInput is what the writer of a document works on.
type WriterInput struct {
	// Prompt replaces the embedded WriterPrompt; "" does not.
	Prompt   string
	Document Document
	Step     Step
	// Outcome is the whole outcome of the step.
	Outcome string
	// MaxSteps is as in StepInput; Limit is that of Limit.
	MaxSteps int64
	Limit    int64
}

// System returns the system prompt of the writer. It is the same for every step of a job.
func (in WriterInput) System() string {
	if in.Prompt != "" {
		return in.Prompt
	}
	return Prompt(WriterPrompt)
}

// Message returns the request for the next document.
func (in WriterInput) Message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<working-memory>\n%s</working-memory>\n\n", in.Document)
	s := in.Step
	fmt.Fprintf(&b, "Step %d has ended.\nObjective of the step: %s\n", s.N, orNone(oneLine(s.Objective, maxArgumentChars)))
	fmt.Fprintf(&b, "Tool: %s\nStatus: %s\n", orNone(s.Tool), s.Status)
	if len(s.Arguments) > 0 {
		fmt.Fprintf(&b, "Arguments: %s\n", cutMiddle(string(s.Arguments), maxArgumentChars, ""))
	}
	if len(s.Dropped) > 0 {
		fmt.Fprintf(&b, "Further calls that did not run: %d\n", len(s.Dropped))
	}
	advice := fmt.Sprintf("; recall_step with n %d shows them", s.N)
	outcome := strings.ReplaceAll(in.Outcome, "</outcome", "<\u200d/outcome")
	fmt.Fprintf(&b, "<outcome>\n%s\n</outcome>\n\n", cutMiddle(outcome, maxOutcomeChars, advice))
	if in.MaxSteps > 0 {
		fmt.Fprintf(&b, "Steps left: %d. ", max(0, in.MaxSteps-s.N))
	}
	fmt.Fprintf(&b, "The new document may have at most %d tokens, about %d characters of English; the old one has %d tokens.\n",
		in.Limit, in.Limit*4, in.Document.Tokens())
	b.WriteString("Write the whole new document now.")
	return b.String()
}

// Retry returns the messages of the second and last request to the writer: the first request, its answer as far as there is
// one that is worth showing, and what is wrong with it.
func (in WriterInput) Retry(answer string, problems problem.List) []llm.Message {
	messages := []llm.Message{llm.UserText(in.Message())}
	var b strings.Builder
	if text := strings.TrimSpace(answer); text != "" && llm.EstimateTokens(len(text)) <= in.Limit {
		messages = append(messages, llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart(text)}})
	} else {
		b.WriteString("This was asked once before. ")
	}
	b.WriteString("The answer cannot be used:\n")
	for _, p := range problems {
		fmt.Fprintf(&b, "- %s\n", p)
	}
	b.WriteString("Write the whole document again without these faults, and nothing else.")
	return append(messages, llm.UserText(b.String()))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// Offer returns what a job with this loop offers to its model: the tools in their order, each but finish requiring its
// objective. The intents by tool name are for Split; finish has none.
func Offer(tools []llm.ToolSpec) ([]llm.ToolSpec, map[string]Intent, error) {
	specs := make([]llm.ToolSpec, len(tools))
	intents := make(map[string]Intent, len(tools))
	for i, spec := range tools {
		specs[i] = spec
		if spec.Name == FinishTool {
			continue
		}
		intent, err := Require(spec)
		if err != nil {
			return nil, nil, err
		}
		intents[spec.Name] = intent
		specs[i] = intent.Spec
	}
	return specs, intents, nil
}
