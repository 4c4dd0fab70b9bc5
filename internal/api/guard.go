package api

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/secret"
)

// caller is who makes a request and how that is known.
type caller struct {
	// principal is nil for nobody; err says why, if there was a session or a key.
	principal *access.Principal
	err       error
	// session is the token of the cookie, empty without one.
	session secret.Value
	csrf    string
	origin  access.Origin
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	if c == nil {
		c = &caller{}
	}
	return c
}

// principalOf returns who makes the request. A route with a rule that asks for somebody has one.
func principalOf(ctx context.Context) *access.Principal { return callerOf(ctx).principal }

// tenantOf returns the tenant of the principal.
func tenantOf(ctx context.Context) string { return principalOf(ctx).Tenant }

// cookieName is the name of the cookie of a session. With the prefix browsers take it from this very host by https only.
func cookieName(secure bool) string {
	if secure {
		return "__Host-hozo"
	}
	return "hozo"
}

// identify finds out who makes a request and counts it. Who that is decides nothing yet: guard does.
func (h *Handler) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &caller{csrf: r.Header.Get(wire.CSRFHeader), origin: access.Origin{
			Address: h.address(r), Client: shorten(r.UserAgent(), 256), RequestID: requestID(r.Context()),
		}}
		h.authenticate(r, c)
		if !isProbe(r.URL.Path) {
			if err := h.config.Access.TakeRequest(c.principal, c.origin.Address); err != nil {
				h.write(w, h.problemOf(r.Context(), err))
				return
			}
		}
		ctx := context.WithValue(r.Context(), callerKey{}, c)
		next.ServeHTTP(w, r.WithContext(access.WithPrincipal(ctx, c.principal)))
	})
}

// isProbe reports whether a path is one that load balancers ask all the time.
func isProbe(path string) bool { return path == "/livez" || path == "/readyz" }

func shorten(text string, n int) string { return text[:min(len(text), n)] }

// authenticate reads the key, or else the cookie.
func (h *Handler) authenticate(r *http.Request, c *caller) {
	if given := r.Header.Get("Authorization"); given != "" {
		scheme, key, _ := strings.Cut(given, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			c.err = access.ErrUnauthenticated
			return
		}
		c.principal, c.err = h.config.Access.AuthenticateKey(r.Context(), secret.New(strings.TrimSpace(key)))
		return
	}
	if cookie, err := r.Cookie(cookieName(h.config.Secure)); err == nil && cookie.Value != "" {
		c.session = secret.New(cookie.Value)
		c.principal, c.err = h.config.Access.Authenticate(r.Context(), c.session)
	}
}

// guard lets a request through to its route, or answers it: it is the only place that looks at the table of rules.
func (h *Handler) guard(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	c := callerOf(ctx.Context())
	r, known := h.rules[op.Method+" "+op.Path]
	if err := h.check(ctx, r, known, c); err != nil {
		if r.action != "" && c.principal != nil && errors.Is(err, access.ErrForbidden) {
			h.record(ctx.Context(), r.action, targetOf(ctx), access.OutcomeRefused)
		}
		h.refuse(ctx, h.problemOf(ctx.Context(), err))
		return
	}
	next(ctx)
	if r.action != "" {
		h.record(ctx.Context(), r.action, targetOf(ctx), outcomeOf(ctx.Status()))
	}
}

// check returns why a request must not go on, nil if it may.
func (h *Handler) check(ctx huma.Context, r rule, known bool, c *caller) error {
	changes := ctx.Method() != http.MethodGet && ctx.Method() != http.MethodHead
	switch {
	case !known:
		return access.ErrForbidden
	case r.open:
		return nil
	case c.err != nil && !errors.Is(c.err, access.ErrUnauthenticated):
		return c.err
	case c.principal == nil:
		return unauthenticated(ctx.Context())
	case changes && c.principal.SessionID != "":
		if err := access.CheckCSRF(c.session, c.csrf); err != nil {
			return err
		}
	}
	if !r.permits(c.principal) {
		return access.ErrForbidden
	}
	return precondition(ctx)
}

// unauthenticated is the answer to whoever did not say who they are.
func unauthenticated(ctx context.Context) *wire.Problem {
	p := newProblem(ctx, http.StatusUnauthorized, "unauthenticated", "Sign in, or send an API key as Authorization: Bearer.")
	p.Headers = http.Header{"WWW-Authenticate": {"Bearer"}}
	return p
}

// refuse answers a request before its route.
func (h *Handler) refuse(ctx huma.Context, p *wire.Problem) {
	for name, values := range p.Headers {
		for _, value := range values {
			ctx.SetHeader(name, value)
		}
	}
	ctx.SetHeader("Content-Type", wire.ProblemType)
	ctx.SetStatus(p.Status)
	_ = writeJSON(ctx.BodyWriter(), p) // whoever asked is gone
}

// record adds to the audit log what access has not recorded itself. What was done cannot be taken back if that fails.
func (h *Handler) record(ctx context.Context, action, target string, outcome access.Outcome) {
	p := principalOf(ctx)
	entry := access.Entry{Tenant: p.Tenant, Action: action, Target: target, Outcome: outcome}
	if err := h.config.Access.Record(context.WithoutCancel(ctx), entry.By(p), callerOf(ctx).origin); err != nil {
		h.config.Log.ErrorContext(ctx, "an entry of the audit log is lost", "requestId", requestID(ctx), "action", action, "error", err)
	}
}

// targetOf names what a request is about: the parameters of its path, in their order, or what it has made.
func targetOf(ctx huma.Context) string {
	var parts []string
	for part := range strings.SplitSeq(ctx.Operation().Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			parts = append(parts, shorten(ctx.Param(strings.TrimSuffix(name, "}")), 128))
		}
	}
	if len(parts) == 0 { // then it may have been made just now
		_, w := humago.Unwrap(ctx)
		if at := w.Header().Get("Location"); at != "" {
			return path.Base(at)
		}
	}
	return strings.Join(parts, "/")
}

func outcomeOf(status int) access.Outcome {
	switch {
	case status < http.StatusBadRequest:
		return access.OutcomeDone
	case status == http.StatusForbidden:
		return access.OutcomeRefused
	}
	return access.OutcomeFailed
}
