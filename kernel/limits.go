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
	// suspended is set for a stop that ends the attempt and not the job.
	suspended *job.SuspendedData
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

// ledger counts what one agent has used. What a subagent uses is its parent's as well, at once: a limit of either holds.
// It belongs to the run's goroutine.
type ledger struct {
	// parent is the ledger that this one was carved from, nil for the agent of the job.
	parent   *ledger
	maxCost  *llm.USD
	total    job.TotalUsage
	failures int64
}

// gauge is how full the window of one dialog is.
type gauge struct {
	// window is 0 if unknown.
	window int64
	// prompt is what the next request will count: the prompt and answer of the last response, plus an estimate of what
	// was added since.
	prompt int64
}

// add counts bytes that the next request will carry and no provider has counted yet.
func (g *gauge) add(bytes int) { g.prompt += llm.EstimateTokens(bytes) }

// implausible is how many times more than a provider counted an estimate may be and still be the worse of both: no text
// has so many bytes a token.
const implausible = 8

// take goes by what was counted for the last response, of which so many bytes were received. Servers that count nothing,
// or only what they did not have in their cache, would keep a full window from being seen; then the estimate stays.
func (g *gauge) take(counted llm.Usage, received int) {
	g.prompt += llm.EstimateTokens(received)
	if total := counted.Total(); total >= g.prompt/implausible {
		g.prompt = total
	}
}

// root is the ledger of the job.
func (l *ledger) root() *ledger {
	for l.parent != nil {
		l = l.parent
	}
	return l
}

// left returns the least that this ledger or one above it may still spend, and the limit that says so.
func (l *ledger) left() (left llm.MicroUSD, limit *ledger) {
	for ; l != nil; l = l.parent {
		if l.maxCost == nil {
			continue
		}
		if rest := llm.MicroUSD(*l.maxCost) - l.total.CostMicroUSD; limit == nil || rest < left {
			left, limit = rest, l
		}
	}
	return left, limit
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
func (l *ledger) beforeRequest(g *gauge, price *llm.Price, wanted int64) (room, *stop) {
	if root := l.root(); root.total.Requests >= maxRequests || root.failures >= maxFailedRequests {
		return room{}, stopf(job.ReasonError, job.CodeRequestLimit, "stopped after %d requests to the model, %d of them failed",
			root.total.Requests, root.failures)
	}
	space := g.fit(wanted)
	left, limit := l.left()
	if limit == nil {
		return space, nil
	}
	if left < 0 || price.Cost(llm.Usage{Input: g.prompt, Output: reservedOutput}) > left {
		return room{}, stopf(job.ReasonBudget, job.CodeBudget,
			"stopped: the next request would cost more than is left of the %s USD limit (spent %s)", llm.MicroUSD(*limit.maxCost),
			limit.total.CostMicroUSD)
	}
	rate := price.For(g.prompt).Output
	if rate <= 0 {
		return space, nil
	}
	input := price.Cost(llm.Usage{Input: g.prompt})
	if fits := int64(left-input) * 1_000_000 / int64(rate); space.tokens == 0 || fits < space.tokens {
		return room{tokens: fits, by: job.ReasonBudget}, nil
	}
	return space, nil
}

// fit keeps an answer within the model's window, since some providers refuse a request whose prompt and longest answer do
// not fit together. The prompt is an estimate, so a margin stays free.
func (g *gauge) fit(wanted int64) room {
	if wanted == 0 || g.window == 0 {
		return room{tokens: wanted}
	}
	margin := max(min(4096, g.window/8), g.prompt*15/100)
	free := max(g.window-g.prompt-margin, 1)
	if free >= wanted {
		return room{tokens: wanted}
	}
	return room{tokens: free, by: job.ReasonContextOverflow}
}

// add books one request to a model of this price and returns what it cost. window is 0 for a dialog that is not the
// agent's own.
func (l *ledger) add(u llm.Usage, price *llm.Price, billed *llm.MicroUSD, window int64) llm.MicroUSD {
	var cost llm.MicroUSD
	switch {
	case billed != nil:
		cost = *billed
	case price != nil:
		cost = price.Cost(u)
	}
	if window > 0 {
		fill := float64(u.Total()) * 100 / float64(window)
		if l.total.ContextPeakPct == nil || fill > *l.total.ContextPeakPct {
			l.total.ContextPeakPct = &fill
		}
	}
	for ; l != nil; l = l.parent {
		l.total.Tokens.Add(u)
		l.total.CostMicroUSD += cost
		l.total.Unpriced = l.total.Unpriced || billed == nil && price == nil
	}
	return cost
}

// request counts a request that is about to be made.
func (l *ledger) request() {
	for ; l != nil; l = l.parent {
		l.total.Requests++
	}
}

// compaction counts a dialog that was made shorter.
func (l *ledger) compaction() {
	for ; l != nil; l = l.parent {
		l.total.Compactions++
	}
}

// fail counts a request that could not be used.
func (l *ledger) fail() {
	for ; l != nil; l = l.parent {
		l.failures++
	}
}

// overspent returns the stop of a job that has spent more than it may.
func (l *ledger) overspent() *stop {
	left, limit := l.left()
	if limit == nil || left >= 0 {
		return nil
	}
	return stopf(job.ReasonBudget, job.CodeBudget, "stopped: the job has cost %s USD, more than its limit of %s",
		limit.total.CostMicroUSD, llm.MicroUSD(*limit.maxCost))
}

// seconds converts a limit to a duration, without overflow.
func seconds(s float64) time.Duration {
	const most = float64(1 << 62)
	return time.Duration(min(s*float64(time.Second), most))
}
