package hozo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// The rules are code too: these tests show that each one sees what it is there for.

// parseDecls parses declarations of a package.
func parseDecls(t *testing.T, text string) []ast.Decl {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file.Decls
}

func TestRuleAboutProductWords(t *testing.T) {
	for name, want := range map[string]string{
		"conversationID": "conversation", "newFacts": "fact", "factor": "", "Package": "", "unpack": "", "packer": "", "TenantID": "tenant",
		"knowledgeBase": "knowledge base", "baseURL": "", "user": "", "RoleUser": "", "UserText": "", "appendUser": "", "userID": "user",
		"endUser": "user", "users": "user", "org": "org", "origin": "", "unit": "unit", "community": "", "publish": "publish", "HTTPPortal": "portal",
	} {
		if got := productWord(name); got != want {
			t.Errorf("productWord(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRuleAboutTheStart(t *testing.T) {
	for text, want := range map[string]int{
		"var a = regexp.MustCompile(`x`)":                                      1,
		"var a = load()":                                                       1,
		"var a, b = f(), g()":                                                  2,
		"var a = map[string]int{\"x\": f()}":                                   1,
		"var a = sync.OnceValue(func() int { return f() })":                    0,
		"var a = errors.New(\"x\")":                                            0,
		"var _ I = (*T)(nil)":                                                  0,
		"var a = []byte(\"x\")":                                                0,
		"var a = regexpOnce(`x`)":                                              0,
		"var a = func() int { return f() }":                                    0,
		"var a = reflect.TypeFor[int]()":                                       0,
		"var a = template.Must(template.New(\"\").Parse(\"\"))":                3,
		"var a = struct{ f func() }{f: func() { g() }}":                        0,
		"var (\n a = 1\n b = os.Getenv(\"x\")\n)":                              1,
		"var a [4]int\nvar b = len(a)":                                         0,
		"var a = fmt.Errorf(\"x: %w\", errors.ErrUnsupported)":                 0,
		"var a = time.Now()":                                                   1,
		"var a = strings.NewReplacer(\"a\", \"b\")":                            1,
		"var a = sync.OnceValue(func() int { return 1 })()":                    1,
		"var a = make(map[string]int)":                                         0,
		"var a = new(int)":                                                     0,
		"var a = slices.Sorted(maps.Keys(b))":                                  2,
		"var a = strings.Split(\"a b\", \" \")[0]":                             1,
		"var a = json.RawMessage(`{}`)":                                        0,
		"var a = sync.OnceValues(func() (int, error) { return f(), nil })":     0,
		"var a = func() int { return regexp.MustCompile(`x`).NumSubexp() }()":  1,
		"var a = []func(){func() { f() }}":                                     0,
		"var a = map[string]func() int{\"x\": func() int { return len(`x`) }}": 0,
	} {
		got := 0
		for _, d := range parseDecls(t, text) {
			got += len(startCalls(d.(*ast.GenDecl)))
		}
		if got != want {
			t.Errorf("%s: %d calls at start, want %d", text, got, want)
		}
	}
}

func TestRuleAboutDocComments(t *testing.T) {
	for text, want := range map[string]string{
		"func F() {}":                                "F",
		"// F does.\nfunc F() {}":                    "",
		"func f() {}":                                "",
		"type T struct{}\nfunc (t *T) M() {}":        "T M",
		"type t struct{}\nfunc (t *t) M() {}":        "",
		"// T is.\ntype T interface {\n\tM()\n}":     "M",
		"const A = 1":                                "A",
		"// All of them.\nconst (\n\tA = 1\n)":       "",
		"const (\n\tA = 1 // one\n\tB = 2\n)":        "B",
		"type T[P any] int\nfunc (t T[P]) M() {}":    "T M",
		"// T is.\ntype T = int\nvar V, w = 1, 2":    "V",
		"type (\n\t// A is.\n\tA int\n\tB int\n)":    "B",
		"// T is.\ntype T interface{ M() // does\n}": "",
	} {
		var names []string
		for _, d := range parseDecls(t, text) {
			for _, n := range undocumented(d) {
				names = append(names, n.Name)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: undocumented %q, want %q", text, got, want)
		}
	}
}

func TestRuleAboutContexts(t *testing.T) {
	for text, want := range map[string]int{
		"func f(ctx context.Context, a int) {}":             0,
		"func f(a int, ctx context.Context) {}":             1,
		"func f(a, b int, ctx context.Context) {}":          2,
		"func f(t *testing.T, ctx context.Context) {}":      0,
		"func f(t testing.TB, ctx context.Context) {}":      0,
		"func f(a int) {}":                                  0,
		"func f(t *testing.T, a int, c context.Context) {}": 1,
	} {
		if got := contextParameter(parseDecls(t, text)[0].(*ast.FuncDecl).Type); got != want {
			t.Errorf("%s: the context is at %d, want %d", text, got, want)
		}
	}
	kept := parseDecls(t, "type t struct{ ctx context.Context }")[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec)
	if !holdsContext(kept.Type.(*ast.StructType)) {
		t.Error("a struct that keeps a context is not seen")
	}
}

func TestRuleAboutArrows(t *testing.T) {
	for _, tc := range []struct {
		pattern, pkg string
		want         bool
	}{
		{"job", "job", true}, {"job", "job/jobtest", false}, {"job/...", "job", true}, {"job/...", "job/jobtest", true},
		{"job/...", "jobproc", false}, {"...", "internal/catalog", true}, {".", ".", true}, {".", "job", false},
	} {
		if got := covers(tc.pattern, tc.pkg); got != tc.want {
			t.Errorf("covers(%q, %q) = %t", tc.pattern, tc.pkg, got)
		}
	}
	for _, from := range ringRoots() {
		i := slices.IndexFunc(arrows(), func(a arrow) bool { return covers(a.from, from) })
		if i < 0 && from != "provider" {
			t.Errorf("no arrow starts at %s", from)
		}
		for _, to := range []string{"cmd/hozo", "internal/catalog", "bench"} {
			if i >= 0 && slices.ContainsFunc(arrows()[i].to, func(p string) bool { return covers(p, to) }) {
				t.Errorf("the arrows let %s import %s", from, to)
			}
		}
	}
}
