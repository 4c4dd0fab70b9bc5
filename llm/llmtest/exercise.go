package llmtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
)

// Reply is a response in neutral words; an adapter's test puts it into events of its wire format.
type Reply struct {
	Thinking []string
	// Signature proves the thinking, where the API has such a thing.
	Signature string
	Text      []string
	Calls     []ReplyCall
	Stop      Stop
	// Input, CacheRead and Output are token counts; zero counts are sent too.
	Input, CacheRead, Output int
}

// ReplyCall is a tool call whose arguments come in pieces.
type ReplyCall struct {
	ID, Name  string
	Arguments []string
}

// Stop is how a reply ends.
type Stop string

// The ways in which a reply ends.
const (
	Ends    Stop = "ends"
	Calls   Stop = "calls"
	Cut     Stop = "cut"
	Refuses Stop = "refuses"
	// Strange is a stop reason that no adapter knows.
	Strange Stop = "strange"
)

// Setup describes an adapter to Exercise.
type Setup struct {
	New llm.Adapter
	// API is the name of the API family, as adapters put it into Message.Origin.
	API string
	// Path is where requests go below the server's address when Base is the path of the base URL.
	Base, Path string
	// Events returns the events of a reply, each ended by its blank line.
	Events func(Reply) []string
	// Finish tells the event that is the finish mark: an answer that ends before it is cut.
	Finish func(event string) bool
	// Fault returns an event by which the provider reports that it is overloaded.
	Fault func() string
	// Thinks says that the API carries thinking.
	Thinks bool
	// Frames says that Events and Fault return frames (see Frame) and not server-sent events.
	Frames bool
	// ProviderID returns what the adapter keeps as the id of a call that Events gave this id. Nil means the same.
	ProviderID func(id string) string
}

func (s Setup) providerID(id string) string {
	if s.ProviderID == nil {
		return id
	}
	return s.ProviderID(id)
}

// server starts a server that streams as the API does.
func (s Setup) server(t *testing.T, answers ...Answer) *Server {
	server := NewServer(t, answers...)
	if s.Frames {
		server.StreamType = FrameStream
	}
	return server
}

// faultWith returns an event that reports the error in a body of the form {"error":{"message":"…"}}.
func (s Setup) faultWith(body string) string {
	if s.Frames {
		return ExceptionFrame("internalServerException", body)
	}
	return "event: error\ndata: {\"type\":\"error\"," + body[1:] + "\n\n"
}

// Exercise runs every scenario that any adapter must pass.
func Exercise(t *testing.T, s Setup) {
	t.Helper()
	for _, scenario := range []struct {
		name string
		run  func(*testing.T, Setup)
	}{
		{"text is streamed in order and returned whole", exerciseText},
		{"thinking is kept apart from the answer", exerciseThinking},
		{"a tool call is streamed and returned", exerciseTool},
		{"parallel tool calls keep their order and arguments", exerciseParallel},
		{"a cut answer says so", exerciseLength},
		{"a refusal is an error", exerciseRefusal},
		{"an unknown stop reason is an error that names it", exerciseStrange},
		{"a stream that ends early is a retryable error", exerciseTruncated},
		{"a broken connection is a retryable error", exerciseReset},
		{"a fault inside the stream is an error", exerciseStreamFault},
		{"what had arrived is returned with the error", exercisePartial},
		{"the cause of the context ends the stream", exerciseAbort},
		{"nothing is reported after the end of the context", exerciseAbortAtOnce},
		{"an error of the sink ends the stream", exerciseSink},
		{"images reach the provider", exerciseImages},
		{"text of every kind survives both ways", exerciseUnicode},
		{"usage is counted in disjoint buckets", exerciseUsage},
		{"an answer without text is no error of the adapter", exerciseEmpty},
		{"statuses become classes", exerciseStatus},
		{"a web page is malformed", exercisePage},
		{"no error text holds a credential", exerciseCanary},
		{"equal openings have equal prefixes", exercisePrefix},
		{"messages are encoded once", exerciseGrowth},
		{"a dialog that cannot be sent says why", exerciseRefusals},
		{"dialogs share a provider", exerciseConcurrency},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			scenario.run(t, s)
		})
	}
}

