package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// maxInteger is the largest whole number that every JSON implementation keeps exactly.
const maxInteger = "9007199254740991"

// builder turns Go types into schemas; each struct becomes a definition that is referred to by name.
type builder struct {
	docs  *docs
	rules map[string]rule
	defs  members
	// open leaves objects open for fields of later versions, as a reader of events must; otherwise objects are closed and
	// only the rules say what is required.
	open bool
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	usdType  = reflect.TypeFor[llm.USD]()
	byteType = reflect.TypeFor[[]byte]()
)

// schemaOf returns the schema of a type.
func (b *builder) schemaOf(t reflect.Type) *node {
	switch t {
	case rawType:
		return &node{}
	case usdType:
		return money(`[0-9]+(\.[0-9]+)?`, "")
	case byteType:
		return &node{Type: "string", ContentEncoding: "base64", MinLength: 1}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.schemaOf(t.Elem())
	case reflect.Bool:
		return &node{Type: "boolean"}
	case reflect.Int64:
		return &node{Type: "integer", Minimum: "-" + maxInteger, Maximum: maxInteger}
	case reflect.Float64:
		return &node{Type: "number"}
	case reflect.String:
		return &node{Type: "string", Enum: b.docs.enums[t.Name()]}
	case reflect.Slice:
		return &node{Type: "array", Items: b.schemaOf(t.Elem())}
	case reflect.Map:
		return b.mapOf(t)
	case reflect.Interface:
		return &node{}
	case reflect.Struct:
		return b.reference(t)
	}
	panic(fmt.Sprintf("schemagen: no schema for %s", t))
}

func (b *builder) mapOf(t reflect.Type) *node {
	n := &node{Type: "object"}
	if key := b.schemaOf(t.Key()); len(key.Enum) > 0 {
		n.PropertyNames = &node{Enum: key.Enum}
	}
	if t.Elem() != rawType && t.Elem().Kind() != reflect.Interface {
		n.AdditionalProperties = b.schemaOf(t.Elem())
	}
	return n
}

// reference returns a reference to the definition of a struct, which it makes on first use.
func (b *builder) reference(t reflect.Type) *node {
	name := t.Name()
	if b.defs.nodes[name] == nil {
		b.defs.set(name, &node{}) // holds the place for types that contain themselves
		b.defs.set(name, b.object(t))
	}
	return &node{Ref: "#/$defs/" + name}
}

// object returns the schema of a struct with its rules applied.
func (b *builder) object(t reflect.Type) *node {
	n := &node{Description: b.docs.types[t.Name()], Type: "object", Properties: &members{}}
	if !b.open {
		n.AdditionalProperties = false
	}
	names := jsonNames(t)
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		property := b.schemaOf(field.Type)
		if b.open && options == "" {
			n.Required = append(n.Required, name)
			if field.Type.Kind() == reflect.Pointer {
				property.Type = []any{property.Type, "null"}
			}
		}
		if text := b.docs.fields[t.Name()+"."+field.Name]; text != "" {
			property.Description = inJSONWords(text, names)
		}
		n.Properties.set(name, property)
	}
	if r, ok := b.rules[t.Name()]; ok {
		r.apply(n)
	}
	return n
}

// jsonNames returns the names of a struct's fields in JSON by their names in Go.
func jsonNames(t reflect.Type) map[string]string {
	names := map[string]string{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names[t.Field(i).Name] = name
	}
	return names
}

var word = regexp.MustCompile(`[A-Z][A-Za-z]+`)

// inJSONWords writes the Go names of a struct's own fields as readers of the schema know them.
func inJSONWords(text string, names map[string]string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if name := names[w]; name != "" && (len(w) > 4 || strings.HasPrefix(text, w)) {
			return name
		}
		return w
	})
}

// variant returns the schema of a struct with only some of its fields, for one value of its discriminator.
func variant(n *node, discriminator, value string, fields, required []string) *node {
	v := &node{Type: "object", Properties: &members{}, AdditionalProperties: false}
	v.Properties.set(discriminator, &node{Const: value})
	v.Required = append([]string{discriminator}, required...)
	for _, name := range n.Properties.names {
		if slices.Contains(fields, name) {
			v.Properties.set(name, n.Properties.nodes[name])
		}
	}
	return v
}

// money returns the schema of an amount of dollars: a number, or a string for those whose JSON writer rounds numbers.
func money(digits string, above json.Number) *node {
	number := &node{Type: "number", ExclusiveMaximum: "1e10"}
	if above == "" {
		number.Minimum = "0"
	} else {
		number.ExclusiveMinimum = above
	}
	return &node{AnyOf: []*node{number, {Type: "string", Pattern: "^" + digits + "([eE][+-]?[0-9]+)?$"}}}
}
