package job_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/job"
)

func TestPrintingASpecShowsNoCredential(t *testing.T) {
	t.Parallel()
	const canary = "canary-5ec2e7"
	spec := &job.Spec{
		Task: "visible",
		Providers: map[string]job.ProviderConfig{"p": {
			API: job.APIOpenAIChat, APIKey: canary, BaseURL: "https://u:" + canary + "@h/v1?k=" + canary,
			Headers: map[string]string{"X": canary}, TagHeaders: map[string]string{"Y": canary},
			AWS: &job.AWSAccess{AccessKeyID: canary, SecretAccessKey: canary, SessionToken: canary, Region: "eu-west-1"},
		}},
		MCP: &job.MCP{Servers: []job.MCPServer{{Name: "s", URL: "https://h?k=" + canary, Headers: map[string]string{"X": canary}}}},
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("spec", "spec", spec, "provider", spec.Providers["p"], "server", spec.MCP.Servers[0], "access", spec.Providers["p"].AWS)
	printed := map[string]string{
		"%v":         fmt.Sprintf("%v %v", spec, spec.MCP),
		"%+v":        fmt.Sprintf("%+v %+v", *spec, *spec.MCP),
		"%#v":        fmt.Sprintf("%#v %#v", *spec, *spec.MCP),
		"%s":         fmt.Sprintf("%s", spec.Providers),
		"access":     fmt.Sprintf("openai-chat %v %+v %#v %s", spec.Providers["p"].AWS, *spec.Providers["p"].AWS, *spec.Providers["p"].AWS, spec.Providers["p"].AWS),
		"structured": log.String(),
	}
	for how, text := range printed {
		if strings.Contains(text, canary) {
			t.Errorf("%s shows a credential: %s", how, text)
		}
		if !strings.Contains(text, "openai-chat") {
			t.Errorf("%s does not show the account: %s", how, text)
		}
	}
}

func TestTheKeysOfAnAccountAreAllOfItsCredentials(t *testing.T) {
	t.Parallel()
	p := job.ProviderConfig{APIKey: "a", AWS: &job.AWSAccess{AccessKeyID: "b", SecretAccessKey: "c", SessionToken: "d", Region: "e"}}
	if got := strings.Join(p.Keys(), " "); got != "a b c d" {
		t.Errorf("keys %q, want all four and not the region", got)
	}
	if got := (job.ProviderConfig{AWS: &job.AWSAccess{Region: "e"}}).Keys(); len(got) != 0 {
		t.Errorf("keys %q of an account without any", got)
	}
}
