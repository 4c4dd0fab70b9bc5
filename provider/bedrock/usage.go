package bedrock

import (
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// counts is a usage object. The API counts the input beside what was read from and written to a cache.
type counts struct {
	input, output, cacheRead, cacheWrite, cacheWrite1h int64
	// reported says that the object held a count.
	reported bool
}

// read takes the counts that the next value holds.
func (c *counts) read(l *wire.Lexer) {
	for key := range l.Members() {
		switch string(key) {
		case "inputTokens":
			c.input = c.number(l)
		case "outputTokens":
			c.output = c.number(l)
		case "cacheReadInputTokens", "cacheReadInputTokenCount":
			c.cacheRead = c.number(l)
		case "cacheWriteInputTokens", "cacheWriteInputTokenCount":
			c.cacheWrite = c.number(l)
		case "cacheDetails":
			c.details(l)
		default:
			l.Skip()
		}
	}
}

func (c *counts) number(l *wire.Lexer) int64 {
	n, ok := l.Int()
	c.reported = c.reported || ok
	return max(n, 0)
}

// details reads how long each part of what was written to the cache stays there.
func (c *counts) details(l *wire.Lexer) {
	if !l.Array() {
		return
	}
	for l.Elem() {
		var tokens int64
		var ttl string
		for key := range l.Members() {
			switch string(key) {
			case "inputTokens":
				tokens, _ = l.Int()
			case "ttl":
				ttl = string(l.String())
			default:
				l.Skip()
			}
		}
		if ttl == "1h" {
			c.cacheWrite1h += max(tokens, 0)
		}
	}
}

// usage returns the four disjoint buckets.
func (c *counts) usage() llm.Usage {
	return llm.Usage{Input: c.input, Output: c.output, CacheRead: c.cacheRead, CacheWrite: c.cacheWrite,
		CacheWrite1h: min(c.cacheWrite1h, c.cacheWrite)}
}
