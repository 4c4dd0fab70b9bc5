package access_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

func (w *world) verify(known access.AuditHead) (access.AuditHead, error) {
	w.t.Helper()
	return w.VerifyAudit(w.t.Context(), tenant, known)
}

func TestTheAuditLogSaysWhoDidWhatToWhom(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		ada := w.add("ada@example.com", everywhere(access.Operator))
		_, err := w.signIn("ada@example.com", "wrong wrong wrong")
		wants(t, "a wrong password", err, access.ErrCredentials)
		key, text, err := w.CreateKey(t.Context(), w.principal(ada.Token), access.KeyDraft{Name: "k", Permissions: []access.Permission{access.RunsStart}}, from())
		if err != nil {
			t.Fatal(err)
		}
		program, err := w.AuthenticateKey(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Record(t.Context(), access.Entry{Action: "run.start", Target: "run_1\n\x00", Outcome: access.OutcomeDone}.By(program), from()); err != nil {
			t.Fatal(err)
		}
		log, err := w.AuditLog(t.Context(), tenant, access.AuditFilter{Limit: 4})
		if err != nil || len(log) != 4 {
			t.Fatalf("%d entries, %v", len(log), err)
		}
		for i, want := range []string{
			"key " + key.ID + " run.start run_1 done",
			"user " + ada.User.ID + " key.create " + key.ID + " done",
			"nobody  session.create " + ada.User.ID + " refused",
			"user " + ada.User.ID + " session.create " + ada.Session.ID + " done",
		} {
			e := log[i]
			if got := fmt.Sprintf("%s %s %s %s %s", e.ActorKind, e.Actor, e.Action, e.Target, e.Outcome); got != want {
				t.Errorf("entry %d: %s, want %s", i, got, want)
			}
			if e.Address != "192.0.2.7" || e.RequestID != "req_1" || !e.At.Equal(w.clock.Now()) {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
		filtered, err := w.AuditLog(t.Context(), tenant, access.AuditFilter{Action: "session.create", Actor: ada.User.ID, Before: log[0].Seq})
		if err != nil || len(filtered) != 1 || filtered[0].Seq != log[3].Seq {
			t.Errorf("filtered = %v, %v", filtered, err)
		}
		for _, bad := range []access.Entry{{}, {Tenant: tenant, Action: "No Words"}, {Tenant: tenant, Action: "a.b", Outcome: "x", ActorKind: access.ActorSystem}} {
			if err := w.Record(t.Context(), bad, from()); err == nil {
				t.Errorf("%+v was recorded", bad)
			}
		}
	})
}

func TestTheAuditLogHasNoGapsUnderLoad(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		second, _ := service(t, db) // as another process
		errs := make(chan error, 200)
		var all sync.WaitGroup
		for i := range cap(errs) {
			all.Go(func() {
				s := w.Service
				if i%2 == 0 {
					s = second
				}
				errs <- s.Record(t.Context(), access.Entry{Tenant: tenant, ActorKind: access.ActorSystem, Action: "test.write", Outcome: access.OutcomeDone}, from())
			})
		}
		all.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		head, err := w.verify(access.AuditHead{})
		if err != nil || head.Seq != 201 {
			t.Errorf("%d entries, %v", head.Seq, err)
		}
	})
}

func TestAChangedAuditLogIsNoticed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		statement string
		at        int64
	}{
		"changed":         {"UPDATE audit_log SET actor = 'usr_other' WHERE tenant = ? AND seq = 3", 3},
		"moved in time":   {"UPDATE audit_log SET at = at + 1 WHERE tenant = ? AND seq = 2", 2},
		"removed":         {"DELETE FROM audit_log WHERE tenant = ? AND seq = 4", 4},
		"beginning gone":  {"DELETE FROM audit_log WHERE tenant = ? AND seq <= 2", 1},
		"end gone":        {"DELETE FROM audit_log WHERE tenant = ? AND seq >= 5", 5},
		"fields shuffled": {"UPDATE audit_log SET action = actor, actor = action WHERE tenant = ? AND seq = 5", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				w := newWorld(t, db)
				for range 5 {
					w.mustSignIn("root@example.com")
				}
				if _, err := w.verify(access.AuditHead{}); err != nil {
					t.Fatal(err)
				}
				if err := db.Write(t.Context(), func(tx *store.Tx) error {
					_, err := tx.Exec(t.Context(), tc.statement, tenant)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				_, err := w.verify(access.AuditHead{})
				if e, ok := errors.AsType[*access.ChainError](err); !ok || e.Seq != tc.at {
					t.Errorf("error = %v, want one at %d", err, tc.at)
				}
			})
		})
	}
}

func TestAnAuditLogWrittenAnewDoesNotFitAHeadKeptElsewhere(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		w.mustSignIn("root@example.com")
		head, err := w.verify(access.AuditHead{})
		if err != nil {
			t.Fatal(err)
		}
		w.mustSignIn("root@example.com")
		if _, err := w.verify(head); err != nil {
			t.Errorf("a log that went on: %v", err)
		}
		if err := db.Write(t.Context(), func(tx *store.Tx) error {
			for _, table := range []string{"audit_log", "audit_heads"} {
				if _, err := tx.Exec(t.Context(), "DELETE FROM "+table); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.mustSignIn("root@example.com")
		}
		if _, err := w.verify(access.AuditHead{}); err != nil {
			t.Errorf("the new chain by itself: %v", err)
		}
		if _, err := w.verify(head); err == nil {
			t.Error("a log written anew fits the head of the old one")
		}
	})
}

