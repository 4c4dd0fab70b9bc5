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
	"strconv"
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
	models   string // the lines of its models in the order of their ids, each with its line break
}

// TableSource returns where the table comes from.
func TableSource() Source {
	line, _, _ := strings.Cut(table, "\n")
	return decode[Source](line)
}

// Providers returns every provider in the order of its ID.
func Providers() []Provider {
	parts := tableIndex().sections
	all := make([]Provider, len(parts))
	for i, part := range parts {
		all[i] = decode[Provider](part.provider)
	}
	return all
}

// Lookup returns the entry of a model at the provider that is found at baseURL, the address of an account. Without an
// address the provider is the one that the API family belongs to ("openai-chat" to OpenAI, "anthropic-messages" to
// Anthropic). Models of Amazon Bedrock are found by any of their names at any of its addresses, those of Azure at any address.
// It reports false for another unknown address (a local server, a gateway) and for an unknown model.
func Lookup(api, baseURL, modelID string) (llm.Model, bool) {
	switch api {
	case bedrockAPI:
		return lookUpBedrock(baseURL, modelID)
	case azureAPI:
		return lookUpAzure(modelID)
	}
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
	for line := range strings.Lines(named(provider).models) {
		models = append(models, modelOf(line))
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
	}
	return ""
}

// index is what is known of the table without decoding it: where its providers are, by ID and by host.
type index struct {
	sections []section
	byID     map[string]section
	byHost   map[string][]place
	// wild are the places whose host stands for many.
	wild []place
}

// place is an address of a provider.
type place struct {
	section    section
	host, path string
}

// tableIndex is made once, from the lines of the providers.
var tableIndex = sync.OnceValue(newIndex)

func newIndex() *index {
	x := &index{byID: map[string]section{}, byHost: map[string][]place{}}
	_, rest, _ := strings.Cut(table, "\n")
	for rest != "" {
		line, models, _ := strings.Cut(rest, "\n")
		size, err := strconv.Atoi(between(line, `"size":`, `}`))
		if err != nil || size > len(models) {
			panic(fmt.Sprintf("modeltable: line %.80q names no size", line))
		}
		part := section{provider: line, models: models[:size]}
		x.sections = append(x.sections, part)
		x.byID[between(line, `"provider":"`, `"`)] = part
		for address := range strings.SplitSeq(between(line, `"baseUrls":["`, `"]`), `","`) {
			x.add(part, address)
		}
		rest = models[size:]
	}
	return x
}

func (x *index) add(part section, address string) {
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
	p := place{section: part, host: host, path: strings.Trim(path, "/") + "/"}
	if ending, ok := strings.CutPrefix(host, "*"); ok {
		p.host = ending
		x.wild = append(x.wild, p)
		return
	}
	x.byHost[host] = append(x.byHost[host], p)
}

// between returns what stands in a line of the table between two marks. The generator writes no escapes there.
func between(line, before, after string) string {
	_, rest, _ := strings.Cut(line, before)
	text, _, _ := strings.Cut(rest, after)
	return text
}

// named returns the section of a provider, an empty one for an unknown ID.
func named(id string) section { return tableIndex().byID[id] }

const idMark = `{"id":"`

// find decodes the one line of a model. The lines are in the order of their ids, which stand there as plain text, so the
// line is found by halving.
func (p section) find(modelID string) (llm.Model, bool) {
	if modelID == "" || strings.ContainsAny(modelID, "\"\\\n") {
		return llm.Model{}, false
	}
	for rest := p.models; rest != ""; {
		begin := strings.LastIndexByte(rest[:len(rest)/2], '\n') + 1
		line, _, _ := strings.Cut(rest[begin:], "\n")
		id, _, _ := strings.Cut(line[len(idMark):], `"`)
		switch strings.Compare(modelID, id) {
		case 0:
			return modelOf(line), true
		case -1:
			rest = rest[:begin]
		default:
			rest = rest[begin+len(line)+1:]
		}
	}
	return llm.Model{}, false
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
	x, host, path := tableIndex(), strings.ToLower(u.Hostname()), strings.Trim(u.Path, "/")+"/"
	var best section
	longest := -1
	try := func(p place) {
		if n := p.fit(path); n > longest {
			best, longest = p.section, n
		}
	}
	for _, p := range x.byHost[host] {
		try(p)
	}
	for _, p := range x.wild {
		if strings.HasSuffix(host, p.host) {
			try(p)
		}
	}
	return best
}

// fit returns the length of the path that a place has in common with the path of an address, -1 if that is another.
func (p place) fit(path string) int {
	switch {
	case p.path == "/" || strings.HasPrefix(path, p.path):
		return len(p.path)
	case path == "/" || strings.HasPrefix(p.path, path):
		return 0
	}
	return -1
}
