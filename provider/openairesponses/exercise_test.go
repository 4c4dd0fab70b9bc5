package openairesponses

import (
	"os"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

func TestMain(m *testing.M) { os.Exit(llmtest.Main(m, wire.CloseIdle)) }

func TestExercise(t *testing.T) {
	t.Parallel()
	llmtest.Exercise(t, llmtest.Setup{
		New: New, API: API, Base: "/v1", Path: Path, Events: llmtest.ResponsesEvents, Thinks: true,
		Finish:     func(event string) bool { return strings.Contains(event, `"response":{"status":`) },
		ProviderID: func(id string) string { return id + "|fc_" + id },
		Fault: func() string {
			return named("error", `"code":"server_is_overloaded","message":"Overloaded","param":null`)
		},
	})
}

// named returns an event in the shape of the API.
func named(kind, members string) string {
	return "event: " + kind + "\ndata: " + `{"type":"` + kind + `",` + members + "}\n\n"
}
