package workingmemory

import (
	"slices"
	"strings"

	"github.com/hozo-run/hozo/problem"
)

// fence follows the code blocks of a text line by line. Inside of one, nothing is a heading.
type fence struct {
	mark  byte // '`' or '~'; 0 outside of a block
	width int
}

// code takes the next line and reports whether it belongs to a code block, its fences included.
func (f *fence) code(line string) bool {
	mark, width, rest := fenceOf(line)
	switch {
	case f.mark == 0 && width > 0 && !(mark == '`' && strings.Contains(rest, "`")):
		f.mark, f.width = mark, width
		return true
	case f.mark == 0:
		return false
	case mark == f.mark && width >= f.width && strings.TrimSpace(rest) == "":
		f.mark = 0
	}
	return true
}

// fenceOf returns the mark and width of a line that opens or closes a code block and what follows it; width is 0 for other
// lines. Any indentation is taken, since blocks stand in lists.
func fenceOf(line string) (mark byte, width int, rest string) {
	line = strings.TrimLeft(line, " \t")
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0, 0, ""
	}
	mark = line[0]
	rest = strings.TrimLeft(line, string(mark))
	if width = len(line) - len(rest); width < 3 {
		return 0, 0, ""
	}
	return mark, width, rest
}

func trimEnd(line string) string { return strings.TrimRight(line, " \t\r") }

// joinBody joins the lines of a section without the blank lines around them.
func joinBody(lines []string) string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.TrimRight(line, "\r")
	}
	if n := len(trimmed); n > 0 {
		trimmed[n-1] = trimEnd(trimmed[n-1])
	}
	return strings.Join(trimmed, "\n")
}

// parse reads a text as a document about objective and lists what is wrong with its form. The objective is compared
// without regard to blank lines and to the white space at the ends of lines, which no reader sees; the document then holds
// it as it was given. A document with problems is incomplete.
func parse(text, objective string) (Document, problem.List) {
	var d Document
	var problems problem.List
	d.bodies[Objective] = objective
	lines := strings.Split(text, "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return trimEnd(line) == headings[Objective] })
	if at < 0 {
		problems.Add(CodeHeading, "", "the heading %q is missing", headings[Objective])
	} else {
		lines = lines[at+1:]
		after, same := skipObjective(lines, objective)
		if !same {
			problems.AddHint(CodeObjective, "", "copy it from the old document, character for character",
				"the text below %q is not the old one", headings[Objective])
		}
		lines = lines[after:]
	}
	found := findHeadings(lines, &problems)
	checkOrder(found, &problems)
	for i, h := range found {
		end := len(lines)
		if i+1 < len(found) {
			end = found[i+1].line
		}
		if d.bodies[h.section] == "" && h.section != Objective {
			d.bodies[h.section] = joinBody(lines[h.line+1 : end])
		}
	}
	return d, problems
}

// skipObjective returns the index of the line behind the objective, which lines are to begin with and which the next
// section is to follow; 0 and false if they do not. The objective is compared as a whole, since it may hold lines that
// look like headings.
func skipObjective(lines []string, objective string) (after int, same bool) {
	i := 0
	next := func() string {
		for i < len(lines) {
			line := trimEnd(lines[i])
			i++
			if line != "" {
				return line
			}
		}
		return ""
	}
	for want := range strings.Lines(objective) {
		if want = trimEnd(strings.TrimSuffix(want, "\n")); want != "" && next() != want {
			return 0, false
		}
	}
	after = i
	return after, next() == headings[Plan]
}

type foundHeading struct {
	section Section
	line    int
}

// findHeadings returns the headings of sections outside of code blocks and reports other headings of the first two levels.
func findHeadings(lines []string, problems *problem.List) []foundHeading {
	var found []foundHeading
	var code fence
	for i, line := range lines {
		if code.code(line) || !strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "## ") {
			continue
		}
		line = trimEnd(line)
		if s := slices.Index(headings[:], line); s >= 0 {
			found = append(found, foundHeading{Section(s), i})
			continue
		}
		hint := "use ### inside of a section"
		if near := problem.Closest(line, headings[:]); near != "" {
			hint = "write " + near
		}
		problems.AddHint(CodeHeading, "", hint, "%q is none of the five headings", cutChars(line, 80))
	}
	if code.mark != 0 {
		problems.Add(CodeHeading, "", "a code block is not closed")
	}
	return found
}

// checkOrder reports headings after the objective that are missing, repeated or out of order.
func checkOrder(found []foundHeading, problems *problem.List) {
	var count [sections]int
	last, ordered := Objective, true
	for _, h := range found {
		count[h.section]++
		ordered = ordered && h.section >= last
		last = h.section
	}
	count[Objective]++
	for s, n := range count {
		switch {
		case n == 0:
			problems.Add(CodeHeading, "", "the heading %q is missing", headings[s])
		case n > 1:
			problems.Add(CodeHeading, "", "the heading %q stands there %d times", headings[s], n)
		}
	}
	if !ordered {
		problems.Add(CodeHeading, "", "the headings are not in order: %s", strings.Join(headings[:], ", "))
	}
}
