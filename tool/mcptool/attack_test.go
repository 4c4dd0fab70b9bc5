package mcptool_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool/mcptool"
)

// TestAServerThatCannotBeUsedDegradesTheJob covers every way of being unreachable: a required server is an error, any
// other a notice, and both say why in a word that programs can look for.
func TestAServerThatCannotBeUsedDegradesTheJob(t *testing.T) {
	t.Parallel()
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	text := func(kind, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		})
	}
	tlsServer := httptest.NewUnstartedServer(&fake{})
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	other := &fake{before: func(w http.ResponseWriter, _ *http.Request, m message) bool {
		if m.Method == "initialize" {
			reply(w, m, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
			return true
		}
		return false
	}}
	noList := &fake{before: func(w http.ResponseWriter, _ *http.Request, m message) bool {
		if m.Method == "tools/list" {
			replyError(w, m, -32603, "database is down")
			return true
		}
		return false
	}}
	for name, c := range map[string]struct{ url, reason string }{
		"no such host":         {"http://mcp.invalid/mcp", "dns: "},
		"nothing listens":      {"http://" + closed.Addr().String() + "/mcp", "refused: "},
		"unknown certificate":  {tlsServer.URL, "tls: "},
		"401":                  {listen(t, status(401)), "auth: the server answered with status 401"},
		"403":                  {listen(t, status(403)), "auth: "},
		"404":                  {listen(t, status(404)), "status: the server answered with status 404"},
		"500":                  {listen(t, status(500)), "status: "},
		"hangs":                {listen(t, hang), "timeout: "},
		"no JSON":              {listen(t, text("application/json", "{{{")), "protocol: "},
		"HTML":                 {listen(t, text("text/html", "<html>")), "protocol: "},
		"an unknown revision":  {listen(t, other), "protocol: "},
		"the list fails":       {listen(t, noList), "protocol: the server answered with error -32603: database is down"},
		"an SSE stream of old": {listen(t, text("text/event-stream", "event: endpoint\ndata: /x\n\n")), "protocol: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := one(c.url)
			config.Deadline = 500 * time.Millisecond
			if name != "hangs" {
				config.Deadline = 20 * time.Second
			}
			config.Servers = append(config.Servers, mcptool.Server{Name: "good", URL: listen(t, &fake{})})
			config.Allow = append(config.Allow, "mcp__good__look")
			s, notices := connect(t, config)
			if diff := cmp.Diff([]string{"mcp__good__look"}, names(s)); diff != "" {
				t.Error(diff)
			}
			if len(notices) != 1 || notices[0].Code != "mcp-unavailable" || notices[0].Server != "docs" || !strings.Contains(notices[0].Message, c.reason) {
				t.Errorf("notices = %v", notices)
			}
			config.Servers[0].Required = true
			_, _, err := mcptool.Connect(t.Context(), config)
			missing, ok := errors.AsType[*mcptool.UnavailableError](err)
			if !ok || !strings.HasPrefix(missing.Reasons[0], c.reason) || problem.KindOf(err) != problem.Unavailable || strings.Contains(err.Error(), "/mcp") {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestServersAreOpenedAtOnceWithinTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &fake{tools: `[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`, before: func(_ http.ResponseWriter, r *http.Request, _ message) bool {
			if r.Method != http.MethodPost {
				return false
			}
			select {
			case <-time.After(3 * time.Second):
			case <-r.Context().Done():
			}
			return false
		}}
		c := inMemory(t, slow)
		for _, name := range []string{"b", "c", "d"} {
			c.Servers = append(c.Servers, mcptool.Server{Name: name, URL: "http://" + name + ".example/mcp"})
			c.Allow = append(c.Allow, "mcp__"+name+"__*")
		}
		start := time.Now()
		s, notices, err := mcptool.Connect(t.Context(), c)
		if took := time.Since(start); took != 10*time.Second || err != nil || len(notices) != 4 {
			t.Errorf("after %s: %v, %v", took, notices, err)
		}
		s.Close()
		c.Deadline = time.Minute
		start = time.Now()
		s, notices, err = mcptool.Connect(t.Context(), c)
		// Four requests, one after the other, each three seconds; the servers at the same time.
		if took := time.Since(start); took != 12*time.Second || err != nil || len(notices) != 0 || len(s.Tools()) != 4 {
			t.Errorf("after %s: %v, %v", took, notices, err)
		}
		s.Close()
	})
}

func TestAnEndOfTheJobEndsConnecting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{before: func(_ http.ResponseWriter, r *http.Request, _ message) bool {
		cancel()
		<-r.Context().Done()
		return true
	}}
	if _, _, err := mcptool.Connect(ctx, one(listen(t, f))); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}

