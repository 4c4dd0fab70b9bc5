package telemetry

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// fieldSpanAttributes is where a span has its attributes.
const fieldSpanAttributes = 9

// open begins a span of the export. Its hozo.span is our own name of it.
func (r *Recorder) open(of, parent, name, own string) *span {
	s := &span{id: r.trace.span(of), name: name, kind: kindInternal, attributes: attributes{field: fieldSpanAttributes}}
	if parent != "" {
		s.parent = r.trace.span(parent)
	}
	s.attributes.text(keySpan, own)
	s.attributes.text(keyJobID, r.jobID)
	return s
}

// send hands a span to the exporter.
func (r *Recorder) send(s *span) {
	if s.failure != "" {
		s.attributes.text(keyErrorType, s.failure)
	}
	if r.exporter.settings.traces != nil && !r.trace.notSampled {
		r.exporter.add(s.encode(r.trace))
	}
}

// named appends a target to the name of an operation.
func named(operation, target string) string {
	if target == "" {
		return operation
	}
	return operation + " " + cut(target, maxText)
}

// settleJob exports the span of the job.
func (r *Recorder) settleJob(at time.Time, reason job.Reason, code string) {
	s := r.open(ofJob, "", named(operationAgent, r.agent.ID), job.SpanJob)
	s.parent = r.trace.parent
	s.start, s.end = r.started.UnixNano(), at.UnixNano()
	outcome := "completed"
	if code != "" {
		outcome, s.failure = "failed", code
	}
	a := &s.attributes
	a.text(keyOperation, operationAgent)
	a.text(keyProvider, providerName(r.model.Provider))
	a.text(keyRequestModel, r.model.ID)
	a.text(keyAgentName, r.agent.ID)
	a.text(keyAgentVersion, r.agent.Version)
	if r.names().agentID {
		a.text(keyAgentID, r.agent.ID)
	}
	a.text(keyOutcome, outcome)
	a.text(keyReason, string(reason))
	if r.root != nil {
		s.start, s.end = times(r.root.StartUnixNano, r.root.DurationMS)
		r.numbers(a, r.root, "agent", "agentVersion", "model", "costMicroUsd")
	} else {
		a.bool(keyInterrupted, true)
	}
	r.send(s)
	r.measureJob(s, outcome, reason)
}

func (r *Recorder) measureJob(s *span, outcome string, reason job.Reason) {
	m, n := r.exporter.meter, r.names()
	labels := r.ours.jobs.labels()
	labels.text(keyOutcome, outcome)
	labels.text(keyReason, string(reason))
	m.add(r.ours.jobs, labels, 1)
	for instrument, value := range map[*instrument]float64{n.agentDuration: s.seconds(), n.agentRequests: float64(r.requests), n.agentToolCalls: float64(r.toolCalls)} {
		labels := r.modelLabels(instrument, operationAgent)
		labels.text(keyAgentName, r.agent.ID)
		labels.text(keyErrorType, s.failure)
		m.add(instrument, labels, value)
	}
}

// settleTurn exports a turn.
func (r *Recorder) settleTurn(d *job.SpanData) {
	n, _ := number(d, "turn")
	r.heardOf(n, time.Unix(0, d.StartUnixNano))
	r.turn.settled = true
	s := r.open(ofTurn(n), ofJob, "turn", job.SpanTurn)
	s.start, s.end = times(d.StartUnixNano, d.DurationMS)
	if d.Status == job.SpanError {
		s.failure = errorOther
		if r.failure != "" {
			s.failure = r.failure
		}
	}
	r.numbers(&s.attributes, d, "model")
	r.send(s)
	r.exporter.meter.add(r.ours.turns, r.ours.turns.labels(), 1)
}

func (r *Recorder) interruptTurn(at time.Time) {
	s := r.open(ofTurn(r.turn.number), ofJob, "turn", job.SpanTurn)
	s.start, s.end, s.failure = r.turn.since.UnixNano(), at.UnixNano(), errorOther
	s.attributes.int(keyTurn, r.turn.number)
	s.attributes.bool(keyInterrupted, true)
	r.send(s)
	r.exporter.meter.add(r.ours.turns, r.ours.turns.labels(), 1)
}

// flushChat exports the request that was reported last, if it was not yet.
func (r *Recorder) flushChat() {
	c := r.chat
	if c == nil {
		return
	}
	r.chat = nil
	r.requests++
	turn, try := requestNumber(c.usage.ID)
	parent := ofJob
	if turn > 0 {
		parent = ofTurn(turn)
	}
	s := r.open("request "+c.usage.ID, parent, named(operationChat, c.usage.Model), spanRequest)
	s.kind = kindClient
	s.start, s.end = times(c.usage.StartUnixNano, c.usage.DurationMS)
	r.failure, s.failure = c.usage.Error, c.usage.Error
	a := &s.attributes
	a.text(keyOperation, operationChat)
	a.text(keyProvider, providerName(r.model.Provider))
	a.text(keyRequestModel, c.usage.Model)
	a.text(keyResponseModel, r.redact(c.usage.ServedModel))
	if r.names().reasoningLevel {
		a.text(keyReasoningLvl, string(r.model.Thinking))
	}
	a.texts(keyFinish, finishReason(string(c.usage.Stop)))
	a.text(keyPurpose, string(c.usage.Purpose))
	if turn > 0 {
		a.int(keyTurn, turn)
		a.int(keyTry, try)
	}
	if r.model.Simulated {
		a.bool(keySimulated, true)
	}
	r.usage(a, c)
	if r.content() {
		a.long(keyOutput, r.output(c))
	}
	r.send(s)
	r.measureChat(s, c)
}

