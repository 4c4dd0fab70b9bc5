package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// docs is what the sources say beside the types.
type docs struct {
	// types and fields hold doc comments by "Type" and "Type.Field".
	types, fields map[string]string
	// enums hold the values of the constants of a named string type, in the order of the source.
	enums map[string][]string
}

// readDocs reads the packages in dirs. Type names are unique over them as far as the contract uses them.
func readDocs(dirs ...string) (*docs, error) {
	d := &docs{types: map[string]string{}, fields: map[string]string{}, enums: map[string][]string{}}
	files := token.NewFileSet()
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, &fs.PathError{Op: "read sources", Path: dir, Err: fs.ErrNotExist}
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			d.readFile(file)
		}
	}
	return d, nil
}

func (d *docs) readFile(file *ast.File) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				comment := s.Doc
				if comment == nil {
					comment = general.Doc
				}
				d.readType(s, comment)
			case *ast.ValueSpec:
				d.readConstant(s)
			}
		}
	}
}

func (d *docs) readType(s *ast.TypeSpec, comment *ast.CommentGroup) {
	d.types[s.Name.Name] = sentence(comment.Text())
	structure, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		text := field.Doc.Text()
		if text == "" {
			text = field.Comment.Text()
		}
		for _, name := range field.Names {
			d.fields[s.Name.Name+"."+name.Name] = sentence(text)
		}
	}
}

func (d *docs) readConstant(s *ast.ValueSpec) {
	named, ok := s.Type.(*ast.Ident)
	if !ok || len(s.Values) != 1 {
		return
	}
	literal, ok := s.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return
	}
	if value, err := strconv.Unquote(literal.Value); err == nil {
		d.enums[named.Name] = append(d.enums[named.Name], value)
	}
}

// sentence makes one line of a comment.
func sentence(comment string) string { return strings.Join(strings.Fields(comment), " ") }
