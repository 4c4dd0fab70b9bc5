// Package calendar keeps events that take place somewhere at some time. It is the domain of the example: what an event
// must have before anybody sees it, when two events are the same one, who may decide about it, and the two tools through
// which an agent reaches all that. Nothing in here knows of models or of HTTP.
package calendar

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
)

// Status is how far an event has come.
type Status string

// The closed set of statuses.
const (
	// Proposed events wait for a person.
	Proposed Status = "proposed"
	// Approved events are in the calendar.
	Approved Status = "approved"
	// Rejected events are kept, so that they are not proposed again.
	Rejected Status = "rejected"
)

// Statuses returns all three.
func Statuses() []Status { return []Status{Proposed, Approved, Rejected} }

// Decider says whose word the status of an event is.
type Decider string

// The closed set of deciders.
const (
	// ByAgent is a run in mode auto.
	ByAgent Decider = "agent"
	// ByPerson is somebody who approved, rejected or changed the event. No run changes such an event again.
	ByPerson Decider = "person"
)

// Details is what is said about an event.
type Details struct {
	Title string `json:"title"`
	// Date is the first day, as 2006-01-02.
	Date string `json:"date"`
	// EndDate is the last day; empty means that the event has one day.
	EndDate string `json:"endDate,omitempty"`
	// StartTime and EndTime are times of the day in TimeZone, as 15:04. EndTime is on EndDate, or on Date.
	StartTime string `json:"startTime,omitempty"`
	EndTime   string `json:"endTime,omitempty"`
	// TimeZone is a name of the IANA time zone database, such as Europe/Lisbon.
	TimeZone string `json:"timeZone"`
	Venue    string `json:"venue"`
	// SourceURL is the page that says so.
	SourceURL   string `json:"sourceUrl"`
	Description string `json:"description,omitempty"`
}

// Event is an event of the calendar.
type Event struct {
	ID string `json:"id"`
	Details
	Status    Status  `json:"status"`
	DecidedBy Decider `json:"decidedBy,omitempty"`
	// RunID is the run that wrote the details last; empty if a person did.
	RunID string `json:"runId,omitempty"`
	// Version counts the changes from 1. It is the ETag of the event.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// trimmed returns the details without blanks around the texts.
func (d Details) trimmed() Details {
	for _, field := range []*string{&d.Title, &d.Date, &d.EndDate, &d.StartTime, &d.EndTime, &d.TimeZone, &d.Venue, &d.SourceURL, &d.Description} {
		*field = strings.TrimSpace(*field)
	}
	return d
}

// ID returns the id of the event. It is made of what makes the event this one and no other: title, first day and venue,
// whatever their case, spaces and punctuation. Two sources that tell of one event differ in time, zone and wording of the
// description, so these do not count.
func (d Details) ID() string {
	sum := sha256.Sum256([]byte(fold(d.Title) + "\n" + d.Date + "\n" + fold(d.Venue)))
	return "ev_" + hex.EncodeToString(sum[:10])
}

// fold returns the letters and digits of a text in lower case, with one space between words.
func fold(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
	return strings.Join(words, " ")
}
