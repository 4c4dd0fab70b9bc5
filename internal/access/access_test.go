package access_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const tenant = access.DefaultTenant

// password is long enough and known to nobody.
const password = "correct horse battery staple"

// cheap keeps tests fast; what a hash costs is not what they are about.
func cheap() access.Cost { return access.Cost{Memory: 64, Time: 1, Threads: 1} }

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func from() access.Origin {
	return access.Origin{Address: "192.0.2.7", Client: "test/1", RequestID: "req_1"}
}

// generous are limits that no test meets by accident.
func generous() access.Limits {
	r := access.Rate{Burst: 100_000, Every: time.Millisecond}
	return access.Limits{SignInAddress: r, SignInAccount: r, SignInBoth: r, Principal: r, Address: r}
}

// world is a service with its clock and its first administrator.
type world struct {
	*access.Service
	t     *testing.T
	db    *store.DB
	clock *clock
	admin *access.Principal
}

func service(t *testing.T, db *store.DB, change ...func(*access.Config)) (*access.Service, *clock) {
	t.Helper()
	ring, err := secret.Load(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	config := access.Config{DB: db, Keys: ring, Cost: cheap(), Now: clock.Now, Limits: generous()}
	for _, f := range change {
		f(&config)
	}
	s, err := access.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s, clock
}

func newWorld(t *testing.T, db *store.DB, change ...func(*access.Config)) *world {
	t.Helper()
	s, clock := service(t, db, change...)
	w := &world{Service: s, t: t, db: db, clock: clock}
	token, needed, err := s.FirstAdminLink(t.Context(), tenant)
	if err != nil || !needed {
		t.Fatalf("needed %t, %v", needed, err)
	}
	session, err := s.Redeem(t.Context(), access.Redemption{Token: token, Password: secret.New(password), Email: "Root@Example.com ", Name: "Root", From: from()})
	if err != nil {
		t.Fatal(err)
	}
	w.admin = w.principal(session.Token)
	return w
}

func (w *world) principal(token secret.Value) *access.Principal {
	w.t.Helper()
	p, err := w.Authenticate(w.t.Context(), token)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// add makes a user with the test's password and returns a session of theirs.
func (w *world) add(email string, roles ...access.RoleGrant) *access.NewSession {
	w.t.Helper()
	_, link, err := w.CreateUser(w.t.Context(), w.admin, access.UserDraft{Email: email, Name: "Somebody", Roles: roles}, from())
	if err != nil {
		w.t.Fatal(err)
	}
	session, err := w.Redeem(w.t.Context(), access.Redemption{Token: link, Password: secret.New(password), From: from()})
	if err != nil {
		w.t.Fatal(err)
	}
	return session
}

func (w *world) signIn(email, pass string) (*access.NewSession, error) {
	w.t.Helper()
	return w.SignIn(w.t.Context(), access.Credentials{Tenant: tenant, Email: email, Password: secret.New(pass), From: from()})
}

func (w *world) mustSignIn(email string) *access.NewSession {
	w.t.Helper()
	session, err := w.signIn(email, password)
	if err != nil {
		w.t.Fatal(err)
	}
	return session
}

// wants fails if err is not the one that is wanted.
func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error = %v, want %v", what, err, want)
	}
}

func TestTheFirstAdministratorComesByALinkThatWorksOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s, clock := service(t, db)
		earlier, _, err := s.FirstAdminLink(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		token, needed, err := s.FirstAdminLink(t.Context(), tenant)
		if err != nil || !needed {
			t.Fatalf("needed %t, %v", needed, err)
		}
		redeem := func(token secret.Value, pass string) (*access.NewSession, error) {
			return s.Redeem(t.Context(), access.Redemption{Token: token, Password: secret.New(pass), Email: "root@example.com", Name: "Root", From: from()})
		}
		_, err = redeem(earlier, password)
		wants(t, "an earlier link", err, access.ErrLink)
		if link, err := s.Link(t.Context(), token, from()); err != nil || !link.FirstAdmin {
			t.Errorf("link = %+v, %v", link, err)
		}
		if _, err := redeem(token, "short"); err == nil || errors.Is(err, access.ErrLink) {
			t.Errorf("a bad password: error = %v", err)
		}
		var all sync.WaitGroup
		results := make(chan error, 8)
		for range cap(results) {
			all.Go(func() {
				_, err := redeem(token, password)
				results <- err
			})
		}
		all.Wait()
		close(results)
		won := 0
		for err := range results {
			if err == nil {
				won++
			} else {
				wants(t, "a used link", err, access.ErrLink)
			}
		}
		if won != 1 {
			t.Errorf("%d became the first administrator", won)
		}
		if _, needed, err := s.FirstAdminLink(t.Context(), tenant); needed || err != nil {
			t.Errorf("a link is needed although there is a user: %t, %v", needed, err)
		}
		if users, err := s.Users(t.Context(), tenant, "", 10); err != nil || len(users) != 1 || users[0].Roles[0].Role != access.Admin {
			t.Errorf("users = %+v, %v", users, err)
		}
		other, _, err := s.FirstAdminLink(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		clock.add(25 * time.Hour)
		_, err = redeem(other, password)
		wants(t, "an old link", err, access.ErrLink)
	})
}

