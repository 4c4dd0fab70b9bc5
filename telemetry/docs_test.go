package telemetry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentNamesEverything compares docs/observability.md with the names and variables of the code.
func TestDocumentNamesEverything(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(document), -1) {
		named[m[1]] = true
	}
	n := 0
	for _, name := range []string{"names.go", "settings.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			variable := strings.HasPrefix(text, "OTEL_") && !strings.ContainsAny(text, " %") && !strings.HasSuffix(text, "_")
			word := regexp.MustCompile(`^(gen_ai|hozo|error|mcp|otel|service)\.[a-z_.]+$`).MatchString(text)
			if !variable && !word {
				return true
			}
			n++
			if !named[text] {
				t.Errorf("docs/observability.md does not name %s", text)
			}
			return true
		})
	}
	if n < 50 {
		t.Errorf("only %d names were found; the test is wrong", n)
	}
}

func TestSetsOfNamesHaveInstrumentsOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for set, n := range map[string]*names{"1.41": namesOf141(), "latest": namesLatest()} {
		v := reflect.ValueOf(n).Elem()
		for i := range v.NumField() {
			of := v.Field(i)
			if of.Kind() != reflect.Pointer || of.IsNil() {
				continue
			}
			name := of.Elem().FieldByName("name").String()
			if other := seen[name]; other != "" {
				t.Errorf("%s is an instrument of %s and of %s", name, other, set)
			}
			seen[name] = set
		}
	}
}
