package modeltable_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/modeltable"
)

func TestAModelOfOpenAIAtAzureIsTheSameModel(t *testing.T) {
	t.Parallel()
	const id = "gpt-5.4"
	if _, listed := modeltable.Find("azure", id); listed {
		t.Fatalf("the table has %s at Azure; take another model", id)
	}
	want, _ := modeltable.Find("openai", id)
	want.Price = nil
	got, ok := modeltable.Lookup("azure-openai", "https://mine.openai.azure.com", id)
	if diff := cmp.Diff(want, got); diff != "" || !ok || len(got.ThinkingLevels) == 0 {
		t.Errorf("found %v: (-OpenAI +Azure)\n%s", ok, diff)
	}
	if _, ok := modeltable.Lookup("azure-openai", "https://mine.openai.azure.com", "our-deployment"); ok {
		t.Error("a name of one's own was found")
	}
}

func TestLookupFindsTheProviderByItsAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		api, baseURL, model string
		provider            string // "" is unknown
	}{
		"no address, OpenAI":        {"openai-chat", "", "gpt-5", "openai"},
		"no address, Anthropic":     {"anthropic-messages", "", "claude-sonnet-4-5", "anthropic"},
		"Azure, any address":        {"azure-openai", "https://gateway.example/azure", "gpt-5-mini", "azure"},
		"own address":               {"openai-chat", "https://api.openai.com/v1", "gpt-5", "openai"},
		"slash at the end":          {"openai-chat", "https://api.openai.com/v1/", "gpt-5", "openai"},
		"host in capitals and port": {"openai-chat", "https://API.OpenAI.com:443/v1", "gpt-5", "openai"},
		"host alone":                {"anthropic-messages", "https://api.anthropic.com", "claude-opus-5", "anthropic"},
		"path is longer":            {"openai-chat", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro", "gemini"},
		"gateway of the table":      {"openai-chat", "https://openrouter.ai/api/v1", "openai/gpt-5", "openrouter"},
		"two on one host, first":    {"openai-chat", "https://opencode.ai/zen/v1", "glm-5.2", "opencode-zen"},
		"two on one host, second":   {"openai-chat", "https://opencode.ai/zen/go/v1", "glm-5.2", "opencode-go"},
		"any beginning of a host":   {"azure-openai", "https://mine.openai.azure.com/openai", "gpt-5", "azure"},
		"local server":              {"openai-chat", "http://127.0.0.1:8080/v1", "gpt-5", ""},
		"host that only ends alike": {"openai-chat", "https://notapi.openai.com.example/v1", "gpt-5", ""},
		"another path of the host":  {"openai-chat", "https://api.z.ai/api/paas/v4", "glm-5.2", ""},
		"no URL":                    {"openai-chat", "://", "gpt-5", ""},
		"unknown model":             {"openai-chat", "", "gpt-0", ""},
		"empty model":               {"openai-chat", "", "", ""},
		"model with a quote":        {"openai-chat", "", `gpt-5","name":"x`, ""},
		"beginning of a model":      {"openai-chat", "", "gpt", ""},
		"API without a provider":    {"scripted", "", "gpt-5", ""},
		"Responses, no address":     {"openai-responses", "", "gpt-5", "openai"},
		"Responses at OpenAI":       {"openai-responses", "https://api.openai.com/v1", "gpt-5", "openai"},
		"Azure, another host":       {"azure-openai", "https://mine.services.ai.azure.com", "gpt-5", "azure"},
		"Gemini, no address":        {"google-generate", "", "gemini-2.5-pro", "gemini"},
		"last model of a provider":  {"openai-chat", "https://openrouter.ai/api/v1", "z-ai/glm-5", "openrouter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := modeltable.Lookup(tc.api, tc.baseURL, tc.model)
			want, known := modeltable.Find(tc.provider, tc.model)
			if ok != known || ok != (tc.provider != "") {
				t.Fatalf("found: %v, want %v", ok, tc.provider != "")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("model (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupFindsTheModelsOfBedrockByAnyName(t *testing.T) {
	t.Parallel()
	const us, eu = "us.anthropic.claude-haiku-4-5-20251001-v1:0", "eu.anthropic.claude-haiku-4-5-20251001-v1:0"
	for name, tc := range map[string]struct{ baseURL, model, want string }{
		"USA":                       {"", us, us},
		"Europe":                    {"", eu, eu},
		"Europe at its address":     {"https://bedrock-runtime.eu-central-1.amazonaws.com", eu, eu},
		"a region of no table":      {"https://bedrock-runtime.ap-southeast-4.amazonaws.com/", us, us},
		"an address of FIPS":        {"https://bedrock-runtime-fips.us-east-1.amazonaws.com", us, us},
		"an address inside a cloud": {"https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com", us, us},
		"China":                     {"https://bedrock-runtime.cn-north-1.amazonaws.com.cn", us, us},
		"nowhere":                   {"", "anthropic.claude-haiku-4-5-20251001-v1:0", us},
		"everywhere":                {"", "global.anthropic.claude-haiku-4-5-20251001-v1:0", us},
		"Japan":                     {"", "jp.anthropic.claude-haiku-4-5-20251001-v1:0", eu},
		"the ARN of a model":        {"", "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0", us},
		"the ARN of a profile":      {"", "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/" + eu, eu},
		"an ARN without a name":     {"", "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123", ""},
		"another model":             {"", "us.meta.llama9", ""},
		"a gateway":                 {"https://gateway.example/bedrock", us, ""},
		"a host that ends alike":    {"https://bedrock-runtime.us-east-1.amazonaws.com.example", us, ""},
		"another service of AWS":    {"https://s3.us-east-1.amazonaws.com", us, ""},
		"no id":                     {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := modeltable.Lookup("bedrock-converse", tc.baseURL, tc.model)
			if ok != (tc.want != "") || got.ID != tc.want {
				t.Errorf("found %q (%v), want %q", got.ID, ok, tc.want)
			}
		})
	}
}

// The prices below were computed once with the npm package @pydantic/genai-prices 0.1.8 (MIT), which has its own sources: dollars
// per million tokens of input, output, cache reads and cache writes, and of input in a prompt of 300,000 tokens.
func TestPricesAgreeWithAnIndependentTable(t *testing.T) {
	t.Parallel()
	for model, want := range map[[2]string][5]float64{
		{"openai", "gpt-4o"}:                         {2.5, 10, 1.25, 2.5, 2.5},
		{"openai", "gpt-4o-mini"}:                    {0.15, 0.6, 0.075, 0.15, 0.15},
		{"openai", "gpt-4.1"}:                        {2, 8, 0.5, 2, 2},
		{"openai", "gpt-4.1-mini"}:                   {0.4, 1.6, 0.1, 0.4, 0.4},
		{"openai", "gpt-5"}:                          {1.25, 10, 0.125, 1.25, 1.25},
		{"openai", "gpt-5-mini"}:                     {0.25, 2, 0.025, 0.25, 0.25},
		{"openai", "gpt-5.1"}:                        {1.25, 10, 0.125, 1.25, 1.25},
		{"openai", "gpt-5.2"}:                        {1.75, 14, 0.175, 1.75, 1.75},
		{"openai", "gpt-5.4"}:                        {2.5, 15, 0.25, 2.5, 5},
		{"openai", "gpt-5.5"}:                        {5, 30, 0.5, 5, 10},
		{"openai", "gpt-5.6-sol"}:                    {4, 20, 0.4, 5, 8},
		{"openai", "o3"}:                             {2, 8, 0.5, 2, 2},
		{"openai", "o4-mini"}:                        {1.1, 4.4, 0.275, 1.1, 1.1},
		{"anthropic", "claude-opus-4-1-20250805"}:    {15, 75, 1.5, 18.75, 15},
		{"anthropic", "claude-opus-4-5-20251101"}:    {5, 25, 0.5, 6.25, 5},
		{"anthropic", "claude-opus-4-6"}:             {5, 25, 0.5, 6.25, 5},
		{"anthropic", "claude-sonnet-4-6"}:           {3, 15, 0.3, 3.75, 3},
		{"anthropic", "claude-haiku-4-5-20251001"}:   {1, 5, 0.1, 1.25, 1},
		{"anthropic", "claude-opus-5"}:               {5, 25, 0.5, 6.25, 5},
		{"anthropic", "claude-sonnet-5"}:             {2, 10, 0.2, 2.5, 2},
		{"gemini", "gemini-2.5-pro"}:                 {1.25, 10, 0.125, 1.25, 2.5},
		{"gemini", "gemini-2.5-flash"}:               {0.3, 2.5, 0.03, 0.3, 0.3},
		{"gemini", "gemini-3-flash-preview"}:         {0.5, 3, 0.05, 0.5, 0.5},
		{"gemini", "gemini-3.5-flash"}:               {1.5, 9, 0.15, 1.5, 1.5},
		{"gemini", "gemini-3.7-flash"}:               {0.75, 3.75, 0.075, 0.75, 0.75},
		{"groq", "moonshotai/kimi-k2-instruct-0905"}: {1, 3, 0.5, 1, 1},
		{"openrouter", "openai/gpt-5"}:               {1.25, 10, 0.125, 1.25, 1.25},
	} {
		m, ok := modeltable.Find(model[0], model[1])
		if !ok || m.Price == nil {
			t.Errorf("%v: no price", model)
			continue
		}
		// The cost of a million tokens of one bucket is the price. Tiers would apply to a prompt of that size.
		base := *m.Price
		base.Tiers = nil
		dollars := func(p llm.Price, u llm.Usage) float64 { return float64(p.Cost(u)) / 1e6 }
		got := [5]float64{dollars(base, llm.Usage{Input: 1e6}), dollars(base, llm.Usage{Output: 1e6}),
			dollars(base, llm.Usage{CacheRead: 1e6}), dollars(base, llm.Usage{CacheWrite: 1e6}),
			dollars(m.Price.For(300_000), llm.Usage{Input: 1e6})}
		if got != want {
			t.Errorf("%v: got %v, want %v", model, got, want)
		}
	}
}

func TestThinkingLevels(t *testing.T) {
	t.Parallel()
	for model, want := range map[[2]string][]llm.Level{
		{"openai", "gpt-4o"}:                       nil,
		{"openai", "gpt-5"}:                        {"minimal", "low", "medium", "high"},
		{"openai", "gpt-5.2"}:                      {"off", "low", "medium", "high", "xhigh"},
		{"openai", "gpt-5.6-sol"}:                  {"off", "low", "medium", "high", "xhigh", "max"},
		{"openai", "o3"}:                           {"low", "medium", "high"},
		{"anthropic", "claude-haiku-4-5-20251001"}: {"off", "minimal", "low", "medium", "high"},
		{"anthropic", "claude-opus-4-6"}:           {"off", "minimal", "low", "medium", "high", "max"},
		{"anthropic", "claude-opus-4-7"}:           {"off", "minimal", "low", "medium", "high", "xhigh", "max"},
		{"anthropic", "claude-opus-5-5"}:           {"low", "medium", "high", "xhigh", "max"},
		{"gemini", "gemini-3-flash-preview"}:       {"minimal", "low", "medium", "high"},
		{"deepseek", "deepseek-v4-flash"}:          {"off", "low", "high", "max"},
	} {
		m, ok := modeltable.Find(model[0], model[1])
		if !ok {
			t.Errorf("%v is not in the table", model)
		}
		if diff := cmp.Diff(want, m.ThinkingLevels); diff != "" {
			t.Errorf("%v (-want +got):\n%s", model, diff)
		}
	}
}

func TestEveryEntryIsSound(t *testing.T) {
	t.Parallel()
	total, priced := 0, 0
	for _, p := range modeltable.Providers() {
		if p.ID == "" || p.Name == "" || len(p.APIs) == 0 || len(p.BaseURLs) == 0 {
			t.Errorf("provider %+v is incomplete", p)
		}
		models := modeltable.Models(p.ID)
		if !slices.IsSortedFunc(models, func(a, b llm.Model) int { return strings.Compare(a.ID, b.ID) }) {
			t.Errorf("%s: models are not in order", p.ID)
		}
		for _, m := range models {
			total++
			if found, ok := modeltable.Find(p.ID, m.ID); !ok || !cmp.Equal(found, m) {
				t.Errorf("%s/%s is listed, but not found as such", p.ID, m.ID)
			}
			if m.ContextWindow < 0 || m.MaxOutputTokens < 0 || m.Simulated {
				t.Errorf("%s/%s: %+v", p.ID, m.ID, m)
			}
			for _, l := range m.ThinkingLevels {
				if !l.Valid() {
					t.Errorf("%s/%s: level %q", p.ID, m.ID, l)
				}
			}
			if m.Price != nil {
				priced++
				checkPrice(t, p.ID+"/"+m.ID, *m.Price)
			}
		}
	}
	if total < 1500 || priced < 1300 {
		t.Errorf("the table has %d models, %d with a price; it had more", total, priced)
	}
}

// checkPrice holds a price against what is true of every provider, for the base price and for each tier.
func checkPrice(t *testing.T, model string, p llm.Price) {
	t.Helper()
	rates := []llm.Price{p}
	for _, tier := range p.Tiers {
		rates = append(rates, p.For(tier.Above+1))
	}
	for _, r := range rates {
		if r.Input == 0 && r.Output == 0 && r.CacheRead == nil && r.CacheWrite == nil {
			continue // free
		}
		if r.Input <= 0 || r.Output <= 0 || r.CacheRead != nil && (*r.CacheRead <= 0 || *r.CacheRead > r.Input) ||
			r.CacheWrite != nil && *r.CacheWrite < r.Input {
			t.Errorf("%s: implausible price %+v", model, r)
		}
	}
}

func TestASubscriptionHasNoPrice(t *testing.T) {
	t.Parallel()
	for _, m := range modeltable.Models("copilot") {
		if m.Price != nil {
			t.Errorf("copilot/%s: price %+v, want none", m.ID, *m.Price)
		}
	}
	m, ok := modeltable.Find("opencode-zen", "hy3-free")
	if !ok || m.Price == nil || m.Price.Input != 0 || m.Price.Output != 0 {
		t.Errorf("opencode-zen/hy3-free: got %+v, want the known price of nothing", m.Price)
	}
}

func TestTheSourceIsNamed(t *testing.T) {
	t.Parallel()
	want := modeltable.Source{Source: "charm.land/catwalk", Version: "v0.52.1", Licence: "MIT"}
	got := modeltable.TableSource()
	got.Overrides = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		if _, ok := modeltable.Lookup("openai-chat", "https://openrouter.ai/api/v1", "z-ai/glm-5"); !ok {
			b.Fatal("not found")
		}
	}
}
