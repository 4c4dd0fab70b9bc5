package anthropic

import (
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// counts is a usage object; nil means that the object does not hold the count. The API counts the four buckets apart.
type counts struct {
	input, output, cacheRead, cacheWrite *int64
	cacheWrite5m, cacheWrite1h           *int64
	thinking                             *int64
}

// read overwrites the counts that the next value holds, and reports whether it holds a count of tokens.
func (c *counts) read(l *wire.Lexer) bool {
	found := false
	for key := range l.Members() {
		switch string(key) {
		case "input_tokens":
			found = number(l, &c.input) || found
		case "output_tokens":
			found = number(l, &c.output) || found
		case "cache_read_input_tokens":
			number(l, &c.cacheRead)
		case "cache_creation_input_tokens":
			number(l, &c.cacheWrite)
		case "ephemeral_5m_input_tokens":
			number(l, &c.cacheWrite5m)
		case "ephemeral_1h_input_tokens":
			number(l, &c.cacheWrite1h)
		case "thinking_tokens", "reasoning_tokens":
			number(l, &c.thinking)
		case "cache_creation", "output_tokens_details":
			c.read(l)
		default:
			l.Skip()
		}
	}
	return found
}

func number(l *wire.Lexer, field **int64) bool {
	n, ok := l.Int()
	if ok {
		*field = &n
	}
	return ok
}

// merge takes every count that later holds.
func (c *counts) merge(later counts) {
	for _, pair := range [][2]**int64{
		{&c.input, &later.input}, {&c.output, &later.output},
		{&c.cacheRead, &later.cacheRead}, {&c.cacheWrite, &later.cacheWrite},
		{&c.cacheWrite5m, &later.cacheWrite5m}, {&c.cacheWrite1h, &later.cacheWrite1h},
		{&c.thinking, &later.thinking},
	} {
		if *pair[1] != nil {
			*pair[0] = *pair[1]
		}
	}
}

// usage returns the four disjoint buckets.
func (c *counts) usage() llm.Usage {
	u := llm.Usage{
		Input: value(c.input), Output: value(c.output), CacheRead: value(c.cacheRead), CacheWrite: value(c.cacheWrite),
	}
	if c.cacheWrite == nil {
		u.CacheWrite = value(c.cacheWrite5m) + value(c.cacheWrite1h)
	}
	u.CacheWrite1h = min(value(c.cacheWrite1h), u.CacheWrite)
	u.Reasoning = min(value(c.thinking), u.Output)
	return u
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return max(*n, 0)
}
