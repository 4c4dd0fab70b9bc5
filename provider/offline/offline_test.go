package offline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/offline"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/workspace"
)

// survey is the end of a run of the surveyor with the real file tools.
type survey struct {
	report string // REPORT.md, "" if none was written
	answer string
	calls  []*llm.ToolCall
	turns  int
}

// run lets the surveyor work on a directory tree with all file tools but those named in without.
func run(t *testing.T, source string, without ...string) survey {
	t.Helper()
	root := t.TempDir()
	out := filepath.Join(root, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(workspace.Config{Root: filepath.Dir(source), ReadOnly: []string{source}, OutDir: out})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var tools []tool.Tool
	opening := llm.Opening{JobSystem: "<workspace>\nYou may read: tree/. A search that names no path looks in tree.\n</workspace>"}
	opening.Model, _ = offline.Model(offline.Surveyor)
	for _, each := range filetool.Tools() {
		if !slices.Contains(without, each.Name) {
			tools = append(tools, each)
			opening.Tools = append(opening.Tools, llm.ToolSpec{Name: each.Name, InputSchema: each.InputSchema})
		}
	}
	p, err := offline.New(llm.Account{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Converse(opening)
	if err != nil {
		t.Fatal(err)
	}
	s := loop(t, c, tools, &tool.Env{Workspace: w})
	report, err := os.ReadFile(filepath.Join(out, "REPORT.md"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	s.report = string(report)
	return s
}

// loop is the smallest agent loop: it runs every call and ends at the first response without one.
func loop(t *testing.T, c llm.Dialog, tools []tool.Tool, env *tool.Env) survey {
	t.Helper()
	var s survey
	m := llm.UserText("Describe this directory.")
	for range 12 {
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
		s.turns++
		r, err := c.Stream(t.Context(), llm.Call{Purpose: llm.PurposeTurn}, func(llm.Delta) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		calls := r.Message.ToolCalls()
		s.calls = append(s.calls, calls...)
		if len(calls) == 0 {
			s.answer = r.Message.Text()
			return s
		}
		m = llm.Message{Role: llm.RoleTool}
		for i, call := range calls {
			call.ID = fmt.Sprintf("%d.%d", s.turns, i)
			m.Parts = append(m.Parts, execute(t, call, tools, env))
		}
		if err := c.Append(r.Message); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the surveyor has not come to an end after 12 turns")
	return s
}

func execute(t *testing.T, call *llm.ToolCall, tools []tool.Tool, env *tool.Env) llm.Part {
	t.Helper()
	for _, each := range tools {
		if each.Name == call.Name {
			result := each.Run(t.Context(), env, call.Arguments)
			return llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: call.ID, Name: call.Name,
				Content: []llm.Part{llm.TextPart(result.Text)}, IsError: result.IsError}}
		}
	}
	t.Fatalf("the surveyor calls %s, which is not on offer", call.Name)
	return llm.Part{}
}

// tree makes a directory named tree with files; a name that ends in a slash is a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tree")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// sample is a small tree with something for every part of the report.
func sample() map[string]string {
	return map[string]string{
		"README.md":                "[![build](x)](y)\n# Lantern *tool*\n\nLantern keeps an eye on\nyour lamps.\n\n## Use\n",
		"LICENSE":                  "MIT License\n\nPermission is hereby granted, free of charge, to any person\n",
		"go.mod":                   "module example.org/lantern\n\ngo 1.26\n",
		"Makefile":                 "VERSION := 1\n.PHONY: build\nbuild: deps\n\tgo build\ntest:\n\tgo test\n",
		"package.json":             `{"name":"lantern-ui","scripts":{"dev":"vite","build":"vite build"}}`,
		"cmd/lantern/main.go":      "package main\n\nfunc main() {\n\t// TODO: light the lamp\n}\n",
		"lamp/lamp.go":             "package lamp\n\n// FIXME: flickers\nvar On bool\n",
		"lamp/lamp_test.go":        "package lamp\n",
		"ui/index.ts":              "export {}\n",
		"docs/guide.md":            "# Guide\n",
		".github/workflows/ci.yml": "on: push\n",
		"data.bin":                 "\x00\x01",
		"notes":                    "no extension\n",
	}
}

func has(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("there is no %q in:\n%s", w, text)
		}
	}
}

func hasNot(t *testing.T, text string, unwanted ...string) {
	t.Helper()
	for _, w := range unwanted {
		if strings.Contains(text, w) {
			t.Errorf("there is %q in:\n%s", w, text)
		}
	}
}

func TestTheReportHasRealFigures(t *testing.T) {
	t.Parallel()
	bytes, lines, goBytes := 0, 0, 0
	for name, text := range sample() {
		bytes += len(text)
		if name != "data.bin" {
			lines += strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
		}
		if strings.HasSuffix(name, ".go") {
			goBytes += len(text)
		}
	}
	s := run(t, tree(t, sample()))
	has(t, s.report,
		"# Survey of `tree`", "script and no language model",
		"Files: **13**", fmt.Sprintf("(%d bytes), **%d** lines in 12 text files", bytes, lines),
		fmt.Sprintf("| Go | 3 | 23.1 %% | %d B | 10 |", goBytes), "| Markdown | 2 |", "(no extension)",
		"`lamp/` 2", fmt.Sprintf("| `README.md` | %d B | 7 |", len(sample()["README.md"])),
		"`cmd/lantern/main.go`", "Go module `example.org/lantern`, Go 1.26", "package `lantern-ui`; scripts: `build`, `dev`",
		"`Makefile` targets: `build`, `test`", "`ui/index.ts`",
		"**Lantern tool**", "> Lantern keeps an eye on your lamps.", "1 file below `docs/`",
		"Test files by their names: **1** (7.7 % of all files)",
		"**2** lines. By mark: FIXME 1, TODO 1", "`cmd/lantern/main.go:4`", "light the lamp",
		"Licence: MIT", "`.github/workflows/ci.yml`",
		"No listing was cut")
	has(t, s.answer, "REPORT.md", "13 files", "Go (3)", "2 lines with TODO", "no language model")
	hasNot(t, s.report, "not on offer", "Not measured", "\n\n\n\n", "tree/README", "<no value>")
}

func TestTheSurveyAdaptsToTheToolsOnOffer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		without  []string
		want     []string
		unwanted []string
	}{
		"no grep": {[]string{"grep"},
			[]string{"Not searched: the tool `grep` is not on offer", "not searched for `func main`", "| Go | 3 |", "| `README.md` |"},
			[]string{"light the lamp", "By mark"}},
		"no find": {[]string{"find"},
			[]string{"Files: **13**", "without `find` the tree was listed with `ls`", "the tool `find` is not on offer", "`.github/workflows/ci.yml`", "light the lamp",
				"Not measured: the tool `find` is not on offer", "| Go | 3 | 23.1 % |\n"},
			nil},
		"no ls": {[]string{"ls"}, []string{"Files: **13**", "The tool `ls` is not on offer"}, nil},
		"no read": {[]string{"read"},
			[]string{"which was not read: the tool `read` is not on offer", "files that name commands and scripts were not read", "`cmd/lantern/main.go`"},
			[]string{"Lantern keeps"}},
		"grep alone": {[]string{"find", "ls", "read"},
			[]string{"could not be listed: neither `find` nor `ls` is on offer", "light the lamp"}, []string{"## Languages"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run(t, tree(t, sample()), tc.without...)
			has(t, s.report, tc.want...)
			hasNot(t, s.report, append(tc.unwanted, "<no value>")...)
			for _, call := range s.calls {
				if slices.Contains(tc.without, call.Name) {
					t.Errorf("%s was called, which is not on offer", call.Name)
				}
			}
		})
	}
}

func TestWithoutWriteTheReportIsTheAnswer(t *testing.T) {
	t.Parallel()
	s := run(t, tree(t, sample()), "write", "edit")
	if s.report != "" {
		t.Error("a report was written")
	}
	has(t, s.answer, "no tool `write` on offer", "# Survey of `tree`", "Files: **13**")
}

func TestWithoutAnyToolTheAnswerSaysSo(t *testing.T) {
	t.Parallel()
	s := run(t, tree(t, sample()), "ls", "find", "grep", "read", "write", "edit")
	if len(s.calls) > 0 || s.turns != 1 {
		t.Errorf("%d calls in %d turns", len(s.calls), s.turns)
	}
	has(t, s.answer, "could not be listed: neither `find` nor `ls`", "Not searched", "Tool calls: none")
}

func TestAReportThatCannotBeWrittenIsTheAnswer(t *testing.T) {
	t.Parallel()
	p, err := offline.New(llm.Account{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Converse(llm.Opening{Model: llm.Model{ID: offline.Surveyor}, Tools: []llm.ToolSpec{{Name: "write", InputSchema: json.RawMessage(`{}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	write := tool.Tool{Declaration: tool.Declaration{Name: "write"}}
	write.Run = func(context.Context, *tool.Env, json.RawMessage) tool.Result { return tool.Errorf("the disk is full") }
	s := loop(t, c, []tool.Tool{write}, nil)
	has(t, s.answer, "could not be written: the disk is full", "# Survey of the workspace")
}

func TestADirectoryWithoutFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"empty":                 {nil, "the directory is empty, or everything in it is ignored"},
		"only directories":      {map[string]string{"a/": "", "b/": ""}, "There are no files to survey**, only 2 directories"},
		"everything is ignored": {map[string]string{"x/.gitignore": "*\n", "x/f": ""}, "There are no files to survey**, only 1 directory"},
	} {
		for _, without := range []string{"", "find"} {
			if without == "find" && name == "everything is ignored" {
				continue // ls shows what is ignored
			}
			t.Run(name+" "+without, func(t *testing.T) {
				t.Parallel()
				s := run(t, tree(t, tc.files), without)
				has(t, s.report, tc.want, "## TODO", "None: no line")
				has(t, s.answer, "There are no files to survey")
				hasNot(t, s.report, "## Languages", "<no value>")
			})
		}
	}
}

func TestATreeTooLargeForOneListing(t *testing.T) {
	t.Parallel()
	files := map[string]string{"README": "Large\n=====\n"}
	for d := range 3 {
		for f := range 200 {
			files[fmt.Sprintf("directory-%d/%s-%03d.go", d, strings.Repeat("long-name-", 10), f)] = "package x\n"
		}
	}
	s := run(t, tree(t, files))
	has(t, s.report, "Files: **601** in 4 directories", "**The listing was cut**: The first ", "Each directory at the top was then listed by itself", "| Go | 600 |", "**Large**")
}

func TestNamesOfFilesCannotBreakTheReport(t *testing.T) {
	t.Parallel()
	s := run(t, tree(t, map[string]string{
		"a\nb.go": "package a\n", "{{ fail }}.go": "// TODO: {{ fail `x` }} [x](y)\n", "[The first 3 paths].md": "# T\n", "$1.py": "", "(12 bytes).rs": "",
		"README.md": "# {{ fail }}\n\n{{ fail }} text\n",
	}))
	has(t, s.report, "Files: **6**", "| Go | 2 |", "`{{ fail }}.go:1`", "**{{ fail }}**")
}

func TestTheSurveyIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	dir := tree(t, sample())
	if first, second := run(t, dir), run(t, dir); first.report != second.report || first.answer != second.answer {
		t.Error("two surveys of one directory differ")
	}
}

func TestTheModelIsMarkedAsSimulatedAndFree(t *testing.T) {
	t.Parallel()
	m := offline.Models()[0]
	if m.ID != "surveyor" || !m.Simulated || m.Price == nil || m.Price.Cost(llm.Usage{Input: 1e9, Output: 1e9}) != 0 || m.ContextWindow < 1e6 {
		t.Errorf("got %+v", m)
	}
	if !strings.Contains(m.Name, "no language model") {
		t.Errorf("the name %q does not say what it is", m.Name)
	}
	if _, ok := offline.Model("gpt"); ok {
		t.Error("an unknown model was found")
	}
	if _, err := offline.New(llm.Account{Script: json.RawMessage(`{}`)}); err == nil {
		t.Error("a script was accepted")
	}
}

func TestWithoutFindThreeLevelsAreListed(t *testing.T) {
	t.Parallel()
	s := run(t, tree(t, map[string]string{"a/b/c/d.go": "", "a/b/e.go": "", "a/f.go": "", "g.go": ""}), "find")
	has(t, s.report, "Files: **3**", "three levels deep")
}

// The surveyor learns from the prompt where a search begins, so this runs it under the prompt of the kernel.
func TestTheSurveyorReadsTheWorkspaceNoteOfTheKernel(t *testing.T) {
	t.Parallel()
	source := tree(t, sample())
	out := t.TempDir()
	registry, err := tool.NewRegistry(filetool.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := kernel.New(kernel.Config{
		Version: "test", Tools: registry, Adapters: map[string]llm.Adapter{job.APIOffline: offline.New},
		Models: func(string, string, string) (llm.Model, bool) { return llm.Model{}, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := runtime.Start(t.Context(), &job.Spec{
		APIVersion: job.APIVersion,
		Agent:      job.Definition{ID: "surveyor", Version: "1", Instructions: "Survey the directory."},
		Task:       "Survey it.",
		Model:      job.ModelRef{Provider: "offline", ID: offline.Surveyor},
		Providers:  map[string]job.ProviderConfig{"offline": {API: job.APIOffline}},
		Workspace:  job.Workspace{Root: filepath.Dir(source), ReadOnly: []string{source}, OutDir: out},
		Limits:     job.Limits{TimeoutSec: 60},
	}, job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	outcome := handle.Wait()
	if outcome.Completed == nil || outcome.Usage.CostMicroUSD != 0 || outcome.Usage.Unpriced {
		t.Fatalf("got %+v, %+v", outcome, outcome.Failed)
	}
	report, err := os.ReadFile(filepath.Join(out, "REPORT.md"))
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(report), "# Survey of `tree`", "Files: **13**", "`lamp/` 2", "**Lantern tool**")
}

func TestLinksAndPipesAreNoFilesOfTheSurvey(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.go": "package a\n", "b (copy).go": "package a\n", "sub/": ""})
	for name, target := range map[string]string{"link.go": "a.go", "broken.go": "nothing", "dirlink": "sub", "out.go": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	has(t, run(t, dir).report, "Files: **2** in 2 directories; besides 4 links, special or unreadable files", "| Go | 2 |")
	has(t, run(t, dir, "find").report, "Files: **2** in 2 directories\n", "| Go | 2 |")
}

func TestAnUnknownOfflineModelIsRefused(t *testing.T) {
	t.Parallel()
	p, err := offline.New(llm.Account{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Converse(llm.Opening{Model: llm.Model{ID: "surveyer"}}); err == nil || !strings.Contains(err.Error(), offline.Surveyor) {
		t.Errorf("error = %v; it must name the model that exists", err)
	}
}