const (
	exerciseModel = "exercise-1"
	exerciseKey   = "key-of-the-exercise-0123456789"
)

func (s Setup) open(t *testing.T, server *Server) llm.Dialog {
	t.Helper()
	return s.converse(t, server, s.opening())
}

func (s Setup) opening() llm.Opening {
	return llm.Opening{
		Model: llm.Model{ID: exerciseModel, Images: true, MaxOutputTokens: 1000,
			ThinkingLevels: []llm.Level{llm.LevelOff, llm.LevelLow}},
		System: "Shared part.", JobSystem: "Part of the job.", Thinking: llm.LevelOff,
		Tools: []llm.ToolSpec{{Name: "add", Description: "Adds.", InputSchema: []byte(`{"type":"object"}`)}},
	}
}

func (s Setup) converse(t *testing.T, server *Server, o llm.Opening) llm.Dialog {
	t.Helper()
	p, err := s.New(llm.Account{BaseURL: server.URL + s.Base, APIKey: exerciseKey})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Converse(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask opens a dialog with one question, plays the answer and returns what came of it.
func (s Setup) ask(t *testing.T, answer Answer) (llm.Response, *tape, error) {
	t.Helper()
	server := s.server(t, answer)
	c := s.open(t, server)
	appendAll(t, c, llm.UserText("Question?"))
	var tape tape
	r, err := c.Stream(t.Context(), llm.Call{Purpose: llm.PurposeTurn}, tape.sink)
	if got := server.Requests(); len(got) != 1 || got[0].Path != s.Base+s.Path {
		t.Errorf("%d requests, the first to %q; want one to %q", len(got), got[0].Path, s.Base+s.Path)
	}
	return r, &tape, err
}

func appendAll(t *testing.T, c llm.Dialog, messages ...llm.Message) {
	t.Helper()
	for _, m := range messages {
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
}

// tape keeps the deltas of a response.
type tape struct {
	text, thinking string
	calls          []taped
	order          []string
}

type taped struct {
	name, arguments string
	done            bool
}

func (tape *tape) sink(d llm.Delta) error {
	text := string(d.Text)
	switch d.Kind {
	case llm.DeltaText:
		tape.text += text
		tape.note("text")
	case llm.DeltaThinking:
		tape.thinking += text
		tape.note("thinking")
	case llm.DeltaToolName:
		if d.Index != len(tape.calls) {
			return errors.New("the tool calls are not numbered from 0")
		}
		tape.calls = append(tape.calls, taped{name: text})
		tape.note("call")
	case llm.DeltaToolArguments, llm.DeltaToolDone:
		if d.Index >= len(tape.calls) || tape.calls[d.Index].done {
			return errors.New("a piece of a call that is not open")
		}
		tape.calls[d.Index].arguments += text
		tape.calls[d.Index].done = d.Kind == llm.DeltaToolDone
	}
	return nil
}

func (tape *tape) note(kind string) {
	if n := len(tape.order); n == 0 || tape.order[n-1] != kind {
		tape.order = append(tape.order, kind)
	}
}

func exerciseText(t *testing.T, s Setup) {
	r, tape, err := s.ask(t, Stream(s.Events(Reply{Text: []string{"Hel", "lo, ", "world."}, Stop: Ends})...))
	if err != nil {
		t.Fatal(err)
	}
	const want = "Hello, world."
	if r.Message.Text() != want || tape.text != want {
		t.Errorf("message %q, deltas %q, want %q", r.Message.Text(), tape.text, want)
	}
	if r.Stop != llm.StopEnd || r.RawStop == "" {
		t.Errorf("stop %q (%q), want %q", r.Stop, r.RawStop, llm.StopEnd)
	}
	if want := (llm.Origin{API: s.API, Model: exerciseModel}); r.Message.Origin != want {
		t.Errorf("origin %v, want %v", r.Message.Origin, want)
	}
	if r.Message.Role != llm.RoleAssistant || len(r.Message.Parts) != 1 {
		t.Errorf("role %q with %d parts, want one assistant part", r.Message.Role, len(r.Message.Parts))
	}
}

func exerciseThinking(t *testing.T, s Setup) {
	if !s.Thinks {
		t.Skip("the API carries no thinking")
	}
	r, tape, err := s.ask(t, Stream(s.Events(Reply{Thinking: []string{"Let me ", "see."}, Signature: "c2ln",
		Text: []string{"Yes."}, Stop: Ends})...))
	if err != nil {
		t.Fatal(err)
	}
	if tape.thinking != "Let me see." || tape.text != "Yes." || strings.Join(tape.order, " ") != "thinking text" {
		t.Errorf("deltas: thinking %q, text %q, order %v", tape.thinking, tape.text, tape.order)
	}
	parts := r.Message.Parts
	if len(parts) != 2 || parts[0].Type != llm.PartThinking || parts[0].Text != "Let me see." || r.Message.Text() != "Yes." {
		t.Errorf("parts %+v, want thinking and text", parts)
	}
}

func exerciseTool(t *testing.T, s Setup) {
	r, tape, err := s.ask(t, Stream(s.Events(Reply{Text: []string{"I add."},
		Calls: []ReplyCall{{"call_1", "add", []string{`{"a":`, `1,"b"`, `:2}`}}}, Stop: Calls})...))
	if err != nil {
		t.Fatal(err)
	}
	calls := r.Message.ToolCalls()
	if len(calls) != 1 || string(calls[0].Arguments) != `{"a":1,"b":2}` || calls[0].ProviderID != s.providerID("call_1") ||
		calls[0].ID != "" || calls[0].Name != "add" {
		t.Errorf("calls %+v", calls)
	}
	if want := (taped{"add", `{"a":1,"b":2}`, true}); len(tape.calls) != 1 || tape.calls[0] != want {
		t.Errorf("deltas %+v, want %+v", tape.calls, want)
	}
	if r.Stop != llm.StopTools {
		t.Errorf("stop %q, want %q", r.Stop, llm.StopTools)
	}
}

func exerciseParallel(t *testing.T, s Setup) {
	r, tape, err := s.ask(t, Stream(s.Events(Reply{Stop: Calls, Calls: []ReplyCall{
		{"call_1", "add", []string{`{"a":1}`}}, {"call_2", "find", nil}, {"call_3", "add", []string{`{"a":`, `3}`}},
	}})...))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Message.ToolCalls() {
		got = append(got, c.ProviderID+" "+c.Name+" "+string(c.Arguments))
	}
	want := s.providerID("call_1") + ` add {"a":1}, ` + s.providerID("call_2") + ` find {}, ` + s.providerID("call_3") + ` add {"a":3}`
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("calls %s, want %s", text, want)
	}
	for i, c := range tape.calls {
		if !c.done {
			t.Errorf("call %d was never reported as done", i)
		}
	}
}

func exerciseLength(t *testing.T, s Setup) {
	r, _, err := s.ask(t, Stream(s.Events(Reply{Text: []string{"Half of"}, Stop: Cut})...))
	if err != nil || r.Stop != llm.StopLength {
		t.Errorf("stop %q, error %v; want %q", r.Stop, err, llm.StopLength)
	}
	r, tape, err := s.ask(t, Stream(s.Events(Reply{Stop: Cut,
		Calls: []ReplyCall{{"call_1", "add", []string{`{"a":1,"b`}}}})...))
	if err != nil || r.Stop != llm.StopLength {
		t.Errorf("stop %q, error %v; want %q", r.Stop, err, llm.StopLength)
	}
	calls := r.Message.ToolCalls()
	if len(calls) != 1 || calls[0].ArgumentsError == "" || calls[0].Arguments != nil || calls[0].RawArguments != `{"a":1,"b` {
		t.Errorf("a call cut in its arguments is %+v", calls)
	}
	if len(tape.calls) != 1 || tape.calls[0].done {
		t.Errorf("a call cut in its arguments was reported as done: %+v", tape.calls)
	}
}

func exerciseRefusal(t *testing.T, s Setup) {
	_, _, err := s.ask(t, Stream(s.Events(Reply{Text: []string{"I "}, Stop: Refuses})...))
	wantClass(t, err, llm.ClassRefused)
}

func exerciseStrange(t *testing.T, s Setup) {
	r, _, err := s.ask(t, Stream(s.Events(Reply{Text: []string{"I "}, Stop: Strange})...))
	e := wantClass(t, err, llm.ClassUnknownStop)
	if e != nil && (r.RawStop == "" || !strings.Contains(e.Error(), r.RawStop)) {
		t.Errorf("raw stop %q is not in the error %q", r.RawStop, e)
	}
}

// wantClass checks that err is an *llm.Error of the class.
func wantClass(t *testing.T, err error, class llm.Class) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Errorf("error %v, want class %s", err, class)
		return nil
	}
	if e.Class != class {
		t.Errorf("class %s (%v), want %s", e.Class, e, class)
	}
	return e
}

