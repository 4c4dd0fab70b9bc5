package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hozo-run/hozo/internal/store"
)

// Precondition is the part of a request that names the version from which a change was made. It is exported because the
// fields of inputs have to be.
type Precondition struct {
	IfMatch     string `header:"If-Match" doc:"The ETag of the version that the change was made from, or * for any."`
	IfNoneMatch string `header:"If-None-Match" doc:"* for a change that makes something new."`
}

// precondition asks for If-Match, or If-None-Match: *, with every PUT, PATCH and DELETE.
func precondition(ctx huma.Context) error {
	switch ctx.Method() {
	case http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil
	}
	if ctx.Header("If-Match") != "" || ctx.Header("If-None-Match") == "*" {
		return nil
	}
	return newProblem(ctx.Context(), http.StatusPreconditionRequired, "precondition-required",
		"Send the ETag of the version that you have seen in If-Match, or * for any version.")
}

// anyVersion is what version returns for If-Match: *.
const anyVersion = -1

// version returns the version that the change was made from, anyVersion for *, and 0 if there must be none yet.
func (p Precondition) version() (int64, error) {
	if p.IfMatch == "" && p.IfNoneMatch == "*" {
		return 0, nil
	}
	tag := strings.TrimSpace(p.IfMatch)
	if tag == "*" || tag == "" { // guard asks for one where it has to be
		return anyVersion, nil
	}
	text, ok := strings.CutPrefix(tag, `"`)
	text, closed := strings.CutSuffix(text, `"`)
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || !closed || err != nil || n < 0 {
		return 0, store.ErrStale // no tag that we gave, so no version that is current
	}
	return n, nil
}

// current is version with * resolved to the current one.
func (p Precondition) current(ctx context.Context, read func(context.Context) (int64, error)) (int64, error) {
	n, err := p.version()
	if err != nil || n > 0 {
		return n, err
	}
	found, err := read(ctx)
	if err == nil && n == 0 {
		return 0, store.ErrStale // it must not exist and does
	}
	return found, err
}

// tagged is an answer with one record and its version.
type tagged[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// created is tagged with the address of what is new.
type created[T any] struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     T
}

// plain is an answer without a version.
type plain[T any] struct{ Body T }

// nothing is the input or output of a route that has none.
type nothing struct{}
