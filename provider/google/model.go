package google

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// traits are how the models of a generation differ on the wire.
type traits struct {
	// levels says that thinking is asked for by a word and not by a number of tokens.
	levels bool
	// nested says that images may stand inside a result.
	nested bool
	// ids says that calls have ids; without them results are matched by their order.
	ids bool
	// signed says that the API refuses a call of the current turn without a thought signature.
	signed bool
}

// traitsOf reads the generation from a model's name. A name without one, such as that of a tuned model, is taken for one
// that knows ids and nothing else of the newer ones.
func traitsOf(id string) traits {
	switch n := generation(id, "gemini-"); {
	case n >= 3:
		return traits{levels: true, nested: true, ids: true, signed: true}
	case n > 0:
		return traits{}
	}
	return traits{ids: true, levels: generation(id, "gemma-") >= 4}
}

// generation returns the number after the family in a model's name, 0 if there is none. The aliases of the latest models
// stand for the third one and those after it.
func generation(id, family string) int {
	_, rest, ok := strings.Cut(id, family)
	if !ok {
		return 0
	}
	if strings.HasSuffix(rest, "-latest") && (rest[0] < '0' || rest[0] > '9') {
		return 3
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// thinking is how the opening's level is sent.
type thinking struct {
	// sent says that anything is sent at all.
	sent bool
	// level is the word for the models that take one, else "".
	level string
	// budget is the number of thinking tokens; dynamicBudget leaves it to the model.
	budget int64
	// least is the smallest budget that the model takes.
	least int64
	// show asks for the thoughts themselves.
	show bool
}

const (
	dialectNone   = "none"
	dialectBudget = "budget"
	dialectLevel  = "level"

	dynamicBudget = -1
)

func thinkingOf(o llm.Opening) (thinking, error) {
	dialect := o.Model.Compat.ThinkingDialect
	switch dialect {
	case "":
		if dialect = dialectBudget; traitsOf(o.Model.ID).levels {
			dialect = dialectLevel
		}
	case dialectNone, dialectBudget, dialectLevel:
	default:
		return thinking{}, fmt.Errorf("compat thinkingDialect: %q is none of %s %s %s", dialect, dialectNone, dialectBudget, dialectLevel)
	}
	if dialect == dialectNone || !wire.Thinks(o.Model) {
		return thinking{}, nil
	}
	if o.Thinking == "" {
		o.Thinking = llm.LevelOff
	}
	if dialect == dialectLevel {
		return levelThinking(o), nil
	}
	return budgetThinking(o), nil
}

// levelThinking asks for a level by name. These models always think, so that "off" is their least level, unseen.
func levelThinking(o llm.Opening) thinking {
	level := o.Thinking
	if level == llm.LevelOff {
		level = llm.LevelLow
		for _, l := range o.Model.ThinkingLevels {
			if l != llm.LevelOff {
				level = l
				break
			}
		}
	}
	word, ok := o.Model.Compat.ThinkingEfforts[level]
	if !ok {
		word = strings.ToUpper(string(level))
	}
	return thinking{sent: true, level: word, show: o.Thinking != llm.LevelOff}
}

func budgetThinking(o llm.Opening) thinking {
	b := budgetsOf(o.Model.ID)
	t := thinking{sent: true, least: b.least, show: true}
	switch o.Thinking {
	case llm.LevelOff:
		t.budget, t.show = b.off, false
	case llm.LevelMinimal:
		t.budget = b.minimal
	case llm.LevelLow:
		t.budget = b.low
	case llm.LevelMedium:
		t.budget = b.medium
	default:
		t.budget = b.most
	}
	return t
}

// budgets are the thinking tokens of a model's levels.
type budgets struct{ off, minimal, low, medium, most, least int64 }

// budgetsOf knows the models whose ranges are published. 2.5 Pro cannot stop thinking.
func budgetsOf(id string) budgets {
	switch {
	case strings.Contains(id, "gemini-2.5-pro"):
		return budgets{off: 128, minimal: 128, low: 2048, medium: 8192, most: 32768, least: 128}
	case strings.Contains(id, "gemini-2.5-flash-lite"):
		return budgets{off: 0, minimal: 512, low: 2048, medium: 8192, most: 24576, least: 512}
	case strings.Contains(id, "gemini-2.5-flash"):
		return budgets{off: 0, minimal: 128, low: 2048, medium: 8192, most: 24576, least: 1}
	}
	return budgets{off: 0, minimal: dynamicBudget, low: dynamicBudget, medium: dynamicBudget, most: dynamicBudget}
}

// within returns the thinking for an answer of at most so many tokens. Thinking counts to the answer, so a budget that
// fills it would leave no room for a word.
func (t thinking) within(most int64) thinking {
	if most > 0 && t.budget > 0 && t.budget > most/2 {
		t.budget = max(most/2, t.least)
	}
	return t
}
