package llmtest

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hozo-run/hozo/llm"
)

// Playback says how an adapter decodes recorded responses and what is expected of them.
type Playback struct {
	// Path is the end of the paths of the exchanges that are played.
	Path string
	// Decode decodes a response that was streamed, Whole one that was not.
	Decode func(io.Reader) (llm.Response, error)
	Whole  func([]byte) (llm.Response, error)
	// Check compares a response with the recorded text. The name says how it was decoded.
	Check func(t *testing.T, name string, x Recorded, got llm.Response)
	// Finish tells the event that is the finish mark.
	Finish func(event string) bool
}

// PlayRecordings decodes every recorded exchange of an API family, whole and byte by byte. Each streamed one is then cut
// at every event border before its finish mark, where it must be a truncation that can be retried. How many there were
// of each kind is logged. The test is skipped without recordings; see Recordings.
func PlayRecordings(t *testing.T, p Playback) {
	t.Helper()
	exchanges := Recordings(t, p.Path)
	counts := map[string]int{}
	for _, x := range exchanges {
		if !x.Streamed {
			counts["whole bodies decoded"]++
			got, err := p.Whole([]byte(x.Body))
			p.check(t, x.Name, x, got, err)
			continue
		}
		counts["streams decoded whole and byte by byte"]++
		got, err := p.Decode(strings.NewReader(x.Body))
		p.check(t, x.Name, x, got, err)
		got, err = p.Decode(iotest.OneByteReader(strings.NewReader(x.Body)))
		p.check(t, x.Name+" byte by byte", x, got, err)
		counts["streams cut"] += p.cutEverywhere(t, x)
	}
	t.Logf("%d exchanges: %v", len(exchanges), counts)
}

func (p *Playback) check(t *testing.T, name string, x Recorded, got llm.Response, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	p.Check(t, name, x, got)
}

// cutEverywhere decodes the stream up to each event border before the finish mark, and returns how many there are.
func (p *Playback) cutEverywhere(t *testing.T, x Recorded) int {
	t.Helper()
	body := strings.ReplaceAll(x.Body, "\r\n", "\n")
	n := 0
	for at := 0; ; n++ {
		next := strings.Index(body[at:], "\n\n")
		if next < 0 || p.Finish(body[at:at+next]) {
			return n
		}
		at += next + 2
		_, err := p.Decode(strings.NewReader(body[:at]))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != llm.ClassTruncated || !e.Retryable() {
			t.Errorf("%s cut at byte %d: error %v, want a retryable truncation", x.Name, at, err)
		}
	}
}
