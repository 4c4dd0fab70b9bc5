package textcall

import (
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// Offer is the set of tools that a dialog offers to its model. It is safe for concurrent use.
type Offer struct {
	tools []llm.ToolSpec
	exact map[string]*offered
	// folded finds a tool by its name without case, hyphens and underscores; nil where two tools have the same.
	folded map[string]*offered
}

// offered is one tool with its schema as data; a schema that cannot be read is null.
type offered struct {
	name   string
	schema value
}

// NewOffer prepares tools for Parse. A schema that is no JSON gives no help with arguments, and nothing else happens:
// who declares a tool checks its schema.
func NewOffer(tools []llm.ToolSpec) *Offer {
	o := &Offer{tools: tools, exact: make(map[string]*offered, len(tools)), folded: make(map[string]*offered, len(tools))}
	for _, spec := range tools {
		t := &offered{name: spec.Name}
		r := reader{text: string(spec.InputSchema), work: newMeter(len(spec.InputSchema))}
		if schema, err := r.value(); err == nil && !r.repaired {
			t.schema = schema
		}
		o.exact[spec.Name] = t
		key := fold(spec.Name)
		if _, taken := o.folded[key]; taken {
			t = nil
		}
		o.folded[key] = t
	}
	return o
}

// find returns the tool that a written name means, nil if that is none or not clear.
func (o *Offer) find(name string) *offered {
	name = strings.TrimSpace(name)
	if t := o.exact[name]; t != nil {
		return t
	}
	for _, prefix := range []string{"functions.", "default_api.", "tools."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if t := o.exact[rest]; t != nil {
				return t
			}
			name = rest
			break
		}
	}
	return o.folded[fold(name)]
}

func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// demands reports whether the schema has a property without which no call is valid.
func (t *offered) demands() bool {
	required, _ := t.schema.member("required")
	return len(required.items) > 0
}

// property returns the schema of a property, null if it is not declared, and whether it must be given.
func property(schema value, name string) (value, bool) {
	properties, _ := schema.member("properties")
	found, _ := properties.member(name)
	required, _ := schema.member("required")
	for _, r := range required.items {
		if r.kind == kindString && r.text == name {
			return found, true
		}
	}
	return found, false
}

// single returns the name of the only property, "" if there are more or none.
func (t *offered) single() string {
	properties, _ := t.schema.member("properties")
	if len(properties.keys) != 1 {
		return ""
	}
	return properties.keys[0]
}