// usage adds tokens and cost. What was not reported is left out rather than zero: a request that failed before anything
// arrived has no usage, and one without a known price has no cost.
func (r *Recorder) usage(a *attributes, c *chat) {
	tokens := c.usage.Tokens
	if tokens == (llm.Usage{}) {
		return
	}
	a.int(keyInputTokens, tokens.Prompt())
	a.int(keyOutputTokens, tokens.Output)
	if tokens.CacheRead > 0 {
		a.int(keyCacheRead, tokens.CacheRead)
	}
	if tokens.CacheWrite > 0 {
		a.int(r.names().cacheWrite, tokens.CacheWrite)
	}
	if tokens.Reasoning > 0 {
		a.int(keyReasoning, tokens.Reasoning)
	}
	if c.usage.Estimated {
		a.bool(keyEstimated, true)
	}
	if !c.total.Unpriced {
		a.float(keyCost, dollars(c.usage.CostMicroUSD))
	}
}

func dollars(m llm.MicroUSD) float64 { return float64(m) / 1e6 }

func (r *Recorder) measureChat(s *span, c *chat) {
	m, n, tokens := r.exporter.meter, r.names(), c.usage.Tokens
	labels := r.modelLabels(n.chatDuration, operationChat)
	labels.text(keyErrorType, s.failure)
	m.add(n.chatDuration, labels, s.seconds())
	if tokens == (llm.Usage{}) {
		return
	}
	for _, kind := range []struct {
		name string
		n    int64
	}{{"input", tokens.Prompt()}, {"output", tokens.Output}} {
		labels := r.modelLabels(n.tokens, operationChat)
		labels.text(keyTokenType, kind.name)
		m.add(n.tokens, labels, float64(kind.n))
	}
	for _, sum := range []struct {
		of *instrument
		n  int64
	}{{n.inputTokens, tokens.Prompt()}, {n.outputTokens, tokens.Output}, {n.cacheReadTokens, tokens.CacheRead},
		{n.cacheWriteTokens, tokens.CacheWrite}, {n.reasoningTokens, tokens.Reasoning}} {
		m.add(sum.of, r.modelLabels(sum.of, operationChat), float64(sum.n))
	}
	if !c.total.Unpriced {
		m.add(r.ours.cost, r.modelLabels(r.ours.cost, operationChat), dollars(c.usage.CostMicroUSD))
	}
}

// modelLabels starts the attributes of a measurement of the job's model.
func (r *Recorder) modelLabels(of *instrument, operation string) attributes {
	labels := of.labels()
	labels.text(keyOperation, operation)
	labels.text(keyProvider, providerName(r.model.Provider))
	labels.text(keyRequestModel, r.model.ID)
	return labels
}

// settleTool exports a tool call. The name is that of the tool that was found: what else a model may have written is
// content.
func (r *Recorder) settleTool(d *job.SpanData) {
	id := word(d, "callId")
	c, inner := r.calls[id], r.inner[id]
	delete(r.calls, id)
	delete(r.inner, id)
	if c == nil { // announced before the recorder listened
		c = &openCall{turn: r.turn.number}
	}
	tool := word(d, "tool")
	s := r.openCall(id, c, tool)
	s.start, s.end = times(d.StartUnixNano, d.DurationMS)
	if d.Status == job.SpanError {
		s.failure = errorTool
		if c.code != "" {
			s.failure = c.code
		}
	}
	a := &s.attributes
	kind := "function"
	if inner != nil {
		s.attributes = attributes{field: fieldSpanAttributes}
		a.text(keySpan, inner.Name)
		a.text(keyJobID, r.jobID)
		if inner.Name == job.SpanMCP {
			s.kind, kind = kindClient, "extension"
			a.text(keyMCPMethod, "tools/call")
		}
		if n, ok := number(inner, "nestedCalls"); ok && n > 0 {
			a.int(keyNestedCalls, n)
		}
	}
	r.callAttributes(a, id, c, tool, kind)
	if n, ok := number(d, "bytes"); ok {
		a.int(keyResultBytes, n)
	}
	r.send(s)
	r.measureTool(s, tool)
}

