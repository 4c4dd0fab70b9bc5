package access

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
)

// oidcPatience is how long a sign-in at the identity provider may take.
const oidcPatience = 10 * time.Minute

// OIDC is an identity provider at which people sign in (OpenID Connect: code flow with PKCE and nonce).
type OIDC struct {
	// Tenant is where people who sign in belong.
	Tenant string
	// Issuer is the identity provider, an https address; http is for loopback addresses only.
	Issuer       string
	ClientID     string
	ClientSecret secret.Value
	// RedirectURL is the address of the server's callback, as the identity provider knows it.
	RedirectURL string
	// Scopes are asked for beside "openid"; nil means "email" and "profile".
	Scopes []string
	// RolesClaim names the claim with a person's groups, a text or a list of texts, such as "groups". What Roles has for
	// them is what the person may do, anew with each sign-in; somebody for whom it has nothing is refused. An empty
	// RolesClaim leaves roles to administrators.
	RolesClaim string
	Roles      map[string][]RoleGrant
	// DefaultRoles are those of somebody who comes for the first time. Without them, and without RolesClaim, only people whom
	// an administrator has added come in.
	DefaultRoles []RoleGrant
}

func (o *OIDC) check() error {
	issuer, err := url.Parse(o.Issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.User != nil:
		return errors.New("the issuer of the identity provider is no URL")
	case issuer.Scheme != "https" && !(issuer.Scheme == "http" && loopback(issuer.Hostname())):
		return errors.New("the issuer of the identity provider must begin with https://")
	case o.Tenant == "" || o.ClientID == "" || o.RedirectURL == "":
		return errors.New("the identity provider needs a tenant, a client id and a redirect URL")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// relyingParty is our side of the identity provider. It asks for the provider's addresses at the first sign-in, so that a
// server starts while the provider is down.
type relyingParty struct {
	config OIDC
	keys   *secret.Ring
	http   *http.Client
	now    func() time.Time

	// asking is held by whoever asks the provider for its addresses.
	asking   chan struct{}
	provider *oidc.Provider
}

func newRelyingParty(c Config) (*relyingParty, error) {
	if err := c.OIDC.check(); err != nil {
		return nil, err
	}
	if c.Keys == nil {
		return nil, errors.New("signing in at an identity provider needs a key ring")
	}
	p := &relyingParty{config: *c.OIDC, keys: c.Keys, http: c.HTTP, now: c.Now, asking: make(chan struct{}, 1)}
	if p.config.Scopes == nil {
		p.config.Scopes = []string{"email", "profile"}
	}
	return p, nil
}

// discover returns the provider and the client for it.
func (p *relyingParty) discover(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if p.provider == nil {
		// The provider keeps the context for later requests for its keys, so it must not end with this request.
		provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.http), p.config.Issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("reach the identity provider: %w", err)
		}
		p.provider = provider
	}
	return p.provider, &oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret.Reveal(), Endpoint: p.provider.Endpoint(),
		RedirectURL: p.config.RedirectURL, Scopes: append([]string{oidc.ScopeOpenID}, p.config.Scopes...)}, nil
}

// pendingSignIn is what the browser keeps, sealed, while its user is at the identity provider.
type pendingSignIn struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	ReturnTo string `json:"returnTo"`
	Until    int64  `json:"until"`
}

func (p *relyingParty) place() secret.Place {
	return secret.Place{Tenant: p.config.Tenant, Table: "cookie", ID: p.config.Issuer, Field: "oidc"}
}

// ErrNoOIDC is the error of a sign-in at an identity provider where there is none.
var ErrNoOIDC = errors.New("no identity provider is configured")

// HasOIDC reports whether people can sign in at an identity provider.
func (s *Service) HasOIDC() bool { return s.oidc != nil }

// BeginOIDC returns where to send the browser, and what to give it as a cookie (HttpOnly, Secure, SameSite=Lax) for ten
// minutes: only the browser that began a sign-in can finish it. returnTo is a path of this server; anything else becomes
// "/".
func (s *Service) BeginOIDC(ctx context.Context, returnTo string, from Origin) (redirect string, cookie secret.Value, err error) {
	if s.oidc == nil {
		return "", secret.Value{}, ErrNoOIDC
	}
	if err := s.limiters.address.Take(addressKey(from.Address)); err != nil {
		return "", secret.Value{}, err
	}
	_, client, err := s.oidc.discover(ctx)
	if err != nil {
		return "", secret.Value{}, err
	}
	pending := pendingSignIn{State: newToken().Reveal(), Nonce: newToken().Reveal(), Verifier: oauth2.GenerateVerifier(),
		ReturnTo: localPath(returnTo), Until: s.now().Add(oidcPatience).UnixMilli()}
	plain, err := json.Marshal(pending)
	if err != nil {
		return "", secret.Value{}, err
	}
	sealed, err := s.oidc.keys.Seal(s.oidc.place(), secret.New(string(plain)))
	if err != nil {
		return "", secret.Value{}, err
	}
	return client.AuthCodeURL(pending.State, oidc.Nonce(pending.Nonce), oauth2.S256ChallengeOption(pending.Verifier)), secret.New(sealed), nil
}

