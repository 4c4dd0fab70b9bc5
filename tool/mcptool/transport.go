package mcptool

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxBody bounds one message of a server, maxStream everything that it sends in answer to one request.
	maxBody   = 16 << 20
	maxStream = 32 << 20
	// maxErrorBody bounds what is read of an answer that is an error anyway.
	maxErrorBody = 64 << 10
	// maxHeader bounds the header of an answer.
	maxHeader = 64 << 10
	// maxConns bounds the connections to one server.
	maxConns = 16
	// modernEra is the first revision in which each request stands alone.
	modernEra = "2026-07-28"
)

// wire is the HTTP side of one server: it adds the headers, refuses redirects, bounds answers and remembers connections.
type wire struct {
	base    *http.Transport
	headers http.Header
	origin  string

	mu    sync.Mutex
	conns map[net.Conn]bool
	ended bool
}

// newWire returns the transport for a server. Nothing of the environment counts: no proxy, no cookies, no netrc.
func newWire(c *Config, s *Server) *wire {
	w := &wire{headers: http.Header{}, conns: map[net.Conn]bool{}, origin: originOf(s.URL)}
	for name, value := range s.Headers {
		w.headers.Set(name, value)
	}
	dial := newDialer(c.AllowPrivate).DialContext
	if c.dial != nil {
		dial = c.dial
	}
	w.base = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, _, err := net.SplitHostPort(address); err == nil && metadataHost(host) {
				return nil, checkHost(host, c.AllowPrivate)
			}
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return w.keep(conn)
		},
		TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    defaultDeadline,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    maxConns,
		MaxConnsPerHost:        maxConns,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
	return w
}

// originOf returns scheme, host and port of a URL that Check has seen.
func originOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// newDialer returns a dialer that judges each address just before it connects, after the name was resolved. What a name
// server says later cannot lead elsewhere.
func newDialer(allowPrivate bool) *net.Dialer {
	return &net.Dialer{Timeout: defaultDeadline, KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return checkDial(network, address, allowPrivate)
		}}
}

// checkDial judges one address of a host.
func checkDial(network, address string, allowPrivate bool) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return &addressError{"no TCP address"}
	}
	return checkAddress(at.Addr(), allowPrivate)
}

// keep remembers an open connection, so that drop can end it.
func (w *wire) keep(conn net.Conn) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		_ = conn.Close() // nobody will use it
		return nil, net.ErrClosed
	}
	kept := &keptConn{Conn: conn, wire: w}
	w.conns[kept] = true
	return kept, nil
}

type keptConn struct {
	net.Conn
	wire *wire
}

// Close closes and forgets the connection.
func (c *keptConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}

// drop ends every connection; with for good, new ones are refused too.
func (w *wire) drop(forGood bool) {
	w.mu.Lock()
	w.ended = w.ended || forGood
	conns := make([]net.Conn, 0, len(w.conns))
	for conn := range w.conns {
		conns = append(conns, conn)
	}
	w.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // the connection is given up
	}
	w.base.CloseIdleConnections()
}

// RoundTrip sends one request.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme+"://"+request.URL.Host != w.origin {
		return nil, &addressError{"not that of the configured server"}
	}
	if notification(request) && request.Header.Get("Mcp-Protocol-Version") >= modernEra {
		// In this revision a client sends no notifications over HTTP: closing the stream is what cancels a call.
		return accepted(request), nil
	}
	request = request.Clone(request.Context())
	for name, values := range w.headers {
		request.Header[name] = values
	}
	x, _ := request.Context().Value(exchangeKey{}).(*exchange)
	if x != nil && x.traceParent != "" {
		request.Header.Set("Traceparent", x.traceParent)
	}
	if x.cancelled(request) {
		defer x.noteTold()
	}
	response, err := w.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := w.judge(request, response); err != nil {
		return nil, err
	}
	return response, nil
}

// notification reports whether a POST carries a notification, as far as its headers say so.
func notification(request *http.Request) bool {
	return request.Method == http.MethodPost && strings.HasPrefix(request.Header.Get("Mcp-Method"), "notifications/")
}

