package api

import (
	"encoding/json"
	"io"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/hozo-run/hozo/llm"
)

//go:generate go run ../apigen -out ../../api

// OpenAPI returns the OpenAPI 3.1 document of the API, as it is served and committed: indented, with a line feed at the end.
func OpenAPI() ([]byte, error) {
	text, err := json.MarshalIndent(build(Config{}).api.OpenAPI(), "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// describe returns what is the same for every route. The paths of documentation pages stay empty: they load scripts from
// elsewhere.
func describe(version string) huma.Config {
	if version == "" {
		version = "1"
	}
	config := huma.DefaultConfig("hozo", "1")
	config.Info.Description = "The API of a hozo server."
	config.CreateHooks = nil // no $schema fields in bodies
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.RejectUnknownQueryParameters = true
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[llm.USD](), reflect.TypeFor[float64]()) // its JSON form
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key":     {Type: "http", Scheme: "bearer", Description: "An API key."},
		"session": {Type: "apiKey", In: "cookie", Name: cookieName(true), Description: "The session of a person. Changes also need X-CSRF-Token."},
	}
	strict := huma.Format{Marshal: writeJSON, Unmarshal: readJSON}
	config.Formats = map[string]huma.Format{"application/json": strict, "json": strict}
	return config
}

// writeJSON writes a body: lists that are empty are [] and never null.
func writeJSON(w io.Writer, v any) error {
	return jsonv2.MarshalWrite(w, v, jsonv2.Deterministic(true), jsonv1.OmitEmptyWithLegacySemantics(true))
}

// readJSON reads a body. A name that stands there twice is an error: two readers could take different ones.
func readJSON(data []byte, v any) error { return jsonv2.Unmarshal(data, v) }

// schemaName names the schema of a type. Those of packages whose names are general have the package in it.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	path := t.PkgPath()
	switch at := path[strings.LastIndexByte(path, '/')+1:]; {
	case t.Name() == "":
		return name
	case at == "job", at == "catalog", at == "mcptool", at == "access" && t.Name() == "Session", at == "builder" && t.Name() == "Binding":
		return strings.ToUpper(at[:1]) + at[1:] + name
	case at == "llm":
		return "LLM" + name
	case at == "problem":
		return "Finding"
	}
	return name
}
