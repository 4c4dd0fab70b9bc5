package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hozo-run/hozo/llm"
)

func TestAReportBetweenTheEventsIsAnError(t *testing.T) {
	t.Parallel()
	const report = "{\r\n  \"error\": {\r\n    \"code\": 503,\r\n    \"message\": \"The model is overloaded.\",\r\n    \"status\": \"UNAVAILABLE\"\r\n  }\r\n}"
	for _, tt := range []struct {
		name, in string
		events   int
		class    llm.Class
	}{
		{"alone", report, 0, llm.ClassOverloaded},
		{"after events", "data: 1\n\ndata: 2\n\n" + report + "\r\n", 2, llm.ClassOverloaded},
		{"before one", report + "\r\n\r\ndata: 1\n\n", 1, llm.ClassOverloaded},
		{"in a list, on one line", "data: 1\n\n[" + `{"error":{"code":429,"message":"slow down"}}]`, 1, llm.ClassRateLimit},
		{"cut", "data: 1\n\n" + report[:60], 1, ""},
		{"without a text", "data: 1\n\n{\"a\": 1}\n", 1, ""},
		{"too long to be one", "data: 1\n\n{\"message\": \"x\",\n\"a\": \"" + strings.Repeat("x", errorBody) + "\"}\n", 1, ""},
		{"a page", "<html>\n{\n}\n</html>\n", 0, ""},
		{"unknown fields", "new: 1\nother: {\ndata: 1\n\n", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, src := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				var events Events
				events.Reset(src)
				defer events.Close()
				n := 0
				var err error
				for err == nil {
					if _, err = events.Next(); err == nil {
						n++
					}
				}
				e, _ := errors.AsType[*llm.Error](err)
				switch {
				case n != tt.events:
					t.Errorf("%d events, want %d", n, tt.events)
				case tt.class == "" && !errors.Is(err, io.EOF):
					t.Errorf("error %v, want the end", err)
				case tt.class != "" && (e == nil || e.Class != tt.class || e.Message == ""):
					t.Errorf("error %v, want class %s", err, tt.class)
				}
			}
		})
	}
}
