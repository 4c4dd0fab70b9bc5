package hozo_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The house numbers. A soft number is reported, a hard one fails.
const (
	softFileLines      = 400
	hardFileLines      = 800
	softFunctionLines  = 50
	hardFunctionLines  = 90
	softPackageLines   = 2500
	softInterfaceSize  = 4
	minPackageSentence = 3
)

func TestSizes(t *testing.T) {
	tree := mustLoad(t)
	packages := map[string]int{}
	for _, s := range tree.sources {
		if s.generated {
			continue
		}
		if !s.test {
			packages[s.dir] += s.lines
		}
		switch {
		case s.lines > hardFileLines && !allowed("file-size", s.path):
			t.Errorf("%s has %d lines, more than %d: divide it", s.path, s.lines, hardFileLines)
		case s.lines > softFileLines && !s.test:
			t.Logf("soft: %s has %d lines, more than %d", s.path, s.lines, softFileLines)
		}
		if !s.test {
			checkFunctions(t, tree, s)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if packages[dir] > softPackageLines {
			t.Logf("soft: package %s has %d lines, more than %d", dir, packages[dir], softPackageLines)
		}
	}
}

// checkFunctions leaves tests alone: a table is data, however long.
func checkFunctions(t *testing.T, tree *tree, s source) {
	t.Helper()
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		lines := tree.fset.Position(f.End()).Line - tree.fset.Position(f.Pos()).Line + 1
		switch {
		case lines > hardFunctionLines && !allowed("function-size", s.path+" "+f.Name.Name):
			t.Errorf("%s: %s has %d lines, more than %d: divide it", tree.at(f), f.Name.Name, lines, hardFunctionLines)
		case lines > softFunctionLines:
			t.Logf("soft: %s: %s has %d lines, more than %d", tree.at(f), f.Name.Name, lines, softFunctionLines)
		}
	}
}

func TestPackageDocs(t *testing.T) {
	tree := mustLoad(t)
	docs := map[string]string{}
	for _, s := range tree.sources {
		if s.test {
			continue
		}
		docs[s.dir] += ""
		if s.file.Doc != nil {
			docs[s.dir] += s.file.Doc.Text()
		}
	}
	end := regexp.MustCompile(`[.!?]["')]?(\s|$)`)
	for _, dir := range slices.Sorted(maps.Keys(docs)) {
		if n := len(end.FindAllString(docs[dir], -1)); n < minPackageSentence {
			t.Errorf("package %s: its doc comment has %d sentences; say in at least %d what it is for, what it is not for and who uses it",
				dir, n, minPackageSentence)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	tree := mustLoad(t)
	for _, s := range tree.sources {
		if s.test || s.generated {
			continue
		}
		for _, decl := range s.file.Decls {
			for _, n := range undocumented(decl) {
				t.Errorf("%s: %s has no doc comment", tree.at(n), n.Name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration that have no comment. One comment serves a whole group of
// constants or variables.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, spec := range d.Specs {
			names = append(names, undocumentedSpec(spec, d.Doc)...)
		}
		return names
	}
	return nil
}

func undocumentedSpec(spec ast.Spec, group *ast.CommentGroup) []*ast.Ident {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.ValueSpec:
		if s.Doc != nil || s.Comment != nil || group != nil {
			return nil
		}
		for _, name := range s.Names {
			if name.IsExported() {
				names = append(names, name)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		if s.Doc == nil && group == nil {
			names = append(names, s.Name)
		}
		names = append(names, undocumentedMethods(s)...)
	}
	return names
}

// undocumentedMethods looks at the methods of an interface.
func undocumentedMethods(s *ast.TypeSpec) []*ast.Ident {
	i, ok := s.Type.(*ast.InterfaceType)
	if !ok {
		return nil
	}
	var names []*ast.Ident
	for _, method := range i.Methods.List {
		if len(method.Names) == 1 && method.Doc == nil && method.Comment == nil {
			names = append(names, method.Names[0])
		}
	}
	return names
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported || id.IsExported()
			return false
		}
		return true
	})
	return exported
}

func TestInterfacesAreSmall(t *testing.T) {
	tree := mustLoad(t)
	for _, s := range tree.sources {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if i, ok := spec.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > softInterfaceSize {
					t.Logf("soft: %s: interface %s has %d methods, more than %d", tree.at(spec), spec.Name.Name, i.Methods.NumFields(), softInterfaceSize)
				}
			}
			return true
		})
	}
}

