package account_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/anthropic"
	"github.com/hozo-run/hozo/provider/bedrock"
	"github.com/hozo-run/hozo/provider/modeltable"
	"github.com/hozo-run/hozo/provider/offline"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/provider/scripted"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	tenant = "default"
	canary = "sk-canary-0b1c2d3e4f?&/+~ü"
	header = "canary-header-value-77"
)

// adapters are those of the program.
func adapters() map[string]llm.Adapter {
	return map[string]llm.Adapter{
		job.APIOpenAIChat: openaichat.New, job.APIAnthropicMessages: anthropic.New, job.APIBedrockConverse: bedrock.New,
		job.APIScripted: scripted.New, job.APIOffline: offline.New,
	}
}

func models(api, baseURL, id string) (llm.Model, bool) {
	switch api {
	case job.APIOffline:
		return offline.Model(id)
	case job.APIScripted:
		return llm.Model{ID: id, Simulated: true}, true
	}
	return modeltable.Lookup(api, baseURL, id)
}

func ring(t *testing.T) *secret.Ring {
	t.Helper()
	r, err := secret.Load(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func service(t *testing.T, db *store.DB, keys *secret.Ring) *account.Service {
	t.Helper()
	s, err := account.New(account.Config{DB: db, Keys: keys, Adapters: adapters(), Models: models, Version: "test", TestTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error = %v, want %v", what, err, want)
	}
}

// has fails if no problem of err is at a place.
func has(t *testing.T, err error, pointer string) {
	t.Helper()
	if !slices.ContainsFunc(problem.Of(err), func(p problem.Problem) bool { return p.Pointer == pointer }) {
		t.Errorf("no problem at %s: %v", pointer, err)
	}
}

func chat(id, address, key string) account.ProviderDraft {
	return account.ProviderDraft{ID: id, Name: "A " + id, Config: job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: address, APIKey: key}}
}

func opened(t *testing.T, s *account.Service, id string) job.ProviderConfig {
	t.Helper()
	return must[map[string]job.ProviderConfig](t)(s.Configs(t.Context(), tenant, id))[id]
}

func TestACredentialIsGivenOnceAndNeverReturned(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		draft := chat("main", "https://llm.example/v1", canary)
		draft.Config.Headers = map[string]string{"X-Org": header}
		draft.Config.TagHeaders = map[string]string{"X-Tag": "job-{jobId}"}
		created := must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, draft))
		got := must[account.Provider](t)(s.Provider(t.Context(), tenant, "main"))
		if !created.HasKey || !got.HasKey || got.Version != 1 || got.Name != "A main" || got.Config.BaseURL != "https://llm.example/v1" {
			t.Errorf("provider = %+v", got)
		}
		if diff := cmp.Diff(map[string]string{"X-Org": ""}, got.Config.Headers); diff != "" {
			t.Errorf("names of headers: %s", diff)
		}
		if c := opened(t, s, "main"); c.APIKey != canary || c.Headers["X-Org"] != header || c.TagHeaders["X-Tag"] != "job-{jobId}" {
			t.Error("a job does not get the credentials")
		}
		if draft.Config.APIKey != canary || draft.Config.Headers["X-Org"] != header {
			t.Error("the caller's draft was changed")
		}
		_, err := s.CreateProvider(t.Context(), tenant, draft)
		wants(t, "an id that is taken", err, store.ErrExists)

		// A change keeps what it does not name again.
		change := chat("ignored", "https://LLM.example:443/v2", "")
		change.Config.Headers = map[string]string{"X-Org": "", "X-New": "another value"}
		changed := must[account.Provider](t)(s.UpdateProvider(t.Context(), tenant, "main", 1, change))
		if changed.ID != "main" || changed.Version != 2 || !changed.HasKey {
			t.Errorf("changed = %+v", changed)
		}
		if c := opened(t, s, "main"); c.APIKey != canary || c.Headers["X-Org"] != header || c.Headers["X-New"] != "another value" || len(c.TagHeaders) != 0 {
			t.Error("the change lost or kept the wrong credentials")
		}
		_, err = s.UpdateProvider(t.Context(), tenant, "main", 1, change)
		wants(t, "an old version", err, store.ErrStale)
		change.RemoveKey, change.Config.Headers = true, nil
		bare := must[account.Provider](t)(s.UpdateProvider(t.Context(), tenant, "main", 2, change))
		if c := opened(t, s, "main"); bare.HasKey || c.APIKey != "" || len(c.Headers) != 0 {
			t.Error("the credentials were not removed")
		}
	})
}

