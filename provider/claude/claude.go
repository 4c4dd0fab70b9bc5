// Package claude knows what the Claude models want, wherever they are served: how a thinking level is asked for, and how
// much of the output limit thinking may take. The Messages API takes these members at the top of a request, Amazon
// Bedrock as additional fields; their form is the same. The package does no input or output and builds JSON text only.
package claude

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// Thinking is how the thinking level of an opening is sent. The zero value sends nothing.
type Thinking struct {
	on bool
	// budget is the number of thinking tokens, 0 for adaptive thinking.
	budget int64
	// effort is the word for adaptive thinking.
	effort string
	// off says that the model must be told not to think.
	off bool
	// terse leaves out how the thinking is shown.
	terse bool
}

const (
	dialectBudget   = "budget"
	dialectAdaptive = "adaptive"
	// leastBudget is the smallest budget that the models take, and what must be left for the answer beside it.
	leastBudget = 1024
)

// ThinkingOf returns how the level of an opening is sent. The errors are for the author of the job: a switch that is not
// known, or a temperature that thinking excludes.
func ThinkingOf(o llm.Opening) (Thinking, error) {
	t, err := levelOf(o)
	if err == nil && t.on && o.Temperature != nil && *o.Temperature != 1 {
		return Thinking{}, errors.New("temperature: this API takes no temperature other than 1 while the model thinks; " +
			"leave it out or set thinking to off")
	}
	return t, err
}

func levelOf(o llm.Opening) (Thinking, error) {
	dialect := o.Model.Compat.ThinkingDialect
	switch dialect {
	case "":
		if dialect = dialectBudget; adaptive(o.Model.ID) {
			dialect = dialectAdaptive
		}
	case dialectBudget, dialectAdaptive, "none":
	default:
		return Thinking{}, fmt.Errorf("compat thinkingDialect: %q is none of %s %s none", dialect, dialectBudget,
			dialectAdaptive)
	}
	if dialect == "none" || !wire.Thinks(o.Model) {
		return Thinking{}, nil
	}
	if o.Thinking == "" || o.Thinking == llm.LevelOff {
		return Thinking{off: true}, nil
	}
	if dialect == dialectAdaptive {
		return Thinking{on: true, effort: effortWord(o)}, nil
	}
	budget := levelBudget(o.Thinking)
	if most := o.Model.MaxOutputTokens; most > 0 {
		budget = max(min(budget, most-leastBudget), leastBudget)
	}
	return Thinking{on: true, budget: budget}, nil
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

// defaultMaxTokens is the output limit where neither the call nor the model has one; the models demand a limit.
const defaultMaxTokens = 4096

// MaxTokens returns the output limit of a request: that of the call, else that of the model, else one with room for the
// thinking.
func (t Thinking) MaxTokens(call llm.Call, model llm.Model) int64 {
	switch {
	case call.MaxOutputTokens > 0:
		return call.MaxOutputTokens
	case model.MaxOutputTokens > 0:
		return model.MaxOutputTokens
	}
	return defaultMaxTokens + t.budget
}

// Fits reports whether thinking leaves room for an answer below an output limit.
func (t Thinking) Fits(most int64) bool { return t.budget == 0 || t.budget <= most-leastBudget }

// Within returns the thinking for a call with a smaller output limit than the budget needs. Such a call gives up the
// shared prefix; the API would refuse it otherwise.
func (t Thinking) Within(most int64) Thinking {
	if most < 2*leastBudget {
		return Thinking{off: true}
	}
	t.budget = most - leastBudget
	return t
}

// Terse returns the thinking without the member that asks for a summary of it, which some servers refuse.
func (t Thinking) Terse() Thinking {
	t.terse = true
	return t
}

// Append appends the members of a request that ask for the thinking, with a comma between them and none around; nothing
// if there is nothing to ask.
func (t Thinking) Append(b []byte) []byte {
	switch {
	case t.off:
		return append(b, `"thinking":{"type":"disabled"}`...)
	case !t.on:
		return b
	case t.budget == 0:
		b = append(b, `"thinking":{"type":"adaptive"`...)
		if !t.terse {
			b = append(b, `,"display":"summarized"`...)
		}
		b = append(b, `},"output_config":{"effort":`...)
		b = wire.AppendString(b, t.effort)
		return append(b, '}')
	}
	b = append(b, `"thinking":{"type":"enabled","budget_tokens":`...)
	b = strconv.AppendInt(b, t.budget, 10)
	return append(b, '}')
}

// Asks reports whether Append appends anything.
func (t Thinking) Asks() bool { return t.on || t.off }

// Named reports whether a model id, alone or within the name of a profile, is that of a Claude model.
func Named(id string) bool { return strings.Contains(id, "claude") }

// Version returns the version in a model id, as 4 and 5 of "us.anthropic.claude-haiku-4-5-20251001-v1:0"; 0 and 0 for an
// id without one.
func Version(id string) (major, minor int) {
	_, name, ok := strings.Cut(id, "claude-")
	if !ok {
		return 0, 0
	}
	var version []int
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-.@:", r) }) {
		if n, err := strconv.ParseUint(word, 10, 8); err == nil && len(word) <= 2 {
			version = append(version, int(n))
		} else if len(version) > 0 {
			break
		}
	}
	version = append(version, 0, 0)
	return version[0], version[1]
}

// adaptive reports whether a model of this name decides by itself how long it thinks: Claude from version 4.6 on.
func adaptive(id string) bool {
	major, minor := Version(id)
	return major > 4 || (major == 4 && minor >= 6)
}
