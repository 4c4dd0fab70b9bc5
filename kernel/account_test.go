package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/anthropic"
	"github.com/hozo-run/hozo/provider/bedrock"
	"github.com/hozo-run/hozo/provider/openaichat"
)

// One fault of an account is one problem, at its field, whether the contract or the adapter knows the rule.
func TestEachFaultOfAnAccountIsOneProblem(t *testing.T) {
	t.Parallel()
	rt := runtimeWith(t, func(c *kernel.Config) {
		c.Adapters = map[string]llm.Adapter{job.APIOpenAIChat: openaichat.New, job.APIAnthropicMessages: anthropic.New,
			job.APIBedrockConverse: bedrock.New}
	})
	for _, api := range []string{job.APIOpenAIChat, job.APIAnthropicMessages, job.APIBedrockConverse} {
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

// An access key reaches the adapter; what is wrong with it is one problem at its field, and nothing of it is quoted.
func TestTheAccessKeyOfAnAccount(t *testing.T) {
	t.Parallel()
	var got llm.Account
	rt := runtimeWith(t, func(c *kernel.Config) {
		c.Adapters = map[string]llm.Adapter{job.APIBedrockConverse: func(a llm.Account) (llm.Provider, error) {
			got = a
			return bedrock.New(a)
		}}
	})
	for name, tt := range map[string]struct {
		account job.ProviderConfig
		want    []string
	}{
		"whole":        {job.ProviderConfig{AWS: &job.AWSAccess{AccessKeyID: "canary-id", SecretAccessKey: "canary-secret", SessionToken: "canary-token", Region: "eu-west-1"}}, nil},
		"half":         {job.ProviderConfig{AWS: &job.AWSAccess{AccessKeyID: "canary-id", Region: "eu-west-1"}}, []string{"/providers/p/aws/secretAccessKey"}},
		"other half":   {job.ProviderConfig{AWS: &job.AWSAccess{SecretAccessKey: "canary-secret", Region: "eu-west-1"}}, []string{"/providers/p/aws/accessKeyId"}},
		"two ways":     {job.ProviderConfig{APIKey: "canary", AWS: &job.AWSAccess{AccessKeyID: "canary-id", SecretAccessKey: "canary-secret", Region: "eu-west-1"}}, []string{"/providers/p/apiKey"}},
		"no host name": {job.ProviderConfig{APIKey: "canary", AWS: &job.AWSAccess{Region: "canary.example/"}}, []string{"/providers/p/aws/region"}},
		"nothing":      {job.ProviderConfig{}, []string{"/providers/p/apiKey"}},
	} {
		spec := newSpec(t, t.TempDir(), nil, nil)
		tt.account.API = job.APIBedrockConverse
		spec.Providers["p"] = tt.account
		var pointers []string
		for _, p := range rt.Check(spec) {
			pointers = append(pointers, p.Pointer)
			if strings.Contains(p.String(), "canary") {
				t.Errorf("%s: a value is quoted: %v", name, p)
			}
		}
		slices.Sort(pointers)
		if !slices.Equal(pointers, tt.want) {
			t.Errorf("%s: problems at %q, want %q", name, pointers, tt.want)
		}
		if want := (llm.SigningKey{ID: "canary-id", Secret: "canary-secret", Session: "canary-token"}); name == "whole" &&
			(got.SigningKey == nil || *got.SigningKey != want || got.Region != "eu-west-1") {
			t.Errorf("the adapter got %+v in %q", got.SigningKey, got.Region)
		}
	}
}
