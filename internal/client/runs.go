package client

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
)

// StartRun starts a run. key makes a second request with the same key the first one; "" makes one, so that the request can
// be repeated safely within the call.
func (c *Client) StartRun(ctx context.Context, request wire.RunRequest, key string) (run.Run, error) {
	if key == "" {
		key = rand.Text()
	}
	return as[run.Run](ctx, c, call{
		method: http.MethodPost, path: path("runs"), body: request, again: true,
		header: http.Header{wire.IdempotencyKeyHeader: {strconv.Quote(key)}},
	})
}

// RunFilter chooses runs. Empty fields choose all.
type RunFilter struct {
	Project, Agent, Parent string
	States                 []run.State
}

// Runs returns a page of runs, the newest first.
func (c *Client) Runs(ctx context.Context, f RunFilter, o PageOptions) (wire.Page[run.Run], error) {
	query := o.query("project", f.Project, "agent", f.Agent, "parent", f.Parent)
	var states string
	for i, s := range f.States {
		if i > 0 {
			states += ","
		}
		states += string(s)
	}
	if states != "" {
		query.Set("state", states)
	}
	return as[wire.Page[run.Run]](ctx, c, get(path("runs"), query))
}

// Run returns one run.
func (c *Client) Run(ctx context.Context, id string) (run.Run, error) {
	return as[run.Run](ctx, c, get(path("runs", id), nil))
}

// CancelRun wants a run to end; one that has ended stays as it is. The cause is for people and may be empty.
func (c *Client) CancelRun(ctx context.Context, id, cause string) (run.Run, error) {
	return as[run.Run](ctx, c, call{method: http.MethodPost, path: path("runs", id, "cancel"), body: wire.Cancellation{Cause: cause}, again: true})
}

// Decide answers calls that a suspended run waits for.
func (c *Client) Decide(ctx context.Context, id string, decisions []job.Decision) (wire.Decided, error) {
	return as[wire.Decided](ctx, c, call{method: http.MethodPost, path: path("runs", id, "decisions"), body: wire.Decisions{Decisions: decisions}})
}

// Attempts returns the attempts of a run, the first one first.
func (c *Client) Attempts(ctx context.Context, id string) ([]run.Attempt, error) {
	return items[run.Attempt](ctx, c, get(path("runs", id, "attempts"), nil))
}

// Steps returns a page of what a run did, in order.
func (c *Client) Steps(ctx context.Context, id string, o PageOptions) (wire.Page[run.Step], error) {
	return as[wire.Page[run.Step]](ctx, c, get(path("runs", id, "steps"), o.query()))
}

// StepOutput returns the whole output of a step. The caller closes it.
func (c *Client) StepOutput(ctx context.Context, id string, n int64) (io.ReadCloser, error) {
	return c.content(ctx, path("runs", id, "steps", strconv.FormatInt(n, 10), "output"), nil)
}

// Journal returns the journal of a run, one frame on each line, for replay. The caller closes it.
func (c *Client) Journal(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.content(ctx, path("runs", id, "journal"), nil)
}

// content returns a body that is no JSON. Whoever reads it gets an error if it was cut.
func (c *Client) content(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	response, err := c.do(ctx, get(path, query))
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}
