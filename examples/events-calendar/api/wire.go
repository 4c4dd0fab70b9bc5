package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
	"github.com/hozo-run/hozo/examples/events-calendar/runner"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 256 << 10

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client is gone; there is nobody to tell
}

// problemDocument is the body of an error (RFC 9457).
type problemDocument struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty"`
	Errors []fieldError `json:"errors,omitempty"`
}

// fieldError is one problem of a request; Pointer names a field of the body or, in a request without one, a parameter.
type fieldError struct {
	Pointer string `json:"pointer"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

func writeProblem(w http.ResponseWriter, p problemDocument) {
	if p.Type == "" {
		p.Type = "about:blank"
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone; there is nobody to tell
}

// statusError is an error with a status of its own.
type statusError struct {
	status int
	detail string
}

func (e *statusError) Error() string { return e.detail }

// fail answers with an error. What is no problem of the request is logged and not shown.
func (s *surface) fail(w http.ResponseWriter, r *http.Request, err error) {
	if own, ok := errors.AsType[*statusError](err); ok {
		writeProblem(w, problemDocument{Status: own.status, Detail: own.detail})
		return
	}
	p := problemDocument{Status: statusOf(problem.KindOf(err))}
	if p.Status == http.StatusInternalServerError {
		s.Log.ErrorContext(r.Context(), "a request failed inside", "method", r.Method, "path", r.URL.Path, "error", err)
		p.Detail = "the request failed inside"
		writeProblem(w, p)
		return
	}
	if errors.Is(err, runner.ErrBusy) {
		w.Header().Set("Retry-After", "5")
		p.Status = http.StatusTooManyRequests
	}
	if e, ok := errors.AsType[*problem.Error](err); ok {
		p.Detail = e.Message
		for _, found := range e.Problems {
			detail := found.Message
			if found.Hint != "" {
				detail += " (" + found.Hint + ")"
			}
			p.Errors = append(p.Errors, fieldError{Pointer: found.Pointer, Code: found.Code, Detail: detail})
		}
	}
	if p.Detail == "" {
		p.Detail = fmt.Sprintf("the request has %d problems", len(p.Errors))
	}
	writeProblem(w, p)
}

func statusOf(kind problem.Kind) int {
	switch kind {
	case problem.Invalid:
		return http.StatusBadRequest
	case problem.NotFound:
		return http.StatusNotFound
	case problem.Conflict:
		return http.StatusConflict
	case problem.Forbidden:
		return http.StatusForbidden
	case problem.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// readJSON reads the body of a request into v: one JSON object without fields that v does not have.
func readJSON(w http.ResponseWriter, r *http.Request, v any) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &statusError{http.StatusUnsupportedMediaType, "send the body as application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody)}
		}
		return nil, &statusError{http.StatusBadRequest, "the body could not be read"}
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(v)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("there is more after the object")
		}
	}
	if err != nil {
		return nil, bodyProblem(err)
	}
	return body, nil
}

// bodyProblem says what is wrong with a body, with the field where that is known.
func bodyProblem(err error) error {
	var list problem.List
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		list.Add("wrong-type", "/"+strings.ReplaceAll(wrong.Field, ".", "/"), "a JSON %s does not fit here", wrong.Value)
	} else if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		list.Add("unknown-field", "/"+name, "there is no field %q", name)
	} else {
		list.Add("json-invalid", "", "the body is no JSON object: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return list.Err("read the body")
}

// pageLimit reads ?limit=.
func pageLimit(r *http.Request, most int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 50, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		var list problem.List
		list.Add("limit-invalid", "/limit", "the limit must be a number between 1 and %d", most)
		return 0, list.Err("read the parameters")
	}
	return n, nil
}

// etag is the entity tag of a version.
func etag(version int64) string { return fmt.Sprintf(`"%d"`, version) }

// ifMatch reads the version that a client has seen: whoever changes something says what it looked like, so that nobody
// overwrites what he has not seen.
func ifMatch(r *http.Request) (int64, error) {
	text := r.Header.Get("If-Match")
	if text == "" {
		return 0, &statusError{http.StatusPreconditionRequired, "send the ETag of what you change as If-Match"}
	}
	version, err := strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
	if err != nil || version < 1 || !strings.HasPrefix(text, `"`) {
		return 0, stale
	}
	return version, nil
}

var stale = &statusError{http.StatusPreconditionFailed, "it has changed since: read it again"}

// changed turns the conflict of a stale version into the status that HTTP has for it.
func changed(err error) error {
	if errors.Is(err, database.ErrStale) {
		return stale
	}
	return err
}
