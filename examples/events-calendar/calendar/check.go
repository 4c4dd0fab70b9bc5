package calendar

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
	_ "time/tzdata" // zones are checked on machines that have no zone files, too
	"unicode"
	"unicode/utf8"

	"github.com/hozo-run/hozo/problem"
)

// Bounds of the texts, in characters, and of the dates, in days from today.
const (
	maxTitle       = 200
	maxVenue       = 200
	maxDescription = 2000
	maxURL         = 2048
	maxAhead       = 2 * 366
	maxLength      = 92
)

const (
	dayLayout  = "2006-01-02"
	timeLayout = "15:04"
)

// Check returns everything that is wrong with the details, with JSON Pointers into them. now decides what is past: an
// event may be proposed as long as its last day is not over everywhere on earth.
func (d Details) Check(now time.Time) problem.List {
	var list problem.List
	checkText(&list, "/title", d.Title, maxTitle, true)
	checkText(&list, "/venue", d.Venue, maxVenue, true)
	checkText(&list, "/description", d.Description, maxDescription, false)
	checkURL(&list, d.SourceURL)
	zone := checkZone(&list, d.TimeZone)
	d.checkDays(&list, now)
	d.checkTimes(&list, zone)
	return list
}

func checkText(list *problem.List, pointer, text string, most int, required bool) {
	name := strings.TrimPrefix(pointer, "/")
	control := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && (required || r != '\n' && r != '\t') })
	switch {
	case text == "" && required:
		list.Add("missing", pointer, "the %s is missing", name)
	case !utf8.ValidString(text) || control:
		list.Add("text-invalid", pointer, "the %s must be text without control characters", name)
	case utf8.RuneCountInString(text) > most:
		list.Add("too-long", pointer, "the %s has %d characters; at most %d are allowed", name, utf8.RuneCountInString(text), most)
	}
}

// checkURL demands the address of a page that a reader can open: an absolute one on a host with a public name.
func checkURL(list *problem.List, text string) {
	const pointer = "/sourceUrl"
	if text == "" {
		list.AddHint("missing", pointer, "give the page that announces the event", "the source is missing")
		return
	}
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		list.Add("too-long", pointer, "the source has %d characters; at most %d are allowed", len(text), maxURL)
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		list.AddHint("url-invalid", pointer, "write the whole address, such as https://example.org/events/7", "the source %q is no web address", text)
	case u.User != nil:
		list.Add("url-invalid", pointer, "the source must not hold a user name or password")
	case !publicHost(u.Hostname()):
		list.Add("url-invalid", pointer, "the source is on %q, which is no public host", u.Hostname())
	}
}

func publicHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.IsGlobalUnicast() && !address.IsPrivate()
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(name, ".") {
		return false
	}
	for _, local := range []string{".local", ".internal", ".localhost", ".invalid"} {
		if strings.HasSuffix(name, local) {
			return false
		}
	}
	return true
}

func checkZone(list *problem.List, name string) *time.Location {
	const pointer = "/timeZone"
	const hint = "use a name of the IANA database, such as Europe/Lisbon"
	if name == "" {
		list.AddHint("missing", pointer, hint, "the time zone is missing")
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		list.AddHint("zone-unknown", pointer, hint, "the time zone %q is not known", name)
		return nil
	}
	return zone
}

func (d Details) checkDays(list *problem.List, now time.Time) {
	first, ok := checkDay(list, "/date", d.Date, true)
	if !ok {
		return
	}
	last := first
	if d.EndDate != "" {
		if last, ok = checkDay(list, "/endDate", d.EndDate, false); !ok {
			return
		}
	}
	// Midnight of the last day comes 12 hours late in the westernmost zone, after the 24 hours of the day itself.
	today := now.UTC()
	switch {
	case last.Before(first):
		list.Add("end-before-start", "/endDate", "the last day %s is before the first day %s", d.EndDate, d.Date)
	case last.Add(36 * time.Hour).Before(today):
		list.Add("date-past", "/date", "the event is over: its last day was %s", last.Format(dayLayout))
	case first.After(today.AddDate(0, 0, maxAhead)):
		list.Add("date-far", "/date", "the date %s is more than two years ahead", d.Date)
	case last.Sub(first) > maxLength*24*time.Hour:
		list.AddHint("too-long", "/endDate", "propose the opening as one event", "an event of more than %d days is no date", maxLength)
	}
}

func checkDay(list *problem.List, pointer, text string, required bool) (time.Time, bool) {
	name := strings.TrimPrefix(pointer, "/")
	if text == "" {
		if required {
			list.Add("missing", pointer, "the %s is missing", name)
		}
		return time.Time{}, false
	}
	day, err := time.Parse(dayLayout, text)
	if err != nil {
		list.AddHint("date-invalid", pointer, "write the day as 2027-03-28", "%s %q is no day of the calendar", name, text)
		return time.Time{}, false
	}
	return day, true
}

func (d Details) checkTimes(list *problem.List, zone *time.Location) {
	start, okStart := checkTime(list, "/startTime", d.StartTime, d.Date, zone)
	lastDay := d.EndDate
	if lastDay == "" {
		lastDay = d.Date
	}
	end, okEnd := checkTime(list, "/endTime", d.EndTime, lastDay, zone)
	switch {
	case d.EndTime != "" && d.StartTime == "":
		list.Add("missing", "/startTime", "an event with an endTime needs a startTime")
	case okStart && okEnd && !end.After(start):
		list.AddHint("end-before-start", "/endTime", "an event that ends after midnight needs an endDate", "the end %s is not after the start %s", d.EndTime, d.StartTime)
	}
}

// checkTime checks a time of the day. It reports false where there is none, or none that can be compared.
func checkTime(list *problem.List, pointer, text, day string, zone *time.Location) (time.Time, bool) {
	if text == "" {
		return time.Time{}, false
	}
	if _, err := time.Parse(timeLayout, text); err != nil || len(text) != len(timeLayout) {
		list.AddHint("time-invalid", pointer, "write the time as 19:30", "%s %q is no time of the day", strings.TrimPrefix(pointer, "/"), text)
		return time.Time{}, false
	}
	if _, err := time.Parse(dayLayout, day); err != nil || zone == nil {
		return time.Time{}, false // the day or the zone has been reported
	}
	at, err := time.ParseInLocation(dayLayout+" "+timeLayout, day+" "+text, zone)
	if err != nil || at.Format(timeLayout) != text {
		list.Add("time-skipped", pointer, "%s", fmt.Sprintf("there is no %s on %s in %s: the clocks go forward over it", text, day, zone))
		return time.Time{}, false
	}
	return at, true
}
