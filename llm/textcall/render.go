package textcall

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// declare returns the part of the system prompt that declares the tools to a model whose API takes none, and shows how
// to call one.
func declare(format Format, tools []llm.ToolSpec) string {
	var b strings.Builder
	b.WriteString("# Tools\n\nYou can call these tools. Each line describes one: its name, what it does and the JSON schema of its arguments.\n\n")
	for _, t := range tools {
		line := emptyObject()
		line.set("name", stringValue(t.Name))
		line.set("description", stringValue(t.Description))
		schema := NewOffer([]llm.ToolSpec{t}).exact[t.Name].schema
		if schema.kind != kindObject {
			schema = emptyObject()
			schema.set("type", stringValue("object"))
		}
		line.set("parameters", schema)
		b.Write(line.appendJSON(nil))
		b.WriteByte('\n')
	}
	example := []written{{name: "tool_name", id: "call00001", args: exampleArguments()}}
	b.WriteString("\nTo call a tool, end your message with the call and nothing behind it, written exactly in this form:\n\n")
	b.WriteString(writeCalls(format, example))
	b.WriteString("\n\nThe result comes in the next message. Call only tools from the list. If you need none, answer as usual.")
	return b.String()
}

func exampleArguments() value {
	args := emptyObject()
	args.set("argument_name", stringValue("value"))
	return args
}

// rendered returns a message in which calls and results are text.
func rendered(format Format, m llm.Message) llm.Message {
	switch m.Role {
	case llm.RoleTool:
		return renderedResults(format, m)
	case llm.RoleAssistant:
		return renderedCalls(format, m)
	}
	return m
}

func renderedCalls(format Format, m llm.Message) llm.Message {
	var calls []written
	for _, call := range m.ToolCalls() {
		if call != nil {
			calls = append(calls, writtenOf(format, call))
		}
	}
	if len(calls) == 0 {
		return m
	}
	m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool { return p.Type == llm.PartToolCall })
	text := writeCalls(format, calls)
	if before := m.Text(); before != "" && !strings.HasSuffix(before, "\n") {
		text = "\n" + text
	}
	m.Parts = append(m.Parts, llm.TextPart(text))
	return m
}

// renderedResults returns the results of a turn as a message of the user, in the order of the calls.
func renderedResults(format Format, m llm.Message) llm.Message {
	out := llm.Message{Role: llm.RoleUser}
	for _, part := range m.Parts {
		result := part.ToolResult
		if result == nil {
			continue
		}
		text := llm.Message{Parts: result.Content}.Text()
		if strings.TrimSpace(text) == "" {
			text = "(no output)"
		}
		out.Parts = append(out.Parts, llm.TextPart(writeResult(format, result, text)))
		for _, p := range result.Content {
			if p.Type == llm.PartImage {
				out.Parts = append(out.Parts, p)
			}
		}
	}
	return out
}

// writeResult writes the result of one call. It names the call: several results may come at once.
func writeResult(format Format, result *llm.ToolResult, text string) string {
	outcome := "result"
	if result.IsError {
		outcome = "error"
	}
	switch format {
	case Hermes, QwenCoderJSON, Qwen3XML, GLM45:
		return fmt.Sprintf("<tool_response>\n%s of %s (call %s):\n%s\n</tool_response>\n", outcome, result.Name, result.CallID, text)
	case MistralV1, MistralV2, MistralV3:
		v := emptyObject()
		v.set("call_id", stringValue(shortID(result.CallID, result.ProviderID)))
		v.set(outcome, stringValue(text))
		return "[TOOL_RESULTS]" + string(v.raw()) + "[/TOOL_RESULTS]"
	case ReAct:
		return fmt.Sprintf("Observation (%s of %s, call %s):\n%s\n", outcome, result.Name, result.CallID, text)
	}
	return fmt.Sprintf("Tool %s of %s (call %s):\n%s\n", outcome, result.Name, result.CallID, text)
}

// shortID returns the id of a call in nine letters and digits: the model's own if it is one, else one made from ours.
func shortID(id, providerID string) string {
	if mistralID(providerID) {
		return providerID
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:9]
}

// written is a call to be written.
type written struct {
	name, id string
	args     value
}

