package api

import (
	"context"
	"net/http"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
)

// missing is the answer about something that does not exist, or that the caller may not know of.
func missing(ctx context.Context) *wire.Problem {
	return newProblem(ctx, http.StatusNotFound, "not-found", "There is no such thing.")
}

// may reports whether the caller has a permission in a project; "" is the installation.
func may(ctx context.Context, permission access.Permission, project string) bool {
	return access.Allowed(principalOf(ctx), permission, project)
}

// seesBindings and managesBindings say whose choice of models the caller may look at and change.
func seesBindings(ctx context.Context, project string) bool {
	return may(ctx, access.AgentsRead, project) || project == "" && principalOf(ctx).SessionID != "" || project == "" && seesAgents(ctx)
}

func managesBindings(ctx context.Context, project string) bool {
	return may(ctx, access.ProvidersManage, project)
}

// seesAgents reports whether the caller may look at agents somewhere: they belong to no project.
func seesAgents(ctx context.Context) bool {
	all, projects := access.AllowedProjects(principalOf(ctx), access.AgentsRead)
	return all || len(projects) > 0
}