func exerciseEmpty(t *testing.T, s Setup) {
	r, tape, err := s.ask(t, Stream(s.Events(Reply{Stop: Ends})...))
	if err != nil || r.Stop != llm.StopEnd || len(r.Message.Parts) != 0 || len(tape.order) != 0 {
		t.Errorf("response %+v, deltas %v, error %v; want an empty answer", r, tape.order, err)
	}
}

func exerciseUsage(t *testing.T, s Setup) {
	r, _, err := s.ask(t, Stream(s.Events(Reply{Text: []string{"x"}, Stop: Ends, Input: 100, CacheRead: 900, Output: 50})...))
	want := llm.Usage{Input: 100, CacheRead: 900, Output: 50}
	if err != nil || !r.UsageReported || r.Usage != want {
		t.Errorf("usage %+v (reported %v), error %v; want %+v", r.Usage, r.UsageReported, err, want)
	}
}

func exerciseAbort(t *testing.T, s Setup) {
	closed := make(chan struct{})
	events := s.Events(Reply{Text: []string{"one", "two"}, Stop: Ends})
	at := 0
	for !strings.Contains(events[at], "one") {
		at++
	}
	server := s.server(t, Stall(func() { close(closed) }, events[:at+1]...))
	c := s.open(t, server)
	appendAll(t, c, llm.UserText("Question?"))
	cause := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	r, err := c.Stream(ctx, llm.Call{}, func(llm.Delta) error { cancel(cause); return nil })
	if !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause of the context", err)
	}
	if r.Message.Text() != "one" {
		t.Errorf("partial text %q, want what had arrived", r.Message.Text())
	}
	<-closed
	if _, err := c.Stream(ctx, llm.Call{}, nil); !errors.Is(err, cause) || len(server.Requests()) != 1 {
		t.Errorf("error %v after %d requests; want the cause and no second request", err, len(server.Requests()))
	}
}

