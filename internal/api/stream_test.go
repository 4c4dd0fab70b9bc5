package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api"
	"github.com/hozo-run/hozo/internal/client"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

// cutting dials connections that end after some bytes, as a network does.
type cutting struct {
	after int64
	cuts  atomic.Int64
}

func (c *cutting) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, left: c.after, cuts: &c.cuts}, nil
}

type cutConn struct {
	net.Conn
	left int64
	cuts *atomic.Int64
}

func (c *cutConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.cuts.Add(1)
		return 0, errors.Join(errors.New("the cable was pulled"), c.Close())
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// TestManySubscribersSeeEveryEventOnce has ten subscribers for each of many streaming runs, whose connections break all the
// time. HOZO_SUBSCRIBED_RUNS=100 is the full size.
func TestManySubscribersSeeEveryEventOnce(t *testing.T) {
	t.Parallel()
	runs := 10
	if n, err := strconv.Atoi(os.Getenv("HOZO_SUBSCRIBED_RUNS")); err == nil {
		runs = n
	}
	const subscribers, events = 10, 60
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		cable := &cutting{after: 3000}
		transport := &http.Transport{DialContext: cable.DialContext, DisableKeepAlives: true}
		t.Cleanup(transport.CloseIdleConnections)
		c, err := client.New(client.Config{
			URL: w.server.URL, Key: w.root.withKey(access.RunsRead).key, HTTP: &http.Client{Transport: transport}, Retries: 50, Wait: time.Millisecond,
		})
		must(t, err)
		var all sync.WaitGroup
		faults := make(chan error, runs*subscribers)
		var attached sync.WaitGroup
		for range runs {
			made, recorder := w.running(access.DefaultTenant, "")
			for range subscribers {
				attached.Add(1)
				all.Go(func() { faults <- subscribe(t.Context(), c, made.ID, events, &attached) })
			}
			all.Go(func() {
				report(t, recorder, made.ID, 1, 1)
				attached.Wait() // then everybody has seen an event while the run goes on
				report(t, recorder, made.ID, 2, events-1)
				finish(t, recorder)
			})
		}
		all.Wait()
		close(faults)
		for err := range faults {
			if err != nil {
				t.Error(err)
			}
		}
		if cable.cuts.Load() < int64(runs*subscribers) {
			t.Errorf("only %d connections broke", cable.cuts.Load())
		}
	})
}

// subscribe reads a run to its end and says what was wrong with the order.
func subscribe(ctx context.Context, c *client.Client, id string, events int64, attached *sync.WaitGroup) error {
	var seq int64
	for e, err := range c.Events(ctx, id, 0) {
		if err != nil {
			return fmt.Errorf("after event %d: %w", seq, err)
		}
		if e.Seq != seq+1 {
			return fmt.Errorf("event %d after %d", e.Seq, seq)
		}
		seq++
		if seq == 1 {
			attached.Done()
		}
	}
	if seq != events {
		return fmt.Errorf("%d events in place of %d", seq, events)
	}
	return nil
}

// lines reads a stream by hand until it ends or until enough lines begin with a prefix.
func lines(t *testing.T, body *bufio.Scanner, prefix string, enough int) []string {
	t.Helper()
	var found []string
	for len(found) < enough && body.Scan() {
		if strings.HasPrefix(body.Text(), prefix) {
			found = append(found, body.Text())
		}
	}
	return found
}

func (p person) open(path string, headers ...string) (*http.Response, *bufio.Scanner) {
	p.w.t.Helper()
	r := p.sign(p.w.request("GET", path, nil))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	must(p.w.t, err)
	p.w.t.Cleanup(func() { response.Body.Close() })
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(nil, 1<<20)
	return response, scanner
}

