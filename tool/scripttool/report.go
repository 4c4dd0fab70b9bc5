package scripttool

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// bytesPerToken is what llm.EstimateTokens counts as one.
const bytesPerToken = 4

// The most that a failure shows of the calls before it: so many of the last ones, and so much of their arguments.
const (
	shownCalls     = 10
	shownArguments = 120
	shownMessage   = 2000
)

// report makes the text for the model: what the script returned or why it failed, then what it printed.
func (s *session) report(code string, last *end) tool.Result {
	if last.Failure != nil {
		f := s.explained(last.Failure)
		return tool.Result{
			IsError: true,
			Text:    s.fit(s.describeFailure(code, f), 0),
			Summary: fmt.Sprintf("failed (%s) after %s", f.Kind, plural(len(s.calls), "call")),
		}
	}
	text := last.Text
	if last.Nothing && s.console.Len() == 0 {
		text = "(the script returned nothing and printed nothing)"
	}
	whole := max(last.Bytes, int64(len(last.Text)))
	return tool.Result{
		Text:    s.fit(text, whole),
		Summary: fmt.Sprintf("%s, returned %s", plural(len(s.calls), "call"), plural(int(whole), "byte")),
	}
}

// fit puts the first part, the console and remarks together within the limit. The first part gets at least three
// quarters of it. whole is how long the first part was, if it comes cut.
func (s *session) fit(first string, whole int64) string {
	budget := s.limits.OutputTokens * bytesPerToken
	remarks := s.remarks()
	budget -= len(remarks)
	console := ""
	if s.console.Len() > 0 {
		console = "Console:\n" + strings.TrimSuffix(s.console.String(), "\n")
		if first != "" {
			console = "\n\n" + console
		}
	}
	first = shorten(first, budget-min(len(console), budget/4), whole, "return less: filter, count or sum up in the script")
	console = shorten(console, budget-len(first), 0, "print less")
	return first + console + remarks
}

// remarks say what the model would not notice otherwise.
func (s *session) remarks() string {
	var b strings.Builder
	if s.consoleCut {
		fmt.Fprintf(&b, "\n\n[The console was cut at %d bytes.]", s.limits.ConsoleBytes)
	}
	if open := s.count(stateUnfinished); open > 0 {
		fmt.Fprintf(&b, "\n\n[Cancelled with the end of the script: %s.]", plural(open, "unfinished call"))
	}
	return b.String()
}

// shorten cuts a text at the end of a line, and says so, all within most bytes.
func shorten(text string, most int, whole int64, advice string) string {
	whole = max(whole, int64(len(text)))
	if whole <= int64(most) {
		return text
	}
	notice := fmt.Sprintf("\n\n[Cut: this is the beginning of %d tokens; %s.]", llm.EstimateTokens(int(whole)), advice)
	kept := prefix(text, max(0, most-len(notice)))
	// At the end of a line, unless that would drop more than it is worth.
	if at := strings.LastIndexByte(kept, '\n'); at > len(kept)/2 {
		kept = kept[:at]
	}
	return kept + notice
}

// explained fills in the messages of failures that come from limits: the child names them, the parent knows them.
func (s *session) explained(f *failure) *failure {
	l := s.limits
	messages := map[kind]string{
		kindTimeout: fmt.Sprintf("it took longer than %v, its calls included: do less in one script, or make independent calls with Promise.all", l.Time),
		kindMemory:  fmt.Sprintf("it used more than %s of memory: keep less at once", size(l.HeapBytes)),
		kindStack:   "its functions call each other too deeply, or its data is nested too deeply: use a loop",
		kindDeadlock: "it waits for something that will never happen: no call is running that could end the waiting. " +
			"There are no timers, and only calls of tools take time",
		kindCalls:   fmt.Sprintf("it made more than %s: narrow down what it looks at, or divide the work among several scripts", plural(l.Calls, "call")),
		kindAborted: "the job ended first",
		kindResult:  "what it returned is no JSON: " + f.Message,
		kindSandbox: "the process that runs scripts failed, not the script itself: " + f.Message,
	}
	explained := &failure{Kind: f.Kind, Line: f.Line, Message: f.Message}
	switch f.Kind {
	case kindScript, kindSyntax:
	default:
		if message := messages[f.Kind]; message != "" {
			explained.Message = message
			break
		}
		explained.Kind = kindScript // the child does not name kinds of its own
	}
	explained.Message = prefix(explained.Message, shownMessage)
	return explained
}

// describeFailure says what happened, where, and what was done by then.
func (s *session) describeFailure(code string, f *failure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The script failed (%s): %s", f.Kind, f.Message)
	lines := strings.Split(code, "\n")
	if f.Line > 0 && f.Line <= len(lines) {
		place := "At line"
		if f.Kind == kindTimeout {
			place = "It was at or below line"
		}
		fmt.Fprintf(&b, "\n%s %d", place, f.Line)
		if line := strings.TrimSpace(lines[f.Line-1]); line != "" {
			fmt.Fprintf(&b, ": %s", clean(ellipsis(line, 200)))
		}
	}
	if len(s.calls) == 0 {
		b.WriteString("\nIt had made no calls.")
		return b.String()
	}
	fmt.Fprintf(&b, "\nIt had made %s: %s.", plural(len(s.calls), "call"), s.tally())
	from := max(0, len(s.calls)-shownCalls)
	if from > 0 {
		fmt.Fprintf(&b, " The last %d:", shownCalls)
	}
	for i, c := range s.calls[from:] {
		fmt.Fprintf(&b, "\n%d. %s %s: %s", from+i+1, clean(c.tool), clean(ellipsis(c.arguments, shownArguments)), c.state)
		if c.fault != "" {
			fmt.Fprintf(&b, ": %s", clean(ellipsis(c.fault, shownArguments)))
		}
	}
	return b.String()
}

// tally counts the calls by tool and by how they ended.
func (s *session) tally() string {
	byTool := map[string]int{}
	for _, c := range s.calls {
		byTool[clean(c.tool)]++
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(byTool)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, byTool[name]))
	}
	text := strings.Join(parts[:min(len(parts), shownCalls)], ", ")
	for _, st := range []state{stateFailed, stateUnfinished} {
		if n := s.count(st); n > 0 {
			text += fmt.Sprintf("; %d %s", n, st)
		}
	}
	return text
}

func (s *session) count(st state) int {
	n := 0
	for _, c := range s.calls {
		if c.state == st {
			n++
		}
	}
	return n
}

// clean shows text of a stranger on one line.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, text)
}

func ellipsis(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return prefix(text, most) + "…"
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func size(bytes int64) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%d KB", bytes>>10)
}
