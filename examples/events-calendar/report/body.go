package report

import (
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// writer writes the body of a report.
type writer struct{ strings.Builder }

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// markdown takes the meaning from what Markdown and HTML would read into a text of a model or of a page.
var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "#", `\#`)

// line writes a text on one line, as text.
func line(text string) string { return markdown.Replace(strings.Join(strings.Fields(text), " ")) }

// quote writes a text as a quotation, which no text can leave.
func quote(text string) string {
	return "> " + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(text), "<", "&lt;"), "\n", "\n> ") + "\n"
}

func (w *writer) outcome(r run.Run) {
	switch {
	case r.Failure != nil && r.Status == run.Stopped:
		w.printf("The run was **stopped by a limit** (%s): %s\n\n", r.Failure.Reason, line(r.Failure.Message))
	case r.Failure != nil:
		w.printf("The run **%s** (%s, %s): %s\n\n", r.Status, r.Failure.Reason, r.Failure.Code, line(r.Failure.Message))
	default:
		w.printf("The run was **completed**.\n\n")
	}
	if r.Model.Simulated {
		w.printf("The model was a script and no language model.\n\n")
	}
	if strings.TrimSpace(r.Answer) != "" {
		w.printf("%s\n", quote(r.Answer))
	}
}

func (w *writer) events(results []calendar.Result) {
	w.printf("## Events\n\n")
	some := false
	for _, r := range results {
		if r.Outcome == calendar.Invalid {
			continue
		}
		if !some {
			w.printf("| date | event | outcome | status | id |\n|---|---|---|---|---|\n")
			some = true
		}
		w.printf("| %s | %s | %s | %s | %s |\n", r.Date, line(r.Title), r.Outcome, r.Status, r.ID)
	}
	if !some {
		w.printf("The run proposed no valid event.\n")
	}
	w.printf("\n")
}

func (w *writer) refused(results []calendar.Result) {
	some := false
	for _, r := range results {
		if r.Outcome != calendar.Invalid {
			continue
		}
		if !some {
			w.printf("## Refused proposals\n\n")
			some = true
		}
		w.printf("- %s (%s)\n", line(r.Title), line(r.Date))
		for _, p := range r.Problems {
			w.printf("  - `%s` %s\n", p.Pointer, line(p.Message))
		}
	}
	if some {
		w.printf("\n")
	}
}

func (w *writer) coverage(r run.Run) {
	w.printf("## What was missing\n\n")
	if len(r.Degraded) == 0 {
		w.printf("The run had everything that it was meant to have.\n\n")
		return
	}
	for _, d := range r.Degraded {
		w.printf("- %s: %s\n", d.Code, line(d.Message))
	}
	w.printf("\n")
}

func (w *writer) lessons(title, none string, lessons []memory.Lesson) {
	w.printf("## %s\n\n", title)
	if len(lessons) == 0 {
		w.printf("%s\n\n", none)
		return
	}
	for _, l := range lessons {
		w.printf("- %s **%s**: %s\n", l.ID, line(l.Title), line(l.Text))
	}
	w.printf("\n")
}

func (w *writer) steps(steps []run.Step) {
	w.printf("## Steps\n\n")
	if len(steps) == 0 {
		w.printf("The run made no call.\n\n")
		return
	}
	for _, s := range steps {
		indent := ""
		if s.ParentCallID != "" {
			indent = "  "
		}
		objective := ""
		if s.Objective != "" {
			objective = ": " + line(s.Objective)
		}
		w.printf("%s- %d. %s (%s)%s\n", indent, s.N, line(s.Tool), s.Status, objective)
	}
	w.printf("\n")
}

// document embeds the working-memory document as it is. It comes last, since its headings are those of a document.
func (w *writer) document(document string) {
	w.printf("# Working memory\n\n")
	if document == "" {
		w.printf("The run kept no working-memory document.\n")
		return
	}
	w.WriteString(document)
	if !strings.HasSuffix(document, "\n") {
		w.printf("\n")
	}
}