func TestStreamOfARun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		made, recorder := w.running(access.DefaultTenant, "")
		report(t, recorder, made.ID, 1, 4)
		finish(t, recorder)
		path := "/api/v1/runs/" + made.ID + "/events"

		response, body := w.root.open(path)
		if got := response.Header; got.Get("Content-Type") != "text/event-stream" || got.Get("Cache-Control") != "no-store" || got.Get("X-Accel-Buffering") != "no" {
			t.Errorf("headers %v", got)
		}
		var whole []string
		for body.Scan() {
			whole = append(whole, body.Text())
		}
		text := strings.Join(whole, "\n")
		if !strings.HasPrefix(text, "retry: 1000\n") || strings.Count(text, "\nid: ") != 5 || !strings.Contains(text, "id: 5\nevent: job.completed\ndata: {\"seq\":5,") {
			t.Errorf("the stream is %s", text)
		}

		_, body = w.root.open(path+"?after=1", "Last-Event-ID", "3")
		if got := lines(t, body, "id: ", 10); strings.Join(got, " ") != "id: 4 id: 5" {
			t.Errorf("after 3 came %v", got)
		}
		_, body = w.root.open(path + "?after=4")
		if got := lines(t, body, "id: ", 10); strings.Join(got, " ") != "id: 5" {
			t.Errorf("after 4 came %v", got)
		}
		for id, status := range map[string]int{
			"5": http.StatusNoContent, "6": http.StatusNotFound, "9223372036854775807": http.StatusNotFound,
			"9223372036854775808": http.StatusBadRequest, "-1": http.StatusBadRequest, "run_x:3": http.StatusBadRequest,
		} {
			if got := w.root.do("GET", path, nil, "Last-Event-ID", id); got.StatusCode != status {
				t.Errorf("after %s: %d in place of %d: %s", id, got.StatusCode, status, got.body)
			}
		}
	})
}

func TestStreamOfSeveralRuns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		a, first := w.running(access.DefaultTenant, "")
		b, second := w.running(access.DefaultTenant, "")
		report(t, first, a.ID, 1, 3)
		report(t, second, b.ID, 1, 2)
		path := "/api/v1/events?run=" + a.ID + "&run=" + b.ID

		_, body := w.root.open(path)
		got := lines(t, body, "id: ", 5)
		if got[4] != "id: 3.2" {
			t.Errorf("the places are %v", got)
		}
		finish(t, first)
		if got := lines(t, body, "id: ", 1); got[0] != "id: 4.2" {
			t.Errorf("the place is %v", got)
		}
		finish(t, second)
		if got := lines(t, body, "data: ", 10); len(got) != 2 || !strings.HasPrefix(got[1], `data: {"run":"`+b.ID+`","event":{"seq":3,`) {
			t.Errorf("then came %v", got)
		}
		_, body = w.root.open(path, "Last-Event-ID", "4.1")
		if got := lines(t, body, "id: ", 10); strings.Join(got, " ") != "id: 4.2 id: 4.3" {
			t.Errorf("after 4.1 came %v", got)
		}
		for id, status := range map[string]int{"4.3": http.StatusNoContent, "4": http.StatusBadRequest, "1.1.1": http.StatusBadRequest, "1.99": http.StatusNotFound} {
			if got := w.root.do("GET", path, nil, "Last-Event-ID", id); got.StatusCode != status {
				t.Errorf("after %s: %d in place of %d: %s", id, got.StatusCode, status, got.body)
			}
		}
		if got := w.root.do("GET", path+"&run=nowhere", nil); got.StatusCode != http.StatusNotFound {
			t.Errorf("with a run that is not there: %d", got.StatusCode)
		}
	})
}

func TestSilentStreamsArePinged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db, func(c *api.Config, _ *access.Config) { c.Ping = time.Millisecond })
		made, recorder := w.running(access.DefaultTenant, "")
		report(t, recorder, made.ID, 1, 1)
		_, body := w.root.open("/api/v1/runs/" + made.ID + "/events")
		if got := lines(t, body, ": ping", 3); len(got) != 3 {
			t.Errorf("pings %v", got)
		}
		recorder.Abandon()
	})
}

