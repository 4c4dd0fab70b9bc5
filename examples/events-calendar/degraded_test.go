package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fault is a search server that cannot be used, and how the run tells of it.
type fault struct {
	url string
	// reason begins the message about it.
	reason []string
	// handled counts the requests that reached a handler, nil if that is not the point.
	handled *atomic.Int64
}

// answering serves a handler until the end of the test.
func answering(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL + "/mcp"
}

// refused returns an address at which nobody listens.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://%s/mcp", l.Addr())
}

// selfSigned returns a server whose certificate nobody vouches for, and how many requests it got to read.
func selfSigned(t *testing.T) (string, *atomic.Int64) {
	t.Helper()
	handled := &atomic.Int64{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled.Add(1) }))
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL + "/mcp", handled
}

// hanging returns a server that takes requests and never answers.
func hanging(t *testing.T) string {
	t.Helper()
	release := make(chan struct{})
	url := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) }) // before the server is closed, which waits for its requests
	return url
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func TestARunWithoutItsSearchServerIsDegradedAndCompleted(t *testing.T) {
	t.Parallel()
	tlsURL, handled := selfSigned(t)
	for name, f := range map[string]fault{
		// A resolver may also leave a name that does not exist without an answer.
		"a name that does not exist": {url: "http://search.invalid/mcp", reason: []string{"dns:", "timeout:"}},
		"nobody listens":             {url: refused(t), reason: []string{"refused:"}},
		"a self-signed certificate":  {url: tlsURL, reason: []string{"tls:"}, handled: handled},
		"a key that is refused":      {url: answering(t, status(401, `{}`)), reason: []string{"auth:"}},
		"a key that may not":         {url: answering(t, status(403, `{}`)), reason: []string{"auth:"}},
		"a broken server":            {url: answering(t, status(500, `oops`)), reason: []string{"status:"}},
		"no answer":                  {url: hanging(t), reason: []string{"timeout:"}},
		"bad JSON":                   {url: answering(t, status(200, `{"jsonrpc":`)), reason: []string{"protocol:", "connection:"}},
		"another protocol":           {url: answering(t, status(200, `<html>sign in</html>`)), reason: []string{"protocol:", "connection:"}},
		"a redirect":                 {url: answering(t, http.RedirectHandler("http://elsewhere.invalid/", http.StatusFound).ServeHTTP), reason: []string{"redirect:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, func(s *settings) {
				s.search, s.private, s.searchAuthorization = f.url, true, "Bearer canary-of-the-search-key"
			})
			r := s.run("Events in Porto Velo", "auto")
			if r.Status != "completed" || !strings.Contains(r.Answer, "No event was found") || len(r.Degraded) != 1 {
				t.Fatalf("the run ended as %+v", r)
			}
			told := r.Degraded[0]
			if told.Code != "mcp-unavailable" || !containsAny(told.Message, f.reason) {
				t.Errorf("the run tells %+v, not %v", told, f.reason)
			}
			front, text := s.report(r.RunID)
			if len(front.Coverage.Degraded) != 1 || front.Coverage.Degraded[0].Message != told.Message || !strings.Contains(text, "## What was missing\n\n- mcp-unavailable: ") {
				t.Errorf("the report does not tell what was missing:\n%s", text)
			}
			events := fmt.Sprint(s.stream(r.RunID, "", nil))
			if !strings.Contains(events, `"code":"mcp-unavailable"`) {
				t.Error("no event tells what was missing")
			}
			if strings.Contains(text+events+s.log.String(), "canary") {
				t.Error("the key of the search server is told")
			}
			if f.handled != nil && f.handled.Load() != 0 {
				t.Errorf("%d requests went to a server that was not verified", f.handled.Load())
			}
		})
	}
}

func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

func TestARunWithoutAConfiguredServerIsNotDegraded(t *testing.T) {
	t.Parallel()
	s := openSite(t, func(s *settings) { s.search = "" })
	if r := s.run("Events in Porto Velo", "auto"); r.Status != "completed" || len(r.Degraded) != 0 {
		t.Errorf("the run ended as %+v", r)
	}
}

func TestPromptsComeFromTheirSourceAndTheRunSaysSo(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var requests []string
	langfuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests = append(requests, r.Method+" "+r.RequestURI)
		mu.Unlock()
		if strings.Contains(r.RequestURI, "plan") {
			http.NotFound(w, r)
			return
		}
		text := "You research one question. Source text."
		if strings.Contains(r.RequestURI, "orchestrator") {
			text = "You keep the calendar. Source text."
		}
		if strings.Contains(r.RequestURI, "stm-writer") {
			text = "You write documents. Source text."
		}
		fmt.Fprintf(w, `{"type":"text","version":12,"prompt":%q}`, text)
	}))
	t.Cleanup(langfuse.Close)
	s := openSite(t, func(s *settings) {
		s.langfuseURL, s.langfusePublic, s.langfuseSecret, s.promptLabel = langfuse.URL, "pk", "sk-canary", "staging"
	})
	r := s.run("Events in Porto Velo", "auto")
	if r.Status != "completed" || len(r.Prompts) != 4 {
		t.Fatalf("the run ended as %+v", r)
	}
	for _, p := range r.Prompts {
		source, version := "langfuse", "12"
		if p.Name == "events-calendar/plan" {
			source, version = "embedded", "1"
		}
		if p.Source != source || p.Version != version || p.Label != "staging" || len(p.SHA256) != 64 || (p.Fallback != "") != (source == "embedded") {
			t.Errorf("the prompt is %+v", p)
		}
	}
	if len(r.Degraded) != 1 || r.Degraded[0].Code != "prompt-fallback" {
		t.Errorf("the run tells %+v", r.Degraded)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range requests {
		if !strings.HasPrefix(request, "GET /api/public/v2/prompts/") || !strings.HasSuffix(request, "?label=staging") {
			t.Errorf("the program asked the source to %s", request)
		}
	}
	if front, _ := s.report(r.RunID); len(requests) != 4 || front.Prompts[0].Source != "langfuse" || front.Prompts[0].SHA256 != r.Prompts[0].SHA256 {
		t.Errorf("the report has %+v after %v", front.Prompts, requests)
	}
}
