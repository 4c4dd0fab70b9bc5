// Package textcall understands models that write tool calls into their text instead of using the API's own calls, as many
// models on local servers do. Parse is a pure function from a finished reply and the offered tools to calls or a refusal;
// Wrap puts it around a provider, so that the kernel gets the same calls from such a model as from any other. The package
// also writes tools, calls and results as text for servers whose API takes none. It runs nothing and validates nothing:
// a call that it returns has the name of an offered tool, and whether its arguments fit is decided where all calls are
// checked.
package textcall

import (
	"errors"

	"github.com/hozo-run/hozo/llm"
)

// Wrap returns a provider whose dialogs understand calls that are written as text, for the models that Enabled names.
// baseURL is the address of the account, "" for the API's own. Dialogs of all other models, dialogs without tools and
// those that await a typed answer are p's own. The kernel calls it once a job.
func Wrap(p llm.Provider, baseURL string) llm.Provider {
	return &provider{inner: p, baseURL: baseURL}
}

type provider struct {
	inner   llm.Provider
	baseURL string
}

// Model implements llm.ModelSource for a provider that does.
func (p *provider) Model(id string) (llm.Model, bool) {
	if source, ok := p.inner.(llm.ModelSource); ok {
		return source.Model(id)
	}
	return llm.Model{}, false
}

// Converse implements llm.Provider. It fails as the wrapped provider does, and if the tools can only be offered as text
// while the answer must be typed.
func (p *provider) Converse(opening llm.Opening) (llm.Dialog, error) {
	setting, on := Enabled(opening.Model, p.baseURL)
	if !on || len(opening.Tools) == 0 {
		return p.inner.Converse(opening)
	}
	asText := isTrue(opening.Model.Compat.ToolsAsText)
	if opening.TypedAnswer {
		if asText {
			return nil, errors.New("compat.toolsAsText: a model that calls tools in its text cannot be held to a typed answer; " +
				"give the agent no tools, or use a server whose API takes tools")
		}
		return p.inner.Converse(opening)
	}
	d := &dialog{offer: NewOffer(opening.Tools), pinned: setting, asText: asText}
	if parallel := opening.Model.Compat.ParallelToolCalls; parallel != nil && !*parallel {
		d.limit = 1
	}
	if asText {
		d.family = Family(opening.Model.ID)
		if setting != "" {
			d.family = setting
		}
		opening.System = joinPrompt(opening.System, declare(d.family, opening.Tools))
		opening.Tools = nil
	}
	inner, err := p.inner.Converse(opening)
	if err != nil {
		return nil, err
	}
	d.inner = inner
	if skipper, ok := inner.(llm.Skipper); ok {
		return &skippingDialog{dialog: d, Skipper: skipper}, nil
	}
	return d, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// joinPrompt puts a blank line between two parts of a prompt.
func joinPrompt(first, second string) string {
	if first == "" {
		return second
	}
	return first + "\n\n" + second
}
