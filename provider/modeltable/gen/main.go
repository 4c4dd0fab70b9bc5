// Command gen writes the embedded model table, table.jsonl of the directory above. It joins the provider list of the Go
// module charm.land/catwalk (MIT) with overrides.json, our corrections and additions, and brings both into the form of
// llm.Model. It is a module of its own, so that the runtime does not depend on catwalk; run it with "go generate" in the
// directory above after changing either source.
package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/hozo-run/hozo/llm"
)

//go:embed overrides.json
var overridesFile []byte

// overrides are what we know better than catwalk. A model's entry replaces catwalk's as a whole.
type overrides struct {
	Source    string                       `json:"source"`
	Providers map[string]provider          `json:"providers"`
	Models    map[string]map[string]*model `json:"models"`
}

// heading is the first line of the table.
type heading struct {
	Source    string `json:"source"`
	Version   string `json:"version"`
	Licence   string `json:"licence"`
	Overrides string `json:"overrides"`
}

// provider is a line that begins the models of one provider.
type provider struct {
	Provider string   `json:"provider"`
	Name     string   `json:"name,omitempty"`
	APIs     []string `json:"apis"`
	BaseURLs []string `json:"baseUrls"`
	// Size is the size of the lines of its models in bytes, so that a reader can step over them.
	Size int `json:"size"`
}

// model is the line of one model: llm.Model with its prices as decimal strings.
type model struct {
	ID              string      `json:"id"`
	Name            string      `json:"name,omitempty"`
	ContextWindow   int64       `json:"contextWindow,omitempty"`
	MaxOutputTokens int64       `json:"maxOutputTokens,omitempty"`
	Price           *price      `json:"price,omitempty"`
	ThinkingLevels  []llm.Level `json:"thinkingLevels,omitempty"`
	Images          bool        `json:"images,omitempty"`
}

type price struct {
	Input      string `json:"inputPerMTok"`
	Output     string `json:"outputPerMTok"`
	CacheRead  string `json:"cacheReadPerMTok,omitempty"`
	CacheWrite string `json:"cacheWritePerMTok,omitempty"`
	Tiers      []tier `json:"tiers,omitempty"`
}

type tier struct {
	Above int64 `json:"promptAbove"`
	price
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	table, err := build()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("../table.jsonl", table, 0o644); err != nil {
		log.Fatal(err)
	}
}

func build() ([]byte, error) {
	var ours overrides
	dec := json.NewDecoder(bytes.NewReader(overridesFile))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&ours); err != nil {
		return nil, fmt.Errorf("overrides.json: %w", err)
	}
	var out bytes.Buffer
	if err := newEncoder(&out).Encode(heading{"charm.land/catwalk", catwalkVersion(), "MIT", ours.Source}); err != nil {
		return nil, err
	}
	providers := embedded.GetAll()
	slices.SortFunc(providers, func(a, b catwalk.Provider) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range providers {
		if err := write(&out, &p, &ours); err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.ID, err)
		}
	}
	return out.Bytes(), nil
}

func catwalkVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "charm.land/catwalk" {
				return m.Version
			}
		}
	}
	return "unknown"
}

// write encodes the lines of one provider, models by id.
func write(out *bytes.Buffer, p *catwalk.Provider, ours *overrides) error {
	line := provider{Provider: string(p.ID), Name: p.Name, APIs: apisOf(p.Type), BaseURLs: baseURLsOf(p)}
	if o, ok := ours.Providers[line.Provider]; ok {
		line.BaseURLs = o.BaseURLs
		if o.APIs != nil {
			line.APIs = o.APIs
		}
	}
	if len(line.BaseURLs) == 0 {
		return fmt.Errorf("no base URL; add one to overrides.json")
	}
	models := make(map[string]*model)
	for i := range p.Models {
		m := convert(p, &p.Models[i])
		models[m.ID] = m
	}
	for id, m := range ours.Models[line.Provider] {
		m.ID = id
		models[id] = m
	}
	var lines bytes.Buffer
	for _, id := range slices.Sorted(maps.Keys(models)) {
		if err := newEncoder(&lines).Encode(models[id]); err != nil {
			return err
		}
	}
	line.Size = lines.Len()
	if err := newEncoder(out).Encode(line); err != nil {
		return err
	}
	_, err := lines.WriteTo(out)
	return err
}

