package mcptool_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool/mcptool"
)

func timeout(d time.Duration) func(*mcptool.Server) {
	return func(s *mcptool.Server) { s.Timeout = d }
}

// TestASlowServerFailsItsCallInTimeAndHearsOfIt covers a server that never answers: the call ends after exactly its
// timeout, and the handler's context ends, in both eras.
func TestASlowServerFailsItsCallInTimeAndHearsOfIt(t *testing.T) {
	t.Parallel()
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				heard := make(chan struct{})
				server := sdkServer()
				server.AddTool(&mcp.Tool{Name: "wait", InputSchema: object, Annotations: reading()},
					func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						<-ctx.Done()
						close(heard)
						return nil, ctx.Err()
					})
				s, _ := connect(t, inMemory(t, sdkHandler(server, modern), timeout(30*time.Second)))
				start := time.Now()
				got := call(t.Context(), t, s, "mcp__docs__wait", `{}`)
				if took := time.Since(start); took != 30*time.Second || !got.IsError || !strings.Contains(got.Text, "timeout: no answer and no progress in time") {
					t.Errorf("after %s: %+v", took, got)
				}
				<-heard
			})
		})
	}
}

func TestAnAbortReachesTheServer(t *testing.T) {
	t.Parallel()
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, abort := context.WithCancel(t.Context())
				heard := make(chan struct{})
				server := sdkServer()
				server.AddTool(&mcp.Tool{Name: "wait", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					abort()
					<-ctx.Done()
					close(heard)
					return nil, ctx.Err()
				})
				s, _ := connect(t, inMemory(t, sdkHandler(server, modern), allowed("wait")))
				got := call(ctx, t, s, "mcp__docs__wait", `{}`)
				if !got.IsError || !strings.HasPrefix(got.Text, "cancelled") || !strings.Contains(got.Text, "unknown") {
					t.Errorf("result = %+v", got)
				}
				<-heard
			})
		})
	}
}

func TestProgressStartsTheTimeAnewUpToAHardLimit(t *testing.T) {
	t.Parallel()
	for era, modern := range eras {
		for name, c := range map[string]struct {
			reports int
			took    time.Duration
			text    string
		}{
			"an end in sight": {5, 45 * time.Second, "done"},
			"no end":          {1000, 100 * time.Second, "the longest time of a call is over"},
		} {
			t.Run(era+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					server := sdkServer()
					server.AddTool(&mcp.Tool{Name: "work", InputSchema: object, Annotations: reading()},
						func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
							for i := range c.reports {
								select {
								case <-time.After(9 * time.Second):
								case <-ctx.Done():
									return nil, ctx.Err()
								}
								progress := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}
								if err := r.Session.NotifyProgress(ctx, progress); err != nil {
									return nil, err
								}
							}
							return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
						})
					s, _ := connect(t, inMemory(t, sdkHandler(server, modern), timeout(10*time.Second)))
					start := time.Now()
					got := call(t.Context(), t, s, "mcp__docs__work", `{}`)
					if took := time.Since(start); took != c.took || !strings.Contains(got.Text, c.text) {
						t.Errorf("after %s: %+v", took, got)
					}
				})
			})
		}
	}
}

// TestProgressOfAnotherCallDoesNotCount covers notifications with tokens that were never given out.
func TestProgressOfAnotherCallDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{onCall: func(w http.ResponseWriter, r *http.Request, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := 0; ; i++ {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"p%d\",\"progress\":1}}\n\n", i+1000)
				w.(http.Flusher).Flush()
				select {
				case <-time.After(time.Second):
				case <-r.Context().Done():
					return
				}
			}
		}}
		s, _ := connect(t, inMemory(t, f, timeout(10*time.Second)))
		start := time.Now()
		got := call(t.Context(), t, s, "mcp__docs__look", `{}`)
		if took := time.Since(start); took != 10*time.Second || !got.IsError {
			t.Errorf("after %s: %+v", took, got)
		}
	})
}

