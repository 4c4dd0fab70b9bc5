package filetool

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
)

// glob is a file name pattern. A pattern without a slash is compared with the last element of a path, any other with the
// whole path.
type glob struct {
	alternatives []globPart
	byName       bool
	fold         bool // the pattern is in lower case and stands for all cases
}

// globPart is one alternative, free of braces. Most are a star with a plain ending, which need no matcher.
type globPart struct {
	pattern string
	ending  string // if the pattern is "*" and this, "" otherwise
	plain   bool   // no special characters at all
}

// maxAlternatives bounds what the braces of a pattern may multiply to.
const maxAlternatives = 100

// parseGlob reads a pattern for paths below the directory searched. With smart set, a pattern in lower case stands for all
// cases. The error tells the model what to write instead.
func parseGlob(pattern string, smart bool) (*glob, error) {
	text := pattern
	for strings.HasPrefix(text, "./") {
		text = text[2:]
	}
	anchored := strings.HasPrefix(text, "/")
	text = strings.TrimLeft(text, "/")
	switch {
	case strings.TrimSuffix(text, "/") == "":
		return nil, errors.New("the pattern is empty; use * for everything")
	case strings.HasSuffix(text, "/"):
		return nil, fmt.Errorf("a pattern names files and directories without a slash at the end; use %q, or %q for all below it", strings.TrimRight(text, "/"), text+"**")
	case text == ".." || strings.HasPrefix(text, "../") || strings.Contains(text, "/../"):
		return nil, errors.New("a pattern cannot contain ..; give the directory to search as path")
	}
	g := &glob{byName: !anchored && !strings.Contains(text, "/"), fold: smart && !strings.ContainsFunc(text, unicode.IsUpper)}
	list, err := expandBraces(text)
	if err != nil {
		return nil, err
	}
	for _, alternative := range list {
		if !doublestar.ValidatePattern(alternative) {
			return nil, fmt.Errorf("%q is no valid pattern: a bracket is not closed, or a backslash ends it", pattern)
		}
		g.alternatives = append(g.alternatives, newGlobPart(alternative))
	}
	return g, nil
}

func newGlobPart(pattern string) globPart {
	const special = `*?[\`
	p := globPart{pattern: pattern, plain: !strings.ContainsAny(pattern, special)}
	if rest, ok := strings.CutPrefix(pattern, "*"); ok && rest != "" && !strings.ContainsAny(rest, special+"/") {
		p.ending = rest
	}
	return p
}

// match reports whether the pattern stands for a path, which is relative to the directory searched.
func (g *glob) match(path []byte) bool {
	text := path
	if g.byName {
		text = lastElement(path)
	}
	name := string(text)
	if g.fold {
		name = strings.ToLower(name)
	}
	for i := range g.alternatives {
		if g.alternatives[i].match(name, g.byName) {
			return true
		}
	}
	return false
}

func (p *globPart) match(name string, byName bool) bool {
	switch {
	case p.plain:
		return name == p.pattern
	case p.ending != "" && byName:
		return strings.HasSuffix(name, p.ending)
	}
	return doublestar.MatchUnvalidated(p.pattern, name)
}

func lastElement(path []byte) []byte {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// expandBraces writes a pattern out as one pattern for each alternative. The matcher would do so itself, but without a
// bound on how many there are.
func expandBraces(pattern string) ([]string, error) {
	open, parts, end, err := firstBraces(pattern)
	if err != nil || open < 0 {
		return []string{pattern}, err
	}
	var all []string
	for _, part := range parts {
		list, err := expandBraces(pattern[:open] + part + pattern[end:])
		if err != nil {
			return nil, err
		}
		if all = append(all, list...); len(all) > maxAlternatives {
			return nil, fmt.Errorf("the braces of the pattern stand for more than %d alternatives; use fewer", maxAlternatives)
		}
	}
	return all, nil
}

// firstBraces finds the first group of braces outside of brackets. parts are its alternatives, open its start and end the
// index after it; open is -1 if there is none.
func firstBraces(pattern string) (open int, parts []string, end int, err error) {
	open = -1
	depth, start, inBracket := 0, 0, false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case inBracket:
			inBracket = c != ']'
		case c == '[':
			inBracket = strings.Contains(pattern[i:], "]")
		case c == '{':
			if depth++; depth == 1 {
				open, start = i, i+1
			}
		case c == ',' && depth == 1:
			parts = append(parts, pattern[start:i])
			start = i + 1
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, append(parts, pattern[start:i]), i + 1, nil
			}
		}
	}
	if depth > 0 {
		return 0, nil, 0, fmt.Errorf("a brace of the pattern is not closed; write \\{ for a brace in a name")
	}
	return -1, nil, 0, nil
}

// shownPath is the path of an entry below a directory as reading tools take it; display is that of the directory.
func shownPath(display, rel string) string { return path.Join(display, rel) }
