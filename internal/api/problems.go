package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// answer is the status and the code of an error. Its detail is the text of the error itself where that is meant for people.
type answer struct {
	is     error
	status int
	code   string
	detail string
}

// answers is the one table of the errors that services return, beside problem.Error.
func answers() []answer {
	return []answer{
		{store.ErrNotFound, http.StatusNotFound, "not-found", "There is no such thing."},
		{store.ErrExists, http.StatusConflict, "exists", "There is one with this name already."},
		{store.ErrStale, http.StatusPreconditionFailed, "stale", "It has changed since it was read; read it again and repeat the change."},
		{store.ErrInUse, http.StatusConflict, "in-use", "It is in use."},
		{access.ErrCredentials, http.StatusUnauthorized, "credentials", "The e-mail address or the password is wrong."},
		{access.ErrUnauthenticated, http.StatusUnauthorized, "unauthenticated", "No valid session or API key."},
		{access.ErrCSRF, http.StatusForbidden, "csrf", "The token in X-CSRF-Token does not belong to the session; GET /api/v1/session has it."},
		{access.ErrForbidden, http.StatusForbidden, "forbidden", "Not permitted."},
		{access.ErrLink, http.StatusGone, "link", "The link is not valid any more; ask for a new one."},
		{access.ErrLastAdmin, http.StatusConflict, "last-admin", "It is the last one who can manage users."},
		{access.ErrNoOIDC, http.StatusNotFound, "no-identity-provider", "No identity provider is configured."},
		{builder.ErrBuiltIn, http.StatusConflict, "built-in", "It belongs to the release and cannot be changed; copy it under another name."},
		{builder.ErrMember, http.StatusConflict, "member", "The agent is meant for people's own tools (audience member) and never runs as a job."},
		{run.ErrOtherRequest, http.StatusConflict, "idempotency-key-reused", "The idempotency key belongs to another request."},
		{run.ErrState, http.StatusConflict, "state", "That is not possible in the state of the run."},
		{run.ErrFull, http.StatusTooManyRequests, "queue-full", "Too many runs wait already; try again later."},
		{run.ErrBusy, http.StatusTooManyRequests, "busy", "As many runs are running as may; try again later."},
		{context.Canceled, http.StatusServiceUnavailable, "interrupted", "The request was interrupted."},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", "It took too long."},
	}
}

// retryLater is the Retry-After of an answer that says try again, in seconds.
const retryLater = "5"

// problemOf makes the answer to an error. What is no known error is a fault of the server, and its text goes to the log
// only.
func (h *Handler) problemOf(ctx context.Context, err error) *wire.Problem {
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return p
	}
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		p := newProblem(ctx, http.StatusTooManyRequests, "rate-limit", limit.Error())
		p.Headers = http.Header{"Retry-After": {strconv.FormatInt(limit.Seconds(), 10)}}
		return p
	}
	if used, ok := errors.AsType[*account.InUseError](err); ok {
		return newProblem(ctx, http.StatusConflict, "in-use", used.Error())
	}
	if p := agentProblem(ctx, err); p != nil {
		return p
	}
	if e, ok := errors.AsType[*problem.Error](err); ok && e.Kind != problem.Internal {
		return fromKind(ctx, e)
	}
	for _, a := range answers() {
		if !errors.Is(err, a.is) {
			continue
		}
		p := newProblem(ctx, a.status, a.code, a.detail)
		if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
			p.Headers = http.Header{"Retry-After": {retryLater}}
		}
		return p
	}
	h.config.Log.ErrorContext(ctx, "a request failed", "requestId", requestID(ctx), "error", err)
	return newProblem(ctx, http.StatusInternalServerError, "internal", "A fault of the server; its log has more under the request id.")
}

// fromKind makes the answer to an error with a kind.
func fromKind(ctx context.Context, e *problem.Error) *wire.Problem {
	status := map[problem.Kind]int{
		problem.Invalid: http.StatusBadRequest, problem.NotFound: http.StatusNotFound, problem.Conflict: http.StatusConflict,
		problem.Forbidden: http.StatusForbidden, problem.Unavailable: http.StatusServiceUnavailable,
	}[e.Kind]
	detail := e.Message
	if detail == "" {
		detail = "The request has faults; errors lists them."
	}
	p := newProblem(ctx, status, string(e.Kind), detail)
	if status == http.StatusServiceUnavailable {
		p.Headers = http.Header{"Retry-After": {retryLater}}
	}
	p.Errors = faultsOf(e.Problems)
	return p
}

