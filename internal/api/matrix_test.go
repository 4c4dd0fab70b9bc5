package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

// operation is a route of the OpenAPI document.
type operation struct {
	method, path string
	id           string
	parameters   map[string]bool
	open         bool
	body         bool
}

// operations reads every route from the document, so that none can be left out.
func operations(t *testing.T) []operation {
	t.Helper()
	text, err := api.OpenAPI()
	must(t, err)
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string                      `json:"operationId"`
			Parameters  []struct{ Name, In string } `json:"parameters"`
			Security    *[]map[string][]string      `json:"security"`
			RequestBody json.RawMessage             `json:"requestBody"`
		} `json:"paths"`
	}
	must(t, json.Unmarshal(text, &document))
	var all []operation
	for path, methods := range document.Paths {
		for method, op := range methods {
			o := operation{method: strings.ToUpper(method), path: path, id: op.OperationID, parameters: map[string]bool{}, body: op.RequestBody != nil}
			for _, p := range op.Parameters {
				o.parameters[p.In+" "+p.Name] = true
			}
			o.open = op.Security == nil || len(*op.Security) == 0
			all = append(all, o)
		}
	}
	if len(all) < 40 {
		t.Fatalf("only %d routes", len(all))
	}
	return all
}

// filled is the path of an operation with values for its parameters.
func (o operation) filled() string {
	path := o.path
	for _, name := range []string{"id", "name", "agent", "session"} {
		path = strings.ReplaceAll(path, "{"+name+"}", "nowhere")
	}
	return strings.NewReplacer("{n}", "1", "{version}", "1").Replace(path)
}

func TestEveryRouteHasOneRow(t *testing.T) {
	t.Parallel()
	rows := api.Rules()
	for _, o := range operations(t) {
		name := o.method + " " + o.path
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s has no row in rules", name)
			continue
		}
		delete(rows, name)
		if row.Open != o.open {
			t.Errorf("%s: the table says open %t, the document %t", name, row.Open, o.open)
		}
	}
	for name := range rows {
		t.Errorf("%s has a row in rules and is no route", name)
	}
}

func TestEveryChangeNamesAVersion(t *testing.T) {
	t.Parallel()
	for _, o := range operations(t) {
		if o.method != http.MethodPut && o.method != http.MethodPatch && o.method != http.MethodDelete {
			continue
		}
		if !o.parameters["header If-Match"] {
			t.Errorf("%s %s has no If-Match", o.method, o.path)
		}
	}
}

func TestPermissionMatrix(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		stranger := w.add("stranger@example.com")
		rows := api.Rules()
		for _, o := range operations(t) {
			name := o.method + " " + o.path
			row := rows[name]
			if row.Open {
				continue
			}
			t.Run(name, func(t *testing.T) {
				nobody := w.send(w.request(o.method, o.filled(), nil))
				if p := nobody.problem(t); nobody.StatusCode != http.StatusUnauthorized || p.Code != "unauthenticated" {
					t.Errorf("nobody: %d %s", nobody.StatusCode, nobody.body)
				}
				forged := w.request(o.method, o.filled(), nil)
				forged.Header.Set("Authorization", "Bearer "+access.KeyPrefix+"forged")
				if got := w.send(forged).StatusCode; got != http.StatusUnauthorized {
					t.Errorf("a forged key: %d", got)
				}
				if row.Needs == "" {
					return
				}
				var others []access.Permission
				for _, p := range access.Permissions() {
					if p != row.Needs {
						others = append(others, p)
					}
				}
				if got := w.root.withKey(others...).do(o.method, o.filled(), nil); got.StatusCode != http.StatusForbidden {
					t.Errorf("a key with every other permission: %d %s", got.StatusCode, got.body)
				}
				if got := stranger.do(o.method, o.filled(), nil); !row.Session && got.StatusCode != http.StatusForbidden {
					t.Errorf("a person without roles: %d %s", got.StatusCode, got.body)
				}
				right := w.root.withKey(row.Needs).do(o.method, o.filled(), nil, "If-Match", "*")
				if right.StatusCode == http.StatusUnauthorized || right.StatusCode == http.StatusForbidden && o.id != "start-run" {
					t.Errorf("the right permission: %d %s", right.StatusCode, right.body)
				}
				if right.StatusCode >= http.StatusInternalServerError {
					t.Errorf("the right permission: %d %s", right.StatusCode, right.body)
				}
			})
		}
	})
}

