package job_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatAModelWroteMayBeSigned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		history string
		want    []string
	}{
		"text":          {`{"role": "assistant", "parts": [{"type": "text", "text": "", "signature": "s"}]}`, nil},
		"thinking":      {`{"role": "assistant", "parts": [{"type": "thinking", "text": "", "signature": "s"}, {"type": "text", "text": "x"}]}`, nil},
		"a user's text": {`{"role": "user", "parts": [{"type": "text", "text": "x", "signature": "s"}]}`, []string{"invalid /history/0/parts/0/signature"}},
		"a call": {`{"role": "assistant", "parts": [{"type": "tool-call", "signature": "s", "toolCall": {"id": "1.0", "name": "ls", "arguments": {}}}]}, ` +
			`{"role": "tool", "parts": [{"type": "tool-result", "toolResult": {"callId": "1.0", "name": "ls", "content": [{"type": "text", "text": "a"}]}}]}`, nil},
		"a result": {`{"role": "assistant", "parts": [{"type": "tool-call", "toolCall": {"id": "1.0", "name": "ls", "arguments": {}}}]}, ` +
			`{"role": "tool", "parts": [{"type": "tool-result", "signature": "s", "toolResult": {"callId": "1.0", "name": "ls", "content": [{"type": "text", "text": "a"}]}}]}`,
			[]string{"invalid /history/1/parts/0/signature"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, found(t, with(t, "history", "["+c.history+"]"))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
