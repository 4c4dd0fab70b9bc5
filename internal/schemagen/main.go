// Command schemagen writes the JSON Schemas of the job contract from the Go types that define it. The shape of every
// object comes from its struct tags, descriptions and enumerations from the doc comments and constants beside them; what
// Go types cannot say (required fields, ranges, patterns) stands in one table, rules.go. It is run by go generate in
// package schema; its test fails when the committed files differ from what it would write.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "directory of the module")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

// run writes every schema below root.
func run(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, "schema", name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the schemas by file name.
func generate(root string) (map[string][]byte, error) {
	docs, err := readDocs(filepath.Join(root, "job"), filepath.Join(root, "llm"))
	if err != nil {
		return nil, err
	}
	spec, err := encode(specSchema(docs))
	if err != nil {
		return nil, err
	}
	event, err := encode(eventSchema(docs))
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"job.schema.json": spec, "event.schema.json": event}, nil
}
