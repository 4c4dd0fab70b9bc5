package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/journal"
	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

func (p *program) journalCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "journal",
		Short: "Look into the journals of jobs",
		Args:  cobra.ArbitraryArgs,
		RunE:  p.group,
	}
	command.AddCommand(p.journalShowCommand(), p.journalVerifyCommand())
	return command
}

func (p *program) journalShowCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "show JOURNAL",
		Short: "Show the turns, calls, costs and waits of a recorded job",
		Long: `Show what a journal holds: the turns of the job and of its subagents with their tokens and costs, the calls with how they
ended, what was decided, and how the job stands. The numbers are those that hozo fork takes. A journal may be looked at
while its job runs.`,
		Example: `  hozo journal show survey.journal
  hozo journal show survey.journal --json | jq '.turns[].calls[] | select(.interrupted)'`,
		Args: exactly("the journal"),
		RunE: p.runs(func(_ *cobra.Command, args []string) error { return p.showJournal(args[0], asJSON) }),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

func (p *program) journalVerifyCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "verify JOURNAL",
		Short: "Check that a journal and its output files are undamaged",
		Long: `Check every frame of a journal against its checksum and its place, and every output file that it names against its
digest. "hozo replay" checks in addition that the recorded job can be run again.

The exit code is 0 without problems and 1 with some.`,
		Example: `  hozo journal verify survey.journal`,
		Args:    exactly("the journal"),
		RunE:    p.runs(func(_ *cobra.Command, args []string) error { return p.verifyJournal(args[0], asJSON) }),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

func (p *program) verifyJournal(path string, asJSON bool) error {
	summary, problems, err := journal.Verify(path)
	if err != nil {
		return journalError(err)
	}
	if asJSON {
		if problems == nil {
			problems = problem.List{}
		}
		if err := p.writeJSON(map[string]any{"jobId": summary.JobID, "frames": summary.Frames, "problems": problems}); err != nil {
			return err
		}
	} else {
		for _, found := range problems {
			fmt.Fprintln(p.stdout, visibleLine(found.String()))
		}
		if len(problems) == 0 {
			fmt.Fprintf(p.stdout, "ok %s: %s\n", visibleLine(path), count(int(summary.Frames), "frame"))
		}
	}
	if len(problems) > 0 {
		return exitWith(1)
	}
	return nil
}

// record is what a journal tells of a job, for people and for programs.
type record struct {
	JobID   string         `json:"jobId"`
	Runtime string         `json:"runtime"`
	Agent   job.AgentTag   `json:"agent"`
	Task    string         `json:"task"`
	Model   job.ModelTag   `json:"model"`
	Frames  int64          `json:"frames"`
	Active  int64          `json:"activeMs"`
	Turns   []recordedTurn `json:"turns"`
	// State is "running" (or lost), "suspended", "completed" or "failed".
	State   string            `json:"state"`
	Waits   []job.Wait        `json:"waits,omitempty"`
	Outcome *job.OutcomeFrame `json:"outcome,omitempty"`
	Usage   llm.Usage         `json:"usage"`
	// Cost is not known if the model has no price.
	Cost     llm.MicroUSD `json:"costMicroUsd"`
	Unpriced bool         `json:"unpriced,omitempty"`

	models map[string]llm.Model // by thread
	last   map[string]int       // the newest turn of a thread
	calls  map[string]*recordedCall
}

// recordedTurn is one request of a job with what followed from its response.
type recordedTurn struct {
	Thread  string       `json:"thread,omitempty"`
	Turn    int64        `json:"turn"`
	Try     int64        `json:"try"`
	Purpose llm.Purpose  `json:"purpose"`
	Text    string       `json:"text,omitempty"`
	Stop    string       `json:"stop,omitempty"`
	Fault   string       `json:"fault,omitempty"`
	Usage   llm.Usage    `json:"usage"`
	Cost    llm.MicroUSD `json:"costMicroUsd"`
	Millis  float64      `json:"durationMs"`
	// Calls are those of the response, in the order in which they ran, with nested ones.
	Calls []*recordedCall `json:"calls,omitempty"`
	Notes []string        `json:"notes,omitempty"`
}

