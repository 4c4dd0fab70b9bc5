package workingmemory

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// The codes of what can be wrong with a document that a writer gave back.
const (
	// CodeEmpty means that there is no text.
	CodeEmpty = "empty"
	// CodeHeading means that the five headings do not stand there once and in order.
	CodeHeading = "heading"
	// CodeObjective means that the objective was changed.
	CodeObjective = "objective"
	// CodeTooLong means that the document is larger than its limit.
	CodeTooLong = "too-long"
	// CodeTooShort means that more than half of the old document is gone.
	CodeTooShort = "too-short"
	// CodeLost means that something exact of the old findings is gone and not named as dropped.
	CodeLost = "lost"
	// CodeToolMarker means that the text holds the marks of a tool call.
	CodeToolMarker = "tool-marker"
	// CodeRating means that coverage and confidence hold no number.
	CodeRating = "rating"
)

const (
	// halfFrom is the length, in characters, above which a document must not lose half of itself.
	halfFrom = 2000
	// maxListed bounds the lost mentions that are listed one by one.
	maxListed = 20
)

// Revision is what a writer's answer amounts to.
type Revision struct {
	// Document is the new document, without the list of what was dropped. It must not be used if there are Problems.
	Document Document
	// Dropped is what the writer says it left out on purpose, "" if nothing.
	Dropped string
	// Problems are all that is wrong with the answer, each with one of the codes of this package.
	Problems problem.List
}

// Revise reads a writer's answer as the successor of old and checks it: the five headings once and in order, the objective
// unchanged, at most limit tokens (see Limit), not empty, not less than half of an old document of more than 2,000
// characters, coverage and confidence with a number, every URL, id, figure and date of the old findings still there or
// named in the closing comment of dropped things, and no marks of tool calls. A code fence around the answer and words of
// the writer before the first heading are no part of the document.
func Revise(old Document, answer string, limit int64) Revision {
	text, dropped := splitDropped(strings.ToValidUTF8(answer, "�"))
	text, inner := splitDropped(unwrap(text))
	if dropped == "" {
		dropped = inner
	}
	r := Revision{Dropped: dropped}
	if strings.TrimSpace(text) == "" {
		r.Problems.Add(CodeEmpty, "", "the answer is empty")
		return r
	}
	r.Document, r.Problems = parse(text, old.bodies[Objective])
	size := len(text)
	if len(r.Problems) == 0 {
		size = r.Document.size()
	}
	r.checkSize(old, text, llm.EstimateTokens(size), limit)
	r.checkMarkers(text, old)
	if body := r.Document.bodies[Coverage]; len(r.Problems) == 0 && !strings.ContainsAny(body, "0123456789") {
		r.Problems.AddHint(CodeRating, "", `write "Coverage: 40 %" and "Confidence: 0.6"`, "%q holds no number", headings[Coverage])
	}
	r.checkLost(old, text)
	return r
}

func (r *Revision) checkSize(old Document, text string, tokens, limit int64) {
	if tokens > limit {
		r.Problems.AddHint(CodeTooLong, "", "say it in fewer words", "the document has about %d tokens, more than %d", tokens, limit)
	}
	before, after := utf8.RuneCountInString(old.String()), utf8.RuneCountInString(text)
	if before > halfFrom && after < before/2 {
		r.Problems.AddHint(CodeTooShort, "", "rewrite the old document instead of replacing it",
			"the document shrank from %d to %d characters", before, after)
	}
}

// checkMarkers looks for marks of tool calls outside of the objective, which may speak about them.
func (r *Revision) checkMarkers(text string, old Document) {
	objective := old.bodies[Objective]
	for _, m := range markers {
		if strings.Count(text, m) > strings.Count(objective, m) {
			r.Problems.AddHint(CodeToolMarker, "", "the writer calls no tools", "the answer holds %q, the mark of a tool call", m)
		}
	}
}

