package job_test

import (
	"encoding/json"
	"testing"

	"github.com/hozo-run/hozo/job"
)

func TestFrameHeadIsThatOfTheFrame(t *testing.T) {
	t.Parallel()
	frame := job.Frame{V: job.FrameVersion, N: 12, Seq: 345, ActiveMS: 6789, Type: job.FrameCallStarted, Data: json.RawMessage(`{"callId":"1.0","n":7}`)}
	line, err := json.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	want := job.FrameHead{V: 1, N: 12, Seq: 345, ActiveMS: 6789, Type: job.FrameCallStarted}
	for name, text := range map[string]string{
		"as it is encoded":      string(line),
		"in another order":      `{"type":"call.started","data":{"n":7},"activeMs":6789,"seq":345,"n":12,"v":1}`,
		"with spaces":           `{"v": 1, "n": 12, "seq": 345, "activeMs": 6789, "type": "call.started", "data": {}}`,
		"with a field from now": `{"v":1,"n":12,"seq":345,"activeMs":6789,"type":"call.started","later":true,"data":{}}`,
	} {
		if head, err := job.ParseFrameHead([]byte(text)); err != nil || head != want {
			t.Errorf("%s: %+v, %v", name, head, err)
		}
	}
}

func TestWhatIsNoFrameIsSaid(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "{", "null", `{"v":1}`, `{"v":2,"n":1,"seq":0,"activeMs":0,"type":"spec","data":{}}`, `{"v":1,"n":0,"seq":0,"activeMs":0,"type":"spec","data":{}}`,
		`{"v":1,"n":1,"seq":-1,"activeMs":0,"type":"spec","data":{}}`, `{"v":1,"n":1,"seq":0,"activeMs":0,"type":"","data":{}}`,
		`{"v":1,"n":99999999999999999999,"seq":0,"activeMs":0,"type":"spec","data":{}}`,
	} {
		if head, err := job.ParseFrameHead([]byte(line)); err == nil {
			t.Errorf("%q was read as %+v", line, head)
		}
	}
}
