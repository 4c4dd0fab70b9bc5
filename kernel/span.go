package kernel

import (
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/hozo-run/hozo/job"
)

// span measures one piece of a job. Its attributes are counts and names, never content.
type span struct {
	run        *run
	id, parent string
	name       string
	start      time.Time
	attributes map[string]any
}

// spanIDs numbers the spans of a job, so that equal jobs have equal ids.
type spanIDs struct{ last atomic.Int64 }

func (r *run) startSpan(parent *span, name string, attributes map[string]any) *span {
	s := &span{run: r, id: fmt.Sprintf("%016x", r.spans.last.Add(1)), name: name, start: time.Now(), attributes: attributes}
	if parent != nil {
		s.parent = parent.id
	}
	return s
}

// end settles the span and emits it. It is called exactly once, by the goroutine that owns the span.
func (s *span) end(ok bool, more map[string]any) {
	status := job.SpanOK
	if !ok {
		status = job.SpanError
	}
	if s.attributes == nil {
		s.attributes = more
	} else {
		maps.Copy(s.attributes, more)
	}
	if s.attributes == nil {
		s.attributes = map[string]any{}
	}
	s.run.emit(&job.SpanData{ID: s.id, ParentID: s.parent, Name: s.name, StartUnixNano: s.start.UnixNano(),
		DurationMS: milliseconds(time.Since(s.start)), Status: status, Attributes: s.attributes})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
