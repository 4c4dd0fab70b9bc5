package api_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

func TestEveryFaultOfARequestIsInOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)))
	got := w.root.do("POST", "/api/v1/users?colour=red", map[string]any{"email": 7, "roles": []any{map[string]any{"role": 1}}, "extra": true})
	if got.StatusCode != http.StatusBadRequest || got.problem(t).Code != "invalid" {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	got = w.root.do("POST", "/api/v1/users", map[string]any{"email": 7, "roles": []any{map[string]any{"role": 1}}, "extra": true})
	faults := map[string]string{}
	for _, f := range got.problem(t).Errors {
		faults[f.Pointer+" "+f.Code] = f.Detail
	}
	for _, want := range []string{"#/email type", "#/name required", "#/roles/0/role type", "#/roles/0/project required", "#/extra unknown-field"} {
		where, code, _ := strings.Cut(want, " ")
		found := faults[want] != "" || code == "required" && faults[where[:strings.LastIndex(where, "/")]+" required"] != ""
		if !found {
			t.Errorf("%s is not in %s", want, got.body)
		}
	}
	agent := w.root.do("POST", "/api/admin/agents", map[string]any{"files": []map[string]any{{"path": "bad.md", "content": "---\nname: other\ntools: [nothing]\nwhat: 1\n---\n"}}})
	if p := agent.problem(t); agent.StatusCode != http.StatusBadRequest || len(p.Errors) < 4 || p.Errors[0].File != "bad.md" || p.Errors[0].Line == 0 {
		t.Errorf("a package with faults: %s", agent.body)
	}
}

func TestBodiesThatAreNoJSONAreRefusedWithoutAnEcho(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)))
	for name, body := range map[string]string{
		"cut": `{"email": "canary-4711`, "twice": `{"email":"canary-4711","email":"b","name":"n","roles":[]}`, "none": "", "text": "canary-4711",
		"case": `{"Email":"canary-4711","name":"n","roles":[]}`,
	} {
		got := w.root.do("POST", "/api/v1/users", body)
		if got.StatusCode != http.StatusBadRequest || strings.Contains(string(got.body), "canary") {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
		}
	}
	large := w.root.do("POST", "/api/v1/users", `{"email":"`+strings.Repeat("x", 2<<20)+`"}`)
	if large.StatusCode != http.StatusRequestEntityTooLarge || large.problem(t).Code != "too-large" {
		t.Errorf("a large body: %d %s", large.StatusCode, large.body)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)), func(c *api.Config, _ *access.Config) { c.Secure = true })
	for _, path := range []string{"/livez", "/api/v1/session", "/nowhere", "/openapi.json", "/api/v1/%2e%2e/x", "//admin"} {
		r := w.request("GET", path, nil)
		r.Header.Set("X-Request-Id", "mine-1")
		r.Header.Set("Origin", "https://evil.example.com")
		got := w.send(r)
		for name, want := range map[string]string{
			"X-Request-Id": "mine-1", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Strict-Transport-Security": "max-age=31536000", "Access-Control-Allow-Origin": "",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.Header.Get(name))
			}
		}
		if !strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: the policy is %q", path, got.Header.Get("Content-Security-Policy"))
		}
	}
	r := w.request("GET", "/livez", nil)
	r.Header.Set("X-Request-Id", "two words")
	if got := w.send(r).Header.Get("X-Request-Id"); got == "two words" || got == "" {
		t.Errorf("an id that cannot stand in a log became %q", got)
	}
}

func TestPathsAndMethodsThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)))
	for path, status := range map[string]int{
		"/api/v1/nothing": 404, "//api/v1/users": 404, "/api/v1/../v1/users": 404, "/api/v1/%2e%2e/v1/users": 404, "/api/v1/users/": 404, "/debug/pprof": 404,
	} {
		if got := w.root.do("GET", path, nil); got.StatusCode != status || got.problem(t).Code != "not-found" {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
	}
	got := w.root.do("DELETE", "/api/v1/users", nil)
	if got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, POST" {
		t.Errorf("a method that is not there: %d %v", got.StatusCode, got.Header)
	}
}

