package main

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"
)

type buffer = bytes.Buffer

// provider is the server. It is safe for concurrent use.
type provider struct {
	counters counters
	serial   atomic.Int64
	bodies   sync.Pool

	mu sync.Mutex
	// gate is closed to let go of the streams that are held; a new one takes its place.
	gate chan struct{}
}

func newProvider() *provider {
	return &provider{bodies: sync.Pool{New: func() any { return new(buffer) }}, gate: make(chan struct{})}
}

// counters are what GET /stats tells.
type counters struct {
	requests, held, bytes atomic.Int64
	// first is the time of the first request in nanoseconds since 1970, 0 before it.
	first atomic.Int64
}

func (c *counters) add(bytes int64) {
	c.first.CompareAndSwap(0, time.Now().UnixNano())
	c.requests.Add(1)
	c.bytes.Add(bytes)
}

func (c *counters) reset() {
	c.requests.Store(0)
	c.held.Store(0)
	c.bytes.Store(0)
	c.first.Store(0)
}

// hold waits until the streams are let go of, or until the client is gone.
func (p *provider) hold(gone <-chan struct{}) {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	p.counters.held.Add(1)
	select {
	case <-gate:
	case <-gone:
	}
}

func (p *provider) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.gate)
	p.gate = make(chan struct{})
}
