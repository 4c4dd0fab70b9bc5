package google

import (
	"bytes"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// appendSchema appends the input schema of a tool as the API takes it: it knows no "const", so a constant text or number
// becomes an enum of one. Everything else is sent as it stands.
func appendSchema(b []byte, t llm.ToolSpec) []byte {
	if !bytes.Contains(t.InputSchema, []byte(`"const"`)) {
		return wire.AppendSchema(b, t)
	}
	return rewrite(b, t.InputSchema)
}

// holds is what the value of a keyword holds that may have constants in it.
type holds uint8

const (
	holdsNone holds = iota
	// holdsSchema: a schema, or a list of schemas.
	holdsSchema
	// holdsNamed: an object whose values are schemas.
	holdsNamed
)

func holding(keyword string) holds {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return holdsNamed
	case "items", "prefixItems", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains",
		"propertyNames", "not", "if", "then", "else", "allOf", "anyOf", "oneOf":
		return holdsSchema
	}
	return holdsNone
}

// rewrite appends a schema, or a list of schemas, without constants. What is neither is appended as it is. The text has
// been found valid.
func rewrite(b, schema []byte) []byte {
	var l wire.Lexer
	l.Reset(schema)
	switch l.Kind() {
	case '[':
		b = append(b, '[')
		comma := false
		for l.Array(); l.Elem(); comma = true {
			if comma {
				b = append(b, ',')
			}
			b = rewrite(b, l.Raw())
		}
		return append(b, ']')
	case '{':
		return rewriteObject(b, &l, hasConstant(schema))
	}
	return append(b, schema...)
}

// hasConstant reports whether a schema itself, not one inside it, has a constant text or number.
func hasConstant(schema []byte) bool {
	var l wire.Lexer
	l.Reset(schema)
	found := false
	for key := range l.Members() {
		if string(key) == "const" && (l.Kind() == '"' || l.Kind() == '0') {
			found = true
		}
		l.Skip()
	}
	return found
}

// rewriteObject appends the schema that l stands before. With a constant its own enum says nothing more and is left out.
func rewriteObject(b []byte, l *wire.Lexer, constant bool) []byte {
	b = append(b, '{')
	comma := false
	for key := range l.Members() {
		value := l.Raw()
		name := string(key)
		if constant && name == "enum" {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		if constant && name == "const" {
			b = append(b, `"enum":[`...)
			b = append(b, value...)
			b = append(b, ']')
			continue
		}
		b = append(b, '"')
		b = append(b, key...)
		b = append(b, `":`...)
		switch holding(name) {
		case holdsSchema:
			b = rewrite(b, value)
		case holdsNamed:
			b = rewriteNamed(b, value)
		default:
			b = append(b, value...)
		}
	}
	return append(b, '}')
}

// rewriteNamed appends an object whose values are schemas.
func rewriteNamed(b, object []byte) []byte {
	var l wire.Lexer
	l.Reset(object)
	if l.Kind() != '{' {
		return append(b, object...)
	}
	b = append(b, '{')
	comma := false
	for key := range l.Members() {
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(b, '"')
		b = append(b, key...)
		b = append(b, `":`...)
		b = rewrite(b, l.Raw())
	}
	return append(b, '}')
}
