package mcptool_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hozo-run/hozo/tool/mcptool"
)

// pipes is a listener in memory. Inside of a synctest bubble everything that waits on it waits in fake time.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.ended) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inMemory serves a handler in memory and returns a configuration that reaches it.
func inMemory(t *testing.T, h http.Handler, change ...func(*mcptool.Server)) mcptool.Config {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
	server := &http.Server{Handler: h}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_ = server.Serve(p) // ends with ErrServerClosed
	}()
	t.Cleanup(func() {
		_ = server.Close() // open connections are cut
		_ = p.Close()
		<-finished
	})
	c := one("http://mcp.example/mcp", change...)
	c.SetDial(p.dial)
	return c
}

// refusing wraps a dialer that fails, as one does to whom nobody listens, once down is set.
func refusing(dial func(context.Context, string, string) (net.Conn, error), down *atomic.Bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if down.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return dial(ctx, network, address)
	}
}
