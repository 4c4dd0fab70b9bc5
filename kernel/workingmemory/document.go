package workingmemory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
)

// Section is one of the five parts of a document.
type Section int

// The sections in their order.
const (
	// Objective is what the job is for, byte for byte as it was given.
	Objective Section = iota
	// Plan is what is to be done and what is done.
	Plan
	// Findings is what is known, with its sources.
	Findings
	// Reasoning is why the work goes where it goes, and what happened.
	Reasoning
	// Coverage is how much of the objective is met and how sure that is.
	Coverage

	sections = 5
)

var headings = [sections]string{"## Objective", "## Plan / TODO", "## Findings", "## Reasoning & progress", "## Coverage & confidence"}

// String returns the heading line of the section, with its marks.
func (s Section) String() string {
	if s < 0 || s >= sections {
		return "section " + strconv.Itoa(int(s))
	}
	return headings[s]
}

// Document is a working-memory document: five sections and nothing else. It comes from New, Revise, Fold or Restore; the
// zero value has no objective. Documents are compared with ==.
type Document struct{ bodies [sections]string }

// New returns the document that a job starts with. The objective is kept as it is; see ObjectiveOf.
func New(objective string) Document {
	var d Document
	d.bodies[Objective] = objective
	d.bodies[Reasoning] = "- started"
	d.bodies[Coverage] = "Coverage: 0 %\nConfidence: 0"
	return d
}

// Restore reads a document that String wrote, for a job that goes on from its record. It returns an error if the text is
// no document about the objective.
func Restore(text, objective string) (Document, error) {
	d, problems := parse(text, objective)
	if err := problems.Err("read the working-memory document"); err != nil {
		return Document{}, err
	}
	return d, nil
}

// ObjectiveOf returns the objective of a document for a task and says whether it is the whole task. A task that would fill
// more than half of the document is cut, with a sentence that says so; the steps of such a job are shown the task as well
// (see StepInput.Task).
func ObjectiveOf(task string, limit int64) (objective string, whole bool) {
	most := int(limit) * 2 // bytes: half of four a token
	if len(task) <= most {
		return task, true
	}
	const note = "\n\n[The task goes on. It has %d characters in all and stands in full before this document.]"
	tail := fmt.Sprintf(note, utf8.RuneCountInString(task))
	return strings.TrimRight(cutBytes(task, most-len(tail)), " \t\r\n") + tail, false
}

// cutBytes returns the beginning of text, at most n bytes, without half a character.
func cutBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Section returns the text below a heading, without the blank lines around it.
func (d Document) Section(s Section) string { return d.bodies[s] }

// String returns the document as Markdown; it ends with a line feed.
func (d Document) String() string {
	var b strings.Builder
	b.Grow(d.size())
	for s, body := range d.bodies {
		if s > 0 {
			b.WriteString("\n")
		}
		b.WriteString(headings[s])
		b.WriteString("\n")
		if body != "" {
			b.WriteString("\n")
			b.WriteString(body)
			b.WriteString("\n")
		}
	}
	return b.String()
}

// size is len(d.String()).
func (d Document) size() int {
	n := sections - 1
	for s, body := range d.bodies {
		n += len(headings[s]) + 1
		if body != "" {
			n += len(body) + 2
		}
	}
	return n
}

// Tokens is the estimated size of the document.
func (d Document) Tokens() int64 { return llm.EstimateTokens(d.size()) }

// Hash is the SHA-256 of String, in hex.
func (d Document) Hash() string {
	sum := sha256.Sum256([]byte(d.String()))
	return hex.EncodeToString(sum[:])
}

// OpenItems returns the items of the plan whose box is not ticked ("- [ ] text"), without their boxes.
func (d Document) OpenItems() []string {
	var open []string
	for line := range strings.Lines(d.bodies[Plan]) {
		line = strings.TrimSpace(line)
		for _, bullet := range []string{"- [ ] ", "* [ ] ", "+ [ ] "} {
			if item, ok := strings.CutPrefix(line, bullet); ok {
				open = append(open, strings.TrimSpace(item))
			}
		}
	}
	return open
}

var ratingPatterns = sync.OnceValue(func() map[string]*regexp.Regexp {
	pattern := func(word string) *regexp.Regexp {
		return regexp.MustCompile(`(?im)^[^\pL\n]*` + word + `[^\pL\pN\n]{0,8}(\d+(?:[.,]\d+)?)\s*([%％])?`)
	}
	return map[string]*regexp.Regexp{"coverage": pattern("coverage"), "confidence": pattern("confidence")}
})

// Coverage returns the share of the objective that the document says is met, from 0 to 1; false if it states none.
func (d Document) Coverage() (float64, bool) { return d.rating("coverage") }

// Confidence returns how sure the document says it is, from 0 to 1; false if it does not.
func (d Document) Confidence() (float64, bool) { return d.rating("confidence") }

func (d Document) rating(word string) (float64, bool) {
	m := ratingPatterns()[word].FindStringSubmatch(d.bodies[Coverage])
	if m == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(strings.Replace(m[1], ",", ".", 1), 64)
	if err != nil {
		return 0, false
	}
	if m[2] != "" || value > 1 {
		value /= 100
	}
	return min(max(value, 0), 1), true
}
