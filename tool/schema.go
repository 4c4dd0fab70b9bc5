package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// maxArguments bounds the argument text of one call.
const maxArguments = 4 << 20

// lazySchema is an input schema that is compiled at its first use, so that start-up costs nothing for tools that are
// never called.
type lazySchema struct {
	raw  json.RawMessage
	once sync.Once
	// line is raw on one line, made by the first who asks.
	line     json.RawMessage
	lineOnce sync.Once
	// node is the schema as data, for coercion and explanation; check decides.
	node  map[string]any
	check *jsonschema.Resolved
	graph *schemaGraph
	err   error
	// name is what the whole value is called in explanations, "" for arguments.
	name string
}

// whole names the whole value.
func (s *lazySchema) whole() string {
	if s.name == "" {
		return "arguments"
	}
	return s.name
}

// PrepareArguments coerces the arguments of a call to the tool's input schema and validates them. It returns the
// arguments to run with: the same bytes where they fit as they are. The error text is for the model: it lists every
// fault by place and kind and quotes no value.
//
// Coercion is led by the schema and loses nothing: a number for a string and a numeric string for a number, "true" and
// "false" for a boolean, JSON text for an object or an array, one item for an array, and null for an optional property
// (left out). A value that fits as it is stays as it is.
func (t *Tool) PrepareArguments(arguments json.RawMessage) (json.RawMessage, error) {
	if len(arguments) > maxArguments {
		return nil, fmt.Errorf("the arguments are larger than %d bytes", maxArguments)
	}
	if err := checkDuplicates(arguments); err != nil {
		return nil, err
	}
	schema := t.compiled
	if schema.compile(); schema.err != nil {
		return nil, fmt.Errorf("the tool's own input schema is broken: %w", schema.err)
	}
	if fits, err := schema.accepts(arguments); fits || err != nil {
		return arguments, err
	}
	value, err := decodeExact(arguments)
	if err != nil {
		return nil, errors.New("the arguments are not valid JSON")
	}
	coerced := schema.coerce(schema.node, value, 0)
	encoded, err := json.Marshal(coerced)
	if err != nil {
		return nil, errors.New("the arguments are not valid JSON")
	}
	if fits, err := schema.accepts(encoded); fits || err != nil {
		return encoded, err
	}
	return nil, schema.explain(coerced)
}

// SchemaProblem compiles the input schema and returns what is wrong with it, nil if nothing is. Tests call it for every
// registered tool, since a broken schema would otherwise surface at the first call only.
func (t *Tool) SchemaProblem() error {
	t.compiled.compile()
	return t.compiled.err
}

// accepts reports whether the schema accepts a JSON text. The error says that this would cost too much to find out.
func (s *lazySchema) accepts(text json.RawMessage) (bool, error) {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return false, nil
	}
	if err := s.graph.check(value); err != nil {
		return false, err
	}
	return s.check.Validate(value) == nil, nil
}

// decodeExact decodes a JSON text and keeps numbers as they are written.
func decodeExact(text json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// checkDuplicates refuses a key that appears twice, and keys that differ by case only, which decoders would merge.
func checkDuplicates(arguments json.RawMessage) error {
	if jsontext.Value(arguments).IsValid() {
		return nil
	}
	_, err := jsontext.NewDecoder(bytes.NewReader(arguments)).ReadValue()
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(e.Err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("the arguments hold the key %q twice", e.JSONPointer.LastToken())
		}
		return fmt.Errorf("the arguments are not valid JSON at byte %d", e.ByteOffset)
	}
	return errors.New("the arguments are not valid JSON")
}

func (s *lazySchema) compile() {
	s.once.Do(func() {
		doc, err := decodeExact(s.raw)
		if err != nil {
			s.err = err
			return
		}
		node, isObject := doc.(map[string]any)
		if !isObject || node["type"] != "object" {
			s.err = errors.New("it is not of type object")
			return
		}
		var schema jsonschema.Schema
		if s.err = json.Unmarshal(s.raw, &schema); s.err != nil {
			return
		}
		s.node = node
		s.err = s.resolveSchema(&schema)
	})
}

// resolveSchema prepares the validator. References out of the schema are errors.
func (s *lazySchema) resolveSchema(schema *jsonschema.Schema) (err error) {
	if s.check, err = schema.Resolve(nil); err != nil {
		return err
	}
	s.graph, err = graphOf(schema)
	return err
}

