package llmtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Answer plays the provider's side of one request. The body of the request has been read already.
type Answer func(w http.ResponseWriter, r *http.Request)

// Request is one request as the provider saw it.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Server is a provider on the loopback interface. It gives its answers in the order of the requests; a request beyond
// the last answer fails the test.
type Server struct {
	// URL is the address without a path.
	URL string
	// StreamType is the media type of streams, that of server-sent events if it is empty. It is set before the first
	// request.
	StreamType string

	t        testing.TB
	mu       sync.Mutex
	answers  []Answer
	requests []Request
}

// NewServer starts a server that is closed when the test ends.
func NewServer(t testing.TB, answers ...Answer) *Server {
	t.Helper()
	s := &Server{t: t, answers: answers}
	h := httptest.NewServer(s)
	s.URL = h.URL
	t.Cleanup(h.Close)
	return s
}

// Queue adds answers.
func (s *Server) Queue(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ServeHTTP gives the next answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	var answer Answer
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		s.t.Errorf("reading the request: %v", err)
	case answer == nil:
		s.t.Errorf("a request that no answer is left for")
		w.WriteHeader(http.StatusTeapot)
	default:
		if s.StreamType != "" {
			w.Header().Set("Content-Type", s.StreamType)
		}
		answer(w, r)
	}
}

// Stream answers with a stream of events, each flushed by itself. It ends in good order after the last one.
func Stream(events ...string) Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		begin(w)
		write(w, events)
	}
}

// Reset answers like Stream, but breaks the connection after the last event.
func Reset(events ...string) Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		begin(w)
		write(w, events)
		panic(http.ErrAbortHandler)
	}
}

// Stall answers like Stream, but keeps the connection open until the client has closed it; closed is called then.
func Stall(closed func(), events ...string) Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		begin(w)
		write(w, events)
		<-r.Context().Done()
		closed()
	}
}

// Status answers with a status, one header (none if the name is empty) and a body.
func Status(code int, name, value, body string) Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if name != "" {
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// Page answers with status 200 and a web page, as a proxy's login form does.
func Page() Answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><body>Please sign in</body></html>\n")
	}
}

func begin(w http.ResponseWriter) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
}

func write(w http.ResponseWriter, events []string) {
	flusher := http.NewResponseController(w)
	for _, e := range events {
		if _, err := io.WriteString(w, e); err != nil {
			return
		}
		_ = flusher.Flush()
	}
}
