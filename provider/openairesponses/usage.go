package openairesponses

import (
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// counts is a usage object. The input includes what was read from and written to a cache, the output includes thinking.
type counts struct {
	reported           bool
	input, output      int64
	cached, cacheWrite int64
	reasoning          int64
	cost               llm.MicroUSD
	hasCost            bool
}

// read replaces c by the next value, unless that holds no count.
func (c *counts) read(l *wire.Lexer) {
	var n counts
	n.members(l)
	if n.reported {
		*c = n
	}
}

func (c *counts) members(l *wire.Lexer) {
	for key := range members(l) {
		switch string(key) {
		case "input_tokens":
			c.count(l, &c.input)
		case "output_tokens":
			c.count(l, &c.output)
		case "input_tokens_details", "output_tokens_details":
			c.members(l)
		case "cached_tokens":
			c.cached, _ = l.Int()
		case "cache_write_tokens", "cache_creation_tokens":
			c.cacheWrite, _ = l.Int()
		case "reasoning_tokens":
			c.reasoning, _ = l.Int()
		case "cost":
			c.cost, c.hasCost = wire.Dollars(l.Raw())
		default:
			l.Skip()
		}
	}
}

func (c *counts) count(l *wire.Lexer, field *int64) {
	n, ok := l.Int()
	*field, c.reported = n, c.reported || ok
}

// usage returns the four disjoint buckets.
func (c *counts) usage() llm.Usage {
	u := llm.Usage{CacheRead: max(c.cached, 0), CacheWrite: max(c.cacheWrite, 0), Output: max(c.output, 0)}
	u.Input = max(c.input-u.CacheRead-u.CacheWrite, 0)
	u.Reasoning = min(max(c.reasoning, 0), u.Output)
	return u
}

// billed returns the price as the server states it: as an amount, or by naming a service tier that is not the one of the
// price list. It is nil if the list holds.
func (c *counts) billed(tier, model string, price *llm.Price) *llm.MicroUSD {
	if c.hasCost {
		return &c.cost
	}
	halves := tierHalves(tier, model)
	if !c.reported || price == nil || halves == 2 {
		return nil
	}
	cost := (price.Cost(c.usage())*halves + 1) / 2
	return &cost
}

// tierHalves returns what a service tier costs in halves of the price list.
func tierHalves(tier, model string) llm.MicroUSD {
	switch tier {
	case "flex":
		return 1
	case "priority", "fast":
		if strings.HasPrefix(model, "gpt-5.5") {
			return 5
		}
		return 4
	}
	return 2
}
