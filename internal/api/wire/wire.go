// Package wire holds the documents of the HTTP API that are no records of another package: errors, pages, and what a
// request says. The server describes its API with them and the client reads and writes the same ones, so the two cannot
// drift apart. Records such as users and runs go over the wire as their own packages declare them.
//
// Every error of the API is a Problem (RFC 9457), every list a Page. Names are camelCase, times RFC 3339.
package wire

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// The media types that are not plain JSON.
const (
	ProblemType = "application/problem+json"
	EventsType  = "text/event-stream"
	// LinesType is JSON Lines: one document on each line.
	LinesType = "application/jsonl"
)

// The headers that are the API's own.
const (
	RequestIDHeader      = "X-Request-Id"
	CSRFHeader           = "X-CSRF-Token"
	IdempotencyKeyHeader = "Idempotency-Key"
)

// Problem is the body of every answer that is an error.
type Problem struct {
	Type   string `json:"type" doc:"about:blank: the code says more than a type could."`
	Title  string `json:"title" doc:"The text of the status."`
	Status int    `json:"status" doc:"The HTTP status."`
	Code   string `json:"code" doc:"What happened, in stable lower-case words with hyphens."`
	Detail string `json:"detail" doc:"What happened and how to mend it, for people."`
	// RequestID finds the request in the log.
	RequestID string  `json:"requestId,omitempty" doc:"The X-Request-Id of the answer."`
	Errors    []Fault `json:"errors,omitempty" doc:"Every fault of the request that was found."`

	// Headers go with the answer.
	Headers http.Header `json:"-"`
}

// Fault is one fault of a request.
type Fault struct {
	Pointer string `json:"pointer" doc:"The place in the body, as a JSON Pointer in a URI fragment such as #/roles/0; # is the whole body or something outside of it."`
	Code    string `json:"code" doc:"The rule that was broken, in stable lower-case words with hyphens."`
	Detail  string `json:"detail" doc:"What is wrong, for people."`
	Hint    string `json:"hint,omitempty" doc:"How to mend it."`
	File    string `json:"file,omitempty" doc:"The file of a package that has the fault."`
	Line    int    `json:"line,omitempty" doc:"The line in the file, from 1."`
	Column  int    `json:"column,omitempty" doc:"The column in the line, from 1."`
}

// Error returns the code, the detail and every fault on its own line.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", p.Code, p.Detail)
	for _, f := range p.Errors {
		b.WriteString("\n  " + f.Pointer + ": " + f.Detail)
	}
	return b.String()
}

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that go with the answer.
func (p *Problem) GetHeaders() http.Header { return p.Headers }

// ContentType returns ProblemType, whatever else was agreed on.
func (p *Problem) ContentType(string) string { return ProblemType }

// Page is a part of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// NextCursor is for the cursor parameter of the request for the next page.
	NextCursor string `json:"nextCursor,omitempty" doc:"The cursor of the next page; absent on the last one."`
}

// ETag returns the entity tag of a version of a record.
func ETag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }
