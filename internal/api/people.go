package api

import (
	"context"
	"encoding/hex"
	"strconv"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
)

// ByID names a record in the path.
type ByID struct {
	ID string `path:"id" maxLength:"128"`
}

// ChangeByID is a change of a record without a body.
type ChangeByID struct {
	Precondition
	ID string `path:"id" maxLength:"128"`
}

func (h *Handler) people() {
	const tag = "users"
	route(h, tag, "list-users", "GET /api/v1/users", "Users, by e-mail address", h.listUsers)
	route(h, tag, "create-user", "POST /api/v1/users", "Add a user", h.createUser, makes())
	route(h, tag, "get-user", "GET /api/v1/users/{id}", "One user", func(ctx context.Context, in *ByID) (*tagged[access.User], error) {
		return tagUser(h.config.Access.User(ctx, tenantOf(ctx), in.ID))
	})
	route(h, tag, "update-user", "PATCH /api/v1/users/{id}", "Change a user", h.updateUser)
	route(h, tag, "delete-user", "DELETE /api/v1/users/{id}", "Remove a user with all sessions and keys", func(ctx context.Context, in *ChangeByID) (*nothing, error) {
		version, err := in.current(ctx, h.userVersion(in.ID))
		if err != nil {
			return nil, err
		}
		return nil, h.config.Access.DeleteUser(ctx, principalOf(ctx), in.ID, version, callerOf(ctx).origin)
	})
	route(h, tag, "make-password-link", "POST /api/v1/users/{id}/password-link", "Make a one-time link with which a user sets a password", func(ctx context.Context, in *ByID) (*plain[wire.NewLink], error) {
		token, err := h.config.Access.PasswordLink(ctx, principalOf(ctx), in.ID, callerOf(ctx).origin)
		if err != nil {
			return nil, err
		}
		return &plain[wire.NewLink]{wire.NewLink{LinkToken: token.Reveal()}}, nil
	}, makes())
	route(h, tag, "list-user-sessions", "GET /api/v1/users/{id}/sessions", "The sessions of a user", func(ctx context.Context, in *ByID) (*plain[wire.Page[access.Session]], error) {
		if _, err := h.config.Access.User(ctx, tenantOf(ctx), in.ID); err != nil {
			return nil, err
		}
		return whole(h.config.Access.Sessions(ctx, tenantOf(ctx), in.ID))
	})
	route(h, tag, "end-user-sessions", "DELETE /api/v1/users/{id}/sessions", "End every session of a user", func(ctx context.Context, in *ChangeByID) (*nothing, error) {
		if _, err := h.config.Access.User(ctx, tenantOf(ctx), in.ID); err != nil {
			return nil, err
		}
		return nil, h.config.Access.SignOutEverywhere(ctx, principalOf(ctx), in.ID, callerOf(ctx).origin)
	})
	route(h, tag, "end-user-session", "DELETE /api/v1/users/{id}/sessions/{session}", "End one session of a user", func(ctx context.Context, in *struct {
		ChangeByID
		Session string `path:"session"`
	}) (*nothing, error) {
		return nil, h.config.Access.EndSession(ctx, principalOf(ctx), in.ID, in.Session, callerOf(ctx).origin)
	})
	route(h, tag, "list-roles", "GET /api/v1/roles", "Roles, from the weakest to the strongest", func(context.Context, *nothing) (*plain[wire.Page[wire.Role]], error) {
		var roles []wire.Role
		for _, r := range access.Roles() {
			roles = append(roles, wire.Role{Name: r, Permissions: r.Permissions()})
		}
		return whole(roles, nil)
	})
}

func tagUser(u access.User, err error) (*tagged[access.User], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[access.User]{wire.ETag(u.Version), u}, nil
}

func (h *Handler) userVersion(id string) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		u, err := h.config.Access.User(ctx, tenantOf(ctx), id)
		return u.Version, err
	}
}

