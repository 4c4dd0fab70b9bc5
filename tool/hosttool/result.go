package hosttool

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool"
)

// maxText bounds the text of one result.
const maxText = 51_200

// render turns what the host answered into a result for the model. Only text is passed on: what a model service makes of
// an image that it does not like would end the job.
func render(answer *mcp.CallToolResult) tool.Result {
	if id, waits := suspended(answer); id != "" {
		return tool.Result{IsError: true, Suspended: id, Text: "the call waits for a decision"}
	} else if waits {
		return tool.Errorf("the tool wants to wait for a decision but gives the wait no id; the call was not completed")
	}
	if problem := incomplete(answer); problem != "" {
		return tool.Errorf("%s", problem)
	}
	var texts []string
	words := false
	for _, content := range answer.Content {
		switch c := content.(type) {
		case *mcp.TextContent:
			words = true
			texts = append(texts, c.Text)
		case *mcp.ImageContent:
			texts = append(texts, fmt.Sprintf("[image, %s, %d bytes; images of host tools are not passed on]", line(c.MIMEType), len(c.Data)))
		default:
			texts = append(texts, "[content of a kind that is not passed on]")
		}
	}
	r := tool.Result{IsError: answer.IsError}
	if answer.StructuredContent != nil {
		if data, err := json.Marshal(answer.StructuredContent); err == nil {
			r.Structured = data
			if !words {
				texts = append(texts, string(data))
			}
		}
	}
	r.Text = cutMiddle(plain(strings.Join(texts, "\n")))
	if r.IsError && strings.TrimSpace(r.Text) == "" {
		r.Text = "the tool failed without saying why"
	}
	return r
}

// incomplete returns what to tell the model about an answer that is not the end of the call, "" if it is.
func incomplete(answer *mcp.CallToolResult) string {
	if answer.NeedsInput() || len(answer.InputRequests) > 0 {
		return "the tool wants to ask somebody in the middle of the call, which this job does not offer; the call was not completed"
	}
	return ""
}

// suspended returns the id under which an answer waits for a decision, and whether it does.
func suspended(answer *mcp.CallToolResult) (waitID string, waits bool) {
	wait, waits := answer.Meta[MetaSuspend]
	if object, ok := wait.(map[string]any); ok {
		waitID, _ = object["waitId"].(string)
	}
	return line(waitID), waits
}

// steering reports whether a character is a control character, steers the direction of writing, or belongs to the tags in
// which text can be hidden. Line breaks and tabs are neither.
func steering(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r), r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x206f:
		return true
	}
	return r == 0x2028 || r == 0x2029 || r >= 0xe0000 && r <= 0xe007f
}

// plain returns text as valid UTF-8 without steering characters. What a host passes on may come from anywhere.
func plain(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if steering(r) {
			return -1
		}
		return r
	}, text)
}

// line returns a text as one short line for a message.
func line(text string) string {
	text = strings.Join(strings.Fields(plain(text)), " ")
	if len(text) > 300 {
		return text[:border(text, 300)] + "…"
	}
	return text
}

// border returns the greatest index up to at at which text can be cut between two characters.
func border(text string, at int) int {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// cutMiddle bounds a text by leaving out its middle.
func cutMiddle(text string) string {
	if len(text) <= maxText {
		return text
	}
	head := border(text, maxText/2)
	tail := len(text) - maxText/2
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n\n[%d of %d bytes are left out here; ask for less to see them]\n\n%s", text[:head], tail-head, len(text), text[tail:])
}
