package catalog

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readFront reads the frontmatter of d as one mapping. It reports what it finds; false means that nothing can be read.
func readFront(d document, f findings) (value, bool) {
	if len(d.front) > MaxFrontmatter {
		f.add(CodeFileTooLarge, "", mark{1, 1}, "long text belongs below the frontmatter",
			fmt.Sprintf("the frontmatter has %d bytes; at most %d are allowed", len(d.front), MaxFrontmatter))
		return value{}, false
	}
	lines := strings.Split(string(d.front), "\n")
	node, err := decode(lines)
	if err != nil && quoteColons(lines, f) {
		// The colon findings are made; with those values quoted the rest of the file can be checked too.
		node, err = decode(lines)
	}
	if err != nil {
		at, text := yamlError(err, lines)
		f.add(CodeFrontmatterInvalid, "", at, yamlHint(text), "the frontmatter is not valid YAML: "+text)
		return value{}, false
	}
	if node == nil {
		return value{kind: kindMapping, mark: mark{2, 1}}, true
	}
	v := converter{f}.convert(node, "", 0)
	if v.kind != kindMapping {
		f.add(CodeFrontmatterInvalid, "", v.mark, "write one key: value per line", "the frontmatter is "+v.kind.String()+", not a mapping")
		return value{}, false
	}
	return v, true
}

// decode parses the lines of a frontmatter, which starts on line 2 of its file. It returns nil for an empty one.
func decode(lines []string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader("\n" + strings.Join(lines, "\n")))
	var doc, second yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("line %d: a second document begins here", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" && root.Value == "" {
		return nil, nil
	}
	return root, nil
}

// quoteColons finds the top-level values in which an unquoted ": " makes YAML see a mapping, reports each, and puts them
// in quotes so that parsing can go on. It returns false if there are none.
func quoteColons(lines []string, f findings) bool {
	found := false
	for i, line := range lines {
		key, text, ok := strings.Cut(strings.TrimRight(line, "\r"), ": ")
		text = strings.TrimRight(text, " \t")
		start := len(text) - len(strings.TrimLeft(text, " "))
		plain := text[start:]
		if !ok || !isPlainKey(key) || plain == "" || strings.ContainsAny(plain[:1], "\"'|>[{&*!#%@`") {
			continue
		}
		colon := strings.Index(plain, ": ")
		if colon < 0 && strings.HasSuffix(plain, ":") {
			colon = len(plain) - 1
		}
		if colon < 0 {
			continue
		}
		found = true
		column := len(key) + len(": ") + start + colon + 1
		f.add(CodeFrontmatterInvalid, "/"+key, mark{i + 2, column}, "put the value in quotes: "+key+": "+excerpt(strconv.Quote(plain)),
			"a colon inside an unquoted value starts a new mapping")
		lines[i] = key + ": " + quoted(plain)
	}
	return found
}

func isPlainKey(key string) bool {
	return key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// excerpt cuts a long text for a message.
func excerpt(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// yamlError divides an error of the YAML library into its place and the rest. Where the library names the beginning of
// what it was reading, but a tab is the fault, the place is that of the tab.
func yamlError(err error, lines []string) (mark, string) {
	line, text := yamlLine(strings.TrimPrefix(err.Error(), "yaml: "))
	if !strings.Contains(text, "tab character") {
		return mark{line, 1}, text
	}
	for i := max(line-2, 0); i < len(lines); i++ {
		indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " \t"))]
		if tab := strings.IndexByte(indent, '\t'); tab >= 0 {
			return mark{i + 2, tab + 1}, text
		}
	}
	return mark{line, 1}, text
}

// yamlLine takes the number of the line off a text of the YAML library.
func yamlLine(text string) (int, string) {
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, after, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(number); err == nil {
				return max(line, 1), after
			}
		}
	}
	return 1, text
}

// yamlHint explains the YAML faults that people make most.
func yamlHint(text string) string {
	switch {
	case strings.Contains(text, "mapping values are not allowed"):
		return "a value that holds a colon and a blank must be in quotes"
	case strings.Contains(text, "cannot start any token"), strings.Contains(text, "tab character"):
		return "indent with blanks, not tabs; a value that begins with @, ` or % must be in quotes"
	case strings.Contains(text, "expected <block end>"), strings.Contains(text, "could not find expected ':'"):
		return "check the indentation and the quotes around this line"
	}
	return ""
}
