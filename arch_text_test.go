package hozo_test

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// productWords are the words of the product ring. Code of the kernel ring that needs one of them knows too much.
func productWords() []string {
	return []string{
		"rulebook", "pack", "unit", "phase", "tenant", "org", "project", "participant", "conversation", "segment", "fact", "guardrail",
		"catalog", "publish", "binding", "audience", "portal", "knowledgebase",
	}
}

// productWord returns the product word that a name holds as a whole word or as a part of camel case, also in the plural,
// "" if it holds none. The word user names the role of a message and nobody in particular.
func productWord(name string) string {
	words := splitWords(name)
	if i := slices.Index(words, "knowledge"); i >= 0 && i+1 < len(words) && words[i+1] == "base" {
		return "knowledge base"
	}
	for i, w := range words {
		for _, p := range productWords() {
			if w == p || w == p+"s" {
				return p
			}
		}
		if w == "users" || w == "user" && isPerson(words, i) {
			return "user"
		}
	}
	return ""
}

// isPerson reports whether the word user at i is about somebody and not about the role of a message.
func isPerson(words []string, i int) bool {
	after := []string{"id", "name", "email", "account", "group", "profile", "store"}
	before := []string{"end", "current", "find", "get", "create", "delete"}
	return i > 0 && slices.Contains(before, words[i-1]) || i+1 < len(words) && slices.Contains(after, words[i+1])
}

// splitWords divides a name at everything that is no letter and at the humps of camel case, in lower case.
func splitWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			flush()
			continue
		}
		hump := unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if hump {
			flush()
		}
		word = append(word, r)
	}
	flush()
	return words
}

func TestSplitWords(t *testing.T) {
	for name, want := range map[string]string{
		"conversationID": "conversation id", "HTTPServer": "http server", "max_facts": "max facts", "unitTest2": "unit test", "package": "package",
	} {
		if got := strings.Join(splitWords(name), " "); got != want {
			t.Errorf("splitWords(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestTheKernelRingKnowsNoProductWords(t *testing.T) {
	tree := mustLoad(t)
	for _, name := range tree.files {
		if w := productWord(strings.TrimSuffix(path.Base(name), path.Ext(name))); w != "" && inRing(path.Dir(name)) && !allowed("word", name) {
			t.Errorf("%s: the file name holds the product word %q", name, w)
		}
	}
	for _, s := range tree.sources {
		if inRing(s.dir) {
			checkWords(t, tree, s)
		}
	}
}

func checkWords(t *testing.T, tree *tree, s source) {
	t.Helper()
	foreign := map[*ast.Ident]bool{} // names that other packages chose
	seen := map[string]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.SelectorExpr:
			foreign[d.Sel] = true
		case *ast.Field:
			checkTag(t, tree, s, d)
		case *ast.Ident:
			if w := productWord(d.Name); w != "" && !foreign[d] && !seen[d.Name] && !allowed("word", s.path+" "+d.Name) {
				seen[d.Name] = true
				t.Errorf("%s: %s holds the product word %q; the kernel ring has other words for it (GLOSSARY.md)", tree.at(d), d.Name, w)
			}
		}
		return true
	})
}

func checkTag(t *testing.T, tree *tree, s source, f *ast.Field) {
	t.Helper()
	if f.Tag == nil {
		return
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		t.Errorf("%s: %v", tree.at(f), err)
		return
	}
	key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if w := productWord(key); w != "" && !allowed("word", s.path+" "+key) {
		t.Errorf("%s: the JSON key %q holds the product word %q", tree.at(f), key, w)
	}
}

// TestDependenciesAreExplained checks that the modules of go.mod and those in the list of dependencies are the same.
func TestDependenciesAreExplained(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("docs/adr/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	require := regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9.-]+\.[a-z]+/\S+) v\S+`)
	found := require.FindAllSubmatch(mod, -1)
	if len(found) == 0 {
		t.Fatal("go.mod requires nothing; the pattern of this test is wrong")
	}
	for _, m := range found {
		if !bytes.Contains(list, []byte("`"+string(m[1])+"`")) {
			t.Errorf("docs/adr/dependencies.md does not name %s: say why this one, its licence and how it is kept", m[1])
		}
	}
	linked, _, _ := bytes.Cut(list, []byte("\n## Run, not linked"))
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllSubmatch(linked, -1) {
		if !bytes.Contains(mod, append(m[1], ' ')) {
			t.Errorf("docs/adr/dependencies.md names %s, which go.mod does not require: remove its row", m[1])
		}
	}
}

// TestGeneratedFilesSaySo looks at files whose name says that a program wrote them.
func TestGeneratedFilesSaySo(t *testing.T) {
	tree := mustLoad(t)
	marker := []byte("Code generated ")
	for _, name := range tree.files {
		base := path.Base(name)
		generated := strings.HasSuffix(base, "_gen.go") || strings.HasPrefix(name, "docs/cli/") || strings.HasPrefix(name, "schema/") && path.Ext(name) == ".json"
		if !generated {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(data[:min(len(data), 1024)], marker) && !allowed("generated", name) {
			t.Errorf("%s: a generated file says \"Code generated by <program>; DO NOT EDIT.\" at its top", name)
		}
	}
}

// TestNoMachinePaths keeps the paths of somebody's computer out of the tree.
func TestNoMachinePaths(t *testing.T) {
	tree := mustLoad(t)
	machine := regexp.MustCompile(`(^|[^\w.\-/])/` + `(work|root|home/[a-z]\w*|Users/\w+)/`)
	placeholder := regexp.MustCompile(`/home/(me|user|you|someone|x|u|nobody)/`)
	for _, name := range tree.files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(data[:min(len(data), 512)], 0) >= 0 || allowed("machine-path", name) {
			continue
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if m := machine.Find(line); m != nil && !placeholder.Match(line) {
				t.Errorf("%s:%d: %s is a path of one machine", name, i+1, m)
			}
		}
	}
}
