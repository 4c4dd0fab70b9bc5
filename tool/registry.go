package tool

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Registry is the set of tools of one runtime, in the order in which they are offered to models. It is built once by the
// program that wires the runtime and read-only afterwards.
type Registry struct {
	tools  []Tool
	byName map[string]int
}

// NewRegistry returns a registry of these tools. A tool without a complete declaration, or a second one of the same name,
// is an error.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byName: make(map[string]int, len(tools))}
	for _, t := range tools {
		if err := t.check(); err != nil {
			return nil, err
		}
		if _, twice := r.byName[t.Name]; twice {
			return nil, fmt.Errorf("tool %q is registered twice", t.Name)
		}
		r.byName[t.Name] = len(r.tools)
		r.tools = append(r.tools, t)
	}
	return r, nil
}

// Tools returns every tool in order. The slice is the caller's.
func (r *Registry) Tools() []Tool { return slices.Clone(r.tools) }

// Names returns every name in order.
func (r *Registry) Names() []string {
	names := make([]string, len(r.tools))
	for i, t := range r.tools {
		names[i] = t.Name
	}
	return names
}

// Select returns the tools of an allowlist: nil selects all, an empty list none. Unknown names are problems at
// /agent/tools/<index>, all of them, except those for which lent reports that somebody else has the tool (see Set.With);
// lent may be nil. The order is the registry's, so that it does not depend on the list.
func (r *Registry) Select(allow []string, lent func(name string) bool) (*Set, problem.List) {
	if allow == nil {
		return newSet(r.tools, nil), nil
	}
	var problems problem.List
	chosen := make([]bool, len(r.tools))
	for i, name := range allow {
		at, known := r.byName[name]
		switch {
		case !known && lent != nil && lent(name):
		case !known:
			problems.AddHint("unknown-tool", fmt.Sprintf("/agent/tools/%d", i), "known tools: "+strings.Join(r.Names(), ", "),
				"unknown tool %q", name)
		case chosen[at]:
			problems.Add("duplicate-tool", fmt.Sprintf("/agent/tools/%d", i), "tool %q is listed twice", name)
		default:
			chosen[at] = true
		}
	}
	var tools []Tool
	for i, t := range r.tools {
		if chosen[i] {
			tools = append(tools, t)
		}
	}
	return newSet(tools, nil), problems
}

// Set is the tools of one agent.
type Set struct {
	tools  []Tool
	byName map[string]int
	// hidden are tools that only other tools can call.
	hidden []Tool
}

func newSet(tools, hidden []Tool) *Set {
	s := &Set{tools: tools, byName: make(map[string]int, len(tools)), hidden: hidden}
	for i, t := range tools {
		s.byName[t.Name] = i
	}
	return s
}

// With returns a set that holds lent tools behind those of s. If a tool of s makes scripts, those of lent that are
// Scripted are for scripts alone: they are neither declared to the model nor found by it. A name that is taken already, by
// a tool of s or twice among lent, is an error: no tool from outside stands in for another.
func (s *Set) With(lent ...Tool) (*Set, error) {
	scripts := slices.ContainsFunc(s.tools, func(t Tool) bool { return t.Describe != nil })
	tools, hidden := slices.Clone(s.tools), slices.Clone(s.hidden)
	seen := map[string]bool{}
	for _, t := range slices.Concat(s.tools, s.hidden) {
		seen[t.Name] = true
	}
	for _, t := range lent {
		if err := t.checkBody(); err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("tool %q: the name is taken", t.Name)
		}
		seen[t.Name] = true
		if scripts && t.Scripted {
			hidden = append(hidden, t)
		} else {
			tools = append(tools, t)
		}
	}
	return newSet(tools, hidden), nil
}

// Len returns the number of tools.
func (s *Set) Len() int { return len(s.tools) }

// Names returns the names in the order in which they are offered.
func (s *Set) Names() []string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	return names
}

// Find returns the tool of this name, nil if there is none.
func (s *Set) Find(name string) *Tool {
	if at, ok := s.byName[name]; ok {
		return &s.tools[at]
	}
	return nil
}

// Specs returns the declarations for a model, in order.
func (s *Set) Specs() []llm.ToolSpec {
	specs := make([]llm.ToolSpec, len(s.tools))
	for i, t := range s.tools {
		specs[i] = t.spec()
		if t.Describe != nil {
			specs[i].Description = t.Describe(s.Scripted())
		}
	}
	return specs
}

// Scripted returns the declarations of the tools that scripts may call, in order.
func (s *Set) Scripted() []llm.ToolSpec {
	var specs []llm.ToolSpec
	for _, t := range s.tools {
		if t.Scripted {
			specs = append(specs, t.spec())
		}
	}
	for _, t := range s.hidden {
		specs = append(specs, t.spec())
	}
	return specs
}

// FindScripted returns the tool of this name if scripts may call it, nil if not.
func (s *Set) FindScripted(name string) *Tool {
	if t := s.Find(name); t != nil && t.Scripted {
		return t
	}
	if at := slices.IndexFunc(s.hidden, func(t Tool) bool { return t.Name == name }); at >= 0 {
		return &s.hidden[at]
	}
	return nil
}

func (t *Tool) spec() llm.ToolSpec {
	return llm.ToolSpec{Name: t.Name, Description: t.Description, InputSchema: t.compiled.compact()}
}

// check reports the first thing that keeps t from being registered.
func (t *Tool) check() error {
	if !kernelName(t.Name) {
		return fmt.Errorf("tool %q: the name must match [a-z][a-z0-9_]* and have at most 64 bytes", t.Name)
	}
	return t.checkBody()
}

// checkBody is check without the rule for the name.
func (t *Tool) checkBody() error {
	b := t.Boundary
	switch {
	case strings.TrimSpace(t.Description) == "":
		return fmt.Errorf("tool %q has no description", t.Name)
	case t.Effect != EffectRead && t.Effect != EffectWrite && t.Effect != EffectExternal:
		return fmt.Errorf("tool %q has no effect", t.Name)
	case b.Reads == "" || b.Writes == "" || b.Network == "" || b.Processes == "" || b.Secrets == "":
		return fmt.Errorf("tool %q: every field of its security boundary must be filled in (write \"none\")", t.Name)
	case t.Scripted && t.Effect != EffectRead:
		return fmt.Errorf("tool %q: scripts may call only tools of effect read", t.Name)
	case t.Run == nil || t.compiled == nil || len(t.InputSchema) == 0:
		return fmt.Errorf("tool %q was not made with New or Raw", t.Name)
	}
	return nil
}

func kernelName(name string) bool {
	if name == "" || len(name) > 64 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for _, c := range name {
		if c != '_' && !syntax.IsWordChar(c) || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}
