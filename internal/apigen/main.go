// Command apigen writes the files that follow from the HTTP API: api/openapi.json, the OpenAPI 3.1 document as a server
// serves it, and api/types.gen.ts, its schemas and operations as types of TypeScript for the portal. Both are committed, so
// that a change of the API shows in its review, and a test of this package fails when they are not what the program would
// write. Run it with go generate ./internal/api.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hozo-run/hozo/internal/api"
)

func main() {
	dir := flag.String("out", "api", "the directory to write into")
	flag.Parse()
	if err := generate(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
}

// generate writes every file.
func generate(dir string) error {
	files, err := files()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files returns what is to be written, by name.
func files() (map[string][]byte, error) {
	document, err := api.OpenAPI()
	if err != nil {
		return nil, err
	}
	types, err := typeScript(document)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"openapi.json": document, "types.gen.ts": types}, nil
}
