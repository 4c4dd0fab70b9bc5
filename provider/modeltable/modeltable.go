// Package modeltable is the embedded table of providers and their models: prices, context windows, output limits,
// thinking levels and image input. It answers what a model costs and what fits into it without any network; a job spec
// overrides single fields. The table is generated from an open list and our corrections (see gen); a price that is not
// known is absent, never zero. Nothing is decoded before it is asked for.
package modeltable

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/llm"
)

//go:generate go -C gen run .

// table has one JSON object a line: where it comes from, then for each provider its own line and those of its models.
//
//go:embed table.jsonl
var table string

// Source says where the table comes from.
type Source struct {
	// Source and Version name the list it was made from, Licence that list's licence.
	Source  string `json:"source"`
	Version string `json:"version"`
	Licence string `json:"licence"`
	// Overrides says where our corrections come from.
	Overrides string `json:"overrides"`
}

// Provider is a provider of the table.
type Provider struct {
	// ID is what the table calls it, as in "openai".
	ID   string `json:"provider"`
	Name string `json:"name"`
	// APIs are the API families that it speaks, as a job spec names them; one that no adapter speaks has a name of its own.
	APIs []string `json:"apis"`
	// BaseURLs are its addresses; a host may begin with "*", which stands for any beginning.
	BaseURLs []string `json:"baseUrls"`
}

// section is the part of the table that belongs to one provider, still as text.
type section struct {
	provider string // the line of the provider
	models   string // a line break and then the lines of its models
}

// TableSource returns where the table comes from.
func TableSource() Source {
	line, _, _ := strings.Cut(table, "\n")
	return decode[Source](line)
}

// Providers returns every provider in the order of its ID.
func Providers() []Provider {
	all := make([]Provider, len(sections()))
	for i, part := range sections() {
		all[i] = decode[Provider](part.provider)
	}
	return all
}

// Lookup returns the entry of a model at the provider that is found at baseURL, the address of an account. Without an
// address the provider is the one that the API family belongs to ("openai-chat" to OpenAI, "anthropic-messages" to
// Anthropic). It reports false for an unknown address (a local server, a gateway) and for an unknown model.
func Lookup(api, baseURL, modelID string) (llm.Model, bool) {
	if baseURL == "" {
		return Find(ownProvider(api), modelID)
	}
	return at(baseURL).find(modelID)
}

// Find returns the entry of a model of the provider with this ID.
func Find(provider, modelID string) (llm.Model, bool) { return named(provider).find(modelID) }

// Models returns all models of the provider with this ID in the order of their ids, nil for an unknown provider.
func Models(provider string) []llm.Model {
	var models []llm.Model
	for line := range strings.Lines(strings.TrimPrefix(named(provider).models, "\n")) {
		models = append(models, decode[llm.Model](line))
	}
	return models
}

// ownProvider returns the provider whose API it is.
func ownProvider(api string) string {
	switch api {
	case "openai-chat", "openai-responses":
		return "openai"
	case "anthropic-messages":
		return "anthropic"
	case "google-generate":
		return "gemini"
	case "azure-openai":
		return "azure"
	case "bedrock-converse":
		return "bedrock"
	}
	return ""
}

// sections is the table split at the lines of its providers, once. Splitting decodes nothing.
var sections = sync.OnceValue(split)

func split() []section {
	const mark = "\n" + `{"provider":`
	var all []section
	for rest := table[strings.Index(table, mark):]; rest != ""; {
		end := strings.Index(rest[1:], mark) + 1
		if end == 0 {
			end = len(rest)
		}
		line, _, _ := strings.Cut(rest[1:end], "\n")
		all = append(all, section{provider: line, models: rest[1+len(line) : end]})
		rest = rest[end:]
	}
	return all
}

// named returns the section of a provider, an empty one for an unknown ID.
func named(id string) section {
	for _, part := range sections() {
		if strings.HasPrefix(part.provider, `{"provider":"`+id+`",`) {
			return part
		}
	}
	return section{}
}

// find decodes the one line of a model. Ids are plain text in the table, so that they can be searched as they are.
func (p section) find(modelID string) (llm.Model, bool) {
	if modelID == "" || strings.ContainsAny(modelID, "\"\\\n") {
		return llm.Model{}, false
	}
	begin := strings.Index(p.models, "\n"+`{"id":"`+modelID+`",`)
	if begin < 0 {
		return llm.Model{}, false
	}
	line, _, _ := strings.Cut(p.models[begin+1:], "\n")
	return decode[llm.Model](line), true
}

// decode reads a line of the table. A line that cannot be read is a fault of the build, which the tests rule out.
func decode[T any](line string) T {
	var v T
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		panic(fmt.Sprintf("modeltable: line %.80q: %v", line, err))
	}
	return v
}

// at returns the section of the provider at an address, an empty one if there is none. Several may share a host; the one
// whose path is the longest that fits is meant. An address that is shorter than the provider's path fits too
// ("https://api.openai.com").
func at(baseURL string) section {
	u, err := url.Parse(baseURL)
	if err != nil || u.Hostname() == "" {
		return section{}
	}
	var best section
	longest := -1
	host := "//" + strings.ToLower(u.Hostname())
	for _, part := range sections() {
		if !strings.Contains(part.provider, host) && !strings.Contains(part.provider, "//*") {
			continue // spares the decoding
		}
		for _, address := range decode[Provider](part.provider).BaseURLs {
			if n := fit(address, u); n > longest {
				best, longest = part, n
			}
		}
	}
	return best
}

// fit returns the length of the path that u has in common with a provider's address, -1 if it is another address.
func fit(address string, u *url.URL) int {
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
	given := strings.ToLower(u.Hostname())
	if ending, wild := strings.CutPrefix(host, "*"); given != host && (!wild || !strings.HasSuffix(given, ending)) {
		return -1
	}
	have, want := strings.Trim(u.Path, "/")+"/", strings.Trim(path, "/")+"/"
	switch {
	case want == "/" || strings.HasPrefix(have, want):
		return len(want)
	case have == "/" || strings.HasPrefix(want, have):
		return 0
	}
	return -1
}
