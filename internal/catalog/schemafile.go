package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/hozo-run/hozo/problem"
)

// parseSchema reads a file of schemas/. What its keywords mean is checked by those who hold answers against it.
func parseSchema(name, path string, data []byte, list *problem.List) Schema {
	f := findings{path, list}
	if !validName(name) {
		f.add(CodeSchemaInvalid, "", mark{}, nameRule, "invalid name of a schema: "+strconv.Quote(name))
	}
	if len(data) > MaxSchema {
		f.add(CodeFileTooLarge, "", mark{}, "", fmt.Sprintf("the schema has %d bytes; at most %d are allowed", len(data), MaxSchema))
		return Schema{Name: name}
	}
	if at, what := badText(data); at >= 0 {
		f.add(CodeTextInvalid, "", markAt(data, at), "a package file is UTF-8 text", what)
		return Schema{Name: name}
	}
	var schema any
	err := json.Unmarshal(data, &schema)
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch _, isObject := schema.(map[string]any); {
	case isSyntax:
		f.add(CodeSchemaInvalid, "", markAt(data, max(int(syntax.Offset)-1, 0)), "write one JSON object", "the file is no JSON: "+syntax.Error())
	case err != nil:
		f.add(CodeSchemaInvalid, "", mark{1, 1}, "write one JSON object", "the file is no JSON: "+err.Error())
	case !isObject:
		f.add(CodeSchemaInvalid, "", mark{1, 1}, "write one JSON object", "the file is no JSON Schema, which is an object")
	}
	return Schema{Name: name, Content: string(data)}
}

// markAt is the place of a byte of a file.
func markAt(data []byte, at int) mark {
	at = min(at, len(data))
	return mark{1 + bytes.Count(data[:at], []byte("\n")), at - bytes.LastIndexByte(data[:at], '\n')}
}

// checkSchemas puts the schema of a file into x-output and reports files that it does not name.
func (p *Package) checkSchemas(list *problem.List) {
	named := ""
	for _, x := range p.Extensions {
		if schema := x.value.get("schema"); x.Key == keyOutput && schema != nil {
			named, _ = filePath(schema.text, folderSchemas, ".json")
			if named == "" {
				break
			}
			at := slices.IndexFunc(p.Schemas, func(s Schema) bool { return s.Name == named })
			switch {
			case at < 0:
				findings{p.path, list}.add(CodeSchemaUnknown, "/"+keyOutput+"/schema", schema.mark, p.schemaHint(named), "there is no file "+schema.text)
				p.output = nil
			case p.output != nil && p.Schemas[at].sound():
				p.output.Schema = json.RawMessage(p.Schemas[at].Content)
			default:
				p.output = nil // the file has a finding of its own
			}
		}
	}
	for _, s := range p.Schemas {
		if s.Name != named && p.body != (mark{}) {
			findings{schemaPath(s.Name), list}.add(CodeFileUnexpected, "", mark{}, "name it under x-output: schema: "+schemaPath(s.Name)+", or remove it",
				"x-output does not name the file")
		}
	}
}

// sound reports whether the file holds an object.
func (s *Schema) sound() bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(s.Content), &object) == nil && object != nil
}

func schemaPath(name string) string { return folderSchemas + "/" + name + ".json" }

func (p *Package) schemaHint(name string) string {
	var known []string
	for _, s := range p.Schemas {
		known = append(known, s.Name)
	}
	return nearHint(name, known)
}