func (h *Handler) listUsers(ctx context.Context, in *Paging) (*plain[wire.Page[access.User]], error) {
	after, err := in.after(ctx)
	if err != nil {
		return nil, err
	}
	users, err := h.config.Access.Users(ctx, tenantOf(ctx), after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &plain[wire.Page[access.User]]{pageOf(users, in.Limit, func(u access.User) string { return u.Email })}, nil
}

func (h *Handler) createUser(ctx context.Context, in *bodyOf[access.UserDraft]) (*created[wire.NewUser], error) {
	user, token, err := h.config.Access.CreateUser(ctx, principalOf(ctx), in.Body, callerOf(ctx).origin)
	if err != nil {
		return nil, err
	}
	return &created[wire.NewUser]{"/api/v1/users/" + user.ID, wire.ETag(user.Version), wire.NewUser{User: user, LinkToken: token.Reveal()}}, nil
}

func (h *Handler) updateUser(ctx context.Context, in *struct {
	ChangeByID
	Body access.UserChange
}) (*tagged[access.User], error) {
	version, err := in.current(ctx, h.userVersion(in.ID))
	if err != nil {
		return nil, err
	}
	return tagUser(h.config.Access.UpdateUser(ctx, principalOf(ctx), in.ID, version, in.Body, callerOf(ctx).origin))
}

func (h *Handler) keys() {
	const tag = "keys"
	route(h, tag, "list-keys", "GET /api/v1/keys", "The caller's own API keys", func(ctx context.Context, _ *nothing) (*plain[wire.Page[access.Key]], error) {
		return whole(h.config.Access.Keys(ctx, tenantOf(ctx), principalOf(ctx).UserID))
	})
	route(h, tag, "list-user-keys", "GET /api/v1/users/{id}/keys", "The API keys of a user", func(ctx context.Context, in *ByID) (*plain[wire.Page[access.Key]], error) {
		if _, err := h.config.Access.User(ctx, tenantOf(ctx), in.ID); err != nil {
			return nil, err
		}
		return whole(h.config.Access.Keys(ctx, tenantOf(ctx), in.ID))
	})
	route(h, tag, "create-key", "POST /api/v1/keys", "Make an API key for the caller", func(ctx context.Context, in *bodyOf[access.KeyDraft]) (*plain[wire.NewKey], error) {
		key, text, err := h.config.Access.CreateKey(ctx, principalOf(ctx), in.Body, callerOf(ctx).origin)
		if err != nil {
			return nil, err
		}
		return &plain[wire.NewKey]{wire.NewKey{Key: key, Secret: text.Reveal()}}, nil
	}, makes())
	route(h, tag, "delete-key", "DELETE /api/v1/keys/{id}", "End an API key", func(ctx context.Context, in *ChangeByID) (*nothing, error) {
		return nil, h.config.Access.DeleteKey(ctx, principalOf(ctx), in.ID, callerOf(ctx).origin)
	})
}

// auditQuery chooses entries.
type auditQuery struct {
	Paging
	Action string `query:"action" maxLength:"128" doc:"Only entries of this action."`
	Actor  string `query:"actor" maxLength:"128" doc:"Only entries of this user or key."`
}

func (h *Handler) audit() {
	const tag = "audit"
	route(h, tag, "list-audit-log", "GET /api/v1/audit", "The audit log, newest first", h.listAudit)
	route(h, tag, "verify-audit-log", "POST /api/v1/audit/verify", "Check that the audit log was not changed and holds an end that somebody kept", h.verifyAudit)
}

func (h *Handler) listAudit(ctx context.Context, in *auditQuery) (*plain[wire.Page[access.Entry]], error) {
	after, err := in.after(ctx)
	if err != nil {
		return nil, err
	}
	var before int64
	if after != "" {
		if before, err = strconv.ParseInt(after, 10, 64); err != nil {
			return nil, invalid(ctx, "", "cursor", "the cursor is none that this server gave")
		}
	}
	entries, err := h.config.Access.AuditLog(ctx, tenantOf(ctx), access.AuditFilter{Action: in.Action, Actor: in.Actor, Before: before, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	return &plain[wire.Page[access.Entry]]{pageOf(entries, in.Limit, func(e access.Entry) string { return strconv.FormatInt(e.Seq, 10) })}, nil
}

func (h *Handler) verifyAudit(ctx context.Context, in *bodyOf[wire.AuditHead]) (*plain[wire.AuditHead], error) {
	known, err := hex.DecodeString(in.Body.Hash)
	if err != nil {
		return nil, invalid(ctx, "/hash", "format", "the hash is not in hex digits")
	}
	end, err := h.config.Access.VerifyAudit(ctx, tenantOf(ctx), access.AuditHead{Seq: in.Body.Seq, Hash: known})
	if err != nil {
		return nil, err
	}
	return &plain[wire.AuditHead]{wire.AuditHead{Seq: end.Seq, Hash: hex.EncodeToString(end.Hash)}}, nil
}