func TestACredentialStaysWithItsAddress(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		draft := chat("main", "https://llm.example/v1", canary)
		draft.Config.Headers = map[string]string{"X-Org": header}
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, draft))
		for _, address := range []string{"https://evil.example/v1", "http://llm.example/v1", "https://llm.example:8443/v1", ""} {
			change := chat("main", address, "")
			change.Config.Headers = map[string]string{"X-Org": ""}
			_, err := s.UpdateProvider(t.Context(), tenant, "main", 1, change)
			has(t, err, "/config/headers/X-Org")
		}
		moved := must[account.Provider](t)(s.UpdateProvider(t.Context(), tenant, "main", 1, chat("main", "https://evil.example/v1", "")))
		if c := opened(t, s, "main"); moved.HasKey || c.APIKey != "" {
			t.Error("the key went along to another address")
		}
	})
}

func TestAnAccessKeyOfAWSIsOneCredential(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		draft := account.ProviderDraft{ID: "aws", Name: "AWS", Config: job.ProviderConfig{API: job.APIBedrockConverse,
			AWS: &job.AWSAccess{AccessKeyID: "AKIACANARY", SecretAccessKey: "canary-aws-secret", SessionToken: "canary-aws-session", Region: "eu-central-1"}}}
		p := must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, draft))
		if diff := cmp.Diff(&job.AWSAccess{Region: "eu-central-1"}, p.Config.AWS); diff != "" || !p.HasKey {
			t.Errorf("shown: %s", diff)
		}
		draft.Config.AWS = &job.AWSAccess{Region: "us-east-1"}
		must[account.Provider](t)(s.UpdateProvider(t.Context(), tenant, "aws", 1, draft))
		want := &job.AWSAccess{AccessKeyID: "AKIACANARY", SecretAccessKey: "canary-aws-secret", SessionToken: "canary-aws-session", Region: "us-east-1"}
		if c := opened(t, s, "aws"); *c.AWS != *want {
			t.Error("a job does not get the access key")
		}
		draft.Config.APIKey = "a bearer key"
		must[account.Provider](t)(s.UpdateProvider(t.Context(), tenant, "aws", 2, draft))
		if c := opened(t, s, "aws"); c.APIKey != "a bearer key" || c.AWS.AccessKeyID != "" || c.AWS.Region != "us-east-1" {
			t.Error("one kind of credential does not take the place of the other")
		}
	})
}

func TestAProviderIsReportedWithAllThatIsWrong(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		bad := account.ProviderDraft{ID: "No Id", Config: job.ProviderConfig{API: "openai-chatt", BaseURL: "https://u:" + "canary-in-url" + "@x.example/?k=1",
			APIKey: canary + "\n", Headers: map[string]string{"Host": "x", "X-Empty": ""}, Models: map[string]job.ModelConfig{"m": {ThinkingLevels: []llm.Level{"huge"}}}}}
		_, err := s.CreateProvider(t.Context(), tenant, bad)
		for _, at := range []string{"/id", "/name", "/config/api", "/config/baseUrl", "/config/apiKey", "/config/headers/Host", "/config/headers/X-Empty", "/config/models/m/thinkingLevels/0"} {
			has(t, err, at)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("the error quotes a credential: %v", err)
		}
		none := chat("x", "https://x.example", "k")
		none.Config.API = job.APIGoogleGenerate
		_, err = s.CreateProvider(t.Context(), tenant, none)
		has(t, err, "/config/api")
		script := account.ProviderDraft{ID: "s", Name: "S", Config: job.ProviderConfig{API: job.APIScripted, Script: json.RawMessage(`{"nonsense":1}`)}}
		_, err = s.CreateProvider(t.Context(), tenant, script)
		if problem.KindOf(err) != problem.Invalid {
			t.Errorf("a script that is none: %v", err)
		}
	})
}

func TestAProviderInUseStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("main", "https://llm.example/v1", "k")))
		must[account.Binding](t)(s.SaveBinding(t.Context(), tenant, account.Binding{Agent: "reviewer", Provider: "main", Model: "m"}, 0))
		err := s.DeleteProvider(t.Context(), tenant, "main", 1)
		used, ok := errors.AsType[*account.InUseError](err)
		if !ok || !errors.Is(err, store.ErrInUse) || len(used.Bindings) != 1 || !strings.Contains(err.Error(), `"reviewer" in the installation`) {
			t.Errorf("error = %v", err)
		}
		if err := s.DeleteBinding(t.Context(), tenant, "", "reviewer", account.AnyVersion); err != nil {
			t.Fatal(err)
		}
		wants(t, "an old version", s.DeleteProvider(t.Context(), tenant, "main", 7), store.ErrStale)
		if err := s.DeleteProvider(t.Context(), tenant, "main", 1); err != nil {
			t.Fatal(err)
		}
		wants(t, "twice", s.DeleteProvider(t.Context(), tenant, "main", 1), store.ErrNotFound)
		_, err = s.Configs(t.Context(), tenant, "main")
		wants(t, "a deleted one", err, store.ErrNotFound)
	})
}

func TestAccountsOfTenantsAreApart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("main", "https://llm.example/v1", canary)))
		must[account.Binding](t)(s.SaveBinding(t.Context(), tenant, account.Binding{Agent: "a", Provider: "main", Model: "m"}, 0))
		must[account.Server](t)(s.CreateServer(t.Context(), tenant, account.ServerDraft{Name: "docs", URL: "https://mcp.example/"}))
		const other = "other"
		for name, f := range map[string]func() error{
			"provider": func() error { _, err := s.Provider(t.Context(), other, "main"); return err },
			"update": func() error {
				_, err := s.UpdateProvider(t.Context(), other, "main", 1, chat("main", "https://e.example", "k"))
				return err
			},
			"delete":  func() error { return s.DeleteProvider(t.Context(), other, "main", 1) },
			"configs": func() error { _, err := s.Configs(t.Context(), other, "main"); return err },
			"test":    func() error { _, err := s.TestProvider(t.Context(), other, "main", "m"); return err },
			"model":   func() error { _, _, err := s.Model(t.Context(), other, "main", "m"); return err },
			"binding": func() error { _, err := s.Binding(t.Context(), other, "", "a"); return err },
			"unbind":  func() error { return s.DeleteBinding(t.Context(), other, "", "a", 1) },
			"resolve": func() error { _, err := s.Resolve(t.Context(), other, account.Wanted{Agent: "a"}); return err },
			"server":  func() error { _, err := s.Server(t.Context(), other, "docs"); return err },
			"change": func() error {
				_, err := s.UpdateServer(t.Context(), other, "docs", 1, account.ServerDraft{URL: "https://mcp.example/"})
				return err
			},
			"remove":  func() error { return s.DeleteServer(t.Context(), other, "docs", 1) },
			"refresh": func() error { _, err := s.Refresh(t.Context(), other, "docs"); return err },
			"accept":  func() error { _, err := s.Accept(t.Context(), other, "docs", 1, nil); return err },
		} {
			wants(t, name, f(), store.ErrNotFound)
		}
		_, err := s.SaveBinding(t.Context(), other, account.Binding{Agent: "a", Provider: "main", Model: "m"}, 0)
		has(t, err, "/provider")
		_, err = s.Specs(t.Context(), other, []string{"docs"})
		if problem.KindOf(err) != problem.NotFound {
			t.Errorf("specs: %v", err)
		}
		if list, err := s.Providers(t.Context(), other); err != nil || len(list) != 0 {
			t.Errorf("%d providers, %v", len(list), err)
		}
		if list, err := s.Servers(t.Context(), other); err != nil || len(list) != 0 {
			t.Errorf("%d servers, %v", len(list), err)
		}
		// A sealed value that is copied to another tenant does not open there.
		if err := db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO providers (tenant, id, name, config, sealed, version, created_at, updated_at) SELECT ?, id, name, config, sealed, version, created_at, updated_at FROM providers WHERE tenant = ?", other, tenant)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_, err = s.Configs(t.Context(), other, "main")
		wants(t, "a copied row", err, secret.ErrDamaged)
	})
}

