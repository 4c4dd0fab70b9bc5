package access_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/access/oidctest"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

const callback = "http://127.0.0.1:9/api/v1/session/oidc/callback"

// atProvider makes a world whose people may come from a provider.
func atProvider(t *testing.T, db *store.DB, idp *oidctest.Provider, change func(*access.OIDC)) *world {
	t.Helper()
	config := &access.OIDC{Tenant: tenant, Issuer: idp.Issuer, ClientID: idp.ClientID, ClientSecret: secret.New(idp.ClientSecret), RedirectURL: callback,
		DefaultRoles: []access.RoleGrant{everywhere(access.Viewer)}}
	change(config)
	w := newWorld(t, db, func(c *access.Config) { c.OIDC = config })
	w.clock.add(time.Until(w.clock.Now())) // the provider has no other clock
	return w
}

// come signs a person in at the provider and comes back.
func (w *world) come(idp *oidctest.Provider, username string) (*access.NewSession, string, error) {
	w.t.Helper()
	redirect, cookie, err := w.BeginOIDC(w.t.Context(), "/runs?x=1", from())
	if err != nil {
		w.t.Fatal(err)
	}
	return w.FinishOIDC(w.t.Context(), access.OIDCAnswer{Query: idp.Login(w.t, redirect, username, oidctest.Password), Cookie: cookie, From: from()})
}

func TestPeopleSignInAtAnIdentityProvider(t *testing.T) {
	t.Parallel()
	idp := oidctest.Start(t, callback)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := atProvider(t, db, idp, func(*access.OIDC) {})
		session, where, err := w.come(idp, "ada")
		if err != nil {
			t.Fatalf("%v: %s", err, idp.Log())
		}
		if where != "/runs?x=1" || session.User.Email != "ada@example.com" || session.User.Name != "Ada L" || session.User.HasPassword {
			t.Errorf("to %s as %+v", where, session.User)
		}
		p := w.principal(session.Token)
		if !access.Allowed(p, access.AgentsRead, "") || access.Allowed(p, access.RunsStart, "") {
			t.Errorf("grants %v", p.Grants)
		}
		again, _, err := w.come(idp, "ada")
		if err != nil || again.User.ID != session.User.ID {
			t.Errorf("the second time it is another user: %v", err)
		}
		_, _, err = w.come(idp, "bob")
		wants(t, "an address that is not verified", err, access.ErrCredentials)
		_, _, err = w.come(idp, "eve")
		wants(t, "the address of a user with a password", err, access.ErrCredentials)
		yes := true
		user, err := w.User(t.Context(), tenant, session.User.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.UpdateUser(t.Context(), w.admin, user.ID, user.Version, access.UserChange{Disabled: &yes}, from()); err != nil {
			t.Fatal(err)
		}
		_, _, err = w.come(idp, "ada")
		wants(t, "a disabled user", err, access.ErrCredentials)
		log, err := w.AuditLog(t.Context(), tenant, access.AuditFilter{Action: "session.create"})
		if err != nil || len(log) != 6 || log[0].Outcome != access.OutcomeRefused || log[5].Outcome != access.OutcomeDone {
			t.Errorf("audit log %+v, %v", log, err)
		}
	})
}

func TestRolesFollowTheProvider(t *testing.T) {
	t.Parallel()
	idp := oidctest.Start(t, callback)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		roles := map[string][]access.RoleGrant{"ada": {{Project: "p", Role: access.Operator}}}
		w := atProvider(t, db, idp, func(o *access.OIDC) { o.RolesClaim, o.Roles = "preferred_username", roles })
		session, _, err := w.come(idp, "ada")
		if err != nil {
			t.Fatal(err)
		}
		if p := w.principal(session.Token); !access.Allowed(p, access.RunsStart, "p") || access.Allowed(p, access.AgentsRead, "") {
			t.Errorf("grants %v", p.Grants)
		}
		roles["ada"] = []access.RoleGrant{everywhere(access.Builder)}
		if session, _, err = w.come(idp, "ada"); err != nil {
			t.Fatal(err)
		}
		if p := w.principal(session.Token); !access.Allowed(p, access.AgentsManage, "") {
			t.Errorf("grants %v", p.Grants)
		}
		delete(roles, "ada")
		_, _, err = w.come(idp, "ada")
		wants(t, "a person without a role", err, access.ErrCredentials)
		if _, err := w.Authenticate(t.Context(), session.Token); err != nil {
			t.Errorf("the session from before: %v", err)
		}
	})
}

