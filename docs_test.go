package hozo_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// The documents name what the code has: these tests fail when one of the two moves on alone.

func readText(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// constants returns the string constants of a package whose names begin with one of the prefixes.
func constants(t *testing.T, dir string, prefixes ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, s := range mustLoad(t).sources {
		if s.dir != dir || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			for _, prefix := range prefixes {
				if err == nil && strings.HasPrefix(spec.Names[0].Name, prefix) {
					found[spec.Names[0].Name] = text
				}
			}
			return true
		})
	}
	if len(found) == 0 {
		t.Fatalf("package %s has no constants %v; the test is wrong", dir, prefixes)
	}
	return found
}

// words returns every word that stands in code style in a document, alone or in a list between backticks.
func words(text string) map[string]bool {
	found := map[string]bool{}
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	for _, span := range regexp.MustCompile("`[^`]+`").FindAllString(text, -1) {
		for _, word := range strings.FieldsFunc(strings.Trim(span, "`"), func(r rune) bool { return strings.ContainsRune(" \n{}[],", r) }) {
			found[strings.TrimSuffix(word, "?")] = true
		}
	}
	return found
}

func TestTheJobDocumentIsDescribed(t *testing.T) {
	text := readText(t, "docs/job-spec.md")
	named := words(text)
	for name, word := range constants(t, "job", "Code", "code", "Reason", "Event", "API") {
		if !named[word] {
			t.Errorf("docs/job-spec.md does not name %q (job.%s)", word, name)
		}
	}
	for _, v := range []any{job.Spec{}, job.Definition{}, job.Workspace{}, job.Limits{}} {
		for i := range reflect.TypeOf(v).NumField() {
			key, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("json"), ",")
			if !named[key] {
				t.Errorf("docs/job-spec.md does not name the field %q of %T", key, v)
			}
		}
	}
}

func TestTheAgentPackageIsDescribed(t *testing.T) {
	named := words(readText(t, "docs/agent-package.md"))
	for name, word := range constants(t, "internal/catalog", "Code") {
		if !named[word] {
			t.Errorf("docs/agent-package.md does not name %q (catalog.%s)", word, name)
		}
	}
}

// Every API has a section of its own, and whoever has a server that differs finds each switch there.
func TestProvidersAreDescribed(t *testing.T) {
	text := readText(t, "docs/providers.md")
	for _, api := range job.APIs() {
		if api == "scripted" || api == "offline" {
			continue // Scripts have a page of their own.
		}
		_, section, _ := strings.Cut(text, "\n## "+api+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if points := strings.Count(section, "\n- **"); points < 2 {
			t.Errorf("docs/providers.md says %d things about %s, want at least 2 under a heading of its own", points, api)
		}
	}
	named := words(text + readText(t, "docs/text-tool-calls.md"))
	compat := reflect.TypeFor[llm.Compat]()
	for i := range compat.NumField() {
		key, _, _ := strings.Cut(compat.Field(i).Tag.Get("json"), ",")
		if !named[key] && !named["compat."+key] {
			t.Errorf("no document names the switch %q of a model", key)
		}
	}
}

func TestJobsInDocumentsAreAccepted(t *testing.T) {
	block := regexp.MustCompile("(?s)```json\n(.*?)```")
	n := 0
	for _, name := range []string{"README.md", "docs/job-spec.md"} {
		for _, m := range block.FindAllStringSubmatch(readText(t, name), -1) {
			n++
			if _, err := job.Parse([]byte(m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n == 0 {
		t.Error("no document shows a job")
	}
}

func TestExampleAgentsAreSound(t *testing.T) {
	paths, err := filepath.Glob("examples/agents/*.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("examples/agents/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	paths = append(append(paths, folders...), "examples/changelog-writer/changelog-writer.md", "examples/release-advisor/release-advisor.md")
	if len(paths) < 5 {
		t.Fatalf("only %d example agents", len(paths))
	}
	for _, path := range paths {
		pkg, list := catalog.ParseFile(path)
		if list == nil {
			_, list = pkg.Compile()
			list = append(list, pkg.Check(catalog.Installation{Tools: []string{"read", "ls", "grep", "find", "write", "edit"}})...)
		}
		for _, p := range list {
			t.Error(p)
		}
		for name, canonical := range pkg.Marshal() {
			if file := filepath.Join(filepath.Dir(path), name); string(canonical) != readText(t, file) {
				t.Errorf("%s is not in canonical form; it would be\n%s", file, canonical)
			}
		}
	}
}

// The tools of this example are lent by its program, and so not among those that an agent can be checked against.
func TestThePackageOfTheEventsCalendarIsOneOfOurs(t *testing.T) {
	pkg, list := catalog.ParseFile("examples/events-calendar/agent/events-calendar.md")
	if list == nil {
		_, list = pkg.Compile()
	}
	for _, p := range list {
		t.Error(p)
	}
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, name := range mustLoad(t).files {
		if !strings.HasSuffix(name, ".md") || strings.Contains(name, "testdata/") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(readText(t, name), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", name, m[1])
			}
		}
	}
}
