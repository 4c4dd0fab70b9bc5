package bedrock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/claude"
	"github.com/hozo-run/hozo/provider/wire"
)

// asked is how the thinking level of an opening is sent, as additional fields of the request. The families of models want
// fields of their own.
type asked struct {
	// claude says that the model is a Claude model, thinking what it is asked.
	claude   bool
	thinking claude.Thinking
	// members ask any other model.
	members string
	// unbounded says that the model takes no output limit while it thinks that much.
	unbounded bool
}

// askFor returns how the level of an opening is sent.
func askFor(o llm.Opening) (asked, error) {
	dialect := o.Model.Compat.ThinkingDialect
	switch {
	case claude.Named(o.Model.ID) || dialect == "budget" || dialect == "adaptive":
		thinking, err := claude.ThinkingOf(o)
		return asked{claude: true, thinking: thinking}, err
	case dialect != "" && dialect != "none" && dialect != "openai":
		return asked{}, fmt.Errorf("compat thinkingDialect: %q is none of budget adaptive openai none", dialect)
	case dialect == "none" || o.Thinking == "" || o.Thinking == llm.LevelOff || !wire.Thinks(o.Model):
		return asked{}, nil
	case dialect == "" && strings.Contains(o.Model.ID, "amazon.nova"):
		return askNova(o)
	}
	effort := string(wire.AppendString(nil, effortWord(o)))
	if dialect == "" && strings.Contains(o.Model.ID, "openai.gpt-") && !strings.Contains(o.Model.ID, "openai.gpt-oss") {
		return asked{members: `"reasoning":{"effort":` + effort + `}`}, nil
	}
	return asked{members: `"reasoning_effort":` + effort}, nil
}

// askNova asks a model of the Nova family. At its highest effort it takes no settings of the answer beside it.
func askNova(o llm.Opening) (asked, error) {
	effort := effortWord(o)
	if effort == string(llm.LevelHigh) && o.Temperature != nil {
		return asked{}, errors.New("temperature: this model takes none while it thinks with high effort; leave it out or lower thinking")
	}
	quoted := string(wire.AppendString(nil, effort))
	return asked{members: `"reasoningConfig":{"type":"enabled","maxReasoningEffort":` + quoted + `}`,
		unbounded: effort == string(llm.LevelHigh)}, nil
}

// effortWord returns the word for a level: the model's own, else the nearest of low, medium and high.
func effortWord(o llm.Opening) string {
	if word, ok := o.Model.Compat.ThinkingEfforts[o.Thinking]; ok {
		return word
	}
	return string(llm.Nearest(o.Thinking, []llm.Level{llm.LevelLow, llm.LevelMedium, llm.LevelHigh}))
}

// maxTokens returns the output limit of a request, 0 for none. Claude models demand one.
func (a asked) maxTokens(call llm.Call, model llm.Model) int64 {
	switch {
	case a.claude:
		return a.thinking.MaxTokens(call, model)
	case a.unbounded:
		return 0
	case call.MaxOutputTokens > 0:
		return call.MaxOutputTokens
	}
	return model.MaxOutputTokens
}

// within returns what is asked below an output limit.
func (a asked) within(most int64) asked {
	if !a.thinking.Fits(most) {
		a.thinking = a.thinking.Within(most)
	}
	return a
}

// append appends the member that asks, with a comma after it, or nothing.
func (a asked) append(b []byte) []byte {
	if a.members == "" && !a.thinking.Asks() {
		return b
	}
	b = append(b, `"additionalModelRequestFields":{`...)
	b = append(a.thinking.Append(b), a.members...)
	return append(b, "},"...)
}