// agentProblem makes the answer to an error of package builder that has more to say than its name, nil for others.
func agentProblem(ctx context.Context, err error) *wire.Problem {
	if used, ok := errors.AsType[*builder.InUse](err); ok {
		p := newProblem(ctx, http.StatusConflict, "in-use", used.Error())
		for _, agent := range used.Agents {
			p.Errors = append(p.Errors, wire.Fault{Pointer: "#", Code: "used-by", Detail: agent})
		}
		return p
	}
	u, ok := errors.AsType[*builder.Unresolved](err)
	if !ok {
		return nil
	}
	status := http.StatusConflict
	if u.Reason == builder.ReasonUnknown {
		status = http.StatusNotFound
	}
	p := newProblem(ctx, status, string(u.Reason), u.Error())
	p.Errors = faultsOf(u.Problems)
	return p
}

func faultsOf(list problem.List) []wire.Fault {
	var faults []wire.Fault
	for _, found := range list {
		faults = append(faults, wire.Fault{
			Pointer: "#" + found.Pointer, Code: found.Code, Detail: found.Message, Hint: found.Hint,
			File: found.Path, Line: found.Line, Column: found.Column,
		})
	}
	return faults
}

func newProblem(ctx context.Context, status int, code, detail string) *wire.Problem {
	return &wire.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail, RequestID: requestID(ctx),
	}
}

// invalid is the answer to one fault that only a handler sees.
func invalid(ctx context.Context, pointer, code, detail string) *wire.Problem {
	p := newProblem(ctx, http.StatusBadRequest, string(problem.Invalid), "The request has faults; errors lists them.")
	p.Errors = []wire.Fault{{Pointer: "#" + pointer, Code: code, Detail: detail}}
	return p
}

// problemsOnce makes huma answer in our convention. Its constructors of errors are variables of the package, and every
// Handler sets the same ones.
var problemsOnce sync.Once

func useProblems() {
	problemsOnce.Do(func() {
		huma.DefaultArrayNullable = false
		huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
			return fromValidation(context.Background(), status, detail, errs)
		}
		huma.NewErrorWithContext = func(ctx huma.Context, status int, detail string, errs ...error) huma.StatusError {
			return fromValidation(ctx.Context(), status, detail, errs)
		}
	})
}

// fromValidation makes the answer to a request that does not fit its description. Values are left out: one may be a
// credential.
func fromValidation(ctx context.Context, status int, detail string, errs []error) *wire.Problem {
	code := string(problem.Invalid)
	switch status {
	case http.StatusUnprocessableEntity:
		status = http.StatusBadRequest
	case http.StatusRequestEntityTooLarge:
		code = "too-large"
	case http.StatusUnsupportedMediaType:
		code = "media-type"
	case http.StatusRequestTimeout:
		code = "timeout"
	}
	if status == http.StatusBadRequest {
		detail = "The request has faults; errors lists them."
	}
	p := newProblem(ctx, status, code, detail)
	for _, err := range errs {
		if d, ok := err.(huma.ErrorDetailer); ok {
			p.Errors = append(p.Errors, faultOf(d.ErrorDetail()))
		}
	}
	return p
}

// faultOf puts a finding of huma into our form.
func faultOf(d *huma.ErrorDetail) wire.Fault {
	pointer, inBody := pointerOf(d.Location)
	f := wire.Fault{Pointer: "#" + pointer, Code: codeOf(d.Message), Detail: d.Message}
	if !inBody {
		where, name, _ := strings.Cut(d.Location, ".")
		f.Detail = where + " parameter " + name + ": " + d.Message
	}
	if f.Code == "json" { // the text of the reader may quote what it read
		f.Detail = "the body is not one JSON document with each name once, or a value has the wrong type"
	}
	return f
}

// pointerOf turns a place such as body.roles[0].role into a JSON Pointer; false is a place outside of the body.
func pointerOf(location string) (string, bool) {
	rest, ok := strings.CutPrefix(location, "body")
	if !ok {
		return "", location == ""
	}
	rest = strings.NewReplacer("~", "~0", "/", "~1").Replace(rest)
	return strings.NewReplacer("[", "/", "]", "", ".", "/").Replace(rest), true
}

// codeOf names the rule behind a message of huma.
func codeOf(message string) string {
	for _, known := range [...]struct{ prefix, code string }{
		{"unexpected property", "unknown-field"}, {"unknown query parameter", "unknown-parameter"},
		{"expected required property", "required"}, {"required ", "required"}, {"request body is required", "required"},
		{"expected value to be one of", "not-allowed"},
		{"expected length", "length"}, {"expected array length", "length"}, {"expected number >", "range"}, {"expected number <", "range"},
		{"expected string to", "format"}, {"expected ", "type"}, {"invalid ", "type"},
	} {
		if strings.HasPrefix(message, known.prefix) {
			return known.code
		}
	}
	return "json"
}
