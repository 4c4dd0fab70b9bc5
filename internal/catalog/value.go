package catalog

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kind is the kind of a value as YAML 1.2 reads it.
type kind int

const (
	kindNull kind = iota
	kindText
	kindNumber
	kindBool
	kindList
	kindMapping
)

// String returns the kind with its article, for messages.
func (k kind) String() string {
	return [...]string{"an empty value", "text", "a number", "a boolean", "a list", "a mapping"}[k]
}

// value is one node of a frontmatter with its place.
type value struct {
	kind kind
	// text is a scalar as written, without quotes.
	text string
	// keys and items are the entries of a mapping in the author's order; a list has items only.
	keys  []value
	items []value
	mark  mark
	// comment is what follows a scalar on its line.
	comment string
}

// get returns the entry of a mapping, nil if there is none.
func (v value) get(key string) *value {
	for i := range v.keys {
		if v.keys[i].text == key {
			return &v.items[i]
		}
	}
	return nil
}

const (
	maxDepth = 16
	// maxKey keeps every key, however it is escaped, below the 1024 characters at which YAML stops to take it for one.
	maxKey = 128
)

// converter turns the nodes of the YAML library into values and reports everything outside the subset.
type converter struct{ findings }

// convert returns n as a value. The pointer is n's place in the frontmatter.
func (c converter) convert(n *yaml.Node, pointer string, depth int) value {
	v := value{mark: mark{n.Line, n.Column}}
	if depth > maxDepth {
		c.add(CodeFrontmatterInvalid, pointer, v.mark, "", "values are nested too deeply; at most "+strconv.Itoa(maxDepth)+" levels are allowed")
		return v
	}
	c.refuse(n, pointer, v.mark)
	switch n.Kind {
	case yaml.ScalarNode:
		v.text, v.kind, v.comment = n.Value, scalarKind(n), n.LineComment
	case yaml.SequenceNode:
		v.kind = kindList
		for i, item := range n.Content {
			v.items = append(v.items, c.convert(item, pointer+"/"+strconv.Itoa(i), depth+1))
		}
	case yaml.MappingNode:
		v.kind = kindMapping
		c.entries(n, &v, pointer, depth)
	}
	return v
}

// refuse reports the parts of YAML that let a file say something other than what it shows.
func (c converter) refuse(n *yaml.Node, pointer string, at mark) {
	if n.Kind == yaml.AliasNode {
		c.add(CodeFrontmatterInvalid, pointer, at, "write the value out, or put it in quotes if it is text", "an alias (*"+n.Value+") is not allowed")
	}
	if n.Anchor != "" && n.Kind != yaml.AliasNode {
		c.add(CodeFrontmatterInvalid, pointer, at, "remove it, or put the value in quotes if it is text", "an anchor (&"+n.Anchor+") is not allowed")
	}
	if n.Style&yaml.TaggedStyle != 0 {
		c.add(CodeFrontmatterInvalid, pointer, at, "remove it, or put the value in quotes if it is text", "a tag ("+n.Tag+") is not allowed")
	}
}

func (c converter) entries(n *yaml.Node, v *value, pointer string, depth int) {
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		at := mark{k.Line, k.Column}
		c.refuse(k, pointer, at)
		switch {
		case k.Kind != yaml.ScalarNode:
			c.add(CodeKeyInvalid, pointer, at, "", "a key must be text")
			continue
		case k.Value == "<<" && k.Style == 0:
			c.add(CodeFrontmatterInvalid, pointer, at, "write the keys out", "a merge key (<<) is not allowed")
			continue
		case k.Value == "" || len(k.Value) > maxKey:
			c.add(CodeKeyInvalid, pointer, at, "", "a key must have 1 to "+strconv.Itoa(maxKey)+" bytes")
			continue
		}
		child := pointer + "/" + escapePointer(k.Value)
		if first, twice := lines[k.Value]; twice {
			c.add(CodeKeyDuplicate, child, at, "keep one of the two", "key "+strconv.Quote(k.Value)+" stands on line "+strconv.Itoa(first)+" already")
			continue
		}
		lines[k.Value] = k.Line
		v.keys = append(v.keys, value{kind: kindText, text: k.Value, mark: at})
		v.items = append(v.items, c.convert(n.Content[i+1], child, depth+1))
	}
}

// escapePointer escapes one token of a JSON Pointer.
func escapePointer(token string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

// scalarKind reads a scalar by the core schema of YAML 1.2, in which yes, on, 1:30 and 2026-01-02 are text.
func scalarKind(n *yaml.Node) kind {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return kindText
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return kindNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return kindBool
	}
	if looksNumeric(n.Value) {
		return kindNumber
	}
	return kindText
}

// looksNumeric reports whether the core schema reads s as a number.
func looksNumeric(s string) bool {
	if strings.HasPrefix(s, "0x") {
		return len(s) > 2 && strings.Trim(s[2:], "0123456789abcdefABCDEF") == ""
	}
	if strings.HasPrefix(s, "0o") {
		return len(s) > 2 && strings.Trim(s[2:], "01234567") == ""
	}
	unsigned := strings.TrimLeft(s[:1], "+-") + s[1:]
	switch unsigned {
	case ".inf", ".Inf", ".INF":
		return true
	case ".nan", ".NaN", ".NAN":
		return unsigned == s
	}
	if strings.Trim(unsigned, "0123456789.eE+-") != "" {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil || isRange(err)
}

func isRange(err error) bool {
	return strings.HasSuffix(err.Error(), strconv.ErrRange.Error())
}

// isJSONNumber reports whether a number is written as JSON writes it, so that every reader sees the same one.
func isJSONNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}
