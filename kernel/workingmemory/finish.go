package workingmemory

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
)

// The tools of the loop itself. No other tool of such a job may have one of these names.
const (
	FinishTool = "finish"
	RecallTool = "recall_step"
)

// FinishSpec declares the tool that ends the loop. It does not go through Require: what it is for is plain.
func FinishSpec() llm.ToolSpec {
	return llm.ToolSpec{Name: FinishTool, Description: prompt("finish"), InputSchema: json.RawMessage(`{"type":"object","properties":{` +
		`"answer":{"type":"string","description":"The whole result for whoever asked, in Markdown, or exactly the JSON that was asked for."},` +
		`"confidence":{"type":"number","minimum":0,"maximum":1,"description":"How sure you are that the answer meets the objective."},` +
		`"gaps":{"type":"array","items":{"type":"string"},"description":"What is missing or unproven, one sentence each. Empty if nothing is."}},` +
		`"required":["answer","confidence"],"additionalProperties":false}`)}
}

// RecallSpec declares the tool that shows the outcome of an earlier step again. It goes through Require like any other.
func RecallSpec() llm.ToolSpec {
	return llm.ToolSpec{Name: RecallTool, Description: prompt("recall"), InputSchema: json.RawMessage(`{"type":"object","properties":{` +
		`"n":{"type":"integer","minimum":1,"description":"The number of the step."},` +
		`"offset":{"type":"integer","minimum":0,"description":"The character of the outcome to begin with, for a long one. Default 0."}},` +
		`"required":["n"],"additionalProperties":false}`)}
}

// Finish is what the model ends the loop with.
type Finish struct {
	Answer     string   `json:"answer"`
	Confidence float64  `json:"confidence"`
	Gaps       []string `json:"gaps,omitempty"`
}

// ParseFinish reads the arguments of a finish call. The error is for the model.
func ParseFinish(arguments json.RawMessage) (Finish, error) {
	var given struct {
		Answer     *string  `json:"answer"`
		Confidence *float64 `json:"confidence"`
		Gaps       []string `json:"gaps"`
	}
	if err := json.Unmarshal(arguments, &given); err != nil {
		return Finish{}, fmt.Errorf("the arguments do not fit: %w", err)
	}
	var wrong []error
	if given.Answer == nil || strings.TrimSpace(*given.Answer) == "" {
		wrong = append(wrong, errors.New(`"answer" is missing: it is the whole result`))
	}
	if c := given.Confidence; c == nil || !(*c >= 0 && *c <= 1) {
		wrong = append(wrong, errors.New(`"confidence" must be a number from 0 to 1`))
	}
	if err := errors.Join(wrong...); err != nil {
		return Finish{}, err
	}
	f := Finish{Answer: *given.Answer, Confidence: *given.Confidence}
	for _, gap := range given.Gaps {
		if gap = strings.TrimSpace(gap); gap != "" {
			f.Gaps = append(f.Gaps, gap)
		}
	}
	return f, nil
}

// The rules by which the confidence of a finish is held against the document. Prompt texts state the same numbers.
const (
	// surest is the most that a result with a stated gap or an open item can have.
	surest = 0.9
	// slack is by how much a finish may be surer than the document.
	slack = 0.2
)

// Objections returns why a first finish is not accepted: open items of the plan while more than half of the steps are
// left, and a confidence that the document does not bear out. None means that it is. A second finish is accepted whatever
// it leaves open; its confidence is then Calibrated.
func (f Finish) Objections(d Document, halfLeft bool) []string {
	var why []string
	if open := d.OpenItems(); halfLeft && len(open) > 0 {
		why = append(why, "the plan has open items: "+strings.Join(firstItems(open), "; "))
	}
	if ceiling, reason := f.ceiling(d); f.Confidence > ceiling {
		why = append(why, fmt.Sprintf("a confidence of %s is more than %s, %s", number(f.Confidence), number(ceiling), reason))
	}
	return why
}

// Calibrated returns the confidence that the result is reported with: the model's own, but no more than the document
// bears out.
func (f Finish) Calibrated(d Document) float64 {
	ceiling, _ := f.ceiling(d)
	return min(f.Confidence, ceiling)
}

// ceiling returns the most that the confidence can be, and why.
func (f Finish) ceiling(d Document) (most float64, reason string) {
	most = 1
	if len(f.Gaps) > 0 || len(d.OpenItems()) > 0 {
		most, reason = surest, "the most for a result with gaps or open items"
	}
	stated, ok := d.Confidence()
	if bound := math.Round((stated+slack)*100) / 100; ok && bound < most {
		most, reason = bound, "what the document's own confidence of "+number(stated)+" allows"
	}
	return most, reason
}

// firstItems bounds a list for a message.
func firstItems(items []string) []string {
	const most = 10
	shown := make([]string, 0, most+1)
	for i, item := range items {
		if i == most {
			return append(shown, fmt.Sprintf("and %d more", len(items)-i))
		}
		shown = append(shown, cutChars(item, 120))
	}
	return shown
}

// number writes a share with at most two decimals.
func number(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

// Recall is a wish to see the outcome of a step again.
type Recall struct {
	N      int64 `json:"n"`
	Offset int64 `json:"offset,omitempty"`
}

// ParseRecall reads the arguments of a recall_step call in step now. The error is for the model.
func ParseRecall(arguments json.RawMessage, now int64) (Recall, error) {
	var r Recall
	if err := json.Unmarshal(arguments, &r); err != nil {
		return Recall{}, fmt.Errorf("the arguments do not fit: %w", err)
	}
	switch {
	case now <= 1:
		return Recall{}, errors.New("there is no earlier step")
	case r.N < 1 || r.N >= now:
		return Recall{}, fmt.Errorf("there is no step %d; the steps so far are 1 to %d", r.N, now-1)
	case r.Offset < 0:
		return Recall{}, errors.New(`"offset" must not be negative`)
	}
	return r, nil
}

// Show returns the answer of a recall: what step s was, and its outcome from the offset on, as much of it as a writer is
// shown. Outcome is the whole outcome. The error is for the model.
func (r Recall) Show(s Step, outcome string) (string, error) {
	total := utf8.RuneCountInString(outcome)
	if r.Offset > 0 && r.Offset >= int64(total) {
		return "", fmt.Errorf("the outcome of step %d has %d characters", r.N, total)
	}
	tool := s.Tool
	if tool == "" {
		tool = "no call"
	}
	head := fmt.Sprintf("Step %d: %s (%s)\nObjective: %s\nArguments: %s\nOutcome, %d characters",
		s.N, tool, s.Status, oneLine(s.Objective, foldChars), cutMiddle(string(s.Arguments), maxArgumentChars, ""), total)
	rest := outcome[runeIndex(outcome, int(r.Offset)):]
	// Some room is left for the lines around it, so that the writer is shown all of this.
	most := maxOutcomeChars - utf8.RuneCountInString(head) - 200
	end := runeIndex(rest, most)
	to := int(r.Offset) + utf8.RuneCountInString(rest[:end])
	if r.Offset > 0 || to < total {
		head += fmt.Sprintf(", of which %d to %d", r.Offset, to)
	}
	text := head + ":\n" + rest[:end]
	if to < total {
		text += fmt.Sprintf("\n[call recall_step with n %d and offset %d for more]", r.N, to)
	}
	return text, nil
}
