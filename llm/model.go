package llm

import "slices"

// Level is how much a model thinks before it answers.
type Level string

// The closed, ordered set of thinking levels.
const (
	LevelOff     Level = "off"
	LevelMinimal Level = "minimal"
	LevelLow     Level = "low"
	LevelMedium  Level = "medium"
	LevelHigh    Level = "high"
	LevelXHigh   Level = "xhigh"
	LevelMax     Level = "max"
)

// Levels returns every level from the least to the most thinking.
func Levels() []Level {
	return []Level{LevelOff, LevelMinimal, LevelLow, LevelMedium, LevelHigh, LevelXHigh, LevelMax}
}

// Valid reports whether l is one of Levels.
func (l Level) Valid() bool { return slices.Contains(Levels(), l) }

// Nearest returns the level of available that is nearest to want: the smallest distance in Levels, the lower of two at
// one distance. LevelOff is chosen only if it was asked for or if nothing else is available. With nothing available the
// answer is LevelOff.
func Nearest(want Level, available []Level) Level {
	if len(available) == 0 || slices.Contains(available, want) {
		if len(available) == 0 {
			return LevelOff
		}
		return want
	}
	order := Levels()
	at := slices.Index(order, want)
	best, distance := LevelOff, len(order)+1
	for i, l := range order {
		if l == LevelOff || !slices.Contains(available, l) {
			continue
		}
		if d := max(i-at, at-i); d < distance {
			best, distance = l, d
		}
	}
	return best
}

// Model is the table entry of one model at one provider: everything the kernel and an adapter need to know about it.
type Model struct {
	// ID is what a job calls the model, and its name on the wire unless Compat.Deployment is another.
	ID string `json:"id"`
	// Name is for people.
	Name string `json:"name,omitempty"`
	// ContextWindow is the number of tokens of prompt and answer together, 0 if unknown.
	ContextWindow int64 `json:"contextWindow,omitempty"`
	// MaxOutputTokens is the longest answer, 0 if unknown.
	MaxOutputTokens int64 `json:"maxOutputTokens,omitempty"`
	// Price is nil if unknown; a price of zero is a known price.
	Price *Price `json:"price,omitempty"`
	// ThinkingLevels are the levels the model takes. Empty means that it does not think.
	ThinkingLevels []Level `json:"thinkingLevels,omitempty"`
	// Images says whether the model takes images.
	Images bool `json:"images,omitempty"`
	// Compat holds the switches for servers that speak a dialect of their API.
	Compat Compat `json:"compat,omitzero"`
	// Simulated marks an entry that is no language model (the scripted and offline providers); whatever shows the model's
	// name to a person must say so.
	Simulated bool `json:"simulated,omitempty"`
}

// WireName is the name by which requests call the model.
func (m Model) WireName() string {
	if m.Compat.Deployment != "" {
		return m.Compat.Deployment
	}
	return m.ID
}

// Compat holds the switches by which servers that claim the same API differ. A nil pointer or an empty string means: the
// adapter's choice for this base URL.
type Compat struct {
	// DeveloperRole sends the system prompt as role "developer".
	DeveloperRole *bool `json:"developerRole,omitempty"`
	// StreamUsage asks for usage in the stream (stream_options.include_usage).
	StreamUsage *bool `json:"streamUsage,omitempty"`
	// Store sends "store": false.
	Store *bool `json:"store,omitempty"`
	// MaxTokensField is "max_tokens" or "max_completion_tokens".
	MaxTokensField string `json:"maxTokensField,omitempty"`
	// ThinkingDialect is how a thinking level is sent: "none", "openai", "openrouter", "deepseek", "zai", "qwen",
	// "qwen-chat-template", "together"; for the Responses API "openai" or "effort", which asks for no summaries; for the
	// Anthropic API "budget" or "adaptive"; for Google's "budget" or "level".
	ThinkingDialect string `json:"thinkingDialect,omitempty"`
	// ThinkingEfforts renames levels on the wire, for example {"minimal": "low"}.
	ThinkingEfforts map[Level]string `json:"thinkingEfforts,omitempty"`
	// ReplayThinking sends earlier thinking of the same model back in the field it came in.
	ReplayThinking *bool `json:"replayThinking,omitempty"`
	// ToolResultName adds the tool's name to tool results.
	ToolResultName *bool `json:"toolResultName,omitempty"`
	// EmptyContent sends "" instead of null as the content of an assistant message that only calls tools.
	EmptyContent *bool `json:"emptyContent,omitempty"`
	// ParallelToolCalls sends parallel_tool_calls with this value; nil sends nothing.
	ParallelToolCalls *bool `json:"parallelToolCalls,omitempty"`
	// StrictTools declares tools as strict where their schema allows it.
	StrictTools *bool `json:"strictTools,omitempty"`
	// MissingFinishReason accepts a stream that ends, after its [DONE] mark, without any finish_reason.
	MissingFinishReason *bool `json:"missingFinishReason,omitempty"`
	// PromptCache asks the provider to cache the prompt prefix, where the API must be asked.
	PromptCache *bool `json:"promptCache,omitempty"`
	// TextToolCalls says whether tool calls that the model writes into its text are understood: "off"; "auto", any known
	// form; or the one form to accept, see TextCallFormats. Empty is "auto" for models whose chat template is known to
	// write calls as text, at servers that are not one of the large hosted APIs, and "off" for everything else.
	TextToolCalls string `json:"textToolCalls,omitempty"`
	// ToolsAsText declares the tools in the system prompt and sends earlier calls and their results as text, for servers
	// whose API takes no tools. It needs TextToolCalls, whose empty value then means "auto".
	ToolsAsText *bool `json:"toolsAsText,omitempty"`
	// Deployment is the model's name on the wire where it is not its id, such as the name of an Azure deployment.
	Deployment string `json:"deployment,omitempty"`
	// Method is which of an API's methods serves the model, for APIs that have two: "responses" or "chat" (Azure OpenAI).
	Method string `json:"method,omitempty"`
}
