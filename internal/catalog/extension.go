package catalog

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/problem"
)

// extensionKeys are the reserved x- keys in canonical order.
func extensionKeys() []string {
	return []string{"x-loop", "x-subagents", "x-output", "x-budget"}
}

// extension checks the shape of a reserved key and keeps its value.
func (r reader) extension(key string, v value) {
	pointer := "/" + key
	switch key {
	case "x-loop":
		r.shape(v, pointer, loopShape)
	case "x-subagents":
		r.subagents(v, pointer)
	case "x-output":
		r.shape(v, pointer, outputShape)
	case "x-budget":
		r.shape(v, pointer, budgetShape)
	}
	r.numbers(v, pointer)
	r.pkg.Extensions = append(r.pkg.Extensions, Extension{Key: key, value: v})
}

// member is what a mapping may hold under one key.
type member struct {
	key      string
	required bool
	// check returns what is wrong with the value, "" if nothing is.
	check func(v value) string
}

func loopShape() []member {
	return []member{
		{key: "kind", required: true, check: oneOf("transcript", "working-memory")},
		{key: "writer", check: isKind(kindMapping)},
	}
}

func outputShape() []member {
	return []member{
		{key: "schema", required: true, check: isKind(kindMapping)},
		{key: "name", check: isKind(kindText)},
		{key: "maxRepairs", check: wholeNumber(0)},
	}
}

func budgetShape() []member {
	return []member{
		{key: "maxSteps", check: wholeNumber(1)},
		{key: "maxCostUsd", check: amount},
		{key: "maxWallMs", check: wholeNumber(1)},
	}
}

func subagentShape() []member {
	return []member{
		{key: "name", required: true, check: nameText},
		{key: "agent", check: nameText},
		{key: "description", required: true, check: isKind(kindText)},
		{key: "budget", check: isKind(kindMapping)},
	}
}

// subagents checks a roster: a list of entries with names of their own.
func (r reader) subagents(v value, pointer string) {
	if v.kind != kindList {
		r.add(CodeExtensionInvalid, pointer, v.mark, "write one entry per subagent, each after -", "must be a list, not "+v.kind.String())
		return
	}
	var names []string
	for i, item := range v.items {
		at := pointer + "/" + strconv.Itoa(i)
		r.shape(item, at, subagentShape)
		if budget := item.get("budget"); budget != nil {
			r.shape(*budget, at+"/budget", budgetShape)
		}
		if name := item.get("name"); name != nil {
			if slices.Contains(names, name.text) {
				r.add(CodeExtensionInvalid, at+"/name", name.mark, "", "subagent "+strconv.Quote(name.text)+" is listed twice")
			}
			names = append(names, name.text)
		}
	}
}

// shape checks that v is a mapping with these members and no others.
func (r reader) shape(v value, pointer string, shape func() []member) {
	if v.kind != kindMapping {
		r.add(CodeExtensionInvalid, pointer, v.mark, "", "must be a mapping, not "+v.kind.String())
		return
	}
	var known []string
	for _, m := range shape() {
		known = append(known, m.key)
		switch item := v.get(m.key); {
		case item == nil && m.required:
			r.add(CodeExtensionInvalid, pointer+"/"+m.key, v.mark, "", "the key "+m.key+" is missing")
		case item != nil:
			if wrong := m.check(*item); wrong != "" {
				r.add(CodeExtensionInvalid, pointer+"/"+m.key, item.mark, "", wrong)
			}
		}
	}
	for _, key := range v.keys {
		if !slices.Contains(known, key.text) {
			hint := "known keys: " + strings.Join(known, ", ")
			if near := problem.Closest(key.text, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			r.add(CodeKeyUnknown, pointer+"/"+escapePointer(key.text), key.mark, hint, "unknown key "+strconv.Quote(key.text))
		}
	}
}

// numbers reports numbers that not every reader would read alike.
func (r reader) numbers(v value, pointer string) {
	if v.kind == kindNumber && !isJSONNumber(v.text) {
		r.add(CodeExtensionInvalid, pointer, v.mark, "write the number in decimal, or in quotes if it is text",
			"the number "+v.text+" is not written as in JSON")
	}
	for i, item := range v.items {
		token := strconv.Itoa(i)
		if v.kind == kindMapping {
			token = escapePointer(v.keys[i].text)
		}
		r.numbers(item, pointer+"/"+token)
	}
}

func isKind(want kind) func(value) string {
	return func(v value) string {
		if v.kind != want {
			return "must be " + want.String() + ", not " + v.kind.String()
		}
		return ""
	}
}

func oneOf(words ...string) func(value) string {
	return func(v value) string {
		if v.kind != kindText || !slices.Contains(words, v.text) {
			return "must be one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

func wholeNumber(least int64) func(value) string {
	return func(v value) string {
		n, err := strconv.ParseInt(v.text, 10, 64)
		if v.kind != kindNumber || err != nil || n < least {
			return "must be a whole number from " + strconv.FormatInt(least, 10)
		}
		return ""
	}
}

func amount(v value) string {
	var n float64
	if v.kind != kindNumber || json.Unmarshal([]byte(v.text), &n) != nil || n < 0 {
		return "must be a number from 0"
	}
	return ""
}

func nameText(v value) string {
	if v.kind != kindText || !validName(v.text) {
		return "must be a name: " + nameRule
	}
	return ""
}
