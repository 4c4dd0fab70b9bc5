package openaichat

import (
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// counts is a usage object as servers of this family send it. The prompt includes cached tokens; some servers leave
// thinking out of the completion.
type counts struct {
	reported                           bool
	prompt, completion, total          int64
	cached, hit, cacheWrite, reasoning int64
	cost, upstreamCost                 llm.MicroUSD
	hasCost, ownKey                    bool
}

// read replaces c by the next value; null and other values that are no object change nothing, and so does an object
// without any count.
func (c *counts) read(l *wire.Lexer) {
	if l.Kind() != '{' {
		l.Skip()
		return
	}
	var n counts
	for key := range l.Members() {
		n.member(l, string(key))
	}
	if n.reported {
		*c = n
	}
}

func (c *counts) member(l *wire.Lexer, key string) {
	switch key {
	case "prompt_tokens", "completion_tokens":
		n, ok := l.Int()
		c.reported = c.reported || ok
		if key == "prompt_tokens" {
			c.prompt = n
		} else {
			c.completion = n
		}
	case "total_tokens":
		c.total, _ = l.Int()
	case "prompt_cache_hit_tokens", "cached_tokens":
		c.hit, _ = l.Int()
	case "cache_creation_input_tokens":
		c.cacheWrite, _ = l.Int()
	case "prompt_tokens_details", "completion_tokens_details", "cost_details":
		c.details(l)
	case "cost":
		c.cost, c.hasCost = wire.Dollars(l.Raw())
	case "is_byok":
		c.ownKey, _ = l.Bool()
	default:
		l.Skip()
	}
}

func (c *counts) details(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "cached_tokens":
			c.cached, _ = l.Int()
		case "cache_write_tokens":
			c.cacheWrite, _ = l.Int()
		case "reasoning_tokens":
			c.reasoning, _ = l.Int()
		case "upstream_inference_cost":
			c.upstreamCost, _ = wire.Dollars(l.Raw())
		default:
			l.Skip()
		}
	}
}

// usage returns the four disjoint buckets.
func (c counts) usage() llm.Usage {
	u := llm.Usage{Reasoning: max(c.reasoning, 0), Output: max(c.completion, 0)}
	u.CacheRead = max(c.cached, c.hit, 0)
	u.CacheWrite = max(c.cacheWrite, 0)
	u.Input = max(c.prompt-u.CacheRead-u.CacheWrite, 0)
	outside := c.total == c.prompt+c.completion+c.reasoning || u.Reasoning > u.Output
	if u.Reasoning > 0 && outside {
		u.Output += u.Reasoning
	}
	return u
}

// billed returns the price as the server states it. With a key of one's own at the upstream provider, the server's fee
// and the upstream price are both paid.
func (c counts) billed() *llm.MicroUSD {
	if !c.hasCost {
		return nil
	}
	sum := c.cost
	if c.ownKey {
		sum += c.upstreamCost
	}
	return &sum
}
