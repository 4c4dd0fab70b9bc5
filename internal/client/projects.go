package client

import (
	"context"
	"io"
	"net/http"

	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/project"
)

// Projects returns a page of the projects that the caller may see.
func (c *Client) Projects(ctx context.Context, o PageOptions) (wire.Page[project.Project], error) {
	return as[wire.Page[project.Project]](ctx, c, get(path("projects"), o.query()))
}

// Project returns one project.
func (c *Client) Project(ctx context.Context, id string) (project.Project, error) {
	return as[project.Project](ctx, c, get(path("projects", id), nil))
}

// CreateProject adds a project.
func (c *Client) CreateProject(ctx context.Context, draft project.Draft) (project.Project, error) {
	return as[project.Project](ctx, c, call{method: http.MethodPost, path: path("projects"), body: draft})
}

// UpdateProject changes a project.
func (c *Client) UpdateProject(ctx context.Context, id string, version IfMatch, draft project.Draft) (project.Project, error) {
	return as[project.Project](ctx, c, change(http.MethodPut, path("projects", id), version, draft))
}

// DeleteProject removes a project with its sources; runs and artifacts stay.
func (c *Client) DeleteProject(ctx context.Context, id string, version IfMatch) error {
	return c.done(ctx, change(http.MethodDelete, path("projects", id), version, nil))
}

// Sources returns what the runs of a project read.
func (c *Client) Sources(ctx context.Context, id string) ([]project.Source, error) {
	return items[project.Source](ctx, c, get(path("projects", id, "sources"), nil))
}

// Source returns one source of a project.
func (c *Client) Source(ctx context.Context, id, name string) (project.Source, error) {
	return as[project.Source](ctx, c, get(path("projects", id, "sources", name), nil))
}

// PutSource adds a source, for version None, or changes one.
func (c *Client) PutSource(ctx context.Context, id, name string, version IfMatch, draft wire.SourceDraft) (project.Source, error) {
	return as[project.Source](ctx, c, change(http.MethodPut, path("projects", id, "sources", name), version, draft))
}

// DeleteSource removes a source.
func (c *Client) DeleteSource(ctx context.Context, id, name string, version IfMatch) error {
	return c.done(ctx, change(http.MethodDelete, path("projects", id, "sources", name), version, nil))
}

// RunArtifacts returns a page of what a run left, by path.
func (c *Client) RunArtifacts(ctx context.Context, run string, o PageOptions) (wire.Page[artifact.Artifact], error) {
	return as[wire.Page[artifact.Artifact]](ctx, c, get(path("runs", run, "artifacts"), o.query()))
}

// ProjectArtifacts returns a page of what the runs of a project left, the newest first.
func (c *Client) ProjectArtifacts(ctx context.Context, id string, o PageOptions) (wire.Page[artifact.Artifact], error) {
	return as[wire.Page[artifact.Artifact]](ctx, c, get(path("projects", id, "artifacts"), o.query()))
}

// Artifact returns one artifact, without its content.
func (c *Client) Artifact(ctx context.Context, id string) (artifact.Artifact, error) {
	return as[artifact.Artifact](ctx, c, get(path("artifacts", id), nil))
}

// Download returns the content of an artifact. The caller closes it.
func (c *Client) Download(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.content(ctx, path("artifacts", id, "content"), nil)
}
