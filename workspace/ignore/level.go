package ignore

import "bytes"

// Files is what one directory contributes to the rules below it. The zero
// value contributes nothing.
type Files struct {
	Git     *Rules // its .gitignore
	Plain   *Rules // its .ignore, which wins over every .gitignore
	Exclude *Rules // .git/info/exclude, which loses to every .gitignore
	// Repository says that the directory holds a .git entry. Rules of git
	// files above it end here, as they belong to another repository.
	Repository bool
}

// Level holds the rules in force inside one directory: its own and those of
// the directories above. It is immutable, so all workers of a walk share it.
// A nil Level ignores nothing.
type Level struct {
	above *Level
	base  int // length of the directory's path with its final slash
	files Files
}

// Below returns the level for a directory inside l. dir is the directory's
// path in the form that [Level.Ignored] is asked with, "" for the top of the
// tree. It returns l itself when files contributes nothing.
func (l *Level) Below(dir string, files Files) *Level {
	if files == (Files{}) {
		return l
	}
	base := len(dir)
	if base > 0 {
		base++
	}
	return &Level{above: l, base: base, files: files}
}

// Ignored reports whether the rules leave the path out. path is
// slash-separated, relative to the top of the tree, and lies inside the
// directory of the level. The parents of path must have been asked about
// before and must not be ignored themselves.
//
// An .ignore file anywhere above the path wins over a .gitignore, and that over
// an exclude file; among files of one kind the nearest one with an opinion
// wins, and in a file the last pattern.
func (l *Level) Ignored(path []byte, isDir bool) bool {
	name := path[bytes.LastIndexByte(path, '/')+1:]
	git, exclude := undecided, undecided
	foreign := false
	for ; l != nil; l = l.above {
		rel := path[l.base:]
		if v := l.files.Plain.decide(rel, name, isDir); v != undecided {
			return v == ignored
		}
		if foreign {
			continue
		}
		if git == undecided {
			git = l.files.Git.decide(rel, name, isDir)
		}
		if exclude == undecided {
			exclude = l.files.Exclude.decide(rel, name, isDir)
		}
		foreign = l.files.Repository
	}
	if git == undecided {
		git = exclude
	}
	return git == ignored
}
