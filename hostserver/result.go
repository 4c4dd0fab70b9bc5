package hostserver

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool/hosttool"
)

// Result is the end of a call.
type Result struct {
	// Text goes to the model. It is data of the tool; a tool that passes on what others wrote says so in it.
	Text string
	// Value is the result for programs, anything with a JSON form; nil if Text is all there is. Without a Text the model
	// is shown the JSON.
	Value any
	// IsError marks a failed call; Text then says what failed and how to go on. A budget that is spent is one.
	IsError bool

	waitID string
}

// Text returns a result with a text in the manner of fmt.Sprintf.
func Text(format string, args ...any) Result { return Result{Text: fmt.Sprintf(format, args...)} }

// Value returns a result that the model is shown as JSON.
func Value(value any) Result { return Result{Value: value} }

// Errorf returns a failed result with a message in the manner of fmt.Sprintf.
func Errorf(format string, args ...any) Result {
	return Result{IsError: true, Text: fmt.Sprintf(format, args...)}
}

// Suspended returns a result that is not there yet: somebody must decide first, under this id. The job makes the call
// again, with the same key, when that has happened. A job that cannot be suspended treats it as a failed call.
func Suspended(waitID string) Result {
	return Result{IsError: true, Text: "the call waits for a decision", waitID: waitID}
}

// Passed returns the result of a check that has nothing against the answer.
func Passed() Result { return judged(hosttool.Pass, "") }

// Failedf returns the result of a check that refuses the answer, with the reason for people in one line.
func Failedf(format string, args ...any) Result {
	return judged(hosttool.Fail, fmt.Sprintf(format, args...))
}

func judged(verdict hosttool.Verdict, message string) Result {
	return Result{Value: map[string]string{"verdict": string(verdict), "message": message}}
}

func (r Result) encode() *mcp.CallToolResult {
	encoded := &mcp.CallToolResult{Content: []mcp.Content{}, IsError: r.IsError, StructuredContent: r.Value}
	if r.Text != "" || r.Value == nil {
		encoded.Content = append(encoded.Content, &mcp.TextContent{Text: r.Text})
	}
	if r.waitID != "" {
		encoded.Meta = mcp.Meta{hosttool.MetaSuspend: map[string]string{"waitId": r.waitID}}
	}
	return encoded
}
