package scripttool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hozo-run/hozo/tool"
)

var errTimeUp = errors.New("the script's time is over")

// run runs one script in a child and returns what the model gets. When it returns, nothing of the script is left: no
// process, no call, no goroutine.
func run(ctx context.Context, env *tool.Env, o Options, code string) tool.Result {
	if refused := checkSource(code, o.Limits.SourceBytes); refused != "" {
		return tool.Errorf("%s", refused)
	}
	if env.Nested == nil {
		return tool.Errorf("this runtime lends no tools to scripts")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limits.Time, errTimeUp)
	defer cancel()
	s := newSession(env, o.Limits)
	p, err := startProcess(ctx, &o)
	if err != nil {
		if failed := interrupted(ctx); failed != nil {
			return s.report(code, &end{Failure: failed})
		}
		return tool.Errorf("the script was not run, and trying again will not help: its process could not be started: %v", err)
	}
	s.out = &writer{to: p.in}
	last := s.converse(ctx, p, code)
	cancel()
	ended := p.finish()
	s.running.Wait()
	if last == nil {
		last = &end{Failure: lost(ended)}
	}
	return s.report(code, last)
}

// checkSource returns what is wrong with a script before it is run.
func checkSource(code string, most int) string {
	switch {
	case strings.TrimSpace(code) == "":
		return "the script is empty: code holds the body of an async function"
	case len(code) > most:
		return fmt.Sprintf("the script has %d bytes, at most %d are allowed: do less in one script, and do not put data into it", len(code), most)
	}
	return ""
}

// interrupted returns why ctx has ended, nil if it has not.
func interrupted(ctx context.Context) *failure {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), errTimeUp):
		return &failure{Kind: kindTimeout}
	}
	return &failure{Kind: kindAborted}
}

// session is the parent's side of one script.
type session struct {
	limits  Limits
	nested  func(ctx context.Context, name string, arguments json.RawMessage) tool.Result
	callees []string
	out     *writer
	slots   chan struct{}
	running sync.WaitGroup

	// console and the rest are used by the reader only, calls by the goroutines of calls as well.
	console    strings.Builder
	consoleCut bool
	mu         sync.Mutex
	calls      []*record
}

// record is what is known of a call.
type record struct {
	tool      string
	arguments string
	state     state
	// fault is the first line of the error of a call that failed.
	fault string
}

type state string

const (
	stateUnfinished state = "not finished"
	stateDone       state = "done"
	stateFailed     state = "failed"
)

func newSession(env *tool.Env, limits Limits) *session {
	s := &session{limits: limits, nested: env.Nested, slots: make(chan struct{}, limits.Parallel)}
	for _, c := range env.Callees {
		s.callees = append(s.callees, c.Name)
	}
	return s
}

// converse gives the order and serves the child until it says its last word, misbehaves, or is not heard any more; then
// it returns nil unless it knows why.
func (s *session) converse(ctx context.Context, p *process, code string) *end {
	given := make(chan error, 1)
	go func() { given <- s.out.write(s.order(ctx, code)) }()
	defer func() { p.kill(); <-given }() // the end of the child ends the writing
	messages := newReader(p.out)
	for {
		m, err := messages.next()
		if failed := interrupted(ctx); failed != nil && (err != nil || m.End == nil) {
			return &end{Failure: failed}
		}
		switch {
		case errors.Is(err, errBroken):
			return &end{Failure: &failure{Kind: kindSandbox, Message: err.Error()}}
		case err != nil:
			return nil
		case m.End != nil:
			return m.End
		case m.Console != nil:
			s.print(m.Console.Text)
		default:
			if failed := s.call(ctx, m.Call); failed != nil {
				return &end{Failure: failed}
			}
		}
	}
}

// order says what to run. The child gets a little less time than there is, so that it can tell where the script was.
func (s *session) order(ctx context.Context, code string) *order {
	deadline, _ := ctx.Deadline()
	deadline = deadline.Add(-min(s.limits.Time/10, 250*time.Millisecond))
	return &order{
		Code: code, Tools: s.callees, DeadlineMS: deadline.UnixMilli(), CPUSeconds: cpuSeconds(s.limits.Time),
		HeapBytes: s.limits.HeapBytes, DataBytes: dataBytes, ConsoleBytes: s.limits.ConsoleBytes, OutputBytes: s.limits.OutputTokens * bytesPerToken,
	}
}

// print keeps a line of the console as long as there is room.
func (s *session) print(line string) {
	left := s.limits.ConsoleBytes - s.console.Len()
	if s.consoleCut || len(line)+1 > left {
		line, s.consoleCut = prefix(line, max(0, left-1)), true
	}
	if line != "" || !s.consoleCut {
		s.console.WriteString(line)
		s.console.WriteByte('\n')
	}
}

// call begins a call, or says why the script must not go on.
func (s *session) call(ctx context.Context, m *callMessage) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) >= s.limits.Calls {
		return &failure{Kind: kindCalls}
	}
	if m.ID != int64(len(s.calls))+1 {
		return &failure{Kind: kindSandbox, Message: fmt.Sprintf("%v: call %d comes after %d", errBroken, m.ID, len(s.calls))}
	}
	c := &record{tool: prefix(m.Tool, 100), arguments: prefix(string(m.Arguments), shownArguments+1), state: stateUnfinished}
	s.calls = append(s.calls, c)
	s.running.Go(func() { s.do(ctx, m, c) })
	return nil
}

// do makes a call when it is its turn, and answers it. An answer that cannot be given has nobody to be given to.
func (s *session) do(ctx context.Context, m *callMessage, c *record) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return
	}
	if ctx.Err() != nil {
		return
	}
	// The child was told what there is; that it asks for nothing else is not taken on trust.
	r := tool.Errorf("%s cannot be called from a script", c.tool)
	if slices.Contains(s.callees, m.Tool) {
		r = s.nested(ctx, m.Tool, m.Arguments)
	}
	a := s.answer(m.ID, m.Tool, r)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	c.state = stateDone
	if a.Value == nil {
		c.state = stateFailed
		c.fault, _, _ = strings.Cut(a.Error, "\n")
	}
	s.mu.Unlock()
	_ = s.out.write(a)
}

// answer makes the result of a tool into what the script gets: its JSON value, else its text.
func (s *session) answer(id int64, name string, r tool.Result) *answer {
	if r.IsError {
		return &answer{ID: id, Error: prefix(r.Text, s.limits.ResultBytes)}
	}
	value := r.Structured
	if value == nil {
		var err error
		if value, err = json.Marshal(r.Text); err != nil {
			return &answer{ID: id, Error: fmt.Sprintf("the result of %s cannot be passed on: %v", name, err)}
		}
	}
	if len(value) > s.limits.ResultBytes {
		return &answer{ID: id, Error: fmt.Sprintf("the result of %s has %d bytes, at most %d reach a script: ask for less", name, len(value), s.limits.ResultBytes)}
	}
	return &answer{ID: id, Value: value}
}

// lost explains a child that ended without a last word.
func lost(e ending) *failure {
	switch {
	// What the Go runtime says when it gets no memory.
	case strings.Contains(e.words, "out of memory"), strings.Contains(e.words, "cannot allocate memory"):
		return &failure{Kind: kindMemory}
	case strings.Contains(e.state, "CPU time limit"):
		return &failure{Kind: kindTimeout}
	}
	how := e.state
	if first, _, _ := strings.Cut(e.words, "\n"); first != "" {
		how += fmt.Sprintf(", %q", prefix(first, 200))
	}
	return &failure{Kind: kindSandbox, Message: "the process of the script ended by itself: " + how}
}
