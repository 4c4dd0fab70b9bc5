package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// maxKeys bounds the keys of one user.
const maxKeys = 200

// Key is an API key of a user. It may do what it lists and its owner may do, at the time it is used.
type Key struct {
	ID     string `json:"id"`
	UserID string `json:"userId"`
	Name   string `json:"name"`
	// Hint is the beginning of the key, by which its owner knows it again.
	Hint        string       `json:"hint"`
	Permissions []Permission `json:"permissions"`
	// Projects are where the key works; empty means wherever its owner may.
	Projects  []string  `json:"projects"`
	CreatedAt time.Time `json:"createdAt"`
	// ExpiresAt and LastUsedAt are zero for never; LastUsedAt is exact to a minute.
	ExpiresAt  time.Time `json:"expiresAt,omitzero"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"`
}

// KeyDraft is a new key.
type KeyDraft struct {
	Name        string       `json:"name"`
	Permissions []Permission `json:"permissions"`
	Projects    []string     `json:"projects,omitempty"`
	// ExpiresAt is zero for never.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// CreateKey makes a key for the principal and returns it; it can be shown this once only. A key cannot make keys. Errors
// are ErrForbidden for permissions that the principal has not, and *problem.Error of kind Invalid.
func (s *Service) CreateKey(ctx context.Context, by *Principal, draft KeyDraft, from Origin) (Key, secret.Value, error) {
	if by.KeyID != "" {
		return Key{}, secret.Value{}, ErrForbidden
	}
	draft.Name = strings.TrimSpace(draft.Name)
	var problems problem.List
	checkName(&problems, draft.Name)
	s.checkKey(&problems, draft)
	if err := problems.Err("create the key"); err != nil {
		return Key{}, secret.Value{}, err
	}
	for _, p := range draft.Permissions {
		if !holds(by, p, draft.Projects) {
			return Key{}, secret.Value{}, ErrForbidden
		}
	}
	text := newKey()
	now := s.now().UTC().Truncate(time.Millisecond)
	key := Key{ID: newID("key"), UserID: by.UserID, Name: draft.Name, Hint: text.Reveal()[:keyHint], CreatedAt: now,
		Permissions: sortedUnique(draft.Permissions), Projects: sortedUnique(draft.Projects), ExpiresAt: draft.ExpiresAt.UTC().Truncate(time.Millisecond)}
	err := s.change(ctx, entryOf(by, "key.create", key.ID, from), func(tx *store.Tx) error {
		n, err := countKeys(ctx, tx, by.Tenant, by.UserID)
		if err != nil {
			return err
		}
		if n >= maxKeys {
			return &problem.Error{Kind: problem.Conflict, Op: "create the key", Message: "there are too many keys; delete those that nobody needs"}
		}
		return insertKey(ctx, tx, by.Tenant, digest(text.Reveal()), key)
	})
	if err != nil {
		return Key{}, secret.Value{}, err
	}
	return key, text, nil
}

func (s *Service) checkKey(problems *problem.List, draft KeyDraft) {
	if len(draft.Permissions) == 0 {
		problems.Add("required", "/permissions", "the key would permit nothing")
	}
	for _, p := range draft.Permissions {
		if !slices.Contains(Permissions(), p) {
			problems.Add("unknown", "/permissions", "unknown permission %q", p)
		}
	}
	if slices.Contains(draft.Projects, "") {
		problems.Add("invalid", "/projects", "the id of a project is empty")
	}
	if !draft.ExpiresAt.IsZero() && !draft.ExpiresAt.After(s.now()) {
		problems.Add("out-of-range", "/expiresAt", "the key would have expired already")
	}
}

// holds reports whether a principal has a permission in every one of the projects; no projects means somewhere.
func holds(p *Principal, permission Permission, projects []string) bool {
	if len(projects) == 0 {
		all, some := AllowedProjects(p, permission)
		return all || len(some) > 0
	}
	for _, project := range projects {
		if !Allowed(p, permission, project) {
			return false
		}
	}
	return true
}

func sortedUnique[T ~string](list []T) []T {
	sorted := append([]T{}, list...)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// AuthenticateKey returns the principal of an API key. The error is ErrUnauthenticated if there is none.
func (s *Service) AuthenticateKey(ctx context.Context, text secret.Value) (*Principal, error) {
	if !IsKey(text.Reveal()) {
		return nil, ErrUnauthenticated
	}
	if s.isLocal(text) {
		return &Principal{Tenant: DefaultTenant, Name: "the operator of the server", KeyID: LocalKeyID,
			Grants: map[string][]Permission{"": Permissions()}}, nil
	}
	now := s.now()
	found, err := keyByHash(ctx, s.db, digest(text.Reveal()))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, ErrUnauthenticated
	case err != nil:
		return nil, err
	case found.user.Disabled, !found.key.ExpiresAt.IsZero() && !now.Before(found.key.ExpiresAt):
		return nil, ErrUnauthenticated
	}
	if now.Sub(found.key.LastUsedAt) >= seenEvery {
		if err := s.db.Write(ctx, func(tx *store.Tx) error {
			return touchKey(ctx, tx, found.tenant, found.key.ID, now.UnixMilli())
		}); err != nil {
			return nil, err
		}
	}
	return &Principal{Tenant: found.tenant, UserID: found.user.ID, Name: found.key.Name, KeyID: found.key.ID,
		Grants: narrow(grants(found.user.Roles), found.key.Permissions, found.key.Projects)}, nil
}

// LocalKeyID is the id of the key in Config.Local, in the audit log for example.
const LocalKeyID = "local"

// NewKey returns a random key for Config.Local. It is stored nowhere.
func NewKey() secret.Value { return newKey() }

// isLocal compares hashes, so that the time tells nothing about the key.
func (s *Service) isLocal(text secret.Value) bool {
	return !s.config.Local.Empty() && subtle.ConstantTimeCompare(digest(text.Reveal()), digest(s.config.Local.Reveal())) == 1
}

// Keys returns the keys of a user, the newest first; of every user if userID is "".
func (s *Service) Keys(ctx context.Context, tenant, userID string) ([]Key, error) {
	return listKeys(ctx, s.db, tenant, userID)
}

// DeleteKey ends a key; store.ErrNotFound if there is none. Whoever is not its owner needs UsersManage, and is told the
// same as if there were none.
func (s *Service) DeleteKey(ctx context.Context, by *Principal, id string, from Origin) error {
	owner := by.UserID
	if Allowed(by, UsersManage, "") {
		owner = ""
	}
	return s.change(ctx, entryOf(by, "key.delete", id, from), func(tx *store.Tx) error {
		return deleteKey(ctx, tx, by.Tenant, owner, id)
	})
}
