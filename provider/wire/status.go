package wire

import (
	"strings"
	"time"
)

// details are what services of Google add to an error besides its text (google.rpc.Status). A rate that was exceeded for
// a moment reads there like a plan that is used up; only the details tell the two apart.
type details struct {
	// retryDelay is the wait that is asked for, 0 if none.
	retryDelay time.Duration
	// reason is the cause in one word.
	reason string
	// spent says that a quota was exceeded that is filled up once a day, whatever wait is asked for.
	spent bool
}

// invalidKey is the reason of a refused key, which comes with status 400.
const invalidKey = "API_KEY_INVALID"

// read takes the details that are next in l; what is no list of them says nothing.
func (d *details) read(l *Lexer) {
	if !l.Array() {
		return
	}
	for l.Elem() {
		for key := range l.Members() {
			switch string(key) {
			case "retryDelay":
				wait, _ := seconds(strings.TrimSuffix(Unquote(l.String()), "s"))
				d.retryDelay = max(d.retryDelay, wait)
			case "reason":
				d.reason = Cut(Unquote(l.String()))
			case "violations":
				d.readViolations(l)
			default:
				l.Skip()
			}
		}
	}
}

func (d *details) readViolations(l *Lexer) {
	if !l.Array() {
		return
	}
	for l.Elem() {
		for key := range l.Members() {
			if string(key) == "quotaId" {
				d.spent = d.spent || strings.Contains(string(l.String()), "PerDay")
				continue
			}
			l.Skip()
		}
	}
}
