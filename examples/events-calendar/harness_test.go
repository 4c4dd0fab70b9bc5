package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/provider/scripted"
)

const testKey = "key-of-the-tests-0123456789"

// site is a program that is served, as main serves it.
type site struct {
	t *testing.T
	*httptest.Server
	program *program
	log     *bytes.Buffer
}

// openSite serves a program with the demo's model and web; change may set anything else.
func openSite(t *testing.T, change func(*settings)) *site {
	t.Helper()
	s := &settings{data: t.TempDir(), model: demo, search: demo, key: testKey, runs: 2}
	if change != nil {
		change(s)
	}
	st := &site{t: t, log: &bytes.Buffer{}}
	p, err := open(t.Context(), s, slog.New(slog.NewTextHandler(st.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	st.program, st.Server = p, httptest.NewServer(p.handler)
	t.Cleanup(st.shut)
	return st
}

// shut ends the site: its runs are suspended, and its database is closed. It may be called twice.
func (s *site) shut() {
	if s.program == nil {
		return
	}
	s.program.runner.Stop(context.Background())
	s.Close()
	s.program.close()
	s.program = nil
}

// reply is the answer to a request.
type reply struct {
	*http.Response
	body string
}

// do makes a request with the key of the site. headers are pairs.
func (s *site) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testKey)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{response, string(text)}
}

// get reads a JSON answer into v and demands the status 200.
func (s *site) get(path string, v any) reply {
	s.t.Helper()
	r := s.do(http.MethodGet, path, "")
	s.decode(r, http.StatusOK, v)
	return r
}

func (s *site) decode(r reply, status int, v any) {
	s.t.Helper()
	if r.StatusCode != status {
		s.t.Fatalf("status %d, not %d: %s", r.StatusCode, status, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		s.t.Fatalf("%v in %s", err, r.body)
	}
}

// runJSON is what the tests read of a run.
type runJSON struct {
	RunID   string `json:"runId"`
	Status  string `json:"status"`
	Answer  string `json:"answer"`
	Attempt int    `json:"attempt"`
	Failure *struct{ Reason, Code, Message string }
	Prompts []struct{ Name, Label, Source, Version, SHA256, Fallback string }
	Applied []struct{ ID, Title string }
	Learned []struct{ ID, Title string }
	// Degraded is what the run had to do without.
	Degraded []struct{ Code, Message string }
	Steps    int
}

// run starts a run and waits for its end.
func (s *site) run(input, mode string) runJSON {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"input": input, "mode": mode, "wait": true})
	if err != nil {
		s.t.Fatal(err)
	}
	var r runJSON
	s.decode(s.do(http.MethodPost, "/run", string(body)), http.StatusOK, &r)
	return r
}

// start starts a run and does not wait.
func (s *site) start(input string) runJSON {
	s.t.Helper()
	var r runJSON
	s.decode(s.do(http.MethodPost, "/run", fmt.Sprintf(`{"input":%q}`, input)), http.StatusAccepted, &r)
	return r
}

// streamed is one server-sent event.
type streamed struct{ id, kind, data string }

// stream reads the events of a run from after an event on, until the server ends the stream or enough says so.
func (s *site) stream(id, lastEvent string, enough func([]streamed) bool) []streamed {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/runs/"+id+"/stream", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testKey)
	if lastEvent != "" {
		request.Header.Set("Last-Event-ID", lastEvent)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("the stream answered with %d %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
	var events []streamed
	var e streamed
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.id != "" {
				events, e = append(events, e), streamed{}
			}
			if enough != nil && enough(events) {
				return events
			}
		}
	}
	return events
}

// script returns a script for the demo's agent: the writer of the demo, and then these responses, one a step.
func script(t *testing.T, responses ...any) []byte {
	t.Helper()
	text, err := scripted.FromYAML(demoScript)
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	writer := whole["responses"].([]any)[0]
	whole["responses"] = append([]any{writer}, responses...)
	if text, err = json.Marshal(whole); err != nil {
		t.Fatal(err)
	}
	return text
}

// call is a response that calls a tool with these arguments, a JSON object.
func call(tool, arguments string) any {
	var values map[string]any
	if err := json.Unmarshal([]byte(arguments), &values); err != nil {
		panic(err)
	}
	if tool != "finish" {
		values["objective"] = "to see what comes of it"
	}
	return map[string]any{"parts": []any{map[string]any{"call": map[string]any{"name": tool, "arguments": values}}}}
}

// stall is a response that never comes.
func stall() any {
	return map[string]any{"text": "never", "stall": map[string]any{"afterDeltas": 0}}
}

// fairDay is a day on which an event can be.
func fairDay() string { return time.Now().AddDate(0, 0, 30).Format("2006-01-02") }
