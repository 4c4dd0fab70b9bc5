// Package tooltest holds the suite that every file tool passes, whoever writes it. It builds a workspace full of traps
// (links out, pipes, huge sparse files, names that upset terminals), aims the tool at each of them, and asserts the
// effect: nothing outside is read or changed, nothing hangs, results are clean and bounded, and memory stays small. A new
// tool that touches files is done when Exercise is green for it. The suite knows no tool by name.
package tooltest

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// Setup says how to aim a tool.
type Setup struct {
	// Arguments returns arguments that make the tool work on a path. For a tool that looks for text, look for Canary; for
	// one that changes text, change Canary.
	Arguments func(path string) map[string]any
	// Lists says that the tool, aimed at a directory, shows the names in it.
	Lists bool
}

// Canary is the text of every file that must not be reached. Files that may be reached hold it too, so that a tool that
// looks for it has something to find there; see Trap.
const Canary = "CANARY-OUTSIDE"

// The bounds of every result.
const (
	maxText   = 51200 + 2048 // and a notice
	maxMemory = 20 << 20
)

// Exercise runs the suite. Call it from a test that is not parallel, since it measures memory.
func Exercise(t *testing.T, tl tool.Tool, s Setup) {
	t.Run("declaration", func(t *testing.T) { checkDeclaration(t, tl) })
	t.Run("cancelled", func(t *testing.T) { checkCancelled(t, tl, s) })
	if tl.Effect == tool.EffectRead {
		t.Run("reading traps", func(t *testing.T) { checkTraps(t, tl, s, readingTraps()) })
		t.Run("names", func(t *testing.T) { checkNames(t, tl, s) })
		t.Run("huge files", func(t *testing.T) { checkMemory(t, tl, s, "src/huge", "src/huge-text") })
		t.Run("reads only", func(t *testing.T) { checkReadsOnly(t, tl, s) })
		return
	}
	t.Run("writing traps", func(t *testing.T) { checkTraps(t, tl, s, writingTraps()) })
	t.Run("huge files", func(t *testing.T) { checkMemory(t, tl, s, "huge") })
	t.Run("outputs", func(t *testing.T) { checkOutputs(t, tl, s) })
}

func checkDeclaration(t *testing.T, tl tool.Tool) {
	if _, err := tool.NewRegistry(tl); err != nil {
		t.Error(err)
	}
	if err := tl.SchemaProblem(); err != nil {
		t.Errorf("input schema: %v", err)
	}
	var schema struct {
		Type                 string
		AdditionalProperties *bool
		Properties           map[string]struct{ Description string }
	}
	if err := json.Unmarshal(tl.InputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Error("the schema must be an object without further properties, so that no argument is ignored")
	}
	for name, p := range schema.Properties {
		if p.Description == "" {
			t.Errorf("property %q has no description", name)
		}
	}
	for _, field := range []string{tl.Boundary.Network, tl.Boundary.Processes, tl.Boundary.Secrets} {
		if field != "none" {
			t.Errorf("a file tool reaches nothing but files, but its boundary says %q", field)
		}
	}
}

// call runs the tool as the kernel does and checks what holds for every result.
func call(ctx context.Context, t *testing.T, tr *tree, tl tool.Tool, s Setup, path string) tool.Result {
	t.Helper()
	raw, err := json.Marshal(s.Arguments(path))
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := tl.PrepareArguments(raw)
	if err != nil {
		t.Fatalf("%q: arguments are refused: %v", path, err)
	}
	result := tl.Run(ctx, &tool.Env{Workspace: tr.open(t), Images: true, CallID: "1.0"}, prepared)
	checkResult(t, tr, path, result)
	return result
}

func checkResult(t *testing.T, tr *tree, path string, result tool.Result) {
	t.Helper()
	texts := []string{result.Text, result.Summary}
	for _, o := range result.Outputs {
		texts = append(texts, o.Path)
	}
	for _, r := range result.Reads {
		texts = append(texts, r.Path)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			t.Errorf("%q: not valid UTF-8: %q", path, text)
		}
		if shown := strings.ReplaceAll(text, path, ""); strings.Contains(shown, tr.base) {
			t.Errorf("%q: an absolute path is shown: %q", path, text)
		}
		if strings.ContainsAny(text, "\x1b\x00\u202e\r") {
			t.Errorf("%q: raw control characters are shown: %q", path, text)
		}
	}
	if strings.Contains(result.Summary, "\n") {
		t.Errorf("%q: the summary has more than one line: %q", path, result.Summary)
	}
	if strings.TrimSpace(result.Text) == "" {
		t.Errorf("%q: the result has no text", path)
	}
	if len(result.Text) > maxText {
		t.Errorf("%q: the result has %d bytes", path, len(result.Text))
	}
	if result.IsError && (result.Outputs != nil || result.Reads != nil || result.Images != nil) {
		t.Errorf("%q: a failed result names outputs, reads or images", path)
	}
}

