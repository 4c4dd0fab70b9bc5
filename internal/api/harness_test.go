package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/api"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/builtin"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/mcplender"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/modeltable"
	"github.com/hozo-run/hozo/provider/offline"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const password = "a long enough passphrase"

// world is a server on a real database with its services.
type world struct {
	t        *testing.T
	db       *store.DB
	config   api.Config
	handler  *api.Handler
	server   *httptest.Server
	accounts *account.Service
	access   *access.Service
	runs     *run.Store
	kept     *artifact.Store
	log      *bytes.Buffer
	logMu    *sync.Mutex
	// root is the first administrator of the default tenant.
	root person
}

// person is somebody with a session.
type person struct {
	w       *world
	id      string
	session secret.Value
	csrf    string
	// key is sent in place of the session, if there is one.
	key string
}

// queued takes runs as the orchestrator does, and executes none.
type queued struct{ *run.Store }

func (q queued) Submit(ctx context.Context, request run.Request) (run.Created, error) {
	return q.Create(ctx, request, run.Claim{MaxQueued: 200})
}

func (q queued) Cancel(ctx context.Context, tenant, id, cause string) (run.Run, error) {
	c, err := q.Store.Cancel(ctx, tenant, id, cause)
	return c.Run, err
}

// blobs keeps large outputs in memory.
type blobs struct{ kept sync.Map }

func (b *blobs) Put(_ context.Context, hash string, content io.Reader) error {
	data, err := io.ReadAll(content)
	b.kept.Store(hash, data)
	return err
}

func (b *blobs) Open(_ context.Context, hash string) (io.ReadCloser, error) {
	data, ok := b.kept.Load(hash)
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data.([]byte))), nil
}

// lockedWriter makes a buffer safe for the goroutines of a server.
type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func generous() access.Limits {
	r := access.Rate{Burst: 1_000_000, Every: time.Microsecond}
	return access.Limits{SignInAddress: r, SignInAccount: r, SignInBoth: r, Principal: r, Address: r}
}

func newWorld(t *testing.T, db *store.DB, change ...func(*api.Config, *access.Config)) *world {
	t.Helper()
	ring, err := secret.Load(filepath.Join(t.TempDir(), "keys"))
	must(t, err)
	w := &world{t: t, db: db, log: &bytes.Buffer{}, logMu: &sync.Mutex{}}
	ac := access.Config{DB: db, Keys: ring, Cost: access.Cost{Memory: 64, Time: 1, Threads: 1}, Limits: generous()}
	w.runs = run.New(db, run.Config{Blobs: &blobs{}, Poll: 5 * time.Millisecond})
	t.Cleanup(w.runs.Close)
	w.accounts, err = account.New(account.Config{
		DB: db, Keys: ring, Adapters: map[string]llm.Adapter{scripted.API: scripted.New, job.APIOpenAIChat: openaichat.New}, Models: modeltable.Lookup, Version: "test",
	})
	must(t, err)
	folder, err := artifact.OpenFolder(filepath.Join(t.TempDir(), "blobs"))
	must(t, err)
	w.kept = artifact.New(artifact.Config{DB: db, Blobs: folder})
	projects, err := project.New(project.Config{DB: db, Keys: ring, Directories: []string{"/srv"}})
	must(t, err)
	w.config = api.Config{
		Agents: newAgents(t, db), Projects: projects, Artifacts: w.kept, Accounts: w.accounts, Runs: w.runs, Orchestrator: queued{w.runs}, Log: slog.New(slog.NewTextHandler(lockedWriter{w.logMu, w.log}, nil)),
	}
	for _, f := range change {
		f(&w.config, &ac)
	}
	w.access, err = access.New(ac)
	must(t, err)
	w.config.Access = w.access
	w.handler, err = api.New(w.config)
	must(t, err)
	w.server = httptest.NewUnstartedServer(nil)
	w.server.Config = w.handler.Server()
	w.server.Start()
	t.Cleanup(func() {
		w.handler.Drain()
		w.server.Close()
	})
	w.root = w.firstAdmin(access.DefaultTenant, "root@example.com")
	return w
}

// newAgents returns agents for a runtime with a few tools.
func newAgents(t *testing.T, db *store.DB) *builder.Service {
	t.Helper()
	registry, err := tool.NewRegistry(filetool.Tools()...)
	must(t, err)
	runtime, err := kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New, job.APIOffline: offline.New},
		Models:   func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id}, true },
		Tools:    registry,
		Lenders:  []kernel.Lender{mcplender.New(mcplender.Options{})},
	})
	must(t, err)
	var tools []builder.Tool
	for _, d := range registry.Tools() {
		tools = append(tools, builder.Tool{Name: d.Name, Description: d.Description, Effect: string(d.Effect)})
	}
	set, err := builtin.Load()
	must(t, err)
	agents, err := builder.New(builder.Config{DB: db, BuiltIn: set, Runtime: runtime, Tools: tools})
	must(t, err)
	return agents
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// firstAdmin makes the first administrator of a tenant.
func (w *world) firstAdmin(tenant, email string) person {
	w.t.Helper()
	link, _, err := w.access.FirstAdminLink(w.t.Context(), tenant)
	must(w.t, err)
	session, err := w.access.Redeem(w.t.Context(), access.Redemption{Token: link, Password: secret.New(password), Email: email, Name: "Root"})
	must(w.t, err)
	return w.person(session)
}

