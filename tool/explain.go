package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The validator decides whether arguments fit and stops at the first fault. What follows only explains its refusal: it
// names every fault of the common kinds in one answer, so that a model can mend a call at once.

// maxFaults bounds the lines of an explanation.
const maxFaults = 20

// explain says why value does not fit, one line a fault, sorted by place.
func (s *lazySchema) explain(value any) error {
	e := &explanation{schema: s}
	e.visit(s.node, value, "", 0)
	slices.Sort(e.lines)
	lines := slices.Compact(e.lines)
	switch {
	case len(lines) == 0:
		return errors.New(s.whole() + ": does not fit the schema")
	case len(lines) > maxFaults:
		lines = append(lines[:maxFaults:maxFaults], fmt.Sprintf("… and %d more", len(lines)-maxFaults))
	}
	return errors.New(strings.Join(lines, "\n"))
}

type explanation struct {
	schema *lazySchema
	lines  []string
}

func (e *explanation) add(place, format string, args ...any) {
	if place == "" {
		place = e.schema.whole()
	}
	e.lines = append(e.lines, place+": "+fmt.Sprintf(format, args...))
}

// visit names the faults of value at place. depth bounds recursive schemas.
func (e *explanation) visit(node any, value any, place string, depth int) {
	object, ok := e.schema.resolve(node).(map[string]any)
	if !ok || depth > 32 {
		return
	}
	types := acceptedTypes(object)
	if len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return hasType(value, t) }) {
		e.add(place, "is %s, must be %s", typeOf(value), strings.Join(types, " or "))
		return
	}
	e.checkWords(object, value, place)
	switch v := value.(type) {
	case map[string]any:
		e.visitObject(object, v, place, depth)
	case []any:
		e.checkRange(object, "minItems", "maxItems", float64(len(v)), "have", " items", place)
		if items, ok := object["items"]; ok {
			for i := range v {
				e.visit(items, v[i], join(place, fmt.Sprint(i)), depth+1)
			}
		}
	case string:
		e.checkRange(object, "minLength", "maxLength", float64(utf8.RuneCountInString(v)), "have", " characters", place)
	case json.Number:
		if f, err := v.Float64(); err == nil {
			e.checkRange(object, "minimum", "maximum", f, "be", "", place)
		}
	}
}

func (e *explanation) visitObject(node, value map[string]any, place string, depth int) {
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	var missing, unknown []string
	for _, name := range required {
		if key, ok := name.(string); ok && !has(value, key) {
			missing = append(missing, key)
		}
	}
	for key, v := range value {
		switch property, known := properties[key]; {
		case known:
			e.visit(property, v, join(place, key), depth+1)
		case node["additionalProperties"] == false && node["patternProperties"] == nil:
			unknown = append(unknown, key)
		}
	}
	if len(missing) > 0 {
		e.add(place, "missing: %s", strings.Join(missing, ", "))
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		e.add(place, "unknown: %s", strings.Join(unknown, ", "))
	}
}

// checkWords names a value that is none of the words allowed.
func (e *explanation) checkWords(node map[string]any, value any, place string) {
	allowed, ok := node["enum"].([]any)
	if !ok {
		return
	}
	same := func(word any) bool {
		a, errA := json.Marshal(word)
		b, errB := json.Marshal(value)
		return errA == nil && errB == nil && string(a) == string(b)
	}
	if slices.ContainsFunc(allowed, same) {
		return
	}
	if words, err := json.Marshal(allowed); err == nil {
		e.add(place, "must be one of %s", words)
	}
}

// checkRange names a number, or a size, that lies outside of its bounds.
func (e *explanation) checkRange(node map[string]any, low, high string, n float64, verb, what, place string) {
	if bound, ok := number(node[low]); ok && n < bound {
		e.add(place, "must %s at least %v%s", verb, node[low], what)
	}
	if bound, ok := number(node[high]); ok && n > bound {
		e.add(place, "must %s at most %v%s", verb, node[high], what)
	}
}

func number(value any) (float64, bool) {
	n, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func has(object map[string]any, key string) bool {
	_, ok := object[key]
	return ok
}

func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

func typeOf(value any) string {
	for _, name := range []string{"null", "boolean", "string", "number", "array", "object"} {
		if hasType(value, name) {
			return name
		}
	}
	return "unknown"
}
