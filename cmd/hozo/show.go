package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hozo-run/hozo/job"
)

// show tells a person what a job does: one line for each thing that happened, below it, on a terminal, a line that says
// how the job stands. With --json it passes the events on instead. It is the writer of the job process's log, too, so
// that the two do not write over each other.
type show struct {
	out   io.Writer // events of --json
	err   io.Writer
	json  bool
	quiet bool
	style style
	// journal is the file from which the job can be resumed, "" if it cannot.
	journal string
	begin   time.Time
	ticker  chan struct{} // closed to stop redrawing; nil if nothing is redrawn

	mu     sync.Mutex
	width  func() int // columns for the status line; nil without one
	drawn  bool
	ended  bool
	tally  tally
	active []string // what runs now, by call id
	calls  map[string]call
	// within is the call inside of which the last line happened, "" if it happened in the job itself.
	within string
}

// call is a tool call that has not ended.
type call struct {
	tool, input string
	// blocked says that the reader was told why the call was not made; its result says the same.
	blocked bool
}

// tally is what a job has done so far.
type tally struct {
	agent     job.AgentTag
	model     job.ModelTag
	turn      int64
	calls     int
	files     map[string]bool
	usage     job.TotalUsage
	requests  int64
	estimated bool
	// subagents counts the calls of each subagent, asked are those that have not ended.
	subagents map[string]int
	asked     map[string]bool
	// steps and folded count those of working memories: all, and those whose outcome was folded in without the writer.
	steps, folded int
}

func (p *program) newShow(f *runFlags) *show {
	s := &show{
		out: p.stdout, err: p.stderr, json: f.json, quiet: f.quiet || f.json,
		begin: time.Now(), calls: map[string]call{},
	}
	s.tally.files, s.tally.subagents, s.tally.asked = map[string]bool{}, map[string]int{}, map[string]bool{}
	_, isTerminal := terminalWidth(p.stderr)
	capable := isTerminal && p.getenv("TERM") != "dumb"
	s.style.colours = capable && p.getenv("NO_COLOR") == ""
	if capable && !s.quiet {
		s.width = func() int { width, _ := terminalWidth(p.stderr); return width }
		s.ticker = make(chan struct{})
		go s.tick()
	}
	return s
}

// tick redraws the status line so that its clock goes on while a model thinks.
func (s *show) tick() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.mu.Lock()
			s.redraw()
			s.mu.Unlock()
		case <-s.ticker:
			return
		}
	}
}

// event shows one event. The error is that of a reader of --json which is gone.
func (s *show) event(e *job.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.json {
		if _, err := s.out.Write(append(e.Line()[:len(e.Line()):len(e.Line())], '\n')); err != nil {
			return err
		}
	}
	if line := s.note(e); line != "" && !s.quiet {
		s.printIn(e.ParentCallID, line)
	}
	s.redraw()
	return nil
}

// note counts an event and returns the line it is worth, if any.
func (s *show) note(e *job.Event) string {
	t := &s.tally
	switch d := e.Data.(type) {
	case *job.StartedData:
		t.agent, t.model = d.Agent, d.Model
		return s.style.bold(fmt.Sprintf("%s@%s with %s", visibleLine(d.Agent.ID), visibleLine(d.Agent.Version), modelName(d.Model)))
	case *job.ResumedData:
		t.turn = d.Turn
		return s.style.bold(fmt.Sprintf("resumed in turn %d, attempt %d", max(1, d.Turn), d.Attempt))
	case *job.CompactionData:
		return s.style.dim(fmt.Sprintf("the dialog was made shorter (%s, %s): %s tokens became %s", d.Reason, d.Kind, thousands(d.TokensBefore), thousands(d.TokensAfter)))
	case *job.Notice:
		return s.style.dim("note: " + visibleLine(d.Message))
	case *job.MessageDeltaData:
		s.reach(e, d.Turn)
	case *job.MessageData:
		s.reach(e, d.Turn)
		if text := strings.TrimSpace(d.Text); text != "" && !d.Final {
			return "  " + strings.ReplaceAll(visible(text), "\n", "\n  ")
		}
	case *job.MessageDiscardedData:
		return s.style.dim("the answer broke off and is asked for again: " + visibleLine(d.Why))
	case *job.ToolCallData:
		s.reach(e, d.Turn)
		return s.call(d)
	case *job.ToolResultData:
		return s.result(d)
	case *job.OutputData:
		t.files[d.Path] = true
		return fmt.Sprintf("wrote %s (%s bytes)", visibleLine(d.Path), thousands(d.Bytes))
	case *job.StepRecordedData:
		t.steps++
		return s.step(d)
	case *job.MemoryUpdatedData:
		return s.memory(d)
	case *job.SpanData:
		return s.span(d)
	case *job.UsageData:
		t.usage = d.Total
		t.estimated = t.estimated || d.Call.Estimated
		s.asks(e.ParentCallID)
	}
	return ""
}