// TestAFloodEndsItsCallOnly covers results and streams without bound, messages that answer nothing, and headers. The next
// call works.
func TestAFloodEndsItsCallOnly(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("x", 1<<20)
	stream := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }
	write := func(w io.Writer, format string, args ...any) bool {
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil
	}
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, m message)
		want   string
	}{
		"a result of 100 MB": {func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Type", "application/json")
			write(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
			for i := 0; i < 100 && write(w, "%s", filler); i++ {
			}
			write(w, `"}]}}`)
		}, "larger than 16 MiB"},
		"an event of 100 MB": {func(w http.ResponseWriter, _ *http.Request, m message) {
			stream(w)
			write(w, "data: ")
			for i := 0; i < 100 && write(w, "%s", filler); i++ {
			}
		}, ""},
		"a stream of 100 MB": {func(w http.ResponseWriter, _ *http.Request, m message) {
			stream(w)
			for i := 0; i < 100 && write(w, ": %s\n\n", filler); i++ {
			}
		}, "larger than 16 MiB"},
		"bytes that unfold": {func(w http.ResponseWriter, _ *http.Request, m message) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			for range 2 {
				_, _ = io.WriteString(z, filler)
			}
			_ = z.Close()
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(b.Bytes())
		}, "compressed although that was not asked for"},
		"a header of 1 MB": {func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("X-Long", filler)
			reply(w, m, done)
		}, "failed"},
		"10,000 headers": {func(w http.ResponseWriter, _ *http.Request, m message) {
			for i := range 10_000 {
				w.Header().Set(fmt.Sprint("X-", i), "some value")
			}
			reply(w, m, done)
		}, "failed"},
		"the id of another request": {func(w http.ResponseWriter, _ *http.Request, m message) {
			stream(w)
			write(w, "data: {\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n\n")
			write(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, done)
		}, "done"},
		"10,000 notifications": {func(w http.ResponseWriter, _ *http.Request, m message) {
			stream(w)
			for range 10_000 {
				write(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"CANARY-LOG\"}}\n\n")
			}
			write(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}\n\n")
			write(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, done)
		}, "done"},
		"a stream that goes on after the answer": {func(w http.ResponseWriter, r *http.Request, m message) {
			stream(w)
			write(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, done)
			for write(w, ": %s\n\n", filler) && r.Context().Err() == nil {
			}
		}, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flood := true
			f := &fake{tools: `[{"name":"change","inputSchema":{"type":"object"}}]`}
			f.onCall = func(w http.ResponseWriter, r *http.Request, m message) {
				if flood {
					flood = false
					c.answer(w, r, m)
					return
				}
				reply(w, m, done)
			}
			s, _ := connect(t, one(listen(t, f), allowed("change")))
			got := call(t.Context(), t, s, "mcp__docs__change", `{}`)
			if !strings.Contains(got.Text, c.want) || got.IsError == (c.want == "done") || len(got.Text) > 1000 {
				t.Errorf("result = %.300v", got)
			}
			if got := call(t.Context(), t, s, "mcp__docs__change", `{}`); got.Text != "done" {
				t.Errorf("the next call: %+v", got)
			}
		})
	}
}

