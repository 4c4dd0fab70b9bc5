package llm

// TextCall says what became of the tool calls that a model wrote into its text.
type TextCall struct {
	// Format is the form that was recognised, one of TextCallFormats.
	Format string `json:"format,omitempty"`
	// Repaired says that the text was no valid JSON until small slips were set right.
	Repaired bool `json:"repaired,omitempty"`
	// Dropped counts the calls that were recognised and left out, since the agent takes one call at a time.
	Dropped int64 `json:"dropped,omitempty"`
	// Refused says why what looks like a call was not taken, "" if it was: "unknown-tool", "echoed", "quoted", "cut",
	// "too-long" or "too-complex".
	Refused string `json:"refused,omitempty"`
}

// The settings of Compat.TextToolCalls besides the forms.
const (
	TextCallsOff  = "off"
	TextCallsAuto = "auto"
)

// TextCallFormats returns the ids of the forms in which models write tool calls into their text. Package llm/textcall
// reads and writes them.
func TextCallFormats() []string {
	return []string{
		"hermes", "qwen-coder-json", "qwen3-xml", "llama3-json", "llama3-builtin", "function-tag", "functionary32", "pythonic", "lfm2",
		"olmo3", "mistral-v1", "mistral-v2", "mistral-v3", "deepseek-v3", "deepseek-v31", "deepseek-v32", "invoke-xml", "minimax", "kimi-k2",
		"glm45", "harmony", "command-r", "firefunction", "granite", "jamba", "functiongemma", "gigachat", "generic", "openai-env", "tool-args",
		"react", "xlam",
	}
}
