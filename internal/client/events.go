package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// maxEvent bounds one line of a stream.
const maxEvent = 64 << 20

// silence is how long a stream may say nothing: the server sends something every 15 seconds.
const silence = time.Minute

// Events yields the events of a run after the one with the number after, each once and in order, until the event that ends
// the run. Where a connection breaks it goes on with the next one, for as long as the server can be reached again within
// Config.Retries. It ends with an error when ctx ends, and for a run that the caller may not see.
func (c *Client) Events(ctx context.Context, id string, after int64) iter.Seq2[run.Event, error] {
	return func(yield func(run.Event, error) bool) {
		seq := after
		failed := c.follow(ctx, path("runs", id, "events"), nil, func() string { return position(seq) }, func(m message) (bool, error) {
			n, err := strconv.ParseInt(m.id, 10, 64)
			if err != nil || n > seq+1 {
				return false, errGap
			}
			if n <= seq {
				return true, nil
			}
			seq = n
			kind := job.EventType(m.kind)
			return yield(run.Event{Seq: n, Type: kind, Line: m.data}, nil) && !kind.Terminal(), nil
		})
		if failed != nil {
			yield(run.Event{}, failed)
		}
	}
}

func position(seq int64) string {
	if seq == 0 {
		return ""
	}
	return strconv.FormatInt(seq, 10)
}

// EventsOf yields the events of several runs as they come, those of each run once and in order, until all have ended. after
// says how far the caller is in each of them, and may be nil.
func (c *Client) EventsOf(ctx context.Context, runs []string, after map[string]int64) iter.Seq2[wire.RunEvent, error] {
	return func(yield func(wire.RunEvent, error) bool) {
		at := map[string]int64{}
		for _, id := range runs {
			at[id] = after[id]
		}
		open := len(runs)
		from := func() string {
			places := make([]string, len(runs))
			for i, id := range runs {
				places[i] = strconv.FormatInt(at[id], 10)
			}
			return strings.Join(places, ".")
		}
		failed := c.follow(ctx, path("events"), url.Values{"run": runs}, from, func(m message) (bool, error) {
			var e wire.RunEvent
			var head struct{ Seq int64 }
			if json.Unmarshal(m.data, &e) != nil || json.Unmarshal(e.Event, &head) != nil || head.Seq > at[e.Run]+1 {
				return false, errGap
			}
			if head.Seq <= at[e.Run] {
				return true, nil
			}
			at[e.Run] = head.Seq
			if job.EventType(m.kind).Terminal() {
				open--
			}
			return yield(e, nil) && open > 0, nil
		})
		if failed != nil {
			yield(wire.RunEvent{}, failed)
		}
	}
}

// errGap is a stream that does not go on where it was asked to; the next connection asks again.
var errGap = errors.New("the stream has a gap")

// message is one server-sent event.
type message struct {
	id, kind string
	data     []byte
}

// follow reads a stream until take returns false or until the server says that there is nothing more to come, with one
// connection after another. The count of failures begins anew with each message.
func (c *Client) follow(ctx context.Context, path string, query url.Values, from func() string, take func(message) (bool, error)) error {
	failures := 0
	for {
		more, err := c.connect(ctx, path, query, from(), func(m message) (bool, error) {
			failures = 0
			return take(m)
		})
		if !more || ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		if failures++; failures > c.config.Retries {
			return &problem.Error{Kind: problem.Unavailable, Op: "GET " + path, Message: "the stream of events broke off again and again", Err: err}
		}
		if err := sleep(ctx, c.backoff(failures-1)); err != nil {
			return err
		}
	}
}

// connect reads one connection to its end. more says that there may be more to come by another one.
func (c *Client) connect(ctx context.Context, path string, query url.Values, from string, take func(message) (bool, error)) (more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := get(path, query)
	k.header = http.Header{"Accept": {wire.EventsType}}
	if from != "" {
		k.header.Set("Last-Event-ID", from)
	}
	response, err := c.do(ctx, k)
	if err != nil {
		return false, err // do has tried again already
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNoContent {
		return false, nil
	}
	watch := time.AfterFunc(silence, cancel)
	defer watch.Stop()
	lines := bufio.NewScanner(io.TeeReader(response.Body, alive{watch}))
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var m message
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) > 0 {
			m.add(line)
			continue
		}
		if m.data == nil {
			m = message{}
			continue
		}
		if on, err := take(m); !on {
			return err != nil, err
		}
		m = message{}
	}
	if err := lines.Err(); err != nil {
		return true, fmt.Errorf("read the stream: %w", err)
	}
	return true, nil
}

// alive sets the watch back when something comes.
type alive struct{ watch *time.Timer }

// Write implements io.Writer.
func (a alive) Write(p []byte) (int, error) {
	a.watch.Reset(silence)
	return len(p), nil
}

// add takes one line of a message. Lines that are comments, or of fields that are not needed, are left out.
func (m *message) add(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		m.id = string(value)
	case "event":
		m.kind = string(value)
	case "data":
		if m.data != nil {
			m.data = append(m.data, '\n')
		}
		m.data = append(m.data, value...)
	}
}
