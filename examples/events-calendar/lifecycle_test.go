package main

import (
	"net/http"
	"strings"
	"testing"
)

// waitFor reads the stream of a run until an event of this kind.
func (s *site) waitFor(id, kind string) {
	s.t.Helper()
	events := s.stream(id, "", func(events []streamed) bool { return len(events) > 0 && events[len(events)-1].kind == kind })
	if len(events) == 0 || events[len(events)-1].kind != kind {
		s.t.Fatalf("the run ended without %s", kind)
	}
}

// ended waits for the end of a run.
func (s *site) ended(id string) runJSON {
	s.t.Helper()
	s.stream(id, "", nil)
	var r runJSON
	s.get("/runs/"+id, &r)
	return r
}

func TestAnAbortEndsARunThatGoesOn(t *testing.T) {
	t.Parallel()
	s := openSite(t, func(s *settings) { s.script = script(t, call("query_events", `{}`), stall()) })
	r := s.start("Events in Porto Velo")
	s.waitFor(r.RunID, "tool.result")
	if r := s.do(http.MethodGet, "/runs/"+r.RunID+"/artifact", ""); r.StatusCode != http.StatusConflict {
		t.Errorf("a report before the end was answered with %d", r.StatusCode)
	}
	if a := s.do(http.MethodPost, "/runs/"+r.RunID+"/abort", ""); a.StatusCode != http.StatusAccepted {
		t.Errorf("the abort was answered with %d %s", a.StatusCode, a.body)
	}
	if got := s.ended(r.RunID); got.Status != "aborted" || got.Failure == nil || got.Failure.Reason != "aborted" || !strings.Contains(got.Failure.Message, "over HTTP") {
		t.Errorf("the run ended as %+v", got)
	}
	if front, text := s.report(r.RunID); front.Status != "aborted" || front.Reason != "aborted" || !strings.Contains(text, "**aborted**") {
		t.Errorf("the report is\n%s", text)
	}
}

func TestARunThatWaitsCanBeAborted(t *testing.T) {
	t.Parallel()
	s := openSite(t, func(s *settings) { s.runs, s.script = 1, script(t, call("query_events", `{}`), stall()) })
	first, second := s.start("first"), s.start("second")
	s.waitFor(first.RunID, "tool.result")
	for _, id := range []string{second.RunID, first.RunID} {
		if a := s.do(http.MethodPost, "/runs/"+id+"/abort", ""); a.StatusCode != http.StatusAccepted {
			t.Errorf("the abort was answered with %d %s", a.StatusCode, a.body)
		}
	}
	if got := s.ended(second.RunID); got.Status != "aborted" || got.Attempt != 0 || got.Steps != 0 {
		t.Errorf("the run that waited ended as %+v", got)
	}
	if front, _ := s.report(second.RunID); front.Status != "aborted" {
		t.Errorf("its report is %+v", front)
	}
}

func TestALimitStopsARunWithAReport(t *testing.T) {
	t.Parallel()
	forever := call("query_events", `{}`).(map[string]any)
	forever["repeat"] = "forever"
	s := openSite(t, func(s *settings) { s.script = script(t, forever) })
	r := s.run("Events in Porto Velo", "auto")
	if r.Status != "stopped" || r.Failure == nil || r.Failure.Reason != "loop" && r.Failure.Reason != "max-turns" {
		t.Fatalf("the run ended as %+v", r)
	}
	if front, text := s.report(r.RunID); front.Status != "stopped" || !strings.Contains(text, "## Coverage & confidence") {
		t.Errorf("the report is\n%s", text)
	}
}

func TestAModelThatFailsFailsTheRun(t *testing.T) {
	t.Parallel()
	s := openSite(t, func(s *settings) {
		s.script = script(t, map[string]any{"text": "x", "error": map[string]any{"class": "auth", "status": 401, "message": "no such key"}})
	})
	r := s.run("Events in Porto Velo", "auto")
	if r.Status != "failed" || r.Failure == nil || r.Failure.Code != "provider-auth" {
		t.Errorf("the run ended as %+v", r)
	}
}

func TestLessonsOfAFailedRunAreNotKept(t *testing.T) {
	t.Parallel()
	s := openSite(t, func(s *settings) {
		s.script = script(t, call("note_lesson", `{"title":"t","text":"x"}`), map[string]any{"text": "x", "error": map[string]any{"class": "auth", "status": 401, "message": "no"}})
	})
	if r := s.run("Events in Porto Velo", "auto"); r.Status != "failed" || len(r.Learned) != 0 {
		t.Errorf("the run ended as %+v", r)
	}
}

func TestTooManyRunsAreTurnedAway(t *testing.T) {
	t.Parallel()
	s := openSite(t, func(s *settings) { s.runs, s.waiting, s.script = 1, 1, script(t, call("query_events", `{}`), stall()) })
	for range 2 {
		s.start("Events in Porto Velo")
	}
	r := s.do(http.MethodPost, "/run", `{"input":"one more"}`)
	if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" {
		t.Errorf("one run too many was answered with %d %s", r.StatusCode, r.body)
	}
}
