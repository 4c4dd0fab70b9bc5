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
		}},
		MCP: &job.MCP{Servers: []job.MCPServer{{Name: "s", URL: "https://h?k=" + canary, Headers: map[string]string{"X": canary}}}},
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("spec", "spec", spec, "provider", spec.Providers["p"], "server", spec.MCP.Servers[0])
	printed := map[string]string{
		"%v":         fmt.Sprintf("%v %v", spec, spec.MCP),
		"%+v":        fmt.Sprintf("%+v %+v", *spec, *spec.MCP),
		"%#v":        fmt.Sprintf("%#v %#v", *spec, *spec.MCP),
		"%s":         fmt.Sprintf("%s", spec.Providers),
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