func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db, func(c *api.Config, _ *access.Config) { c.Secure = true })
		wrong := w.send(w.request("POST", "/api/v1/sign-in", wire.SignIn{Email: "root@example.com", Password: "wrong"}))
		if wrong.StatusCode != http.StatusUnauthorized || wrong.problem(t).Code != "credentials" || wrong.Header.Get("Set-Cookie") != "" {
			t.Errorf("a wrong password: %d %v %s", wrong.StatusCode, wrong.Header, wrong.body)
		}
		in := w.send(w.request("POST", "/api/v1/sign-in", wire.SignIn{Email: "root@example.com", Password: password}))
		session := into[wire.Session](t, in, http.StatusOK)
		cookie := in.Cookies()[0]
		if cookie.Name != "__Host-hozo" || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" {
			t.Errorf("the cookie is %v", cookie)
		}
		if strings.Contains(string(in.body), cookie.Value) || session.CSRF == "" {
			t.Errorf("the answer is %s", in.body)
		}
		out := w.request("POST", "/api/v1/sign-out", nil)
		out.AddCookie(cookie)
		out.Header.Set(wire.CSRFHeader, session.CSRF)
		if got := w.send(out); got.StatusCode != http.StatusNoContent || got.Cookies()[0].MaxAge > 0 || got.Cookies()[0].Value != "" {
			t.Errorf("signing out: %d %v", got.StatusCode, got.Cookies())
		}
		after := w.request("GET", "/api/v1/session", nil)
		after.AddCookie(cookie)
		if got := w.send(after); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("after signing out: %d", got.StatusCode)
		}
	})
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)))
	r := w.request("POST", "/api/v1/sign-in", wire.SignIn{Email: "root@example.com", Password: password})
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := w.send(r); got.StatusCode != http.StatusForbidden || got.problem(t).Code != "cross-origin" {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

func TestChangesOfStaleVersionsAreRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		made := w.root.do("POST", "/api/v1/providers", aProvider("main"))
		if made.StatusCode != http.StatusCreated || made.Header.Get("ETag") != `"1"` || made.Header.Get("Location") != "/api/v1/providers/main" {
			t.Fatalf("%d %v", made.StatusCode, made.Header)
		}
		if strings.Contains(string(made.body), "canary") {
			t.Errorf("the credential came back: %s", made.body)
		}
		first := w.root.do("PUT", "/api/v1/providers/main", aProvider("main"), "If-Match", `"1"`)
		if first.StatusCode != http.StatusOK || first.Header.Get("ETag") != `"2"` {
			t.Errorf("the first change: %d %s", first.StatusCode, first.body)
		}
		for _, tag := range []string{`"1"`, `W/"2"`, "2", `"x"`} {
			if got := w.root.do("PUT", "/api/v1/providers/main", aProvider("main"), "If-Match", tag); got.StatusCode != http.StatusPreconditionFailed || got.problem(t).Code != "stale" {
				t.Errorf("If-Match %s: %d %s", tag, got.StatusCode, got.body)
			}
		}
		if got := w.root.do("DELETE", "/api/v1/providers/main", nil, "If-Match", "*"); got.StatusCode != http.StatusNoContent {
			t.Errorf("any version: %d %s", got.StatusCode, got.body)
		}
	})
}

func TestStartingARunTwice(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		request := map[string]any{"agent": "clerk", "input": map[string]any{"task": "count"}}
		first := w.root.do("POST", "/api/v1/runs", request, "Idempotency-Key", "k1")
		r := into[run.Run](t, first, http.StatusCreated)
		if r.State != run.Queued || first.Header.Get("Location") != "/api/v1/runs/"+r.ID {
			t.Errorf("%v %s", first.Header, first.body)
		}
		if again := into[run.Run](t, w.root.do("POST", "/api/v1/runs", request, "Idempotency-Key", `"k1"`), http.StatusOK); again.ID != r.ID {
			t.Errorf("the same request made %s and %s", r.ID, again.ID)
		}
		other := w.root.do("POST", "/api/v1/runs", map[string]any{"agent": "other"}, "Idempotency-Key", "k1")
		if other.StatusCode != http.StatusConflict || other.problem(t).Code != "idempotency-key-reused" {
			t.Errorf("the key with another request: %d %s", other.StatusCode, other.body)
		}
		somebody := w.add("op@example.com", access.RoleGrant{Role: access.Operator})
		if theirs := into[run.Run](t, somebody.do("POST", "/api/v1/runs", request, "Idempotency-Key", "k1"), http.StatusCreated); theirs.ID == r.ID {
			t.Error("the key of somebody else found the run")
		}
		cancelled := into[run.Run](t, w.root.do("POST", "/api/v1/runs/"+r.ID+"/cancel", nil), http.StatusOK)
		if cancelled.State != run.Cancelled {
			t.Errorf("after cancelling the run is %s", cancelled.State)
		}
	})
}

func TestAFullQueueSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)))
	var last answer
	for range 201 {
		last = w.root.do("POST", "/api/v1/runs", map[string]any{"agent": "clerk"})
	}
	if last.StatusCode != http.StatusTooManyRequests || last.problem(t).Code != "queue-full" || last.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", last.StatusCode, last.Header, last.body)
	}
	var seen []string
	for path := "/api/v1/runs?limit=70"; path != ""; {
		page := into[wire.Page[run.Run]](t, w.root.do("GET", path, nil), http.StatusOK)
		for _, r := range page.Items {
			seen = append(seen, r.ID)
		}
		path = ""
		if page.NextCursor != "" {
			path = "/api/v1/runs?limit=70&cursor=" + page.NextCursor
		}
	}
	for i := 1; i < len(seen); i++ {
		if seen[i] >= seen[i-1] {
			t.Fatalf("run %s comes after %s", seen[i], seen[i-1])
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d runs in the pages", len(seen))
	}
}

