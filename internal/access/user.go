package access

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

const (
	maxEmail = 254
	maxName  = 200
	maxRoles = 1000
)

// User is a person.
type User struct {
	ID string `json:"id"`
	// Email is in lower case and belongs to one user of the tenant.
	Email string      `json:"email"`
	Name  string      `json:"name"`
	Roles []RoleGrant `json:"roles"`
	// HasPassword is false for somebody who has not used their link yet, or signs in at the identity provider only.
	HasPassword bool `json:"hasPassword"`
	Disabled    bool `json:"disabled"`
	// Version counts changes; a change names the version that it was made from.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`

	// password is its hash, which is nobody's business either.
	password secret.Value
}

// UserDraft is a new user.
type UserDraft struct {
	Email string      `json:"email"`
	Name  string      `json:"name"`
	Roles []RoleGrant `json:"roles"`
}

// UserChange is a change of a user; nil keeps what is.
type UserChange struct {
	Name     *string      `json:"name,omitempty"`
	Roles    *[]RoleGrant `json:"roles,omitempty"`
	Disabled *bool        `json:"disabled,omitempty"`
}

// CreateUser adds a user without a password and returns a one-time link token for setting one. Errors are *problem.Error
// of kind Invalid, store.ErrExists for an e-mail address that is taken, and ErrForbidden for a role that permits what by
// itself may not.
func (s *Service) CreateUser(ctx context.Context, by *Principal, draft UserDraft, from Origin) (User, secret.Value, error) {
	draft.Email, draft.Name = normalEmail(draft.Email), strings.TrimSpace(draft.Name)
	var problems problem.List
	checkEmail(&problems, draft.Email)
	checkName(&problems, draft.Name)
	checkRoles(&problems, draft.Roles)
	if err := problems.Err("create the user"); err != nil {
		return User{}, secret.Value{}, err
	}
	if !mayGrant(by, draft.Roles) {
		return User{}, secret.Value{}, ErrForbidden
	}
	user := s.newUser(draft)
	token := newToken()
	err := s.change(ctx, entryOf(by, "user.create", user.ID, from), func(tx *store.Tx) error {
		if err := insertUser(ctx, tx, by.Tenant, user); err != nil {
			return err
		}
		return s.insertLink(ctx, tx, by.Tenant, user.ID, token)
	})
	if err != nil {
		return User{}, secret.Value{}, err
	}
	return user, token, nil
}

func (s *Service) newUser(draft UserDraft) User {
	now := s.now().UTC().Truncate(time.Millisecond)
	return User{ID: newID("usr"), Email: draft.Email, Name: draft.Name, Roles: sortedRoles(draft.Roles), Version: 1, CreatedAt: now, UpdatedAt: now}
}

// User returns a user of the tenant.
func (s *Service) User(ctx context.Context, tenant, id string) (User, error) {
	return userBy(ctx, s.db, tenant, "id", id)
}

// Users returns up to limit users in the order of their e-mail addresses, those after the address in after; "" begins.
func (s *Service) Users(ctx context.Context, tenant, after string, limit int) ([]User, error) {
	return listUsers(ctx, s.db, tenant, after, limit)
}

// UpdateUser changes a user whose current version is the one given. Somebody who is disabled loses sessions and keys at
// once. Errors are those of CreateUser, store.ErrNotFound, store.ErrStale and ErrLastAdmin.
func (s *Service) UpdateUser(ctx context.Context, by *Principal, id string, version int64, change UserChange, from Origin) (User, error) {
	var problems problem.List
	if change.Name != nil {
		checkName(&problems, strings.TrimSpace(*change.Name))
	}
	if change.Roles != nil {
		checkRoles(&problems, *change.Roles)
	}
	if err := problems.Err("change the user"); err != nil {
		return User{}, err
	}
	var user User
	err := s.change(ctx, entryOf(by, "user.update", id, from), func(tx *store.Tx) error {
		var err error
		if user, err = userBy(ctx, tx, by.Tenant, "id", id); err != nil {
			return err
		}
		if user.Version != version {
			return store.ErrStale
		}
		if change.Roles != nil && !(mayGrant(by, user.Roles) && mayGrant(by, *change.Roles)) {
			return ErrForbidden
		}
		change.apply(&user)
		user.UpdatedAt = s.now().UTC().Truncate(time.Millisecond)
		if err := saveUser(ctx, tx, by.Tenant, &user); err != nil {
			return err
		}
		if user.Disabled {
			if err := endAccess(ctx, tx, by.Tenant, id, nil); err != nil {
				return err
			}
		}
		return needAdmin(ctx, tx, by.Tenant)
	})
	return user, err
}