func TestASessionEndsByTimeBySignOutAndByItsUser(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		authenticated := func(s *access.NewSession) error {
			_, err := w.Authenticate(t.Context(), s.Token)
			return err
		}
		idle := w.mustSignIn("root@example.com")
		w.clock.add(59 * time.Minute)
		if err := authenticated(idle); err != nil {
			t.Errorf("a session in use ended: %v", err)
		}
		w.clock.add(time.Hour)
		wants(t, "an idle session", authenticated(idle), access.ErrUnauthenticated)

		long := w.mustSignIn("root@example.com")
		for range 23 {
			w.clock.add(30 * time.Minute)
			if err := authenticated(long); err != nil {
				t.Fatalf("a session in use ended: %v", err)
			}
		}
		w.clock.add(31 * time.Minute)
		wants(t, "a session of 12 hours", authenticated(long), access.ErrUnauthenticated)

		a, b := w.mustSignIn("root@example.com"), w.mustSignIn("root@example.com")
		if list, err := w.Sessions(t.Context(), tenant, w.admin.UserID); err != nil || len(list) != 2 {
			t.Errorf("%d sessions, %v", len(list), err)
		}
		if err := w.SignOut(t.Context(), w.principal(a.Token), from()); err != nil {
			t.Fatal(err)
		}
		wants(t, "after signing out", authenticated(a), access.ErrUnauthenticated)
		if err := authenticated(b); err != nil {
			t.Errorf("another session ended: %v", err)
		}
		c := w.mustSignIn("root@example.com")
		if err := w.SignOutEverywhere(t.Context(), w.principal(c.Token), w.admin.UserID, from()); err != nil {
			t.Fatal(err)
		}
		wants(t, "after signing out everywhere", authenticated(b), access.ErrUnauthenticated)
		wants(t, "after signing out everywhere", authenticated(c), access.ErrUnauthenticated)
		if err := w.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSigningInMakesANewSessionAndEndsThePreviousOne(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		planted := w.mustSignIn("root@example.com")
		session, err := w.SignIn(t.Context(), access.Credentials{Tenant: tenant, Email: "root@example.com", Password: secret.New(password), Previous: planted.Token, From: from()})
		if err != nil || session.Token.Reveal() == planted.Token.Reveal() {
			t.Fatalf("the session is the same: %v", err)
		}
		_, err = w.Authenticate(t.Context(), planted.Token)
		wants(t, "the session from before", err, access.ErrUnauthenticated)
	})
}

func TestACSRFTokenBelongsToItsSession(t *testing.T) {
	t.Parallel()
	a, b := secret.New("session-a"), secret.New("session-b")
	if err := access.CheckCSRF(a, access.CSRFToken(a)); err != nil {
		t.Error(err)
	}
	for _, given := range []string{"", access.CSRFToken(b), a.Reveal(), access.CSRFToken(a) + "x", access.CSRFToken(secret.New(""))} {
		wants(t, "token "+given, access.CheckCSRF(a, given), access.ErrCSRF)
	}
}

func TestWrongCredentialsAllGetOneAnswer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		w.add("off@example.com")
		off, err := w.Users(t.Context(), tenant, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		yes := true
		if _, err := w.UpdateUser(t.Context(), w.admin, off[0].ID, off[0].Version, access.UserChange{Disabled: &yes}, from()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.CreateUser(t.Context(), w.admin, access.UserDraft{Email: "invited@example.com", Name: "I"}, from()); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string][2]string{
			"nobody":         {"nobody@example.com", password},
			"wrong password": {"root@example.com", password + "x"},
			"no password":    {"root@example.com", ""},
			"disabled":       {"off@example.com", password},
			"invited only":   {"invited@example.com", ""},
			"too long":       {"root@example.com", string(make([]byte, 1<<20))},
		} {
			session, err := w.signIn(c[0], c[1])
			if session != nil || err == nil || err.Error() != access.ErrCredentials.Error() {
				t.Errorf("%s: error = %v", name, err)
			}
		}
		_, err = w.SignIn(t.Context(), access.Credentials{Tenant: "another", Email: "root@example.com", Password: secret.New(password), From: from()})
		wants(t, "another tenant", err, access.ErrCredentials)
		if session, err := w.signIn(" ROOT@example.com", password); err != nil || session.User.Email != "root@example.com" {
			t.Errorf("an address in upper case: %v", err)
		}
	})
}

