package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/anthropic"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
)

// TestSmokeFailuresBrokenProviderResponses drives a whole job against an HTTP server that breaks its responses in one way each, on
// each wire. Whatever the server does, the job ends rightly, never as completed with a cut answer, and never with more
// than six requests for one broken reply.
func TestSmokeFailuresBrokenProviderResponses(t *testing.T) {
	t.Parallel()
	for _, wire := range []dialect{chatDialect, responsesDialect, messagesDialect, googleDialect, converseDialect} {
		for _, f := range slices.Concat(wireFaults, wire.faults) {
			if f.only != "" && f.only != wire.api {
				continue
			}
			t.Run(wire.api+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				server := newFaultServer(t, wire, f.replies)
				events, outcome := runJobOver(t, wire, server, f.overlay)
				checkStream(t, events, outcome)
				if f.reason == "" {
					if outcome.Completed == nil || outcome.Completed.Answer != wholeAnswer {
						t.Errorf("outcome = %+v %+v", outcome.Completed, outcome.Failed)
					}
				} else {
					wantFailure(t, outcome, f.reason, f.code)
				}
				if got := server.count(); got != f.requests {
					t.Errorf("%d requests, want %d", got, f.requests)
				}
			})
		}
	}
}

const wholeAnswer = "lorem ipsum dolor sit amet"

// reply writes one response; the dialect puts it into the words of its wire.
type reply func(w *faultWriter)

type wireFault struct {
	name    string
	only    string // the api it concerns; "" is all
	overlay string
	// replies answer the requests in order; the last one answers all that follow.
	replies  []reply
	reason   job.Reason // "" completes with wholeAnswer
	code     string
	requests int
}

var whole reply = func(w *faultWriter) { w.text(wholeAnswer); w.finish("stop") }

