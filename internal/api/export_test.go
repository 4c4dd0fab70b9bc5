package api

import "github.com/hozo-run/hozo/internal/access"

// Row is a row of the table of rules.
type Row struct {
	Open, Session bool
	Needs         access.Permission
}

// Rules returns the table for tests that walk it.
func Rules() map[string]Row {
	rows := map[string]Row{}
	for name, r := range rules() {
		rows[name] = Row{r.open, r.session, r.needs}
	}
	return rows
}