// compact returns the schema without white space: it is sent with every request.
func (s *lazySchema) compact() json.RawMessage {
	s.lineOnce.Do(func() {
		var b bytes.Buffer
		if s.line = s.raw; json.Compact(&b, s.raw) == nil {
			s.line = b.Bytes()
		}
	})
	return s.line
}

// coerce returns value bent towards the schema node as far as that loses nothing. depth bounds recursive references.
func (s *lazySchema) coerce(node any, value any, depth int) any {
	object, ok := s.resolve(node).(map[string]any)
	if !ok || depth > 32 {
		return value
	}
	want := acceptedTypes(object)
	if len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return hasType(value, t) }) {
		value = convert(value, want)
	}
	switch v := value.(type) {
	case map[string]any:
		return s.coerceObject(object, v, depth)
	case []any:
		if items, ok := object["items"]; ok {
			out := make([]any, len(v))
			for i := range v {
				out[i] = s.coerce(items, v[i], depth+1)
			}
			return out
		}
	}
	return value
}

func (s *lazySchema) coerceObject(node, value map[string]any, depth int) any {
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	out := make(map[string]any, len(value))
	for key, v := range value {
		property, known := properties[key]
		if !known {
			out[key] = v
			continue
		}
		if v == nil && !slices.Contains(required, any(key)) && !takes(s.resolve(property), "null") {
			continue
		}
		out[key] = s.coerce(property, v, depth+1)
	}
	return out
}

// resolve follows references inside of the schema.
func (s *lazySchema) resolve(node any) any {
	for range 16 {
		object, ok := node.(map[string]any)
		if !ok {
			return node
		}
		ref, ok := object["$ref"].(string)
		if !ok || ref != "#" && !strings.HasPrefix(ref, "#/") {
			return node
		}
		if ref == "#" {
			node = s.node
			continue
		}
		var at any = s.node
		for name := range strings.SplitSeq(ref[2:], "/") {
			name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
			inner, ok := at.(map[string]any)
			if !ok {
				return node
			}
			at = inner[name]
		}
		node = at
	}
	return node
}

// acceptedTypes returns the types that the node names, by itself or in its alternatives; none means any.
func acceptedTypes(node map[string]any) []string {
	var types []string
	switch t := node["type"].(type) {
	case string:
		types = append(types, t)
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok {
				types = append(types, name)
			}
		}
	}
	if len(types) > 0 {
		return types
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, _ := node[keyword].([]any)
		for _, branch := range branches {
			object, ok := branch.(map[string]any)
			if !ok {
				return nil
			}
			inner := acceptedTypes(object)
			if len(inner) == 0 {
				return nil
			}
			types = append(types, inner...)
		}
	}
	return types
}

func takes(node any, name string) bool {
	object, ok := node.(map[string]any)
	if !ok {
		return true
	}
	types := acceptedTypes(object)
	return len(types) == 0 || slices.Contains(types, name)
}

func hasType(value any, name string) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case json.Number:
		return name == "number" || name == "integer" && isInteger(v)
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	}
	return false
}

// isInteger reports whether a JSON number has no fraction, also when it is written as 1.0 or 1e3.
func isInteger(n json.Number) bool {
	if _, err := n.Int64(); err == nil {
		return true
	}
	f, err := n.Float64()
	return err == nil && f == float64(int64(f))
}

// convert returns value as the first of the wanted types it can become without loss, or unchanged.
func convert(value any, want []string) any {
	for _, name := range want {
		if converted, ok := convertTo(value, name); ok {
			return converted
		}
	}
	return value
}

func convertTo(value any, name string) (any, bool) {
	switch v := value.(type) {
	case string:
		return convertString(v, name)
	case json.Number:
		if name == "string" {
			return v.String(), true
		}
	case bool:
		if name == "string" {
			return strconv.FormatBool(v), true
		}
	}
	if name == "array" && value != nil {
		return []any{value}, true
	}
	return nil, false
}

func convertString(text, name string) (any, bool) {
	switch name {
	case "number", "integer":
		trimmed := strings.TrimSpace(text)
		if !jsontext.Value(trimmed).IsValid() || jsontext.Value(trimmed).Kind() != '0' {
			return nil, false
		}
		number := json.Number(trimmed)
		return number, name == "number" || isInteger(number)
	case "boolean":
		switch text {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	case "object", "array":
		parsed, err := decodeExact(json.RawMessage(text))
		switch {
		case err == nil && hasType(parsed, name):
			return parsed, true
		case err == nil && name == "array" && hasType(parsed, "object"):
			return []any{parsed}, true
		case name == "array":
			return []any{text}, true
		}
	}
	return nil, false
}
