package wire

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
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/llm"
)

func TestMain(m *testing.M) {
	code := m.Run()
	CloseIdle()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// toy is the smallest format: each event is text, "END" is the finish mark and "DONE" the end of everything.
type toy struct {
	text  string
	state State
	sink  func(string) error
}

func (d *toy) Event(ev Event) error {
	switch data := string(ev.Data); data {
	case "END":
		d.state = Finished
	case "DONE":
		d.state = Done
	default:
		d.text += data
		if d.sink != nil {
			return d.sink(data)
		}
	}
	return nil
}

func (d *toy) Whole(body []byte) error {
	d.text, d.state = string(body), Done
	return nil
}

func (d *toy) State() State { return d.state }

func (d *toy) Close(err error) (llm.Response, error) {
	if err == nil && d.state == Streaming {
		err = Truncated("END")
	}
	return llm.Response{Message: llm.Message{Parts: []llm.Part{llm.TextPart(d.text)}}}, err
}

// send posts to a server that answers with handle and decodes the answer.
func send(t *testing.T, ctx context.Context, d Decoder, handle http.HandlerFunc) (llm.Response, error) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	e, err := NewEndpoint(llm.Account{BaseURL: server.URL, APIKey: "canary-key"}, "", "/chat", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	header, err := e.Header(llm.Tags{}, llm.PurposeTurn)
	if err != nil {
		t.Fatal(err)
	}
	return e.Exchange(ctx, header, Body{[]byte("{"), nil, []byte("}")}, d)
}

func events(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("data: " + text + "\n\n")
	}
	return b.String()
}

func answer(header map[string]string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, body)
	}
}

func classOf(err error) llm.Class {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Class
	}
	return ""
}

func TestARequestIsSentWholeWithItsLength(t *testing.T) {
	t.Parallel()
	_, err := send(t, t.Context(), &toy{}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if string(body) != "{}" || err != nil || r.ContentLength != 2 || r.Method != http.MethodPost || r.URL.Path != "/chat" {
			t.Errorf("%s %s with %q (length %d), error %v", r.Method, r.URL.Path, body, r.ContentLength, err)
		}
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("accept-encoding %q, want identity", got)
		}
		answer(nil, events("x", "END"))(w, r)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBodiesAreReadInPieces(t *testing.T) {
	t.Parallel()
	b := Body{[]byte("ab"), {}, []byte("cde"), []byte("f")}
	for size := 1; size < 8; size++ {
		r := b.Reader()
		var got []byte
		for {
			p := make([]byte, size)
			n, err := r.Read(p)
			got = append(got, p[:n]...)
			if err != nil {
				break
			}
		}
		if string(got) != "abcdef" || b.Size() != 6 || !bytes.Equal(b.Bytes(), got) {
			t.Errorf("%q in pieces of %d", got, size)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var other atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	t.Cleanup(target.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		_, err := send(t, t.Context(), &toy{}, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target.URL+"/?canary=1", status)
		})
		if classOf(err) != llm.ClassInvalidRequest || strings.Contains(err.Error(), "canary") {
			t.Errorf("%d: error %v", status, err)
		}
	}
	if n := other.Load(); n != 0 {
		t.Errorf("the other host got %d requests", n)
	}
}

func TestAProxyInTheEnvironmentIsIgnored(t *testing.T) {
	var proxied atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Add(1) }))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	e, err := NewEndpoint(llm.Account{BaseURL: "http://model.invalid"}, "", "/chat", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	header, err := e.Header(llm.Tags{}, llm.PurposeTurn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Exchange(t.Context(), header, nil, &toy{}); classOf(err) != llm.ClassConnection {
		t.Errorf("error %v, want a connection error", err)
	}
	if proxied.Load() != 0 {
		t.Error("the proxy got a request")
	}
}

func TestCookiesAreNotKept(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Cookies()) > 0 {
			t.Error("a cookie was sent back")
		}
		answer(map[string]string{"Set-Cookie": "a=b"}, events("END"))(w, r)
	}))
	t.Cleanup(server.Close)
	e, err := NewEndpoint(llm.Account{BaseURL: server.URL}, "", "/chat", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := e.Exchange(t.Context(), e.header, nil, &toy{}); err != nil {
			t.Error(err)
		}
	}
}

