package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/client"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/problem"
)

// client returns a client with a key of a person.
func (p person) client(permissions ...access.Permission) *client.Client {
	p.w.t.Helper()
	c, err := client.New(client.Config{URL: p.w.server.URL, Key: p.withKey(permissions...).key, Wait: time.Millisecond})
	must(p.w.t, err)
	return c
}

func draftOf(name, body string) wire.AgentDraft {
	return wire.AgentDraft{Files: []wire.File{{Path: name + ".md", Content: "---\nname: " + name + "\ndescription: Does something.\n---\n" + body + "\n"}}}
}

// code is the stable name of an error from the server.
func code(err error) string {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestTheLifeOfAnAgent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		c := newWorld(t, db).root.client(access.AgentsManage, access.AgentsRead)
		saved, err := c.CreateAgent(ctx, draftOf("clerk", "One."))
		must(t, err)
		if saved.Version != 1 {
			t.Errorf("the first version is %d", saved.Version)
		}
		if _, err := c.CreateAgent(ctx, draftOf("clerk", "Again.")); code(err) != "exists" || problem.KindOf(err) != problem.Conflict {
			t.Errorf("a name that is taken: %v", err)
		}
		second, err := c.SaveAgent(ctx, "clerk", client.IfMatch(saved.Revision), draftOf("clerk", "Two."))
		must(t, err)
		if _, err := c.SaveAgent(ctx, "clerk", client.IfMatch(saved.Revision), draftOf("clerk", "Lost.")); code(err) != "stale" {
			t.Errorf("a draft of an older version: %v", err)
		}
		restored, err := c.RestoreAgent(ctx, "clerk", 1, client.IfMatch(second.Revision))
		must(t, err)
		detail, err := c.Agent(ctx, "clerk")
		must(t, err)
		if detail.Version != 1 || len(detail.Files) != 1 || detail.Instructions != "One.\n" {
			t.Errorf("after restoring it is %+v", detail)
		}
		switched, err := c.SwitchAgent(ctx, "clerk", client.IfMatch(restored.Revision), false)
		must(t, err)
		versions, err := c.AgentVersions(ctx, "clerk")
		must(t, err)
		if len(versions) != 2 {
			t.Errorf("switching made a version: %v", versions)
		}
		definition, err := c.AgentDefinition(ctx, "clerk", 2)
		must(t, err)
		if definition.Version != 2 || definition.Definition == nil || definition.Prompt == nil || definition.Digest == "" {
			t.Errorf("the definition is %+v", definition)
		}
		if _, err := c.CopyAgent(ctx, "clerk", wire.AgentCopy{Name: "writer"}); err != nil {
			t.Errorf("copy: %v", err)
		}
		must(t, c.DeleteAgent(ctx, "clerk", client.IfMatch(switched.Revision)))
		if _, err := c.Agent(ctx, "clerk"); problem.KindOf(err) != problem.NotFound {
			t.Errorf("after deleting: %v", err)
		}
		again, err := c.CreateAgent(ctx, draftOf("clerk", "Three."))
		must(t, err)
		if again.Version != 3 {
			t.Errorf("the version of the new one is %d", again.Version)
		}
	})
}

func TestWhatTheReleaseBringsStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		c := newWorld(t, db).root.client(access.AgentsManage, access.AgentsRead)
		agents, err := c.Agents(ctx)
		must(t, err)
		name := agents[0].Name
		if !agents[0].BuiltIn {
			t.Fatalf("the first agent is %+v", agents[0])
		}
		if _, err := c.SaveAgent(ctx, name, client.Any, draftOf(name, "Mine.")); code(err) != "built-in" {
			t.Errorf("save: %v", err)
		}
		if err := c.DeleteAgent(ctx, name, client.Any); code(err) != "built-in" {
			t.Errorf("delete: %v", err)
		}
		if around, err := c.AgentContext(ctx); err != nil || len(around.Reserved) == 0 || len(around.Tools) == 0 {
			t.Errorf("the context is %+v, %v", around, err)
		}
	})
}

