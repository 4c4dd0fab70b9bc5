package openaichat

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// repeat reads text n times over.
type repeat struct {
	text string
	n    int
	rest string
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.rest = r.text
		r.n--
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestAMillionDeltas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a million deltas take a few seconds under the race detector")
	}
	const block = 10_000
	n := 0
	body := io.MultiReader(&repeat{text: strings.Repeat(part(`"content":"ab"`), block), n: 1_000_000 / block}, strings.NewReader(finish("stop")))
	r, err := wire.Decode(body, newDecoder(llm.Origin{API: API, Model: "m"}, false, func(llm.Delta) error { n++; return nil }))
	if err != nil || n != 1_000_000 || len(r.Message.Text()) != 2_000_000 || len(r.Message.Parts) != 1 {
		t.Errorf("%d deltas, %d bytes, error %v", n, len(r.Message.Text()), err)
	}
}

func TestALineOfTenMebibytes(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 10<<20)
	r, err := wire.Decode(strings.NewReader(part(`"content":"`+big+`"`)+finish("stop")), newDecoder(llm.Origin{API: API, Model: "m"}, false, nil))
	if err != nil || r.Message.Text() != big {
		t.Errorf("%d bytes, error %v", len(r.Message.Text()), err)
	}
}

func TestWhatIsKeptOfAResponseIsBounded(t *testing.T) {
	t.Parallel()
	mebibyte := strings.Repeat("x", 1<<20)
	for name, in := range map[string]string{
		"text":                   part(`"content":"` + mebibyte + `"`),
		"thinking":               part(`"reasoning":"` + mebibyte + `"`),
		"refusals":               part(`"refusal":"` + mebibyte + `"`),
		"arguments":              tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"` + mebibyte + `"}}`),
		"calls":                  tool(`{"id":"a","function":{"name":"f","arguments":"{\"a\":1}"}}`),
		"ids of calls":           tool(`{"id":"` + mebibyte + `","function":{"name":"f","arguments":"{\"a\":1}"}}`),
		"names of calls":         tool(`{"index":0,"function":{"name":"` + mebibyte + `"}}`),
		"parts of changing kind": strings.Repeat(part(`"reasoning":"a"`)+part(`"content":"b"`), 1000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := &repeat{text: in, n: 100_000}
			_, err := wire.Decode(body, newDecoder(llm.Origin{API: API, Model: "m"}, false, nil))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Class != llm.ClassMalformed || !errors.Is(err, wire.ErrTooLarge) || e.Retryable() {
				t.Errorf("error %v, want a final one that wraps ErrTooLarge", err)
			}
		})
	}
}

func TestNothingIsSentThatAPlainServerDoesNotKnow(t *testing.T) {
	t.Parallel()
	c := dialogAt(t, unknown, llm.Opening{System: "S", Model: llm.Model{ID: "m", Compat: llm.Compat{StreamUsage: new(false)}}})
	got := sent(t, c, llm.Call{MaxOutputTokens: 5}, llm.UserText("q"))
	want := `{"model":"m","stream":true,"messages":[{"role":"system","content":"S"},{"role":"user","content":"q"}],"max_tokens":5}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
