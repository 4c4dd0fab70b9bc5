package openaichat

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
		New: New, API: API, Base: "/v1", Path: "/chat/completions", Events: llmtest.ChatEvents, Thinks: true,
		Finish: func(event string) bool { return strings.Contains(event, `"finish_reason":"`) },
		Fault: func() string {
			return data(`{"error":{"message":"Overloaded","type":"overloaded_error","code":529}}`)
		},
	})
}

func data(text string) string { return "data: " + text + "\n\n" }

func finish(reason string) string {
	return data(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`)
}
