package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommittedSchemasAreUpToDate(t *testing.T) {
	t.Parallel()
	const root = "../.."
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("schema/%s differs from the Go types; run go generate ./schema (-types +file):\n%s", name, diff)
		}
	}
}

func TestEveryEventTypeIsInTheSchema(t *testing.T) {
	t.Parallel()
	docs, err := readDocs("../../job", "../../llm")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, p := range payloads() {
		listed[string(p.EventType())] = true
	}
	types := docs.enums["EventType"]
	if len(types) < len(listed) {
		t.Fatalf("found %d event types in the source", len(types))
	}
	for _, name := range types {
		if !listed[name] {
			t.Errorf("event type %q is not in the schema; add its data to payloads", name)
		}
	}
}

func TestSourcesThatAreNotThereAreAnError(t *testing.T) {
	t.Parallel()
	if _, err := readDocs(t.TempDir()); err == nil {
		t.Error("no error for a directory without sources")
	}
}

func TestRunWritesTheSchemas(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"job", "llm"} {
		source, err := filepath.Abs(filepath.Join("../..", dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(source, filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "schema"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run(root); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"job.schema.json", "event.schema.json"} {
		if info, err := os.Stat(filepath.Join(root, "schema", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s was not written: %v", name, err)
		}
	}
}
