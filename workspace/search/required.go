package search

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on the texts that a pattern is known to need.
const (
	maxTexts = 8  // more alternatives cost more than the automaton
	maxText  = 64 // longer texts are cut; what is left is no less rare
)

// texts is a set of which every match must contain at least one member.
type texts struct {
	list []string
	fold bool // members are lower case and stand for all cases
}

// need is what is known about the matches of a part of a pattern.
type need struct {
	// exact lists the texts of all possible matches, in so far as the part
	// looks at no more than its own text; nil if there are too many.
	exact []string
	fold  bool // of exact
	// pure says that exact is the whole truth: no assertion is attached.
	pure bool
	// best is the most useful set found inside, besides exact.
	best texts
}

// required finds the texts that matches of re must contain. pure reports that
// containing one of them is also enough.
func required(re *syntax.Regexp) (set texts, pure bool) {
	n := analyse(re)
	set = n.candidate()
	pure = n.pure && n.exact != nil && set.fold == n.fold && slices.Equal(set.list, n.exact)
	for i, s := range set.list {
		if len(s) > maxText {
			set.list[i] = s[:maxText]
			pure = false
		}
	}
	return set, pure
}

// candidate returns the better one of exact and best.
func (n need) candidate() texts {
	return better(texts{list: n.exact, fold: n.fold}, n.best)
}

func analyse(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return need{exact: []string{""}, pure: true}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return need{exact: []string{""}}
	case syntax.OpLiteral:
		return literal(re)
	case syntax.OpCharClass:
		return class(re)
	case syntax.OpCapture:
		return analyse(re.Sub[0])
	case syntax.OpConcat:
		return concat(re.Sub)
	case syntax.OpAlternate:
		return alternate(re.Sub)
	case syntax.OpPlus:
		return need{best: analyse(re.Sub[0]).candidate()}
	case syntax.OpQuest:
		n := analyse(re.Sub[0])
		return union(n, need{exact: []string{""}, pure: true})
	}
	return need{}
}

// literal handles a run of characters. Only ASCII letters are folded; another
// letter that has several cases makes the text useless, so it is cut there.
func literal(re *syntax.Regexp) need {
	if re.Flags&syntax.FoldCase == 0 {
		return need{exact: []string{string(re.Rune)}, pure: true}
	}
	lower := asciiLower(string(re.Rune))
	if !strings.ContainsFunc(lower, foreign) {
		return need{exact: []string{lower}, fold: true, pure: true}
	}
	var best texts
	for _, run := range strings.FieldsFunc(lower, foreign) {
		best = better(best, texts{list: []string{run}, fold: true})
	}
	return need{best: best}
}

// foreign reports whether a folded rune cannot be compared byte by byte.
func foreign(r rune) bool { return r >= utf8.RuneSelf && unicode.SimpleFold(r) != r }

// class handles a set of characters, if there are very few.
func class(re *syntax.Regexp) need {
	const few = 4
	n := need{pure: true}
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(n.exact) == few {
				return need{}
			}
			n.exact = append(n.exact, string(r))
		}
	}
	return n
}

// concat joins the exact texts of neighbours for as long as they stay few.
func concat(subs []*syntax.Regexp) need {
	all := need{exact: []string{""}, pure: true}
	whole := true
	for _, sub := range subs {
		n := analyse(sub)
		all.best = better(all.best, n.best)
		joined, ok := product(all, n)
		if ok {
			all = joined
			continue
		}
		whole = false
		all.best = all.candidate()
		all.exact, all.fold, all.pure = n.exact, n.fold, false
		if all.exact == nil {
			all.exact = []string{""}
		}
	}
	if !whole {
		return need{best: all.candidate()}
	}
	return all
}

// product appends the exact texts of b to those of a.
func product(a, b need) (need, bool) {
	if b.exact == nil || len(a.exact)*len(b.exact) > maxTexts {
		return need{}, false
	}
	joined := need{pure: a.pure && b.pure, best: a.best}
	joined.fold = a.fold || b.fold
	for _, x := range a.exact {
		for _, y := range b.exact {
			if len(x)+len(y) > 4*maxText {
				return need{}, false
			}
			joined.exact = append(joined.exact, x+y)
		}
	}
	// One case for all is more than the exact half asks for.
	if a.fold != b.fold && joined.lower() {
		joined.pure = false
	}
	return joined, true
}

// lower turns the exact texts to lower case and reports whether that may let
// them match more than they should.
func (n *need) lower() (wider bool) {
	for i, s := range n.exact {
		n.exact[i] = asciiLower(s)
	}
	for _, s := range n.exact {
		if strings.ContainsFunc(s, unicode.IsLetter) {
			wider = true
		}
	}
	return wider
}

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func alternate(subs []*syntax.Regexp) need {
	all := analyse(subs[0])
	for _, sub := range subs[1:] {
		all = union(all, analyse(sub))
	}
	return all
}

// union is for either of two parts.
func union(a, b need) need {
	n := need{best: merge(a.candidate(), b.candidate())}
	if a.exact == nil || b.exact == nil || len(a.exact)+len(b.exact) > maxTexts {
		return n
	}
	n.exact = slices.Concat(a.exact, b.exact)
	n.fold = a.fold || b.fold
	n.pure = a.pure && b.pure
	if a.fold != b.fold && n.lower() {
		n.pure = false
	}
	return n
}

// merge is the set for either of two parts; empty if one has none.
func merge(a, b texts) texts {
	if len(a.list) == 0 || len(b.list) == 0 || len(a.list)+len(b.list) > maxTexts {
		return texts{}
	}
	n := need{exact: slices.Concat(a.list, b.list)}
	if a.fold != b.fold {
		n.lower()
	}
	return texts{list: n.exact, fold: a.fold || b.fold}
}

// better returns the set that will be hit less often.
func better(a, b texts) texts {
	if b.score() > a.score() {
		return b
	}
	return a
}

// score estimates how rarely the set is hit: by its shortest and most common
// member, and by how many there are. Zero means that it is of no use.
func (t texts) score() int {
	if len(t.list) == 0 {
		return 0
	}
	lowest := 1 << 20
	for _, s := range t.list {
		if s == "" {
			return 0
		}
		_, rank := rarest(s)
		lowest = min(lowest, 24*min(len(s), 8)+rank)
	}
	return max(lowest-8*(len(t.list)-1), 1)
}
