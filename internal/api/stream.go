package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/run"
)

// reconnectMS is what readers are told to wait before they come back.
const reconnectMS = 1000

// maxBatch is how many bytes of events are written at once, if so many are there.
const maxBatch = 64 << 10

// Resume is the part of a request that says which events the reader has. A browser that comes back by itself sends the
// header with the URL of the beginning, so the header goes first.
type Resume struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"4096" doc:"The id of the last event that the reader got."`
	After       string `query:"after" maxLength:"4096" doc:"The same, for readers that cannot set the header."`
}

func (r Resume) id() string {
	if r.LastEventID != "" {
		return r.LastEventID
	}
	return r.After
}

func (h *Handler) events() {
	const tag = "events"
	route(h, tag, "follow-run", "GET /api/v1/runs/{id}/events", "The events of a run as they come; 204 if it has ended and the reader has them all", h.followRun,
		content(wire.EventsType, "Server-sent events: id is the number of the event, event its type, data the event."))
	route(h, tag, "follow-runs", "GET /api/v1/events", "The events of several runs as they come; 204 if all have ended and the reader has them all", h.followRuns,
		content(wire.EventsType, "Server-sent events: data is {run, event}; id says how far the stream is in every run, in the order of the request."))
}

func (h *Handler) followRun(ctx context.Context, in *struct {
	ByID
	Resume
}) (*huma.StreamResponse, error) {
	after, err := seqOf(ctx, in.id())
	if err != nil {
		return nil, err
	}
	over, err := h.position(ctx, in.ID, after)
	if err != nil {
		return nil, err
	}
	if over {
		return nobodyHome(), nil
	}
	tenant := tenantOf(ctx)
	return h.stream(func(ctx context.Context, send func([]byte) bool) error {
		for e, err := range h.config.Runs.Follow(ctx, tenant, in.ID, after) {
			if err != nil {
				return err
			}
			if !send(eventText(strconv.FormatInt(e.Seq, 10), string(e.Type), e.Line)) {
				return nil
			}
		}
		return nil
	}), nil
}

// seqOf reads the number of an event, 0 for none.
func seqOf(ctx context.Context, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, invalid(ctx, "", "event-id", "the id of the last event is not one of this stream")
	}
	return n, nil
}

// position checks that a reader may follow a run from an event on, and reports whether there is nothing to come. An event
// that the run has not had yet is not found: the reader means another run.
func (h *Handler) position(ctx context.Context, id string, after int64) (over bool, err error) {
	r, err := h.run(ctx, id, access.RunsRead)
	if err != nil || after == 0 {
		return false, err
	}
	last, err := h.config.Runs.Events(ctx, tenantOf(ctx), r.ID, after-1, 1)
	if err != nil {
		return false, err
	}
	if len(last) == 0 || last[0].Seq != after {
		return false, missing(ctx)
	}
	return last[0].Type.Terminal(), nil
}

// nobodyHome tells a reader not to come back: there is nothing more to come.
func nobodyHome() *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) { c.SetStatus(http.StatusNoContent) }}
}

// eventText is an event on the wire. A line is JSON and has no line's end in it.
func eventText(id, kind string, line []byte) []byte {
	return fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", id, kind, line)
}

func (h *Handler) followRuns(ctx context.Context, in *struct {
	Resume
	Run []string `query:"run,explode" required:"true" minItems:"1" maxItems:"100" doc:"The runs to follow."`
}) (*huma.StreamResponse, error) {
	m, err := h.merge(ctx, in.Run, in.id())
	if err != nil {
		return nil, err
	}
	if len(m.open) == 0 {
		return nobodyHome(), nil
	}
	return h.stream(m.follow), nil
}

// merged is a stream of several runs.
type merged struct {
	runs   *run.Store
	tenant string
	ids    []string
	// at is how far the stream is in each run; open are those that have more to come.
	at   []int64
	open []int
}

// merge reads the place of a reader in several runs: numbers with dots between them, in the order of the runs.
func (h *Handler) merge(ctx context.Context, ids []string, from string) (*merged, error) {
	m := &merged{runs: h.config.Runs, tenant: tenantOf(ctx), ids: ids, at: make([]int64, len(ids))}
	parts := make([]string, len(ids))
	if from != "" {
		parts = strings.Split(from, ".")
	}
	if len(parts) != len(ids) {
		return nil, invalid(ctx, "", "event-id", "the id of the last event is not one of a stream of these runs")
	}
	for i, id := range ids {
		after, err := seqOf(ctx, parts[i])
		if err != nil {
			return nil, err
		}
		over, err := h.position(ctx, id, after)
		if err != nil {
			return nil, err
		}
		m.at[i] = after
		if !over {
			m.open = append(m.open, i)
		}
	}
	return m, nil
}

// numbered is an event of one of several runs.
type numbered struct {
	run   int
	event run.Event
	err   error
	end   bool
}

// follow reads every run by a goroutine of its own and sends what comes first.
func (m *merged) follow(ctx context.Context, send func([]byte) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan numbered)
	for _, i := range m.open {
		go m.read(ctx, i, m.runs.Follow(ctx, m.tenant, m.ids[i], m.at[i]), events)
	}
	for left := len(m.open); left > 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n := <-events:
			switch {
			case n.err != nil:
				return n.err
			case n.end:
				left--
			default:
				m.at[n.run] = n.event.Seq
				line := fmt.Appendf(nil, `{"run":%q,"event":%s}`, m.ids[n.run], n.event.Line)
				if !send(eventText(m.id(), string(n.event.Type), line)) {
					return nil
				}
			}
		}
	}
	return nil
}

func (m *merged) read(ctx context.Context, i int, follow iter.Seq2[run.Event, error], to chan<- numbered) {
	pass := func(n numbered) bool {
		select {
		case to <- n:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for e, err := range follow {
		if !pass(numbered{run: i, event: e, err: err}) || err != nil {
			return
		}
	}
	pass(numbered{run: i, end: true})
}

// id is the place of the stream.
func (m *merged) id() string {
	var b []byte
	for i, seq := range m.at {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendInt(b, seq, 10)
	}
	return string(b)
}

// stream makes the answer of a route that streams. follow sends texts until there are no more to come, or until send
// returns false. A reader that takes nothing for a while is cut off; nobody waits for it.
func (h *Handler) stream(follow func(ctx context.Context, send func([]byte) bool) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		h.streams.Add(1)
		defer h.streams.Add(-1)
		c.SetHeader("Content-Type", wire.EventsType)
		c.SetHeader("X-Accel-Buffering", "no")
		c.SetStatus(http.StatusOK)
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		texts := make(chan []byte, 64)
		go func() {
			defer close(texts)
			err := follow(ctx, func(text []byte) bool {
				select {
				case texts <- text:
					return true
				case <-ctx.Done():
					return false
				}
			})
			if err != nil && ctx.Err() == nil {
				h.config.Log.WarnContext(ctx, "a stream of events failed", "requestId", requestID(ctx), "error", err)
			}
		}()
		h.pump(h.slowWriter(c), texts)
	}}
}

// pump writes texts as they come, several at once if they are there, and a comment when none has come for a while.
func (h *Handler) pump(w *slowWriter, texts <-chan []byte) {
	_ = w.control.SetReadDeadline(time.Time{}) // the body is read; a deadline would end the stream
	ping := time.NewTicker(h.config.Ping)
	defer ping.Stop()
	next := fmt.Appendf(nil, "retry: %d\n\n", reconnectMS)
	for {
		if err := w.flush(next); err != nil {
			return // the reader is gone, or too slow; it comes back where it was
		}
		select {
		case text, more := <-texts:
			if !more {
				return
			}
			next = gather(text, texts)
			ping.Reset(h.config.Ping)
		case <-ping.C:
			next = []byte(": ping\n\n")
		case <-h.drained:
			return
		}
	}
}

// gather takes what is there without waiting.
func gather(first []byte, texts <-chan []byte) []byte {
	all := first
	for len(all) < maxBatch {
		select {
		case text, more := <-texts:
			if !more {
				return all
			}
			all = append(all, text...)
		default:
			return all
		}
	}
	return all
}

// slowWriter writes to a reader that may take as long as it likes, if it takes something now and then.
type slowWriter struct {
	w       http.ResponseWriter
	request *http.Request
	control *http.ResponseController
	timeout time.Duration
}

func (h *Handler) slowWriter(c huma.Context) *slowWriter {
	r, w := humago.Unwrap(c)
	return &slowWriter{w: w, request: r, control: http.NewResponseController(w), timeout: h.config.WriteTimeout}
}

// Write implements io.Writer.
func (s *slowWriter) Write(p []byte) (int, error) {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return s.w.Write(p)
}

func (s *slowWriter) flush(p []byte) error {
	if _, err := s.Write(p); err != nil {
		return err
	}
	return s.control.Flush()
}
