package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// node is a JSON Schema (draft 2020-12) with the keywords that the contract needs, in the order in which they are
// written.
type node struct {
	Schema      string `json:"$schema,omitempty"`
	ID          string `json:"$id,omitempty"`
	Comment     string `json:"$comment,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Ref         string `json:"$ref,omitempty"`

	// Type is a string or, where null is allowed too, a list of strings.
	Type  any      `json:"type,omitempty"`
	Const any      `json:"const,omitempty"`
	Enum  []string `json:"enum,omitempty"`

	MinLength        int         `json:"minLength,omitempty"`
	MaxLength        int         `json:"maxLength,omitempty"`
	Pattern          string      `json:"pattern,omitempty"`
	Format           string      `json:"format,omitempty"`
	ContentEncoding  string      `json:"contentEncoding,omitempty"`
	Minimum          json.Number `json:"minimum,omitempty"`
	ExclusiveMinimum json.Number `json:"exclusiveMinimum,omitempty"`
	Maximum          json.Number `json:"maximum,omitempty"`
	ExclusiveMaximum json.Number `json:"exclusiveMaximum,omitempty"`

	Items       *node `json:"items,omitempty"`
	MinItems    int   `json:"minItems,omitempty"`
	MaxItems    *int  `json:"maxItems,omitempty"`
	UniqueItems bool  `json:"uniqueItems,omitempty"`

	Properties    *members `json:"properties,omitempty"`
	Required      []string `json:"required,omitempty"`
	PropertyNames *node    `json:"propertyNames,omitempty"`
	// AdditionalProperties is false or a *node.
	AdditionalProperties any `json:"additionalProperties,omitempty"`

	OneOf []*node  `json:"oneOf,omitempty"`
	AnyOf []*node  `json:"anyOf,omitempty"`
	Not   *node    `json:"not,omitempty"`
	Defs  *members `json:"$defs,omitempty"`
}

// members is a JSON object that keeps its order.
type members struct {
	names []string
	nodes map[string]*node
}

func (m *members) set(name string, n *node) {
	if m.nodes == nil {
		m.nodes = map[string]*node{}
	}
	if m.nodes[name] == nil {
		m.names = append(m.names, name)
	}
	m.nodes[name] = n
}

// MarshalJSON writes the members in the order in which they were set.
func (m *members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range m.names {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := marshal(m.nodes[name])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is json.Marshal without its escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func encode(n *node) ([]byte, error) {
	text, err := marshal(n)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
