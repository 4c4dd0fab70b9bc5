package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
)

// redactingWriter takes the credentials of a job out of what is written, one whole record a call.
type redactingWriter struct {
	to       io.Writer
	redactor *jobproc.Redactor
}

// Write implements io.Writer. It reports the whole record as written: how long it became is nothing to the writer.
func (w redactingWriter) Write(record []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.redactor.Redact(string(record))); err != nil {
		return 0, err
	}
	return len(record), nil
}

// logFor makes standard error the log of a job. Whatever is said there from now on, by this program and by packages that
// log through the standard library, is a record without the job's credentials. Values are redacted before the record
// quotes them, since what is quoted twice is found by nobody.
func (p *program) logFor(spec *job.Spec) {
	redactor := jobproc.NewRedactor(spec)
	p.stderr = redactingWriter{p.stderr, redactor}
	slog.SetDefault(slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Value.Kind() {
			case slog.KindString:
				a.Value = slog.StringValue(redactor.Redact(a.Value.String()))
			case slog.KindAny:
				if a.Key != slog.LevelKey {
					a.Value = slog.StringValue(redactor.Redact(fmt.Sprint(a.Value.Any())))
				}
			}
			return a
		},
	})))
}
