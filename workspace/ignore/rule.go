package ignore

import (
	"bytes"
	"strings"
)

// special are the bytes that mean something in a pattern.
const special = `*?[\`

// rule is one pattern. Most patterns in real files are a plain name or a star
// with a plain ending, so these are compared without a glob.
type rule struct {
	negate  bool // the line began with "!"
	dirOnly bool // the line ended with "/"
	byName  bool // no slash inside: compared with the last element only

	literal []byte // plain text at the start, the whole pattern if form is exact
	form    form
	glob    glob // what follows literal, for form globbed
}

type form int

const (
	exact   form = iota // literal is the whole text
	ending              // literal is what the text must end with
	globbed             // literal, then glob
)

// compile sets the matching fields from a pattern that is free of "!" and of a
// final slash. It reports false if the pattern can match nothing.
func (r *rule) compile(text string) bool {
	r.byName = !strings.Contains(text, "/")
	if !r.byName {
		text = strings.TrimPrefix(text, "/")
	}
	plain := strings.IndexAny(text, special)
	switch {
	case plain < 0:
		r.literal = []byte(text)
		return text != ""
	case r.byName && text[0] == '*' && !strings.ContainsAny(text[1:], special):
		r.literal, r.form = []byte(text[1:]), ending
		return true
	}
	var ok bool
	r.form = globbed
	r.literal = []byte(text[:plain])
	r.glob, ok = compileGlob(text[plain:])
	return ok
}

// match compares the rule with a path relative to the rule's directory, or with
// its last element.
func (r *rule) match(rel, name []byte) bool {
	text := rel
	if r.byName {
		text = name
	}
	switch r.form {
	case exact:
		return bytes.Equal(text, r.literal)
	case ending:
		return bytes.HasSuffix(text, r.literal)
	default:
		rest, ok := bytes.CutPrefix(text, r.literal)
		return ok && r.glob.match(rest)
	}
}