// TestOneByteAMinuteEndsInTime covers a server that keeps its answer going without ever ending it.
func TestOneByteAMinuteEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{onCall: func(w http.ResponseWriter, r *http.Request, _ message) {
			w.Header().Set("Content-Type", "application/json")
			for {
				if _, err := io.WriteString(w, "{"); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-time.After(time.Minute):
				case <-r.Context().Done():
					return
				}
			}
		}}
		s, _ := connect(t, inMemory(t, f, timeout(90*time.Second)))
		start := time.Now()
		got := call(t.Context(), t, s, "mcp__docs__look", `{}`)
		if took := time.Since(start); took != 90*time.Second || !got.IsError || !strings.Contains(got.Text, "timeout") {
			t.Errorf("after %s: %+v", took, got)
		}
	})
}

// TestHeadersReachTheServerAndNothingElse sends canaries and looks for them everywhere but at their server, while the
// server repeats them wherever it can.
func TestHeadersReachTheServerAndNothingElse(t *testing.T) {
	t.Parallel()
	const secret = "CANARY-5f3a9b"
	echo := "Bearer " + secret + " " + b64([]byte(secret)) + " " + secret + `-TAIL"x`
	f := &fake{tools: fmt.Sprintf(`[{"name":"look","description":%q,"inputSchema":{"type":"object","description":%q},"annotations":{"readOnlyHint":true}},
		{"name":"bad-%s","inputSchema":{"type":"string","title":%q},"annotations":{"readOnlyHint":true}},{"name":"shut %s","inputSchema":{"type":"object"}}]`, echo, echo, secret, echo, secret)}
	n := 0
	f.onCall = func(w http.ResponseWriter, _ *http.Request, m message) {
		switch n++; n {
		case 1:
			reply(w, m, fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":{"a":%q}}`, echo, echo))
		case 2:
			replyError(w, m, -32000, "you sent "+echo)
		case 3:
			reply(w, m, fmt.Sprintf(`{"resultType":%q}`, echo))
		default:
			http.Error(w, echo, http.StatusBadGateway)
		}
	}
	var seen strings.Builder
	var mu sync.Mutex
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&seen, format, args...)
	}
	c := one(listen(t, f)+"?apiKey="+secret+"-query", func(s *mcptool.Server) {
		s.Headers = map[string]string{"Authorization": "Bearer " + secret, "X-Api-Key": secret + `-TAIL"x`}
	})
	c.Notify = func(n mcptool.Notice) { note("%+v\n", n) }
	s, notices := connect(t, c)
	note("%+v\n", notices)
	for _, tl := range s.Tools() {
		note("%s %s %s %+v\n", tl.Name, tl.Description, tl.InputSchema, tl.Boundary)
	}
	look := find(t, s, "mcp__docs__look")
	for range 6 {
		got := look.Run(t.Context(), nil, []byte(`{}`))
		note("%s %s %s\n", got.Text, got.Summary, got.Structured)
	}
	c.Servers[0].URL, c.Servers[0].Required = "http://127.0.0.1:1/?apiKey="+secret, true
	_, _, err := mcptool.Connect(t.Context(), c)
	note("%v\n", err)
	mu.Lock()
	defer mu.Unlock()
	if text := seen.String(); strings.Contains(text, secret) || strings.Contains(text, "TAIL") || strings.Contains(text, b64([]byte(secret))) {
		t.Errorf("a secret is shown:\n%s", text)
	}
	if !strings.Contains(seen.String(), "[redacted]") {
		t.Error("the server repeated nothing, so the test shows nothing")
	}
	headers, requests := f.sent()
	for i, h := range headers {
		if h.Get("Authorization") != "Bearer "+secret || h.Get("X-Api-Key") != secret+`-TAIL"x` {
			t.Errorf("request %d, %s, has no headers", i, requests[i])
		}
	}
}