func newEncoder(out *bytes.Buffer) *json.Encoder {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc
}

func apisOf(t catwalk.Type) []string {
	switch t {
	case catwalk.TypeAnthropic:
		return []string{"anthropic-messages"}
	case catwalk.TypeGoogle:
		return []string{"google-generate"}
	case catwalk.TypeVertexAI:
		// The same form at another address and with another kind of credentials, which no adapter speaks to.
		return []string{"google-vertex"}
	case catwalk.TypeAzure:
		return []string{"azure-openai"}
	case catwalk.TypeBedrock:
		return []string{"bedrock-converse"}
	}
	return []string{"openai-chat"}
}

// baseURLsOf leaves out addresses that catwalk takes from the environment.
func baseURLsOf(p *catwalk.Provider) []string {
	if strings.HasPrefix(p.APIEndpoint, "https://") {
		return []string{p.APIEndpoint}
	}
	return nil
}

func convert(p *catwalk.Provider, m *catwalk.Model) *model {
	return &model{
		ID: m.ID, Name: m.Name, ContextWindow: max(m.ContextWindow, 0), MaxOutputTokens: max(m.DefaultMaxTokens, 0),
		Price: priceOf(m), ThinkingLevels: levelsOf(p, m), Images: m.SupportsImages,
	}
}

// priceOf reads catwalk's prices. A price of zero stands there for "not known" or "part of a subscription", so it is
// taken as a price only where the provider itself calls the model free.
//
// By its own rules catwalk keeps the price of writing to a cache as "in_cached" and that of reading from it as
// "out_cached", but rows from several sources have them exchanged or fill in the price of output. A read never costs
// more than plain input and a write never less, which tells them apart. A price of either that is not known stays absent,
// which llm.Price takes as that of plain input: too high rather than too low, because limits rest on it.
func priceOf(m *catwalk.Model) *price {
	in, out := m.CostPer1MIn, m.CostPer1MOut
	free := strings.HasSuffix(m.ID, ":free") || strings.HasSuffix(m.ID, "-free")
	for _, v := range []float64{in, out, m.CostPer1MInCached, m.CostPer1MOutCached} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	if (in == 0 || out == 0) && !(free && in == 0 && out == 0) {
		return nil
	}
	write, read := m.CostPer1MInCached, m.CostPer1MOutCached
	if write > 0 && write < in && (read == 0 || read >= in || read == write) {
		write, read = 0, write
	}
	p := &price{Input: dollars(in), Output: dollars(out)}
	if 0 < read && read < in {
		p.CacheRead = dollars(read)
	}
	if write > in {
		p.CacheWrite = dollars(write)
	}
	return p
}

// dollars writes an amount to the millionth, which also mends the noise of binary fractions.
func dollars(v float64) string {
	text := strconv.FormatFloat(v, 'f', 6, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// levelsOf maps reasoning levels. Where catwalk lists none for a model that reasons, the four that every dialect can
// express are assumed. Thinking can be switched off unless the model is one of OpenAI's, whose list says so, or always
// thinks.
func levelsOf(p *catwalk.Provider, m *catwalk.Model) []llm.Level {
	if !m.CanReason {
		return nil
	}
	listed := m.ReasoningLevels
	if len(listed) == 0 {
		listed = []string{"minimal", "low", "medium", "high"}
	}
	has := map[llm.Level]bool{llm.LevelOff: p.Type != catwalk.TypeOpenAI && p.Type != catwalk.TypeAzure && !alwaysThinks(p, m.ID)}
	for _, name := range listed {
		if name == "none" {
			name = string(llm.LevelOff)
		}
		has[llm.Level(name)] = true
	}
	var levels []llm.Level
	for _, l := range llm.Levels() {
		if has[l] {
			levels = append(levels, l)
		}
	}
	return levels
}

// alwaysThinks reports whether a model at Google cannot be told not to think: 2.5 Pro, and every one from 3 on.
func alwaysThinks(p *catwalk.Provider, id string) bool {
	if p.Type != catwalk.TypeGoogle && p.Type != catwalk.TypeVertexAI {
		return false
	}
	rest, ok := strings.CutPrefix(id, "gemini-")
	return ok && (strings.HasPrefix(rest, "2.5-pro") || (rest != "" && '3' <= rest[0] && rest[0] <= '9'))
}