// exerciseAbortAtOnce checks that nothing is reported after the end of the context, even if it has been received.
func exerciseAbortAtOnce(t *testing.T, s Setup) {
	all := strings.Join(s.Events(Reply{Text: []string{"one", "two", "three"}, Stop: Ends}), "")
	server := s.server(t, Stream(all))
	c := s.open(t, server)
	appendAll(t, c, llm.UserText("Question?"))
	cause := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	n := 0
	_, err := c.Stream(ctx, llm.Call{}, func(llm.Delta) error { n++; cancel(cause); return nil })
	if !errors.Is(err, cause) || n != 1 {
		t.Errorf("error %v after %d deltas, want the cause after the first", err, n)
	}
}

func exerciseSink(t *testing.T, s Setup) {
	closed := make(chan struct{})
	events := s.Events(Reply{Text: []string{"one", "two", "three"}, Stop: Ends})
	server := s.server(t, Stall(func() { close(closed) }, events[:len(events)-1]...))
	c := s.open(t, server)
	appendAll(t, c, llm.UserText("Question?"))
	full := errors.New("enough")
	n := 0
	_, err := c.Stream(t.Context(), llm.Call{}, func(llm.Delta) error {
		if n++; n == 2 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || n != 2 {
		t.Errorf("error %v after %d deltas, want the sink's after 2", err, n)
	}
	<-closed
}
