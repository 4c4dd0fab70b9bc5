package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// FromYAML converts one YAML document to JSON. It is strict: duplicate keys, keys that are no strings, aliases, merge
// keys, infinities and a second document are problems, and each is reported with its line. A date stays the text that was
// written. It serves the command line, where scripts are files; a job spec carries JSON.
func FromYAML(data []byte) (json.RawMessage, error) {
	found := &findings{name: "script"}
	root := parseYAML(data, found)
	if err := found.list.Err("read YAML"); err != nil {
		return nil, err
	}
	return root.appendJSON(nil), nil
}

// parseYAML reads exactly one YAML document. It returns nil after a syntax error.
func parseYAML(data []byte, found *findings) *node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the document is empty")
		}
		found.add(&node{line: yamlLine(err), column: 1}, "syntax", "", "not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	root := fromYAML(doc.Content[0], "", 0, found)
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		found.add(&node{line: max(second.Line, 1), column: 1}, "syntax", "", "there is more text after the document")
	}
	return root
}

var yamlLineNumber = regexpOnce(`^yaml: line (\d+):`)

// yamlLine finds the line that a syntax error names in its text, which is the only place where the library keeps it.
func yamlLine(err error) int {
	if m := yamlLineNumber().FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits by the expression; an absurd count leaves 0, unknown
		return line
	}
	return 0
}

func fromYAML(y *yaml.Node, pointer string, depth int, found *findings) *node {
	n := &node{line: y.Line, column: y.Column}
	switch {
	case depth > maxDepth:
		found.add(n, "syntax", pointer, "nested deeper than %d levels", maxDepth)
	case y.Kind == yaml.AliasNode:
		found.addHint(n, "alias", pointer, "write the value out", "YAML aliases are not supported")
	case y.Kind == yaml.SequenceNode:
		n.kind = kindList
		for i, element := range y.Content {
			n.list = append(n.list, fromYAML(element, pointer+"/"+strconv.Itoa(i), depth+1, found))
		}
	case y.Kind == yaml.MappingNode:
		n.kind = kindObject
		for i := 0; i+1 < len(y.Content); i += 2 {
			n.yamlMember(y.Content[i], y.Content[i+1], pointer, depth, found)
		}
	default:
		if err := n.yamlScalar(y); err != nil {
			found.add(n, "wrong-type", pointer, "%v", err)
		}
	}
	return n
}

func (n *node) yamlMember(key, value *yaml.Node, pointer string, depth int, found *findings) {
	at := pointer + "/" + escape(key.Value)
	v := fromYAML(value, at, depth+1, found)
	switch tag := key.ShortTag(); {
	case key.Kind != yaml.ScalarNode || tag != "!!str":
		found.addHint(&node{line: key.Line, column: key.Column}, "wrong-type", at, "quote it", "a key must be a string, not %s", tag)
	default:
		n.add(member{key.Value, v}, at, found)
	}
}

var jsonNumber = regexpOnce(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (n *node) yamlScalar(y *yaml.Node) error {
	n.text = y.Value
	switch tag := y.ShortTag(); tag {
	case "!!str", "!!timestamp":
		n.kind = kindString
	case "!!null":
		n.kind = kindNull
	case "!!bool":
		n.kind, n.text = kindBool, strings.ToLower(y.Value)
	case "!!int", "!!float":
		n.kind = kindNumber
		if jsonNumber().MatchString(y.Value) {
			return nil
		}
		return n.yamlNumber(y)
	default:
		return fmt.Errorf("values of type %s are not supported", tag)
	}
	return nil
}

// yamlNumber rewrites the number forms that JSON lacks (hexadecimal, underscores, a leading point).
func (n *node) yamlNumber(y *yaml.Node) error {
	var whole int64
	if y.ShortTag() == "!!int" && y.Decode(&whole) == nil {
		n.text = strconv.FormatInt(whole, 10)
		return nil
	}
	var f float64
	if err := y.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return fmt.Errorf("%q is no finite number", y.Value)
	}
	n.text = strconv.FormatFloat(f, 'g', -1, 64)
	return nil
}

// regexpOnce compiles an expression when it is first used, so that starting the program costs nothing.
func regexpOnce(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
