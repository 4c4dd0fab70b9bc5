package openaichat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

// TestRecordedThinkingGoesBackAsItCame takes each recorded response of a gateway that holds proofs of thinking, and
// compares what the next request sends back with a naive joining of the list that came.
func TestRecordedThinkingGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for _, x := range llmtest.Recordings(t, Path) {
		want, proved := naiveDetails(t, x)
		if !proved {
			counts["without proof"]++
			continue
		}
		counts[x.Host]++
		if diff := cmp.Diff(want, sentBack(t, x)); diff != "" {
			t.Errorf("%s: (-recorded +sent)\n%s", x.Name, diff)
		}
	}
	t.Logf("responses: %v", counts)
	for _, host := range []string{"openrouter.ai", "ai-gateway.vercel.sh"} {
		if counts[host] == 0 {
			t.Errorf("no recorded response of %s has proofs of thinking", host)
		}
	}
}

// naiveDetails joins the entries of a response that follow each other with one type and index.
func naiveDetails(t *testing.T, x llmtest.Recorded) (joined []map[string]any, proved bool) {
	t.Helper()
	for _, text := range naiveEvents(x) {
		var event map[string]any
		if err := json.Unmarshal([]byte(text), &event); err != nil {
			t.Fatal(err)
		}
		for _, c := range list(event["choices"]) {
			delta, ok := c["delta"].(map[string]any)
			if !ok {
				delta, _ = c["message"].(map[string]any)
			}
			for _, d := range list(delta["reasoning_details"]) {
				n := len(joined)
				if n == 0 || joined[n-1]["type"] != d["type"] || joined[n-1]["index"] != d["index"] {
					joined = append(joined, map[string]any{"type": d["type"], "index": d["index"]})
					n++
				}
				for key, value := range d {
					piece, isText := value.(string)
					switch {
					case !isText || piece == "" || key == "type":
					case key == "id" || key == "format":
						joined[n-1][key] = piece
					default:
						have, _ := joined[n-1][key].(string)
						joined[n-1][key] = have + piece
					}
				}
				proved = proved || first("", d["signature"])+first("", d["data"]) != ""
			}
		}
	}
	return joined, proved
}

// sentBack decodes a recorded response and returns the thinking that the next request to the same model holds.
func sentBack(t *testing.T, x llmtest.Recorded) []map[string]any {
	t.Helper()
	d := newDecoder(llm.Origin{API: API, Model: "m"}, false, nil)
	var r llm.Response
	var err error
	if x.Streamed {
		r, err = wire.Decode(strings.NewReader(x.Body), d)
	} else {
		r, err = d.Close(d.Whole([]byte(x.Body)))
	}
	if err != nil {
		t.Fatalf("%s: %v", x.Name, err)
	}
	messages := []llm.Message{llm.UserText("q"), r.Message, llm.UserText("more")}
	if calls := r.Message.ToolCalls(); len(calls) > 0 {
		messages[2] = llm.Message{Role: llm.RoleTool}
		for i, c := range calls {
			c.ID = fmt.Sprint(i)
			messages[2].Parts = append(messages[2].Parts, llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: c.ID, Name: c.Name}})
		}
	}
	var request struct {
		Messages []struct {
			Details []map[string]any `json:"reasoning_details"`
		}
	}
	if err := json.Unmarshal([]byte(sent(t, dialogAt(t, "https://"+x.Host, llm.Opening{}), llm.Call{}, messages...)), &request); err != nil {
		t.Fatal(err)
	}
	return request.Messages[1].Details
}