func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)), func(c *api.Config, a *access.Config) {
		a.Limits.Address = access.Rate{Burst: 2, Every: time.Hour}
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	ask := func(from string) answer {
		r := w.request("GET", "/api/v1/sign-in", nil)
		r.Header.Set("X-Forwarded-For", "203.0.113.9, "+from)
		return w.send(r)
	}
	ask("192.0.2.1")
	ask("192.0.2.1")
	if got := ask("192.0.2.1"); got.StatusCode != http.StatusTooManyRequests || got.problem(t).Code != "rate-limit" || got.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	if got := ask("192.0.2.2"); got.StatusCode != http.StatusOK {
		t.Errorf("somebody else: %d", got.StatusCode)
	}
	if got := w.send(w.request("GET", "/livez", nil)); got.StatusCode != http.StatusOK {
		t.Errorf("a probe: %d", got.StatusCode)
	}
}

func TestWhatProjectsHide(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		mine, _ := w.running(access.DefaultTenant, "p1")
		hidden, _ := w.running(access.DefaultTenant, "p2")
		viewer := w.add("viewer@example.com", access.RoleGrant{Project: "p1", Role: access.Operator})
		page := into[wire.Page[run.Run]](t, viewer.do("GET", "/api/v1/runs", nil), http.StatusOK)
		if len(page.Items) != 1 || page.Items[0].ID != mine.ID {
			t.Errorf("the list is %v", page.Items)
		}
		for path, status := range map[string]int{
			"/api/v1/runs/" + mine.ID: 200, "/api/v1/runs/" + hidden.ID: 404, "/api/v1/runs/" + hidden.ID + "/events": 404,
			"/api/v1/runs/" + hidden.ID + "/journal": 404, "/api/v1/events?run=" + hidden.ID: 404,
		} {
			if got := viewer.do("GET", path, nil); got.StatusCode != status {
				t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
			}
		}
		if got := viewer.do("POST", "/api/v1/runs", map[string]any{"agent": "a", "project": "p2"}); got.StatusCode != http.StatusNotFound {
			t.Errorf("a run in the project of others: %d %s", got.StatusCode, got.body)
		}
		if got := viewer.do("POST", "/api/v1/runs", map[string]any{"agent": "a", "project": "p1"}); got.StatusCode != http.StatusCreated {
			t.Errorf("a run in their own: %d %s", got.StatusCode, got.body)
		}
	})
}

func TestArtifactsAreInertAndComeInParts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		made, _ := w.running(access.DefaultTenant, "")
		files := w.leave(access.DefaultTenant, "", made.ID)
		page := w.root.do("GET", "/api/v1/artifacts/"+files[0].ID+"/content", nil)
		if page.StatusCode != 200 || string(page.body) != "<script>alert(1)</script>" || !strings.HasPrefix(page.Header.Get("Content-Disposition"), "attachment") ||
			!strings.HasPrefix(page.Header.Get("Content-Security-Policy"), "default-src 'none'") || page.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%d %v %s", page.StatusCode, page.Header, page.body)
		}
		part := w.root.do("GET", "/api/v1/artifacts/"+files[1].ID+"/content", nil, "Range", "bytes=3-5")
		if part.StatusCode != http.StatusPartialContent || string(part.body) != "345" || part.Header.Get("Content-Range") != "bytes 3-5/10" {
			t.Errorf("%d %v %s", part.StatusCode, part.Header, part.body)
		}
		if got := w.root.do("GET", "/api/v1/artifacts/"+files[1].ID+"/content", nil, "Range", "bytes=99-"); got.StatusCode != http.StatusRequestedRangeNotSatisfiable {
			t.Errorf("beyond the end: %d", got.StatusCode)
		}
	})
}

func TestChangesAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		stranger := w.add("stranger@example.com")
		w.root.do("POST", "/api/v1/providers", aProvider("main"))
		stranger.do("DELETE", "/api/v1/providers/main", nil, "If-Match", "*")
		w.root.do("DELETE", "/api/v1/providers/main", nil, "If-Match", `"9"`)
		page := into[wire.Page[access.Entry]](t, w.root.do("GET", "/api/v1/audit?limit=3", nil), http.StatusOK)
		var got []string
		for _, e := range page.Items {
			got = append(got, e.Action+" "+e.Target+" "+string(e.Outcome))
			if e.Address != "127.0.0.1" || e.RequestID == "" || e.Actor == "" {
				text, _ := json.Marshal(e)
				t.Errorf("the entry is %s", text)
			}
		}
		if strings.Join(got, ", ") != "provider.delete main failed, provider.delete main refused, provider.create main done" {
			t.Errorf("the log is %v", got)
		}
	})
}
