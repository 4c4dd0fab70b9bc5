package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 64
	// maxBranches bounds how many subschemas may apply to one value; references that double at each level exceed it soon.
	maxBranches = 10_000
)

// schemaForm is an input schema on its way to a model and a validator that both take less than JSON Schema allows.
type schemaForm struct {
	root map[string]any
	// cleaned and moved say that hidden characters were removed, or patterns turned into words.
	cleaned, moved bool
	// misTyped is a type that JSON Schema does not have.
	misTyped bool
	costs    map[string]int
}

// fitSchema returns the schema to declare. It differs from what the server listed only where it must: the type object is
// filled in, hidden characters are removed from titles and descriptions, and a pattern in a syntax that we do not have is
// told in the description instead. The error says why a schema cannot be used.
func fitSchema(listed any) (raw json.RawMessage, f *schemaForm, err error) {
	root, ok := listed.(map[string]any)
	if !ok {
		return nil, nil, errors.New("its input schema is not an object")
	}
	if depth(root, 0) > maxSchemaDepth {
		return nil, nil, fmt.Errorf("its input schema is nested deeper than %d levels", maxSchemaDepth)
	}
	f = &schemaForm{costs: map[string]int{}}
	f.root = f.rewrite(root)
	if f.misTyped {
		return nil, nil, errors.New("its input schema names a type that JSON Schema does not have")
	}
	switch f.root["type"] {
	case nil:
		f.root["type"] = "object"
	case "object":
	default:
		return nil, nil, errors.New("its input schema is not of type object")
	}
	if f.root["properties"] == nil {
		f.root["properties"] = map[string]any{}
	}
	if err := f.checkTexts(f.root); err != nil {
		return nil, nil, err
	}
	if f.branches(f.root, nil) > maxBranches {
		return nil, nil, errors.New("its input schema refers to itself without end or more often than can be checked")
	}
	raw, err = json.Marshal(f.root)
	if err != nil {
		return nil, nil, fmt.Errorf("its input schema cannot be written: %w", err)
	}
	if len(raw) > maxSchemaBytes {
		return nil, nil, fmt.Errorf("its input schema has %d bytes, more than %d", len(raw), maxSchemaBytes)
	}
	return raw, f, nil
}

// depth stops counting once the limit is passed.
func depth(value any, above int) int {
	deepest := above
	if above > maxSchemaDepth {
		return above
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			deepest = max(deepest, depth(inner, above+1))
		}
	case []any:
		for _, inner := range v {
			deepest = max(deepest, depth(inner, above+1))
		}
	}
	return deepest
}

// rewrite copies a schema node and every schema below it. Values that are no schemas (enum, default, const) stay.
func (f *schemaForm) rewrite(node map[string]any) map[string]any {
	out := make(map[string]any, len(node))
	for key, value := range node {
		switch key {
		case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
			out[key] = f.rewriteMap(value)
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
			"unevaluatedProperties", "additionalItems", "allOf", "anyOf", "oneOf", "prefixItems":
			out[key] = f.rewriteAny(value)
		case "title", "description", "$comment":
			out[key] = f.cleanText(value)
		default:
			out[key] = value
		}
	}
	f.movePatterns(out)
	f.misTyped = f.misTyped || !validType(node["type"])
	return out
}

// validType reports whether the value of the keyword type is one that JSON Schema has.
func validType(value any) bool {
	if list, ok := value.([]any); ok {
		return len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { return v == nil || !validType(v) })
	}
	name, isText := value.(string)
	return value == nil || isText && slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean", "null"}, name)
}

func (f *schemaForm) rewriteAny(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return f.rewrite(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = f.rewriteAny(v[i])
		}
		return out
	}
	return value
}

func (f *schemaForm) rewriteMap(value any) any {
	named, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := make(map[string]any, len(named))
	for name, inner := range named {
		out[name] = f.rewriteAny(inner)
	}
	return out
}

func (f *schemaForm) cleanText(value any) any {
	text, ok := value.(string)
	if !ok {
		return value
	}
	text, changed := clean(text)
	f.cleaned = f.cleaned || changed
	return text
}

// movePatterns takes out what RE2 cannot express and says it in words, so that the rest of the schema still counts.
func (f *schemaForm) movePatterns(node map[string]any) {
	var notes []string
	if pattern, ok := node["pattern"].(string); ok && !compiles(pattern) {
		delete(node, "pattern")
		notes = append(notes, fmt.Sprintf("Must match the regular expression %q.", pattern))
	}
	if named, ok := node["patternProperties"].(map[string]any); ok {
		for _, pattern := range slices.Sorted(maps.Keys(named)) {
			if !compiles(pattern) {
				delete(named, pattern)
				notes = append(notes, fmt.Sprintf("There are rules for properties whose names match the regular expression %q.", pattern))
			}
		}
	}
	if len(notes) == 0 {
		return
	}
	f.moved = true
	description, _ := node["description"].(string)
	node["description"] = strings.TrimSpace(description + " " + strings.Join(notes, " "))
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// checkTexts refuses hidden characters in names and values, where they cannot be removed without changing what is meant.
func (f *schemaForm) checkTexts(value any) error {
	bad := errors.New("its input schema hides characters in names or values")
	switch v := value.(type) {
	case string:
		if strings.IndexFunc(v, steering) >= 0 {
			return bad
		}
	case []any:
		for _, inner := range v {
			if err := f.checkTexts(inner); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, inner := range v {
			if strings.IndexFunc(name, hidden) >= 0 {
				return bad
			}
			if err := f.checkTexts(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// branches counts the subschemas that apply to one and the same value, up to a little more than maxBranches.
func (f *schemaForm) branches(node any, stack []string) int {
	object, ok := node.(map[string]any)
	if !ok {
		return 1
	}
	total := 1
	add := func(inner any) { total = min(total+f.branches(inner, stack), maxBranches+1) }
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := object[key].([]any)
		for _, inner := range list {
			add(inner)
		}
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		if inner, ok := object[key]; ok {
			add(inner)
		}
	}
	if named, ok := object["dependentSchemas"].(map[string]any); ok {
		for _, inner := range named {
			add(inner)
		}
	}
	if ref, ok := object["$ref"].(string); ok {
		total = min(total+f.referred(ref, stack), maxBranches+1)
	}
	return total
}

// referred is branches of what a reference names. A reference that leads back to itself on the same value has no end.
func (f *schemaForm) referred(ref string, stack []string) int {
	if cost, known := f.costs[ref]; known {
		return cost
	}
	if slices.Contains(stack, ref) {
		return maxBranches + 1
	}
	cost := f.branches(f.lookUp(ref), append(slices.Clone(stack), ref))
	f.costs[ref] = cost
	return cost
}

// lookUp follows a local JSON Pointer; anything else is left to the compiler of the schema.
func (f *schemaForm) lookUp(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	var at any = f.root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		object, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = object[strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")]
	}
	return at
}
