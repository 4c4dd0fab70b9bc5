// Package problem holds the few kinds of error a caller can act on and the record of one validation finding. Findings
// are collected, never first-only: whoever checks a document reports everything that is wrong with it in one answer.
// The package imports only the standard library, so that every other package may use it. One table elsewhere maps a
// Kind to an exit code and to an HTTP status; nothing in here knows about either.
package problem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind says what a caller can do about an error.
type Kind string

// The closed set of kinds.
const (
	// Invalid means that the input is wrong; Error.Problems lists every finding.
	Invalid Kind = "invalid"
	// NotFound means that the named thing does not exist.
	NotFound Kind = "not-found"
	// Conflict means that the input was right once, but the state has moved on.
	Conflict Kind = "conflict"
	// Forbidden means that the caller may not do this.
	Forbidden Kind = "forbidden"
	// Unavailable means that something needed is missing now; the same call may work later.
	Unavailable Kind = "unavailable"
	// Internal means a fault of this program; its text is for logs, not for users.
	Internal Kind = "internal"
)

// Problem is one finding about one place of a document.
type Problem struct {
	// Code names the rule that was broken, in lower-case words with hyphens (for example "unknown-field"). Codes are
	// stable; messages are not.
	Code string `json:"code"`
	// Pointer is the JSON Pointer (RFC 6901) of the place in a JSON document; "" is the whole document.
	Pointer string `json:"pointer"`
	// Path, Line and Column name the place in a text file; Line and Column count from 1, and 0 means unknown.
	Path   string `json:"path,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Message says what is wrong, with the offending value where that is no secret.
	Message string `json:"message"`
	// Hint says how to mend it; it may be empty where Message already does.
	Hint string `json:"hint,omitempty"`
}

// String returns the finding on one line, place first: "path:line:col: message (hint)" or "/pointer: message (hint)".
func (p Problem) String() string {
	var b strings.Builder
	switch {
	case p.Path != "" && p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.Path, p.Line, max(p.Column, 1))
	case p.Path != "":
		fmt.Fprintf(&b, "%s: ", p.Path)
	case p.Pointer != "":
		fmt.Fprintf(&b, "%s: ", p.Pointer)
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		fmt.Fprintf(&b, " (%s)", p.Hint)
	}
	return b.String()
}

// List collects findings in the order in which they were found. The zero value is empty and ready to use.
type List []Problem

// Add appends a finding about the JSON place pointer, with a message in the manner of fmt.Sprintf.
func (l *List) Add(code, pointer, format string, args ...any) {
	*l = append(*l, Problem{Code: code, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

// AddHint is Add with a hint on how to mend the finding.
func (l *List) AddHint(code, pointer, hint, format string, args ...any) {
	*l = append(*l, Problem{Code: code, Pointer: pointer, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// Has reports whether a finding with this code was made at this pointer.
func (l List) Has(code, pointer string) bool {
	return slices.ContainsFunc(l, func(p Problem) bool { return p.Code == code && p.Pointer == pointer })
}

// Err returns nil for an empty list, else an *Error of kind Invalid that holds the findings.
func (l List) Err(op string) error {
	if len(l) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Op: op, Problems: l}
}

// Error is the error that crosses package borders when a caller may want to act on its kind.
type Error struct {
	Kind Kind
	// Op names what was being done, as in "parse job spec".
	Op string
	// Message is for people; it may be empty where Problems says it all.
	Message string
	// Problems is set for Invalid.
	Problems List
	// Err is the cause, if any.
	Err error
}

// Error returns the operation, the message and every finding on its own line.
func (e *Error) Error() string {
	var parts []string
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	text := strings.Join(parts, ": ")
	switch len(e.Problems) {
	case 0:
		return text
	case 1:
		return text + ": " + e.Problems[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d problems", text, len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		b.WriteString(p.String())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's chain, Internal for any other error, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Of returns the findings that err carries, nil if it carries none.
func Of(err error) List {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problems
	}
	return nil
}