func (w *world) person(s *access.NewSession) person {
	return person{w: w, id: s.User.ID, session: s.Token, csrf: s.CSRF}
}

// add makes a user of the default tenant with roles.
func (w *world) add(email string, roles ...access.RoleGrant) person {
	w.t.Helper()
	by, err := w.access.Authenticate(w.t.Context(), w.root.session)
	must(w.t, err)
	if roles == nil {
		roles = []access.RoleGrant{}
	}
	_, link, err := w.access.CreateUser(w.t.Context(), by, access.UserDraft{Email: email, Name: "Somebody", Roles: roles}, access.Origin{})
	must(w.t, err)
	session, err := w.access.Redeem(w.t.Context(), access.Redemption{Token: link, Password: secret.New(password)})
	must(w.t, err)
	return w.person(session)
}

// keyFor makes a key of a person with permissions.
func (p person) withKey(permissions ...access.Permission) person {
	p.w.t.Helper()
	by, err := p.w.access.Authenticate(p.w.t.Context(), p.session)
	must(p.w.t, err)
	_, text, err := p.w.access.CreateKey(p.w.t.Context(), by, access.KeyDraft{Name: "test", Permissions: permissions}, access.Origin{})
	must(p.w.t, err)
	p.key = text.Reveal()
	return p
}

// answer is what came back, read whole.
type answer struct {
	*http.Response
	body []byte
}

// problem returns the error that an answer is.
func (a answer) problem(t testing.TB) wire.Problem {
	t.Helper()
	var p wire.Problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.Header.Get("Content-Type") != wire.ProblemType || p.Status != a.StatusCode {
		t.Fatalf("no problem: %d %s %s", a.StatusCode, a.Header, a.body)
	}
	return p
}

// into decodes the body.
func into[T any](t testing.TB, a answer, status int) T {
	t.Helper()
	var v T
	if a.StatusCode != status {
		t.Fatalf("%d in place of %d: %s", a.StatusCode, status, a.body)
	}
	must(t, json.Unmarshal(a.body, &v))
	return v
}

// request makes a request of nobody; body is sent as it is if it is text, else as JSON.
func (w *world) request(method, path string, body any) *http.Request {
	w.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = bytes.NewReader([]byte(b))
	default:
		text, err := json.Marshal(b)
		must(w.t, err)
		reader = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, reader)
	must(w.t, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	must(w.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(w.t, err)
	return answer{response, body}
}

// sign adds what says who a person is.
func (p person) sign(r *http.Request) *http.Request {
	if p.key != "" {
		r.Header.Set("Authorization", "Bearer "+p.key)
		return r
	}
	r.AddCookie(&http.Cookie{Name: "hozo", Value: p.session.Reveal()})
	r.Header.Set(wire.CSRFHeader, p.csrf)
	return r
}

// do makes a request of a person. Headers are pairs of a name and a value.
func (p person) do(method, path string, body any, headers ...string) answer {
	p.w.t.Helper()
	r := p.sign(p.w.request(method, path, body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return p.w.send(r)
}

// running makes a run of a tenant that this test executes.
func (w *world) running(tenant, project string) (run.Run, *run.Recorder) {
	w.t.Helper()
	made, err := w.runs.Create(w.t.Context(), run.Request{Tenant: tenant, Project: project, Agent: "clerk"}, run.Claim{
		Owner: run.NewOwner("test"), Place: "here", Lease: time.Hour,
	})
	must(w.t, err)
	recorder, err := w.runs.Record(w.t.Context(), *made.Lease)
	must(w.t, err)
	return made.Run, recorder
}

// report stores events; the last one is the number last.
func report(t testing.TB, r *run.Recorder, id string, from, last int64) {
	t.Helper()
	for seq := from; seq <= last; seq++ {
		must(t, r.Event(job.NewEvent(seq, time.UnixMilli(1_700_000_000_000+seq), id, "", &job.NoticeData{Message: "line"})))
	}
}

// finish ends a run.
func finish(t testing.TB, r *run.Recorder) {
	t.Helper()
	_, err := r.Finish(context.Background(), job.Outcome{Completed: &job.CompletedData{Answer: "done", Outputs: []string{}}})
	must(t, err)
}