// TestSlowReadersAreCutOffAndComeBack has a reader that takes nothing while a run says more than fits into any buffer.
func TestSlowReadersAreCutOffAndComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t, storetest.SQLite(t)), func(c *api.Config, _ *access.Config) { c.WriteTimeout = 50 * time.Millisecond })
	made, recorder := w.running(access.DefaultTenant, "")
	const many = 300
	large := &job.NoticeData{Message: strings.Repeat("a long line ", 5000)}
	for seq := int64(1); seq <= many; seq++ {
		must(t, recorder.Event(job.NewEvent(seq, time.UnixMilli(1_700_000_000_000), made.ID, "", large)))
	}
	finish(t, recorder)
	path := "/api/v1/runs/" + made.ID + "/events"
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.server.URL, "http://"))
	must(t, err)
	defer conn.Close()
	r := w.root.sign(w.request("GET", path, nil))
	must(t, r.Write(conn))
	waitFor(t, func() bool { return w.handler.Streams() == 1 })
	waitFor(t, func() bool { return w.handler.Streams() == 0 }) // nothing was read, and the handler has ended
	body := bufio.NewScanner(conn)
	body.Buffer(nil, 1<<20)
	ids := lines(t, body, "id: ", many+1)
	if len(ids) == 0 || len(ids) > many {
		t.Fatalf("the reader got %d events before it was cut off", len(ids))
	}
	for i := 0; len(ids) < many+1 && i < many; i++ { // a busy machine may cut off a reader that hurries, too
		_, rest := w.root.open(path, "Last-Event-ID", strings.TrimPrefix(ids[len(ids)-1], "id: "))
		ids = append(ids, lines(t, rest, "id: ", many+1)...)
	}
	for i, id := range ids {
		if id != fmt.Sprintf("id: %d", i+1) {
			t.Fatalf("event %d is %q", i+1, id)
		}
	}
	if len(ids) != many+1 {
		t.Errorf("%d events in all", len(ids))
	}
}

// waitFor polls a condition; the deadline of the test bounds it.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it did not happen")
		}
	}
}

func TestDrainEndsStreamsWithoutEndingThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		made, recorder := w.running(access.DefaultTenant, "")
		report(t, recorder, made.ID, 1, 2)
		_, body := w.root.open("/api/v1/runs/" + made.ID + "/events")
		lines(t, body, "id: 2", 1)
		w.handler.Drain()
		if got := lines(t, body, "event: job.", 1); got != nil {
			t.Errorf("the stream ended with %v", got)
		}
		if got := w.send(w.request("GET", "/readyz", nil)); got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("readyz answers %d", got.StatusCode)
		}
		recorder.Abandon()
	})
}

func TestEventsOfSeveralRunsThroughTheClient(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newWorld(t, db)
		cable := &cutting{after: 2500}
		c, err := client.New(client.Config{
			URL: w.server.URL, Key: w.root.withKey(access.RunsRead).key, Retries: 50, Wait: time.Millisecond,
			HTTP: &http.Client{Transport: &http.Transport{DialContext: cable.DialContext, DisableKeepAlives: true}},
		})
		must(t, err)
		var ids []string
		for range 5 {
			made, recorder := w.running(access.DefaultTenant, "")
			report(t, recorder, made.ID, 1, 20)
			finish(t, recorder)
			ids = append(ids, made.ID)
		}
		seen := map[string]int{}
		for e, err := range c.EventsOf(t.Context(), ids, map[string]int64{ids[0]: 15}) {
			must(t, err)
			seen[e.Run]++
			if !strings.HasPrefix(string(e.Event), fmt.Sprintf(`{"seq":%d,`, seen[e.Run]+map[string]int{ids[0]: 15}[e.Run])) {
				t.Fatalf("event %d of %s is %s", seen[e.Run], e.Run, e.Event)
			}
		}
		for i, id := range ids {
			if want := 21 - map[int]int{0: 15}[i]; seen[id] != want {
				t.Errorf("%d events of run %d in place of %d", seen[id], i, want)
			}
		}
		if cable.cuts.Load() == 0 {
			t.Error("no connection broke")
		}
	})
}