// TestAForgottenSessionIsOpenedAgainOnce covers servers that end sessions, with both statuses that they use.
func TestAForgottenSessionIsOpenedAgainOnce(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		for name, c := range map[string]struct {
			tool     string
			repeated bool
		}{"a call that reads": {"look", true}, "an idempotent call": {"again", true}, "a call that changes": {"change", false}} {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				t.Parallel()
				var gone atomic.Bool
				var ran atomic.Int64
				f := &fake{onCall: func(w http.ResponseWriter, _ *http.Request, m message) {
					ran.Add(1)
					reply(w, m, done)
				}}
				f.before = func(w http.ResponseWriter, r *http.Request, m message) bool {
					if gone.Load() && r.Header.Get("Mcp-Session-Id") == "1" {
						w.Header().Set("Content-Type", "application/json")
						w.WriteHeader(status)
						fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
						return true
					}
					return false
				}
				s, _ := connect(t, one(listen(t, f), allowed("change", "again")))
				gone.Store(true)
				got := call(t.Context(), t, s, "mcp__docs__"+c.tool, `{}`)
				if c.repeated {
					if got.Text != "done" || ran.Load() != 1 || f.count("POST initialize") != 2 || f.count("POST tools/call") != 2 {
						t.Errorf("result = %+v, requests = %v", got, f.seen())
					}
					return
				}
				if !got.IsError || !strings.Contains(got.Text, "not repeated") || !strings.Contains(got.Text, "unknown") || f.count("POST tools/call") != 1 {
					t.Errorf("result = %+v, requests = %v", got, f.seen())
				}
				if got := call(t.Context(), t, s, "mcp__docs__"+c.tool, `{}`); got.Text != "done" || f.count("POST initialize") != 2 {
					t.Errorf("the next call: %+v, requests = %v", got, f.seen())
				}
			})
		}
	}
}

// TestAServerThatForgetsEverySessionIsNotAskedForEver covers the loop of a server that answers every call with 410.
func TestAServerThatForgetsEverySessionIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	f := &fake{onCall: func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusGone) }}
	s, _ := connect(t, one(listen(t, f)))
	got := call(t.Context(), t, s, "mcp__docs__look", `{}`)
	if !got.IsError || f.count("POST tools/call") != 2 || f.count("POST initialize") != 2 {
		t.Errorf("result = %+v, requests = %v", got, f.seen())
	}
}

