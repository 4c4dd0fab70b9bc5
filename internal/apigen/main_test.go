package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesAreWhatTheAPISays(t *testing.T) {
	t.Parallel()
	files, err := files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", "api", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("api/%s is not what the API says (%v): run go generate ./internal/api and look at what has changed", name, err)
		}
	}
}

func TestTypesOfTypeScript(t *testing.T) {
	t.Parallel()
	got, err := typeScript([]byte(`{"paths": {"/things/{id}": {"get": {"operationId": "get-thing", "summary": "One thing",
		"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
		"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}}}},
		"components": {"schemas": {"Thing": {"type": "object", "required": ["kind"], "properties": {
			"kind": {"type": "string", "enum": ["a", "b"]}, "parts": {"type": "array", "items": {"type": "integer"}},
			"if-none": {"type": "object", "additionalProperties": {"type": "boolean"}}, "free": {}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"export interface Thing {\n  free?: unknown;\n  \"if-none\"?: Record<string, boolean>;\n  kind: \"a\" | \"b\";\n  parts?: Array<number>;\n}\n",
		"  \"get-thing\": {\n    method: \"GET\";\n    path: \"/things/{id}\";\n    pathParams: {\n      id: string;\n    };\n    answer: Thing;\n  };\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
}
