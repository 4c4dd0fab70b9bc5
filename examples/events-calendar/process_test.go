package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// asServer makes the test binary the program itself.
const asServer = "EVENTS_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// endpoint is a model server that speaks Chat Completions. A request is answered by what it contains, several things joined
// by " + "; the writer of documents never has a usable answer, so that every document is folded mechanically.
type endpoint struct {
	*httptest.Server
	// reached gets a value when a step is asked for that has to wait.
	reached chan struct{}

	mu     sync.Mutex
	waits  string // the step that gets no answer, as the request says it
	asked  []string
	bodies []string
	auth   map[string]bool
}

func newEndpoint(t *testing.T, waits string, steps map[string]string) *endpoint {
	t.Helper()
	e := &endpoint{waits: waits, reached: make(chan struct{}, 16), auth: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.asked = append(e.asked, r.URL.Path)
		e.bodies = append(e.bodies, string(body))
		e.auth[r.Header.Get("Authorization")+" "+r.Header.Get("X-Job")] = true
		waits := e.waits
		e.mu.Unlock()
		if waits != "" && strings.Contains(string(body), waits) {
			e.reached <- struct{}{}
			<-r.Context().Done()
			return
		}
		answer := `{"role":"assistant","content":"no document"}`
		for step, message := range steps {
			if containsAll(string(body), strings.Split(step, " + ")) {
				answer = message
			}
		}
		reason := "stop"
		if strings.Contains(answer, "tool_calls") {
			reason = "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", answer)
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n", reason)
	}))
	t.Cleanup(e.Close)
	return e
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// goOn lets every step have its answer.
func (e *endpoint) goOn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waits = ""
}

// toolCall is the message of a model that calls a tool.
func toolCall(t *testing.T, tool, arguments string) string {
	t.Helper()
	quoted, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":%q,"arguments":%s}}]}`, tool, quoted)
}

// daemon is the program as a process of its own.
type daemon struct {
	*site
	command *exec.Cmd
	done    chan struct{}
}

// startDaemon starts the program over a data directory and returns when it listens.
func startDaemon(t *testing.T, data string, e *endpoint) *daemon {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{done: make(chan struct{})}
	d.command = exec.CommandContext(context.WithoutCancel(t.Context()), self, "-listen", "127.0.0.1:0", "-data", data, "-model", "m", "-base-url", e.URL+"/v1",
		"-tag-header", "X-Job={agentId}")
	d.command.Env = append(os.Environ(), asServer+"=1", "EVENTS_API_KEY="+testKey, "EVENTS_MODEL_KEY=sk-test")
	output, err := d.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.end(syscall.SIGKILL) })
	address := make(chan string, 1)
	go func() {
		defer close(d.done)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if _, found, ok := strings.Cut(lines.Text(), "listening on "); ok {
				address <- found
			}
		}
		close(address)
	}()
	url, ok := <-address
	if !ok {
		t.Fatal("the program ended before it listened")
	}
	d.site = &site{t: t, Server: &httptest.Server{URL: url}}
	return d
}

// end sends the process a signal and returns when it is gone.
func (d *daemon) end(signal syscall.Signal) {
	if d.command.ProcessState != nil {
		return
	}
	_ = d.command.Process.Signal(signal)
	<-d.done
	_ = d.command.Wait() // a process that was killed says so
}

func TestTheNextProcessTakesUpARun(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEndpoint(t, "This is step 4", map[string]string{
				"This is step 1": toolCall(t, "query_events", `{"objective":"o"}`),
				"This is step 2": toolCall(t, "propose_events", `{"objective":"o","events":[{"title":"Fair","date":"`+fairDay()+`","timeZone":"UTC","venue":"Hall","sourceUrl":"https://fair.example.com/1"}]}`),
				"This is step 3": toolCall(t, "note_lesson", `{"objective":"o","title":"Fairs","text":"Fairs are announced late."}`),
				"This is step 4": toolCall(t, "finish", `{"answer":"One fair.","confidence":0.1}`),
			})
			data := t.TempDir()
			first := startDaemon(t, data, e)
			r := first.start("Events in Porto Velo")
			<-e.reached
			first.end(signal)

			e.goOn()
			second := startDaemon(t, data, e)
			got := second.ended(r.RunID)
			if got.Status != "completed" || got.Attempt != 2 || got.Answer != "One fair." || got.Steps != 4 || len(got.Learned) != 1 {
				t.Errorf("the run ended as %+v", got)
			}
			if len(got.Degraded) != 1 || got.Degraded[0].Code != "budget-unpriced" {
				t.Errorf("a run of two attempts tells %+v", got.Degraded)
			}
			for i, event := range second.stream(r.RunID, "", nil) {
				if event.id != fmt.Sprintf("%s:%d", r.RunID, i+1) {
					t.Fatalf("event %d has the id %s", i, event.id)
				}
			}
			front, _ := second.report(r.RunID)
			if front.Counts.Created != 1 || front.Counts.Unchanged != 0 || front.Simulated {
				t.Errorf("the report counts %+v", front.Counts)
			}
			second.end(syscall.SIGTERM)
			if code := second.command.ProcessState.ExitCode(); code != 0 {
				t.Errorf("a program that is told to stop ends with %d", code)
			}
			for _, path := range e.asked {
				if path != "/v1/chat/completions" {
					t.Errorf("the endpoint was asked for %s", path)
				}
			}
			for sent := range e.auth {
				if !strings.HasPrefix(sent, "Bearer sk-test ") || !strings.HasSuffix(sent, "events-calendar") {
					t.Errorf("the endpoint was sent %q", sent)
				}
			}
		})
	}
}

func TestSettingsAreCheckedAllAtOnce(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	if _, err := parse([]string{"-runs", "0", "-model", ""}, func(name string) string {
		return map[string]string{"EVENTS_API_KEY": "short", "LANGFUSE_HOST": "https://x"}[name]
	}, io.Discard); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("four wrong settings gave %v", err)
	}
	if _, err := parse([]string{"demo"}, none, io.Discard); err == nil {
		t.Error("an argument was taken")
	}
	s, err := parse(nil, none, io.Discard)
	if err != nil || s.model != demo || s.search != demo || !s.madeKey || len(s.key) < 16 {
		t.Errorf("without settings: %+v (%v)", s, err)
	}
	s, err = parse([]string{"-model", "m", "-search-tools", "tavily_search, tavily_extract"}, none, io.Discard)
	if err != nil || s.search != "" || len(s.searchTools) != 2 {
		t.Errorf("with a model: %+v (%v)", s, err)
	}
}

func TestAModelThatCallsInItsTextIsUnderstood(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, "", map[string]string{
		"This is step 1": `{"role":"assistant","content":"<tool_call>\n{\"name\": \"query_events\", \"arguments\": {\"objective\": \"look\"}}\n</tool_call>"}`,
		"This is step 2": `{"role":"assistant","content":"<tool_call>\n{\"name\": \"finish\", \"arguments\": {\"answer\": \"Nothing.\", \"confidence\": 0.1}}\n</tool_call>"}`,
	})
	s := openSite(t, func(s *settings) { s.model, s.baseURL, s.textCalls = "m", e.URL+"/v1", "auto" })
	if r := s.run("Events in Porto Velo", "auto"); r.Status != "completed" || r.Answer != "Nothing." || r.Steps != 2 {
		t.Errorf("the run ended as %+v (%+v)", r, r.Failure)
	}
}
