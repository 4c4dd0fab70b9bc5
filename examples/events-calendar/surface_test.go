package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/hozo-run/hozo/examples/events-calendar/report"
)

func TestARunPutsItsEventsIntoTheCalendarAndReports(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	r := s.run("Events in Porto Velo", "auto")
	if r.Status != "completed" || r.Steps != 6 || len(r.Learned) != 1 || len(r.Degraded) != 0 {
		t.Fatalf("the run ended as %+v", r)
	}
	var events struct {
		Items []struct{ Title, Status, DecidedBy, RunID string }
	}
	s.get("/events?status=approved", &events)
	var titles []string
	for _, e := range events.Items {
		titles = append(titles, e.Title)
		if e.DecidedBy != "agent" || e.RunID != r.RunID {
			t.Errorf("the event is %+v", e)
		}
	}
	if diff := cmp.Diff([]string{"Letters from the Lighthouse", "Winter Market", "Lantern Night"}, titles); diff != "" {
		t.Errorf("approved events (-want +got):\n%s", diff)
	}
	front, text := s.report(r.RunID)
	if front.Counts != (report.Counts{Created: 3, Invalid: 1, Approved: 3}) || *front.Coverage.Percent != 80 || len(front.Prompts) != 4 || front.Memory.Learned[0] != r.Learned[0].ID {
		t.Errorf("the frontmatter is %+v", front)
	}
	document := s.do(http.MethodGet, "/runs/"+r.RunID+"/stm", "", "Accept", "text/markdown").body
	if !strings.HasPrefix(document, "## Objective") || !strings.Contains(text, "\n"+document) {
		t.Errorf("the report does not hold the final document:\n%s\n---\n%s", text, document)
	}
	for _, want := range []string{r.Learned[0].ID, "Cliff Concert", "`/timeZone`", "`/date`", "`/startTime`"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not name %s", want)
		}
	}
}

// report reads the report of a run.
func (s *site) report(id string) (report.Front, string) {
	s.t.Helper()
	r := s.do(http.MethodGet, "/runs/"+id+"/artifact", "")
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/markdown; charset=utf-8" {
		s.t.Fatalf("the report answered with %d %s: %s", r.StatusCode, r.Header.Get("Content-Type"), r.body)
	}
	head, _, ok := strings.Cut(strings.TrimPrefix(r.body, "---\n"), "\n---\n")
	var front report.Front
	if err := yaml.Unmarshal([]byte(head), &front); err != nil || !ok {
		s.t.Fatalf("the frontmatter cannot be read (%v):\n%s", err, r.body)
	}
	return front, r.body
}

func TestASecondRunFindsWhatTheFirstOneLeft(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	first := s.run("Events in Porto Velo", "auto")
	second := s.run("More events in Porto Velo", "auto")
	front, text := s.report(second.RunID)
	if front.Counts != (report.Counts{Unchanged: 3, Invalid: 1, Approved: 3}) {
		t.Errorf("the second run counts %+v", front.Counts)
	}
	if diff := cmp.Diff([]string{first.Learned[0].ID}, front.Memory.Applied); diff != "" {
		t.Errorf("applied lessons (-want +got):\n%s", diff)
	}
	if !strings.Contains(text, "## Lessons applied\n\n- "+first.Learned[0].ID) || len(second.Learned) != 1 || second.Learned[0].ID != first.Learned[0].ID {
		t.Errorf("the lessons are told as %+v in\n%s", second.Learned, text)
	}
}

func TestInModeReviewAPersonDecides(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	s.run("Events in Porto Velo", "review")
	var events struct {
		Items []struct {
			ID, Status string
			Version    int
		}
	}
	s.get("/events", &events)
	if len(events.Items) != 3 {
		t.Fatalf("the calendar has %+v", events.Items)
	}
	for i, e := range events.Items {
		if e.Status != "proposed" {
			t.Errorf("an event of a run in mode review is %s", e.Status)
		}
		verb, want := "approve", "approved"
		if i == 0 {
			verb, want = "reject", "rejected"
		}
		var decided struct{ Status, DecidedBy string }
		s.decode(s.do(http.MethodPost, "/events/"+e.ID+"/"+verb, ""), http.StatusOK, &decided)
		if decided.Status != want || decided.DecidedBy != "person" {
			t.Errorf("%s gave %+v", verb, decided)
		}
	}
	again := s.run("Events in Porto Velo", "auto")
	if front, _ := s.report(again.RunID); front.Counts != (report.Counts{Kept: 3, Invalid: 1, Approved: 2}) {
		t.Errorf("a run after the decisions counts %+v", front.Counts)
	}
}

