// Package search finds the lines of a file that match a pattern, at the speed
// of the machine's memory where the pattern allows it, and in bounded memory
// whatever the file holds.
//
// Patterns are RE2 regular expressions and match within one line: the line feed
// and a carriage return before it are not part of the text, so "$" works in
// files from every system. Whether a line matches is the same as asking package
// regexp about each line; the tests check that on random patterns. What differs
// is the way there. Text that every match must contain is looked for in the
// whole buffer first, and only the lines around a hit are examined. Patterns
// without such text run through a finite automaton that is built on demand.
// Files are read in windows of 256 KB.
//
// Files with a NUL byte near their start are binary and not searched. UTF-16
// with a byte order mark is decoded, other text is taken as UTF-8; an invalid
// byte counts as one unknown character.
package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

// Options says how a pattern is read.
type Options struct {
	Literal    bool // the pattern is plain text
	IgnoreCase bool // upper and lower case are the same
}

// Pattern is a compiled pattern. It is immutable and may be used by many
// goroutines, each through a Searcher of its own.
type Pattern struct {
	classes *classes // nil if the pattern needs too many
	prog    *syntax.Prog
	needles []needle // texts of which each match contains one; may be empty
	pure    bool     // a line matches if and only if it contains a needle
	kelvin  bool     // a needle has a letter with a third case outside ASCII
	keepCR  bool     // the pattern names the carriage return
	regexp  func() *regexp.Regexp
}

// MaxPattern bounds the length of a pattern in bytes.
const MaxPattern = 16 << 10

// Compile parses a pattern. The error says what is wrong with the pattern and
// what to write instead.
func Compile(pattern string, o Options) (*Pattern, error) {
	if len(pattern) > MaxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, at most %d are allowed", len(pattern), MaxPattern)
	}
	flags := syntax.Perl
	if o.Literal {
		flags |= syntax.Literal
	}
	if o.IgnoreCase {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, explain(err)
	}
	if named(tree, '\n') {
		return nil, errors.New("the pattern names a line feed, but a match lies within one line; search for a part of it and use context to see the lines around")
	}
	simple := tree.Simplify()
	prog, err := syntax.Compile(simple)
	if err != nil {
		return nil, fmt.Errorf("the pattern cannot be compiled: %w", err)
	}
	p := &Pattern{prog: prog, classes: newClasses(prog), keepCR: named(tree, '\r')}
	p.regexp = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(o.source(pattern)) })
	p.setNeedles(required(simple))
	return p, nil
}

// source writes a pattern, known to be valid, so that it needs no options.
func (o Options) source(pattern string) string {
	if o.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	if o.IgnoreCase {
		pattern = "(?i)" + pattern // a group could be left open by \Q
	}
	return pattern
}

// named reports whether the pattern has the rune in a literal, as opposed to a
// class such as \s that has it among others.
func named(re *syntax.Regexp, r rune) bool {
	if re.Op == syntax.OpLiteral {
		return strings.ContainsRune(string(re.Rune), r)
	}
	for _, sub := range re.Sub {
		if named(sub, r) {
			return true
		}
	}
	return false
}

// explain turns a syntax error into advice.
func explain(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return err
	}
	advice := "set literal to true to search for the text as it stands"
	switch e.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture:
		advice = perlAdvice(e.Expr)
	case syntax.ErrInvalidEscape:
		if digit := strings.TrimLeft(e.Expr, `\`); digit != "" && digit[0] >= '1' && digit[0] <= '9' {
			advice = "back-references do not exist here (RE2 syntax); write the repeated text out"
		}
	case syntax.ErrInvalidRepeatSize:
		advice = "a repetition count is at most 1000"
	case syntax.ErrInvalidRepeatOp:
		advice = "possessive quantifiers do not exist here (RE2 syntax); drop the second operator, or set literal to true to search for the text as it stands"
	}
	return fmt.Errorf("the pattern is not a valid regular expression: %s: `%s`; %s", e.Code, e.Expr, advice)
}

// perlAdvice is for groups that begin with "(?" and are not known.
func perlAdvice(group string) string {
	for _, name := range []string{"(?P", "(?<"} {
		if rest, ok := strings.CutPrefix(group, name); ok && !strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "!") {
			return "a named group is written (?P<name>...) with a name of letters, digits and underscores"
		}
	}
	return "look-ahead, look-behind and atomic groups do not exist here (RE2 syntax); search for the part that must be there and narrow the result with glob or a second search"
}
