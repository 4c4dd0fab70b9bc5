package google

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

func TestALineOfTenMebibytes(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 10<<20)
	r, err := wire.Decode(strings.NewReader(parts(text(big))+finish("STOP", someUsage)), newDecoder("m", nil))
	if err != nil || r.Message.Text() != big {
		t.Errorf("%d bytes, error %v", len(r.Message.Text()), err)
	}
}

func TestWhatIsKeptOfAResponseIsBounded(t *testing.T) {
	t.Parallel()
	mebibyte := strings.Repeat("x", 1<<20)
	for name, in := range map[string]string{
		"text":                    parts(text(mebibyte)),
		"thoughts":                parts(thought(mebibyte)),
		"signatures":              parts(signed("", mebibyte)),
		"signatures of calls":     parts(`{"functionCall": {"name": "f"},"thoughtSignature": "` + mebibyte + `"}`),
		"arguments":               parts(function("a", "f", `{"x": "`+mebibyte+`"}`)),
		"calls":                   parts(function("a", "f", "{}")),
		"ids of calls":            parts(function(mebibyte, "f", "{}")),
		"names of calls":          parts(function("a", mebibyte, "{}")),
		"pieces":                  piece(`"willContinue": true,"partialArgs": [{"jsonPath": "$.x","stringValue": "` + mebibyte + `"}]`),
		"many small signed texts": parts(strings.TrimSuffix(strings.Repeat(signed("", "c2ln")+",", 1000), ",")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := &repeat{text: in, n: 100_000}
			_, err := wire.Decode(body, newDecoder("m", nil))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Class != llm.ClassMalformed || !errors.Is(err, wire.ErrTooLarge) || e.Retryable() {
				t.Errorf("error %v, want a final one that wraps ErrTooLarge", err)
			}
		})
	}
}

func TestTheMembersOfArgumentsInPiecesAreBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range widest + 1 {
		if i > 0 {
			many.WriteByte(',')
		}
		many.WriteString(`{"jsonPath": "$.a` + strings.Repeat("a", i%97) + strings.Repeat("b", i/97) + `","numberValue": 1}`)
	}
	_, err := wire.Decode(strings.NewReader(piece(`"name": "f","partialArgs": [`+many.String()+`]`)), newDecoder("m", nil))
	if class(err) != llm.ClassMalformed {
		t.Errorf("error %v, want a malformed response", err)
	}
}
