package scripttool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The bounds of one type. A schema that exceeds them is written without its comments, and if that is too much as well,
// as any object.
const (
	maxType         = 4000
	maxNodes        = 400
	maxTypeDepth    = 10
	maxReferences   = 32
	maxAlternatives = 32
	maxNote         = 300
)

// argumentsType returns the type of a tool's arguments.
func argumentsType(schema json.RawMessage, comments bool) string {
	var root any
	decoder := json.NewDecoder(strings.NewReader(string(schema)))
	decoder.UseNumber()
	if decoder.Decode(&root) != nil {
		return anyObject
	}
	for _, commented := range []bool{comments, false} {
		w := &typeWriter{root: root, comments: commented}
		if text := w.of(root, "  ", 0); len(text) <= maxType && w.nodes <= maxNodes {
			return text
		}
	}
	return anyObject
}

const anyObject = "Record<string, any>"

// requiresArguments reports whether a call without arguments is refused by the schema.
func requiresArguments(schema json.RawMessage) bool {
	var s struct {
		Required []any `json:"required"`
	}
	return json.Unmarshal(schema, &s) != nil || len(s.Required) > 0
}

// typeWriter writes a JSON Schema as a type. What has no counterpart is left out, so a type permits more than its schema.
type typeWriter struct {
	root     any
	comments bool
	// open are the references that are being written; one of them inside of itself has no end.
	open []string
	// references and nodes count what was followed and written. Beyond the bounds nothing more is.
	references, nodes int
}

// of returns the type of a schema. indent is that of the line on which it stands.
func (w *typeWriter) of(schema any, indent string, depth int) string {
	w.nodes++
	node, ok := schema.(map[string]any)
	switch {
	case schema == false:
		return "never"
	case !ok, depth > maxTypeDepth, w.nodes > maxNodes:
		return "unknown"
	}
	if ref, ok := node["$ref"].(string); ok {
		return w.reference(ref, indent, depth)
	}
	if value, ok := node["const"]; ok {
		return literal(value)
	}
	if values, ok := node["enum"].([]any); ok && len(values) > 0 && len(values) <= maxAlternatives {
		return join(values, " | ", func(v any) string { return literal(v) })
	}
	for _, c := range []struct{ keyword, operator string }{{"anyOf", " | "}, {"oneOf", " | "}, {"allOf", " & "}} {
		if branches, ok := node[c.keyword].([]any); ok && node["properties"] == nil {
			return w.several(branches, c.operator, indent, depth)
		}
	}
	return w.typed(node, indent, depth)
}

// several joins the types of branches.
func (w *typeWriter) several(branches []any, operator, indent string, depth int) string {
	if len(branches) == 0 || len(branches) > maxAlternatives {
		return "unknown"
	}
	return join(branches, operator, func(b any) string {
		text := w.of(b, indent, depth+1)
		if operator == " & " && strings.Contains(text, " | ") {
			text = "(" + text + ")"
		}
		return text
	})
}

// join joins the different ones of some types.
func join(parts []any, operator string, of func(any) string) string {
	var texts []string
	for _, p := range parts {
		if text := of(p); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, operator)
}

// reference follows a reference inside of the schema.
func (w *typeWriter) reference(ref, indent string, depth int) string {
	w.references++
	target, ok := w.find(ref)
	if !ok || slices.Contains(w.open, ref) || w.references > maxReferences {
		return "unknown"
	}
	w.open = append(w.open, ref)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	return w.of(target, indent, depth+1)
}

// find looks a local reference up.
func (w *typeWriter) find(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	at := w.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		node, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = node[strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")]; !ok {
			return nil, false
		}
	}
	return at, true
}

// typed writes a schema by its keyword type, or by what its other keywords imply.
func (w *typeWriter) typed(node map[string]any, indent string, depth int) string {
	switch t := node["type"].(type) {
	case string:
		return w.named(t, node, indent, depth)
	case []any:
		return join(t, " | ", func(name any) string {
			s, _ := name.(string)
			return w.named(s, node, indent, depth)
		})
	}
	switch {
	case node["properties"] != nil:
		return w.object(node, indent, depth)
	case node["items"] != nil:
		return w.named("array", node, indent, depth)
	}
	return "unknown"
}

func (w *typeWriter) named(name string, node map[string]any, indent string, depth int) string {
	switch name {
	case "string", "number", "boolean", "null":
		return name
	case "integer":
		return "number"
	case "array":
		return "Array<" + w.of(orAny(node["items"]), indent, depth+1) + ">"
	case "object":
		return w.object(node, indent, depth)
	}
	return "unknown"
}

// orAny returns the schema that permits everything for none.
func orAny(schema any) any {
	if schema == nil {
		return true
	}
	return schema
}

// object writes the properties: the required ones in their order, then the others by name.
func (w *typeWriter) object(node map[string]any, indent string, depth int) string {
	properties, _ := node["properties"].(map[string]any)
	if len(properties) == 0 {
		if more, ok := node["additionalProperties"].(map[string]any); ok {
			return "Record<string, " + w.of(more, indent, depth+1) + ">"
		}
		if node["additionalProperties"] == false {
			return "{}"
		}
		return anyObject
	}
	var names []string
	required, _ := node["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok && properties[name] != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	needed := len(names)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(names[:needed], name) {
			names = append(names, name)
		}
	}
	return w.members(properties, names, needed, indent, depth)
}

// members writes an object with one property a line, or all on one line if there is nothing to say about them.
func (w *typeWriter) members(properties map[string]any, names []string, needed int, indent string, depth int) string {
	inner := indent + "  "
	var lines []string
	noted := false
	for i, name := range names {
		optional := ""
		if i >= needed {
			optional = "?"
		}
		member := fmt.Sprintf("%s%s: %s;", key(name), optional, w.of(properties[name], inner, depth+1))
		if note := w.note(properties[name]); note != "" {
			noted = true
			member += " // " + note
		}
		lines = append(lines, member)
	}
	if one := strings.Join(lines, " "); !noted && len(one) < 100 && !strings.Contains(one, "\n") {
		return "{ " + strings.TrimSuffix(one, ";") + " }"
	}
	return "{\n" + inner + strings.Join(lines, "\n"+inner) + "\n" + indent + "}"
}

// note is what a type cannot say about a property.
func (w *typeWriter) note(schema any) string {
	node, ok := schema.(map[string]any)
	if !w.comments || !ok {
		return ""
	}
	text, _ := node["description"].(string)
	if ref, isRef := node["$ref"].(string); isRef && text == "" {
		if target, found := w.find(ref); found {
			if named, ok := target.(map[string]any); ok {
				text, _ = named["description"].(string)
			}
		}
	}
	var notes []string
	if node["type"] == "integer" {
		notes = append(notes, "integer")
	}
	for _, keyword := range []string{"default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "format", "pattern"} {
		if value, ok := node[keyword]; ok && value != nil {
			notes = append(notes, keyword+" "+cut(literal(value), 100))
		}
	}
	text = strings.Join(strings.Fields(cut(clean(text), maxNote)), " ")
	if len(notes) == 0 {
		return text
	}
	if text == "" {
		return strings.Join(notes, ", ")
	}
	return text + " (" + strings.Join(notes, ", ") + ")"
}
