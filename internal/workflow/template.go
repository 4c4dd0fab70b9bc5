package workflow

import (
	"slices"
	"strings"

	"github.com/hozo-run/hozo/problem"
)

// template is a text with places such as {{ focus }}. Two braces that are meant as such are written \{{. What fills a place
// is text and never looked at again, whatever braces it holds.
type template struct {
	// parts alternate: text, name of a place, text, …
	parts []string
}

// parseTemplate splits a text at its places. It returns the places that are not in known, and "{{" for one without end.
func parseTemplate(text string, known []string) (template, []string) {
	var t template
	var unknown []string
	var part strings.Builder
	for text != "" {
		before, rest, found := strings.Cut(text, "{{")
		if !found {
			part.WriteString(text)
			break
		}
		if escaped, ok := strings.CutSuffix(before, `\`); ok {
			part.WriteString(escaped + "{{")
			text = rest
			continue
		}
		part.WriteString(before)
		inside, after, closed := strings.Cut(rest, "}}")
		if !closed {
			unknown = append(unknown, "{{")
			break
		}
		name := strings.TrimSpace(inside)
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
		t.parts = append(t.parts, part.String(), name)
		part.Reset()
		text = after
	}
	t.parts = append(t.parts, part.String())
	return t, unknown
}

// render fills the places.
func (t template) render(values map[string]string) string {
	var b strings.Builder
	for i, part := range t.parts {
		if i%2 == 1 {
			part = values[part]
		}
		b.WriteString(part)
	}
	return b.String()
}

// template parses a text of the file and reports places that nothing fills.
func (f *file) template(pointer, text string, known []string) template {
	t, unknown := parseTemplate(text, known)
	for _, name := range unknown {
		hint := `write \{{ for braces that are meant as such`
		if near := problem.Closest(name, known); near != "" {
			hint = "did you mean {{ " + near + " }}?"
		} else if len(known) > 0 {
			hint = "known places: " + strings.Join(known, ", ") + `; write \{{ for braces that are meant as such`
		}
		if name == "{{" {
			f.add(CodePlaceholderUnknown, pointer, `write \{{ for braces that are meant as such`, "a place that begins with {{ never ends")
			continue
		}
		f.add(CodePlaceholderUnknown, pointer, hint, "nothing fills the place {{ %s }}", name)
	}
	return t
}
