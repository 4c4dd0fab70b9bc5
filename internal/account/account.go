// Package account keeps what an installation knows of the services that its agents use: accounts at model providers, which
// agent uses which model of them, and MCP servers. Credentials are given once and never returned: they are sealed by a key
// ring outside of the database, and opened only to make a job or a test call. What is returned says whether there is a
// credential and under which names, nothing more.
//
// A credential belongs to the address it was given for. A change of the address asks for it again, so that nobody who may
// change accounts can have a credential they do not know sent to a server of their own.
package account

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Config is what a Service is made of. DB, Keys, Adapters and Models are required.
type Config struct {
	DB   *store.DB
	Keys *secret.Ring
	// Adapters are the API families that accounts can be of, by the name in job.ProviderConfig.API.
	Adapters map[string]llm.Adapter
	// Models is the model table, as kernel.Config has it.
	Models func(api, baseURL, id string) (llm.Model, bool)
	// Version is what MCP servers are told about this program.
	Version string
	// TestTimeout bounds a test call and the refresh of a list of tools; zero means 30 seconds.
	TestTimeout time.Duration
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Service is the one door to providers, bindings and MCP servers. It is safe for concurrent use.
type Service struct {
	config Config
	db     *store.DB
	keys   *secret.Ring
	now    func() time.Time
}

// New returns a service. It does no input or output.
func New(config Config) (*Service, error) {
	if config.DB == nil || config.Keys == nil || config.Adapters == nil || config.Models == nil {
		return nil, errors.New("accounts need a database, a key ring, adapters and a model table")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.TestTimeout <= 0 {
		config.TestTimeout = 30 * time.Second
	}
	return &Service{config: config, db: config.DB, keys: config.Keys, now: config.Now}, nil
}

// String says nothing of what the service holds.
func (s *Service) String() string { return "account service" }

// GoString is String.
func (s *Service) GoString() string { return s.String() }

// LogValue is String.
func (s *Service) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Stored says what the key ring can do with the sealed credentials of a tenant.
type Stored struct {
	// Sealed counts them, Stale those that were sealed with an older key.
	Sealed, Stale int
	// Lost are those whose key is not in the ring, as "provider <id>" and "MCP server <name>".
	Lost []string
}

// CheckKeys looks at every sealed credential of a tenant without opening it. A server calls it at its start: a key file
// that does not belong to the database shows there and not in the middle of a run.
func (s *Service) CheckKeys(ctx context.Context, tenant string) (Stored, error) {
	var result Stored
	err := eachSealed(ctx, s.db, tenant, func(row sealedRow) error {
		result.Sealed++
		if s.keys.Stale(row.sealed) {
			result.Stale++
		}
		if !s.keys.Has(row.sealed) {
			result.Lost = append(result.Lost, row.kind()+" "+row.id)
		}
		return nil
	})
	return result, err
}

// Reseal seals every credential of a tenant that was sealed with an older key anew, and returns how many it were. The old
// key can be removed when every tenant has been through. Versions of accounts do not change by it.
func (s *Service) Reseal(ctx context.Context, tenant string) (int, error) {
	n := 0
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		n = 0
		var stale []sealedRow
		if err := eachSealed(ctx, tx, tenant, func(row sealedRow) error {
			if s.keys.Stale(row.sealed) {
				stale = append(stale, row)
			}
			return nil
		}); err != nil {
			return err
		}
		for _, row := range stale {
			place := row.place(tenant)
			value, err := s.keys.Open(place, row.sealed)
			if err != nil {
				return err
			}
			sealed, err := s.keys.Seal(place, value)
			if err != nil {
				return err
			}
			changed, err := row.replace(ctx, tx, tenant, sealed)
			if err != nil {
				return err
			}
			n += int(changed)
		}
		return nil
	})
	return n, err
}

// id refuses what cannot be the id of an account: it becomes a part of addresses and of names that models see.
func checkID(problems *problem.List, pointer, id string, limit int) {
	if id == "" || len(id) > limit || id[0] < 'a' || id[0] > 'z' || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		problems.AddHint("invalid", pointer, "use lower-case letters, digits and hyphens, a letter first", "%q is no id of at most %d characters", shorten(id), limit)
	}
}

func shorten(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}

// originOf returns scheme, host and port of an address, in the form in which they can be compared.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme) + "://" + host + ":" + port
}

func (s *Service) moment() time.Time { return s.now().UTC().Truncate(time.Millisecond) }
