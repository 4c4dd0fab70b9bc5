package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

const (
	// maxQueued and maxQueuedBytes bound what waits to be sent; what comes on top is dropped and counted.
	maxQueued      = 2048
	maxQueuedBytes = 8 << 20
	// batchSize is how many spans are sent at once.
	batchSize = 512
	// spanInterval and metricInterval are how often spans and metrics are sent while jobs run.
	spanInterval   = 5 * time.Second
	metricInterval = time.Minute
	// maxTries bounds how often one request is sent; firstPause is the wait before the second try, and doubles.
	maxTries   = 4
	firstPause = 500 * time.Millisecond
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 64 << 10
)

// newClient returns a client that follows no redirect: the headers hold credentials for one address.
func newClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 4, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// add queues an encoded span. It never waits for the network.
func (e *Exporter) add(encoded []byte) {
	e.mu.Lock()
	select {
	case <-e.closing:
		e.stats.Dropped++
		e.mu.Unlock()
		return
	default:
	}
	if len(e.queue) >= maxQueued || e.size+len(encoded) > maxQueuedBytes {
		e.stats.Dropped++
		e.mu.Unlock()
		return
	}
	e.queue = append(e.queue, encoded)
	e.size += len(encoded)
	full := len(e.queue) >= batchSize
	e.mu.Unlock()
	if full {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// take removes the next batch from the queue.
func (e *Exporter) take() [][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	batch := e.queue
	if len(batch) > batchSize {
		batch = batch[:batchSize:batchSize]
		e.queue = append([][]byte(nil), e.queue[batchSize:]...)
	} else {
		e.queue = nil
	}
	for _, s := range batch {
		e.size -= len(s)
	}
	return batch
}

// work sends until the exporter is closed, and then what is left.
func (e *Exporter) work(ctx context.Context) {
	defer close(e.done)
	spans, metrics := time.NewTicker(spanInterval), time.NewTicker(metricInterval)
	defer spans.Stop()
	defer metrics.Stop()
	for {
		select {
		case <-e.wake:
			e.sendSpans(ctx)
		case <-spans.C:
			e.sendSpans(ctx)
		case <-metrics.C:
			e.sendMetrics(ctx)
			e.report()
		case <-e.closing:
			var both sync.WaitGroup
			both.Go(func() { e.sendSpans(ctx) })
			both.Go(func() { e.sendMetrics(ctx) })
			both.Wait()
			return
		}
	}
}

func (e *Exporter) sendSpans(ctx context.Context) {
	for batch := e.take(); len(batch) > 0; batch = e.take() {
		lost, err := e.post(ctx, e.settings.traces, envelope(e.resource, e.scope, e.settings.names.schemaURL, batch))
		if err != nil && lost == 0 {
			lost = int64(len(batch))
		}
		lost = min(lost, int64(len(batch)))
		e.count(err, func(s *Stats) {
			s.Sent += int64(len(batch)) - lost
			s.Dropped += lost
		})
	}
}

func (e *Exporter) sendMetrics(ctx context.Context) {
	if e.settings.metrics == nil {
		return
	}
	items := e.meter.collect(time.Now())
	if len(items) == 0 {
		return
	}
	_, err := e.post(ctx, e.settings.metrics, envelope(e.resource, e.scope, e.settings.names.schemaURL, items))
	e.count(err, func(s *Stats) {
		if err != nil {
			s.FailedMetricReports++
			return
		}
		s.MetricReports++
	})
}

func (e *Exporter) count(err error, change func(*Stats)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.stats)
	if err != nil && e.problem == "" {
		e.problem = err.Error()
	}
}

// isClosing reports whether Close was called.
func (e *Exporter) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// post sends one request until it is taken, refused for good or out of time. An exporter that is being closed tries once.
// With an error lost is how many items the receiver says it did not take, 0 if it took none. The error holds no credential.
func (e *Exporter) post(ctx context.Context, to *endpoint, body []byte) (lost int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, to.timeout)
	defer cancel()
	if to.gzip {
		body = compress(body)
	}
	pause := firstPause
	for try := 1; ; try++ {
		answer, wait, err := e.once(ctx, to, body)
		if err == nil {
			lost, why := rejected(answer)
			if lost > 0 {
				return lost, fmt.Errorf("%s refused some of it: %s", to.shown, why)
			}
			return 0, nil
		}
		if wait < 0 || try == maxTries || e.isClosing() || ctx.Err() != nil {
			return 0, err
		}
		timer := time.NewTimer(max(wait, pause))
		pause *= 2
		select {
		case <-timer.C:
		case <-e.closing:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return 0, err
		}
	}
}

// once sends one request. wait is negative if trying again is useless, else how long the receiver wants to be left alone.
func (e *Exporter) once(ctx context.Context, to *endpoint, body []byte) (answer []byte, wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url, bytes.NewReader(body))
	if err != nil {
		return nil, -1, fmt.Errorf("%s is no address to send to", to.shown)
	}
	request.Header = to.headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "hozo-telemetry")
	if to.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := e.client.Do(request)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // without the address, which may hold credentials
		}
		return nil, 0, fmt.Errorf("%s: %w", to.shown, err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway, status == http.StatusServiceUnavailable,
		status == http.StatusGatewayTimeout:
		seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16) // the other form, a date, counts as absent
		return nil, time.Duration(seconds) * time.Second, fmt.Errorf("%s answered with status %d", to.shown, status)
	case status/100 != 2:
		return nil, -1, fmt.Errorf("%s answered with status %d", to.shown, status)
	case err != nil:
		return nil, 0, fmt.Errorf("%s: %w", to.shown, err)
	}
	return answer, 0, nil
}

func compress(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