var wireFaults = []wireFault{
	{name: "01 the stream ends in mid-text", replies: []reply{func(w *faultWriter) { w.text("lorem ipsum") }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "01b the stream ends in mid-text once", replies: []reply{func(w *faultWriter) { w.text("lorem ipsum") }, whole}, requests: 2},
	{name: "02 the connection is cut in mid-text", replies: []reply{func(w *faultWriter) { w.text("lorem ipsum"); w.cut() }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "03 the stream ends in mid tool arguments", replies: []reply{func(w *faultWriter) { w.openCall("write", `{"path":"a.txt","con`) }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "04 the stream stalls with the socket open", overlay: `{"limits":{"timeoutSec":60,"idleTimeoutSec":0.2}}`,
		replies: []reply{func(w *faultWriter) { w.text("lorem ipsum"); w.stall() }}, reason: job.ReasonTimeout, code: job.CodeStalled, requests: 4},
	{name: "04b only keep-alive comments come", overlay: `{"limits":{"timeoutSec":60,"idleTimeoutSec":0.2}}`,
		replies: []reply{func(w *faultWriter) { w.text("lorem"); w.comments() }}, reason: job.ReasonTimeout, code: job.CodeStalled, requests: 4},
	{name: "04c nothing comes, not even headers", overlay: `{"limits":{"timeoutSec":60,"idleTimeoutSec":0.2}}`,
		replies: []reply{func(w *faultWriter) { w.stall() }}, reason: job.ReasonTimeout, code: job.CodeStalled, requests: 4},
	{name: "05 429 twice with retry-after", replies: []reply{status(429, "retry-after: 0.2"), status(429, "retry-after: 0.2"), whole}, requests: 3},
	{name: "06 529 twice", replies: []reply{status(529, ""), status(529, ""), whole}, requests: 3},
	{name: "06b 503 for ever", replies: []reply{status(503, "")}, reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "07 an error object in the stream", replies: []reply{func(w *faultWriter) { w.text("lorem"); w.fault() }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "08 an event is not JSON", replies: []reply{func(w *faultWriter) { w.text("lorem"); w.raw(`{"id":"c1","object":"chat.comp`); w.finish("stop") }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "09 stopped by length", replies: []reply{func(w *faultWriter) { w.text("lorem ipsum"); w.finish("length") }},
		reason: job.ReasonError, code: job.CodeOutputLimit, requests: 1},
	{name: "09b stopped by length with a call", replies: []reply{func(w *faultWriter) { w.call("write", `{"path":"a.txt","content":"x"}`); w.finish("length") }},
		reason: job.ReasonError, code: job.CodeOutputLimit, requests: 1},
	{name: "10 tool arguments that are not JSON", replies: []reply{func(w *faultWriter) { w.call("read", `{"path":`); w.finish("tools") }, whole}, requests: 2},
	{name: "11 an unknown tool", replies: []reply{func(w *faultWriter) { w.call("no_such_tool", `{}`); w.finish("tools") }, whole}, requests: 2},
	{name: "12 the same call for ever", replies: []reply{func(w *faultWriter) { w.call("ls", `{}`); w.finish("tools") }},
		reason: job.ReasonLoop, code: job.CodeRepeatedCall, requests: 12},
	{name: "13 an empty answer", replies: []reply{func(w *faultWriter) { w.finish("stop") }}, reason: job.ReasonError, code: job.CodeEmptyAnswer, requests: 2},
	{name: "14b the end mark is missing", only: job.APIAnthropicMessages, replies: []reply{func(w *faultWriter) { w.text(wholeAnswer); w.finishOnly("stop") }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "14 no [DONE] after the finish", only: job.APIOpenAIChat, replies: []reply{func(w *faultWriter) { w.text(wholeAnswer); w.finishOnly("stop") }}, requests: 1},
	{name: "15 CRLF, comments and ids", replies: []reply{func(w *faultWriter) { w.crlf = true; whole(w) }}, requests: 1},
	{name: "16 a content filter", replies: []reply{func(w *faultWriter) { w.text("lorem"); w.finish("filter") }},
		reason: job.ReasonError, code: job.CodeAnswerRefused, requests: 1},
	{name: "17 a 200 with a web page", replies: []reply{func(w *faultWriter) { w.page() }}, reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "18 an unknown stop reason", replies: []reply{func(w *faultWriter) { w.text("lorem"); w.finish("because") }},
		reason: job.ReasonError, code: job.CodeUnknownStop, requests: 1},
	{name: "19 wrong credentials", replies: []reply{status(401, "")}, reason: job.ReasonError, code: job.CodeProviderAuth, requests: 1},
	{name: "20 a bad request", replies: []reply{status(400, "")}, reason: job.ReasonError, code: job.CodeProviderRefused, requests: 1},
}

func status(code int, header string) reply {
	return func(w *faultWriter) {
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		w.write(`{"error":{"message":"no","type":"some_error"}}`)
	}
}

// dialect is one wire.
type dialect struct {
	api     string
	adapter llm.Adapter
	begin   []string
	// stops translates the neutral stop words; what it lacks is sent as it is.
	stops map[string]string
	// voice writes the responses; nil is for the two wires that faultWriter knows itself.
	voice voice
	// faults are more of them, which only this wire has.
	faults []wireFault
	// frames says that events come in binary frames, which have neither comments nor ends of lines.
	frames bool
}

// voice writes the parts of a response in the words of one wire. finish writes the finish mark.
type voice interface {
	text(w *faultWriter, words string)
	openCall(w *faultWriter, name, arguments string)
	finish(w *faultWriter, stop string)
	fault(w *faultWriter)
}

var chatDialect = dialect{api: job.APIOpenAIChat, adapter: openaichat.New,
	stops: map[string]string{"stop": "stop", "length": "length", "tools": "tool_calls", "filter": "content_filter"}}

var messagesDialect = dialect{api: job.APIAnthropicMessages, adapter: anthropic.New,
	begin: []string{"event: message_start", `{"type":"message_start","message":{"id":"m1","model":"m","usage":{"input_tokens":10,"output_tokens":1}}}`},
	stops: map[string]string{"stop": "end_turn", "length": "max_tokens", "tools": "tool_use", "filter": "refusal"}}

// faultWriter writes a response in one dialect.
type faultWriter struct {
	http.ResponseWriter
	request *http.Request
	dialect dialect
	crlf    bool
	begun   bool
	blocks  int
	// owed are events that a voice sends before the finish mark.
	owed []string
}

// write sends text at once. Its error means that the client has gone, which is what some faults are about.
func (w *faultWriter) write(text string) {
	if w.crlf && !w.dialect.frames {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if _, err := io.WriteString(w, text); err == nil {
		_ = http.NewResponseController(w).Flush()
	}
}

func (w *faultWriter) raw(data string) { w.event("", data) }

func (w *faultWriter) event(name, data string) {
	if w.dialect.frames {
		w.Header().Set("Content-Type", llmtest.FrameStream)
		w.write(llmtest.Frame(name, data))
		return
	}
	if !w.begun {
		w.begun = true
		w.Header().Set("Content-Type", "text/event-stream")
		if w.crlf {
			w.write(": ping\nid: 7\nretry: 10\n\n")
		}
		if len(w.dialect.begin) > 0 {
			w.write(w.dialect.begin[0] + "\ndata: " + w.dialect.begin[1] + "\n\n")
		}
	}
	if name != "" {
		w.write("event: " + name + "\n")
	}
	w.write("data: " + data + "\n\n")
}

func (w *faultWriter) chat() bool { return w.dialect.api == job.APIOpenAIChat }

func (w *faultWriter) choice(delta, finish string) {
	end := "null"
	if finish != "" {
		end = fmt.Sprintf("%q", finish)
	}
	w.raw(fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, end))
}

// text streams words, each as a delta of its own.
func (w *faultWriter) text(words string) {
	if v := w.dialect.voice; v != nil {
		v.text(w, words)
		return
	}
	if !w.chat() {
		w.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, w.blocks))
	}
	for i, word := range strings.Split(words, " ") {
		if i > 0 {
			word = " " + word
		}
		if w.chat() {
			w.choice(fmt.Sprintf(`{"content":%q}`, word), "")
			continue
		}
		w.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, w.blocks, word))
	}
}

func (w *faultWriter) openCall(name, arguments string) {
	if v := w.dialect.voice; v != nil {
		v.openCall(w, name, arguments)
		return
	}
	quoted, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	if w.chat() {
		w.choice(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":%q,"arguments":""}}]}`, name), "")
		w.choice(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}`, quoted), "")
		return
	}
	w.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"t1","name":%q,"input":{}}}`, w.blocks, name))
	w.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, w.blocks, quoted))
}

