package api

import (
	"context"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/secret"
)

// SourcePath names a source of a project.
type SourcePath struct {
	ID   string `path:"id" maxLength:"128"`
	Name string `path:"name" maxLength:"128"`
}

func (h *Handler) projects() {
	const tag = "projects"
	projects := h.config.Projects
	route(h, tag, "list-projects", "GET /api/v1/projects", "The projects that the caller may see", h.listProjects)
	route(h, tag, "create-project", "POST /api/v1/projects", "Add a project", func(ctx context.Context, in *bodyOf[project.Draft]) (*created[project.Project], error) {
		p, err := projects.Create(ctx, tenantOf(ctx), in.Body)
		if err != nil {
			return nil, err
		}
		return &created[project.Project]{"/api/v1/projects/" + p.ID, wire.ETag(p.Version), p}, nil
	}, makes())
	route(h, tag, "get-project", "GET /api/v1/projects/{id}", "One project", func(ctx context.Context, in *ByID) (*tagged[project.Project], error) {
		return tagProject(h.project(ctx, in.ID, access.RunsRead))
	})
	route(h, tag, "update-project", "PUT /api/v1/projects/{id}", "Change a project", func(ctx context.Context, in *struct {
		ChangeByID
		Body project.Draft
	}) (*tagged[project.Project], error) {
		version, err := in.current(ctx, h.projectVersion(in.ID))
		if err != nil {
			return nil, err
		}
		return tagProject(projects.Update(ctx, tenantOf(ctx), in.ID, version, in.Body))
	})
	route(h, tag, "delete-project", "DELETE /api/v1/projects/{id}", "Remove a project with its sources; runs and artifacts stay", func(ctx context.Context, in *ChangeByID) (*nothing, error) {
		version, err := in.current(ctx, h.projectVersion(in.ID))
		if err != nil {
			return nil, err
		}
		return nil, projects.Delete(ctx, tenantOf(ctx), in.ID, version)
	})
	h.sources()
}

func (h *Handler) sources() {
	const tag, one = "projects", "/api/v1/projects/{id}/sources/{name}"
	projects := h.config.Projects
	route(h, tag, "list-sources", "GET /api/v1/projects/{id}/sources", "What the runs of a project read", func(ctx context.Context, in *ByID) (*plain[wire.Page[project.Source]], error) {
		if _, err := h.project(ctx, in.ID, access.RunsRead); err != nil {
			return nil, err
		}
		return whole(projects.Sources(ctx, tenantOf(ctx), in.ID))
	})
	route(h, tag, "get-source", "GET "+one, "One source", func(ctx context.Context, in *SourcePath) (*tagged[project.Source], error) {
		if _, err := h.project(ctx, in.ID, access.RunsRead); err != nil {
			return nil, err
		}
		return tagSource(projects.Source(ctx, tenantOf(ctx), in.ID, in.Name))
	})
	route(h, tag, "put-source", "PUT "+one, "Add or change a source; its credential is never returned", h.putSource)
	route(h, tag, "delete-source", "DELETE "+one, "Remove a source", func(ctx context.Context, in *struct {
		Precondition
		SourcePath
	}) (*nothing, error) {
		version, err := in.current(ctx, h.sourceVersion(in.SourcePath))
		if err != nil {
			return nil, err
		}
		return nil, projects.DeleteSource(ctx, tenantOf(ctx), in.ID, in.Name, version)
	})
}

// project returns a project of the tenant in which the caller has a permission.
func (h *Handler) project(ctx context.Context, id string, permission access.Permission) (project.Project, error) {
	p, err := h.config.Projects.Get(ctx, tenantOf(ctx), id)
	if err == nil && !may(ctx, permission, p.ID) {
		err = missing(ctx)
	}
	return p, err
}

// projectVersion returns the version of a project that the caller may change.
func (h *Handler) projectVersion(id string) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		p, err := h.project(ctx, id, access.ProjectsManage)
		return p.Version, err
	}
}

func (h *Handler) sourceVersion(at SourcePath) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		if _, err := h.project(ctx, at.ID, access.ProjectsManage); err != nil {
			return 0, err
		}
		s, err := h.config.Projects.Source(ctx, tenantOf(ctx), at.ID, at.Name)
		return s.Version, err
	}
}

func tagProject(p project.Project, err error) (*tagged[project.Project], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[project.Project]{wire.ETag(p.Version), p}, nil
}

func tagSource(s project.Source, err error) (*tagged[project.Source], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[project.Source]{wire.ETag(s.Version), s}, nil
}

