package wire

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// transport is the one HTTP transport of the process: connections are shared by every job in it. No environment
// variable changes it, so a proxy is never used by accident; it keeps no cookies; and as it is used without an
// http.Client, it follows no redirect, so credentials go to the configured address and nowhere else.
var transport = sync.OnceValue(func() *http.Transport {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
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
