package wire

import "github.com/hozo-run/hozo/llm"

// ModelQuery names a model of an account.
type ModelQuery struct {
	Model string `json:"model" minLength:"1" maxLength:"256"`
}

// Model says what is known of a model of an account.
type Model struct {
	ID string `json:"id"`
	// Known is false for a model of which nothing but its name is known.
	Known           bool        `json:"known"`
	ContextWindow   int64       `json:"contextWindow,omitempty" doc:"In tokens; absent if unknown."`
	MaxOutputTokens int64       `json:"maxOutputTokens,omitempty" doc:"Absent if unknown."`
	ThinkingLevels  []llm.Level `json:"thinkingLevels" doc:"The levels that the model takes, from the least to the most."`
}

// Acceptance pins tools of an MCP server as somebody saw them.
type Acceptance struct {
	// Hashes are those of the definitions that were looked at, by the name of the tool; "" for a tool that is gone.
	Hashes map[string]string `json:"hashes" doc:"The hash of each tool's definition, by its name, as it was looked at; empty for a tool that is gone."`
}

// BindingDraft is the model that an agent shall use.
type BindingDraft struct {
	Provider string    `json:"provider" minLength:"1"`
	Model    string    `json:"model" minLength:"1" maxLength:"256"`
	Thinking llm.Level `json:"thinking,omitempty"`
}
