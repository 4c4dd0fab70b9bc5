package openaichat

import (
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
)

func TestTheProofOfThinkingIsJoinedAndSentBack(t *testing.T) {
	t.Parallel()
	in := part(`"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"f","index":0}]`) +
		part(`"reasoning":"b\n","reasoning_details":[{"type":"reasoning.text","text":"b\n","format":"f","index":0}]`) +
		part(`"reasoning_details":[{"type":"reasoning.text","text":"","signature":"c2ln","index":0}]`) +
		part(`"reasoning_details":[{"type":"reasoning.encrypted","data":"ZGF0","id":"tool_1","index":1,"more":[1]}]`) + part(`"content":"x"`)
	const proof = `[{"type":"reasoning.text","format":"f","text":"ab\n","signature":"c2ln","index":0},` +
		`{"type":"reasoning.encrypted","id":"tool_1","data":"ZGF0","index":1}]`
	r, deltas, err := decode(t, in+finish("stop"))
	if err != nil || deltas != "R0:ab\n T0:x" || len(r.Message.Parts) != 2 {
		t.Fatalf("deltas %q, %d parts, error %v", deltas, len(r.Message.Parts), err)
	}
	if p := r.Message.Parts[0]; p.Text != "ab\n" || p.Field != "reasoning" || p.Signature != proof {
		t.Errorf("%+v, want the proof %s", p, proof)
	}
	for base, want := range map[string]string{
		"https://openrouter.ai/api/v1": `"content":"x","reasoning_details":` + proof + `}`,
		unknown:                        `"content":"x"}`,
	} {
		c := dialogAt(t, base, llm.Opening{})
		if got := sent(t, c, llm.Call{}, llm.UserText("q"), r.Message, llm.UserText("q")); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
		r.Message.Origin.Model = "other"
		c = dialogAt(t, base, llm.Opening{})
		if got := sent(t, c, llm.Call{}, llm.UserText("q"), r.Message, llm.UserText("q")); strings.Contains(got, "reasoning") {
			t.Errorf("thinking of another model in %s", got)
		}
		r.Message.Origin.Model = "m"
	}
}

func TestAProofWithoutThinkingIsAPartOfItsOwn(t *testing.T) {
	t.Parallel()
	r, deltas, err := decode(t, part(`"reasoning_details":[{"type":"reasoning.encrypted","data":"ZGF0"}]`)+part(`"content":"x"`)+finish("stop"))
	if err != nil || deltas != "T0:x" || len(r.Message.Parts) != 2 {
		t.Fatalf("deltas %q, %d parts, error %v", deltas, len(r.Message.Parts), err)
	}
	want := llm.Part{Type: llm.PartThinking, Redacted: true, Field: detailsField, Signature: `[{"type":"reasoning.encrypted","data":"ZGF0"}]`}
	if p := r.Message.Parts[0]; p.Type != want.Type || p.Signature != want.Signature || !p.Redacted || p.Text != "" {
		t.Errorf("%+v, want %+v", p, want)
	}
}
