package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/tool"
)

// doubling is a schema whose ways part and meet again n times for one value.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{%s"d%d":{"type":"string"}}}`, b.String(), n)
}

func TestASchemaThatRefersToItselfInACircleIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"itself":         `{"type":"object","$ref":"#"}`,
		"each other":     `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`,
		"in a property":  `{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"$ref":"#/properties/x"}]}}}`,
		"by an anchor":   `{"type":"object","properties":{"x":{"$anchor":"n","oneOf":[{"$ref":"#n"}]}}}`,
		"dynamically":    `{"type":"object","$dynamicAnchor":"n","if":{"$dynamicRef":"#n"}}`,
		"escaped":        `{"type":"object","$ref":"#/$defs/a%20b~1c","$defs":{"a b/c":{"$ref":"#/$defs/a%20b~1c"}}}`,
		"dependent":      `{"type":"object","dependentSchemas":{"x":{"$ref":"#"}}}`,
		"another letter": `{"type":"object","AllOf":[{"$ref":"#"}],"allOf":[{"$ref":"#"}]}`,
		"never used":     `{"type":"object","$defs":{"a":{"$ref":"#/$defs/a"}}}`,
	} {
		if _, err := tool.NewSchema(json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), "circle") {
			t.Errorf("%s: the error of a schema for answers is %v", name, err)
		}
		if _, err := tool.Raw(declare("a", text), echo); err == nil || !strings.Contains(err.Error(), "circle") {
			t.Errorf("%s: the error of a tool is %v", name, err)
		}
	}
}

func TestARecursiveSchemaTakesValuesOfAnyDepth(t *testing.T) {
	t.Parallel()
	s, err := tool.NewSchema(json.RawMessage(`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","additionalProperties":{"$ref":"#/$defs/node"},
		"properties":{"left":{"$ref":"#/$defs/node"},"right":{"$ref":"#/$defs/node"},"list":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"a chain": strings.Repeat(`{"left":`, 60) + `{}` + strings.Repeat(`}`, 60),
		"a list":  `{"list":[` + strings.Repeat(`{"right":{"other":{}}},`, 5000) + `{}]}`,
		"wide":    `{"left":{"list":[{}, {}]},"right":{"x":{},"y":{}}}`,
	} {
		if err := s.Explain(json.RawMessage(value)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Explain(json.RawMessage(`{"left":{"right":7}}`)); err == nil {
		t.Error("a number passed for a node")
	}
}

func TestAValidationThatWouldNotEndInTimeIsNotBegun(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"v":`, 50) + `1` + strings.Repeat(`}`, 50)
	node := `{"$ref":"#/$defs/n","type":"object","$defs":{"n":{"type":"object","properties":{"v":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}}}`
	for name, test := range map[string]struct{ schema, value string }{
		"for one value":   {doubling(60), `{"a":5}`},
		"at each level":   {node, nested},
		"with long texts": {doubling(12), `{"a":"` + strings.Repeat("x", 200_000) + `"}`},
	} {
		s, err := tool.NewSchema(json.RawMessage(test.schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Explain(json.RawMessage(test.value)); err == nil || !strings.Contains(err.Error(), "not checked") {
			t.Errorf("%s: the error of an answer is %v", name, err)
		}
		made, err := tool.Raw(declare("a", test.schema), echo)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := made.PrepareArguments(json.RawMessage(test.value)); err == nil || !strings.Contains(err.Error(), "not checked") {
			t.Errorf("%s: the error of arguments is %v", name, err)
		}
	}
}

func TestAlternativesAndLongTextsAreChecked(t *testing.T) {
	t.Parallel()
	s, err := tool.NewSchema(json.RawMessage(doubling(5)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Explain(json.RawMessage(`{"a":"` + strings.Repeat("x", 400_000) + `"}`)); err != nil {
		t.Error(err)
	}
}

func TestAPartWithAnIDOfItsOwnTakesNoReferences(t *testing.T) {
	t.Parallel()
	_, err := tool.NewSchema(json.RawMessage(`{"$id":"https://example.com/a","properties":{"x":{"$id":"https://example.com/b","$ref":"#"}}}`))
	if err == nil || !strings.Contains(err.Error(), "#/properties/x: an $id") {
		t.Errorf("got %v", err)
	}
}
