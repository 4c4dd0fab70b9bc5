package calendar

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/problem"
)

// MaxLimit is the longest page of a list.
const MaxLimit = 200

// Filter chooses events. The zero value is every event, 50 at a time.
type Filter struct {
	// From and To bound the days on which an event takes place, both included, as 2006-01-02; empty is no bound.
	From, To string
	Status   Status
	// Text stands in the title, the venue or the description.
	Text string
	// Limit is at most MaxLimit; 0 means 50.
	Limit int
	// Cursor goes on where a page has ended.
	Cursor string
}

// Page is one page of a list; an empty NextCursor is the end.
type Page struct {
	Items      []Event `json:"items"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// List returns the events of a filter by day and time. Every problem of the filter comes in one *problem.Error of kind
// Invalid, with the names of the query parameters as pointers.
func (s *Store) List(ctx context.Context, f Filter) (Page, error) {
	after, err := f.check()
	if err != nil {
		return Page{}, err
	}
	where, args := f.where(after)
	rows, err := s.db.QueryContext(ctx, `SELECT `+columns+` FROM events`+where+` ORDER BY date, start_time, id LIMIT ?`, append(args, f.Limit+1)...)
	if err != nil {
		return Page{}, fmt.Errorf("list events: %w", err)
	}
	defer rows.Close()
	page := Page{Items: []Event{}}
	for rows.Next() {
		e, err := scan(rows)
		if err != nil {
			return Page{}, fmt.Errorf("list events: %w", err)
		}
		page.Items = append(page.Items, e)
	}
	if len(page.Items) > f.Limit {
		page.Items = page.Items[:f.Limit]
		page.NextCursor = cursorAt(page.Items[f.Limit-1])
	}
	return page, rows.Err()
}

func (f *Filter) check() (after []string, err error) {
	var list problem.List
	for _, day := range []struct{ name, text string }{{"from", f.From}, {"to", f.To}} {
		if _, err := time.Parse(dayLayout, day.text); day.text != "" && err != nil {
			list.AddHint("date-invalid", "/"+day.name, "write the day as 2027-03-28", "%q is no day of the calendar", day.text)
		}
	}
	if f.Status != "" && !slices.Contains(Statuses(), f.Status) {
		list.AddHint("status-unknown", "/status", "known: proposed, approved, rejected", "there is no status %q", f.Status)
	}
	if f.Limit == 0 {
		f.Limit = 50
	}
	if f.Limit < 1 || f.Limit > MaxLimit {
		list.Add("limit-invalid", "/limit", "the limit must be between 1 and %d", MaxLimit)
	}
	if f.Cursor != "" {
		text, err := base64.RawURLEncoding.DecodeString(f.Cursor)
		if after = strings.Split(string(text), "\n"); err != nil || len(after) != 3 {
			list.AddHint("cursor-invalid", "/cursor", "use the nextCursor of the page before", "this is no cursor of a list of events")
		}
	}
	return after, list.Err("list events")
}

func (f *Filter) where(after []string) (string, []any) {
	var conditions []string
	var args []any
	add := func(condition string, values ...any) {
		conditions = append(conditions, condition)
		args = append(args, values...)
	}
	if f.From != "" {
		add(`max(date, end_date) >= ?`, f.From)
	}
	if f.To != "" {
		add(`date <= ?`, f.To)
	}
	if f.Status != "" {
		add(`status = ?`, string(f.Status))
	}
	if f.Text != "" {
		add(`instr(lower(title || char(10) || venue || char(10) || description), lower(?)) > 0`, f.Text)
	}
	if after != nil {
		add(`(date, start_time, id) > (?, ?, ?)`, after[0], after[1], after[2])
	}
	if len(conditions) == 0 {
		return "", nil
	}
	return ` WHERE ` + strings.Join(conditions, ` AND `), args
}

func cursorAt(e Event) string {
	return base64.RawURLEncoding.EncodeToString([]byte(e.Date + "\n" + e.StartTime + "\n" + e.ID))
}
