package wire

import (
	"encoding/json"
	"slices"
)

// StrictSchema reports whether a schema keeps the rules of strict tools: every object closed, every property required,
// and only keywords that constrained decoding knows.
func StrictSchema(raw json.RawMessage) bool {
	var schema any
	if len(raw) == 0 || json.Unmarshal(raw, &schema) != nil {
		return false
	}
	root, ok := schema.(map[string]any)
	return ok && root["type"] == "object" && strictNode(root)
}

var strictKeywords = []string{"type", "properties", "required", "additionalProperties", "items", "enum", "const",
	"description", "title", "anyOf", "$ref", "$defs"}

func strictNode(node map[string]any) bool {
	for keyword := range node {
		if !slices.Contains(strictKeywords, keyword) {
			return false
		}
	}
	if node["type"] == "object" && !closedObject(node) {
		return false
	}
	return strictChildren(node["properties"]) && strictChildren(node["$defs"]) && strictValue(node["items"]) &&
		strictValue(node["anyOf"])
}

func closedObject(node map[string]any) bool {
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			return false
		}
	}
	return node["additionalProperties"] == false
}

func strictChildren(value any) bool {
	if value == nil {
		return true
	}
	children, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for _, child := range children {
		if child == nil || !strictValue(child) {
			return false
		}
	}
	return true
}

func strictValue(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return strictNode(v)
	case []any:
		return !slices.ContainsFunc(v, func(child any) bool { return !strictValue(child) })
	}
	return false
}