func TestKeysAreRotatedAndALostOneIsSaid(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		keys := ring(t)
		s := service(t, db, keys)
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("main", "https://llm.example/v1", canary)))
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("bare", "https://llm.example/v1", "")))
		must[account.Server](t)(s.CreateServer(t.Context(), tenant, account.ServerDraft{Name: "docs", URL: "https://mcp.example/", Headers: map[string]string{"X-Key": header}}))
		if err := keys.Rotate(); err != nil {
			t.Fatal(err)
		}
		if got := must[account.Stored](t)(s.CheckKeys(t.Context(), tenant)); got.Sealed != 2 || got.Stale != 2 || len(got.Lost) != 0 {
			t.Errorf("before: %+v", got)
		}
		if n := must[int](t)(s.Reseal(t.Context(), tenant)); n != 2 {
			t.Errorf("%d were sealed anew", n)
		}
		if got := must[account.Stored](t)(s.CheckKeys(t.Context(), tenant)); got.Sealed != 2 || got.Stale != 0 {
			t.Errorf("after: %+v", got)
		}
		if n := must[int](t)(s.Reseal(t.Context(), tenant)); n != 0 {
			t.Errorf("%d were sealed twice", n)
		}
		if opened(t, s, "main").APIKey != canary || must[account.Provider](t)(s.Provider(t.Context(), tenant, "main")).Version != 1 {
			t.Error("sealing anew changed the account")
		}
		strange := service(t, db, ring(t))
		lost := must[account.Stored](t)(strange.CheckKeys(t.Context(), tenant))
		if diff := cmp.Diff([]string{"provider main", "MCP server docs"}, lost.Lost); diff != "" {
			t.Error(diff)
		}
		_, err := strange.Configs(t.Context(), tenant, "main")
		wants(t, "with other keys", err, secret.ErrKeyLost)
		_, err = strange.TestProvider(t.Context(), tenant, "main", "m")
		wants(t, "a test call", err, secret.ErrKeyLost)
		_, err = strange.Specs(t.Context(), tenant, []string{"docs"})
		wants(t, "specs", err, secret.ErrKeyLost)
		if _, err := strange.Configs(t.Context(), tenant, "bare"); err != nil {
			t.Errorf("an account without a credential: %v", err)
		}
		// Giving the credential again mends the account.
		must[account.Provider](t)(strange.UpdateProvider(t.Context(), tenant, "main", 1, chat("main", "https://llm.example/v1", "new key")))
		if opened(t, strange, "main").APIKey != "new key" {
			t.Error("the account was not mended")
		}
	})
}

// rude is a server that refuses everything and repeats what it was sent, in many encodings.
func rude(t *testing.T, status int) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		key := []byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		org := []byte(r.Header.Get("X-Org"))
		text := fmt.Sprintf("no: %s %s %x %X %s %s %s %s %x", key, org, key, key, base64.StdEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key),
			url.QueryEscape(string(key)), base64.StdEncoding.EncodeToString(org), org)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": text, "type": "x", "code": string(org)}})
	}))
	t.Cleanup(server.Close)
	return server
}