func TestEverythingButHealthNeedsTheKey(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	for _, route := range []string{"POST /run", "GET /runs", "GET /runs/x", "GET /runs/x/steps", "GET /runs/x/steps/1", "GET /runs/x/stm", "GET /runs/x/stream",
		"POST /runs/x/abort", "GET /runs/x/artifact", "GET /events", "GET /events/x", "PATCH /events/x", "POST /events/x/approve", "POST /events/x/reject",
		"GET /memory", "POST /memory", "GET /memory/search?q=x", "GET /memory/x", "PATCH /memory/x", "DELETE /memory/x", "POST /mcp", "GET /mcp", "GET /nothing"} {
		method, path, _ := strings.Cut(route, " ")
		for name, header := range map[string]string{"none": "", "another": "Bearer key-of-somebody-else-0000", "a part": "Bearer key-of-the-tests", "basic": "Basic " + testKey} {
			r := s.do(method, path, "", "Authorization", header)
			if r.StatusCode != http.StatusUnauthorized || r.Header.Get("WWW-Authenticate") == "" || r.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s with %s key: %d %s", route, name, r.StatusCode, r.body)
			}
		}
		if r := s.do(method, path, ""); r.StatusCode == http.StatusUnauthorized {
			t.Errorf("%s with the key: %s", route, r.body)
		}
	}
	if r := s.do(http.MethodGet, "/healthz", "", "Authorization", ""); r.StatusCode != http.StatusOK {
		t.Errorf("health answered with %d", r.StatusCode)
	}
}