// reach notes in which turn the job is; those of subagents are their own.
func (s *show) reach(e *job.Event, turn int64) {
	if e.ParentCallID == "" {
		s.tally.turn = turn
	}
}

func (s *show) call(d *job.ToolCallData) string {
	s.tally.calls++
	s.calls[d.CallID] = call{tool: visibleLine(d.Tool), input: brief(d.Input), blocked: !d.Allowed}
	s.active = append(s.active, d.CallID)
	if d.Allowed {
		return ""
	}
	return s.style.red(fmt.Sprintf("%s: %s: %s", strings.TrimSpace(visibleLine(d.Tool)+" "+brief(d.Input)), d.Code, visibleLine(d.Reason)))
}

// span tells of requests that were made again, and counts those that the usage events do not: they had no answer.
func (s *show) span(d *job.SpanData) string {
	switch d.Name {
	case job.SpanRetry:
		return s.style.dim(fmt.Sprintf("the request failed (%v) and is made again after %v ms", d.Attributes["class"], d.Attributes["waitMs"]))
	case job.SpanJob:
		if n, ok := d.Attributes["requests"].(float64); ok {
			s.tally.requests = int64(n)
		}
	}
	return ""
}

func (s *show) result(d *job.ToolResultData) string {
	c := s.calls[d.CallID]
	delete(s.calls, d.CallID)
	s.answered(d.CallID, visibleLine(d.Tool))
	for i, id := range s.active {
		if id == d.CallID {
			s.active = append(s.active[:i], s.active[i+1:]...)
			break
		}
	}
	if c.blocked {
		return ""
	}
	name := visibleLine(d.Tool)
	if !d.Success {
		return s.style.red(fmt.Sprintf("%s: %s", strings.TrimSpace(name+" "+c.input), visibleLine(d.Summary)))
	}
	return s.style.dim(name + ": " + visibleLine(d.Summary))
}

// Write implements io.Writer for the log of the job process: it gets whole lines.
func (s *show) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print("log: " + visibleLine(strings.TrimSuffix(string(line), "\n")))
	s.redraw()
	return len(line), nil
}

// aborting says that the signal to abort was understood, suspending that the one to suspend was.
func (s *show) aborting() { s.say("aborting the job; once more kills it") }

func (s *show) suspending() {
	s.say("suspending the job as soon as its calls have answered; once more aborts it")
}

func (s *show) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.print(line)
		s.redraw()
	}
}

// print writes a line above the status line. A person who cannot be told must not end a job: errors are not looked at.
func (s *show) print(line string) {
	s.erase()
	fmt.Fprintln(s.err, line)
}

func (s *show) erase() {
	if s.drawn {
		io.WriteString(s.err, "\r\x1b[2K")
		s.drawn = false
	}
}

// redraw draws the status line, cut to the terminal's width: a line that wraps could not be erased.
func (s *show) redraw() {
	if s.width == nil || s.ended {
		return
	}
	s.erase()
	io.WriteString(s.err, s.style.dim(cutToWidth(s.status(), s.width()-1)))
	s.drawn = true
}

