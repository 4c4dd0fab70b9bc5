package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxNames bounds how many names of a directory are looked at for a suggestion.
const maxNames = 2000

// explainMissing says which part of the path is missing and what may have been meant. It lists directories inside only.
func (w *Workspace) explainMissing(p string, s spot) *PathError {
	dir, name, isLink := s.entry.firstMissing(s.rel)
	if isLink {
		return fail(CodeNotFound, p, "%s is a link whose target does not exist", Escape(s.entry.join(filepath.Join(dir, name))))
	}
	e := fail(CodeNotFound, p, "nothing is there")
	if similar := s.entry.similar(dir, name); similar != "" {
		e.Message = fmt.Sprintf("nothing is there; did you mean %s?", Escape(s.entry.join(filepath.Join(dir, similar))))
		return e
	}
	if meant := w.meant(p); meant != "" {
		e.Message = fmt.Sprintf("nothing is there; did you mean %s?", meant)
		return e
	}
	if name != filepath.Base(s.rel) {
		e.Message = fmt.Sprintf("nothing is there: %s does not exist", Escape(s.entry.join(filepath.Join(dir, name))))
	}
	return e
}

// meant tries the usual slips on a path that leads nowhere and returns a path that does exist, escaped, or "". The usual
// slips are a path that starts at the sources or at the output directory instead of the workspace root, a leading @ or /,
// and backslashes between folders.
func (w *Workspace) meant(p string) string {
	bases := []*entry{w.entries[0]}
	for _, e := range w.entries[1:] {
		if e.file == "" {
			bases = append(bases, e)
		}
	}
	variants := []string{p}
	for _, v := range []string{strings.TrimPrefix(p, "@"), strings.TrimLeft(p, "/"), strings.ReplaceAll(p, `\`, "/")} {
		if !slices.Contains(variants, v) {
			variants = append(variants, v)
		}
	}
	for _, v := range variants {
		if v != p && !filepath.IsAbs(v) && v != "" {
			for _, s := range append(w.locateByPlace(v), w.locateByName(v)...) {
				if _, err := s.entry.root.Stat(s.entry.inRoot(s.rel)); err == nil {
					return Escape(s.display())
				}
			}
		}
		rel := filepath.Clean(v)
		if !filepath.IsLocal(rel) || rel == "." {
			continue
		}
		for _, e := range bases {
			if _, err := e.root.Stat(rel); err == nil {
				return Escape(e.join(rel))
			}
		}
	}
	return ""
}

// firstMissing walks rel from the top and returns the directory and the name at which it breaks off, and whether there is
// a link of that name.
func (e *entry) firstMissing(rel string) (dir, name string, isLink bool) {
	if e.file != "" {
		_, err := e.root.Lstat(e.file)
		return "", "", err == nil
	}
	dir = "."
	parts := strings.Split(rel, string(filepath.Separator))
	for i, part := range parts {
		at := filepath.Join(dir, part)
		if _, err := e.root.Stat(at); err != nil || i == len(parts)-1 {
			_, err := e.root.Lstat(at)
			return dir, part, err == nil
		}
		dir = at
	}
	return dir, rel, false
}

// similar returns the name in dir that looks like name: the same letters in another case, another normal form, or with
// other blanks and quotes. It returns "" if there is none.
func (e *entry) similar(dir, name string) string {
	if e.file != "" {
		return ""
	}
	f, err := e.root.OpenFile(throughDir(dir), os.O_RDONLY, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	names, err := f.Readdirnames(maxNames)
	if err != nil { // also io.EOF for an empty directory
		return ""
	}
	slices.Sort(names)
	want := lookKey(name)
	for _, n := range names {
		if n != name && lookKey(n) == want {
			return n
		}
	}
	return ""
}

// lookKey maps names that look alike to one text.
func lookKey(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Zs, r):
			return ' '
		case r == '\u2018' || r == '\u2019' || r == '\u02bc':
			return '\''
		case r == '\u2010' || r == '\u2011' || r == '\u2013':
			return '-'
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFC.String(name))
}
