package access_test

import (
	"testing"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

// prepared returns a service with one administrator, a session and a key of theirs.
func prepared(b *testing.B) (s *access.Service, session, key secret.Value) {
	b.Helper()
	db, err := store.Open(b.Context(), storetest.SQLite(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	if s, err = access.New(access.Config{DB: db, Limits: generous()}); err != nil {
		b.Fatal(err)
	}
	link, _, err := s.FirstAdminLink(b.Context(), tenant)
	if err != nil {
		b.Fatal(err)
	}
	signed, err := s.Redeem(b.Context(), access.Redemption{Token: link, Password: secret.New(password), Email: "root@example.com", Name: "Root", From: from()})
	if err != nil {
		b.Fatal(err)
	}
	p, err := s.Authenticate(b.Context(), signed.Token)
	if err != nil {
		b.Fatal(err)
	}
	if _, key, err = s.CreateKey(b.Context(), p, access.KeyDraft{Name: "k", Permissions: []access.Permission{access.RunsStart}}, from()); err != nil {
		b.Fatal(err)
	}
	return s, signed.Token, key
}

func BenchmarkAuthenticateASession(b *testing.B) {
	s, session, _ := prepared(b)
	for b.Loop() {
		if _, err := s.Authenticate(b.Context(), session); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAuthenticateAKey(b *testing.B) {
	s, _, key := prepared(b)
	for b.Loop() {
		if _, err := s.AuthenticateKey(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSignIn(b *testing.B) {
	s, _, _ := prepared(b)
	for b.Loop() {
		if _, err := s.SignIn(b.Context(), access.Credentials{Tenant: tenant, Email: "root@example.com", Password: secret.New(password), From: from()}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	s, _, _ := prepared(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Record(b.Context(), access.Entry{Tenant: tenant, ActorKind: access.ActorSystem, Action: "bench.write", Outcome: access.OutcomeDone}, from()); err != nil {
				b.Error(err)
			}
		}
	})
}
