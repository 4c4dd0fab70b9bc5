package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
)

// Session says who the key of the client belongs to and what it may do.
func (c *Client) Session(ctx context.Context) (wire.Session, error) {
	return as[wire.Session](ctx, c, get(path("session"), nil))
}

// SignInOptions says how people can sign in.
func (c *Client) SignInOptions(ctx context.Context) (wire.SignInOptions, error) {
	return as[wire.SignInOptions](ctx, c, get(path("sign-in"), nil))
}

// Link says what a one-time link is for without using it.
func (c *Client) Link(ctx context.Context, token string) (access.Link, error) {
	return as[access.Link](ctx, c, call{method: http.MethodPost, path: path("links", "look"), body: wire.LinkToken{Token: token}})
}

// Users returns a page of users, by e-mail address.
func (c *Client) Users(ctx context.Context, o PageOptions) (wire.Page[access.User], error) {
	return as[wire.Page[access.User]](ctx, c, get(path("users"), o.query()))
}

// User returns one user.
func (c *Client) User(ctx context.Context, id string) (access.User, error) {
	return as[access.User](ctx, c, get(path("users", id), nil))
}

// CreateUser adds a user and returns the token of the link with which they set a password.
func (c *Client) CreateUser(ctx context.Context, draft access.UserDraft) (wire.NewUser, error) {
	return as[wire.NewUser](ctx, c, call{method: http.MethodPost, path: path("users"), body: draft})
}

// UpdateUser changes a user.
func (c *Client) UpdateUser(ctx context.Context, id string, version IfMatch, draft access.UserChange) (access.User, error) {
	return as[access.User](ctx, c, change(http.MethodPatch, path("users", id), version, draft))
}

// DeleteUser removes a user with all sessions and keys.
func (c *Client) DeleteUser(ctx context.Context, id string, version IfMatch) error {
	return c.done(ctx, change(http.MethodDelete, path("users", id), version, nil))
}

// PasswordLink makes a one-time link with which a user sets a password, and returns its token.
func (c *Client) PasswordLink(ctx context.Context, id string) (string, error) {
	link, err := as[wire.NewLink](ctx, c, call{method: http.MethodPost, path: path("users", id, "password-link")})
	return link.LinkToken, err
}

// UserSessions returns the sessions of a user.
func (c *Client) UserSessions(ctx context.Context, id string) ([]access.Session, error) {
	return items[access.Session](ctx, c, get(path("users", id, "sessions"), nil))
}

// EndUserSession ends one session of a user, or every one if session is "".
func (c *Client) EndUserSession(ctx context.Context, id, session string) error {
	at := path("users", id, "sessions")
	if session != "" {
		at = path("users", id, "sessions", session)
	}
	return c.done(ctx, change(http.MethodDelete, at, Any, nil))
}

// Sessions returns the sessions of whoever the key belongs to.
func (c *Client) Sessions(ctx context.Context) ([]access.Session, error) {
	return items[access.Session](ctx, c, get(path("sessions"), nil))
}

// EndSession ends one of those sessions, or every one if session is "".
func (c *Client) EndSession(ctx context.Context, session string) error {
	at := path("sessions")
	if session != "" {
		at = path("sessions", session)
	}
	return c.done(ctx, change(http.MethodDelete, at, Any, nil))
}

// Roles returns every role, from the weakest to the strongest.
func (c *Client) Roles(ctx context.Context) ([]wire.Role, error) {
	return items[wire.Role](ctx, c, get(path("roles"), nil))
}

// Keys returns the API keys of a user; of whoever the key of the client belongs to if user is "".
func (c *Client) Keys(ctx context.Context, user string) ([]access.Key, error) {
	at := path("keys")
	if user != "" {
		at = path("users", user, "keys")
	}
	return items[access.Key](ctx, c, get(at, nil))
}

// DeleteKey ends an API key.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	return c.done(ctx, change(http.MethodDelete, path("keys", id), Any, nil))
}

// AuditLog returns a page of the audit log, the newest entry first. Empty names choose every entry.
func (c *Client) AuditLog(ctx context.Context, action, actor string, o PageOptions) (wire.Page[access.Entry], error) {
	return as[wire.Page[access.Entry]](ctx, c, get(path("audit"), o.query("action", action, "actor", actor)))
}

// VerifyAudit checks that the audit log was not changed and holds an end that somebody kept, and returns its end. The zero
// end is not looked for.
func (c *Client) VerifyAudit(ctx context.Context, known wire.AuditHead) (wire.AuditHead, error) {
	return as[wire.AuditHead](ctx, c, call{method: http.MethodPost, path: path("audit", "verify"), body: known, again: true})
}

// Ready asks whether the server can work.
func (c *Client) Ready(ctx context.Context) error {
	return c.done(ctx, call{method: http.MethodGet, path: "/readyz"})
}

// query makes query parameters of pairs, without those that are empty.
func query(pairs ...string) url.Values { return PageOptions{}.query(pairs...) }
