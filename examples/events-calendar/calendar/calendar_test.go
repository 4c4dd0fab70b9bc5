package calendar_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/database"
)

// today is the day on which the tests take place.
var today = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

func open(t *testing.T) *calendar.Store {
	t.Helper()
	db, err := database.Open(t.Context(), filepath.Join(t.TempDir(), "events.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := calendar.Open(t.Context(), calendar.Config{DB: db, Now: func() time.Time { return today }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func concert() calendar.Details {
	return calendar.Details{Title: "Spring Concert", Date: "2027-03-20", StartTime: "19:30", TimeZone: "Europe/Lisbon", Venue: "Harbour Hall, Porto Velo",
		SourceURL: "https://harbour-hall.example.com/spring"}
}

func codes(list problem.List) []string {
	var found []string
	for _, p := range list {
		found = append(found, p.Pointer+" "+p.Code)
	}
	return found
}

func TestDetailsAreCheckedAllAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*calendar.Details)
		want   []string
	}{
		"a sound event":              {func(*calendar.Details) {}, nil},
		"an event that goes on":      {func(d *calendar.Details) { d.Date, d.EndDate = "2027-02-25", "2027-03-05" }, nil},
		"an event past midnight":     {func(d *calendar.Details) { d.StartTime, d.EndTime, d.EndDate = "22:00", "02:00", "2027-03-21" }, nil},
		"yesterday, still on a ship": {func(d *calendar.Details) { d.Date, d.TimeZone = "2027-02-28", "Etc/GMT+12" }, nil},
		"nothing at all": {func(d *calendar.Details) { *d = calendar.Details{} },
			[]string{"/title missing", "/venue missing", "/sourceUrl missing", "/timeZone missing", "/date missing"}},
		"everything wrong": {func(d *calendar.Details) {
			*d = calendar.Details{Title: strings.Repeat("x", 201), Date: "2027-02-30", StartTime: "7pm", TimeZone: "Lisbon time", Venue: "a\x00b", SourceURL: "harbour"}
		}, []string{"/title too-long", "/venue text-invalid", "/sourceUrl url-invalid", "/timeZone zone-unknown", "/date date-invalid", "/startTime time-invalid"}},
		"a day that is over":           {func(d *calendar.Details) { d.Date = "2027-02-26" }, []string{"/date date-past"}},
		"last year's date":             {func(d *calendar.Details) { d.Date = "2026-03-20" }, []string{"/date date-past"}},
		"a day too far ahead":          {func(d *calendar.Details) { d.Date = "2029-06-01" }, []string{"/date date-far"}},
		"an end before the start":      {func(d *calendar.Details) { d.EndDate = "2027-03-19" }, []string{"/endDate end-before-start"}},
		"an end time before the start": {func(d *calendar.Details) { d.EndTime = "19:30" }, []string{"/endTime end-before-start"}},
		"an end time alone":            {func(d *calendar.Details) { d.StartTime, d.EndTime = "", "21:00" }, []string{"/startTime missing"}},
		"an exhibition of a year":      {func(d *calendar.Details) { d.EndDate = "2028-03-19" }, []string{"/endDate too-long"}},
		"a time that the clocks skip":  {func(d *calendar.Details) { d.Date, d.StartTime = "2027-03-28", "01:30" }, []string{"/startTime time-skipped"}},
		"an hour of one digit":         {func(d *calendar.Details) { d.StartTime = "9:30" }, []string{"/startTime time-invalid"}},
		"the zone of the machine":      {func(d *calendar.Details) { d.TimeZone = "Local" }, []string{"/timeZone zone-unknown"}},
		"a zone that climbs":           {func(d *calendar.Details) { d.TimeZone = "../UTC" }, []string{"/timeZone zone-unknown"}},
		"a script as source":           {func(d *calendar.Details) { d.SourceURL = "javascript:alert(1)" }, []string{"/sourceUrl url-invalid"}},
		"a source with a password":     {func(d *calendar.Details) { d.SourceURL = "https://a:b@example.com/" }, []string{"/sourceUrl url-invalid"}},
		"a source on this machine":     {func(d *calendar.Details) { d.SourceURL = "http://127.0.0.1/e" }, []string{"/sourceUrl url-invalid"}},
		"a source in the office":       {func(d *calendar.Details) { d.SourceURL = "http://wiki.internal/e" }, []string{"/sourceUrl url-invalid"}},
		"a title of two lines":         {func(d *calendar.Details) { d.Title = "Spring\nConcert" }, []string{"/title text-invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := concert()
			c.change(&d)
			if diff := cmp.Diff(c.want, codes(d.Check(today))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneEventHasOneID(t *testing.T) {
	t.Parallel()
	d := concert()
	same := d
	same.Title, same.Venue, same.StartTime, same.Description, same.SourceURL = "  SPRING concert! ", "Harbour Hall — Porto Velo", "20:00", "with wine", "https://other.example.com/"
	if d.ID() != same.ID() {
		t.Error("another spelling of an event has another id")
	}
	for name, change := range map[string]func(*calendar.Details){
		"title": func(d *calendar.Details) { d.Title = "Spring Concerts" },
		"date":  func(d *calendar.Details) { d.Date = "2027-03-21" },
		"venue": func(d *calendar.Details) { d.Venue = "Town Library" },
	} {
		other := concert()
		change(&other)
		if other.ID() == d.ID() {
			t.Errorf("an event with another %s has the same id", name)
		}
	}
}

// propose proposes one event and returns what became of it.
func propose(t *testing.T, s *calendar.Store, runID string, approve bool, d calendar.Details) calendar.Result {
	t.Helper()
	results, err := s.Propose(t.Context(), calendar.Proposal{RunID: runID, CallID: "1.0", Approve: approve, Events: []calendar.Details{d}})
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}

func TestProposingTwiceIsProposingOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := propose(t, s, "run_a", true, concert())
	second := propose(t, s, "run_a", true, concert())
	if first.Outcome != calendar.Created || second.Outcome != calendar.Unchanged || first.ID != second.ID {
		t.Errorf("first %+v, second %+v", first, second)
	}
	page, err := s.List(t.Context(), calendar.Filter{})
	if err != nil || len(page.Items) != 1 || page.Items[0].Version != 1 {
		t.Errorf("the calendar has %+v (%v)", page.Items, err)
	}
	results, err := s.Proposals(t.Context(), "run_a")
	if err != nil || len(results) != 1 || results[0].Outcome != calendar.Unchanged {
		t.Errorf("a call that is made again left %+v (%v)", results, err)
	}
}

func TestParallelProposalsOfOneEventMakeOneEvent(t *testing.T) {
	t.Parallel()
	s := open(t)
	var group sync.WaitGroup
	outcomes := make([]calendar.Outcome, 8)
	for i := range outcomes {
		group.Go(func() {
			results, err := s.Propose(t.Context(), calendar.Proposal{RunID: "run_a", CallID: string(rune('a' + i)), Events: []calendar.Details{concert()}})
			if err != nil {
				t.Error(err)
				return
			}
			outcomes[i] = results[0].Outcome
		})
	}
	group.Wait()
	created := 0
	for _, o := range outcomes {
		if o == calendar.Created {
			created++
		}
	}
	if created != 1 {
		t.Errorf("%d proposals created the event: %v", created, outcomes)
	}
}

func TestOnlyModeAutoApproves(t *testing.T) {
	t.Parallel()
	later := concert()
	later.StartTime = "20:00"
	for name, c := range map[string]struct {
		first, second bool
		want          calendar.Status
		by            calendar.Decider
	}{
		"review, then review": {false, false, calendar.Proposed, ""},
		"review, then auto":   {false, true, calendar.Approved, calendar.ByAgent},
		"auto, then auto":     {true, true, calendar.Approved, calendar.ByAgent},
		"auto, then review":   {true, false, calendar.Proposed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			propose(t, s, "run_a", c.first, concert())
			r := propose(t, s, "run_b", c.second, later)
			e, err := s.Find(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if r.Outcome != calendar.Updated || e.Status != c.want || e.DecidedBy != c.by || e.StartTime != "20:00" || e.RunID != "run_b" || e.Version != 2 {
				t.Errorf("result %+v, event %+v", r, e)
			}
		})
	}
}

func TestNoRunChangesWhatAPersonDecided(t *testing.T) {
	t.Parallel()
	title := "Spring Concert (moved)"
	for name, decide := range map[string]func(*calendar.Store, calendar.Event) (calendar.Event, error){
		"approved": func(s *calendar.Store, e calendar.Event) (calendar.Event, error) {
			return s.Decide(t.Context(), e.ID, calendar.Approved)
		},
		"rejected": func(s *calendar.Store, e calendar.Event) (calendar.Event, error) {
			return s.Decide(t.Context(), e.ID, calendar.Rejected)
		},
		"changed": func(s *calendar.Store, e calendar.Event) (calendar.Event, error) {
			return s.Change(t.Context(), e.ID, e.Version, calendar.Update{Title: &title})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			first := propose(t, s, "run_a", false, concert())
			before, err := s.Find(t.Context(), first.ID)
			if err != nil {
				t.Fatal(err)
			}
			decided, err := decide(s, before)
			if err != nil || decided.DecidedBy != calendar.ByPerson {
				t.Fatalf("decided %+v (%v)", decided, err)
			}
			other := concert()
			other.StartTime = "21:00"
			if r := propose(t, s, "run_b", true, other); r.Outcome != calendar.Kept || r.Status != decided.Status {
				t.Errorf("the proposal ended as %+v", r)
			}
			renamed := decided.Details
			if r := propose(t, s, "run_c", true, renamed); r.Outcome != calendar.Kept || r.ID != first.ID {
				t.Errorf("the proposal of what the person made of it ended as %+v", r)
			}
			after, err := s.Find(t.Context(), first.ID)
			if diff := cmp.Diff(decided, after); err != nil || diff != "" {
				t.Errorf("the event was changed (%v):\n%s", err, diff)
			}
		})
	}
}

func TestAPersonChangesOnlyWhatHeHasSeen(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := propose(t, s, "run_a", false, concert())
	venue, bad := "Town Library", "soon"
	if _, err := s.Change(t.Context(), r.ID, 7, calendar.Update{Venue: &venue}); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a stale change gave %v", err)
	}
	if _, err := s.Change(t.Context(), r.ID, 1, calendar.Update{Date: &bad, TimeZone: &bad}); len(problem.Of(err)) != 2 {
		t.Errorf("two problems gave %v", err)
	}
	if _, err := s.Change(t.Context(), "ev_none", 1, calendar.Update{}); problem.KindOf(err) != problem.NotFound {
		t.Errorf("an unknown event gave %v", err)
	}
	e, err := s.Change(t.Context(), r.ID, 1, calendar.Update{Venue: &venue})
	if err != nil || e.Version != 2 || e.Venue != venue || e.Title != "Spring Concert" {
		t.Errorf("the change gave %+v (%v)", e, err)
	}
}

func TestListsFilterAndPage(t *testing.T) {
	t.Parallel()
	s := open(t)
	for day, title := range map[string]string{"2027-03-10": "First", "2027-03-12": "Second", "2027-03-14": "Third", "2027-03-16": "Fourth"} {
		d := concert()
		d.Date, d.Title = day, title
		if title == "First" {
			d.EndDate = "2027-03-13"
		}
		propose(t, s, "run_a", title == "Second", d)
	}
	for name, c := range map[string]struct {
		filter calendar.Filter
		want   []string
	}{
		"everything":           {calendar.Filter{}, []string{"First", "Second", "Third", "Fourth"}},
		"days, with what runs": {calendar.Filter{From: "2027-03-13", To: "2027-03-14"}, []string{"First", "Third"}},
		"a status":             {calendar.Filter{Status: calendar.Approved}, []string{"Second"}},
		"a text":               {calendar.Filter{Text: "fOUR"}, []string{"Fourth"}},
		"a text as text":       {calendar.Filter{Text: "%"}, nil},
		"pages of one":         {calendar.Filter{Limit: 1}, []string{"First", "Second", "Third", "Fourth"}},
		"pages of three":       {calendar.Filter{Limit: 3}, []string{"First", "Second", "Third", "Fourth"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for filter := c.filter; ; {
				page, err := s.List(t.Context(), filter)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Items {
					got = append(got, e.Title)
				}
				if page.NextCursor == "" {
					break
				}
				filter.Cursor = page.NextCursor
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	_, err := s.List(t.Context(), calendar.Filter{From: "monday", To: "x", Status: "wild", Limit: -1, Cursor: "?"})
	if len(problem.Of(err)) != 5 {
		t.Errorf("five wrong parameters gave %v", err)
	}
}