func (c UserChange) apply(user *User) {
	if c.Name != nil {
		user.Name = strings.TrimSpace(*c.Name)
	}
	if c.Roles != nil {
		user.Roles = sortedRoles(*c.Roles)
	}
	if c.Disabled != nil {
		user.Disabled = *c.Disabled
	}
}

// DeleteUser removes a user with all sessions, keys and links. What they did stays in the audit log under their id.
func (s *Service) DeleteUser(ctx context.Context, by *Principal, id string, version int64, from Origin) error {
	return s.change(ctx, entryOf(by, "user.delete", id, from), func(tx *store.Tx) error {
		user, err := userBy(ctx, tx, by.Tenant, "id", id)
		if err != nil {
			return err
		}
		if user.Version != version {
			return store.ErrStale
		}
		if err := deleteUser(ctx, tx, by.Tenant, id); err != nil {
			return err
		}
		return needAdmin(ctx, tx, by.Tenant)
	})
}

// ChangePassword sets the password of the principal, who gives the current one too, and ends every other session. Errors
// are ErrCredentials, *LimitError, and *problem.Error of kind Invalid.
func (s *Service) ChangePassword(ctx context.Context, p *Principal, current, next secret.Value, from Origin) error {
	user, err := s.User(ctx, p.Tenant, p.UserID)
	if err != nil {
		return err
	}
	if err := s.takeSignIn(p.Tenant, user.Email, from); err != nil {
		return err
	}
	if _, ok, err := s.verifyPassword(ctx, user.password.Reveal(), bounded(current)); err != nil || !ok {
		return orElse(err, ErrCredentials)
	}
	var problems problem.List
	checkPassword(&problems, next, user.Email)
	if err := problems.Err("change the password"); err != nil {
		return err
	}
	hashed, err := s.hashPassword(ctx, next)
	if err != nil {
		return err
	}
	return s.change(ctx, entryOf(p, "user.password", user.ID, from), func(tx *store.Tx) error {
		if err := setPassword(ctx, tx, p.Tenant, user.ID, hashed, s.now().UnixMilli()); err != nil {
			return err
		}
		return endSessions(ctx, tx, p.Tenant, user.ID, p.SessionID)
	})
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// bounded keeps a password of unreasonable length from being hashed: no account has one.
func bounded(password secret.Value) secret.Value {
	if len(password.Reveal()) > maxPassword {
		return secret.Value{}
	}
	return password
}

func normalEmail(text string) string { return strings.ToLower(strings.TrimSpace(text)) }

// checkEmail refuses what cannot be an address. Whether there is a mailbox is not known here.
func checkEmail(problems *problem.List, email string) {
	name, host, found := strings.Cut(email, "@")
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`<>()[]\,;:"`, r)
	}
	if !found || name == "" || host == "" || strings.Contains(host, "@") || len(email) > maxEmail || strings.ContainsFunc(email, bad) || !utf8.ValidString(email) {
		problems.AddHint("invalid", "/email", "for example ada@example.com", "is no e-mail address of at most %d bytes", maxEmail)
	}
}

func checkName(problems *problem.List, name string) {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		problems.Add("invalid", "/name", "must have 1 to %d bytes of text on one line", maxName)
	}
}

func checkRoles(problems *problem.List, roles []RoleGrant) {
	if len(roles) > maxRoles {
		problems.Add("too-many", "/roles", "there are %d roles, more than %d", len(roles), maxRoles)
		return
	}
	for _, r := range roles {
		if !slices.Contains(Roles(), r.Role) {
			problems.AddHint("unknown", "/roles", "known: viewer, operator, builder, admin", "unknown role %q", r.Role)
		}
	}
}

// mayGrant reports whether by has everything that the roles permit: nobody gives or takes what they have not.
func mayGrant(by *Principal, roles []RoleGrant) bool {
	for _, r := range roles {
		for _, p := range r.Role.Permissions() {
			if !Allowed(by, p, r.Project) {
				return false
			}
		}
	}
	return true
}

func sortedRoles(roles []RoleGrant) []RoleGrant {
	sorted := slices.Clone(roles)
	slices.SortFunc(sorted, func(a, b RoleGrant) int {
		if c := strings.Compare(a.Project, b.Project); c != 0 {
			return c
		}
		return strings.Compare(string(a.Role), string(b.Role))
	})
	return slices.Compact(sorted)
}
