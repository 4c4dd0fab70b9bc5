package api

import (
	"context"
	"net/http"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/secret"
)

// oidcCookie holds what a browser keeps while its owner is at the identity provider.
const oidcCookie = "hozo-oidc"

// signedIn is the answer to a sign-in: the token goes into the cookie and nowhere else.
type signedIn struct {
	SetCookie []string `header:"Set-Cookie"`
	Body      wire.Session
}

// redirect sends a browser elsewhere.
type redirect struct {
	SetCookie []string `header:"Set-Cookie"`
	Location  string   `header:"Location"`
}

// signedOut removes the cookie.
type signedOut struct {
	SetCookie []string `header:"Set-Cookie"`
}

type bodyOf[T any] struct{ Body T }

func (h *Handler) sessions() {
	const tag = "session"
	route(h, tag, "get-sign-in-options", "GET /api/v1/sign-in", "How people can sign in", func(context.Context, *nothing) (*plain[wire.SignInOptions], error) {
		return &plain[wire.SignInOptions]{wire.SignInOptions{Password: true, OIDC: h.config.Access.HasOIDC()}}, nil
	})
	route(h, tag, "sign-in", "POST /api/v1/sign-in", "Sign in with a password", h.signIn)
	route(h, tag, "sign-out", "POST /api/v1/sign-out", "End the session", h.signOut)
	route(h, tag, "get-session", "GET /api/v1/session", "Who makes the request, and what they may do", h.session)
	route(h, tag, "change-password", "POST /api/v1/password", "Change the password and end every other session", h.changePassword)
	route(h, tag, "look-at-link", "POST /api/v1/links/look", "What a one-time link is for", h.lookAtLink)
	route(h, tag, "redeem-link", "POST /api/v1/links/redeem", "Use a one-time link: become the first administrator, or set a password", h.redeem)
	route(h, tag, "begin-oidc", "GET /api/v1/oidc/sign-in", "Go to the identity provider", h.beginOIDC, status(http.StatusFound))
	route(h, tag, "finish-oidc", "GET /api/v1/oidc/callback", "Come back from the identity provider", h.finishOIDC, status(http.StatusFound))
	route(h, tag, "list-sessions", "GET /api/v1/sessions", "The caller's own sessions", func(ctx context.Context, _ *nothing) (*plain[wire.Page[access.Session]], error) {
		return whole(h.config.Access.Sessions(ctx, tenantOf(ctx), principalOf(ctx).UserID))
	})
	route(h, tag, "end-session", "DELETE /api/v1/sessions/{session}", "End one of the caller's own sessions", func(ctx context.Context, in *struct {
		Precondition
		Session string `path:"session"`
	}) (*nothing, error) {
		p := principalOf(ctx)
		return nil, h.config.Access.EndSession(ctx, p, p.UserID, in.Session, callerOf(ctx).origin)
	})
	route(h, tag, "end-sessions", "DELETE /api/v1/sessions", "End every one of the caller's own sessions", func(ctx context.Context, _ *struct{ Precondition }) (*nothing, error) {
		p := principalOf(ctx)
		return nil, h.config.Access.SignOutEverywhere(ctx, p, p.UserID, callerOf(ctx).origin)
	})
}

func (h *Handler) signIn(ctx context.Context, in *bodyOf[wire.SignIn]) (*signedIn, error) {
	c := callerOf(ctx)
	session, err := h.config.Access.SignIn(ctx, access.Credentials{
		Tenant: h.config.Tenant, Email: in.Body.Email, Password: secret.New(in.Body.Password), Previous: c.session, From: c.origin,
	})
	if err != nil {
		return nil, err
	}
	return h.start(ctx, session)
}

// start is the answer to every way of signing in.
func (h *Handler) start(ctx context.Context, session *access.NewSession) (*signedIn, error) {
	p, err := h.config.Access.Authenticate(ctx, session.Token)
	if err != nil {
		return nil, err
	}
	return &signedIn{
		SetCookie: []string{h.cookie(cookieName(h.config.Secure), session.Token.Reveal(), session.Session.ExpiresAt)},
		Body:      sessionOf(p, session.CSRF),
	}, nil
}

func sessionOf(p *access.Principal, csrf string) wire.Session {
	return wire.Session{UserID: p.UserID, Name: p.Name, KeyID: p.KeyID, CSRF: csrf, Grants: p.Grants}
}