func TestChangesNeedTheTokenOfTheSession(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		forger := w.root
		forger.csrf = "guessed"
		for _, o := range operations(t) {
			if o.open || o.method == http.MethodGet {
				continue
			}
			got := forger.do(o.method, o.filled(), nil, "If-Match", "*")
			if got.StatusCode != http.StatusForbidden || got.problem(t).Code != "csrf" {
				t.Errorf("%s %s: %d %s", o.method, o.path, got.StatusCode, got.body)
			}
		}
	})
}

func TestChangesWithoutAVersionAreRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		for _, o := range operations(t) {
			if !o.parameters["header If-Match"] || o.method == http.MethodPost {
				continue
			}
			got := w.root.do(o.method, o.filled(), nil)
			if got.StatusCode != http.StatusPreconditionRequired {
				t.Errorf("%s %s: %d %s", o.method, o.path, got.StatusCode, got.body)
			}
		}
	})
}

// TestForeignAndMissingThingsAnswerAlike asks for the things of another tenant, in its words, and for things that nobody
// has.
func TestForeignAndMissingThingsAnswerAlike(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		other := w.firstAdmin("other", "root@other.example.com")
		theirs := w.foreignThings(other)
		for _, o := range operations(t) {
			kind := theirs.idFor(o.path)
			if o.open || kind == "" {
				continue
			}
			foreign, missing := strings.NewReplacer("{id}", kind, "{name}", kind, "{agent}", kind, "{session}", theirs.session, "{n}", "1", "{version}", "1").Replace(o.path), o.filled()
			body := theirs.bodyFor(o.id)
			if o.parameters["query model"] {
				foreign, missing = foreign+"?model=m", missing+"?model=m"
			}
			a, b := w.root.do(o.method, foreign, body, "If-Match", "*"), w.root.do(o.method, missing, body, "If-Match", "*")
			pa, pb := a.problem(t), b.problem(t)
			if a.StatusCode != http.StatusNotFound || a.StatusCode != b.StatusCode || pa.Code != pb.Code || pa.Detail != pb.Detail {
				t.Errorf("%s %s: foreign %d %s, missing %d %s", o.method, o.path, a.StatusCode, a.body, b.StatusCode, b.body)
			}
		}
	})
}

// things are ids of another tenant.
type things struct{ user, key, session, provider, server, run, agent, skill, project, artifact string }

func (w *world) foreignThings(other person) things {
	w.t.Helper()
	provider := into[struct{ ID string }](w.t, other.do("POST", "/api/v1/providers", aProvider("theirs")), http.StatusCreated)
	server := into[struct{ Name string }](w.t, other.do("POST", "/api/v1/mcp-servers", map[string]any{"name": "theirs", "url": "https://mcp.example.com"}), http.StatusCreated)
	key := into[wire.NewKey](w.t, other.do("POST", "/api/v1/keys", access.KeyDraft{Name: "k", Permissions: []access.Permission{access.RunsRead}}), http.StatusCreated)
	sessions := into[wire.Page[access.Session]](w.t, other.do("GET", "/api/v1/sessions", nil), http.StatusOK)
	made, recorder := w.running("other", "")
	report(w.t, recorder, made.ID, 1, 3)
	finish(w.t, recorder)
	into[struct{}](w.t, other.do("POST", "/api/admin/agents", anAgent("theirs")), http.StatusCreated)
	into[struct{}](w.t, other.do("POST", "/api/admin/agent-skills", map[string]any{"name": "theirs", "file": aSkill("theirs")}), http.StatusCreated)
	project := into[struct{ ID string }](w.t, other.do("POST", "/api/v1/projects", map[string]any{"name": "Theirs", "settings": map[string]any{}}), http.StatusCreated)
	into[struct{}](w.t, other.do("PUT", "/api/v1/projects/"+project.ID+"/sources/theirs", aSource(), "If-None-Match", "*"), http.StatusOK)
	return things{agent: "theirs", skill: "theirs", project: project.ID, artifact: w.leave("other", "", made.ID)[0].ID, user: other.id, key: key.Key.ID, session: sessions.Items[0].ID, provider: provider.ID, server: server.Name, run: made.ID}
}

