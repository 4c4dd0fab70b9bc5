package google

import (
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// counts is a usage object; nil means that the object does not hold the count. The prompt includes what was cached, the
// candidates leave the thoughts out.
type counts struct {
	prompt, cached, tools, candidates, thoughts, total *int64
}

// read overwrites the counts that the next value holds, and reports whether it holds any.
func (c *counts) read(l *wire.Lexer) bool {
	found := false
	for key := range l.Members() {
		switch string(key) {
		case "promptTokenCount":
			found = number(l, &c.prompt) || found
		case "candidatesTokenCount":
			found = number(l, &c.candidates) || found
		case "thoughtsTokenCount":
			found = number(l, &c.thoughts) || found
		case "cachedContentTokenCount":
			number(l, &c.cached)
		case "toolUsePromptTokenCount":
			number(l, &c.tools)
		case "totalTokenCount":
			number(l, &c.total)
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

// merge takes every count that later holds. Each event counts the whole response so far.
func (c *counts) merge(later counts) {
	for _, pair := range [][2]**int64{
		{&c.prompt, &later.prompt}, {&c.cached, &later.cached}, {&c.tools, &later.tools},
		{&c.candidates, &later.candidates}, {&c.thoughts, &later.thoughts}, {&c.total, &later.total},
	} {
		if *pair[1] != nil {
			*pair[0] = *pair[1]
		}
	}
}

// usage returns the four disjoint buckets. What tools at the provider fed back to the model is input. Some servers count
// the thoughts among the candidates; the total tells.
func (c *counts) usage() llm.Usage {
	prompt, tools, candidates, thoughts := value(c.prompt), value(c.tools), value(c.candidates), value(c.thoughts)
	u := llm.Usage{CacheRead: value(c.cached), Output: candidates + thoughts, Reasoning: thoughts}
	u.Input = max(prompt-u.CacheRead, 0) + tools
	if candidates >= thoughts && value(c.total) == prompt+tools+candidates {
		u.Output = candidates
	}
	return u
}

// most bounds a count, so that sums of counts stay in range.
const most = 1 << 50

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return min(max(*n, 0), most)
}
