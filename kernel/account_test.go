package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/anthropic"
	"github.com/hozo-run/hozo/provider/openaichat"
)

// One fault of an account is one problem, at its field, whether the contract or the adapter knows the rule.
func TestEachFaultOfAnAccountIsOneProblem(t *testing.T) {
	t.Parallel()
	rt := runtimeWith(t, func(c *kernel.Config) {
		c.Adapters = map[string]llm.Adapter{job.APIOpenAIChat: openaichat.New, job.APIAnthropicMessages: anthropic.New}
	})
	for _, api := range []string{job.APIOpenAIChat, job.APIAnthropicMessages} {
		spec := newSpec(t, t.TempDir(), nil, nil)
		spec.Providers["p"] = job.ProviderConfig{API: api, BaseURL: "http://user:canary@model.invalid/v1", APIKey: "canary\n",
			Headers: map[string]string{"Host": "canary", "Accept": "canary", "a b": "canary", "X-A": "canary\n"}}
		var got []string
		for _, p := range rt.Check(spec) {
			got = append(got, p.Pointer)
			if strings.Contains(p.String(), "canary") {
				t.Errorf("%s: a value is quoted: %v", api, p)
			}
		}
		slices.Sort(got)
		want := []string{"/providers/p/apiKey", "/providers/p/baseUrl", "/providers/p/headers/Accept", "/providers/p/headers/Host",
			"/providers/p/headers/X-A", "/providers/p/headers/a b"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: problems at %q, want %q", api, got, want)
		}
	}
}