// TestABrokenCallThatMayHaveWrittenIsNeverRepeated covers every way in which an answer can get lost.
func TestABrokenCallThatMayHaveWrittenIsNeverRepeated(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request, m message){
		"connection cut": func(http.ResponseWriter, *http.Request, message) { panic(http.ErrAbortHandler) },
		"status 500":     func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(500) },
		"status 503":     func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(503) },
		"status 202":     func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(202) },
		"no JSON": func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "<html>")
		},
		"HTML": func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		},
		"stream without answer": func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\n")
		},
		"stream of nonsense": func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {{{\n\n")
		},
		"broken result": func(w http.ResponseWriter, _ *http.Request, m message) {
			reply(w, m, `{"content":[{"type":"hologram"}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{onCall: answer}
			s, _ := connect(t, one(listen(t, f), allowed("change")))
			got := call(t.Context(), t, s, "mcp__docs__change", `{}`)
			if !got.IsError || !strings.Contains(got.Text, "whether it had an effect is unknown") || f.count("POST tools/call") != 1 {
				t.Errorf("result = %+v, requests = %v", got, f.seen())
			}
			got = call(t.Context(), t, s, "mcp__docs__look", `{}`)
			if !got.IsError || f.count("POST tools/call") > 3 {
				t.Errorf("result = %+v, requests = %v", got, f.seen())
			}
		})
	}
}

func TestAServerThatIsDownWasNotCalled(t *testing.T) {
	t.Parallel()
	f := &fake{}
	var down atomic.Bool
	c := inMemoryFailing(t, f, &down)
	s, _ := connect(t, c)
	down.Store(true)
	got := call(t.Context(), t, s, "mcp__docs__change", `{}`)
	if !got.IsError || !strings.Contains(got.Text, "the call was not made") {
		t.Errorf("result = %+v", got)
	}
}

// TestAServerThatKeepsFailingIsTakenOut covers a server that flaps and then stays down: three failures in a row end its
// use, a success in between starts the count anew, the job goes on and hears of it.
func TestAServerThatKeepsFailingIsTakenOut(t *testing.T) {
	t.Parallel()
	results := []int{500, 500, 200, 500, 500, 500}
	next := 0
	f := &fake{onCall: func(w http.ResponseWriter, _ *http.Request, m message) {
		status := results[next]
		next++
		if status != 200 {
			w.WriteHeader(status)
			return
		}
		reply(w, m, done)
	}}
	var lost []mcptool.Notice
	c := one(listen(t, f), allowed("change"))
	c.Notify = func(n mcptool.Notice) { lost = append(lost, n) }
	s, _ := connect(t, c)
	change := find(t, s, "mcp__docs__change")
	for i, status := range results {
		got := change.Run(t.Context(), nil, []byte(`{}`))
		if got.IsError != (status != 200) {
			t.Errorf("call %d: %+v", i, got)
		}
		if i < len(results)-1 && len(lost) > 0 {
			t.Errorf("taken out after call %d", i)
		}
	}
	got := change.Run(t.Context(), nil, []byte(`{}`))
	if !strings.Contains(got.Text, "not used any more") || next != len(results) {
		t.Errorf("after the end: %+v", got)
	}
	if diff := cmp.Diff([]string{"mcp-lost"}, codes(lost)); diff != "" || len(s.Tools()) != 0 {
		t.Errorf("notices = %v, tools = %v", lost, names(s))
	}
}

func TestErrorsOfTheProtocolAreToldAndDoNotCountAsFailures(t *testing.T) {
	t.Parallel()
	f := &fake{onCall: func(w http.ResponseWriter, _ *http.Request, m message) { replyError(w, m, -32602, "bad page\x1b[2J") }}
	s, _ := connect(t, one(listen(t, f)))
	for range 5 {
		got := call(t.Context(), t, s, "mcp__docs__look", `{}`)
		if !got.IsError || got.Text != `the MCP server "docs" refused the call (error -32602), perhaps for its arguments: bad page[2J` {
			t.Errorf("result = %+v", got)
		}
	}
	if f.count("POST initialize") != 1 {
		t.Errorf("requests = %v", f.seen())
	}
}

// TestAServerThatAsksBackIsRefused covers results that are no results: the model learns that the call did not happen.
func TestAServerThatAsksBackIsRefused(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Your password?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"x"}`: "does not offer",
		`{"resultType":"input_required"}`: "does not offer",
		`{"resultType":"task","task":{"id":"1"},"content":[{"type":"text","text":"started"}]}`: `unknown kind "task"`,
		`{"resultType":"complete","content":[{"type":"text","text":"fine"}]}`:                  "fine",
	} {
		f := &fake{onCall: func(w http.ResponseWriter, _ *http.Request, m message) { reply(w, m, result) }}
		s, _ := connect(t, one(listen(t, f)))
		if got := call(t.Context(), t, s, "mcp__docs__look", `{}`); !strings.Contains(got.Text, want) || got.IsError == (want == "fine") || strings.Contains(got.Text, "password") {
			t.Errorf("%s: %+v", result, got)
		}
		if f.count("POST tools/call") != 1 {
			t.Errorf("%s: requests = %v", result, f.seen())
		}
	}
}

// TestRequestsOfAServerAreRefused covers sampling, elicitation and roots: none is declared, and each is answered with an
// error while the call goes on.
func TestRequestsOfAServerAreRefused(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list", "tasks/get"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			refused := make(chan message, 1)
			f := &fake{}
			f.before = func(w http.ResponseWriter, _ *http.Request, m message) bool {
				if m.Method == "" && m.Error != nil {
					refused <- m
					w.WriteHeader(http.StatusAccepted)
					return true
				}
				return false
			}
			f.onCall = func(w http.ResponseWriter, r *http.Request, m message) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":77,\"method\":%q,\"params\":{\"messages\":[],\"maxTokens\":1,\"message\":\"?\"}}\n\n", method)
				w.(http.Flusher).Flush()
				select {
				case answer := <-refused:
					fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"code %d\"}]}}\n\n", m.ID, answer.Error.Code)
				case <-r.Context().Done():
				}
			}
			s, _ := connect(t, one(listen(t, f)))
			if got := call(t.Context(), t, s, "mcp__docs__look", `{}`); got.Text != "code -32601" {
				t.Errorf("result = %+v", got)
			}
		})
	}
}

