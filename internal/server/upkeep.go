package server

import (
	"context"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/job"
)

// upkeepEvery is how often the server does what nothing depends on.
const upkeepEvery = time.Hour

// upkeep removes what nobody needs any more and looks at MCP servers, until ctx ends.
func (s *Server) upkeep(ctx context.Context) {
	every := time.NewTicker(upkeepEvery)
	defer every.Stop()
	for {
		s.tidy(ctx)
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func (s *Server) tidy(ctx context.Context) {
	for what, do := range map[string]func(context.Context) error{
		"expired sessions, keys and links": s.access.Sweep,
		"directories of runs that have ended": func(ctx context.Context) error {
			return s.places.sweep(ctx, s.runs, access.DefaultTenant)
		},
		"tools of MCP servers": func(ctx context.Context) error {
			drifted, err := s.accounts.RefreshDue(ctx, access.DefaultTenant, 24*time.Hour)
			for i := range drifted {
				s.log.WarnContext(ctx, "an MCP server has other tools than were accepted", "server", drifted[i].Name, "tools", drifted[i].Drifted())
			}
			return err
		},
	} {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "upkeep failed", "of", what, "error", err)
		}
	}
}

// firstAccount gives a new installation a model that needs no key, so that agents can be tried at once. An installation
// that has users is left as it is.
func (s *Server) firstAccount(ctx context.Context) error {
	first := s.parts.First
	if first.Provider == "" {
		return nil
	}
	users, err := s.access.Users(ctx, access.DefaultTenant, "", 1)
	if err != nil || len(users) > 0 {
		return err
	}
	accounts, err := s.accounts.Providers(ctx, access.DefaultTenant)
	if err != nil || len(accounts) > 0 {
		return err
	}
	draft := account.ProviderDraft{ID: first.Provider, Name: "Built in: a script, no language model", Config: job.ProviderConfig{API: first.Provider}}
	if _, err := s.accounts.CreateProvider(ctx, access.DefaultTenant, draft); err != nil {
		return err
	}
	_, err = s.accounts.SaveBinding(ctx, access.DefaultTenant, account.Binding{Provider: first.Provider, Model: first.ID}, account.AnyVersion)
	return err
}