// TestNothingWorksAtStart keeps start time flat: no init functions, and no package variable that is computed.
func TestNothingWorksAtStart(t *testing.T) {
	tree := mustLoad(t)
	for _, s := range tree.sources {
		if s.test {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !allowed("init", s.path) {
				t.Errorf("%s: no package does work at start; call it from where it is needed", tree.at(f))
			}
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, call := range startCalls(g) {
					if name := callName(call); !allowed("start", s.path+" "+name) {
						t.Errorf("%s: %s runs at start; wrap it in sync.OnceValue or make it a function", tree.at(call), name)
					}
				}
			}
		}
	}
}

// startCalls returns the calls that run when the package is initialised, without conversions and those that cost
// nothing. A function whose name ends in Once only wraps sync.OnceValue.
func startCalls(g *ast.GenDecl) []*ast.CallExpr {
	free := func(c *ast.CallExpr) bool {
		switch c.Fun.(type) {
		case *ast.ArrayType, *ast.ParenExpr:
			return true
		}
		name := callName(c)
		cheap := []string{"errors.New", "fmt.Errorf", "sync.OnceValue", "sync.OnceValues", "sync.OnceFunc", "make", "new", "len", "string", "reflect.TypeFor", "json.RawMessage"}
		return slices.Contains(cheap, name) || strings.HasSuffix(name, "Once")
	}
	var calls []*ast.CallExpr
	ast.Inspect(g, func(n ast.Node) bool {
		switch c := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if !free(c) {
				calls = append(calls, c)
			}
		}
		return true
	})
	return calls
}

func callName(c *ast.CallExpr) string {
	fun := c.Fun
	if i, ok := fun.(*ast.IndexExpr); ok {
		fun = i.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
		return f.Sel.Name
	}
	return fmt.Sprintf("%T", fun)
}

// TestContextsArePassed checks that a context is the first parameter and never kept in a struct.
func TestContextsArePassed(t *testing.T) {
	tree := mustLoad(t)
	for _, s := range tree.sources {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.FuncType:
				if at := contextParameter(d); at > 0 {
					t.Errorf("%s: the context must be the first parameter", tree.at(d))
				}
			case *ast.TypeSpec:
				if fields, ok := d.Type.(*ast.StructType); ok && !s.test && holdsContext(fields) && !allowed("context", s.path+" "+d.Name.Name) {
					t.Errorf("%s: %s keeps a context; pass it to the methods that need it", tree.at(d), d.Name.Name)
				}
			}
			return true
		})
	}
}

// contextParameter returns the position of the context among the parameters, not counting a leading *testing.T and its
// kin; 0 if it is the first or if there is none.
func contextParameter(f *ast.FuncType) int {
	at := 0
	for _, field := range f.Params.List {
		if isSelector(field.Type, "context", "Context") {
			return at
		}
		if star, ok := field.Type.(*ast.StarExpr); ok && isSelector(star.X, "testing", "") || isSelector(field.Type, "testing", "") {
			continue
		}
		at += max(1, len(field.Names))
	}
	return 0
}

func holdsContext(s *ast.StructType) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return isSelector(f.Type, "context", "Context") })
}

// isSelector reports whether e is pkg.name; an empty name stands for any.
func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && (name == "" || s.Sel.Name == name)
}

func TestTestsDoNotSleep(t *testing.T) {
	tree := mustLoad(t)
	for _, s := range tree.sources {
		if !s.test && !strings.HasSuffix(s.dir, "test") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "time", "Sleep") && !allowed("sleep", s.path) {
				t.Errorf("%s: a test must not depend on time; use testing/synctest or a channel", tree.at(call))
			}
			return true
		})
	}
}

func TestNothingIsLeftToDo(t *testing.T) {
	tree := mustLoad(t)
	mark := regexp.MustCompile(`^(//|/\*)\s*(TODO|FIXME|XXX|HACK)\b`)
	bare := regexp.MustCompile(`^//(nolint|lint:ignore \S+)\S*\s*$`)
	for _, s := range tree.sources {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if mark.MatchString(c.Text) {
					t.Errorf("%s: finish it, or describe it in an issue", tree.at(c))
				}
				if bare.MatchString(c.Text) {
					t.Errorf("%s: say why the linter is wrong here", tree.at(c))
				}
			}
		}
	}
}