// cookie makes a cookie that scripts cannot read and other sites do not send along with changes. One that has expired
// removes it.
func (h *Handler) cookie(name, value string, expires time.Time) string {
	c := http.Cookie{
		Name: name, Value: value, Path: "/", Expires: expires, HttpOnly: true, Secure: h.config.Secure, SameSite: http.SameSiteLaxMode,
	}
	return c.String()
}

func (h *Handler) noCookie(name string) string { return h.cookie(name, "", time.Unix(1, 0)) }

func (h *Handler) signOut(ctx context.Context, _ *nothing) (*signedOut, error) {
	if principalOf(ctx).SessionID == "" {
		return nil, invalid(ctx, "", "no-session", "an API key has no session; DELETE /api/v1/keys/{id} ends the key")
	}
	if err := h.config.Access.SignOut(ctx, principalOf(ctx), callerOf(ctx).origin); err != nil {
		return nil, err
	}
	return &signedOut{[]string{h.noCookie(cookieName(h.config.Secure))}}, nil
}

func (h *Handler) session(ctx context.Context, _ *nothing) (*plain[wire.Session], error) {
	c, csrf := callerOf(ctx), ""
	if c.principal.SessionID != "" {
		csrf = access.CSRFToken(c.session)
	}
	return &plain[wire.Session]{sessionOf(c.principal, csrf)}, nil
}

func (h *Handler) changePassword(ctx context.Context, in *bodyOf[wire.PasswordChange]) (*nothing, error) {
	return nil, h.config.Access.ChangePassword(ctx, principalOf(ctx), secret.New(in.Body.Current), secret.New(in.Body.Next), callerOf(ctx).origin)
}

func (h *Handler) lookAtLink(ctx context.Context, in *bodyOf[wire.LinkToken]) (*plain[access.Link], error) {
	link, err := h.config.Access.Link(ctx, secret.New(in.Body.Token), callerOf(ctx).origin)
	if err != nil {
		return nil, err
	}
	return &plain[access.Link]{link}, nil
}

func (h *Handler) redeem(ctx context.Context, in *bodyOf[wire.Redemption]) (*signedIn, error) {
	c := callerOf(ctx)
	session, err := h.config.Access.Redeem(ctx, access.Redemption{
		Token: secret.New(in.Body.Token), Password: secret.New(in.Body.Password), Email: in.Body.Email, Name: in.Body.Name,
		Previous: c.session, From: c.origin,
	})
	if err != nil {
		return nil, err
	}
	return h.start(ctx, session)
}

func (h *Handler) beginOIDC(ctx context.Context, in *struct {
	ReturnTo string `query:"returnTo" maxLength:"2048" doc:"The path to come back to."`
}) (*redirect, error) {
	to, cookie, err := h.config.Access.BeginOIDC(ctx, in.ReturnTo, callerOf(ctx).origin)
	if err != nil {
		return nil, err
	}
	return &redirect{[]string{h.cookie(oidcCookie, cookie.Reveal(), time.Now().Add(10*time.Minute))}, to}, nil
}

// callback is what the identity provider sends; its parameters are for access to judge.
type callback struct {
	Code             string `query:"code"`
	State            string `query:"state"`
	Issuer           string `query:"iss"`
	SessionState     string `query:"session_state"`
	Scope            string `query:"scope"`
	AuthUser         string `query:"authuser"`
	Prompt           string `query:"prompt"`
	HostedDomain     string `query:"hd"`
	Error            string `query:"error"`
	ErrorDescription string `query:"error_description"`
	ErrorURI         string `query:"error_uri"`
	Cookie           string `cookie:"hozo-oidc"`
}

func (h *Handler) finishOIDC(ctx context.Context, in *callback) (*redirect, error) {
	c := callerOf(ctx)
	query := map[string][]string{}
	for name, value := range map[string]string{"code": in.Code, "state": in.State, "iss": in.Issuer, "error": in.Error, "error_description": in.ErrorDescription} {
		if value != "" {
			query[name] = []string{value}
		}
	}
	session, to, err := h.config.Access.FinishOIDC(ctx, access.OIDCAnswer{
		Query: query, Cookie: secret.New(in.Cookie), Previous: c.session, From: c.origin,
	})
	if err != nil {
		return nil, err
	}
	return &redirect{[]string{
		h.cookie(cookieName(h.config.Secure), session.Token.Reveal(), session.Session.ExpiresAt), h.noCookie(oidcCookie),
	}, to}, nil
}