func packed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

func TestCompressedBodiesAreReadAndCutOnesAreErrors(t *testing.T) {
	t.Parallel()
	gz := map[string]string{"Content-Encoding": "gzip"}
	whole := string(packed(events("x", "END", "DONE")))
	r, err := send(t, t.Context(), &toy{}, answer(gz, whole))
	if err != nil || r.Message.Text() != "x" {
		t.Errorf("text %q, error %v", r.Message.Text(), err)
	}
	for cut := 1; cut < len(whole); cut += 3 {
		if _, err := send(t, t.Context(), &toy{}, answer(gz, whole[:cut])); classOf(err) != llm.ClassConnection {
			t.Fatalf("cut after %d of %d bytes: error %v, want a connection error", cut, len(whole), err)
		}
	}
	if _, err := send(t, t.Context(), &toy{}, answer(map[string]string{"Content-Encoding": "br"}, whole)); classOf(err) != llm.ClassMalformed {
		t.Errorf("error %v for an encoding that was not asked for", err)
	}
}

func TestABombIsBoundedAfterInflation(t *testing.T) {
	t.Parallel()
	bomb := string(packed("data: " + strings.Repeat("a", MaxEvent+1)))
	_, err := send(t, t.Context(), &toy{}, answer(map[string]string{"Content-Encoding": "gzip"}, bomb))
	if !errors.Is(err, ErrTooLarge) || classOf(err) != llm.ClassMalformed {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	_, err := send(t, t.Context(), &toy{}, answer(map[string]string{"X-Big": strings.Repeat("a", 1<<20)}, events("END")))
	if classOf(err) != llm.ClassConnection {
		t.Errorf("error %v, want a connection error", err)
	}
}

func TestOnlyTheBeginningOfAnErrorBodyIsRead(t *testing.T) {
	t.Parallel()
	_, err := send(t, t.Context(), &toy{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for {
			if _, err := w.Write(bytes.Repeat([]byte("z"), 1<<16)); err != nil {
				return
			}
		}
	})
	if classOf(err) != llm.ClassOverloaded || len(err.Error()) > 2200 {
		t.Errorf("class %q with %d bytes of text", classOf(err), len(err.Error()))
	}
}

func TestAnUnstreamedAnswerIsReadWhole(t *testing.T) {
	t.Parallel()
	r, err := send(t, t.Context(), &toy{}, answer(map[string]string{"Content-Type": "application/json; charset=utf-8"}, `{"a":1}`))
	if err != nil || r.Message.Text() != `{"a":1}` {
		t.Errorf("text %q, error %v", r.Message.Text(), err)
	}
}

func TestNothingListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := NewEndpoint(llm.Account{BaseURL: address}, "", "/chat", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Exchange(t.Context(), e.header, nil, &toy{})
	if f, ok := errors.AsType[*llm.Error](err); !ok || f.Class != llm.ClassConnection || !f.Retryable() {
		t.Errorf("error %v, want a retryable connection error", err)
	}
}

func TestTheContextEndsARequestAtEveryStage(t *testing.T) {
	t.Parallel()
	cause := errors.New("watchdog")
	for _, tt := range []struct {
		name   string
		handle func(w http.ResponseWriter, r *http.Request, reached func())
	}{
		{"before headers", func(_ http.ResponseWriter, r *http.Request, reached func()) { reached(); <-r.Context().Done() }},
		{"after headers", func(w http.ResponseWriter, r *http.Request, reached func()) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			reached()
			<-r.Context().Done()
		}},
		{"in mid-event", func(w http.ResponseWriter, r *http.Request, reached func()) {
			_, _ = io.WriteString(w, "data: a\n\ndata: {\"half")
			_ = http.NewResponseController(w).Flush()
			reached()
			<-r.Context().Done()
		}},
		{"between keep-alive comments", func(w http.ResponseWriter, r *http.Request, reached func()) {
			for n := 0; r.Context().Err() == nil; n++ {
				if _, err := io.WriteString(w, ": ping\n\n"); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				if n == 10 {
					reached()
				}
			}
		}},
		{"in an error body", func(w http.ResponseWriter, r *http.Request, reached func()) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = http.NewResponseController(w).Flush()
			reached()
			<-r.Context().Done()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			closed := make(chan struct{})
			_, err := send(t, ctx, &toy{}, func(w http.ResponseWriter, r *http.Request) {
				defer close(closed)
				_, _ = io.Copy(io.Discard, r.Body)
				tt.handle(w, r, func() { cancel(cause) })
			})
			if !errors.Is(err, cause) {
				t.Errorf("error %v, want the cause", err)
			}
			<-closed
		})
	}
}