func TestProblemsAreToldAllAtOnce(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	r := s.run("Events in Porto Velo", "review")
	var events struct{ Items []struct{ ID string } }
	s.get("/events", &events)
	event := "/events/" + events.Items[0].ID
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		want               []string
	}{
		"nothing wanted":       {"POST", "/run", `{"input":" ","mode":"fast"}`, nil, 400, []string{"/input missing", "/mode mode-unknown"}},
		"an unknown field":     {"POST", "/run", `{"inputs":"x"}`, nil, 400, []string{"/inputs unknown-field"}},
		"a wrong type":         {"POST", "/run", `{"input":7}`, nil, 400, []string{"/input wrong-type"}},
		"no JSON":              {"POST", "/run", `{`, nil, 400, []string{" json-invalid"}},
		"two objects":          {"POST", "/run", `{"input":"x"} {}`, nil, 400, []string{" json-invalid"}},
		"a form":               {"POST", "/run", `input=x`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, nil},
		"a flood":              {"POST", "/run", `{"input":"` + strings.Repeat("x", 300<<10) + `"}`, nil, 413, nil},
		"a long input":         {"POST", "/run", `{"input":"` + strings.Repeat("x", 40<<10) + `"}`, nil, 400, []string{"/input too-long"}},
		"no run":               {"GET", "/runs/run_x", "", nil, 404, nil},
		"no steps of no run":   {"GET", "/runs/run_x/steps", "", nil, 404, nil},
		"no artifact":          {"GET", "/runs/run_x/artifact", "", nil, 404, nil},
		"no stream of no run":  {"GET", "/runs/run_x/stream", "", nil, 404, nil},
		"an abort of no run":   {"POST", "/runs/run_x/abort", "", nil, 404, nil},
		"an abort too late":    {"POST", "/runs/" + r.RunID + "/abort", "", nil, 409, nil},
		"no step":              {"GET", "/runs/" + r.RunID + "/steps/99", "", nil, 404, nil},
		"a step of no number":  {"GET", "/runs/" + r.RunID + "/steps/one", "", nil, 404, nil},
		"no document":          {"GET", "/runs/" + r.RunID + "/stm?step=99", "", nil, 404, nil},
		"a bad step":           {"GET", "/runs/" + r.RunID + "/stm?step=-1", "", nil, 400, []string{"/step step-invalid"}},
		"another's event":      {"GET", "/runs/" + r.RunID + "/stream", "", []string{"Last-Event-ID", "run_x:3"}, 400, nil},
		"a bad status":         {"GET", "/runs?status=done", "", nil, 400, []string{"/status status-unknown"}},
		"a bad filter":         {"GET", "/events?from=monday&status=new", "", nil, 400, []string{"/from date-invalid", "/status status-unknown"}},
		"a bad limit":          {"GET", "/memory?limit=0", "", nil, 400, []string{"/limit limit-invalid"}},
		"a bad cursor":         {"GET", "/runs?cursor=x", "", nil, 400, []string{"/cursor cursor-invalid"}},
		"no event":             {"GET", "/events/ev_x", "", nil, 404, nil},
		"a change unseen":      {"PATCH", event, `{"title":"x"}`, nil, 428, nil},
		"a change out of date": {"PATCH", event, `{"title":"x"}`, []string{"If-Match", `"9"`}, 412, nil},
		"a bad change": {"PATCH", event, `{"title":"","date":"soon"}`, []string{"If-Match", `"1"`}, 400,
			[]string{"/title missing", "/date date-invalid"}},
		"a bad lesson":       {"POST", "/memory", `{"title":"","text":""}`, nil, 400, []string{"/title missing", "/text missing"}},
		"no lesson":          {"DELETE", "/memory/le_x", "", []string{"If-Match", `"1"`}, 404, nil},
		"no such path":       {"GET", "/run/away", "", nil, 404, nil},
		"another method":     {"DELETE", "/runs", "", nil, 405, nil},
		"a key that is long": {"POST", "/run", `{"input":"x"}`, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.do(c.method, c.path, c.body, c.headers...)
			var p struct {
				Type, Title, Detail string
				Status              int
				Errors              []struct{ Pointer, Code, Detail string }
			}
			if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.Header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("%v: %d %s %s", err, got.StatusCode, got.Header.Get("Content-Type"), got.body)
			}
			var errors []string
			for _, e := range p.Errors {
				errors = append(errors, e.Pointer+" "+e.Code)
			}
			if diff := cmp.Diff(c.want, errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if got.StatusCode != c.status || p.Status != c.status || p.Type == "" || p.Title == "" || p.Detail == "" {
				t.Errorf("status %d: %s", got.StatusCode, got.body)
			}
		})
	}
	if r := s.do(http.MethodDelete, "/runs", ""); r.Header.Get("Allow") != "GET" {
		t.Errorf("Allow is %q", r.Header.Get("Allow"))
	}
}

func TestAnIdempotencyKeyStartsOneRun(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	post := func(body string) reply { return s.do(http.MethodPost, "/run", body, "Idempotency-Key", "monday") }
	var first, second runJSON
	s.decode(post(`{"input":"Events in Porto Velo"}`), http.StatusAccepted, &first)
	s.decode(post(`{"input":"Events in Porto Velo","wait":true}`), http.StatusOK, &second)
	if first.RunID != second.RunID || second.Status != "completed" {
		t.Errorf("the same request made %+v and %+v", first, second)
	}
	if r := post(`{"input":"Other events"}`); r.StatusCode != http.StatusConflict {
		t.Errorf("another request under the key: %d %s", r.StatusCode, r.body)
	}
	var runs struct{ Items []runJSON }
	if s.get("/runs", &runs); len(runs.Items) != 1 {
		t.Errorf("there are %d runs", len(runs.Items))
	}
}

