package textcall

import "sync"

// Format is a form in which models write tool calls into their text. The forms carry the names of the model families
// that were taught them; llm.TextCallFormats lists the same words.
type Format string

// The forms.
const (
	Hermes         Format = "hermes"          // <tool_call>{"name":…,"arguments":…}</tool_call>
	QwenCoderJSON  Format = "qwen-coder-json" // the same object in a fence, in <tools>, or bare
	Qwen3XML       Format = "qwen3-xml"       // <tool_call><function=NAME><parameter=KEY>…
	Llama3JSON     Format = "llama3-json"     // {"name":…,"parameters":…}, also after <|python_tag|>
	Llama3Builtin  Format = "llama3-builtin"  // <|python_tag|>NAME.call(key="…")
	FunctionTag    Format = "function-tag"    // <function=NAME>{…}</function>
	Functionary32  Format = "functionary32"   // >>>NAME, then the arguments on the next line
	Pythonic       Format = "pythonic"        // [NAME(key=…)]
	LFM2           Format = "lfm2"            // <|tool_call_start|>[NAME(key=…)]<|tool_call_end|>
	Olmo3          Format = "olmo3"           // <function_calls>NAME(key=…)</function_calls>
	MistralV1      Format = "mistral-v1"      // [TOOL_CALLS] [{"name":…,"arguments":…}]
	MistralV2      Format = "mistral-v2"      // [TOOL_CALLS]NAME[ARGS]{…}
	MistralV3      Format = "mistral-v3"      // [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{…}
	DeepSeekV3     Format = "deepseek-v3"     // tokens around a type, a name and a fence
	DeepSeekV31    Format = "deepseek-v31"    // the same tokens around a name and an object
	DeepSeekV32    Format = "deepseek-v32"    // DSML marks
	InvokeXML      Format = "invoke-xml"      // <function_calls><invoke name=…><parameter name=…>
	MiniMax        Format = "minimax"         // <minimax:tool_call><invoke name=…>
	KimiK2         Format = "kimi-k2"         // <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}
	GLM45          Format = "glm45"           // <tool_call>NAME, then <arg_key> and <arg_value>
	Harmony        Format = "harmony"         // <|channel|>commentary to=functions.NAME<|message|>{…}<|call|>
	CommandR       Format = "command-r"       // <|START_ACTION|>[{"tool_name":…,"parameters":…}]<|END_ACTION|>
	FireFunction   Format = "firefunction"    // functools[{"name":…,"arguments":…}]
	Granite        Format = "granite"         // <|tool_call|>[{"name":…,"arguments":…}]
	Jamba          Format = "jamba"           // <tool_calls>[{"name":…,"arguments":…}]</tool_calls>
	FunctionGemma  Format = "functiongemma"   // <start_function_call>call:NAME{key:<escape>…<escape>}
	GigaChat       Format = "gigachat"        // function call<|role_sep|>, then {"name":…,"arguments":…}
	Generic        Format = "generic"         // {"tool_call":…}, {"tool_calls":[…]} or {"response":…}
	OpenAIEnvelope Format = "openai-env"      // {"tool_calls":[{"type":"function","function":…}]}
	ToolArgs       Format = "tool-args"       // {"tool":…,"args":…} and its like
	ReAct          Format = "react"           // Action: NAME, Action Input: {…}
	XLAM           Format = "xlam"            // [{"name":…,"arguments":…}] as the whole message
)

// bareJSON stands for an object without any mark, whose members tell the form.
const bareJSON Format = "json"

// accepts reports whether a reply in the form got may be taken where the form want was asked for; "" asks for any.
func accepts(want, got Format) bool {
	if want == "" || want == got {
		return true
	}
	switch want {
	case XLAM:
		return got == MistralV1 || got == Hermes || got == QwenCoderJSON
	case Granite:
		return got == Hermes
	}
	return false
}

// mark is a text that begins a call and is unlikely to stand anywhere else.
type mark struct {
	text string
	// line says that it counts at the beginning of a line only.
	line bool
	read func(p *parser, at, after int) (find, bool)
}

// knownMarks returns all marks. Of two that begin at one place the longer one stands first.
var knownMarks = sync.OnceValue(func() []mark {
	return []mark{
		{"<tool_call>", false, (*parser).toolCallTag},
		{"<tools>", false, (*parser).toolsTag},
		{"<function=", false, (*parser).functionTag},
		{"<|python_tag|>", false, (*parser).pythonTag},
		{"<|python_start|>", false, (*parser).pythonStart},
		{">>>", true, (*parser).functionary},
		{"<|tool_call_start|>", false, (*parser).lfm2},
		{"<function_calls>", false, (*parser).functionCalls},
		{"<invoke name=", false, (*parser).invoke},
		{"<minimax:tool_call>", false, (*parser).miniMax},
		{"<｜DSML｜", false, (*parser).dsml},
		{"<|DSML|", false, (*parser).dsml},
		{"[TOOL_CALLS]", false, (*parser).mistral},
		{"<｜tool▁call", false, (*parser).deepSeek},
		{"<｜tool_call", false, (*parser).deepSeek},
		{"<|tool▁call", false, (*parser).deepSeek},
		{"<|tool_calls_section_begin|>", false, (*parser).kimi},
		{"<|tool_calls_begin|>", false, (*parser).deepSeek},
		{"<|tool_call_begin|>", false, (*parser).kimiOrDeepSeek},
		{"<|start|>assistant", false, (*parser).harmony},
		{"<|channel|>", false, (*parser).harmony},
		{"<|START_ACTION|>", false, (*parser).commandR},
		{"functools[", false, (*parser).fireFunction},
		{"<|tool_call|>", false, (*parser).granite},
		{"<tool_calls>", false, (*parser).jamba},
		{"<start_function_call>", false, (*parser).functionGemma},
		{"function call<|role_sep|>", false, (*parser).gigaChat},
	}
})

// mayBegin reports whether a mark may begin with c, to look no further at most places.
func mayBegin(c byte) bool { return c == '<' || c == '[' || c == '>' || c == 'f' }
