package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/problem"
)

// maxProblem bounds how much of an error is read.
const maxProblem = 1 << 20

// Error is what the server said about a request that failed. It is the cause of a *problem.Error.
type Error struct {
	// Status is the HTTP status, Code the stable name of what happened; a proxy that answers in place of the server has none.
	Status int
	Code   string
	Detail string
	// RequestID finds the request in the log of the server.
	RequestID string
	// RetryAfter is what the server asks for, zero if it asks for nothing.
	RetryAfter time.Duration
}

// Error returns the status and the request id; the rest is in the error around it.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text
}

// failure returns the error that an answer is, nil for a success. The body of an error is read and closed.
func failure(k call, response *http.Response) error {
	if response.StatusCode < http.StatusBadRequest {
		return nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem)) // what there is of it is enough
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get(wire.RequestIDHeader)}
	e.RetryAfter, _ = retryAfter(response)
	out := &problem.Error{Kind: kindOf(response.StatusCode), Op: k.method + " " + k.path, Err: e}
	var said wire.Problem
	if response.Header.Get("Content-Type") != wire.ProblemType || json.Unmarshal(text, &said) != nil {
		out.Message = "the server did not say why"
		return out
	}
	e.Code, e.Detail = said.Code, said.Detail
	out.Message = said.Detail
	for _, f := range said.Errors {
		out.Problems = append(out.Problems, problem.Problem{
			Code: f.Code, Pointer: strings.TrimPrefix(f.Pointer, "#"), Message: f.Detail, Hint: f.Hint,
			Path: f.File, Line: f.Line, Column: f.Column,
		})
	}
	return out
}

// kindOf says what a caller can do about a status.
func kindOf(status int) problem.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return problem.Forbidden
	case http.StatusNotFound, http.StatusGone:
		return problem.NotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return problem.Conflict
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return problem.Unavailable
	}
	if status < http.StatusInternalServerError {
		return problem.Invalid
	}
	return problem.Internal
}

// unreachable is the error of a request that brought no answer.
func unreachable(ctx context.Context, k call, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &problem.Error{Kind: problem.Unavailable, Op: k.method + " " + k.path, Message: "the server cannot be reached", Err: err}
}