func TestOnlyPeopleWhoWereAddedComeInWithoutDefaultRoles(t *testing.T) {
	t.Parallel()
	idp := oidctest.Start(t, callback)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := atProvider(t, db, idp, func(o *access.OIDC) { o.DefaultRoles = nil })
		_, _, err := w.come(idp, "ada")
		wants(t, "somebody nobody has added", err, access.ErrCredentials)
		added, _, err := w.CreateUser(t.Context(), w.admin, access.UserDraft{Email: "ada@example.com", Name: "Ada", Roles: []access.RoleGrant{everywhere(access.Operator)}}, from())
		if err != nil {
			t.Fatal(err)
		}
		session, _, err := w.come(idp, "ada")
		if err != nil || session.User.ID != added.ID {
			t.Fatalf("%v", err)
		}
		if p := w.principal(session.Token); !access.Allowed(p, access.RunsStart, "") {
			t.Errorf("grants %v", p.Grants)
		}
	})
}

func TestAnAnswerThatIsNotTheProvidersToThisBrowserIsRefused(t *testing.T) {
	t.Parallel()
	idp := oidctest.Start(t, callback)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := atProvider(t, db, idp, func(*access.OIDC) {})
		begin := func() (string, secret.Value) {
			redirect, cookie, err := w.BeginOIDC(t.Context(), "/", from())
			if err != nil {
				t.Fatal(err)
			}
			return redirect, cookie
		}
		finish := func(query url.Values, cookie secret.Value) error {
			_, _, err := w.FinishOIDC(t.Context(), access.OIDCAnswer{Query: query, Cookie: cookie, From: from()})
			return err
		}
		redirect, cookie := begin()
		asked, err := url.Parse(redirect)
		if err != nil {
			t.Fatal(err)
		}
		q := asked.Query()
		if q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("state") == "" || q.Get("response_type") != "code" {
			t.Errorf("asked %v", q)
		}
		answer := idp.Login(t, redirect, "ada", oidctest.Password)
		other, otherCookie := begin()
		otherAnswer := idp.Login(t, other, "ada", oidctest.Password)
		wants(t, "no cookie", finish(answer, secret.Value{}), access.ErrCredentials)
		wants(t, "the cookie of another browser", finish(answer, otherCookie), access.ErrCredentials)
		mixed := url.Values{"state": {answer.Get("state")}, "code": {otherAnswer.Get("code")}}
		wants(t, "the code of another sign-in", finish(mixed, cookie), access.ErrCredentials)
		wants(t, "another state", finish(url.Values{"state": {otherAnswer.Get("state")}, "code": {answer.Get("code")}}, cookie), access.ErrCredentials)
		wants(t, "no state", finish(url.Values{"code": {answer.Get("code")}}, cookie), access.ErrCredentials)
		wants(t, "another issuer", finish(url.Values{"state": {answer.Get("state")}, "code": {answer.Get("code")}, "iss": {"https://evil.example"}}, cookie), access.ErrCredentials)
		wants(t, "a refusal", finish(url.Values{"state": {answer.Get("state")}, "error": {"access_denied"}}, cookie), access.ErrCredentials)
		wants(t, "an invented code", finish(url.Values{"state": {answer.Get("state")}, "code": {"x"}}, cookie), access.ErrCredentials)
		if err := finish(answer, cookie); err != nil {
			t.Errorf("the right answer: %v", err)
		}
		wants(t, "the same answer again", finish(answer, cookie), access.ErrCredentials)
		late, lateCookie := begin()
		lateAnswer := idp.Login(t, late, "ada", oidctest.Password)
		w.clock.add(11 * time.Minute)
		wants(t, "after ten minutes", finish(lateAnswer, lateCookie), access.ErrCredentials)
	})
}

// replayer answers requests for tokens with an answer from before, as somebody would who has got hold of one.
type replayer struct {
	mu     sync.Mutex
	answer []byte
	replay bool
}

