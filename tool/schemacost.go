package tool

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The validator follows a schema wherever it leads. One that comes back to itself without going into the value would never
// let it end, and one whose ways part and meet again makes it do everything twice at each step. Schemas come from people
// and from servers, so the ways are looked at first: circles when a schema is compiled, the cost before each validation.

const (
	// maxCheckCost bounds one validation: a look at a value costs lookCost and the size of the value, which may be quoted.
	maxCheckCost = 256 << 20
	lookCost     = 512
)

// errTooCostly is for the model.
var errTooCostly = errors.New("the schema looks at parts of this value so often that it was not checked; use a smaller or flatter value")

// schemaGraph is a schema as the places that the validator looks at. The first is the whole schema.
type schemaGraph struct {
	nodes []schemaNode
	// byPlace finds nodes by JSON Pointer, byAnchor by name.
	byPlace  map[string]int
	byAnchor map[string][]int
}

// schemaNode is one schema and where the validator goes from it.
type schemaNode struct {
	schema *jsonschema.Schema
	place  string
	// same are for the value itself, items and members for each thing in it, others for members that named does not name.
	same, items, members, others []int
	named                        map[string]int
}

// graphOf reads a schema that resolves. The error says that a validation might not end, or that this cannot be told.
func graphOf(schema *jsonschema.Schema) (*schemaGraph, error) {
	g := &schemaGraph{byPlace: map[string]int{}, byAnchor: map[string][]int{}}
	g.add(schema, "")
	for i := range g.nodes {
		n := &g.nodes[i]
		for _, ref := range []string{n.schema.Ref, n.schema.DynamicRef} {
			if ref == "" {
				continue
			}
			to, err := g.follow(ref)
			if err != nil {
				return nil, err
			}
			n.same = append(n.same, to...)
		}
	}
	return g, g.checkCircles()
}

// add adds a schema with all that it holds and returns its number.
func (g *schemaGraph) add(s *jsonschema.Schema, place string) int {
	at := len(g.nodes)
	g.nodes = append(g.nodes, schemaNode{schema: s, place: place})
	g.byPlace[place] = at
	for _, anchor := range []string{s.Anchor, s.DynamicAnchor} {
		if anchor != "" {
			g.byAnchor[anchor] = append(g.byAnchor[anchor], at)
		}
	}
	n := schemaNode{schema: s, place: place, named: g.byName(s.Properties, place, "properties")}
	n.same = slices.Concat(g.list(s.AllOf, place, "allOf"), g.list(s.AnyOf, place, "anyOf"), g.list(s.OneOf, place, "oneOf"),
		g.one(s.Not, place, "not"), g.one(s.If, place, "if"), g.one(s.Then, place, "then"), g.one(s.Else, place, "else"),
		g.each(s.DependentSchemas, place, "dependentSchemas"), g.each(s.DependencySchemas, place, "dependencies"))
	n.items = slices.Concat(g.list(s.PrefixItems, place, "prefixItems"), g.one(s.Items, place, "items"), g.list(s.ItemsArray, place, "items"),
		g.one(s.AdditionalItems, place, "additionalItems"), g.one(s.Contains, place, "contains"),
		g.one(s.UnevaluatedItems, place, "unevaluatedItems"))
	n.members = slices.Concat(g.each(s.PatternProperties, place, "patternProperties"), g.one(s.PropertyNames, place, "propertyNames"),
		g.one(s.UnevaluatedProperties, place, "unevaluatedProperties"))
	n.others = g.one(s.AdditionalProperties, place, "additionalProperties")
	// Nothing is looked at there but by reference.
	g.each(s.Defs, place, "$defs")
	g.each(s.Definitions, place, "definitions")
	g.one(s.ContentSchema, place, "contentSchema")
	g.nodes[at] = n
	return at
}

func (g *schemaGraph) one(s *jsonschema.Schema, place, keyword string) []int {
	if s == nil {
		return nil
	}
	return []int{g.add(s, place+"/"+keyword)}
}

func (g *schemaGraph) list(schemas []*jsonschema.Schema, place, keyword string) (added []int) {
	for i, s := range schemas {
		added = append(added, g.add(s, place+"/"+keyword+"/"+strconv.Itoa(i)))
	}
	return added
}