func TestAnArchiveComesBackAsItWent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		c := newWorld(t, db).root.client(access.AgentsManage, access.AgentsRead)
		_, err := c.CreateAgent(ctx, draftOf("clerk", "One."))
		must(t, err)
		read := func() []byte {
			body, err := c.ExportAgent(ctx, "clerk", 0, "")
			must(t, err)
			defer body.Close()
			data, err := io.ReadAll(body)
			must(t, err)
			return data
		}
		first := read()
		must(t, c.DeleteAgent(ctx, "clerk", client.Any))
		if _, err := c.ImportAgents(ctx, wire.AgentImport{Archive: first}); err != nil {
			t.Fatal(err)
		}
		if len(read()) == 0 {
			t.Error("the second archive is empty")
		}
		if _, err := c.ImportAgents(ctx, wire.AgentImport{Archive: []byte("no archive")}); problem.KindOf(err) != problem.Invalid || len(problem.Of(err)) == 0 {
			t.Errorf("no archive: %v", err)
		}
	})
}

func TestASkillInUseStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		c := newWorld(t, db).root.client(access.AgentsManage, access.AgentsRead)
		_, err := c.CreateSkill(ctx, "count", aSkill("count"))
		must(t, err)
		draft := draftOf("clerk", "One.")
		draft.Files[0].Content = "---\nname: clerk\ndescription: Does something.\nskills: [count]\n---\nCount.\n"
		_, err = c.CreateAgent(ctx, draft)
		must(t, err)
		err = c.DeleteSkill(ctx, "count", client.Any)
		if found := problem.Of(err); code(err) != "in-use" || len(found) != 1 || found[0].Message != "clerk" {
			t.Errorf("delete: %v", err)
		}
		must(t, c.DeleteAgent(ctx, "clerk", client.Any))
		must(t, c.DeleteSkill(ctx, "count", client.Any))
	})
}

func TestPreviewsKeepNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		c := newWorld(t, db).root.client(access.AgentsRead)
		preview, err := c.PreviewAgent(ctx, wire.PreviewRequest{Files: draftOf("clerk", "One.").Files})
		must(t, err)
		if preview.Definition == nil || preview.Prompt == nil || preview.Prompt.Tokens == 0 {
			t.Errorf("the preview is %+v", preview)
		}
		if _, err := c.Agent(ctx, "clerk"); problem.KindOf(err) != problem.NotFound {
			t.Errorf("after the preview: %v", err)
		}
	})
}

func TestListsAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)))
	c := w.root.client(access.RunsStart, access.RunsRead)
	for range 120 {
		_, err := c.StartRun(t.Context(), wire.RunRequest{Agent: "clerk"}, "")
		must(t, err)
	}
	seen := map[string]bool{}
	for r, err := range client.All(t.Context(), func(ctx context.Context, o client.PageOptions) (wire.Page[run.Run], error) {
		return c.Runs(ctx, client.RunFilter{States: []run.State{run.Queued, run.Running}}, o)
	}) {
		must(t, err)
		seen[r.ID] = true
	}
	if len(seen) != 120 {
		t.Errorf("%d runs", len(seen))
	}
}

// TestAStartIsRepeatedWithItsKey loses the answer to a start: the repetition finds the run.
func TestAStartIsRepeatedWithItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)))
	lossy := &losing{}
	c, err := client.New(client.Config{
		URL: w.server.URL, Key: w.root.withKey(access.RunsStart, access.RunsRead).key, Wait: time.Millisecond, HTTP: &http.Client{Transport: lossy},
	})
	must(t, err)
	_, err = c.StartRun(t.Context(), wire.RunRequest{Agent: "clerk"}, "")
	must(t, err)
	page, err := c.Runs(t.Context(), client.RunFilter{}, client.PageOptions{})
	must(t, err)
	if len(page.Items) != 1 || lossy.lost != 1 {
		t.Errorf("%d runs after %d lost answers", len(page.Items), lossy.lost)
	}
}

// losing loses the first answer.
type losing struct{ lost int }

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.lost == 0 {
		l.lost++
		return nil, errors.Join(errors.New("the answer got lost"), response.Body.Close())
	}
	return response, err
}
