package kernel

import (
	"fmt"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// stop is the one way in which a job ends without an answer: every limit, fault and abort becomes one. As the cause of
// the job's context it also tells why a request or a tool was cut short.
type stop struct {
	reason  job.Reason
	code    string
	message string
	details map[string]any
}

// Error returns the message.
func (s *stop) Error() string { return s.message }

func stopf(reason job.Reason, code, format string, args ...any) *stop {
	return &stop{reason: reason, code: code, message: fmt.Sprintf(format, args...)}
}

const (
	// maxFailedRequests and maxRequests bound the requests of a job whatever goes wrong, so that no reply can turn it into
	// a storm.
	maxFailedRequests = 64
	maxRequests       = 10_000
	// reservedOutput is the shortest answer, in tokens, that a money limit must leave room for.
	reservedOutput = 1024
)

// ledger counts what the job has used. It belongs to the run's goroutine.
type ledger struct {
	price    *llm.Price
	maxCost  *llm.USD
	window   int64
	total    job.TotalUsage
	failures int64
	// prompt is what the next request will count: the prompt and answer of the last response, plus an estimate of what
	// was added since.
	prompt int64
}

// room is the longest answer that a request may ask for, and what bounded it.
type room struct {
	// tokens is 0 for no bound.
	tokens int64
	// by is the limit that made the room smaller than the answer wanted: a reason, or "" for none.
	by job.Reason
}

// beforeRequest refuses a request that a limit forbids and returns how long its answer may be. wanted is the longest
// answer that would be asked for otherwise, 0 for no bound.
func (l *ledger) beforeRequest(wanted int64) (room, *stop) {
	if l.total.Requests >= maxRequests || l.failures >= maxFailedRequests {
		return room{}, stopf(job.ReasonError, job.CodeRequestLimit, "stopped after %d requests to the model, %d of them failed",
			l.total.Requests, l.failures)
	}
	space := l.fitWindow(wanted)
	if l.maxCost == nil {
		return space, nil
	}
	left := llm.MicroUSD(*l.maxCost) - l.total.CostMicroUSD
	if left < 0 || l.price.Cost(llm.Usage{Input: l.prompt, Output: reservedOutput}) > left {
		return room{}, stopf(job.ReasonBudget, job.CodeBudget,
			"stopped: the next request would cost more than is left of the %s USD limit (spent %s)", llm.MicroUSD(*l.maxCost),
			l.total.CostMicroUSD)
	}
	rate := l.price.For(l.prompt).Output
	if rate <= 0 {
		return space, nil
	}
	input := l.price.Cost(llm.Usage{Input: l.prompt})
	if fits := int64(left-input) * 1_000_000 / int64(rate); space.tokens == 0 || fits < space.tokens {
		return room{tokens: fits, by: job.ReasonBudget}, nil
	}
	return space, nil
}

// fitWindow keeps an answer within the model's window, since some providers refuse a request whose prompt and longest
// answer do not fit together. The prompt is an estimate, so a margin stays free.
func (l *ledger) fitWindow(wanted int64) room {
	if wanted == 0 || l.window == 0 {
		return room{tokens: wanted}
	}
	margin := max(min(4096, l.window/8), l.prompt*15/100)
	free := max(l.window-l.prompt-margin, 1)
	if free >= wanted {
		return room{tokens: wanted}
	}
	return room{tokens: free, by: job.ReasonContextOverflow}
}

// add books one request and returns what it cost.
func (l *ledger) add(u llm.Usage, billed *llm.MicroUSD) llm.MicroUSD {
	var cost llm.MicroUSD
	switch {
	case billed != nil:
		cost = *billed
	case l.price != nil:
		cost = l.price.Cost(u)
	default:
		l.total.Unpriced = true
	}
	l.total.Tokens.Add(u)
	l.total.CostMicroUSD += cost
	if l.window > 0 {
		fill := float64(u.Total()) * 100 / float64(l.window)
		if l.total.ContextPeakPct == nil || fill > *l.total.ContextPeakPct {
			l.total.ContextPeakPct = &fill
		}
	}
	return cost
}

// overspent returns the stop of a job that has spent more than it may.
func (l *ledger) overspent() *stop {
	if l.maxCost == nil || l.total.CostMicroUSD <= llm.MicroUSD(*l.maxCost) {
		return nil
	}
	return stopf(job.ReasonBudget, job.CodeBudget, "stopped: the job has cost %s USD, more than its limit of %s",
		l.total.CostMicroUSD, llm.MicroUSD(*l.maxCost))
}

// seconds converts a limit to a duration, without overflow.
func seconds(s float64) time.Duration {
	const most = float64(1 << 62)
	return time.Duration(min(s*float64(time.Second), most))
}
