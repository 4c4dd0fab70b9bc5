package llm

import (
	"fmt"
	"strings"
	"time"
)

// Class says what went wrong with a request, in the words of the decisions that the kernel takes.
type Class string

// The closed set of classes.
const (
	// ClassAuth: the credentials are missing, wrong or not allowed (401, 403).
	ClassAuth Class = "auth"
	// ClassQuota: the account has no money or plan left. Never retried.
	ClassQuota Class = "quota"
	// ClassRateLimit: too many requests for the moment (429).
	ClassRateLimit Class = "rate-limit"
	// ClassOverloaded: the provider cannot serve now (500 and above, 529).
	ClassOverloaded Class = "overloaded"
	// ClassConnection: no connection, or it broke before or while the response streamed.
	ClassConnection Class = "connection"
	// ClassTruncated: the stream ended in good order but before its finish mark.
	ClassTruncated Class = "truncated"
	// ClassMalformed: the response is not the protocol (HTML, an event that is no JSON, a line above the limit).
	ClassMalformed Class = "malformed"
	// ClassProvider: the provider reports a fault of its own inside the stream or as a stop reason.
	ClassProvider Class = "provider"
	// ClassContextOverflow: the request is larger than the model's window.
	ClassContextOverflow Class = "context-overflow"
	// ClassInvalidRequest: the provider refuses the request as it is (400, 404, 413, 422).
	ClassInvalidRequest Class = "invalid-request"
	// ClassRefused: the model or a filter refused to answer.
	ClassRefused Class = "refused"
	// ClassUnknownStop: the response ended with a stop reason that the adapter does not know.
	ClassUnknownStop Class = "unknown-stop"
)

// Retryable reports whether the same request may succeed if it is sent again.
func (c Class) Retryable() bool {
	switch c {
	case ClassRateLimit, ClassOverloaded, ClassConnection, ClassTruncated, ClassMalformed, ClassProvider:
		return true
	}
	return false
}

// Error is every fault of a request. Its text never holds a credential, a header value or the query of a URL.
type Error struct {
	Class Class
	// Status is the HTTP status, 0 if there was none.
	Status int
	// Code is the provider's own code or type of the error, if it gave one.
	Code string
	// Message is the provider's own text, cut to 2,000 bytes, or ours where it gave none.
	Message string
	// RetryAfter is the wait that the provider asks for, 0 if it asks for none.
	RetryAfter time.Duration
	// Final marks an error that must not be retried although its class could be (x-should-retry: false).
	Final bool
	// RequestID is the provider's id of the request, for support.
	RequestID string
	// Err is the cause, if any.
	Err error
}

// Error returns class, status and message.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("model request failed: ")
	b.WriteString(string(e.Class))
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		b.WriteString(": ")
		b.WriteString(e.Message)
	} else if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed if it is sent again.
func (e *Error) Retryable() bool { return !e.Final && e.Class.Retryable() }