// RoundTrip keeps the first answer and repeats it once it is told to.
func (r *replayer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || request.Method != http.MethodPost {
		return response, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	if r.replay {
		body = r.answer
	}
	r.answer = body
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, nil
}

func TestAnIDTokenOfAnotherSignInIsRefused(t *testing.T) {
	t.Parallel()
	idp := oidctest.Start(t, callback)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		transport := &replayer{}
		w := newWorld(t, db, func(c *access.Config) {
			c.HTTP = &http.Client{Transport: transport}
			c.OIDC = &access.OIDC{Tenant: tenant, Issuer: idp.Issuer, ClientID: idp.ClientID, ClientSecret: secret.New(idp.ClientSecret), RedirectURL: callback,
				DefaultRoles: []access.RoleGrant{everywhere(access.Viewer)}}
		})
		w.clock.add(time.Until(w.clock.Now()))
		if _, _, err := w.come(idp, "ada"); err != nil {
			t.Fatal(err)
		}
		transport.replay = true
		_, _, err := w.come(idp, "ada")
		wants(t, "a token of another sign-in", err, access.ErrCredentials)
		if !strings.Contains(err.Error(), "nonce") {
			t.Errorf("error = %v", err)
		}
	})
}

func TestASignInSendsNobodyElsewhere(t *testing.T) {
	t.Parallel()
	idp := oidctest.Start(t, callback)
	db := storetest.Open(t, storetest.SQLite(t))
	w := atProvider(t, db, idp, func(*access.OIDC) {})
	for given, want := range map[string]string{
		"/agents": "/agents", "": "/", "agents": "/", "//evil.example": "/", "/\\evil.example": "/", "https://evil.example/": "/",
		"javascript:alert(1)": "/", "/a\nb": "/", "/%0d%0aX: y": "/%0d%0aX: y", "\t//evil.example": "/",
	} {
		redirect, cookie, err := w.BeginOIDC(t.Context(), given, from())
		if err != nil {
			t.Fatal(err)
		}
		_, got, err := w.FinishOIDC(t.Context(), access.OIDCAnswer{Query: idp.Login(t, redirect, "ada", oidctest.Password), Cookie: cookie, From: from()})
		if err != nil || got != want {
			t.Errorf("%q leads to %q, want %q, %v", given, got, want, err)
		}
	}
}

func TestAProviderThatIsDownIsNoFaultOfThePerson(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		down := httptest.NewServer(http.NotFoundHandler())
		down.Close()
		w := newWorld(t, db, func(c *access.Config) {
			c.OIDC = &access.OIDC{Tenant: tenant, Issuer: down.URL, ClientID: "c", ClientSecret: secret.New("canary-client-secret"), RedirectURL: callback}
		})
		_, _, err := w.BeginOIDC(t.Context(), "/", from())
		if err == nil || errors.Is(err, access.ErrCredentials) || strings.Contains(fmt.Sprintf("%v %+v", err, w.Service), "canary-client-secret") {
			t.Errorf("error = %v", err)
		}
		plain, _ := service(t, db)
		_, _, err = plain.BeginOIDC(t.Context(), "/", from())
		wants(t, "no provider", err, access.ErrNoOIDC)
		_, _, err = plain.FinishOIDC(t.Context(), access.OIDCAnswer{})
		wants(t, "no provider", err, access.ErrNoOIDC)
	})
}

func TestAnIdentityProviderIsConfiguredSafely(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	for name, o := range map[string]access.OIDC{
		"plain http":     {Tenant: "t", Issuer: "http://idp.example", ClientID: "c", RedirectURL: callback},
		"no URL":         {Tenant: "t", Issuer: "idp", ClientID: "c", RedirectURL: callback},
		"with user info": {Tenant: "t", Issuer: "https://u:p@idp.example", ClientID: "c", RedirectURL: callback},
		"no client":      {Tenant: "t", Issuer: "https://idp.example", RedirectURL: callback},
		"no tenant":      {Issuer: "https://idp.example", ClientID: "c", RedirectURL: callback},
	} {
		if _, err := access.New(access.Config{DB: db, OIDC: &o}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