// listProjects reads on until a page is full: what the caller may not see is left out.
func (h *Handler) listProjects(ctx context.Context, in *Paging) (*plain[wire.Page[project.Project]], error) {
	after, err := in.after(ctx)
	if err != nil {
		return nil, err
	}
	var visible []project.Project
	for len(visible) <= in.Limit {
		found, err := h.config.Projects.List(ctx, tenantOf(ctx), after, in.Limit+1)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			break
		}
		after = found[len(found)-1].ID
		visible = append(visible, slices.DeleteFunc(found, func(p project.Project) bool { return !may(ctx, access.RunsRead, p.ID) })...)
	}
	return &plain[wire.Page[project.Project]]{pageOf(visible, in.Limit, func(p project.Project) string { return p.ID })}, nil
}

func (h *Handler) putSource(ctx context.Context, in *struct {
	Precondition
	SourcePath
	Body wire.SourceDraft
}) (*tagged[project.Source], error) {
	if _, err := h.project(ctx, in.ID, access.ProjectsManage); err != nil {
		return nil, err
	}
	version, err := in.version()
	if version == anyVersion {
		version, err = in.current(ctx, h.sourceVersion(in.SourcePath))
	}
	if err != nil {
		return nil, err
	}
	return tagSource(h.config.Projects.PutSource(ctx, tenantOf(ctx), in.ID, in.Name, version, project.SourceDraft{
		Kind: in.Body.Kind, Location: in.Body.Location, Ref: in.Body.Ref, Exclude: in.Body.Exclude,
		Credential: secret.New(in.Body.Credential), RemoveCredential: in.Body.RemoveCredential,
	}))
}

func (h *Handler) artifacts() {
	const tag = "artifacts"
	route(h, tag, "list-run-artifacts", "GET /api/v1/runs/{id}/artifacts", "What a run left, by path", h.runArtifacts)
	route(h, tag, "list-project-artifacts", "GET /api/v1/projects/{id}/artifacts", "What the runs of a project left, newest first", h.projectArtifacts)
	route(h, tag, "get-artifact", "GET /api/v1/artifacts/{id}", "One artifact, without its content", func(ctx context.Context, in *ByID) (*plain[artifact.Artifact], error) {
		a, err := h.artifact(ctx, in.ID)
		return &plain[artifact.Artifact]{a}, err
	})
	route(h, tag, "download-artifact", "GET /api/v1/artifacts/{id}/content", "The content of an artifact; parts can be asked for with Range", h.download,
		content("application/octet-stream", "The content, with its own media type."))
}

// artifact returns an artifact of the tenant that the caller may see.
func (h *Handler) artifact(ctx context.Context, id string) (artifact.Artifact, error) {
	a, err := h.config.Artifacts.Get(ctx, tenantOf(ctx), id)
	if err == nil && !may(ctx, access.RunsRead, a.Project) {
		err = missing(ctx)
	}
	return a, err
}

func (h *Handler) runArtifacts(ctx context.Context, in *struct {
	ByID
	Paging
}) (*plain[wire.Page[artifact.Artifact]], error) {
	r, err := h.run(ctx, in.ID, access.RunsRead)
	if err != nil {
		return nil, err
	}
	after, err := in.after(ctx)
	if err != nil {
		return nil, err
	}
	found, err := h.config.Artifacts.OfRun(ctx, tenantOf(ctx), r.ID, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &plain[wire.Page[artifact.Artifact]]{pageOf(found, in.Limit, func(a artifact.Artifact) string { return a.Path })}, nil
}

func (h *Handler) projectArtifacts(ctx context.Context, in *struct {
	ByID
	Paging
}) (*plain[wire.Page[artifact.Artifact]], error) {
	if _, err := h.project(ctx, in.ID, access.RunsRead); err != nil {
		return nil, err
	}
	before, err := in.after(ctx)
	if err != nil {
		return nil, err
	}
	found, err := h.config.Artifacts.OfProject(ctx, tenantOf(ctx), in.ID, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &plain[wire.Page[artifact.Artifact]]{pageOf(found, in.Limit, func(a artifact.Artifact) string { return a.ID })}, nil
}

func (h *Handler) download(ctx context.Context, in *ByID) (*huma.StreamResponse, error) {
	if _, err := h.artifact(ctx, in.ID); err != nil {
		return nil, err
	}
	a, reader, err := h.config.Artifacts.Content(ctx, tenantOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer reader.Close()
		r, w := humago.Unwrap(c)
		w.Header().Set("Content-Type", a.MediaType)
		w.Header().Set("ETag", strconv.Quote(a.Hash))
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(a.Path)}))
		http.ServeContent(&patient{ResponseWriter: w, slow: h.slowWriter(c)}, r, "", time.Time{}, reader)
	}}, nil
}

// patient is a response writer for a reader that may take as long as it likes.
type patient struct {
	http.ResponseWriter
	slow *slowWriter
}

// Write implements http.ResponseWriter.
func (p *patient) Write(b []byte) (int, error) { return p.slow.Write(b) }
