package workingmemory

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Folding is a step whose outcome goes into the document without a writer.
type Folding struct {
	Step int64
	// Tool is the tool that was called, "" if none was.
	Tool      string
	Objective string
	Outcome   string
	Status    Status
}

// Fold returns old with the outcome of a step worked in mechanically: a line with the beginning of the outcome below the
// findings, and one below the reasoning. The objective and the headings stay as they are. Where the document has no room,
// its oldest lines give way: first of the reasoning, then outcomes that were folded in earlier, done items of the plan, and
// the rest; the result has at most limit tokens (see Limit) if the objective is one of ObjectiveOf for the same limit.
func Fold(old Document, f Folding, limit int64) Document {
	tool := f.Tool
	if tool == "" {
		tool = "no call"
	}
	most := min(foldChars, int(limit)/4) // a small document holds less of each outcome
	outcome := oneLine(f.Outcome, most)
	if outcome == "" {
		outcome = "(nothing)"
	}
	d := old
	d.bodies[Findings] = addLine(d.bodies[Findings], fmt.Sprintf("- step %d: %s: %s", f.Step, tool, outcome))
	note := fmt.Sprintf("- step %d was noted without the writer (%s)", f.Step, f.Status)
	if objective := oneLine(f.Objective, most/2); objective != "" {
		note += ": " + objective
	}
	d.bodies[Reasoning] = addLine(d.bodies[Reasoning], note)
	return fit(d, limit)
}

func addLine(body, line string) string {
	if body == "" {
		return line
	}
	return body + "\n" + line
}

// oneLine writes a text on one line that is no heading, fence or marker, at most n characters long.
func oneLine(text string, n int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) > 64*n {
		text = cutBytes(text, 64*n) // enough for any run of white space that matters
	}
	text = cutChars(strings.Join(strings.Fields(text), " "), n)
	text = strings.NewReplacer("<!--", "<!\u200d--", "-->", "--\u200d>").Replace(text)
	return neutral(text)
}

const omittedLine = "- (older lines are left out; recall_step shows a step again)"

var foldedLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^- step \d+: `) })

// fit removes the oldest blocks of a document until it has at most limit tokens.
func fit(d Document, limit int64) Document {
	most := int(limit) * 4 // bytes
	if d.size() <= most {
		return d
	}
	// The line that says so stands once, at the top.
	reasoning, _ := strings.CutPrefix(d.bodies[Reasoning], omittedLine)
	d.bodies[Reasoning] = strings.TrimLeft(reasoning, "\n")
	over := d.size() + len("\n\n") + len(omittedLine) + len("\n") - most
	all := func(string) bool { return true }
	folded := func(block string) bool { return foldedLine().MatchString(block) }
	done := func(block string) bool {
		return strings.HasPrefix(block, "- [x]") || strings.HasPrefix(block, "- [X]")
	}
	for _, stage := range []struct {
		section Section
		keep    int // blocks at the end that stay
		remove  func(block string) bool
	}{
		{Reasoning, 3, all}, {Findings, 1, folded}, {Plan, 0, done}, {Findings, 1, all}, {Plan, 0, all}, {Coverage, 0, all},
		{Reasoning, 0, all}, {Findings, 0, all},
	} {
		if over <= 0 {
			break
		}
		d.bodies[stage.section], over = thin(d.bodies[stage.section], stage.keep, stage.remove, over)
	}
	d.bodies[Reasoning] = strings.TrimSuffix(omittedLine+"\n"+d.bodies[Reasoning], "\n")
	return d
}

// thin removes blocks from the top of a section until over bytes are gone, and returns what is still over.
func thin(body string, keep int, remove func(block string) bool, over int) (string, int) {
	parts := blocks(body)
	var left []string
	for i, block := range parts {
		if over > 0 && i < len(parts)-keep && remove(block) {
			over -= len(block) + 1
			continue
		}
		left = append(left, block)
	}
	thinned := strings.Trim(strings.Join(left, "\n"), "\n")
	return thinned, over
}

// blocks divides a section into lines, a code block being one.
func blocks(body string) []string {
	if body == "" {
		return nil
	}
	var all []string
	var code fence
	for line := range strings.SplitSeq(body, "\n") {
		inside := code.mark != 0
		if code.code(line); inside {
			all[len(all)-1] += "\n" + line
		} else {
			all = append(all, line)
		}
	}
	return all
}
