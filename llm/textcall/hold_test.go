package textcall

import (
	"strings"
	"testing"
)

// shownOf returns how much of a text is shown before its end, when it comes in pieces of this size.
func shownOf(offer *Offer, text string, size int) int {
	s, shown := newScanner(offer), 0
	for text != "" {
		n := min(size, len(text))
		shown = s.add([]byte(text[:n]))
		text = text[n:]
	}
	return shown
}

func TestNothingOfACallIsShown(t *testing.T) {
	t.Parallel()
	offer := NewOffer(offerTools())
	for _, folder := range []string{"forms", "models"} {
		for path, text := range fixtures(t, folder) {
			th := splitThinking(text)
			text = text[th.shown:]
			r := Parse(text, offer, Options{})
			want := newScanner(offer).add([]byte(text))
			if len(r.Calls)+len(r.Unknown) > 0 && want > r.at {
				t.Errorf("%s: %q is shown, the call begins at %d", path, text[:want], r.at)
			}
			for _, size := range []int{1, 2, 3, 7, 64} {
				if got := shownOf(offer, text, size); got != want {
					t.Errorf("%s: %d bytes are shown in pieces of %d, %d at once", path, got, size, want)
				}
			}
		}
	}
}

func TestOrdinaryTextIsShownAtOnce(t *testing.T) {
	t.Parallel()
	for text, held := range map[string]string{
		"A sentence. And one more.":                                "",
		"a < b and a <= c, <b>bold</b>":                            "",
		"A list:\n- one [link](x)\n- two":                          "",
		"```go\nfunc f() { return }\n```\nIt works.":               "",
		"```go\nx := map[string]int{\"a\": 1}\n":                   "",
		"Set {\"a\": 1} there, then go.":                           "",
		"f{x} and {y: 1} and {1}":                                  "",
		"Action: wait\nThen look.":                                 "",
		"[1] is the first source.":                                 "",
		"[text](url)":                                              "",
		"A sentence and <tool":                                     "<tool",
		"A sentence and <tool_call>{":                              "<tool_call>{",
		"A sentence and {\"a\": 1}":                                "{\"a\": 1}",
		"A sentence and {\"a\": 1}  \n<|im_end|>":                  "{\"a\": 1}  \n<|im_end|>",
		"A sentence and [TOOL_CA":                                  "[TOOL_CA",
		"Look:\n```json\n{\"a\": 1}\n```\n":                        "```json\n{\"a\": 1}\n```\n",
		"Look:\n```json\n{\"a\": 1}\n```\nThat is it.":             "",
		"{\"a\": 1} is an object.":                                 "{\"a\": 1} is an object.",
		"[get_time()] is a call.":                                  "[get_time()] is a call.",
		"get_ti":                                                   "get_ti",
		"get_time is a tool":                                       "",
		"get_time\n{":                                              "get_time\n{",
		"Thought: x\nAction: get_time\nAction In":                  "Action: get_time\nAction In",
		"I think.\n</think>\n[get_time(":                           "[get_time(",
		"{" + strings.Repeat(" ", maxAhead) + "\"a\"":              "{" + strings.Repeat(" ", maxAhead) + "\"a\"",
		"Open {" + strings.Repeat(" ", maxAhead) + "\"a\": 1} x":   "",
		"Action: " + strings.Repeat("x", maxAhead) + "\nAction In": "",
	} {
		shown := shownOf(NewOffer(offerTools()), text, 1)
		if got := text[shown:]; got != held {
			t.Errorf("%.60q: %.60q is held back, want %.60q", text, got, held)
		}
	}
}