func TestQuestionsAreAnsweredWhereSomebodyIsThere(t *testing.T) {
	t.Parallel()
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			server := sdkServer()
			server.AddTool(&mcp.Tool{Name: "ask", InputSchema: object, Annotations: reading()}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if answer, ok := r.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, answer.Content["name"])}}}, nil
				}
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": &mcp.ElicitParams{Mode: "form", Message: "Who?",
					RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}}}}, nil
			})
			c := one(listen(t, sdkHandler(server, modern)))
			c.Elicit = func(_ context.Context, q mcptool.Question) (map[string]any, bool) {
				return map[string]any{"name": q.Server + q.Message}, q.Schema != nil
			}
			s, _ := connect(t, c)
			if got := call(t.Context(), t, s, "mcp__docs__ask", `{}`); got.Text != "accept docsWho?" && got.Text != "acceptdocsWho?" {
				t.Errorf("result = %+v", got)
			}
		})
	}
}

func TestTheTraceReachesTheServer(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for era, modern := range eras {
		server := sdkServer()
		server.AddTool(&mcp.Tool{Name: "trace", InputSchema: object, Annotations: reading()}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text := fmt.Sprint(r.Params.Meta["traceparent"], " ", r.Extra.Header.Get("Traceparent"))
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
		c := one(listen(t, sdkHandler(server, modern)))
		c.TraceParent = func(context.Context) string { return trace }
		s, _ := connect(t, c)
		if got := call(t.Context(), t, s, "mcp__docs__trace", `{}`); got.Text != trace+" "+trace {
			t.Errorf("%s: %+v", era, got)
		}
	}
}

// TestACallThatTheServerRefusesUnreadIsSentAgain covers the one error by which a server asks for a repeat: the headers did
// not match its definition, so the list has to be read again.
func TestACallThatTheServerRefusesUnreadIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refusals, calls int
		want            string
	}{"once": {1, 2, "done"}, "always": {100, 2, "error -32020"}} {
		n := 0
		f := &fake{onCall: func(w http.ResponseWriter, _ *http.Request, m message) {
			if n++; n <= c.refusals {
				w.WriteHeader(http.StatusBadRequest)
				replyError(w, m, -32020, "header mismatch")
				return
			}
			reply(w, m, done)
		}}
		s, _ := connect(t, one(listen(t, f), allowed("change")))
		got := call(t.Context(), t, s, "mcp__docs__change", `{}`)
		if !strings.Contains(got.Text, c.want) || n != c.calls || f.count("POST tools/list") != 2 {
			t.Errorf("%s: %+v, requests = %v", name, got, f.seen())
		}
	}
}

// inMemoryFailing is a configuration whose dialer fails once down is set; connections that are open are cut then.
func inMemoryFailing(t *testing.T, f *fake, down *atomic.Bool) mcptool.Config {
	t.Helper()
	f.before = func(w http.ResponseWriter, _ *http.Request, m message) bool {
		if !slices.Contains([]string{"server/discover", "initialize"}, m.Method) {
			w.Header().Set("Connection", "close")
		}
		return false
	}
	c := one(listen(t, f), allowed("change"))
	good := mcptool.DialerFor(true)
	c.SetDial(refusing(good, down))
	return c
}
