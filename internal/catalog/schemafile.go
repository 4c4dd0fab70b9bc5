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
	var schema map[string]json.RawMessage
	switch err := json.Unmarshal(data, &schema); {
	case err != nil:
		at := 0
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = max(int(syntax.Offset)-1, 0)
		}
		f.add(CodeSchemaInvalid, "", markAt(data, at), "write one JSON object", "the file is no JSON Schema: "+err.Error())
	case schema == nil:
		f.add(CodeSchemaInvalid, "", mark{1, 1}, "write one JSON object", "the file is no JSON Schema: it holds null")
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
			case p.output != nil && json.Valid([]byte(p.Schemas[at].Content)):
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

func schemaPath(name string) string { return folderSchemas + "/" + name + ".json" }

func (p *Package) schemaHint(name string) string {
	var known []string
	for _, s := range p.Schemas {
		known = append(known, s.Name)
	}
	return nearHint(name, known)
}
