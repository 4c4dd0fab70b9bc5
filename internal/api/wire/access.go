package wire

import (
	"github.com/hozo-run/hozo/internal/access"
)

// SignIn is what somebody signs in with.
type SignIn struct {
	Email    string `json:"email" maxLength:"320"`
	Password string `json:"password" maxLength:"1024"`
}

// LinkToken names a one-time link. It is in a body and not in a URL, which would end in logs.
type LinkToken struct {
	Token string `json:"token" minLength:"1" maxLength:"256"`
}

// Redemption is how a one-time link is used.
type Redemption struct {
	Token    string `json:"token" minLength:"1" maxLength:"256"`
	Password string `json:"password" maxLength:"1024"`
	Email    string `json:"email,omitempty" maxLength:"320" doc:"Of the first administrator; other links know it."`
	Name     string `json:"name,omitempty" maxLength:"200" doc:"Of the first administrator; other links know it."`
}

// PasswordChange is a new password of whoever is signed in.
type PasswordChange struct {
	Current string `json:"current" maxLength:"1024"`
	Next    string `json:"next" maxLength:"1024"`
}

// Session says who makes the request.
type Session struct {
	UserID string `json:"userId"`
	Name   string `json:"name"`
	// KeyID is set for a program.
	KeyID string `json:"keyId,omitempty" doc:"The API key, if the request has one."`
	// CSRF is for the X-CSRF-Token header of requests that change something.
	CSRF string `json:"csrf,omitempty" doc:"The token that requests which change something send in X-CSRF-Token, beside the cookie of the session."`
	// Grants are the permissions by project; those of "" hold everywhere.
	Grants map[string][]access.Permission `json:"grants" doc:"The permissions by project; those of the empty name hold everywhere."`
}

// SignInOptions says how people can sign in.
type SignInOptions struct {
	Password bool `json:"password"`
	OIDC     bool `json:"oidc" doc:"There is an identity provider: go to /api/v1/oidc/sign-in."`
}

// NewUser is a user that was just made, with the token of the link for their password.
type NewUser struct {
	User access.User `json:"user"`
	// LinkToken is shown this once.
	LinkToken string `json:"linkToken" doc:"The token of the one-time link with which the user sets a password. It is shown this once."`
}

// NewLink is a one-time link that was just made.
type NewLink struct {
	LinkToken string `json:"linkToken" doc:"The token of the one-time link. It is shown this once."`
}

// NewKey is an API key that was just made.
type NewKey struct {
	Key access.Key `json:"key"`
	// Secret is shown this once.
	Secret string `json:"secret" doc:"The key itself. It is shown this once."`
}

// Role is a named set of permissions.
type Role struct {
	Name        access.Role         `json:"name"`
	Permissions []access.Permission `json:"permissions"`
}

// AuditHead is the end of an audit log.
type AuditHead struct {
	Seq int64 `json:"seq" minimum:"0"`
	// Hash is SHA-256 in hex digits.
	Hash string `json:"hash" maxLength:"64" doc:"SHA-256 in hex digits."`
}
