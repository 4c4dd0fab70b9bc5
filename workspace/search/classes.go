package search

import (
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// maxClasses keeps the rows of the automaton's table short. Patterns that tell
// more kinds of characters apart are rare.
const maxClasses = 200

// classes sorts all runes into classes that a program cannot tell apart, so
// that its automaton needs one column for each class instead of each rune.
// Word characters are always apart from others, for the sake of \b.
type classes struct {
	ascii  [utf8.RuneSelf]uint8
	starts []rune  // first runes of the intervals from RuneSelf on, sorted
	class  []uint8 // the class of each of these intervals
	sample []rune  // one rune of each class
}

// newClasses returns nil if there would be more than maxClasses.
func newClasses(prog *syntax.Prog) *classes {
	sets := runeSets(prog)
	c := &classes{}
	ids := map[string]uint8{}
	signature := make([]byte, len(sets)+1)
	classOf := func(r rune) (uint8, bool) {
		for i, set := range sets {
			signature[i] = 0
			if set.MatchRune(r) {
				signature[i] = 1
			}
		}
		signature[len(sets)] = 0
		if syntax.IsWordChar(r) {
			signature[len(sets)] = 1
		}
		id, ok := ids[string(signature)]
		if !ok {
			id = uint8(len(c.sample))
			ids[string(signature)] = id
			c.sample = append(c.sample, r)
		}
		return id, len(c.sample) <= maxClasses
	}
	for r := range rune(utf8.RuneSelf) {
		id, ok := classOf(r)
		if !ok {
			return nil
		}
		c.ascii[r] = id
	}
	for _, r := range borders(sets) {
		id, ok := classOf(r)
		if !ok {
			return nil
		}
		c.starts = append(c.starts, r)
		c.class = append(c.class, id)
	}
	return c
}

// of returns the class of a rune outside ASCII.
func (c *classes) of(r rune) uint8 {
	i := sort.Search(len(c.starts), func(i int) bool { return c.starts[i] > r })
	return c.class[i-1]
}

// runeSets returns the instructions of a program that match runes, one of each
// kind.
func runeSets(prog *syntax.Prog) []*syntax.Inst {
	var sets []*syntax.Inst
	seen := map[string]bool{}
	for i := range prog.Inst {
		inst := &prog.Inst[i]
		switch inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			key := string(rune(inst.Op)) + string(inst.Rune)
			if inst.Op == syntax.InstRune {
				key += string(rune(inst.Arg)) // the flag to fold case
			}
			if !seen[key] {
				seen[key] = true
				sets = append(sets, inst)
			}
		}
	}
	return sets
}

// borders returns the runes from RuneSelf on at which some set begins or ends.
func borders(sets []*syntax.Inst) []rune {
	list := []rune{utf8.RuneSelf, unicode.MaxRune}
	add := func(lo, hi rune) { list = append(list, lo, hi+1) }
	for _, set := range sets {
		if len(set.Rune) == 1 {
			first := set.Rune[0]
			add(first, first)
			for r := unicode.SimpleFold(first); r != first; r = unicode.SimpleFold(r) {
				add(r, r)
			}
			continue
		}
		for i := 0; i+1 < len(set.Rune); i += 2 {
			add(set.Rune[i], set.Rune[i+1])
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	at, _ := slices.BinarySearch(list, utf8.RuneSelf)
	return list[at:]
}