// openCall begins the span of a call.
func (r *Recorder) openCall(id string, c *openCall, tool string) *span {
	parent := ofJob
	switch {
	case c.parent != "":
		parent = ofCall(c.parent)
	case c.turn > 0:
		parent = ofTurn(c.turn)
	}
	return r.open(ofCall(id), parent, named(operationTool, tool), job.SpanTool)
}

func (r *Recorder) callAttributes(a *attributes, id string, c *openCall, tool, kind string) {
	a.text(keyOperation, operationTool)
	a.text(keyToolName, tool)
	a.text(keyToolType, kind)
	a.text(keyToolCallID, id)
	a.bool(keyAllowed, c.allowed)
	if c.input != nil {
		a.long(keyToolArguments, cut(string(c.input), maxContent))
	}
}

func (r *Recorder) measureTool(s *span, tool string) {
	m, n := r.exporter.meter, r.names()
	labels := r.ours.toolCalls.labels()
	labels.text(keyToolName, tool)
	labels.bool(keySuccess, s.failure == "")
	m.add(r.ours.toolCalls, labels, 1)
	labels = n.toolDuration.labels()
	labels.text(keyOperation, operationTool)
	labels.text(keyToolName, tool)
	labels.text(keyErrorType, s.failure)
	m.add(n.toolDuration, labels, s.seconds())
}

// interruptCall exports a call that was announced and never settled.
func (r *Recorder) interruptCall(id string, c *openCall, at time.Time) {
	s := r.openCall(id, c, "")
	s.start, s.end = c.since.UnixNano(), at.UnixNano()
	if !c.done || !c.success {
		s.failure = errorOther
	}
	r.callAttributes(&s.attributes, id, c, "", "function")
	s.attributes.bool(keyInterrupted, true)
	r.send(s)
	r.measureTool(s, "")
}

// settleOther exports a span that the conventions do not know, under its own name.
func (r *Recorder) settleOther(d *job.SpanData) {
	parent := ofJob
	if n, ok := number(d, "turn"); ok {
		parent = ofTurn(n)
	} else if id := word(d, "callId"); id != "" {
		parent = ofCall(id)
	} else if r.turn.number > 0 && !r.turn.settled {
		parent = ofTurn(r.turn.number)
	}
	s := r.open("span "+d.ID, parent, d.Name, d.Name)
	s.start, s.end = times(d.StartUnixNano, d.DurationMS)
	if d.Status == job.SpanError {
		s.failure = errorOther
	}
	if d.Name == job.SpanRetry {
		s.attributes.text("hozo.class", word(d, "class"))
	}
	r.numbers(&s.attributes, d)
	r.send(s)
}

// numbers adds the numbers and booleans of a span under our own names. Words are added one by one elsewhere, where it is
// known what they can say.
func (r *Recorder) numbers(a *attributes, d *job.SpanData, except ...string) {
	keys := make([]string, 0, len(d.Attributes))
	for key := range d.Attributes {
		if !slices.Contains(except, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		name := "hozo." + snake(key)
		if n, ok := number(d, key); ok {
			a.int(name, n)
			continue
		}
		switch v := d.Attributes[key].(type) {
		case float64:
			a.float(name, v)
		case bool:
			a.bool(name, v)
		}
	}
	if n, ok := number(d, "costMicroUsd"); ok {
		a.float(keyCost, float64(n)/1e6)
	}
}

// snake turns camel case into the form of attribute names.
func snake(key string) string {
	out := make([]byte, 0, len(key)+4)
	for _, c := range []byte(key) {
		if c >= 'A' && c <= 'Z' {
			out = append(out, '_')
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

// outputPart and outputMessage are the conventions' form of what a model said.
type outputPart struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

type outputMessage struct {
	Role   string       `json:"role"`
	Parts  []outputPart `json:"parts"`
	Finish string       `json:"finish_reason,omitempty"`
}

// output returns what the model said in a request as JSON, without credentials.
func (r *Recorder) output(c *chat) string {
	var parts []outputPart
	if c.text != "" {
		parts = append(parts, outputPart{Type: "text", Content: cut(r.redact(c.text), maxContent)})
	}
	parts = append(parts, c.calls...)
	if len(parts) == 0 {
		return ""
	}
	text, err := json.Marshal([]outputMessage{{Role: "assistant", Parts: parts, Finish: finishReason(string(c.usage.Stop))}})
	if err != nil {
		return "" // arguments that are no JSON any more
	}
	return r.redact(string(text))
}

// bounded returns JSON that is short enough, or a note instead.
func bounded(arguments json.RawMessage) json.RawMessage {
	if len(arguments) > maxContent || !json.Valid(arguments) {
		return json.RawMessage(`{"hozo.omitted":true}`)
	}
	return arguments
}

func (r *Recorder) names() *names { return r.exporter.settings.names }

// seconds returns the duration of the span, 0 if its clock went back.
func (s *span) seconds() float64 {
	return math.Max(0, time.Duration(s.end-s.start).Seconds())
}
