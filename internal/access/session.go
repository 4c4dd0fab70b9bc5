package access

import (
	"context"
	"errors"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
)

// seenEvery is how exactly it is known when a session or key was last used.
const seenEvery = time.Minute

// maxClient bounds what is kept of a User-Agent.
const maxClient = 200

// Session is a sign-in of a person that lasts for a while.
type Session struct {
	ID string `json:"id"`
	// Client is the User-Agent that signed in.
	Client    string    `json:"client"`
	CreatedAt time.Time `json:"createdAt"`
	// SeenAt is exact to a minute.
	SeenAt    time.Time `json:"seenAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// NewSession is what a sign-in brings. Token goes into a cookie with HttpOnly, Secure and SameSite, and nowhere else.
type NewSession struct {
	Token secret.Value
	// CSRF is CSRFToken of Token.
	CSRF    string
	Session Session
	User    User
}

// Credentials are what somebody signs in with.
type Credentials struct {
	Tenant   string
	Email    string
	Password secret.Value
	// Previous is the session that the browser had, if any. It ends, so that nobody goes on in a session that others may
	// have put into the browser.
	Previous secret.Value
	From     Origin
}

// SignIn starts a session. The error is ErrCredentials whatever was wrong, and takes as long for an address that nobody
// has, or a *LimitError.
func (s *Service) SignIn(ctx context.Context, c Credentials) (*NewSession, error) {
	email := normalEmail(c.Email)
	if err := s.takeSignIn(c.Tenant, email, c.From); err != nil {
		return nil, err
	}
	user, err := userBy(ctx, s.db, c.Tenant, "email", email)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	cost, ok, err := s.verifyPassword(ctx, user.password.Reveal(), bounded(c.Password))
	if err != nil {
		return nil, err
	}
	if !ok || user.Disabled {
		// The address may be a password that was typed into the wrong field, so it is not recorded.
		entry := Entry{Tenant: c.Tenant, ActorKind: ActorNobody, Action: "session.create", Target: user.ID, Outcome: OutcomeRefused}
		return nil, orElse(s.Record(ctx, entry, c.From), ErrCredentials)
	}
	rehashed := ""
	if cost != s.config.Cost {
		if rehashed, err = s.hashPassword(ctx, c.Password); err != nil {
			return nil, err
		}
	}
	return s.startSession(ctx, c.Tenant, user, c.Previous, c.From, func(tx *store.Tx) error {
		return confirm(ctx, tx, c.Tenant, user, rehashed)
	})
}

// startSession makes a session in one transaction with what else the sign-in changes.
func (s *Service) startSession(ctx context.Context, tenant string, user User, previous secret.Value, from Origin, also func(*store.Tx) error) (*NewSession, error) {
	now := s.now().UTC().Truncate(time.Millisecond)
	token := newToken()
	session := Session{ID: newID("ses"), Client: oneLine(from.Client, maxClient), CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(s.config.SessionLifetime)}
	entry := Entry{Tenant: tenant, ActorKind: ActorUser, Actor: user.ID, Action: "session.create", Target: session.ID, Outcome: OutcomeDone}
	err := s.change(ctx, entry.from(from), func(tx *store.Tx) error {
		if err := also(tx); err != nil {
			return err
		}
		if !previous.Empty() {
			if _, err := deleteSessionByHash(ctx, tx, digest(previous.Reveal())); err != nil {
				return err
			}
		}
		return insertSession(ctx, tx, tenant, user.ID, digest(token.Reveal()), session)
	})
	if err != nil {
		return nil, err
	}
	return &NewSession{Token: token, CSRF: CSRFToken(token), Session: session, User: user}, nil
}

// Authenticate returns the principal of a session. The error is ErrUnauthenticated if there is none.
func (s *Service) Authenticate(ctx context.Context, token secret.Value) (*Principal, error) {
	now := s.now()
	found, err := sessionByHash(ctx, s.db, digest(token.Reveal()))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, ErrUnauthenticated
	case err != nil:
		return nil, err
	case found.user.Disabled, !now.Before(found.session.ExpiresAt), !now.Before(found.session.SeenAt.Add(s.config.SessionIdle)):
		return nil, ErrUnauthenticated
	}
	if now.Sub(found.session.SeenAt) >= seenEvery {
		if err := s.db.Write(ctx, func(tx *store.Tx) error {
			return touchSession(ctx, tx, found.tenant, found.session.ID, now.UnixMilli())
		}); err != nil {
			return nil, err
		}
	}
	return &Principal{Tenant: found.tenant, UserID: found.user.ID, Name: found.user.Name, SessionID: found.session.ID, Grants: grants(found.user.Roles)}, nil
}

// Sessions returns the sessions of a user that have not ended, the newest first.
func (s *Service) Sessions(ctx context.Context, tenant, userID string) ([]Session, error) {
	now := s.now()
	return listSessions(ctx, s.db, tenant, userID, now.UnixMilli(), now.Add(-s.config.SessionIdle).UnixMilli())
}

// SignOut ends the session of the principal.
func (s *Service) SignOut(ctx context.Context, p *Principal, from Origin) error {
	return s.EndSession(ctx, p, p.UserID, p.SessionID, from)
}

// EndSession ends one session of a user; store.ErrNotFound if the user has no such session. Whoever is not that user needs
// UsersManage.
func (s *Service) EndSession(ctx context.Context, by *Principal, userID, id string, from Origin) error {
	if userID != by.UserID && !Allowed(by, UsersManage, "") {
		return ErrForbidden
	}
	return s.change(ctx, entryOf(by, "session.end", id, from), func(tx *store.Tx) error {
		return deleteSession(ctx, tx, by.Tenant, userID, id)
	})
}

// SignOutEverywhere ends every session of a user; the caller's own too, if it is that user. Whoever is not that user needs
// UsersManage.
func (s *Service) SignOutEverywhere(ctx context.Context, by *Principal, userID string, from Origin) error {
	if userID != by.UserID && !Allowed(by, UsersManage, "") {
		return ErrForbidden
	}
	return s.change(ctx, entryOf(by, "session.end-all", userID, from), func(tx *store.Tx) error {
		return endSessions(ctx, tx, by.Tenant, userID, "")
	})
}
