package google

import (
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// counts is a usage object. The prompt includes what was cached, the candidates leave the thoughts out.
type counts struct {
	prompt, cached, tools, candidates, thoughts, total count
}

// count is one of them.
type count struct {
	n int64
	// said is set if the object holds the count.
	said bool
}

// read overwrites the counts that the next value holds, and reports whether it holds any.
func (c *counts) read(l *wire.Lexer) bool {
	found := false
	for key := range l.Members() {
		switch string(key) {
		case "promptTokenCount":
			found = c.prompt.read(l) || found
		case "candidatesTokenCount":
			found = c.candidates.read(l) || found
		case "thoughtsTokenCount":
			found = c.thoughts.read(l) || found
		case "cachedContentTokenCount":
			c.cached.read(l)
		case "toolUsePromptTokenCount":
			c.tools.read(l)
		case "totalTokenCount":
			c.total.read(l)
		default:
			l.Skip()
		}
	}
	return found
}

// most bounds a count, so that sums of counts stay in range.
const most = 1 << 50

func (c *count) read(l *wire.Lexer) bool {
	n, ok := l.Int()
	if ok {
		*c = count{min(max(n, 0), most), true}
	}
	return ok
}

// merge takes every count that later holds. Each event counts the whole response so far.
func (c *counts) merge(later *counts) {
	c.prompt.merge(later.prompt)
	c.cached.merge(later.cached)
	c.tools.merge(later.tools)
	c.candidates.merge(later.candidates)
	c.thoughts.merge(later.thoughts)
	c.total.merge(later.total)
}

func (c *count) merge(later count) {
	if later.said {
		*c = later
	}
}

// usage returns the four disjoint buckets. What tools at the provider fed back to the model is input. Some servers count
// the thoughts among the candidates; the total tells.
func (c *counts) usage() llm.Usage {
	prompt, tools, candidates, thoughts := c.prompt.n, c.tools.n, c.candidates.n, c.thoughts.n
	u := llm.Usage{CacheRead: c.cached.n, Output: candidates + thoughts, Reasoning: thoughts}
	u.Input = max(prompt-u.CacheRead, 0) + tools
	if candidates >= thoughts && c.total.n == prompt+tools+candidates {
		u.Output = candidates
	}
	return u
}