func (r *Revision) checkLost(old Document, text string) {
	missing := lost(old.bodies[Findings], text, r.Dropped)
	for i, m := range missing {
		if i == maxListed {
			r.Problems.Add(CodeLost, "", "%d more exact things of the old findings are gone", len(missing)-i)
			return
		}
		r.Problems.AddHint(CodeLost, "", "keep it, or name it in <!-- dropped: … --> at the end",
			"%q of the old findings is gone", cutChars(m.text, 200))
	}
}

// markers are the marks by which models write tool calls into their text, and those that bound the texts of this package.
var markers = []string{
	"<tool_call", "</tool_call", "<tool_calls>", "<function=", "<function_call", "<invoke name=", "<parameter=", "<tools>",
	"<|tool_call", "<|tool_calls", "<|python_tag|>", "<|python_start|>", "<|channel|>", "<|message|>", "<|START_ACTION|>",
	"[TOOL_CALLS]", "[ARGS]", "<｜tool", "<｜DSML｜", "<start_function_call>", "<minimax:tool_call", "<arg_key>", "functools[",
	"function call<|role_sep|>", `{"tool_call":`, `{"tool_calls":`, `{"function_call":`,
	"<working-memory", "</working-memory", "<outcome", "</outcome",
}

// neutral returns text in which nothing is a marker: a joiner that nobody sees stands behind the first character of each.
func neutral(text string) string {
	for _, m := range markers {
		if strings.Contains(text, m) {
			_, n := utf8.DecodeRuneInString(m)
			text = strings.ReplaceAll(text, m, m[:n]+"\u200d"+m[n:])
		}
	}
	return text
}

// splitDropped cuts a closing comment that begins with "dropped:" from the end of text.
func splitDropped(text string) (rest, dropped string) {
	trimmed := strings.TrimSpace(text)
	inner, ok := strings.CutSuffix(trimmed, "-->")
	at := strings.LastIndex(inner, "<!--")
	if !ok || at < 0 {
		return text, ""
	}
	comment := strings.TrimSpace(inner[at+len("<!--"):])
	const word = "dropped:"
	if len(comment) < len(word) || !strings.EqualFold(comment[:len(word)], word) {
		return text, ""
	}
	return inner[:at], strings.TrimSpace(comment[len(word):])
}

// unwrap removes what writers put around a document: thinking, a code fence, a sentence before the first heading. Text
// without the first heading keeps everything but a fence.
func unwrap(text string) string {
	text = strings.TrimSpace(text)
	if rest, thought := strings.CutPrefix(text, "<think>"); thought {
		_, after, closed := strings.Cut(rest, "</think>")
		if closed {
			text = strings.TrimSpace(after)
		}
	}
	lines := strings.Split(text, "\n")
	first := max(0, slices.IndexFunc(lines, func(line string) bool { return trimEnd(line) == headings[Objective] }))
	before := first
	for before > 0 && strings.TrimSpace(lines[before-1]) == "" {
		before--
	}
	// The fence is the line before the first heading, or the first line of a text that has no such heading.
	opening := max(0, before-1)
	mark, width, _ := fenceOf(lines[opening])
	if width == 0 {
		return strings.Join(lines[first:], "\n")
	}
	first = max(first, opening+1)
	for i := len(lines) - 1; i >= first; i-- {
		m, w, rest := fenceOf(lines[i])
		if m == mark && w >= width && strings.TrimSpace(rest) == "" {
			return strings.Join(lines[first:i], "\n")
		}
	}
	return strings.Join(lines[first:], "\n")
}

// cutChars returns the beginning of text, at most n characters, with an ellipsis if something is left out.
func cutChars(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i] + "…"
		}
		n--
	}
	return text
}

// cutMiddle returns the head and the tail of a text of more than n characters with a line between them that says what is
// left out; three of five characters are head.
func cutMiddle(text string, n int, advice string) string {
	total := utf8.RuneCountInString(text)
	if total <= n {
		return text
	}
	head := n * 3 / 5
	from, to := runeIndex(text, head), runeIndex(text, total-(n-head))
	return fmt.Sprintf("%s\n[… %d of %d characters are left out here%s …]\n%s", text[:from], total-n, total, advice, text[to:])
}

// runeIndex returns the byte at which the n-th character begins, the length of text if it has fewer.
func runeIndex(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
