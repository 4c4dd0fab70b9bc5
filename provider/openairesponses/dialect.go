package openairesponses

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// dialect is what a server understands beyond the common core.
type dialect struct {
	developerRole bool
	store         bool
	cacheKey      bool
	strictTools   bool
	parallelTools *bool
	thinking      string
	replay        replay
}

// replay says which items of earlier thinking go back to the model.
type replay uint8

const (
	// replayNone sends none back and does not ask for them.
	replayNone replay = iota
	// replaySealed sends those that are encrypted: without the provider's memory it knows no others.
	replaySealed
	// replayAll sends every item, for servers whose thinking is plain text.
	replayAll
)

const (
	thinkingNone   = "none"
	thinkingOpenAI = "openai"
	// thinkingEffort asks for no summaries, which some accounts may not have.
	thinkingEffort = "effort"
)

// dialectOf returns the defaults of the server with the model's own switches applied.
func dialectOf(official bool, m llm.Model) (dialect, error) {
	// Only models that think know the role "developer", and encrypted items are refused for the others.
	thinks := wire.Thinks(m)
	d := dialect{store: true, developerRole: official && thinks, cacheKey: official, thinking: thinkingOpenAI}
	c := m.Compat
	wire.Override(&d.developerRole, c.DeveloperRole)
	wire.Override(&d.store, c.Store)
	wire.Override(&d.cacheKey, c.PromptCache)
	wire.Override(&d.strictTools, c.StrictTools)
	d.parallelTools = c.ParallelToolCalls
	switch {
	case c.ReplayThinking != nil && !*c.ReplayThinking:
	case c.ReplayThinking != nil && !official:
		d.replay = replayAll
	case thinks:
		d.replay = replaySealed
	}
	if c.ThinkingDialect != "" {
		d.thinking = c.ThinkingDialect
	}
	known := []string{thinkingNone, thinkingOpenAI, thinkingEffort}
	if !slices.Contains(known, d.thinking) {
		return d, fmt.Errorf("compat thinkingDialect: %q is none of %s", d.thinking, strings.Join(known, " "))
	}
	if !thinks {
		d.thinking = thinkingNone
	}
	return d, nil
}
