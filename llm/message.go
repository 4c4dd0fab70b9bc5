// Package llm holds the model-neutral words that the kernel and the provider adapters share: messages and their parts,
// tool declarations, usage and money, the table entry of a model, streamed deltas, and one typed error. It knows no
// vendor and does no input or output. A provider adapter turns these words into one vendor's wire format and back; the
// kernel decides everything else (retries, limits, which tools run), so an adapter never retries and never decides.
package llm

import "encoding/json"

// Role says who a message is from.
type Role string

// The roles of a dialog with a model. The system prompt is no message: see Opening.System.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	// RoleTool is a message that holds the results of one turn's tool calls, in the order of the calls.
	RoleTool Role = "tool"
)

// PartType discriminates Part.
type PartType string

// The closed set of part types.
const (
	PartText       PartType = "text"
	PartThinking   PartType = "thinking"
	PartImage      PartType = "image"
	PartToolCall   PartType = "tool-call"
	PartToolResult PartType = "tool-result"
)

// Message is one entry of the exchange with a model. A user message holds text and images, an assistant message text,
// thinking and tool calls, a tool message tool results only.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
	// Origin names the model that wrote an assistant message; thinking is replayed to that model only. The zero value
	// means unknown, and its thinking is then dropped.
	Origin Origin `json:"origin,omitzero"`
}

// Origin is where an assistant message came from.
type Origin struct {
	API   string `json:"api"`
	Model string `json:"model"`
}

// Part is a piece of a message; exactly the fields of its type are set.
type Part struct {
	Type PartType `json:"type"`
	// Text is the text of a text or thinking part, as valid UTF-8.
	Text string `json:"text,omitempty"`
	// Signature is the provider's proof of a thinking part, or of a text or a call that came out of thinking; it is replayed
	// unchanged, to the model that wrote it only. Redacted thinking has only this.
	Signature string `json:"signature,omitempty"`
	// Redacted marks a thinking part whose text the provider keeps to itself.
	Redacted bool `json:"redacted,omitempty"`
	// Field is the wire field in which an OpenAI-compatible server sent a thinking part ("reasoning_content",
	// "reasoning"), so that it can be replayed in the same one.
	Field      string      `json:"field,omitempty"`
	Image      *Image      `json:"image,omitempty"`
	ToolCall   *ToolCall   `json:"toolCall,omitempty"`
	ToolResult *ToolResult `json:"toolResult,omitempty"`
}

// Image is a picture for or from a model.
type Image struct {
	// MediaType is one of image/png, image/jpeg, image/gif, image/webp.
	MediaType string `json:"mediaType"`
	Data      []byte `json:"data"`
}

// ToolCall is a model's wish to use a tool, complete as streamed to its end.
type ToolCall struct {
	// ID is ours and unique in the job: "<turn>.<index>". The adapter leaves it empty; the kernel sets it.
	ID string `json:"id"`
	// ProviderID is the id the provider gave, "" if none. It is replayed to the same model when it is not empty and
	// unique; adapters otherwise derive one from ID.
	ProviderID string `json:"providerId,omitempty"`
	Name       string `json:"name"`
	// Arguments is a JSON object. It is nil exactly when ArgumentsError is set; it is never an object that the model did
	// not send, except {} for an empty argument text.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// ArgumentsError says why the argument text is no JSON object (position and kind, never the text itself).
	ArgumentsError string `json:"argumentsError,omitempty"`
	// RawArguments is the argument text as sent, kept only when ArgumentsError is set.
	RawArguments string `json:"rawArguments,omitempty"`
	// TextFormat is the form in which the model wrote the call into its text, "" for a call that the API delivered; see
	// TextCallFormats.
	TextFormat string `json:"textFormat,omitempty"`
}

// ToolResult is what went back to the model for one call.
type ToolResult struct {
	// CallID is the ToolCall.ID it answers, ProviderID that call's ProviderID.
	CallID     string `json:"callId"`
	ProviderID string `json:"providerId,omitempty"`
	Name       string `json:"name"`
	// Content holds text and image parts only.
	Content []Part `json:"content"`
	IsError bool   `json:"isError,omitempty"`
}

// ToolSpec declares a tool to a model.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// TextPart returns a text part.
func TextPart(text string) Part { return Part{Type: PartText, Text: text} }

// UserText returns a user message with one text part.
func UserText(text string) Message { return Message{Role: RoleUser, Parts: []Part{TextPart(text)}} }

// Text returns the text parts of m joined together.
func (m Message) Text() string {
	var only string
	n, size := 0, 0
	for _, p := range m.Parts {
		if p.Type == PartText {
			only = p.Text
			n++
			size += len(p.Text)
		}
	}
	if n <= 1 {
		return only
	}
	all := make([]byte, 0, size)
	for _, p := range m.Parts {
		if p.Type == PartText {
			all = append(all, p.Text...)
		}
	}
	return string(all)
}

// ToolCalls returns the tool calls of m in the model's order.
func (m Message) ToolCalls() []*ToolCall {
	var calls []*ToolCall
	for _, p := range m.Parts {
		if p.Type == PartToolCall {
			calls = append(calls, p.ToolCall)
		}
	}
	return calls
}
