// Package access decides who may do what. People sign in with a password or at an identity provider and have sessions,
// programs have API keys; both become a Principal, which holds permissions for the whole installation or for single
// projects. What a role permits is one table in this package. Every change to it, every sign-in and whatever else the
// server records goes to an audit log whose entries are chained by their hashes.
//
// Of passwords, sessions, keys and one-time links only hashes are stored. Answers and their times do not tell whether an
// account exists. Rate limits are kept in the memory of each process: several servers behind one address allow in sum what
// each of them allows.
package access

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
)

// DefaultTenant is the tenant of an installation that has only one.
const DefaultTenant = "default"

// The errors that callers decide on, beside those of package store and problem.Invalid.
var (
	// ErrCredentials is the error of every sign-in that fails, whatever the cause.
	ErrCredentials = errors.New("the e-mail address or the password is wrong")
	// ErrUnauthenticated is the error of a session or key that is unknown, has ended or belongs to somebody who is disabled.
	ErrUnauthenticated = errors.New("no valid session or API key")
	// ErrCSRF is the error of a request whose token does not belong to its session.
	ErrCSRF = errors.New("the CSRF token does not belong to the session")
	// ErrForbidden is the error of something that the principal may not do.
	ErrForbidden = errors.New("not permitted")
	// ErrLink is the error of a one-time link that is unknown, used or too old.
	ErrLink = errors.New("the link is not valid any more; ask for a new one")
	// ErrLastAdmin is the error of a change after which nobody could manage users.
	ErrLastAdmin = errors.New("it is the last one who can manage users")
)

// Config is what a Service is made of.
type Config struct {
	// DB is required.
	DB *store.DB
	// Keys seal what a browser keeps during a sign-in at an identity provider. It is required where OIDC is set.
	Keys *secret.Ring
	// OIDC is the identity provider; nil means that there is none.
	OIDC *OIDC
	// HTTP talks to the identity provider; nil means a client with a timeout of 10 seconds.
	HTTP *http.Client
	// Cost is that of password hashes; the zero value means DefaultCost. Passwords hashed at another cost are hashed again
	// when their owner signs in.
	Cost Cost
	// SessionIdle ends a session that is not used, SessionLifetime any; zero means 1 hour and 12 hours.
	SessionIdle, SessionLifetime time.Duration
	// LinkLifetime is how long a one-time link is valid; zero means 24 hours.
	LinkLifetime time.Duration
	// Limits bound how often something may be tried; a zero one means that of DefaultLimits.
	Limits Limits
	// Local is a key (see NewKey) that is kept outside of the database, by whoever operates the machine of the server: it
	// permits everything in DefaultTenant, before there is any user too. An empty one is none.
	Local secret.Value
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Service is the one door to users, sessions, keys and the audit log. It is safe for concurrent use.
type Service struct {
	config Config
	db     *store.DB
	now    func() time.Time
	// hashing bounds how many passwords are hashed at once: each takes much memory.
	hashing chan struct{}
	// decoy is verified in place of the hash of an account that does not exist.
	decoy    func() string
	oidc     *relyingParty
	limiters limiters
}

// New returns a service. It does no input or output.
func New(config Config) (*Service, error) {
	if config.DB == nil {
		return nil, errors.New("access needs a database")
	}
	if config.Cost == (Cost{}) {
		config.Cost = DefaultCost()
	}
	if err := config.Cost.check(); err != nil {
		return nil, err
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.HTTP == nil {
		config.HTTP = &http.Client{Timeout: 10 * time.Second}
	}
	orDefault(&config.SessionIdle, time.Hour)
	orDefault(&config.SessionLifetime, 12*time.Hour)
	orDefault(&config.LinkLifetime, 24*time.Hour)
	s := &Service{config: config, db: config.DB, now: config.Now, hashing: make(chan struct{}, maxHashing), limiters: newLimiters(config.Limits, config.Now)}
	s.decoy = sync.OnceValue(func() string { return config.Cost.hash(secret.New("nobody has this password")) })
	if config.OIDC != nil {
		party, err := newRelyingParty(config)
		if err != nil {
			return nil, err
		}
		s.oidc = party
	}
	return s, nil
}

func orDefault(d *time.Duration, otherwise time.Duration) {
	if *d <= 0 {
		*d = otherwise
	}
}

// Origin is where a request comes from, for limits and the audit log.
type Origin struct {
	// Address is the IP address of the client without its port, as far as the server trusts it.
	Address string
	// Client is the User-Agent, for the list of sessions.
	Client string
	// RequestID is that of the request.
	RequestID string
}

// Sweep removes sessions, keys and links that have expired. Some process calls it now and then; nothing depends on it, as
// what has expired is refused anyhow.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now().UnixMilli()
	return s.db.Write(ctx, func(tx *store.Tx) error {
		for _, statement := range []string{
			"DELETE FROM sessions WHERE expires_at <= ?",
			"DELETE FROM links WHERE expires_at <= ?",
			"DELETE FROM api_keys WHERE expires_at > 0 AND expires_at <= ?",
		} {
			if _, err := tx.Exec(ctx, statement, now); err != nil {
				return err
			}
		}
		return nil
	})
}
