// Package anthropic speaks the Messages API of Anthropic and of the servers that offer the same API.
//
// A request is a byte-stable head (model, thinking, tools, system prompt with a cache mark at the end of its shared
// part), the messages, each encoded once when it is appended, and a short tail with what varies by call. Consecutive
// messages that the API counts to one role are sent as one. A response is decoded event by event as a pure function of
// its bytes. The adapter never retries and decides nothing: retries, limits and the running of tools are the kernel's.
package anthropic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// API is the name of this API family in a job spec.
const API = "anthropic-messages"

const (
	defaultBase = "https://api.anthropic.com"
	apiVersion  = "2023-06-01"
)

type provider struct{ endpoint *wire.Endpoint }

// New returns the provider for an account. It is an llm.Adapter. The base URL may end in /v1 or before it.
func New(account llm.Account) (llm.Provider, error) {
	account.BaseURL = strings.TrimSuffix(strings.TrimRight(account.BaseURL, "/"), "/v1")
	endpoint, err := wire.NewEndpoint(account, defaultBase, "/v1/messages", wire.Auth{Header: "X-Api-Key"},
		map[string]string{"Anthropic-Version": apiVersion})
	if err != nil {
		return nil, err
	}
	return &provider{endpoint}, nil
}

// Converse opens a dialog; see llm.Provider.
func (p *provider) Converse(o llm.Opening) (llm.Dialog, error) {
	if err := wire.CheckOpening(o); err != nil {
		return nil, err
	}
	t, err := thinkingOf(o)
	if err != nil {
		return nil, err
	}
	if t.on && o.Temperature != nil && *o.Temperature != 1 {
		return nil, errors.New("temperature: this API takes no temperature other than 1 while the model thinks; " +
			"leave it out or set thinking to off")
	}
	c := &dialog{sender: wire.Sender{Endpoint: p.endpoint, Tags: o.Tags}, model: o.Model, thinking: t}
	c.ids = wire.CallIDs{Extra: "_-"}
	c.cache = o.Model.Compat.PromptCache == nil || *o.Model.Compat.PromptCache
	c.appendHead(o)
	return c, nil
}

// thinking is how the opening's level is sent.
type thinking struct {
	on bool
	// budget is the number of thinking tokens, 0 for adaptive thinking.
	budget int64
	// effort is the word for adaptive thinking.
	effort string
	// off says that the model must be told not to think.
	off bool
}

const (
	dialectBudget   = "budget"
	dialectAdaptive = "adaptive"
	// leastBudget is the smallest budget that the API takes, and what must be left for the answer beside it.
	leastBudget = 1024
)

func thinkingOf(o llm.Opening) (thinking, error) {
	dialect := o.Model.Compat.ThinkingDialect
	switch dialect {
	case "":
		if dialect = dialectBudget; adaptiveModel(o.Model.ID) {
			dialect = dialectAdaptive
		}
	case dialectBudget, dialectAdaptive, "none":
	default:
		return thinking{}, fmt.Errorf("compat thinkingDialect: %q is none of %s %s none", dialect, dialectBudget,
			dialectAdaptive)
	}
	if dialect == "none" || !wire.Thinks(o.Model) {
		return thinking{}, nil
	}
	if o.Thinking == "" || o.Thinking == llm.LevelOff {
		return thinking{off: true}, nil
	}
	if dialect == dialectAdaptive {
		return thinking{on: true, effort: effortWord(o)}, nil
	}
	budget := levelBudget(o.Thinking)
	if most := o.Model.MaxOutputTokens; most > 0 {
		budget = max(min(budget, most-leastBudget), leastBudget)
	}
	return thinking{on: true, budget: budget}, nil
}

func levelBudget(level llm.Level) int64 {
	switch level {
	case llm.LevelMinimal:
		return leastBudget
	case llm.LevelLow:
		return 2048
	case llm.LevelMedium:
		return 8192
	}
	return 16384
}

func effortWord(o llm.Opening) string {
	if word, ok := o.Model.Compat.ThinkingEfforts[o.Thinking]; ok {
		return word
	}
	if o.Thinking == llm.LevelMinimal {
		return string(llm.LevelLow)
	}
	return string(o.Thinking)
}

// adaptiveModel reports whether a model of this name decides by itself how long it thinks: Claude from version 4.6 on.
func adaptiveModel(id string) bool {
	_, name, ok := strings.Cut(id, "claude-")
	if !ok {
		return false
	}
	var version []int
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' || r == '@' }) {
		n, digits := 0, strings.Trim(word, "0123456789") == "" && len(word) <= 2
		if !digits {
			if len(version) > 0 {
				break
			}
			continue
		}
		for _, c := range word {
			n = n*10 + int(c-'0')
		}
		version = append(version, n)
	}
	if len(version) == 0 {
		return false
	}
	version = append(version, 0)
	return version[0] > 4 || (version[0] == 4 && version[1] >= 6)
}
