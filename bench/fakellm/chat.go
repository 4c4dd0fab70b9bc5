package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// work is what the name of a model asks for.
type work struct {
	turns  int  // tool calls before the answer
	pieces int  // text deltas of a response
	burst  int  // events between flushes
	hold   bool // stop after the second event until POST /release
}

// parseModel reads a name such as fake-t10-c20-b1; what it does not say has the defaults of one turn and 20 pieces.
func parseModel(name string) work {
	w := work{turns: 1, pieces: 20, burst: 1}
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "fake-"), "-") {
		if len(part) < 2 {
			continue
		}
		n, err := strconv.Atoi(part[1:])
		if err != nil {
			continue
		}
		switch part[0] {
		case 't':
			w.turns = n
		case 'c':
			w.pieces = n
		case 'b':
			w.burst = max(n, 1)
		case 'h':
			w.hold = n > 0
		}
	}
	return w
}

// call is the tool call that a request is answered with: add where it is on offer, else ls, both with arguments that no
// other call of the run has.
func call(body []byte, turn int) (name, arguments string) {
	if bytes.Contains(body, []byte(`"add"`)) {
		return "add", fmt.Sprintf(`{"a":%d,"b":2}`, turn+1)
	}
	return "ls", fmt.Sprintf(`{"limit":%d}`, turn+100)
}

// text is one piece of an answer.
const text = "lorem ipsum "

func (p *provider) chat(w http.ResponseWriter, r *http.Request) {
	b, err := p.readBody(r)
	if err != nil {
		return // the client is gone
	}
	defer p.bodies.Put(b)
	body := b.Bytes()
	plan := parseModel(modelOf(body))
	turn := bytes.Count(body, []byte(`"role":"tool"`)) + bytes.Count(body, []byte(`"role": "tool"`))
	if !bytes.Contains(body, []byte(`"stream":true`)) && !bytes.Contains(body, []byte(`"stream": true`)) {
		http.Error(w, `{"error":{"message":"fakellm only streams","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	id := p.serial.Add(1)
	s := newStream(p, w, r, plan, id)
	s.delta(`{"role":"assistant","content":""}`, "null")
	for range plan.pieces {
		s.delta(`{"content":"`+text+`"}`, "null")
	}
	finish := `"stop"`
	if turn < plan.turns && bytes.Contains(body, []byte(`"tools"`)) {
		finish = `"tool_calls"`
		name, arguments := call(body, turn)
		s.call(id, name, arguments)
	}
	s.delta(`{}`, finish)
	s.event(fmt.Sprintf(`{"id":"c%d","object":"chat.completion.chunk","created":1700000000,"model":"fake","choices":[],`+
		`"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`, id))
	s.event("[DONE]")
}

// modelOf finds the model's name without decoding the body.
func modelOf(body []byte) string {
	for _, key := range []string{`"model":"`, `"model": "`} {
		if _, rest, ok := bytes.Cut(body, []byte(key)); ok {
			name, _, _ := bytes.Cut(rest, []byte{'"'})
			return string(name)
		}
	}
	return ""
}

// stream is one response on its way.
type stream struct {
	w      http.ResponseWriter
	flush  *http.ResponseController
	gone   <-chan struct{}
	p      *provider
	plan   work
	head   string
	events int
}

func newStream(p *provider, w http.ResponseWriter, r *http.Request, plan work, id int64) *stream {
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	w.Header()["Cache-Control"] = []string{"no-cache"}
	head := fmt.Sprintf(`{"id":"c%d","object":"chat.completion.chunk","created":1700000000,"model":"fake","choices":[{"index":0,"delta":`, id)
	return &stream{w: w, flush: http.NewResponseController(w), gone: r.Context().Done(), p: p, plan: plan, head: head}
}

// delta sends one chunk; both arguments are JSON.
func (s *stream) delta(delta, finish string) {
	s.event(s.head + delta + `,"finish_reason":` + finish + `}]}`)
}

// call sends a tool call in three chunks, as providers do.
func (s *stream) call(id int64, name, arguments string) {
	s.delta(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":%q,"arguments":""}}]}`, id, name), "null")
	half := len(arguments) / 2
	for _, part := range []string{arguments[:half], arguments[half:]} {
		quoted, err := json.Marshal(part)
		if err != nil {
			panic(err) // a string always has a JSON form
		}
		s.delta(`{"tool_calls":[{"index":0,"function":{"arguments":`+string(quoted)+`}}]}`, "null")
	}
}

// event writes one event. A client that is gone is not an error here: the run that lost it fails by itself.
func (s *stream) event(data string) {
	_, _ = io.WriteString(s.w, "data: "+data+"\n\n")
	s.events++
	if s.events%s.plan.burst == 0 || s.plan.hold && s.events == 2 {
		_ = s.flush.Flush()
	}
	if s.plan.hold && s.events == 2 {
		s.p.hold(s.gone)
	}
}