// recordedCall is one call.
type recordedCall struct {
	ID        string          `json:"callId"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Decided is the verdict about a call that had to wait.
	Decided string `json:"decided,omitempty"`
	// Waiting says that the call still waits for one.
	Waiting     bool   `json:"waiting,omitempty"`
	Finished    bool   `json:"finished"`
	IsError     bool   `json:"isError,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
	Code        string `json:"code,omitempty"`
	Summary     string `json:"summary,omitempty"`
	Bytes       int    `json:"bytes"`
	Millis      int64  `json:"durationMs"`
}

// readRecord reads a journal for show.
func readRecord(frames iter.Seq2[[]byte, error]) (*record, error) {
	r := &record{Turns: []recordedTurn{}, State: "running", models: map[string]llm.Model{}, last: map[string]int{}, calls: map[string]*recordedCall{}}
	for line, err := range frames {
		if err != nil {
			return nil, err
		}
		frame, err := job.ParseFrame(line)
		if err == nil {
			err = r.add(&frame)
		}
		if err != nil {
			return nil, fmt.Errorf("journal frame %d: %w", frame.N, err)
		}
	}
	return r, nil
}

func (r *record) add(frame *job.Frame) error {
	r.Frames, r.Active = frame.N, frame.ActiveMS
	if r.State == "suspended" {
		for _, wait := range r.Waits {
			r.known(wait.CallID, "").Waiting = false
		}
		r.State, r.Waits = "running", nil
	}
	switch frame.Type {
	case job.FrameSpec:
		return r.begin(frame)
	case job.FrameLists:
		var d job.ListsFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		r.models[d.Thread] = d.Model
		if d.Thread == "" {
			r.Model = job.ModelTag{Provider: d.Provider, ID: d.Model.ID, Thinking: d.Thinking, Simulated: d.Model.Simulated}
		}
	case job.FrameMessage:
		var d job.MessageFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		r.message(&d)
	case job.FrameSuspended:
		var d job.SuspendedFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		r.State, r.Waits = "suspended", d.Waits
		for _, wait := range d.Waits {
			c := r.known(wait.CallID, "")
			c.Tool, c.Arguments, c.Waiting = wait.Tool, wait.Arguments, true
		}
	case job.FrameOutcome:
		r.Outcome, r.State = new(job.OutcomeFrame), "completed"
		if err := json.Unmarshal(frame.Data, r.Outcome); err != nil {
			return err
		}
		if r.Outcome.Failed != nil {
			r.State = "failed"
		}
	default:
		return r.call(frame)
	}
	return nil
}

func (r *record) begin(frame *job.Frame) error {
	var d job.SpecFrame
	if err := json.Unmarshal(frame.Data, &d); err != nil {
		return err
	}
	var spec job.Spec
	if err := json.Unmarshal(d.Spec, &spec); err != nil {
		return err
	}
	r.JobID, r.Runtime, r.Task = d.JobID, d.Runtime, spec.Task
	r.Agent = job.AgentTag{ID: spec.Agent.ID, Version: spec.Agent.Version}
	r.Model = job.ModelTag{Provider: spec.Model.Provider, ID: spec.Model.ID, Thinking: spec.Model.Thinking}
	return nil
}