// localPath keeps a sign-in from sending people to another site.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	return text
}

// OIDCAnswer is what comes back from the identity provider.
type OIDCAnswer struct {
	// Query is that of the callback, Cookie what BeginOIDC returned.
	Query    url.Values
	Cookie   secret.Value
	Previous secret.Value
	From     Origin
}

// FinishOIDC signs in who comes back from the identity provider, and returns where they wanted to go. The error is
// ErrCredentials, with the cause, for everything that is not a proper answer or a person who is not welcome; it is for
// logs, and people are told ErrCredentials alone.
func (s *Service) FinishOIDC(ctx context.Context, answer OIDCAnswer) (*NewSession, string, error) {
	if s.oidc == nil {
		return nil, "", ErrNoOIDC
	}
	if err := s.limiters.address.Take(addressKey(answer.From.Address)); err != nil {
		return nil, "", err
	}
	pending, person, err := s.oidc.finish(ctx, answer)
	if err == nil {
		var session *NewSession
		if session, err = s.welcome(ctx, person, answer); err == nil {
			return session, pending.ReturnTo, nil
		}
	}
	if errors.Is(err, ErrCredentials) {
		entry := Entry{Tenant: s.oidc.config.Tenant, ActorKind: ActorNobody, Action: "session.create", Outcome: OutcomeRefused}
		err = errors.Join(err, s.Record(ctx, entry, answer.From))
	}
	return nil, "", err
}

// person is who the identity provider says somebody is.
type person struct {
	Subject  string          `json:"sub"`
	Email    string          `json:"email"`
	Verified json.RawMessage `json:"email_verified"`
	Name     string          `json:"name"`
	groups   []string
}

// verified takes true and "true": providers write both.
func (p *person) verified() bool {
	return string(p.Verified) == "true" || string(p.Verified) == `"true"`
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCredentials, fmt.Sprintf(format, args...))
}

// finish checks everything about the answer: that this browser began it, and that the ID token is the provider's, for us,
// fresh and for this sign-in.
func (p *relyingParty) finish(ctx context.Context, answer OIDCAnswer) (pending pendingSignIn, who person, err error) {
	plain, err := p.keys.Open(p.place(), answer.Cookie.Reveal())
	if err != nil || json.Unmarshal([]byte(plain.Reveal()), &pending) != nil {
		return pending, who, refused("the browser did not begin this sign-in")
	}
	query := answer.Query
	switch {
	case p.now().UnixMilli() >= pending.Until:
		return pending, who, refused("the sign-in took too long")
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(pending.State)) != 1:
		return pending, who, refused("the state belongs to another sign-in")
	case query.Has("iss") && query.Get("iss") != p.config.Issuer:
		return pending, who, refused("the answer comes from another issuer")
	case query.Has("error"):
		return pending, who, refused("the identity provider says %q", oneLine(query.Get("error"), maxAction))
	}
	provider, client, err := p.discover(ctx)
	if err != nil {
		return pending, who, err
	}
	tokens, err := client.Exchange(oidc.ClientContext(ctx, p.http), query.Get("code"), oauth2.VerifierOption(pending.Verifier))
	if err != nil {
		return pending, who, p.exchangeFault(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := provider.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: p.now}).Verify(oidc.ClientContext(ctx, p.http), raw)
	if err != nil {
		return pending, who, refused("the ID token is not valid")
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(pending.Nonce)) != 1 {
		return pending, who, refused("the nonce belongs to another sign-in")
	}
	who, err = p.identify(ctx, provider, token, tokens)
	return pending, who, err
}

// exchangeFault tells a refusal from a provider that cannot be reached. The answer of the provider is not quoted: it may
// repeat what it was sent.
func (p *relyingParty) exchangeFault(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return refused("the identity provider refused the code with status %d, %q", answer.Response.StatusCode, oneLine(answer.ErrorCode, maxAction))
	}
	return fmt.Errorf("reach the identity provider: %w", err)
}