func TestATestCallSaysHowItWent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		create := func(d account.ProviderDraft) {
			t.Helper()
			must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, d))
		}
		const key = "sk-canary-key-0123456789"
		for id, status := range map[string]int{"auth": 401, "limit": 429, "down": 503, "odd": 400} {
			d := chat(id, rude(t, status).URL, key)
			d.Config.Headers = map[string]string{"X-Org": header}
			create(d)
		}
		gone := httptest.NewServer(http.NotFoundHandler())
		gone.Close()
		create(chat("gone", gone.URL, key))
		create(chat("metadata", "http://169.254.169.254/v1", key))
		create(account.ProviderDraft{ID: "offline", Name: "Offline", Config: job.ProviderConfig{API: job.APIOffline}})
		for _, tc := range []struct {
			id, model, class string
			status           int
			ok               bool
		}{
			{"auth", "m", string(llm.ClassAuth), 401, false}, {"limit", "m", string(llm.ClassRateLimit), 429, false},
			{"down", "m", string(llm.ClassOverloaded), 503, false}, {"odd", "m", string(llm.ClassInvalidRequest), 400, false},
			{"gone", "m", string(llm.ClassConnection), 0, false}, {"offline", "", account.FailConfig, 0, false},
			{"metadata", "m", string(llm.ClassInvalidRequest), 0, false}, {"offline", offline.Surveyor, "", 0, true},
		} {
			got := must[account.TestResult](t)(s.TestProvider(t.Context(), tenant, tc.id, tc.model))
			if got.OK != tc.ok || got.Class != tc.class || got.Status != tc.status || got.OK == (got.Message != "") {
				t.Errorf("%s: %+v", tc.id, got)
			}
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			hunt(t, "the result of "+tc.id, string(text), key, header)
		}
		if got := must[account.TestResult](t)(s.TestProvider(t.Context(), tenant, "offline", offline.Surveyor)); !got.Simulated || !got.Known {
			t.Errorf("offline: %+v", got)
		}
	})
}

func TestATestCallEndsInTime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	db := storetest.Open(t, storetest.SQLite(t))
	s, err := account.New(account.Config{DB: db, Keys: ring(t), Adapters: adapters(), Models: models, TestTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("slow", slow.URL, "k")))
	if got := must[account.TestResult](t)(s.TestProvider(t.Context(), tenant, "slow", "m")); got.Class != account.FailTimeout || got.OK {
		t.Errorf("result %+v", got)
	}
}

func TestLevelsComeFromTheTableAndTheAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		d := account.ProviderDraft{ID: "main", Name: "Main", Config: job.ProviderConfig{API: job.APIAnthropicMessages, APIKey: "k",
			Models: map[string]job.ModelConfig{"own": {ThinkingLevels: []llm.Level{llm.LevelHigh, llm.LevelLow}}}}}
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, d))
		listed := ""
		for _, m := range modeltable.Models("anthropic") {
			if len(m.ThinkingLevels) > 1 {
				listed = m.ID
			}
		}
		for model, want := range map[string]func([]llm.Level) bool{
			"own":     func(l []llm.Level) bool { return slices.Equal(l, []llm.Level{llm.LevelLow, llm.LevelHigh}) },
			"unknown": func(l []llm.Level) bool { return slices.Equal(l, []llm.Level{llm.LevelOff}) },
			listed:    func(l []llm.Level) bool { return len(l) > 1 },
		} {
			if got := must[[]llm.Level](t)(s.Levels(t.Context(), tenant, "main", model)); !want(got) {
				t.Errorf("%s takes %v", model, got)
			}
		}
		if _, known, err := s.Model(t.Context(), tenant, "main", "unknown"); known || err != nil {
			t.Errorf("an unknown model is known: %v", err)
		}
		_, _, err := s.Model(t.Context(), tenant, "none", "m")
		wants(t, "an unknown provider", err, store.ErrNotFound)
	})
}