func (r *record) message(d *job.MessageFrame) {
	t := recordedTurn{Thread: d.Thread, Turn: d.Turn, Try: d.Try, Purpose: d.Purpose, Text: d.Response.Message.Text(),
		Stop: string(d.Response.Stop), Usage: d.Response.Usage, Millis: d.DurationMS}
	if d.Fault != nil {
		t.Fault = d.Fault.Code + ": " + d.Fault.Message
	}
	switch model := r.models[d.Thread]; {
	case d.Response.Billed != nil:
		t.Cost = *d.Response.Billed
	case model.Price != nil:
		t.Cost = model.Price.Cost(t.Usage)
	default:
		r.Unpriced = true
	}
	r.Usage.Add(t.Usage)
	r.Cost += t.Cost
	r.Turns = append(r.Turns, t)
	r.last[d.Thread] = len(r.Turns) - 1
	for i, wish := range d.Response.Message.ToolCalls() {
		if d.Fault == nil {
			r.known(callID(d, i), d.Thread).Tool = wish.Name
		}
	}
}

// callID is the id that the calls of a response get.
func callID(d *job.MessageFrame, index int) string {
	id := fmt.Sprintf("%d.%d", d.Turn, index)
	if d.Thread != "" {
		id = d.Thread + "/" + id
	}
	return id
}

// known returns the call with this id, below the newest turn of its thread.
func (r *record) known(id, thread string) *recordedCall {
	if c := r.calls[id]; c != nil {
		return c
	}
	c := &recordedCall{ID: id}
	r.calls[id] = c
	if at, ok := r.last[thread]; ok {
		r.Turns[at].Calls = append(r.Turns[at].Calls, c)
	}
	return c
}

// call notes what happened to calls and dialogs.
func (r *record) call(frame *job.Frame) error {
	switch frame.Type {
	case job.FrameCallStarted:
		var d job.CallStartedFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		c := r.known(d.CallID, "")
		c.Tool, c.Arguments, c.Code = d.Tool, d.Arguments, d.Code
	case job.FrameCallFinished:
		var d job.CallFinishedFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		c := r.known(d.CallID, "")
		c.Finished, c.IsError, c.Interrupted, c.Summary = true, d.IsError, d.Interrupted, d.Summary
		c.Bytes, c.Millis = len(d.Text), d.DurationMS
		if c.Summary == "" && d.IsError {
			c.Summary, _, _ = strings.Cut(d.Text, "\n")
		}
	case job.FrameCallDecided:
		var d job.CallDecidedFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		r.known(d.CallID, "").Decided = d.Verdict
	case job.FrameStep:
		return r.step(frame)
	case job.FrameCompaction:
		var d job.CompactionFrame
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return err
		}
		if at, ok := r.last[d.Thread]; ok {
			r.Turns[at].Notes = append(r.Turns[at].Notes, fmt.Sprintf("the dialog was made shorter (%s, %s): %s tokens became %s",
				d.Reason, d.Kind, thousands(d.TokensBefore), thousands(d.TokensAfter)))
		}
	}
	return nil
}

// step notes a call that only its step tells of: an accepted finish, which ends the job and is answered to nobody, and calls
// that were dropped because a step has one.
func (r *record) step(frame *job.Frame) error {
	var d job.StepFrame
	if err := json.Unmarshal(frame.Data, &d); err != nil {
		return err
	}
	var step workingmemory.Step
	if err := json.Unmarshal(d.Step, &step); err != nil {
		return err
	}
	at, ok := r.last[d.Thread]
	if !ok {
		return nil
	}
	for _, c := range r.Turns[at].Calls {
		switch {
		case c.Finished || c.Code != "":
		case c.ID != step.CallID:
			c.Code = "not-run"
		case step.Kind == workingmemory.KindFinish:
			c.Arguments, c.Finished, c.Millis = step.Arguments, true, step.DurationMS
			c.IsError = step.Status == workingmemory.StatusError
			c.Summary, c.Bytes = step.Output.Text, int(step.Output.Bytes)
		}
	}
	return nil
}

