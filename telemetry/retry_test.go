package telemetry

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// exchange answers requests in place of the network.
type exchange func(r *http.Request) (*http.Response, error)

func (f exchange) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, header http.Header) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(""))}
}

// openWith returns an exporter of spans whose requests are answered by f.
func openWith(t *testing.T, f exchange) *Exporter {
	t.Helper()
	pairs := map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector.invalid/v1/traces", "OTEL_EXPORTER_OTLP_TIMEOUT": "60000"}
	e := Open(Config{Getenv: func(name string) string { return pairs[name] }})
	e.client.Transport = f
	return e
}

func TestFailedRequestsAreRepeatedWithPauses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers []func() (*http.Response, error)
		pauses  []time.Duration
		sent    int64
	}{
		"it recovers": {[]func() (*http.Response, error){
			func() (*http.Response, error) { return nil, errors.New("connection refused") },
			func() (*http.Response, error) { return answer(503, nil), nil },
			func() (*http.Response, error) { return answer(200, nil), nil },
		}, []time.Duration{500 * time.Millisecond, time.Second}, 1},
		"it says how long to wait": {[]func() (*http.Response, error){
			func() (*http.Response, error) { return answer(429, http.Header{"Retry-After": {"7"}}), nil },
			func() (*http.Response, error) { return answer(200, nil), nil },
		}, []time.Duration{7 * time.Second}, 1},
		"it never recovers": {[]func() (*http.Response, error){
			func() (*http.Response, error) { return answer(502, nil), nil },
		}, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, 0},
		"it wants more time than there is": {[]func() (*http.Response, error){
			func() (*http.Response, error) { return answer(429, http.Header{"Retry-After": {"3600"}}), nil },
		}, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			e := openWith(t, func(*http.Request) (*http.Response, error) {
				at = append(at, time.Now())
				return tc.answers[min(len(at), len(tc.answers))-1]()
			})
			e.add([]byte{})
			<-time.After(2 * time.Minute) // of the bubble's clock
			synctest.Wait()
			var pauses []time.Duration
			for i := range at[1:] {
				pauses = append(pauses, at[i+1].Sub(at[i]))
			}
			if len(pauses) != len(tc.pauses) {
				t.Fatalf("%s: pauses %v, want %v", name, pauses, tc.pauses)
			}
			for i := range pauses {
				if pauses[i] != tc.pauses[i] {
					t.Errorf("%s: pauses %v, want %v", name, pauses, tc.pauses)
				}
			}
			if s := e.Stats(); s.Sent != tc.sent || s.Sent+s.Dropped != 1 {
				t.Errorf("%s: %+v", name, s)
			}
			e.Close()
		})
	}
}

func TestClosingTakesTwoSecondsAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := openWith(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		e.add([]byte{})
		start := time.Now()
		e.Close()
		if took := time.Since(start); took != FlushTimeout {
			t.Errorf("closing with a receiver that does not answer took %s", took)
		}
		e.add([]byte{})
		if s := e.Stats(); s.Dropped != 2 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestClosingEndsAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		e := openWith(t, func(*http.Request) (*http.Response, error) {
			tries++
			return answer(503, http.Header{"Retry-After": {"30"}}), nil
		})
		e.add([]byte{})
		<-time.After(6 * time.Second) // the first try was made, the pause has begun
		start := time.Now()
		e.Close()
		if took := time.Since(start); took != 0 || tries != 2 {
			t.Errorf("closing took %s, %d tries", took, tries)
		}
	})
}

func TestSpansAreSentWhileAJobRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		e := openWith(t, func(*http.Request) (*http.Response, error) { n++; return answer(200, nil), nil })
		e.add([]byte{})
		<-time.After(spanInterval)
		synctest.Wait()
		if n != 1 {
			t.Errorf("%d requests after the interval", n)
		}
		for range batchSize {
			e.add([]byte{})
		}
		synctest.Wait()
		if n != 2 {
			t.Errorf("%d requests after a whole batch", n)
		}
		e.Close()
	})
}

func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	m, of := newMeter(false, time.Now()), counter("c", "1", "Counts.")
	for i := range 3 * maxSeries {
		labels := of.labels()
		labels.int("n", int64(i))
		m.add(of, labels, 1)
	}
	total := 0.0
	for _, s := range m.series {
		total += s.total
	}
	if len(m.series) > maxSeries+1 || total != 3*maxSeries {
		t.Errorf("%d series with %g in all", len(m.series), total)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x0a\x08\x08\x01\x12\x04full"))
	f.Add([]byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("\x09\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, why := rejected(data); len(why) > maxText || n != 0 && len(data) < 3 {
			t.Errorf("%d, %q", n, why)
		}
	})
}
