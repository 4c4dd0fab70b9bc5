package textcall

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
)

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"forms", "models"} {
		for _, text := range fixtures(f, folder) {
			f.Add(text, uint8(3))
		}
	}
	for _, text := range []string{"{'a':“b”, # c\n", "[f(a=(1,), b={'x': \"\\x41\"})]", "</think>{\"tool_calls\":[]}", "~~~\n{\"name\":\"get_time\",\"arguments\":null}\n~~~", "`<tool_call>`"} {
		f.Add(text, uint8(1))
	}
	offer := NewOffer(offerTools())
	names := []string{"get_weather", "get_time", "write_note"}
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		text = strings.ToValidUTF8(text, "?")
		r := Parse(text, offer, Options{})
		for _, c := range r.Calls {
			if !slices.Contains(names, c.Name) {
				t.Fatalf("the tool %q is not offered", c.Name)
			}
			if (c.ArgumentsError == "") != json.Valid(c.Arguments) || c.ArgumentsError == "" && c.Arguments[0] != '{' {
				t.Fatalf("arguments %s, error %q", c.Arguments, c.ArgumentsError)
			}
		}
		visible := text[splitThinking(text).shown:]
		again := Parse(visible, offer, Options{})
		shown := newScanner(offer).add([]byte(visible))
		if got := shownOf(offer, visible, int(size)+1); got != shown {
			t.Fatalf("%d bytes are shown in pieces of %d, %d at once", got, int(size)+1, shown)
		}
		if len(again.Calls)+len(again.Unknown) > 0 && again.at >= 0 && shown > again.at {
			t.Fatalf("%d bytes are shown, the call begins at %d", shown, again.at)
		}
		p := &parser{text: text, offer: offer, work: newMeter(len(text))}
		budget := p.work.left
		p.read(0)
		if spent := budget - p.work.left; spent > budget+16*len(text)+1024 {
			t.Fatalf("%d steps for %d bytes", spent, len(text))
		}
	})
}

// FuzzStream compares what is shown of a reply with the message that comes of it.
func FuzzStream(f *testing.F) {
	for _, folder := range []string{"forms", "models"} {
		for _, text := range fixtures(f, folder) {
			f.Add(text)
		}
	}
	for _, text := range []string{"<think>", "<|python_tag|>.call(", "<|tool_call_begin|><|tool_call_argument_begin|>{}", "</think>[get_time()]", "<thi"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		inner := &fake{response: saying(text)}
		d, err := Wrap(inner, "http://127.0.0.1/v1").Converse(llm.Opening{Model: llm.Model{ID: "qwen2.5"}, Tools: offerTools()})
		if err != nil {
			t.Fatal(err)
		}
		var h heard
		r, err := d.Stream(t.Context(), llm.Call{}, h.sink)
		if err != nil {
			t.Fatal(err)
		}
		orphan := splitThinking(text).shown == 0 && splitThinking(text).end > 0
		if shown := strings.TrimSpace(string(h.said)); shown != strings.TrimSpace(r.Message.Text()) && !orphan {
			t.Fatalf("%q is shown, the text is %q", shown, r.Message.Text())
		}
		for _, call := range r.Message.ToolCalls() {
			if (call.ArgumentsError == "") != json.Valid(call.Arguments) || call.TextFormat == "" || call.Name == "" {
				t.Fatalf("call %+v", call)
			}
		}
		if (len(r.Message.ToolCalls()) > 0) != (r.Stop == llm.StopTools) {
			t.Fatalf("%d calls, stop %q", len(r.Message.ToolCalls()), r.Stop)
		}
	})
}

func FuzzValue(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2.5e3,"\u00e9\n",true,null]}`, `{"a":1,}`, `{'a':'b'}`, `[[[[`, "\"\x01\"", `{"a":1}{`, "1 // x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := reader{text: text, work: newMeter(len(text))}
		v, err := r.value()
		if err == nil && !json.Valid(v.raw()) {
			t.Fatalf("%q is written as %s", text, v.raw())
		}
		if !json.Valid([]byte(text)) || errTooDeep == err {
			return
		}
		// Valid JSON is read as it is.
		if err != nil || r.repaired || strings.TrimSpace(text[r.pos:]) != "" {
			t.Fatalf("%q: %v, repaired %v, rest %q", text, err, r.repaired, text[r.pos:])
		}
		var want, got any
		if json.Unmarshal([]byte(text), &want) != nil {
			return // a number that Go cannot hold
		}
		if err := json.Unmarshal(v.raw(), &got); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) {
			t.Fatalf("%q is read as %s", text, b)
		}
	})
}
