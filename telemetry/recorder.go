package telemetry

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/hozo-run/hozo/job"
)

// Recorder translates the events of one job. The spans of the exported trace are: one for the job, one for each turn below
// it, and below a turn its requests and tool calls; the calls of a script are below the call of the script. What a tool
// span encloses for the same call (a script, a request to an MCP server) is not a second span but the same one.
//
// A Recorder is used by one goroutine, the reader of the events. It holds what is open: a job that ends has its open spans
// ended with it.
type Recorder struct {
	exporter *Exporter
	trace    Trace
	redact   func(string) string
	ours     ours

	jobID   string
	agent   job.AgentTag
	model   job.ModelTag
	started time.Time
	last    time.Time // of the latest event
	ended   bool

	root  *job.SpanData // settled, waits for the reason
	turn  openTurn
	chat  *chat // waits for its text
	calls map[string]*openCall
	// inner are the names of settled spans that belong to the tool span of the same call.
	inner map[string]*job.SpanData
	// failure is the class of the latest request that failed.
	failure             string
	requests, toolCalls int64
}

// openTurn is the latest turn that something was heard of; number 0 is none.
type openTurn struct {
	number  int64
	since   time.Time
	settled bool
}

// openCall is a call that was announced.
type openCall struct {
	turn    int64
	parent  string
	since   time.Time
	allowed bool
	code    string
	input   json.RawMessage // if content is exported
	// done says that the result was reported.
	done, success bool
}

// chat is a request that was reported.
type chat struct {
	usage job.CallUsage
	total job.TotalUsage
	turn  int64
	text  string
	calls []outputPart
}

// NewRecorder returns the recorder of a job that was started with a Trace. Redact takes credentials out of a text; nil
// takes nothing out.
func (e *Exporter) NewRecorder(t Trace, redact func(string) string) *Recorder {
	if redact == nil {
		redact = func(text string) string { return text }
	}
	return &Recorder{exporter: e, trace: t, redact: redact, ours: ourInstruments(), calls: map[string]*openCall{},
		inner: map[string]*job.SpanData{}}
}

// Observe takes the next event of the job. It waits for nothing. Events of unknown types mean nothing to it.
func (r *Recorder) Observe(e *job.Event) {
	if r.exporter == nil || r.ended {
		return
	}
	r.last = e.At
	switch d := e.Data.(type) {
	case *job.StartedData:
		r.jobID, r.agent, r.model, r.started = e.JobID, d.Agent, d.Model, e.At
	case *job.MessageDeltaData:
		r.heardOf(d.Turn, e.At)
	case *job.MessageData:
		if r.content() && r.chat != nil && r.chat.turn == d.Turn {
			r.chat.text += d.Text
		}
	case *job.UsageData:
		r.flushChat()
		turn, _ := requestNumber(d.Call.ID)
		r.heardOf(turn, time.Unix(0, d.Call.StartUnixNano))
		r.chat = &chat{usage: d.Call, total: d.Total, turn: turn}
	case *job.ToolCallData:
		r.announce(e, d)
	case *job.ToolResultData:
		if c := r.calls[d.CallID]; c != nil {
			c.done, c.success = true, d.Success
		}
	case *job.SpanData:
		r.settle(d)
	case *job.CompletedData:
		r.end(e.At, "", "")
	case *job.FailedData:
		r.end(e.At, d.Reason, d.Code)
	}
}

// heardOf notes the turn that is open.
func (r *Recorder) heardOf(turn int64, at time.Time) {
	if turn > r.turn.number {
		r.turn = openTurn{number: turn, since: at}
	}
}

func (r *Recorder) content() bool { return r.exporter.settings.content }

// requestNumber divides the id of a request, "turn.try", or "turn.word.try" for one that is not the turn's own.
func requestNumber(id string) (turn, try int64) {
	first, rest, _ := strings.Cut(id, ".")
	turn, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, 0
	}
	try, err = strconv.ParseInt(rest[strings.LastIndexByte(rest, '.')+1:], 10, 64)
	if err != nil {
		return turn, 0
	}
	return turn, try
}

func (r *Recorder) announce(e *job.Event, d *job.ToolCallData) {
	r.heardOf(d.Turn, e.At)
	c := &openCall{turn: d.Turn, parent: e.ParentCallID, since: e.At, allowed: d.Allowed, code: d.Code}
	if e.ParentCallID == "" {
		r.toolCalls++
	}
	if r.content() {
		c.input = []byte(r.redact(string(d.Input)))
		if r.chat != nil && r.chat.turn == d.Turn && e.ParentCallID == "" {
			r.chat.calls = append(r.chat.calls, outputPart{Type: "tool_call", ID: d.CallID, Name: r.redact(cut(d.Tool, maxText)), Arguments: bounded(c.input)})
		}
	}
	r.calls[d.CallID] = c
}

// settle takes a span that ended.
func (r *Recorder) settle(d *job.SpanData) {
	switch d.Name {
	case job.SpanJob:
		r.root = d
	case job.SpanTurn:
		r.flushChat()
		r.settleTurn(d)
	case job.SpanTool:
		r.settleTool(d)
	case job.SpanMCP, job.SpanCodemode:
		if id := word(d, "callId"); id != "" {
			r.inner[id] = d
			return
		}
		r.settleOther(d)
	default:
		r.settleOther(d)
	}
}

// end settles the job and everything that is still open.
func (r *Recorder) end(at time.Time, reason job.Reason, code string) {
	r.ended = true
	r.flushChat()
	for id, c := range r.calls {
		r.interruptCall(id, c, at)
	}
	if r.turn.number > 0 && !r.turn.settled {
		r.interruptTurn(at)
	}
	r.settleJob(at, reason, code)
	r.calls, r.inner = nil, nil
}

// abandon ends a job whose stream ended without a terminal event.
func (r *Recorder) abandon() {
	if r.exporter != nil && !r.ended && r.jobID != "" {
		r.end(r.last, job.ReasonError, errorOther)
	}
}

// word returns a string attribute, "" if there is none.
func word(d *job.SpanData, key string) string {
	text, _ := d.Attributes[key].(string)
	return text
}

// number returns a whole attribute; spans that were read from a stream have JSON's numbers.
func number(d *job.SpanData, key string) (int64, bool) {
	switch v := d.Attributes[key].(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		if v == float64(int64(v)) {
			return int64(v), true
		}
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	}
	return 0, false
}

// times returns the start and end of a span.
func times(start int64, durationMS float64) (from, to int64) {
	return start, start + int64(durationMS*float64(time.Millisecond))
}