func (t things) idFor(path string) string {
	for prefix, id := range map[string]string{
		"/api/v1/users/{id}": t.user, "/api/v1/keys/{id}": t.key, "/api/v1/sessions/{session}": t.session,
		"/api/v1/providers/{id}": t.provider, "/api/v1/mcp-servers/{name}": t.server, "/api/v1/runs/{id}": t.run,
		"/api/admin/agents/{name}": t.agent, "/api/admin/agent-skills/{name}": t.skill, "/api/v1/projects/{id}": t.project, "/api/v1/artifacts/{id}": t.artifact,
	} {
		if strings.HasPrefix(path, prefix) {
			return id
		}
	}
	return ""
}

// bodyFor is a body that fits the operation.
func (t things) bodyFor(id string) any {
	switch id {
	case "update-user":
		return map[string]any{"name": "Mine"}
	case "update-provider":
		return aProvider("theirs")
	case "update-mcp-server":
		return map[string]any{"name": "theirs", "url": "https://mcp.example.com"}
	case "test-provider":
		return map[string]any{"model": "m"}
	case "accept-mcp-tools":
		return map[string]any{"hashes": map[string]string{"a": "b"}}
	case "save-agent":
		return anAgent("theirs")
	case "switch-agent":
		return map[string]any{"enabled": true}
	case "copy-agent":
		return map[string]any{"name": "mine"}
	case "save-skill":
		return map[string]any{"file": aSkill("theirs")}
	case "update-project":
		return map[string]any{"name": "Mine", "settings": map[string]any{}}
	case "put-source":
		return aSource()
	case "decide":
		return map[string]any{"decisions": []map[string]any{{"waitId": "w", "hash": "h", "verdict": "approve"}}}
	}
	return nil
}

// anAgent is a draft of an agent, aSkill the file of a skill, aSource a source of a project.
func anAgent(name string) map[string]any {
	text := "---\nname: " + name + "\ndescription: Does something.\n---\nDo it.\n"
	return map[string]any{"files": []map[string]any{{"path": name + ".md", "content": text}}}
}

func aSkill(name string) string {
	return "---\nname: " + name + "\ndescription: Says how.\n---\nLike this.\n"
}

func aSource() map[string]any {
	return map[string]any{"kind": "git", "location": "https://git.example.com/code.git", "credential": "token-canary-4712"}
}

// leave keeps two files as what a run left.
func (w *world) leave(tenant, project, id string) []artifact.Artifact {
	w.t.Helper()
	dir := w.t.TempDir()
	must(w.t, os.WriteFile(filepath.Join(dir, "page.html"), []byte("<script>alert(1)</script>"), 0o600))
	must(w.t, os.WriteFile(filepath.Join(dir, "report.txt"), []byte("0123456789"), 0o600))
	_, err := w.kept.Keep(w.t.Context(), artifact.Outputs{Tenant: tenant, Project: project, Run: id, Dir: dir})
	must(w.t, err)
	found, err := w.kept.OfRun(w.t.Context(), tenant, id, "", 10)
	must(w.t, err)
	return found
}

// aProvider is an account that needs no network.
func aProvider(id string) map[string]any {
	return map[string]any{"id": id, "name": "Account", "config": map[string]any{
		"api": "openai-chat", "baseUrl": "https://llm.example.com/v1", "apiKey": "sk-canary-4711",
	}}
}
