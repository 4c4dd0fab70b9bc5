// Package ignore decides which paths of a directory tree a search leaves out,
// by the rules that the tree itself carries: .gitignore files, .ignore files
// and the info/exclude file of a repository found in the tree.
//
// Patterns mean exactly what git means by them; the tests compare every verdict
// with the git program. Two things differ on purpose. A .gitignore counts
// whether or not a .git directory is near it, because sources are often handed
// over as an export without one. And matching is always case-sensitive and
// knows nothing of the machine's git configuration: the same tree gives the
// same verdicts everywhere, and no file outside the tree is ever consulted.
//
// A walk builds one [Level] for each directory that has rules, on its way down.
// As in git a pattern cannot bring back a path whose parent directory is left
// out; that follows from the walk not entering such a directory, so callers
// must ask about a directory before they ask about anything below it.
package ignore

import (
	"bytes"
	"strings"
)

// Names of the files in which a tree keeps its rules. The exclude file is
// looked for relative to the directory that holds .git.
const (
	GitFile     = ".gitignore"
	PlainFile   = ".ignore"
	ExcludeFile = ".git/info/exclude"
	// RepositoryName is the entry, directory or file, that makes its parent
	// the top of a repository. Walks never enter or report it.
	RepositoryName = ".git"
)

// Rules is the parsed content of one file. It is immutable and may be used by
// many goroutines; nil holds no rule.
type Rules struct {
	list []rule
}

// Parse reads the content of an ignore file. It never fails: as in git, a line
// that is no usable pattern simply matches nothing.
func Parse(content []byte) *Rules {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	r := &Rules{}
	for line := range bytes.SplitSeq(content, []byte("\n")) {
		if rule, ok := parseLine(line); ok {
			r.list = append(r.list, rule)
		}
	}
	return r
}

// parseLine turns one line, without its line feed, into a rule. It reports
// false for blanks, comments and patterns that cannot match.
func parseLine(line []byte) (rule, bool) {
	if len(line) == 0 || line[0] == '#' {
		return rule{}, false
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if nul := bytes.IndexByte(line, 0); nul >= 0 {
		line = line[:nul]
	}
	text := string(trimSpaces(line))
	var r rule
	if text, r.negate = strings.CutPrefix(text, "!"); text == "" {
		return rule{}, false
	}
	if text, r.dirOnly = strings.CutSuffix(text, "/"); text == "" {
		return rule{}, false
	}
	return r, r.compile(text)
}

// trimSpaces cuts trailing blanks, except one that a backslash protects. Tabs
// stay, as in git.
func trimSpaces(line []byte) []byte {
	end := 0
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' && i+1 < len(line) {
			i++
			end = i + 1
		} else if line[i] != ' ' {
			end = i + 1
		}
	}
	return line[:end]
}

// decide returns the verdict of the last rule that matches. rel is the path
// from the directory of the rules, name its last element.
func (r *Rules) decide(rel, name []byte, isDir bool) verdict {
	if r == nil {
		return undecided
	}
	for i := len(r.list) - 1; i >= 0; i-- {
		rule := &r.list[i]
		if rule.dirOnly && !isDir || !rule.match(rel, name) {
			continue
		}
		if rule.negate {
			return kept
		}
		return ignored
	}
	return undecided
}

type verdict int

const (
	undecided verdict = iota
	ignored
	kept
)