func checkCancelled(t *testing.T, tl tool.Tool, s Setup) {
	tr := plant(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := tr.snapshot(t)
	for _, path := range []string{"src", "src/huge-text", "note.md"} {
		if result := call(ctx, t, tr, tl, s, path); !result.IsError {
			t.Errorf("%q: a cancelled call succeeded: %q", path, result.Text)
		}
	}
	if after := tr.snapshot(t); !maps.Equal(before, after) {
		t.Error("a cancelled call changed files")
	}
}

// checkTraps aims the tool at each trap and checks that nothing outside of what it may reach was shown or changed.
func checkTraps(t *testing.T, tl tool.Tool, s Setup, traps []string) {
	tr := plant(t)
	before := tr.snapshot(t)
	for _, path := range traps {
		path = strings.ReplaceAll(path, "BASE", tr.base)
		result := call(t.Context(), t, tr, tl, s, path)
		if !result.IsError {
			t.Errorf("%q: was not refused: %q", path, result.Text)
		}
		shown := strings.NewReplacer(path, "", workspace.Escape(path), "").Replace("." + result.Text)
		if strings.Contains(shown, "hidden") {
			t.Errorf("%q: the result shows what lies outside: %q", path, result.Text)
		}
	}
	if diff := difference(before, tr.snapshot(t)); diff != nil {
		t.Errorf("files changed: %q", diff)
	}
}

// checkNames lists, or reads from, a directory of names that must not be shown as they are.
func checkNames(t *testing.T, tl tool.Tool, s Setup) {
	tr := plant(t)
	result := call(t.Context(), t, tr, tl, s, "src/names")
	for _, name := range tr.names {
		if s.Lists && !strings.Contains(result.Text, workspace.Escape(name)) {
			t.Errorf("%q is not shown as %q", name, workspace.Escape(name))
		}
		call(t.Context(), t, tr, tl, s, "src/names/"+name)
	}
}

// checkMemory runs the tool on files that are far larger than the bound. What a call allocates in all is an upper bound of what it holds.
func checkMemory(t *testing.T, tl tool.Tool, s Setup, paths ...string) {
	tr := plant(t)
	tr.open(t)
	for _, path := range paths {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call(t.Context(), t, tr, tl, s, path)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > maxMemory {
			t.Errorf("%q: the call allocated %d bytes", path, grown)
		}
	}
}

func checkReadsOnly(t *testing.T, tl tool.Tool, s Setup) {
	tr := plant(t)
	before := tr.snapshot(t)
	works := false
	for _, path := range []string{"src", "src/plain.txt", "src/links", "src/links/inside"} {
		result := call(t.Context(), t, tr, tl, s, path)
		works = works || !result.IsError
		if strings.Contains(result.Text, "hidden") {
			t.Errorf("%q: the result shows what lies outside: %q", path, result.Text)
		}
		if result.Outputs != nil {
			t.Errorf("%q: a reading tool names outputs", path)
		}
	}
	if !works {
		t.Error("the tool refuses everything")
	}
	if diff := difference(before, tr.snapshot(t)); diff != nil {
		t.Errorf("files changed: %q", diff)
	}
}

// checkOutputs runs a writing tool on a file that it may write and checks that it says what it did, and did nothing else.
func checkOutputs(t *testing.T, tl tool.Tool, s Setup) {
	tr := plant(t)
	before := tr.snapshot(t)
	result := call(t.Context(), t, tr, tl, s, "note.md")
	if result.IsError {
		t.Fatalf("got %q", result.Text)
	}
	if diff := difference(before, tr.snapshot(t)); !slices.Equal(diff, []string{"out/note.md"}) {
		t.Errorf("files changed: %q", diff)
	}
	stat, err := os.Stat(tr.base + "/job/out/note.md")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(result.Outputs, []tool.Output{{Path: "note.md", Bytes: stat.Size()}}) {
		t.Errorf("outputs %+v", result.Outputs)
	}
}

// difference returns the job paths that differ between two snapshots, sorted.
func difference(before, after map[string]string) []string {
	var names []string
	for name := range after {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// snapshot returns the type and content of everything below the base directory, by path relative to the job. Of files
// beyond 1 MB it takes the size.
func (tr *tree) snapshot(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(tr.base, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tr.base+"/job", name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[rel] = info.Mode().String()
		if info.Mode().IsRegular() && info.Size() < 1<<20 {
			data, err := os.ReadFile(name)
			all[rel] += string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