func TestHeadersAndLogsOfTheProgram(t *testing.T) {
	t.Parallel()
	f := &fake{}
	c := one(listen(t, f))
	c.Version = "1.2.3"
	connect(t, c)
	headers, requests := f.sent()
	for i, h := range headers {
		for _, name := range []string{"Cookie", "Referer", "Proxy-Authorization", "Accept-Encoding"} {
			if got := h.Get(name); got != "" {
				t.Errorf("%s carries %s: %s", requests[i], name, got)
			}
		}
	}
	if f.count("GET") != 0 {
		t.Errorf("requests = %v", f.seen())
	}
}

// TestStrangeAnswersDoNoHarm lets a server answer each kind of request with every kind of value.
func TestStrangeAnswersDoNoHarm(t *testing.T) {
	t.Parallel()
	values := []string{"null", "[]", "7", `"text"`, "{}", "true", `{"tools":7}`, `{"tools":[null,7,"x",[]]}`, `{"tools":[{}]}`, `{"tools":[{"name":7}]}`,
		`{"tools":[{"name":"look","annotations":[]}]}`, `{"tools":[{"name":"look","inputSchema":7,"annotations":{"readOnlyHint":true}}],"nextCursor":{}}`,
		`{"content":null}`, `{"content":[null]}`, `{"content":{}}`, `{"content":[{}]}`, `{"content":[{"type":"image"}]}`, `{"content":[{"type":"resource"}]}`,
		`{"content":[{"type":"image","data":"%%%","mimeType":"image/png"}]}`, `{"inputRequests":{"a":{"method":"x/y"}}}`, `{"resultType":7}`, `{"isError":true}`,
		`{"protocolVersion":7}`, `{"protocolVersion":"2025-11-25","capabilities":null,"serverInfo":null}`, `{"capabilities":{"tools":[]}}`,
		`{"supportedVersions":[null],"resultType":"x"}`, `{"supportedVersions":["2026-07-28"],"capabilities":null}`}
	for _, method := range []string{"server/discover", "initialize", "tools/list", "tools/call"} {
		for _, value := range values {
			f := &fake{before: func(w http.ResponseWriter, _ *http.Request, m message) bool {
				if m.Method == method {
					reply(w, m, value)
				}
				return m.Method == method
			}}
			c := one(listen(t, f))
			c.Deadline = time.Minute
			s, _ := connect(t, c)
			for _, tl := range s.Tools() {
				if got := tl.Run(t.Context(), nil, []byte(`{}`)); len(got.Text) > 1000 {
					t.Errorf("%s answered by %s: %v", method, value, got)
				}
			}
		}
	}
}

// TestStrangeMessagesInAStreamDoNoHarm covers messages beside the answer that no honest server sends.
func TestStrangeMessagesInAStreamDoNoHarm(t *testing.T) {
	t.Parallel()
	for _, extra := range []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{"a":1},"progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[1],"progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":null}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","method":""}`, `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"1","method":"ping","params":{}}`,
	} {
		first := true
		f := &fake{}
		f.onCall = func(w http.ResponseWriter, _ *http.Request, m message) {
			if !first {
				reply(w, m, done)
				return
			}
			first = false
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", extra, m.ID, done)
		}
		s, _ := connect(t, one(listen(t, f)))
		// Either the message is ignored or the session is opened again; the result is the same.
		if got := call(t.Context(), t, s, "mcp__docs__look", `{}`); got.Text != "done" {
			t.Errorf("%s: %+v", extra, got)
		}
	}
}

// TestAServerThatDoesNotLetGoIsLeft covers a server that never answers the end of a session.
func TestAServerThatDoesNotLetGoIsLeft(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	f := &fake{before: func(_ http.ResponseWriter, r *http.Request, _ message) bool {
		if r.Method == http.MethodDelete {
			<-r.Context().Done()
			close(released)
		}
		return r.Method == http.MethodDelete
	}}
	s, _ := connect(t, one(listen(t, f)))
	s.Close()
	<-released
}
