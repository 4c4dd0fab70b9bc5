package textcall

import "strings"

// The names under which models write the arguments of a call, best first.
var argumentKeys = []string{"arguments", "parameters", "args", "input", "params", "tool_input", "action_input"}

// shape is what a JSON value says when it is read as calls.
type shape struct {
	wishes []wish
	format Format
	// answer is the text of a value that only wraps an answer.
	answer  string
	answers bool
}

// shapeOf reads a JSON value as calls. with is the form to report where the value's own shape does not name one. strict
// demands arguments beside the name: without a mark around it, {"name":"Ada"} is no call. bare allows {"TOOL":{…}} for
// an offered tool.
func (p *parser) shapeOf(v value, with Format, strict, bare bool) (shape, bool) {
	s := shape{format: with}
	if v.kind == kindArray {
		for _, item := range v.items {
			one, ok := p.shapeOf(item, with, strict, false)
			if !ok || one.answers {
				return shape{}, false
			}
			s.format = one.format
			s.wishes = append(s.wishes, one.wishes...)
		}
		return s, len(s.wishes) > 0
	}
	for _, read := range []func(value, Format, bool) (shape, bool){p.envelope, p.named, p.toolArgs} {
		if s, ok := read(v, with, strict); ok {
			return s, true
		}
	}
	if bare && len(v.keys) == 1 && p.offer.exact[v.keys[0]] != nil && v.items[0].kind == kindObject {
		s.format = ToolArgs
		s.wishes = []wish{{name: v.keys[0], args: v.items[0], given: true}}
		return s, true
	}
	return shape{}, false
}

// envelope reads the members that only wrap calls.
func (p *parser) envelope(v value, _ Format, strict bool) (shape, bool) {
	if f, ok := v.member("function_call", "function"); ok && f.kind == kindObject {
		s, ok := p.named(f, OpenAIEnvelope, strict)
		s.format = OpenAIEnvelope
		return s, ok
	}
	if call, ok := v.member("tool_call"); ok && v.only("tool_call") {
		s, ok := p.named(call, Generic, strict)
		s.format = Generic
		return s, ok
	}
	if calls, ok := v.member("tool_calls"); ok && calls.kind == kindArray {
		return p.shapeOf(calls, Generic, strict, false)
	}
	if text, ok := v.member("response"); ok && v.only("response") && text.kind == kindString {
		return shape{format: Generic, answer: text.text, answers: true}, true
	}
	return shape{}, false
}

// named reads {"name": …, "arguments": …}.
func (p *parser) named(v value, with Format, strict bool) (shape, bool) {
	name := v.word("name")
	args, given := v.member(argumentKeys[:5]...)
	if name == "" || strict && !given || declares(v, args) {
		return shape{}, false
	}
	if with == bareJSON {
		with = QwenCoderJSON
		if _, ok := v.member("parameters"); ok {
			with = Llama3JSON
		}
	}
	return shape{format: with, wishes: []wish{wishOf(name, v.word("id", "tool_call_id"), args, given)}}, true
}

// toolArgs reads the other pairs of names for a tool and its arguments.
func (p *parser) toolArgs(v value, with Format, strict bool) (shape, bool) {
	name := v.word("tool", "tool_name", "action", "function")
	args, given := v.member(argumentKeys...)
	if name == "" || !given {
		return shape{}, false
	}
	if text := strings.ReplaceAll(fold(name), " ", ""); text == "finalanswer" && p.offer.find(name) == nil && args.kind == kindString {
		return shape{format: ToolArgs, answer: args.text, answers: true}, true
	}
	if with != CommandR {
		with = ToolArgs
	}
	return shape{format: with, wishes: []wish{wishOf(name, "", args, true)}}, true
}

func wishOf(name, id string, args value, given bool) wish {
	return wish{name: name, id: id, args: args, given: given, source: string(args.raw())}
}

// declares reports whether a value describes a tool instead of calling it: some models repeat what they were offered.
func declares(v, args value) bool {
	_, described := v.member("description")
	_, properties := args.member("properties")
	return described && properties
}
