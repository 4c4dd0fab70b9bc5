// Package memory is what an agent has learned from run to run. The seam is the interface Memory: lessons that fit the
// task are recalled at the start of a run, lessons that the run noted are learned at its end, and nothing is remembered
// in between or behind anybody's back. Store keeps lessons in SQLite and finds them by full text; an implementation that
// finds them by vectors has the same two methods.
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hozo-run/hozo/problem"
)

// Bounds of a lesson, in characters.
const (
	MaxTitle = 120
	MaxText  = 2000
)

// Memory is what a runner needs of a memory. Implementations are safe for concurrent use.
type Memory interface {
	// Recall returns the lessons that fit a task best, the best first, limit at most. No lesson fitting is no error.
	Recall(ctx context.Context, task string, limit int) ([]Lesson, error)
	// Learn keeps what a run has noted and returns the lesson of each draft, in order: a new one, or the one that says
	// the same already. Learning twice is the same as once.
	Learn(ctx context.Context, runID string, drafts []Draft) ([]Lesson, error)
}

// Draft is a lesson that nobody has kept yet.
type Draft struct {
	// Title names the lesson in one line.
	Title string `json:"title"`
	// Text is the lesson, with its reason.
	Text string `json:"text"`
}

// Check returns everything that is wrong with the draft, with JSON Pointers into it.
func (d Draft) Check() problem.List {
	var list problem.List
	for _, field := range []struct {
		pointer, text string
		most          int
		lines         bool
	}{{"/title", d.Title, MaxTitle, false}, {"/text", d.Text, MaxText, true}} {
		switch n := utf8.RuneCountInString(field.text); {
		case field.text == "":
			list.Add("missing", field.pointer, "the %s is missing", field.pointer[1:])
		case n > field.most:
			list.Add("too-long", field.pointer, "the %s has %d characters; at most %d are allowed", field.pointer[1:], n, field.most)
		case !utf8.ValidString(field.text) || hasControl(field.text, field.lines):
			list.Add("text-invalid", field.pointer, "the %s must be text without control characters", field.pointer[1:])
		}
	}
	return list
}

func hasControl(text string, lines bool) bool {
	for _, r := range text {
		if unicode.IsControl(r) && !(lines && (r == '\n' || r == '\t')) {
			return true
		}
	}
	return false
}

// Lesson is something that was learned.
type Lesson struct {
	ID string `json:"id"`
	Draft
	// RunID is the run that learned it; empty if a person wrote it.
	RunID string `json:"runId,omitempty"`
	// Version counts the changes from 1. It is the ETag of the lesson.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// MaxNotes is the most lessons that one run can note.
const MaxNotes = 10

// Notebook holds what one run notes until it ends. It is safe for concurrent use.
type Notebook struct {
	mu    sync.Mutex
	calls []string
	notes []Draft
}

// Note adds a draft under the id of the call that noted it; a call that is made again replaces its own.
func (n *Notebook) Note(callID string, d Draft) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.calls {
		if n.calls[i] == callID {
			n.notes[i] = d
			return nil
		}
	}
	if len(n.notes) == MaxNotes {
		return fmt.Errorf("a run can note %d lessons at most", MaxNotes)
	}
	n.calls = append(n.calls, callID)
	n.notes = append(n.notes, d)
	return nil
}

// Drafts returns what was noted, in order.
func (n *Notebook) Drafts() []Draft {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Draft(nil), n.notes...)
}