// status says in one line how the job stands.
func (s *show) status() string {
	t := &s.tally
	parts := []string{time.Since(s.begin).Truncate(time.Second).String(), fmt.Sprintf("turn %d", max(1, t.turn))}
	if len(s.active) > 0 {
		c := s.calls[s.active[len(s.active)-1]]
		parts = append(parts, strings.TrimSpace(c.tool+" "+c.input))
	} else if t.model.Simulated {
		parts = append(parts, "waiting for the script")
	} else {
		parts = append(parts, "waiting for the model")
	}
	parts = append(parts, count(t.calls, "call"), count(len(t.files), "file"),
		fmt.Sprintf("%s in %s out", thousands(t.usage.Tokens.Prompt()), thousands(t.usage.Tokens.Output)), costText(t.model, t.usage))
	return strings.Join(parts, " · ")
}

// stop erases the status line for good. It is called once.
func (s *show) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.ended = true
	if s.ticker != nil {
		close(s.ticker)
	}
}

// finish ends the progress and writes the summary.
func (s *show) finish(outcome job.Outcome, out string) {
	s.stop()
	switch {
	case s.json:
	case !s.quiet:
		s.summary(outcome, out)
	case outcome.Completed == nil:
		fmt.Fprintln(s.err, s.ending(outcome))
	}
	if !s.json {
		s.howToGoOn(outcome)
	}
}

// ending says in one line how the attempt ended.
func (s *show) ending(outcome job.Outcome) string {
	switch {
	case outcome.Failed != nil:
		return s.style.red(failure(outcome.Failed))
	case outcome.Lost != nil:
		return s.style.red("lost: " + visibleLine(outcome.Lost.Message))
	case outcome.Suspended != nil && len(outcome.Suspended.Waits) > 0:
		return s.style.bold(suspension(len(outcome.Suspended.Waits)))
	case outcome.Suspended != nil:
		return s.style.bold("suspended")
	}
	return s.style.bold("completed")
}

// howToGoOn names the command that resumes a job which has not ended, and shows what it waits for.
func (s *show) howToGoOn(outcome job.Outcome) {
	if s.journal == "" || outcome.Suspended == nil && outcome.Lost == nil {
		return
	}
	var waits []job.Wait
	if outcome.Suspended != nil {
		waits = outcome.Suspended.Waits
	}
	printWaits(s.err, waits, s.journal)
}

func (s *show) summary(outcome job.Outcome, out string) {
	t := &s.tally
	t.usage = outcome.Usage
	var outputs []string
	switch {
	case outcome.Failed != nil:
		outputs = outcome.Failed.Outputs
	case outcome.Completed != nil:
		outputs = outcome.Completed.Outputs
	default:
		outputs = slices.Sorted(maps.Keys(t.files))
	}
	head := s.ending(outcome)
	fmt.Fprintln(s.err, head)
	fmt.Fprintf(s.err, "  %s, %s, %s, %s\n", time.Since(s.begin).Round(10*time.Millisecond), count(int(t.usage.Turns), "turn"),
		count(t.calls, "tool call"), count(int(max(t.requests, t.usage.Requests)), "request"))
	s.summarizeWork()
	for _, path := range outputs {
		fmt.Fprintf(s.err, "  %s\n", visibleLine(strings.TrimSuffix(out, string(os.PathSeparator))+string(os.PathSeparator)+path))
	}
	fmt.Fprintf(s.err, "  model: %s\n", modelName(t.model))
	if t.usage.Requests == 0 {
		return // nothing was answered, so nothing is known of tokens and money
	}
	u := t.usage.Tokens
	estimated := ""
	if t.estimated {
		estimated = " (partly estimated)"
	}
	fmt.Fprintf(s.err, "  tokens: %s in, %s from cache, %s to cache, %s out%s\n",
		thousands(u.Input), thousands(u.CacheRead), thousands(u.CacheWrite), thousands(u.Output), estimated)
	fmt.Fprintf(s.err, "  cost: %s\n", costText(t.model, t.usage))
}

func failure(f *job.FailedData) string {
	what := string(f.Reason)
	if f.Code != what {
		what += " (" + f.Code + ")"
	}
	return "failed: " + what + ": " + visibleLine(f.Message)
}
