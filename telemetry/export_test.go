package telemetry_test

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a collector that keeps what it gets.
type receiver struct {
	*httptest.Server
	// answer, if set, answers a request.
	answer func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	var body io.Reader = request.Body
	if request.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.requests = append(r.requests, request)
	r.bodies = append(r.bodies, data)
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(w, request)
	}
}

// got returns the bodies that went to a path.
func (r *receiver) got(path string) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var bodies [][]byte
	for i, request := range r.requests {
		if request.URL.Path == path {
			bodies = append(bodies, r.bodies[i])
		}
	}
	return bodies
}

// everything is all that was sent, as one text.
func (r *receiver) everything() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	for i := range r.bodies {
		all.Write(r.bodies[i])
		for key, values := range r.requests[i].Header {
			all.WriteString(key + strings.Join(values, " "))
		}
	}
	return all.String()
}

// span is a span as it arrived.
type span struct {
	trace, id, parent, name, message string
	kind, status                     uint64
	start, end                       uint64
	attributes                       map[string]any
}

// fields reads a protobuf message: the tests have a reader of their own, so that writer and reader cannot err alike.
func fields(t *testing.T, data []byte) map[int][]any {
	t.Helper()
	all := map[int][]any{}
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			t.Fatalf("no tag in % x", data)
		}
		data = data[n:]
		field := int(tag >> 3)
		switch tag & 7 {
		case 0:
			v, n := binary.Uvarint(data)
			data = data[n:]
			all[field] = append(all[field], v)
		case 1:
			all[field] = append(all[field], binary.LittleEndian.Uint64(data))
			data = data[8:]
		case 2:
			size, n := binary.Uvarint(data)
			all[field] = append(all[field], data[n:n+int(size)])
			data = data[n+int(size):]
		case 5:
			all[field] = append(all[field], uint64(binary.LittleEndian.Uint32(data)))
			data = data[4:]
		default:
			t.Fatalf("wire type %d", tag&7)
		}
	}
	return all
}

func text(all map[int][]any, field int) string {
	if len(all[field]) == 0 {
		return ""
	}
	return string(all[field][0].([]byte))
}

func whole(all map[int][]any, field int) uint64 {
	if len(all[field]) == 0 {
		return 0
	}
	return all[field][0].(uint64)
}

func attributes(t *testing.T, pairs []any) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, p := range pairs {
		pair := fields(t, p.([]byte))
		key := text(pair, 1)
		if _, twice := all[key]; twice {
			t.Errorf("the attribute %s is there twice", key)
		}
		for kind, v := range fields(t, pair[2][0].([]byte)) {
			switch kind {
			case 1:
				all[key] = string(v[0].([]byte))
			case 2:
				all[key] = v[0].(uint64) == 1
			case 3:
				all[key] = int64(v[0].(uint64))
			case 4:
				all[key] = math.Float64frombits(v[0].(uint64))
			case 5:
				var words []string
				for _, item := range fields(t, v[0].([]byte))[1] {
					words = append(words, text(fields(t, item.([]byte)), 1))
				}
				all[key] = strings.Join(words, ",")
			default:
				t.Errorf("%s has a value of kind %d", key, kind)
			}
		}
	}
	return all
}

// items returns the spans or metrics of requests.
func items(t *testing.T, bodies [][]byte) []map[int][]any {
	t.Helper()
	var all []map[int][]any
	for _, body := range bodies {
		for _, resource := range fields(t, body)[1] {
			for _, scope := range fields(t, resource.([]byte))[2] {
				for _, item := range fields(t, scope.([]byte))[2] {
					all = append(all, fields(t, item.([]byte)))
				}
			}
		}
	}
	return all
}

func (r *receiver) spans(t *testing.T) map[string]*span {
	t.Helper()
	all := map[string]*span{}
	for _, item := range items(t, r.got("/v1/traces")) {
		s := &span{trace: hex.EncodeToString(item[1][0].([]byte)), id: hex.EncodeToString(item[2][0].([]byte)), name: text(item, 5),
			kind: whole(item, 6), start: whole(item, 7), end: whole(item, 8), attributes: attributes(t, item[9])}
		if len(item[4]) > 0 {
			s.parent = hex.EncodeToString(item[4][0].([]byte))
		}
		if len(item[15]) > 0 {
			status := fields(t, item[15][0].([]byte))
			s.status, s.message = whole(status, 3), text(status, 2)
		}
		if all[s.id] != nil {
			t.Errorf("two spans have the id %s: %s and %s", s.id, s.name, all[s.id].name)
		}
		all[s.id] = s
	}
	return all
}

