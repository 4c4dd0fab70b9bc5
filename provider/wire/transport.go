package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// transport is the one HTTP transport of the process: connections are shared by every job in it. No environment
// variable changes it, so a proxy is never used by accident; it keeps no cookies; and as it is used without an
// http.Client, it follows no redirect, so credentials go to the configured address and nowhere else.
var transport = sync.OnceValue(func() *http.Transport {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second, Control: checkDial}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if tcp, ok := c.(*net.TCPConn); ok {
				return pooledConn{tcp}, err
			}
			return c, err
		},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		TLSHandshakeTimeout:    15 * time.Second,
		MaxIdleConns:           2048,
		MaxIdleConnsPerHost:    1024,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
})

// CloseIdle closes the connections that no request uses. A process calls it before it ends; tests call it to see that
// nothing is left.
func CloseIdle() { transport().CloseIdleConnections() }

// pooledConn sends through a buffer from a pool. Without it, each request with more than a few kilobytes would allocate
// a copy buffer of its own, which is most of the memory that a long dialog uses per call.
type pooledConn struct{ *net.TCPConn }

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// ReadFrom sends everything that r holds.
func (c pooledConn) ReadFrom(r io.Reader) (int64, error) {
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c.TCPConn}, struct{ io.Reader }{r}, *buf)
}
