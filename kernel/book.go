package kernel

import (
	"fmt"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// addPrompt counts bytes that the next request will carry and no provider has counted yet.
func (l *ledger) addPrompt(bytes int) { l.prompt += llm.EstimateTokens(bytes) }

// request is what the clock and the stream know of a request.
type request struct {
	start time.Time
	took  time.Duration
	// received counts the bytes of all deltas.
	received int
}

// book enters one request into the ledger and reports it. A response that was cut, or whose provider does not count, is
// estimated from what was sent and received and marked so. A request that failed before anything arrived costs nothing;
// it is reported all the same, so that whoever reads the events can count requests.
func (r *run) book(turn, try int64, response llm.Response, made request, f *fault) {
	usage, estimated := response.Usage, false
	if !response.UsageReported && (f == nil || made.received > 0) {
		usage = llm.Usage{Input: r.ledger.prompt, Output: llm.EstimateTokens(made.received)}
		estimated = true
	}
	cost := r.ledger.add(usage, response.Billed)
	if f == nil {
		r.ledger.prompt = usage.Total()
	}
	if estimated && !r.estimated {
		r.estimated = true
		r.emit(&job.Notice{Code: "usage-estimated", Message: "the provider did not report the usage of a request: it is estimated from the bytes sent and received"})
	}
	class := ""
	if f != nil {
		class = f.class
	}
	r.emit(&job.UsageData{
		Call: job.CallUsage{ID: fmt.Sprintf("%d.%d", turn, try), Purpose: llm.PurposeTurn, Model: r.spec.Model.ID,
			ServedModel: r.redact(cut(response.ServedModel, 200)), Tokens: usage, CostMicroUSD: cost, PrefixHash: r.plan.dialog.PrefixHash(),
			Estimated: estimated, StartUnixNano: made.start.UnixNano(), DurationMS: milliseconds(made.took), Stop: response.Stop,
			Error: class},
		Total: r.ledger.total,
	})
}
