package memory_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
)

func open(t *testing.T) *memory.Store {
	t.Helper()
	db, err := database.Open(t.Context(), filepath.Join(t.TempDir(), "events.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := memory.Open(t.Context(), memory.Config{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func learn(t *testing.T, s *memory.Store, drafts ...memory.Draft) []memory.Lesson {
	t.Helper()
	lessons, err := s.Learn(t.Context(), "run_a", drafts)
	if err != nil {
		t.Fatal(err)
	}
	return lessons
}

func titles(lessons []memory.Lesson) []string {
	var all []string
	for _, l := range lessons {
		all = append(all, l.Title)
	}
	return all
}

func TestRecallFindsWhatFitsTheTask(t *testing.T) {
	t.Parallel()
	s := open(t)
	learn(t, s,
		memory.Draft{Title: "The library lists readings late", Text: "Its diary is complete a week before."},
		memory.Draft{Title: "Concerts", Text: "The harbour hall announces concerts in its programme. The café does not."},
		memory.Draft{Title: "Markets", Text: "Markets close at dusk."})
	for name, c := range map[string]struct {
		task  string
		limit int
		want  []string
	}{
		"a word of the text":       {"Find something at dusk", 5, []string{"Markets"}},
		"a word without its mark":  {"cafe", 5, []string{"Concerts"}},
		"a title before a text":    {"complete markets", 5, []string{"Markets", "The library lists readings late"}},
		"the best only":            {"markets close", 1, []string{"Markets"}},
		"nothing fits":             {"Quantum", 5, nil},
		"an operator is a word":    {`" OR title:* NEAR( AND NOT`, 5, []string{"Concerts"}},
		"no words":                 {"?!", 5, nil},
		"more words than are read": {strings.Repeat("wort ", 5000) + "dusk", 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := s.Recall(t.Context(), c.task, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, titles(found)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLearningTwiceIsLearningOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := learn(t, s, memory.Draft{Title: "Markets", Text: "Markets close at dusk."})
	second := learn(t, s, memory.Draft{Title: "markets", Text: "Markets  close at dusk."}, memory.Draft{Title: "New", Text: "One more."})
	if second[0].ID != first[0].ID || second[1].ID == first[0].ID || second[1].RunID != "run_a" {
		t.Errorf("first %+v, second %+v", first, second)
	}
	page, err := s.List(t.Context(), 10, "")
	if err != nil || len(page.Items) != 2 {
		t.Errorf("the memory has %v (%v)", titles(page.Items), err)
	}
}

func TestABadDraftKeepsNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, err := s.Learn(t.Context(), "run_a", []memory.Draft{{Title: "Good", Text: "Good."}, {Title: strings.Repeat("x", 121), Text: ""}})
	if len(problem.Of(err)) != 2 {
		t.Errorf("two problems gave %v", err)
	}
	if page, err := s.List(t.Context(), 10, ""); err != nil || len(page.Items) != 0 {
		t.Errorf("the memory has %v (%v)", titles(page.Items), err)
	}
}

func TestPeopleChangeAndForgetWhatTheyHaveSeen(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := learn(t, s, memory.Draft{Title: "Markets", Text: "Markets close at dusk."}, memory.Draft{Title: "Other", Text: "Other."})
	text, same := "Markets close at noon.", "Other."
	if _, err := s.Change(t.Context(), l[0].ID, 2, memory.Update{Text: &text}); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a stale change gave %v", err)
	}
	title := "Other"
	if _, err := s.Change(t.Context(), l[0].ID, 1, memory.Update{Title: &title, Text: &same}); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a lesson that there is already gave %v", err)
	}
	changed, err := s.Change(t.Context(), l[0].ID, 1, memory.Update{Text: &text})
	if err != nil || changed.Version != 2 {
		t.Fatalf("the change gave %+v (%v)", changed, err)
	}
	for word, want := range map[string]int{"noon": 1, "dusk": 0} {
		if found, err := s.Search(t.Context(), word, 5); err != nil || len(found) != want {
			t.Errorf("%q finds %v (%v)", word, titles(found), err)
		}
	}
	if err := s.Delete(t.Context(), l[0].ID, 1); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a stale deletion gave %v", err)
	}
	if err := s.Delete(t.Context(), l[0].ID, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(t.Context(), l[0].ID); problem.KindOf(err) != problem.NotFound {
		t.Errorf("a forgotten lesson gave %v", err)
	}
	if found, err := s.Search(t.Context(), "noon", 5); err != nil || len(found) != 0 {
		t.Errorf("a forgotten lesson is found: %v (%v)", titles(found), err)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, title := range []string{"a", "b", "c"} {
		learn(t, s, memory.Draft{Title: title, Text: title})
	}
	seen := map[string]bool{}
	cursor := ""
	for {
		page, err := s.List(t.Context(), 1, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, title := range titles(page.Items) {
			seen[title] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != 3 {
		t.Errorf("pages of one show %v", seen)
	}
	if _, err := s.List(t.Context(), 1, "???"); problem.KindOf(err) != problem.Invalid {
		t.Errorf("a bad cursor gave %v", err)
	}
}

func TestNotesAreBoundedAndKeyed(t *testing.T) {
	t.Parallel()
	var n memory.Notebook
	for i := range memory.MaxNotes {
		if err := n.Note(string(rune('a'+i)), memory.Draft{Title: "x", Text: "y"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Note("again", memory.Draft{}); err == nil {
		t.Error("a run noted more than it may")
	}
	if err := n.Note("a", memory.Draft{Title: "new", Text: "y"}); err != nil {
		t.Errorf("a call that is made again gave %v", err)
	}
	if drafts := n.Drafts(); len(drafts) != memory.MaxNotes || drafts[0].Title != "new" {
		t.Errorf("the notebook has %+v", drafts)
	}
}