// identify reads the claims: those of the ID token, and those that the provider hands out at its userinfo address only.
func (p *relyingParty) identify(ctx context.Context, provider *oidc.Provider, token *oidc.IDToken, tokens *oauth2.Token) (person, error) {
	claims := map[string]json.RawMessage{}
	if err := token.Claims(&claims); err != nil {
		return person{}, refused("the claims of the ID token cannot be read")
	}
	_, mailed := claims["email"]
	_, grouped := claims[p.config.RolesClaim]
	if provider.UserInfoEndpoint() != "" && (!mailed || p.config.RolesClaim != "" && !grouped) {
		info, err := provider.UserInfo(oidc.ClientContext(ctx, p.http), oauth2.StaticTokenSource(tokens))
		if err != nil {
			return person{}, fmt.Errorf("ask the identity provider about the user: %w", err)
		}
		more := map[string]json.RawMessage{}
		if err := info.Claims(&more); err != nil || info.Subject != token.Subject {
			return person{}, refused("the identity provider tells about another user")
		}
		for name, value := range more {
			if _, known := claims[name]; !known {
				claims[name] = value
			}
		}
	}
	var who person
	plain, err := json.Marshal(claims)
	if err != nil || json.Unmarshal(plain, &who) != nil {
		return person{}, refused("the claims have an unexpected form")
	}
	who.Subject, who.Email, who.groups = token.Subject, normalEmail(who.Email), texts(claims[p.config.RolesClaim])
	return who, nil
}

// texts reads a claim that is a text or a list of texts.
func texts(claim json.RawMessage) []string {
	var many []string
	if json.Unmarshal(claim, &many) == nil {
		return many
	}
	var one string
	if json.Unmarshal(claim, &one) == nil && one != "" {
		return []string{one}
	}
	return nil
}

// welcome finds or makes the user of a person and signs them in.
func (s *Service) welcome(ctx context.Context, who person, answer OIDCAnswer) (*NewSession, error) {
	config := s.oidc.config
	roles := config.DefaultRoles
	if config.RolesClaim != "" {
		roles = nil
		for _, group := range who.groups {
			roles = append(roles, config.Roles[group]...)
		}
		if len(roles) == 0 {
			return nil, refused("none of the person's groups has a role")
		}
	}
	roles = slices.Clone(roles)
	user, err := userByIdentity(ctx, s.db, config.Tenant, config.Issuer, who.Subject)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err == nil {
		return s.welcomeBack(ctx, user, roles, answer)
	}
	return s.welcomeNew(ctx, who, roles, answer)
}

// welcomeBack signs in somebody who was here before.
func (s *Service) welcomeBack(ctx context.Context, user User, roles []RoleGrant, answer OIDCAnswer) (*NewSession, error) {
	config := s.oidc.config
	if user.Disabled {
		return nil, refused("the user is disabled")
	}
	return s.startSession(ctx, config.Tenant, user, answer.Previous, answer.From, func(tx *store.Tx) error {
		current, err := userBy(ctx, tx, config.Tenant, "id", user.ID)
		if err != nil {
			return err
		}
		if current.Disabled {
			return refused("the user is disabled")
		}
		if config.RolesClaim == "" || slices.Equal(current.Roles, sortedRoles(roles)) {
			return nil
		}
		current.Roles, current.UpdatedAt = sortedRoles(roles), s.now().UTC()
		return saveUser(ctx, tx, config.Tenant, &current)
	})
}

// welcomeNew signs in somebody for the first time: as the user whom an administrator has added with this e-mail address,
// or as a new one. The provider must have verified the address. A user with a password is never taken over that way, as
// whoever controls an address at the provider would control the user.
func (s *Service) welcomeNew(ctx context.Context, who person, roles []RoleGrant, answer OIDCAnswer) (*NewSession, error) {
	config := s.oidc.config
	if who.Email == "" || !who.verified() {
		return nil, refused("the identity provider has not verified an e-mail address")
	}
	name := oneLine(who.Name, maxName)
	if name == "" {
		name = who.Email
	}
	added, err := userBy(ctx, s.db, config.Tenant, "email", who.Email)
	isNew := errors.Is(err, store.ErrNotFound)
	switch {
	case err != nil && !isNew:
		return nil, err
	case !isNew && (added.HasPassword || added.Disabled):
		return nil, refused("the e-mail address belongs to a user who does not sign in this way")
	case isNew && len(roles) == 0:
		return nil, refused("nobody has added the person")
	case isNew:
		added = s.newUser(UserDraft{Email: who.Email, Name: name, Roles: roles})
	}
	return s.startSession(ctx, config.Tenant, added, answer.Previous, answer.From, func(tx *store.Tx) error {
		if isNew {
			if err := insertUser(ctx, tx, config.Tenant, added); err != nil {
				return err
			}
		}
		if !isNew && config.RolesClaim != "" {
			current := added
			current.Roles, current.UpdatedAt = sortedRoles(roles), s.now().UTC()
			if err := saveUser(ctx, tx, config.Tenant, &current); err != nil {
				return err
			}
		}
		return insertIdentity(ctx, tx, config.Tenant, config.Issuer, who.Subject, added.ID, s.now().UnixMilli())
	})
}