func (g *schemaGraph) each(schemas map[string]*jsonschema.Schema, place, keyword string) (added []int) {
	for _, at := range g.byName(schemas, place, keyword) {
		added = append(added, at)
	}
	return added
}

func (g *schemaGraph) byName(schemas map[string]*jsonschema.Schema, place, keyword string) map[string]int {
	added := make(map[string]int, len(schemas))
	for name, s := range schemas {
		added[name] = g.add(s, place+"/"+keyword+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return added
}

// follow returns where a reference leads. It stays in the schema, since the schema resolves; an $id of a part would change
// what it means.
func (g *schemaGraph) follow(ref string) ([]int, error) {
	for i := range g.nodes {
		if n := &g.nodes[i]; n.schema.ID != "" && n.place != "" {
			return nil, fmt.Errorf("#%s: an $id inside of a schema with references is not supported", n.place)
		}
	}
	to, err := url.Parse(ref)
	if err != nil {
		return nil, fmt.Errorf("the reference %q: %w", ref, err)
	}
	if at, ok := g.byPlace[to.Fragment]; ok {
		return []int{at}, nil
	}
	if found := g.byAnchor[to.Fragment]; len(found) > 0 {
		return found, nil
	}
	return nil, fmt.Errorf("the reference %q leads to no schema", ref)
}

// checkCircles reports a schema that refers to itself for the same value.
func (g *schemaGraph) checkCircles() error {
	const open, done = 1, 2
	state := make([]int, len(g.nodes))
	var visit func(at int) error
	visit = func(at int) error {
		switch state[at] {
		case done:
			return nil
		case open:
			return fmt.Errorf("#%s: the schema refers to itself in a circle", g.nodes[at].place)
		}
		state[at] = open
		for _, next := range g.nodes[at].same {
			if err := visit(next); err != nil {
				return err
			}
		}
		state[at] = done
		return nil
	}
	for at := range g.nodes {
		if err := visit(at); err != nil {
			return err
		}
	}
	return nil
}

// check returns errTooCostly for a value whose validation would cost too much.
func (g *schemaGraph) check(value any) error {
	b := &bill{graph: g, known: map[look]int64{}}
	if b.cost(0, b.sized(value)) > maxCheckCost {
		return errTooCostly
	}
	return nil
}

// bill adds up what a validation costs. Each pair of schema and value is counted once and remembered, so the bill itself is
// cheap however often the validator would come by.
type bill struct {
	graph  *schemaGraph
	values int
	known  map[look]int64
}

// look is a look at a value with a schema.
type look struct{ node, value int }

// sized is a value with its size in bytes, nearly.
type sized struct {
	id    int
	bytes int64
	items []sized
	named map[string]sized
}

func (b *bill) sized(value any) sized {
	b.values++
	s := sized{id: b.values, bytes: 8}
	switch v := value.(type) {
	case string:
		s.bytes += int64(len(v))
	case []any:
		for _, item := range v {
			s.items = append(s.items, b.sized(item))
			s.bytes += s.items[len(s.items)-1].bytes
		}
	case map[string]any:
		s.named = make(map[string]sized, len(v))
		for name, member := range v {
			m := b.sized(member)
			s.named[name] = m
			s.bytes += m.bytes + int64(len(name))
		}
	}
	return s
}

// cost is what the validator spends on a value with the schema of a node: more than it will, since it may stop early.
func (b *bill) cost(node int, v sized) int64 {
	at := look{node, v.id}
	if known, ok := b.known[at]; ok {
		return known
	}
	if len(b.known) > maxCheckCost/lookCost {
		return math.MaxInt64
	}
	n := &b.graph.nodes[node]
	total := lookCost + v.bytes
	add := func(nodes []int, to sized) {
		for _, next := range nodes {
			if total <= maxCheckCost { // more does not matter, and must not overflow
				total += min(b.cost(next, to), maxCheckCost+1)
			}
		}
	}
	add(n.same, v)
	for i := range v.items {
		add(n.items, v.items[i])
	}
	for name, member := range v.named {
		add(n.members, member)
		if named, ok := n.named[name]; ok {
			add([]int{named}, member)
		} else {
			add(n.others, member)
		}
	}
	b.known[at] = total
	return total
}