// TestAnUnknownAccountCostsAsMuchAsAKnownOne counts hashes by the memory that they take, which no noise can hide. Nothing
// runs beside it.
func TestAnUnknownAccountCostsAsMuchAsAKnownOne(t *testing.T) {
	for name, config := range map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, storetest.Open(t, config(t)), func(c *access.Config) { c.Cost = access.Cost{Memory: 8 << 10, Time: 1, Threads: 1} })
			_, err := w.signIn("warm@example.com", password) // makes the decoy
			wants(t, "an unknown account", err, access.ErrCredentials)
			memory := func(email string) uint64 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := w.signIn(email, "wrong wrong wrong")
				runtime.ReadMemStats(&after)
				wants(t, email, err, access.ErrCredentials)
				return after.TotalAlloc - before.TotalAlloc
			}
			known, unknown := memory("root@example.com"), memory("nobody@example.com")
			if known < 8<<20 || unknown < 8<<20 || known > 16<<20 || unknown > 16<<20 {
				t.Errorf("a try takes %d bytes for a known account and %d for an unknown one; a hash is 8 MiB", known, unknown)
			}
		})
	}
}

func TestAPasswordIsHashedAnewWhenTheCostHasChanged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		stored := func() (hash string) {
			if err := db.QueryRow(t.Context(), "SELECT password FROM users WHERE tenant = ?", []any{tenant}, &hash); err != nil {
				t.Fatal(err)
			}
			return hash
		}
		before := stored()
		w.mustSignIn("root@example.com")
		if stored() != before {
			t.Error("a password was hashed anew without need")
		}
		dearer, _ := service(t, db, func(c *access.Config) { c.Cost = access.Cost{Memory: 128, Time: 2, Threads: 1} })
		sign := func(pass string) error {
			_, err := dearer.SignIn(t.Context(), access.Credentials{Tenant: tenant, Email: "root@example.com", Password: secret.New(pass), From: from()})
			return err
		}
		wants(t, "a wrong password", sign("wrong wrong wrong"), access.ErrCredentials)
		if stored() != before {
			t.Error("a wrong password changed the hash")
		}
		if err := sign(password); err != nil {
			t.Fatal(err)
		}
		if after := stored(); after == before || after[:28] != "$argon2id$v=19$m=128,t=2,p=1" {
			t.Errorf("stored hash %q", after)
		}
		if err := sign(password); err != nil {
			t.Errorf("with the new hash: %v", err)
		}
	})
}

func TestAThousandWrongSignInsAreRefusedEarly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db, func(c *access.Config) { c.Limits = access.Limits{} })
		tried := 0
		var limit *access.LimitError
		for range 1000 {
			_, err := w.signIn("root@example.com", "wrong wrong wrong")
			if e, ok := errors.AsType[*access.LimitError](err); ok {
				limit = e
				continue
			}
			wants(t, "a wrong password", err, access.ErrCredentials)
			tried++
		}
		if tried > 10 || limit == nil || limit.Seconds() < 1 {
			t.Errorf("%d passwords were tried; limit %v", tried, limit)
		}
		_, err := w.signIn("root@example.com", password)
		if _, ok := errors.AsType[*access.LimitError](err); !ok {
			t.Errorf("the right password from the same address: error = %v", err)
		}
		owner := from()
		owner.Address = "198.51.100.9"
		if _, err := w.SignIn(t.Context(), access.Credentials{Tenant: tenant, Email: "root@example.com", Password: secret.New(password), From: owner}); err != nil {
			t.Errorf("the owner is kept out elsewhere: %v", err)
		}
		w.clock.add(time.Minute)
		if _, err := w.signIn("root@example.com", password); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
}

func TestChangingAPasswordEndsTheOtherSessions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		mine, other := w.mustSignIn("root@example.com"), w.mustSignIn("root@example.com")
		p := w.principal(mine.Token)
		change := func(current, next string) error {
			return w.ChangePassword(t.Context(), p, secret.New(current), secret.New(next), from())
		}
		wants(t, "the wrong current password", change("wrong wrong wrong", "another long password"), access.ErrCredentials)
		for _, bad := range []string{"", "short", "aaaaaaaaaaaaaaaaaaa", "root@example.com", "root12345678", string(make([]byte, 2000)), "\xff\xfe not utf-8 \xff"} {
			if err := change(password, bad); err == nil {
				t.Errorf("the password %.20q was taken", bad)
			}
		}
		if err := change(password, "another long password"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Authenticate(t.Context(), mine.Token); err != nil {
			t.Errorf("the own session ended: %v", err)
		}
		_, err := w.Authenticate(t.Context(), other.Token)
		wants(t, "the other session", err, access.ErrUnauthenticated)
		_, err = w.signIn("root@example.com", password)
		wants(t, "the old password", err, access.ErrCredentials)
		if _, err := w.signIn("root@example.com", "another long password"); err != nil {
			t.Error(err)
		}
	})
}
