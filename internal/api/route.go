package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hozo-run/hozo/internal/api/wire"
)

// route adds a route whose handler returns the errors of services. The name of an operation is a verb and what it is about,
// such as list-users; its tag groups operations for readers.
func route[I, O any](h *Handler, tag, name, pattern, summary string, do func(context.Context, *I) (*O, error), more ...func(*huma.Operation)) {
	method, path, _ := strings.Cut(pattern, " ")
	op := huma.Operation{
		OperationID: name, Method: method, Path: path, Summary: summary, Tags: []string{tag},
		MaxBodyBytes: maxBody, BodyReadTimeout: readTimeout,
		Security: []map[string][]string{{"key": {}}, {"session": {}}},
	}
	if h.rules[pattern].open {
		op.Security = []map[string][]string{}
	}
	for _, change := range more {
		change(&op)
	}
	huma.Register(h.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, h.problemOf(ctx, err)
		}
		return out, nil
	})
}

// status sets the status of success.
func status(code int) func(*huma.Operation) {
	return func(op *huma.Operation) { op.DefaultStatus = code }
}

// makes is the status of a route that makes something.
func makes() func(*huma.Operation) { return status(http.StatusCreated) }

// content says what a route answers that writes its body by itself.
func content(mediaType, description string) func(*huma.Operation) {
	return func(op *huma.Operation) {
		op.Responses = map[string]*huma.Response{"200": {
			Description: description,
			Content:     map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: huma.TypeString}}},
		}}
	}
}

// Paging is the part of a request for a list.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many items to return at most."`
	Cursor string `query:"cursor" maxLength:"1024" doc:"The nextCursor of the page before."`
}

// after returns what the cursor stands for, "" for the first page.
func (p Paging) after(ctx context.Context) (string, error) {
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil {
		return "", invalid(ctx, "", "cursor", "the cursor is none that this server gave")
	}
	return string(text), nil
}

// pageOf makes a page of items, of which there may be one more than fit. key is what the next page begins after.
func pageOf[T any](items []T, limit int, key func(T) string) wire.Page[T] {
	page := wire.Page[T]{Items: items}
	if len(items) > limit {
		page.Items = items[:limit]
		page.NextCursor = cursorOf(key(items[limit-1]))
	}
	return page
}

func cursorOf(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// whole is the page of a list that comes in one.
func whole[T any](items []T, err error) (*plain[wire.Page[T]], error) {
	if err != nil {
		return nil, err
	}
	return &plain[wire.Page[T]]{wire.Page[T]{Items: items}}, nil
}
