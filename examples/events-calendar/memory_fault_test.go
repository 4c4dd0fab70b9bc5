package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
)

func TestAMemoryThatFailsDegradesARun(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := openSite(t, func(s *settings) { s.data = data })
	db, err := database.Open(t.Context(), filepath.Join(data, "events.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `DROP TABLE lessons_text`); err != nil {
		t.Fatal(err)
	}
	r := s.run("Events in Porto Velo", "auto")
	if r.Status != "completed" || len(r.Degraded) != 2 || len(r.Learned) != 0 {
		t.Fatalf("the run ended as %+v", r)
	}
	for _, d := range r.Degraded {
		if d.Code != "memory-unavailable" || strings.Contains(d.Message, "lessons_text") {
			t.Errorf("the run tells %+v", d)
		}
	}
	if front, text := s.report(r.RunID); front.Counts.Created != 3 || strings.Count(text, "- memory-unavailable: ") != 2 {
		t.Errorf("the report is\n%s", text)
	}
}