func TestAFaultAfterTheFinishMarkDoesNotSpoilTheAnswer(t *testing.T) {
	t.Parallel()
	r, err := send(t, t.Context(), &toy{}, func(w http.ResponseWriter, r *http.Request) {
		answer(nil, events("x", "END"))(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if err != nil || r.Message.Text() != "x" {
		t.Errorf("text %q, error %v", r.Message.Text(), err)
	}
}

func TestAServerThatKeepsTheConnectionOpenIsLeftAfterAGrace(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"END", "DONE"} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			r, w := io.Pipe()
			go func() { _, _ = io.WriteString(w, events("x", last)) }()
			d := &toy{}
			err := stream(t.Context(), &http.Response{Body: r}, framing("text/event-stream", r), r, d)
			if err != nil || d.text != "x" || time.Since(began) != finishGrace {
				t.Errorf("%s: text %q, error %v after %s; want success after %s", last, d.text, err, time.Since(began), finishGrace)
			}
		})
	}
}

func TestTheConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	addresses := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		answer(nil, events("x", "END", "DONE"))(w, r)
	}))
	t.Cleanup(server.Close)
	e, err := NewEndpoint(llm.Account{BaseURL: server.URL}, "", "/chat", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := e.Exchange(t.Context(), e.header, Body{[]byte("{}")}, &toy{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(addresses) != 1 {
		t.Errorf("%d connections for 5 requests in a row", len(addresses))
	}
}

func TestASinkThatPanicsLeavesNoConnectionBehind(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	func() {
		defer func() { _ = recover() }()
		_, _ = send(t, t.Context(), &toy{sink: func(string) error { panic("sink") }}, func(w http.ResponseWriter, r *http.Request) {
			defer close(closed)
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, events("x"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}()
	<-closed
}

func TestACertificateThatDoesNotCheckOutIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request arrived") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	e, err := NewEndpoint(llm.Account{BaseURL: server.URL}, "", "/chat", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Exchange(t.Context(), e.header, nil, &toy{})
	if f, ok := errors.AsType[*llm.Error](err); !ok || f.Class != llm.ClassConnection || f.Retryable() {
		t.Errorf("error %v, want a connection error that is final", err)
	}
}

func TestTheIDOfTheRequestIsInTheError(t *testing.T) {
	t.Parallel()
	_, err := send(t, t.Context(), &toy{}, answer(map[string]string{"X-Request-Id": "req_7"}, events("x")))
	if f, ok := errors.AsType[*llm.Error](err); !ok || f.RequestID != "req_7" || f.Class != llm.ClassTruncated {
		t.Errorf("error %+v, want the id of the request", f)
	}
}

func TestALargeRequestArrivesWhole(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte("0123456789"), 100_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(body, append(append([]byte("{"), big...), '}')) {
			t.Errorf("%d bytes, error %v", len(body), err)
		}
		answer(nil, events("END", "DONE"))(w, r)
	}))
	t.Cleanup(server.Close)
	e, err := NewEndpoint(llm.Account{BaseURL: server.URL}, "", "/chat", testAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := e.Exchange(t.Context(), e.header, Body{[]byte("{"), big, []byte("}")}, &toy{}); err != nil {
			t.Error(err)
		}
	}
}
