package kernel

import (
	"fmt"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// book enters one request into the ledger and reports it. A response that was cut, or whose provider does not count, is
// estimated from what was sent and received and marked so. A request that failed before anything arrived costs nothing;
// it is reported all the same, so that whoever reads the events can count requests.
func (t *thread) book(ex *exchange, try int64, m *made) {
	r, response := t.run, &m.response
	usage, estimated := response.Usage, false
	if !response.UsageReported && (m.fault == nil || m.received > 0) {
		usage = llm.Usage{Input: ex.gauge.prompt, Output: llm.EstimateTokens(m.received)}
		estimated = true
	}
	window := int64(0)
	if ex.gauge == &t.gauge {
		window = ex.gauge.window
	}
	cost := t.ledger.add(usage, ex.model.Price, response.Billed, window)
	if m.fault == nil {
		ex.gauge.take(usage, m.received)
	}
	if estimated && !r.estimated {
		r.estimated = true
		r.emit(&job.Notice{Code: "usage-estimated", Message: "the provider did not report the usage of a request: it is estimated from the bytes sent and received"})
	}
	class := ""
	if m.fault != nil {
		class = m.fault.class
	}
	t.emit(&job.UsageData{
		Call: job.CallUsage{ID: t.callID(fmt.Sprintf("%s.%d", ex.label, try)), Purpose: ex.purpose, Model: ex.model.ID,
			ServedModel: r.redact(cut(response.ServedModel, 200)), Tokens: usage, CostMicroUSD: cost, PrefixHash: ex.dialog.PrefixHash(),
			Estimated: estimated, StartUnixNano: m.start.UnixNano(), DurationMS: milliseconds(m.took), Stop: response.Stop,
			Error: class, TextCall: response.TextCall},
		Total: t.ledger.root().total,
	})
}