func writtenOf(format Format, call *llm.ToolCall) written {
	w := written{name: call.Name, id: call.ID, args: emptyObject()}
	switch format {
	case MistralV1, MistralV2, MistralV3:
		w.id = shortID(call.ID, call.ProviderID)
	}
	r := reader{text: string(call.Arguments), work: newMeter(len(call.Arguments))}
	if v, err := r.value(); err == nil && v.kind == kindObject {
		w.args = v
	}
	return w
}

// object returns the call as an object under these names of its members.
func (w written) object(name, arguments string) value {
	v := emptyObject()
	v.set(name, stringValue(w.name))
	v.set(arguments, w.args)
	return v
}

// writeCalls writes the calls of one message.
func writeCalls(format Format, calls []written) string {
	if text, ok := writeList(format, calls); ok {
		return text
	}
	var b strings.Builder
	open, shut := around(format)
	b.WriteString(open)
	for i, w := range calls {
		if i > 0 {
			b.WriteString(between(format))
		}
		b.WriteString(writeCall(format, w, i))
	}
	b.WriteString(shut)
	return b.String()
}

// writeList writes the forms in which all calls are one JSON value.
func writeList(format Format, calls []written) (string, bool) {
	name, arguments, before, after := "name", "arguments", "", ""
	switch format {
	case MistralV1:
		before = "[TOOL_CALLS] "
	case CommandR:
		name, arguments, before, after = "tool_name", "parameters", "<|START_ACTION|>", "<|END_ACTION|>"
	case FireFunction:
		before = " functools"
	case Granite:
		before = "<|tool_call|>"
	case Jamba:
		before, after = "<tool_calls>", "</tool_calls>"
	case XLAM:
	case Generic, OpenAIEnvelope:
		before, after = `{"tool_calls":`, "}"
	default:
		return "", false
	}
	list := value{kind: kindArray}
	for i, w := range calls {
		v := w.object(name, arguments)
		switch format {
		case OpenAIEnvelope:
			v = envelopeOf(w)
		case MistralV1:
			v.set("id", stringValue(w.id))
		case CommandR:
			v.set("tool_call_id", stringValue(fmt.Sprint(i)))
		}
		list.items = append(list.items, v)
	}
	return before + string(list.raw()) + after, true
}

func envelopeOf(w written) value {
	f := emptyObject()
	f.set("name", stringValue(w.name))
	f.set("arguments", stringValue(string(w.args.raw())))
	v := emptyObject()
	v.set("type", stringValue("function"))
	v.set("function", f)
	return v
}

// around returns what stands around all calls of a message.
func around(format Format) (open, shut string) {
	switch format {
	case Pythonic:
		return "[", "]"
	case LFM2:
		return "<|tool_call_start|>[", "]<|tool_call_end|>"
	case Olmo3:
		return "<function_calls>\n", "\n</function_calls>"
	case InvokeXML:
		return "<function_calls>\n", "\n</function_calls>"
	case DeepSeekV32:
		return "<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>"
	case MiniMax:
		return "<minimax:tool_call>\n", "\n</minimax:tool_call>"
	case DeepSeekV3, DeepSeekV31:
		return "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
	case KimiK2:
		return "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
	case QwenCoderJSON:
		return "```json\n", "\n```"
	case Llama3Builtin:
		return "<|python_tag|>", ""
	}
	return "", ""
}

// between returns what stands between two calls.
func between(format Format) string {
	switch format {
	case Pythonic, LFM2:
		return ", "
	case Llama3JSON:
		return "; "
	case MistralV2, MistralV3, DeepSeekV31, KimiK2, FunctionGemma:
		return ""
	}
	return "\n"
}

