package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/hozo-run/hozo/internal/api/wire"
)

// PageOptions choose a page of a list.
type PageOptions struct {
	// Limit is how many items to return at most; zero means 50, and 500 is the most.
	Limit int
	// Cursor is the NextCursor of the page before, "" for the first one.
	Cursor string
}

func (o PageOptions) query(pairs ...string) url.Values {
	query := url.Values{}
	if o.Limit > 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if o.Cursor != "" {
		query.Set("cursor", o.Cursor)
	}
	return query
}

// All reads a list to its end, page by page as the items are wanted. It ends with the first error.
func All[T any](ctx context.Context, page func(context.Context, PageOptions) (wire.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var options PageOptions
		for {
			p, err := page(ctx, options)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if p.NextCursor == "" {
				return
			}
			options.Cursor = p.NextCursor
		}
	}
}

// items is a list that comes in one page.
func items[T any](ctx context.Context, c *Client, k call) ([]T, error) {
	page, err := as[wire.Page[T]](ctx, c, k)
	return page.Items, err
}
