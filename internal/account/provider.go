package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

const (
	maxProviderID = 63
	maxName       = 200
	// maxConfig bounds the JSON of a provider, with its script if it has one.
	maxConfig = 1 << 20
)

// Provider is an account at a model provider as it is shown.
type Provider struct {
	// ID matches [a-z][a-z0-9-]{0,62}; jobs and bindings name the account by it.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Config has no credential in it: no key, and of headers the names with empty values.
	Config job.ProviderConfig `json:"config"`
	// HasKey says that there is an API key or an access key.
	HasKey    bool      `json:"hasKey"`
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`

	sealed string
}

// ProviderDraft is a new account or a changed one.
type ProviderDraft struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Config is the account with its credentials. In a change an empty key and the empty value of a header keep what there
	// is; headers that are not named are removed. A change of the API or of the address keeps nothing.
	Config job.ProviderConfig `json:"config"`
	// RemoveKey removes the key although none is given.
	RemoveKey bool `json:"removeKey,omitempty"`
}

// String shows the account without its credentials.
func (d ProviderDraft) String() string {
	return fmt.Sprintf("{ID: %s, Name: %s, Config: %v}", d.ID, d.Name, d.Config)
}

// GoString is String.
func (d ProviderDraft) GoString() string { return d.String() }

func providerPlace(tenant, id string) secret.Place {
	return secret.Place{Tenant: tenant, Table: "providers", ID: id, Field: "credentials"}
}

// CreateProvider adds an account. Errors are a *problem.Error of kind Invalid with every problem, and store.ErrExists.
func (s *Service) CreateProvider(ctx context.Context, tenant string, draft ProviderDraft) (Provider, error) {
	now := s.moment()
	p := Provider{ID: draft.ID, Version: 1, CreatedAt: now, UpdatedAt: now}
	if err := s.prepare(&p, tenant, draft, Provider{}, credentials{}); err != nil {
		return Provider{}, err
	}
	err := s.db.Append(ctx, func(tx *store.Tx) error { return insertProvider(ctx, tx, tenant, p) })
	if err != nil {
		return Provider{}, err
	}
	return p, nil
}

// UpdateProvider changes an account whose current version is the one given; the id stays. Errors are those of
// CreateProvider, store.ErrNotFound and store.ErrStale.
func (s *Service) UpdateProvider(ctx context.Context, tenant, id string, version int64, draft ProviderDraft) (Provider, error) {
	var p Provider
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		old, err := providerByID(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if old.Version != version {
			return store.ErrStale
		}
		held, err := unseal(s.keys, providerPlace(tenant, id), old.sealed)
		if err != nil && !replacesKey(draft) {
			return err
		}
		p = old
		p.UpdatedAt, draft.ID = s.moment(), id
		if err := s.prepare(&p, tenant, draft, old, held); err != nil {
			return err
		}
		return updateProvider(ctx, tx, tenant, &p)
	})
	return p, err
}

// replacesKey reports whether a draft needs nothing of the credentials there are. So an account whose key was lost can be
// mended by giving its credentials again.
func replacesKey(d ProviderDraft) bool {
	given := d.Config.APIKey != "" || d.RemoveKey || d.Config.AWS != nil && d.Config.AWS.AccessKeyID != ""
	return given && len(missing(d.Config.Headers)) == 0 && len(missing(d.Config.TagHeaders)) == 0
}

// prepare checks a draft and makes p of it.
func (s *Service) prepare(p *Provider, tenant string, draft ProviderDraft, old Provider, held credentials) error {
	config := clone(draft.Config)
	given := take(&config)
	moved := old.ID != "" && (old.Config.API != config.API || originOf(old.Config.BaseURL) != originOf(config.BaseURL))
	if !moved {
		given.keep(held, draft.RemoveKey)
	}
	full := clone(config)
	given.give(&full)
	problems := s.checkProvider(draft, full)
	s.checkGiven(&problems, given, moved && !held.empty())
	text, err := json.Marshal(config)
	if err != nil {
		problems.Add("invalid", "/config", "the config cannot be written as JSON")
	}
	if len(text) > maxConfig {
		problems.Add("too-large", "/config", "the config has %d bytes; the limit is %d", len(text), maxConfig)
	}
	if err := problems.Err("save the provider"); err != nil {
		return err
	}
	p.Name, p.Config, p.HasKey = strings.TrimSpace(draft.Name), config, given.APIKey != "" || given.AccessKey != nil
	p.sealed, err = given.seal(s.keys, providerPlace(tenant, draft.ID))
	return err
}

func clone(c job.ProviderConfig) job.ProviderConfig {
	c.Headers, c.TagHeaders = maps.Clone(c.Headers), maps.Clone(c.TagHeaders)
	if c.AWS != nil {
		access := *c.AWS
		c.AWS = &access
	}
	return c
}

// checkGiven finds the headers that are left without a value.
func (s *Service) checkGiven(problems *problem.List, given credentials, moved bool) {
	hint := "give the value"
	if moved {
		hint = "the address has changed: give the value again"
	}
	for field, headers := range map[string]map[string]string{"headers": given.Headers, "tagHeaders": given.TagHeaders} {
		for _, name := range missing(headers) {
			problems.AddHint("required", "/config/"+field+"/"+escape(name), hint, "the header has no value")
		}
	}
}

// checkProvider asks the rules of a job about the account, as a job with it would be asked.
func (s *Service) checkProvider(draft ProviderDraft, full job.ProviderConfig) problem.List {
	var problems problem.List
	checkID(&problems, "/id", draft.ID, maxProviderID)
	if name := strings.TrimSpace(draft.Name); name == "" || len(name) > maxName {
		problems.Add("invalid", "/name", "must have 1 to %d bytes", maxName)
	}
	const root = "/providers/p"
	spec := &job.Spec{Providers: map[string]job.ProviderConfig{"p": full}}
	for _, p := range spec.Check() {
		if rest, ok := strings.CutPrefix(p.Pointer, root); ok && (rest == "" || rest[0] == '/') {
			p.Pointer = "/config" + rest
			problems = append(problems, p)
		}
	}
	if slices.Contains(job.APIs(), full.API) && s.config.Adapters[full.API] == nil {
		problems.Add("unsupported", "/config/api", "this program has no adapter for the API %q", full.API)
	}
	if len(problems) == 0 {
		if _, err := s.config.Adapters[full.API](full.Account()); err != nil {
			held := take(&full)
			problems.Add("invalid", "/config", "%s", held.scrub(err.Error()))
		}
	}
	return problems
}

// escape writes a key as a JSON Pointer token (RFC 6901).
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// Provider returns an account.
func (s *Service) Provider(ctx context.Context, tenant, id string) (Provider, error) {
	return providerByID(ctx, s.db, tenant, id)
}

// Providers returns every account of a tenant, sorted by id.
func (s *Service) Providers(ctx context.Context, tenant string) ([]Provider, error) {
	return listProviders(ctx, s.db, tenant)
}

// InUseError reports an account that bindings name.
type InUseError struct {
	// Bindings are those that name it.
	Bindings []Binding
}

// Error counts the bindings and names some of them.
func (e *InUseError) Error() string {
	names := make([]string, 0, len(e.Bindings))
	for _, b := range e.Bindings {
		names = append(names, b.scope())
	}
	if len(names) > 10 {
		names = append(names[:10], fmt.Sprintf("%d more", len(names)-10))
	}
	return "models of the provider are bound: " + strings.Join(names, ", ")
}

// Unwrap returns store.ErrInUse.
func (e *InUseError) Unwrap() error { return store.ErrInUse }

// DeleteProvider removes an account with its credentials. Errors are *InUseError, store.ErrNotFound and store.ErrStale.
func (s *Service) DeleteProvider(ctx context.Context, tenant, id string, version int64) error {
	return s.db.Write(ctx, func(tx *store.Tx) error {
		p, err := providerByID(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if p.Version != version {
			return store.ErrStale
		}
		used, err := listBindings(ctx, tx, tenant, bindingFilter{provider: id})
		if err != nil {
			return err
		}
		if len(used) > 0 {
			return &InUseError{Bindings: used}
		}
		return deleteProvider(ctx, tx, tenant, id, version)
	})
}

// Configs returns accounts with their credentials, for the spec of a job, by id. An account that does not exist is
// store.ErrNotFound with its id.
func (s *Service) Configs(ctx context.Context, tenant string, ids ...string) (map[string]job.ProviderConfig, error) {
	configs := map[string]job.ProviderConfig{}
	for _, id := range ids {
		p, err := providerByID(ctx, s.db, tenant, id)
		if err != nil {
			return nil, fmt.Errorf("provider %q: %w", shorten(id), err)
		}
		if configs[id], err = s.open(tenant, p); err != nil {
			return nil, err
		}
	}
	return configs, nil
}

// open returns the config of an account with its credentials.
func (s *Service) open(tenant string, p Provider) (job.ProviderConfig, error) {
	held, err := unseal(s.keys, providerPlace(tenant, p.ID), p.sealed)
	if err != nil {
		return job.ProviderConfig{}, err
	}
	config := clone(p.Config)
	held.give(&config)
	return config, nil
}

// Model returns what is known of a model of an account: the table's entry, or that of the script, with the account's
// overrides. known is false for a model that neither has: it can be used, with its limits unknown.
func (s *Service) Model(ctx context.Context, tenant, provider, id string) (model llm.Model, known bool, err error) {
	p, err := providerByID(ctx, s.db, tenant, provider)
	if err != nil {
		return llm.Model{}, false, err
	}
	model, known = s.entry(p.Config, id)
	return model, known, nil
}

// entry needs no credentials: an adapter that may know the model itself is asked without.
func (s *Service) entry(config job.ProviderConfig, id string) (llm.Model, bool) {
	model, known := llm.Model{}, false
	if config.API == job.APIScripted {
		if adapter := s.config.Adapters[config.API]; adapter != nil {
			if provider, err := adapter(config.Account()); err == nil {
				if source, ok := provider.(llm.ModelSource); ok {
					model, known = source.Model(id)
				}
			}
		}
	}
	if !known {
		model, known = s.config.Models(config.API, config.BaseURL, id)
	}
	model.ID = id
	if override, ok := config.Models[id]; ok {
		override.Apply(&model)
		known = true
	}
	return model, known
}

// Levels returns the thinking levels that a model of an account takes, from the least to the most. One that does not
// think, and one of which nothing is known, takes only llm.LevelOff.
func (s *Service) Levels(ctx context.Context, tenant, provider, id string) ([]llm.Level, error) {
	model, _, err := s.Model(ctx, tenant, provider, id)
	if err != nil {
		return nil, err
	}
	levels := []llm.Level{}
	for _, level := range llm.Levels() {
		if slices.Contains(model.ThinkingLevels, level) {
			levels = append(levels, level)
		}
	}
	if len(levels) == 0 {
		levels = append(levels, llm.LevelOff)
	}
	return levels, nil
}

// notFound reports whether err is that of a row that does not exist.
func notFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

// keptConfig is what the column config holds.
type keptConfig struct {
	Config job.ProviderConfig `json:"config"`
	HasKey bool               `json:"hasKey,omitempty"`
}

func (p Provider) column() (string, error) {
	text, err := json.Marshal(keptConfig{p.Config, p.HasKey})
	return string(text), err
}