// accepted is the answer to a notification that is not sent.
func accepted(request *http.Request) *http.Response {
	if request.Body != nil {
		_ = request.Body.Close() // it is in memory
	}
	return &http.Response{Status: "202 Accepted", StatusCode: http.StatusAccepted, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: request}
}

// judge bounds a good answer and turns a bad one into an error of ours, unless it is one of the protocol, which the SDK
// reads. It closes the body with an error.
func (w *wire) judge(request *http.Request, response *http.Response) error {
	fail := func(err error) error {
		_ = response.Body.Close() // the answer is given up
		return err
	}
	status := response.StatusCode
	switch {
	case status >= 300 && status < 400:
		return fail(&redirectError{status})
	case response.Header.Get("Content-Encoding") != "" && response.Header.Get("Content-Encoding") != "identity":
		return fail(errEncoded)
	case status < 300:
		return w.bound(request, response, fail)
	case request.Method == http.MethodDelete:
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxErrorBody), response.Body}
		return nil
	case (status == http.StatusNotFound || status == http.StatusGone) && request.Header.Get("Mcp-Session-Id") != "":
		return fail(errGone)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return fail(err)
	}
	if status >= 500 || status == http.StatusUnauthorized || status == http.StatusForbidden || !protocolError(body) {
		return fail(&statusError{status})
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), response.Body}
	return nil
}

func protocolError(body []byte) bool {
	var message struct {
		Version string          `json:"jsonrpc"`
		Error   json.RawMessage `json:"error"`
	}
	return json.Unmarshal(body, &message) == nil && message.Version == "2.0" && len(message.Error) > 0
}

// bound limits a body. A single message is read here, so that one that is too large or broken fails its own call and not
// the whole session.
func (w *wire) bound(request *http.Request, response *http.Response, fail func(error) error) error {
	x, _ := request.Context().Value(exchangeKey{}).(*exchange)
	if !strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "application/json") {
		response.Body = &boundedBody{ReadCloser: response.Body, left: maxStream, exchange: x}
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	_ = response.Body.Close() // all that is wanted has been read
	switch {
	case err != nil:
		return err
	case len(body) > maxBody:
		x.setTooLarge()
		return errTooLarge
	case !json.Valid(body):
		return errors.New("the answer is not valid JSON")
	}
	response.Body = &boundedBody{ReadCloser: io.NopCloser(bytes.NewReader(body)), left: maxBody, exchange: x}
	return nil
}

// boundedBody ends a stream that is too long, and tells the exchange when it is done with.
type boundedBody struct {
	io.ReadCloser
	left     int64
	exchange *exchange
}

// Read reads up to the bound.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.exchange.setTooLarge()
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Close ends the answer.
func (b *boundedBody) Close() error {
	err := b.ReadCloser.Close()
	b.exchange.bodyDone()
	return err
}

// exchange is one call on its way over HTTP. It travels in the context of the call.
type exchange struct {
	traceParent string
	// ended returns why the call was given up, nil while it goes on.
	ended func() error
	// told is closed when the server of an earlier revision was told that the call is given up.
	told chan struct{}
	once sync.Once

	mu       sync.Mutex
	tooLarge bool
	over     bool // the call has its answer
	idle     bool // no body is open
	cancel   context.CancelFunc
	timer    *time.Timer
}

type exchangeKey struct{}

// drainGrace is how long a stream may go on after the answer, so that its connection can be used again.
const drainGrace = time.Second

// cancelled reports whether a request comes after the end of its call: it is the notice of the cancellation.
func (x *exchange) cancelled(request *http.Request) bool {
	return x != nil && request.Method == http.MethodPost && x.ended() != nil && request.Context().Err() == nil
}

func (x *exchange) noteTold() { x.once.Do(func() { close(x.told) }) }

func (x *exchange) setTooLarge() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tooLarge = true
}

func (x *exchange) wasTooLarge() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tooLarge
}

// bodyDone notes that the answer was read to its end or given up.
func (x *exchange) bodyDone() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.idle = true
	if x.over {
		x.end()
	}
}

// finish is called when the call has returned. A stream that is still open then is ended soon.
func (x *exchange) finish(now bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.idle || now {
		x.end()
		return
	}
	x.timer = time.AfterFunc(drainGrace, x.cancel)
}

func (x *exchange) end() {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.cancel()
}