// TestNoCredentialOfAnAccountIsStoredOrShown plants credentials and looks for them in everything that is kept or printed.
func TestNoCredentialOfAnAccountIsStoredOrShown(t *testing.T) {
	t.Parallel()
	canaries := []string{canary, header, "canary-aws-secret", "canary-query-key-5", "Bearer canary-mcp-header"}
	plant := func(t *testing.T, db *store.DB) {
		t.Helper()
		s := service(t, db, ring(t))
		var shown strings.Builder
		show := func(values ...any) {
			for _, v := range values {
				fmt.Fprintf(&shown, "%v %+v %#v\n", v, v, v)
				if text, err := json.Marshal(v); err == nil {
					shown.Write(text)
				}
			}
		}
		d := chat("main", rude(t, 401).URL, canary)
		d.Config.Headers = map[string]string{"X-Org": header}
		fmt.Fprintf(&shown, "%v %+v %#v", d, d, d)
		p := must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, d))
		aws := account.ProviderDraft{ID: "aws", Name: "AWS", Config: job.ProviderConfig{API: job.APIBedrockConverse, AWS: &job.AWSAccess{AccessKeyID: "AKIA", SecretAccessKey: "canary-aws-secret", Region: "eu-west-1"}}}
		q := must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, aws))
		show(p, &p, q, s, must[[]account.Provider](t)(s.Providers(t.Context(), tenant)))
		show(must[account.TestResult](t)(s.TestProvider(t.Context(), tenant, "main", "m")))
		show(must[account.Binding](t)(s.SaveBinding(t.Context(), tenant, account.Binding{Provider: "main", Model: "m"}, 0)))
		r := must[account.Resolution](t)(s.Resolve(t.Context(), tenant, account.Wanted{Agent: "a"}))
		fmt.Fprintf(&shown, "%v %+v %#v", r, r, r)
		mcp := account.ServerDraft{Name: "docs", URL: rude(t, 403).URL + "/mcp?key=canary-query-key-5", Headers: map[string]string{"Authorization": "Bearer canary-mcp-header"},
			ServerSettings: account.ServerSettings{AllowPrivate: true}}
		fmt.Fprintf(&shown, "%v %+v %#v", mcp, mcp, mcp)
		server := must[account.Server](t)(s.CreateServer(t.Context(), tenant, mcp))
		show(server, must[account.Server](t)(s.Refresh(t.Context(), tenant, "docs")), must[[]account.Server](t)(s.Servers(t.Context(), tenant)))
		specs := must[account.Specs](t)(s.Specs(t.Context(), tenant, []string{"docs"}))
		fmt.Fprintf(&shown, "%v %+v %#v", specs, specs, specs)
		bad := d
		bad.ID, bad.Config.BaseURL = "bad id", "ftp://x"
		_, err := s.CreateProvider(t.Context(), tenant, bad)
		fmt.Fprintf(&shown, "%v %+v %#v", err, err, err)
		hunt(t, "what is printed", shown.String(), canaries...)
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		config := storetest.SQLite(t)
		plant(t, storetest.Open(t, config))
		files, err := filepath.Glob(config.Path + "*")
		if err != nil || len(files) < 2 {
			t.Fatalf("files %v, %v", files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			hunt(t, filepath.Base(file), string(data), canaries...)
		}
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := storetest.Open(t, storetest.Postgres(t))
		plant(t, db)
		for _, table := range []string{"providers", "bindings", "mcp_servers"} {
			if err := db.Query(t.Context(), func(row store.Row) error {
				var text string
				err := row.Scan(&text)
				hunt(t, table, text, canaries...)
				return err
			}, "SELECT CAST(x AS TEXT) FROM "+table+" x"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// hunt looks for credentials in the encodings in which they may have got somewhere.
func hunt(t *testing.T, where, text string, canaries ...string) {
	t.Helper()
	for _, c := range canaries {
		b := []byte(c)
		quoted, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{c, string(quoted[1 : len(quoted)-1]), url.QueryEscape(c), url.PathEscape(c), hex.EncodeToString(b), strings.ToUpper(hex.EncodeToString(b)),
			base64.RawStdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b)} {
			if strings.Contains(text, form) {
				t.Errorf("%s holds a credential as %.12q…", where, form)
			}
		}
	}
}
