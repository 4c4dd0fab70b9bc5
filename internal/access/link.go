package access

import (
	"context"
	"errors"
	"strings"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// FirstAdminLink returns the token of a link with which somebody becomes the first administrator of a tenant, and false if
// the tenant has users already. An earlier link ends. Whoever starts the server shows it once.
func (s *Service) FirstAdminLink(ctx context.Context, tenant string) (token secret.Value, needed bool, err error) {
	token = newToken()
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		n, err := countUsers(ctx, tx, tenant)
		if needed = n == 0; err != nil || !needed {
			return err
		}
		return s.insertLink(ctx, tx, tenant, "", token)
	})
	if err != nil || !needed {
		return secret.Value{}, false, err
	}
	return token, true, nil
}

// PasswordLink returns the token of a link with which a user sets a new password. An earlier link of the user ends.
func (s *Service) PasswordLink(ctx context.Context, by *Principal, userID string, from Origin) (secret.Value, error) {
	token := newToken()
	err := s.change(ctx, entryOf(by, "user.link", userID, from), func(tx *store.Tx) error {
		user, err := userBy(ctx, tx, by.Tenant, "id", userID)
		if err != nil {
			return err
		}
		if !mayGrant(by, user.Roles) {
			return ErrForbidden // whoever has the link has all that the user may do
		}
		return s.insertLink(ctx, tx, by.Tenant, userID, token)
	})
	if err != nil {
		return secret.Value{}, err
	}
	return token, nil
}

// insertLink makes a link the only one of its user.
func (s *Service) insertLink(ctx context.Context, tx *store.Tx, tenant, userID string, token secret.Value) error {
	if _, err := tx.Exec(ctx, "DELETE FROM links WHERE tenant = ? AND user_id = ?", tenant, userID); err != nil {
		return err
	}
	now := s.now()
	_, err := tx.Exec(ctx, "INSERT INTO links (hash, tenant, user_id, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
		digest(token.Reveal()), tenant, userID, now.UnixMilli(), now.Add(s.config.LinkLifetime).UnixMilli())
	return err
}

// Link is what a link is for.
type Link struct {
	// FirstAdmin says that the link makes the first administrator, who says who they are. Else it sets the password of the
	// user with this e-mail address.
	FirstAdmin bool   `json:"firstAdmin"`
	Email      string `json:"email,omitempty"`
}

// Link says what a link is for without using it. The error is ErrLink or a *LimitError.
func (s *Service) Link(ctx context.Context, token secret.Value, from Origin) (Link, error) {
	if err := s.limiters.address.Take(addressKey(from.Address)); err != nil {
		return Link{}, err
	}
	_, _, user, err := s.linked(ctx, s.db, token)
	return Link{FirstAdmin: err == nil && user.ID == "", Email: user.Email}, err
}

// Redemption is how a link is used.
type Redemption struct {
	Token    secret.Value
	Password secret.Value
	// Email and Name are those of the first administrator.
	Email, Name string
	Previous    secret.Value
	From        Origin
}

// Redeem uses a link, once, and signs its user in. Errors are ErrLink, a *LimitError and *problem.Error of kind Invalid;
// after the last one the link can still be used.
func (s *Service) Redeem(ctx context.Context, r Redemption) (*NewSession, error) {
	if err := s.limiters.address.Take(addressKey(r.From.Address)); err != nil {
		return nil, err
	}
	tenant, userID, user, err := s.linked(ctx, s.db, r.Token)
	if err != nil {
		return nil, err
	}
	var problems problem.List
	if userID == "" {
		user = s.newUser(UserDraft{Email: normalEmail(r.Email), Name: strings.TrimSpace(r.Name), Roles: []RoleGrant{{Role: Admin}}})
		checkEmail(&problems, user.Email)
		checkName(&problems, user.Name)
	}
	checkPassword(&problems, r.Password, user.Email)
	if err := problems.Err("use the link"); err != nil {
		return nil, err
	}
	hashed, err := s.hashPassword(ctx, r.Password)
	if err != nil {
		return nil, err
	}
	user.password, user.HasPassword = secret.New(hashed), true
	return s.startSession(ctx, tenant, user, r.Previous, r.From, func(tx *store.Tx) error {
		return s.consume(ctx, tx, tenant, userID, user, r.Token)
	})
}

// consume ends the link and does what it is for.
func (s *Service) consume(ctx context.Context, tx *store.Tx, tenant, userID string, user User, token secret.Value) error {
	n, err := tx.Exec(ctx, "DELETE FROM links WHERE hash = ? AND tenant = ? AND expires_at > ?", digest(token.Reveal()), tenant, s.now().UnixMilli())
	if err != nil || n == 0 {
		return orElse(err, ErrLink)
	}
	if userID != "" {
		if err := endSessions(ctx, tx, tenant, userID, ""); err != nil {
			return err
		}
		return setPassword(ctx, tx, tenant, userID, user.password.Reveal(), s.now().UnixMilli())
	}
	if n, err := countUsers(ctx, tx, tenant); err != nil || n > 0 {
		return orElse(err, ErrLink)
	}
	return insertUser(ctx, tx, tenant, user)
}

// linked returns the tenant and user of a link that can be used; the user is zero for the first administrator.
func (s *Service) linked(ctx context.Context, q store.Querier, token secret.Value) (tenant, userID string, user User, err error) {
	err = q.QueryRow(ctx, "SELECT tenant, user_id FROM links WHERE hash = ? AND expires_at > ?",
		[]any{digest(token.Reveal()), s.now().UnixMilli()}, &tenant, &userID)
	if err == nil && userID != "" {
		user, err = userBy(ctx, q, tenant, "id", userID)
	}
	if errors.Is(err, store.ErrNotFound) || err == nil && user.Disabled {
		return "", "", User{}, ErrLink
	}
	return tenant, userID, user, err
}
