package google

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

func TestMain(m *testing.M) {
	code := m.Run()
	wire.CloseIdle()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestExercise(t *testing.T) {
	t.Parallel()
	llmtest.Exercise(t, llmtest.Setup{
		New: New, API: API, Path: "/v1beta/models/exercise-1:streamGenerateContent", Events: events, Thinks: true,
		Finish: func(event string) bool { return strings.Contains(event, "finishReason") },
		Fault: func() string {
			return data(`{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`)
		},
	})
}

// data is an event in the form of this API: it has no name and ends its lines as on a typewriter.
func data(text string) string { return "data: " + text + "\r\n\r\n" }

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// parts is an event with parts of the answer and nothing else that changes.
func parts(list ...string) string {
	return data(`{"candidates": [{"content": {"parts": [` + strings.Join(list, ",") + `],"role": "model"},"index": 0}],` +
		`"usageMetadata": {"promptTokenCount": 7},"modelVersion": "exercise-1-0107","responseId": "r1"}`)
}

func text(text string) string { return `{"text": ` + quote(text) + `}` }

func signed(text, signature string) string {
	return `{"text": ` + quote(text) + `,"thoughtSignature": "` + signature + `"}`
}

func thought(text string) string { return `{"text": ` + quote(text) + `,"thought": true}` }

// function is a call; arguments are JSON.
func function(id, name, arguments string) string {
	if id != "" {
		id = `,"id": "` + id + `"`
	}
	return fmt.Sprintf(`{"functionCall": {"name": %q,"args": %s%s}}`, name, arguments, id)
}

func finish(reason, usage string) string {
	return data(`{"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "` + reason + `","index": 0}],` +
		`"usageMetadata": ` + usage + `,"modelVersion": "exercise-1-0107","responseId": "r1"}`)
}

const someUsage = `{"promptTokenCount": 7,"candidatesTokenCount": 2,"totalTokenCount": 9}`

func events(r llmtest.Reply) []string {
	var all []string
	for _, piece := range r.Thinking {
		all = append(all, parts(thought(piece)))
	}
	for i, piece := range r.Text {
		if part := text(piece); i > 0 || r.Signature == "" {
			all = append(all, parts(part))
			continue
		}
		all = append(all, parts(signed(piece, r.Signature)))
	}
	for _, c := range r.Calls {
		arguments := strings.Join(c.Arguments, "")
		switch {
		case arguments == "":
			arguments = "{}"
		case !json.Valid([]byte(arguments)):
			// Only a server that relays another model's text can have such arguments.
			arguments = quote(arguments)
		}
		all = append(all, parts(function(c.ID, c.Name, arguments)))
	}
	reason := map[llmtest.Stop]string{llmtest.Ends: "STOP", llmtest.Calls: "STOP", llmtest.Cut: "MAX_TOKENS",
		llmtest.Refuses: "SAFETY", llmtest.Strange: "OUT_OF_INK"}[r.Stop]
	return append(all, finish(reason, fmt.Sprintf(
		`{"promptTokenCount": %d,"candidatesTokenCount": %d,"cachedContentTokenCount": %d,"totalTokenCount": %d}`,
		r.Input+r.CacheRead, r.Output, r.CacheRead, r.Input+r.CacheRead+r.Output)))
}