func TestStepsShowWhatEachCallGotAndGave(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	r := s.run("Events in Porto Velo", "auto")
	var steps struct {
		Items []struct {
			N                                             int
			CallID, ParentCallID, Objective, Tool, Status string
			OutputBytes                                   int
			Output                                        string
		}
	}
	s.get("/runs/"+r.RunID+"/steps", &steps)
	var tools []string
	for _, step := range steps.Items {
		tools = append(tools, step.Tool)
		if step.Output != "" {
			t.Errorf("the list holds the output of step %d", step.N)
		}
		if step.Tool != "mcp__search__search" {
			continue
		}
		if step.ParentCallID == "" || step.Objective == "" {
			t.Errorf("the step of a subagent is %+v", step)
		}
		var whole struct{ Output string }
		s.get(fmt.Sprintf("/runs/%s/steps/%d", r.RunID, step.N), &whole)
		if len(whole.Output) != step.OutputBytes || !strings.Contains(whole.Output, "Cliff Concert") {
			t.Errorf("the output of the search is %q", whole.Output)
		}
	}
	want := []string{"query_events", "plan", "finish", "research", "mcp__search__search", "finish", "propose_events", "note_lesson", "finish"}
	if diff := cmp.Diff(want, tools); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	var first, last struct {
		Step           int
		Mode, Document string
	}
	s.get("/runs/"+r.RunID+"/stm?step=1", &first)
	s.get("/runs/"+r.RunID+"/stm", &last)
	if first.Step != 1 || last.Step <= first.Step || first.Mode != "writer" || first.Document == last.Document {
		t.Errorf("documents are %+v and %+v", first, last)
	}
}

func TestAStreamGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	r := s.start("Events in Porto Velo")
	var seen []streamed
	for last := ""; ; last = seen[len(seen)-1].id {
		before := len(seen)
		part := s.stream(r.RunID, last, func(events []streamed) bool { return len(events) >= 7 })
		seen = append(seen, part...)
		if len(part) < 7 || seen[len(seen)-1].kind == "job.completed" {
			break
		}
		if len(seen) == before {
			t.Fatal("the stream gives nothing new")
		}
	}
	for i, e := range seen {
		if e.id != fmt.Sprintf("%s:%d", r.RunID, i+1) {
			t.Fatalf("event %d has the id %s", i, e.id)
		}
	}
	end := seen[len(seen)-1]
	if seen[0].kind != "job.started" || end.kind != "job.completed" {
		t.Errorf("the stream goes from %s to %s", seen[0].kind, end.kind)
	}
	// The last event comes a moment before the end of the run; a stream from there on ends with the run.
	s.do(http.MethodGet, "/runs/"+r.RunID+"/stream", "", "Last-Event-ID", end.id)
	if again := s.do(http.MethodGet, "/runs/"+r.RunID+"/stream", "", "Last-Event-ID", end.id); again.StatusCode != http.StatusNoContent {
		t.Errorf("a reader who has everything is answered with %d", again.StatusCode)
	}
}

func TestPeopleLookAfterEventsAndLessons(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	made := s.do(http.MethodPost, "/memory", `{"title":"Markets","text":"Markets close at dusk."}`)
	path := made.Header.Get("Location")
	if made.StatusCode != http.StatusCreated || made.Header.Get("ETag") != `"1"` || !strings.HasPrefix(path, "/memory/le_") {
		t.Fatalf("a lesson was answered with %d %v", made.StatusCode, made.Header)
	}
	if r := s.do(http.MethodPatch, path, `{"text":"Markets close at noon."}`, "If-Match", `"1"`); r.StatusCode != http.StatusOK || r.Header.Get("ETag") != `"2"` {
		t.Errorf("a change was answered with %d %s", r.StatusCode, r.body)
	}
	var found struct{ Items []struct{ Text string } }
	if s.get("/memory/search?q=noon", &found); len(found.Items) != 1 {
		t.Errorf("the search found %+v", found)
	}
	if r := s.do(http.MethodDelete, path, "", "If-Match", `"2"`); r.StatusCode != http.StatusNoContent {
		t.Errorf("a deletion was answered with %d %s", r.StatusCode, r.body)
	}
	if r := s.do(http.MethodGet, path, ""); r.StatusCode != http.StatusNotFound {
		t.Errorf("a forgotten lesson was answered with %d", r.StatusCode)
	}
	s.run("Events in Porto Velo", "review")
	var events struct{ Items []struct{ ID string } }
	s.get("/events?q=market", &events)
	event := "/events/" + events.Items[0].ID
	r := s.do(http.MethodPatch, event, `{"venue":"Rope Square, north end"}`, "If-Match", s.do(http.MethodGet, event, "").Header.Get("ETag"))
	var changed struct{ Venue, DecidedBy string }
	if s.decode(r, http.StatusOK, &changed); changed.Venue != "Rope Square, north end" || changed.DecidedBy != "person" || r.Header.Get("ETag") != `"2"` {
		t.Errorf("the change gave %+v %v", changed, r.Header)
	}
}