// writeCall writes one call of the forms that are no lists.
func writeCall(format Format, w written, i int) string {
	args := string(w.args.raw())
	switch format {
	case QwenCoderJSON:
		return string(w.object("name", "arguments").raw())
	case Qwen3XML:
		return "<tool_call>\n<function=" + w.name + ">\n" + pairs(w.args, "<parameter=%s>\n%s\n</parameter>\n") + "</function>\n</tool_call>"
	case Llama3JSON:
		return string(w.object("name", "parameters").raw())
	case FunctionTag:
		return "<function=" + w.name + ">" + args + "</function>"
	case Functionary32:
		return ">>>" + w.name + "\n" + args
	case Pythonic, LFM2, Olmo3:
		return w.name + "(" + pythonArguments(w.args) + ")"
	case Llama3Builtin:
		return w.name + ".call(" + pythonArguments(w.args) + ")"
	case MistralV2:
		return "[TOOL_CALLS]" + w.name + "[ARGS]" + args
	case MistralV3:
		return "[TOOL_CALLS]" + w.name + "[CALL_ID]" + w.id + "[ARGS]" + args
	case DeepSeekV3:
		return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + w.name + "\n```json\n" + args + "\n```<｜tool▁call▁end｜>"
	case DeepSeekV31:
		return "<｜tool▁call▁begin｜>" + w.name + "<｜tool▁sep｜>" + args + "<｜tool▁call▁end｜>"
	case DeepSeekV32:
		return dsmlCall(w)
	case InvokeXML, MiniMax:
		return `<invoke name="` + w.name + "\">\n" + pairs(w.args, "<parameter name=\"%s\">%s</parameter>\n") + "</invoke>"
	case KimiK2:
		return fmt.Sprintf("<|tool_call_begin|>functions.%s:%d<|tool_call_argument_begin|>%s<|tool_call_end|>", w.name, i, args)
	case GLM45:
		return "<tool_call>" + w.name + "\n" + pairs(w.args, "<arg_key>%s</arg_key>\n<arg_value>%s</arg_value>\n") + "</tool_call>"
	case Harmony:
		return "<|channel|>commentary to=functions." + w.name + " <|constrain|>json<|message|>" + args + "<|call|>"
	case FunctionGemma:
		return "<start_function_call>call:" + w.name + gemmaText(w.args) + "<end_function_call>"
	case GigaChat:
		return "function call<|role_sep|>\n" + string(w.object("name", "arguments").raw())
	case ToolArgs:
		return string(w.object("tool", "args").raw())
	case ReAct:
		return "Action: " + w.name + "\nAction Input: " + args
	}
	return "<tool_call>\n" + string(w.object("name", "arguments").raw()) + "\n</tool_call>"
}

// pairs writes each argument in a layout of its name and its value; strings stand for themselves.
func pairs(args value, layout string) string {
	var b strings.Builder
	for i, key := range args.keys {
		text := args.items[i].text
		if args.items[i].kind != kindString {
			text = string(args.items[i].raw())
		}
		fmt.Fprintf(&b, layout, key, text)
	}
	return b.String()
}

func dsmlCall(w written) string {
	var b strings.Builder
	b.WriteString(`<｜DSML｜invoke name="` + w.name + "\">\n")
	for i, key := range w.args.keys {
		text, isString := w.args.items[i].text, w.args.items[i].kind == kindString
		if !isString {
			text = string(w.args.items[i].raw())
		}
		fmt.Fprintf(&b, "<｜DSML｜parameter name=%q string=\"%t\">%s</｜DSML｜parameter>\n", key, isString, text)
	}
	b.WriteString("</｜DSML｜invoke>")
	return b.String()
}

func pythonArguments(args value) string {
	var all []string
	for i, key := range args.keys {
		all = append(all, key+"="+pythonText(args.items[i]))
	}
	return strings.Join(all, ", ")
}

// pythonText writes a value as a Python literal.
func pythonText(v value) string {
	var all []string
	switch v.kind {
	case kindNull:
		return "None"
	case kindBool:
		return strings.ToUpper(v.text[:1]) + v.text[1:]
	case kindArray:
		for _, item := range v.items {
			all = append(all, pythonText(item))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case kindObject:
		for i, item := range v.items {
			all = append(all, string(appendString(nil, v.keys[i]))+": "+pythonText(item))
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	return string(v.raw())
}

// gemmaText writes a value as FunctionGemma does.
func gemmaText(v value) string {
	var all []string
	switch v.kind {
	case kindString:
		return gemmaQuote + v.text + gemmaQuote
	case kindArray:
		for _, item := range v.items {
			all = append(all, gemmaText(item))
		}
		return "[" + strings.Join(all, ",") + "]"
	case kindObject:
		for i, item := range v.items {
			all = append(all, v.keys[i]+":"+gemmaText(item))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	return string(v.raw())
}