// point is one data point.
type point struct {
	attributes         map[string]any
	value, sum         float64
	count, temporality uint64
	buckets            []uint64
}

func (r *receiver) metrics(t *testing.T) map[string][]point {
	t.Helper()
	all := map[string][]point{}
	for _, item := range items(t, r.got("/v1/metrics")) {
		name, kind, labels := text(item, 1), 7, 7
		if len(item[9]) > 0 {
			kind, labels = 9, 9
		}
		data := fields(t, item[kind][0].([]byte))
		for _, d := range data[1] {
			f := fields(t, d.([]byte))
			p := point{attributes: attributes(t, f[labels]), temporality: whole(data, 2)}
			if kind == 9 {
				p.count, p.sum = whole(f, 4), math.Float64frombits(whole(f, 5))
				for packed := f[6][0].([]byte); len(packed) > 0; packed = packed[8:] {
					p.buckets = append(p.buckets, binary.LittleEndian.Uint64(packed))
				}
			} else if len(f[4]) > 0 {
				p.value = math.Float64frombits(whole(f, 4))
			} else {
				p.value = float64(int64(whole(f, 6)))
			}
			all[name] = append(all[name], p)
		}
	}
	return all
}

// environment returns a Getenv.
func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// with returns the environment of an exporter to r, with further variables as name, value, ….
func (r *receiver) with(more ...string) func(string) string {
	pairs := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL}
	for i := 0; i < len(more); i += 2 {
		pairs[more[i]] = more[i+1]
	}
	return environment(pairs)
}

// opened returns an exporter that must be one.
func opened(t *testing.T, getenv func(string) string, warn func(string)) *telemetry.Exporter {
	t.Helper()
	e := telemetry.Open(telemetry.Config{Getenv: getenv, Version: "1.2.3", Warn: warn})
	if e == nil {
		t.Fatal("no exporter for an environment that names an endpoint")
	}
	t.Cleanup(e.Close)
	return e
}

// events is the stream of a job under construction; each event is a millisecond after the one before.
type events struct {
	at  time.Time
	seq int64
	all []*job.Event
}

func newEvents() *events {
	e := &events{at: time.Unix(1_700_000_000, 0)}
	return e.add(&job.StartedData{Agent: job.AgentTag{ID: "reader", Version: "7"}, Model: job.ModelTag{Provider: "mistral", ID: "small-1"}})
}

func (e *events) add(data any) *events { return e.addIn("", data) }

func (e *events) addIn(parent string, data any) *events {
	e.at = e.at.Add(time.Millisecond)
	e.seq++
	e.all = append(e.all, &job.Event{Seq: e.seq, At: e.at, JobID: "job-1", ParentCallID: parent, Data: data})
	return e
}

// span adds a settled span that began before milliseconds ago.
func (e *events) span(name, status string, before float64, attributes map[string]any) *events {
	start := e.at.Add(-time.Duration(before * float64(time.Millisecond)))
	return e.add(&job.SpanData{ID: "x" + string(rune('a'+e.seq)), Name: name, Status: status, StartUnixNano: start.UnixNano(), DurationMS: before, Attributes: attributes})
}

func (e *events) usage(id string, tokens llm.Usage, change func(*job.CallUsage)) *events {
	call := job.CallUsage{ID: id, Purpose: llm.PurposeTurn, Model: "small-1", Tokens: tokens, StartUnixNano: e.at.UnixNano(), DurationMS: 1, Stop: llm.StopEnd}
	if change != nil {
		change(&call)
	}
	return e.add(&job.UsageData{Call: call})
}

// replay records events with an exporter and closes it.
func replay(e *telemetry.Exporter, t telemetry.Trace, all *events, redact func(string) string) {
	recorder := e.NewRecorder(t, redact)
	for _, event := range all.all {
		recorder.Observe(event)
	}
	e.Close()
}

// named returns the only span with a name.
func named(t *testing.T, spans map[string]*span, name string) *span {
	t.Helper()
	var found *span
	for _, s := range spans {
		if s.name == name {
			if found != nil {
				t.Fatalf("there are two spans %q", name)
			}
			found = s
		}
	}
	if found == nil {
		var names []string
		for _, s := range spans {
			names = append(names, s.name)
		}
		t.Fatalf("there is no span %q among %q", name, names)
	}
	return found
}
