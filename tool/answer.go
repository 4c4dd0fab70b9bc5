package tool

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a JSON Schema (draft 2020-12) of any type that answers are held against.
type Schema struct{ compiled *lazySchema }

// NewSchema compiles a schema. References that lead out of it are errors, and so is one that leads
// back to itself for the same value.
func NewSchema(raw json.RawMessage) (*Schema, error) {
	doc, err := decodeExact(raw)
	if err != nil {
		return nil, errors.New("the schema is not valid JSON")
	}
	node, isObject := doc.(map[string]any)
	if !isObject {
		return nil, errors.New("the schema is not a JSON object")
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("the schema is broken: %w", err)
	}
	compiled := &lazySchema{raw: raw, node: node, name: "answer"}
	if err := compiled.resolveSchema(&schema); err != nil {
		return nil, fmt.Errorf("the schema is broken: %w", err)
	}
	return &Schema{compiled}, nil
}

// Explain returns every fault of a JSON text by place and kind, without its values; nil if the text fits. Nothing is
// coerced.
func (s *Schema) Explain(text json.RawMessage) error {
	value, err := decodeExact(text)
	if err != nil || checkDuplicates(text) != nil {
		return errors.New("answer: is not one valid JSON value")
	}
	if fits, err := s.compiled.accepts(text); fits || err != nil {
		return err
	}
	return s.compiled.explain(value)
}
