package prompt_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/examples/events-calendar/prompt"
)

func TestPromptsAreNamedWithTheirLabel(t *testing.T) {
	t.Parallel()
	r, err := prompt.Parse("kernel/stm-writer@production")
	if err != nil || r != (prompt.Ref{Name: "kernel/stm-writer", Label: "production"}) || r.String() != "kernel/stm-writer@production" {
		t.Errorf("%+v (%v)", r, err)
	}
	for _, text := range []string{"", "a", "@b", "a@", "a@b@c", "A@b", "a b@c", "a@" + strings.Repeat("x", 37)} {
		if _, err := prompt.Parse(text); err == nil {
			t.Errorf("%q was taken for a prompt", text)
		}
	}
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// server is a Langfuse that answers every request in one way and remembers what it was asked.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func newServer(t *testing.T, status int, body string) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		s.mu.Lock()
		s.requests = append(s.requests, fmt.Sprintf("%s %s %s:%s", r.Method, r.RequestURI, user, password))
		s.mu.Unlock()
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func langfuse(t *testing.T, url string) *prompt.Langfuse {
	t.Helper()
	l, err := prompt.NewLangfuse(prompt.LangfuseConfig{URL: url, PublicKey: "pk", SecretKey: "sk-canary"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var wanted = prompt.Want{Ref: prompt.Ref{Name: "events-calendar/plan", Label: "production"}, Text: "embedded text", Version: "1"}

func TestAPromptComesFromTheSource(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"text": `{"type":"text","name":"events-calendar/plan","version":7,"prompt":"from the source","labels":["production"],"config":{}}`,
		"chat": `{"type":"chat","version":7,"prompt":[{"role":"system","content":"from the source"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, http.StatusOK, body)
			got := prompt.Resolve(t.Context(), langfuse(t, s.URL+"/"), []prompt.Want{wanted})
			want := []prompt.Prompt{{Ref: wanted.Ref, Source: "langfuse", Version: "7", Text: "from the source",
				SHA256: digest("from the source")}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			asked := []string{"GET /api/public/v2/prompts/events-calendar%2Fplan?label=production pk:sk-canary"}
			if diff := cmp.Diff(asked, s.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASourceThatFailsCostsAFallbackOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		why    string
	}{
		"no such label":        {404, `{"error":"LangfuseNotFoundError"}`, `no version of events-calendar/plan with the label "production"`},
		"refused":              {401, `{}`, "status 401"},
		"broken":               {500, `oops`, "status 500"},
		"no JSON":              {200, `<html>`, "no prompt"},
		"an empty text":        {200, `{"type":"text","version":1,"prompt":" "}`, "empty"},
		"a dialog":             {200, `{"type":"chat","version":1,"prompt":[{"role":"system","content":"a"},{"role":"user","content":"b"}]}`, "exactly one message"},
		"a text of other kind": {200, `{"type":"text","version":1,"prompt":[]}`, "cannot be read"},
		"an unknown kind":      {200, `{"type":"image","version":1,"prompt":"x"}`, `type "image"`},
		"a flood":              {200, `{"type":"text","prompt":"` + strings.Repeat("x", 1<<20) + `"}`, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := prompt.Resolve(t.Context(), langfuse(t, newServer(t, c.status, c.body).URL), []prompt.Want{wanted})[0]
			if got.Source != prompt.Embedded || got.Text != "embedded text" || got.Version != "1" || !strings.Contains(got.Fallback, c.why) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestARedirectGetsNoKeys(t *testing.T) {
	t.Parallel()
	elsewhere := newServer(t, 200, `{"type":"text","version":1,"prompt":"stolen"}`)
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	t.Cleanup(s.Close)
	got := prompt.Resolve(t.Context(), langfuse(t, s.URL), []prompt.Want{wanted})[0]
	if got.Source != prompt.Embedded || len(elsewhere.requests) > 0 {
		t.Errorf("got %+v after %v", got, elsewhere.requests)
	}
}

func TestAnUnverifiedCertificateIsAFallback(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"type":"text","version":1,"prompt":"from nobody knows whom"}`)
	}))
	t.Cleanup(s.Close)
	got := prompt.Resolve(t.Context(), langfuse(t, s.URL), []prompt.Want{wanted})[0]
	if got.Source != prompt.Embedded || !strings.Contains(got.Fallback, "certificate") || strings.Contains(got.Fallback, "sk-canary") {
		t.Errorf("got %+v", got)
	}
}

func TestConfigsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []prompt.LangfuseConfig{
		{}, {URL: "langfuse", PublicKey: "a", SecretKey: "b"}, {URL: "ftp://x", PublicKey: "a", SecretKey: "b"},
		{URL: "https://a:b@x", PublicKey: "a", SecretKey: "b"}, {URL: "https://x", PublicKey: "a"}, {URL: "https://x", SecretKey: "b"},
	} {
		if _, err := prompt.NewLangfuse(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// shelf is a source in memory.
type shelf map[string]string

func (shelf) Name() string { return "shelf" }

func (s shelf) Find(_ context.Context, r prompt.Ref) (prompt.Found, error) {
	if text, ok := s[r.String()]; ok {
		return prompt.Found{Text: text, Version: "3"}, nil
	}
	return prompt.Found{}, errors.New("not on the shelf")
}

func TestEveryPromptIsResolvedInOrder(t *testing.T) {
	t.Parallel()
	source := shelf{"a@x": "text of a", "c@x": "text of c"}
	var wants []prompt.Want
	for _, name := range []string{"a", "b", "c"} {
		wants = append(wants, prompt.Want{Ref: prompt.Ref{Name: name, Label: "x"}, Text: "own " + name, Version: "1"})
	}
	var got []string
	for _, p := range prompt.Resolve(t.Context(), source, wants) {
		got = append(got, p.Source+" "+p.Version+" "+p.Text)
	}
	if diff := cmp.Diff([]string{"shelf 3 text of a", "embedded 1 own b", "shelf 3 text of c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := prompt.Resolve(t.Context(), nil, wants[:1])[0]; p.Source != prompt.Embedded || p.Fallback != "" {
		t.Errorf("without a source: %+v", p)
	}
}