func (w *faultWriter) call(name, arguments string) { w.openCall(name, arguments) }

func (w *faultWriter) finish(stop string) {
	w.finishOnly(stop)
	if w.dialect.voice != nil {
		return
	}
	if w.chat() {
		w.raw("[DONE]")
		return
	}
	w.event("message_stop", `{"type":"message_stop"}`)
}

func (w *faultWriter) finishOnly(stop string) {
	if translated, ok := w.dialect.stops[stop]; ok {
		stop = translated
	}
	if v := w.dialect.voice; v != nil {
		v.finish(w, stop)
		return
	}
	if w.chat() {
		w.choice(`{}`, stop)
		w.raw(`{"id":"c1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)
		return
	}
	w.event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, w.blocks))
	w.event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":5}}`, stop))
}

func (w *faultWriter) fault() {
	if v := w.dialect.voice; v != nil {
		v.fault(w)
		return
	}
	if w.chat() {
		w.raw(`{"error":{"message":"Overloaded","type":"overloaded_error","code":529}}`)
		return
	}
	w.event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
}

func (w *faultWriter) page() {
	w.Header().Set("Content-Type", "text/html")
	w.write("<!doctype html><html><body>Welcome to the gateway</body></html>")
}

// cut breaks the connection in mid-response.
func (w *faultWriter) cut() { panic(http.ErrAbortHandler) }

// stall holds the connection until the client leaves it.
func (w *faultWriter) stall() { <-w.request.Context().Done() }

// comments sends keep-alives, and nothing else, until the client leaves.
func (w *faultWriter) comments() {
	if w.dialect.frames {
		w.stall()
	}
	for w.request.Context().Err() == nil {
		w.write(": keep-alive\n\n")
	}
}

type faultServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
}

func (s *faultServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func newFaultServer(t *testing.T, d dialect, replies []reply) *faultServer {
	t.Helper()
	s := &faultServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		s.mu.Lock()
		n := min(s.requests, len(replies)-1)
		s.requests++
		s.mu.Unlock()
		replies[n](&faultWriter{ResponseWriter: w, request: r, dialect: d})
	}))
	t.Cleanup(s.Close)
	return s
}

func runJobOver(t *testing.T, d dialect, server *faultServer, overlay string) ([]*job.Event, job.Outcome) {
	t.Helper()
	registry, err := tool.NewRegistry(filetool.Tools()...)
	must(t, err)
	rt, err := kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{d.api: d.adapter},
		Models:   func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id, MaxOutputTokens: 1000}, true },
		Tools:    registry,
		Wait:     func(context.Context, time.Duration) error { return nil },
	})
	must(t, err)
	spec := newSpec(t, t.TempDir(), []byte(overlay), nil)
	spec.Providers = map[string]job.ProviderConfig{"p": {API: d.api, BaseURL: server.URL + "/v1", APIKey: "sk-test"}}
	h, err := rt.Start(t.Context(), spec, job.Ports{})
	must(t, err)
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	if files, err := filepath.Glob(filepath.Join(spec.Workspace.OutDir, "*")); err != nil || len(files) > 0 {
		t.Errorf("a call of a broken response ran: %v, %v", files, err)
	}
	return events, outcome
}
