package calendar

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/tool"
)

// The names of the tools.
const (
	QueryTool   = "query_events"
	ProposeTool = "propose_events"
)

// MaxProposed is the most events of one proposal.
const MaxProposed = 50

// Scope is what a run may do. It travels in the context of the run's connection and never in what a model writes.
type Scope struct {
	// Approve says that events of this run are approved at once.
	Approve bool
}

type scopeKey struct{}

// WithScope returns a context for hostserver.Server.Connect.
func WithScope(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

func scopeOf(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}

// Tools returns the tools of an agent that keeps the calendar.
func (s *Store) Tools() []hostserver.Tool {
	return []hostserver.Tool{hostserver.New(queryDeclaration(), s.queryTool), hostserver.New(proposeDeclaration(), s.proposeTool)}
}

func queryDeclaration() job.HostTool {
	return job.HostTool{
		Name: QueryTool, Version: "1", Effect: string(tool.EffectRead), Idempotent: true,
		Description: "Lists events that the calendar has, by day, with their status. Use it before you research, so that you look for what is missing.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
			"from":{"type":"string","description":"first day, as 2027-03-28"},
			"to":{"type":"string","description":"last day, as 2027-03-28"},
			"status":{"type":"string","enum":["proposed","approved","rejected"]},
			"text":{"type":"string","description":"words in the title, the venue or the description"},
			"limit":{"type":"integer","minimum":1,"maximum":200},
			"cursor":{"type":"string","description":"nextCursor of the list before"}}}`),
	}
}

func proposeDeclaration() job.HostTool {
	return job.HostTool{
		Name: ProposeTool, Version: "1", Effect: string(tool.EffectWrite), Idempotent: true,
		Description: "Proposes events for the calendar. Each needs title, date, timeZone (an IANA name), venue and sourceUrl (the page that " +
			"announces it). Valid events are taken; for each other one all problems are listed: correct it and propose it again. " +
			"An event that the calendar has already is updated, not added twice.",
		InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["events"],"properties":{
			"events":{"type":"array","minItems":1,"maxItems":%d,"items":{"type":"object","additionalProperties":false,"properties":{
				"title":{"type":"string"},
				"date":{"type":"string","description":"first day, as 2027-03-28"},
				"endDate":{"type":"string","description":"last day, if there is more than one"},
				"startTime":{"type":"string","description":"local time, as 19:30"},
				"endTime":{"type":"string","description":"local time, as 22:00"},
				"timeZone":{"type":"string","description":"IANA name, such as Europe/Lisbon"},
				"venue":{"type":"string"},
				"sourceUrl":{"type":"string","description":"address of the page that announces the event"},
				"description":{"type":"string"}}}}}}`, MaxProposed)),
	}
}

// query is what the model may ask for.
type query struct {
	From, To, Status, Text, Cursor string
	Limit                          int
}

func (s *Store) queryTool(ctx context.Context, _ *hostserver.Call, q query) hostserver.Result {
	page, err := s.List(ctx, Filter{From: q.From, To: q.To, Status: Status(q.Status), Text: q.Text, Limit: q.Limit, Cursor: q.Cursor})
	if err != nil {
		return hostserver.Errorf("%v", err)
	}
	return hostserver.Value(page)
}

func (s *Store) proposeTool(ctx context.Context, call *hostserver.Call, p struct{ Events []Details }) hostserver.Result {
	results, err := s.Propose(ctx, Proposal{RunID: call.Run, CallID: call.ID, Approve: scopeOf(ctx).Approve, Events: p.Events})
	if err != nil {
		return hostserver.Errorf("the calendar could not be changed; nothing was: %v", err)
	}
	return hostserver.Result{Text: explain(results), Value: map[string]any{"results": results}, IsError: allInvalid(results)}
}

func allInvalid(results []Result) bool {
	for _, r := range results {
		if r.Outcome != Invalid {
			return false
		}
	}
	return true
}

// explain writes results for the model, one line for each event and for each problem.
func explain(results []Result) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%d. %q on %s: %s", r.Index, r.Title, r.Date, r.Outcome)
		if r.ID != "" {
			fmt.Fprintf(&b, ", %s (%s)", r.Status, r.ID)
		}
		b.WriteByte('\n')
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "   - %s\n", p)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