func TestLimitsAreForEachKeyAndRefill(t *testing.T) {
	t.Parallel()
	clock := newClock()
	limiter := access.NewLimiter(access.Rate{Burst: 3, Every: time.Second}, clock.Now)
	take := func(key string, want bool) {
		t.Helper()
		if err := limiter.Take(key); (err == nil) != want {
			t.Errorf("%s: %v", key, err)
		}
	}
	for range 3 {
		take("a", true)
	}
	take("a", false)
	take("b", true)
	limit, ok := errors.AsType[*access.LimitError](limiter.Take("a"))
	if !ok || limit.RetryAfter != time.Second || limit.Seconds() != 1 {
		t.Errorf("limit = %v", limit)
	}
	clock.add(time.Second)
	take("a", true)
	take("a", false)
	// A flood of keys takes no endless memory, and those that ran dry stay so as long as there is room.
	for i := range 1<<16 + 5000 {
		if err := limiter.Take(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			clock.add(time.Second)
		}
	}
}

func TestRequestsAreLimitedByPrincipalOrNetwork(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s, _ := service(t, db, func(c *access.Config) {
			c.Limits.Principal, c.Limits.Address = access.Rate{Burst: 2, Every: time.Minute}, access.Rate{Burst: 2, Every: time.Minute}
		})
		for name, tc := range map[string]struct {
			p       *access.Principal
			address []string
			want    string
		}{
			"one key from anywhere": {&access.Principal{Tenant: "t", KeyID: "k"}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, "yes yes no"},
			"a session":             {&access.Principal{Tenant: "t", SessionID: "k"}, []string{"192.0.2.1", "192.0.2.1"}, "yes yes"},
			"one address":           {nil, []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"}, "yes yes no yes"},
			"the same in IPv6":      {nil, []string{"192.0.2.5", "::ffff:192.0.2.5", "192.0.2.5"}, "yes yes no"},
			"one network":           {nil, []string{"2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::", "2001:db8:0:1::"}, "yes yes no yes"},
		} {
			var got []string
			for _, address := range tc.address {
				got = append(got, map[bool]string{true: "yes", false: "no"}[s.TakeRequest(tc.p, address) == nil])
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}

// TestNoCredentialIsStored looks for passwords, tokens, keys and links in everything that a database keeps.
func TestNoCredentialIsStored(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		config := storetest.SQLite(t)
		canaries := useCredentials(t, storetest.Open(t, config))
		files, err := filepath.Glob(config.Path + "*")
		if err != nil || len(files) < 2 {
			t.Fatalf("files %v, %v", files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range canaries {
				hunt(t, filepath.Base(file), string(data), c)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := storetest.Open(t, storetest.Postgres(t))
		canaries := useCredentials(t, db)
		for _, table := range []string{"users", "user_roles", "identities", "sessions", "api_keys", "links", "audit_log", "audit_heads"} {
			if err := db.Query(t.Context(), func(row store.Row) error {
				var text string
				if err := row.Scan(&text); err != nil {
					return err
				}
				for _, c := range canaries {
					hunt(t, table, text, c)
				}
				return nil
			}, "SELECT CAST(x AS TEXT) FROM "+table+" x"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// useCredentials does everything there is to do with credentials and returns them.
func useCredentials(t *testing.T, db *store.DB) []string {
	t.Helper()
	w := newWorld(t, db)
	canaries := []string{password, "canary wrong password 1", "canary-typed-into-email", "canary next password 2"}
	ada := w.add("ada@example.com", everywhere(access.Operator))
	_, err := w.signIn("ada@example.com", "canary wrong password 1")
	wants(t, "a wrong password", err, access.ErrCredentials)
	_, err = w.signIn("canary-typed-into-email", password)
	wants(t, "a password as e-mail address", err, access.ErrCredentials)
	link, err := w.PasswordLink(t.Context(), w.admin, ada.User.ID, from())
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := w.CreateKey(t.Context(), w.principal(ada.Token), access.KeyDraft{Name: "k", Permissions: []access.Permission{access.RunsStart}}, from())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ChangePassword(t.Context(), w.principal(ada.Token), secret.New(password), secret.New("canary next password 2"), from()); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	fmt.Fprintf(&shown, "%v %+v %#v %v %+v", ada, ada, ada, access.Credentials{Password: secret.New(password)}, access.Redemption{Token: link, Password: key})
	if strings.Contains(shown.String(), "argon2id") {
		t.Error("the hash of a password is printed")
	}
	canaries = append(canaries, ada.Token.Reveal(), link.Reveal(), key.Reveal())
	for _, c := range canaries {
		hunt(t, "what is printed", shown.String(), c)
	}
	return canaries
}

// hunt looks for a credential in the encodings in which it may have got somewhere.
func hunt(t *testing.T, where, text, canary string) {
	t.Helper()
	b := []byte(canary)
	for _, form := range []string{canary, url.QueryEscape(canary), hex.EncodeToString(b), strings.ToUpper(hex.EncodeToString(b)),
		base64.RawStdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b)} {
		if strings.Contains(text, form) {
			t.Errorf("%s holds a credential as %.12q…", where, form)
		}
	}
}
