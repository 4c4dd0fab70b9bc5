package access

import (
	"context"
	"maps"
	"slices"
)

// Permission is one thing that a principal may do.
type Permission string

// The closed set of permissions.
const (
	AgentsRead      Permission = "agents.read"
	AgentsManage    Permission = "agents.manage"
	ProvidersManage Permission = "providers.manage"
	RunsRead        Permission = "runs.read"
	RunsStart       Permission = "runs.start"
	RunsManage      Permission = "runs.manage"
	ProjectsManage  Permission = "projects.manage"
	MemoryReview    Permission = "memory.review"
	ApprovalsDecide Permission = "approvals.decide"
	UsersManage     Permission = "users.manage"
	AuditRead       Permission = "audit.read"
	SettingsManage  Permission = "settings.manage"
)

// Permissions returns every permission.
func Permissions() []Permission {
	return []Permission{AgentsRead, AgentsManage, ProvidersManage, RunsRead, RunsStart, RunsManage, ProjectsManage, MemoryReview,
		ApprovalsDecide, UsersManage, AuditRead, SettingsManage}
}

// Role is a named set of permissions.
type Role string

// The roles, each with all that the one before it may do.
const (
	// Viewer looks at agents and runs.
	Viewer Role = "viewer"
	// Operator works with agents: starts runs, answers what they ask, reviews what they remember.
	Operator Role = "operator"
	// Builder makes agents and projects.
	Builder Role = "builder"
	// Admin may do everything.
	Admin Role = "admin"
)

// Roles returns every role, from the weakest to the strongest.
func Roles() []Role { return []Role{Viewer, Operator, Builder, Admin} }

// Permissions returns what a role permits, nil for an unknown one. It is the one table of roles.
func (r Role) Permissions() []Permission {
	viewer := []Permission{AgentsRead, RunsRead}
	operator := append(viewer, RunsStart, RunsManage, ApprovalsDecide, MemoryReview)
	switch r {
	case Viewer:
		return viewer
	case Operator:
		return operator
	case Builder:
		return append(operator, AgentsManage, ProjectsManage)
	case Admin:
		return Permissions()
	}
	return nil
}

// Principal is who makes a request: a person in a session, or a program with a key of theirs. It holds no credential.
type Principal struct {
	Tenant string
	UserID string
	// Name is for people.
	Name string
	// SessionID or KeyID says how they are known; the other is empty.
	SessionID, KeyID string
	// Grants are the permissions by project; those of "" hold in every project and for what belongs to none.
	Grants map[string][]Permission
}

// Allowed reports whether a principal has a permission in a project. Project "" is the installation: what belongs to no
// project. A nil principal has no permission.
func Allowed(p *Principal, permission Permission, project string) bool {
	if p == nil {
		return false
	}
	return slices.Contains(p.Grants[""], permission) || project != "" && slices.Contains(p.Grants[project], permission)
}

// AllowedProjects returns where a principal has a permission: in all projects, or in those that are listed, sorted. It is
// for lists, which show what the principal may see and leave out the rest.
func AllowedProjects(p *Principal, permission Permission) (all bool, projects []string) {
	if Allowed(p, permission, "") {
		return true, nil
	}
	if p == nil {
		return false, nil
	}
	for _, project := range slices.Sorted(maps.Keys(p.Grants)) {
		if slices.Contains(p.Grants[project], permission) {
			projects = append(projects, project)
		}
	}
	return false, projects
}

type principalKey struct{}

// WithPrincipal returns a context that carries p.
func WithPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalOf returns the principal that ctx carries, nil if there is none.
func PrincipalOf(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

// RoleGrant is a role somebody has in a project; project "" is the whole installation.
type RoleGrant struct {
	Project string `json:"project"`
	Role    Role   `json:"role"`
}

// grants returns what roles permit, by project.
func grants(roles []RoleGrant) map[string][]Permission {
	all := map[string][]Permission{}
	for _, r := range roles {
		for _, p := range r.Role.Permissions() {
			if !slices.Contains(all[r.Project], p) {
				all[r.Project] = append(all[r.Project], p)
			}
		}
	}
	return all
}

// narrow returns the part of grants that a key has: its own permissions, in its projects only. No projects means all.
func narrow(all map[string][]Permission, permissions []Permission, projects []string) map[string][]Permission {
	narrowed := map[string][]Permission{}
	keep := func(project string, held ...Permission) {
		for _, p := range held {
			if slices.Contains(permissions, p) && !slices.Contains(narrowed[project], p) {
				narrowed[project] = append(narrowed[project], p)
			}
		}
	}
	if len(projects) == 0 {
		for project, held := range all {
			keep(project, held...)
		}
		return narrowed
	}
	for _, project := range projects {
		keep(project, all[""]...)
		keep(project, all[project]...)
	}
	return narrowed
}