func (p *program) showJournal(path string, asJSON bool) error {
	r, err := readRecord(journal.Read(path))
	if err != nil {
		return journalError(err)
	}
	if r.Frames == 0 {
		return usageError("%s: the journal is empty: no job was recorded in it", path)
	}
	if asJSON {
		return p.writeJSON(r)
	}
	fmt.Fprintf(p.stdout, "%s: %s@%s with %s\n", visibleLine(r.JobID), visibleLine(r.Agent.ID), visibleLine(r.Agent.Version), modelName(r.Model))
	fmt.Fprintf(p.stdout, "task: %s\n", shortLine(r.Task))
	for i := range r.Turns {
		p.printTurn(r, &r.Turns[i])
	}
	cost := costText(r.Model, job.TotalUsage{CostMicroUSD: r.Cost, Unpriced: r.Unpriced})
	fmt.Fprintf(p.stdout, "%s: %s, %s in %s out, cost: %s, active for %v\n", r.standing(), count(len(r.Turns), "request"),
		thousands(r.Usage.Prompt()), thousands(r.Usage.Output), cost, (time.Duration(r.Active) * time.Millisecond).Round(10*time.Millisecond))
	if len(r.Waits) > 0 {
		printWaits(p.stdout, r.Waits, path)
	}
	return nil
}

// standing says how the job stands.
func (r *record) standing() string {
	switch {
	case r.Outcome != nil && r.Outcome.Failed != nil:
		return failure(r.Outcome.Failed)
	case r.State == "running":
		return "not ended (running, or to be resumed)"
	case len(r.Waits) > 0:
		return suspension(len(r.Waits))
	}
	return r.State
}

func (p *program) printTurn(r *record, t *recordedTurn) {
	name := fmt.Sprintf("turn %d", t.Turn)
	if t.Try > 1 {
		name += fmt.Sprintf(", try %d", t.Try)
	}
	if t.Purpose != llm.PurposeTurn {
		name += " (" + visibleLine(string(t.Purpose)) + ")"
	}
	indent := ""
	if t.Thread != "" {
		indent, name = "    ", "call "+visibleLine(t.Thread)+", "+name
	}
	model := r.models[t.Thread]
	cost := costText(job.ModelTag{Simulated: model.Simulated}, job.TotalUsage{CostMicroUSD: t.Cost, Unpriced: model.Price == nil && t.Cost == 0})
	fmt.Fprintf(p.stdout, "%s%s: %s in %s out, %s, %.0f ms\n", indent, name, thousands(t.Usage.Prompt()), thousands(t.Usage.Output), cost, t.Millis)
	if t.Fault != "" {
		fmt.Fprintf(p.stdout, "%s  could not be used: %s\n", indent, shortLine(t.Fault))
	}
	if t.Text != "" {
		fmt.Fprintf(p.stdout, "%s  %s\n", indent, shortLine(t.Text))
	}
	for _, c := range t.Calls {
		fmt.Fprintf(p.stdout, "%s  %s\n", indent, c.line())
	}
	for _, note := range t.Notes {
		fmt.Fprintf(p.stdout, "%s  %s\n", indent, visibleLine(note))
	}
}

// line says in one line what became of a call.
func (c *recordedCall) line() string {
	text := fmt.Sprintf("%s %s", c.ID, visibleLine(c.Tool))
	if words := brief(c.Arguments); words != "" {
		text += " " + words
	}
	if c.Decided != "" {
		text += " [" + c.Decided + "]"
	}
	switch {
	case c.Waiting:
		return text + ": waits for a decision"
	case !c.Finished && c.Code == "":
		return text + ": not answered"
	case c.Interrupted:
		return text + ": interrupted"
	case c.Code != "":
		return text + ": " + visibleLine(c.Code)
	case c.IsError:
		return text + ": failed: " + shortLine(c.Summary)
	}
	return fmt.Sprintf("%s: %s (%s bytes, %d ms)", text, shortLine(c.Summary), thousands(int64(c.Bytes)), c.Millis)
}

// longestLine is the number of columns that show gives to a text.
const longestLine = 100

func shortLine(text string) string {
	line := visibleLine(text)
	if short := cutToWidth(line, longestLine); short != line {
		return short + "…"
	}
	return line
}
