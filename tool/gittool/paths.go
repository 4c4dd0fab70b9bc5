package gittool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hozo-run/hozo/tool/command"
	"github.com/hozo-run/hozo/workspace"
)

// divide decides which operands are revisions and which are paths where the command has no --, and checks the paths. git
// decides by trying both; here the last ones that exist as files are paths. One that could be both is an error, as it is
// with git. isRevision asks git.
func (r *request) divide(ctx context.Context, repo *repository, isRevision func(ctx context.Context, name string) bool) error {
	if r.subcommand.operands == patternFirst && !r.has("-e") {
		if len(r.operands) == 0 {
			return fmt.Errorf("%s needs a pattern", r.name)
		}
		r.options = append(r.options, "-e"+r.operands[0])
		r.operands = r.operands[1:]
	}
	root, err := os.OpenRoot(repo.tree)
	if err != nil {
		return fmt.Errorf("the work tree cannot be opened")
	}
	defer root.Close()
	tree := &workTree{root: root, real: repo.tree, prefix: repo.prefix()}
	switch r.subcommand.operands {
	case pathsOnly:
		r.operands, r.paths = nil, append(r.operands, r.paths...)
	case revisionsAndPaths, patternFirst:
		if !r.split {
			if err := r.guess(ctx, tree, isRevision); err != nil {
				return err
			}
		}
	}
	for _, p := range r.paths {
		if err := tree.check(p); err != nil {
			return err
		}
	}
	if r.subcommand.operands == names || r.subcommand.operands == verb {
		return nil
	}
	for _, name := range r.operands {
		if filepath.IsAbs(name) || !tree.local(name) {
			return fmt.Errorf("%s leads out of the work tree", quote(name))
		}
	}
	return nil
}

// guess moves the operands that are paths behind the --.
func (r *request) guess(ctx context.Context, tree *workTree, isRevision func(context.Context, string) bool) error {
	at := len(r.operands)
	for at > 0 && tree.meansPath(r.operands[at-1]) {
		at--
	}
	for _, name := range r.operands[at:] {
		if !tree.special(name) && isRevision(ctx, name) {
			return fmt.Errorf("%s is both a revision and a path; put -- before the paths (%s -- for the revision, -- %s for the path)", quote(name), name, name)
		}
	}
	r.paths = r.operands[at:]
	r.operands = r.operands[:at:at]
	return nil
}

// workTree confines paths to a work tree.
type workTree struct {
	root   *os.Root
	real   string
	prefix string
}

// local reports whether a path that starts at the working directory stays in the work tree by its text.
func (t *workTree) local(p string) bool { return filepath.IsLocal(filepath.Join(t.prefix, p)) }

// special reports whether a path is a pattern or begins with git's own signs for one.
func (t *workTree) special(p string) bool {
	return strings.HasPrefix(p, ":") || strings.ContainsAny(p, "*?[")
}

// meansPath reports whether an operand is a path rather than a revision.
func (t *workTree) meansPath(p string) bool {
	switch {
	case strings.HasPrefix(p, ":(") || strings.HasPrefix(p, ":!") || strings.HasPrefix(p, ":^"):
		return true
	case strings.ContainsAny(p, "*?["):
		return true
	case filepath.IsAbs(p), p == "..", strings.HasPrefix(p, "../"), strings.HasPrefix(p, "./"), p == ".", strings.HasSuffix(p, "/"):
		return true
	}
	_, err := t.root.Lstat(filepath.Join(t.prefix, p))
	return err == nil
}

// check refuses a path that leads out of the work tree: by its text, or through a link. git itself refuses most of them,
// but takes some as an order to compare files anywhere, and follows links in the middle of others.
func (t *workTree) check(p string) error {
	plain := magicless(p)
	if filepath.IsAbs(plain) {
		rel, err := filepath.Rel(t.real, filepath.Clean(plain))
		if err != nil || !command.Below(t.real, filepath.Clean(plain)) {
			return fmt.Errorf("%s: this is outside of the repository's work tree; give paths relative to the working directory", quote(workspace.Escape(p)))
		}
		return t.checkLinks(p, rel)
	}
	if !t.local(plain) {
		return fmt.Errorf("%s: this leads out of the repository's work tree", quote(workspace.Escape(p)))
	}
	return t.checkLinks(p, filepath.Join(t.prefix, plain))
}

// magicless returns a path without git's signs at its beginning.
func magicless(p string) string {
	if !strings.HasPrefix(p, ":") {
		return p
	}
	if long, ok := strings.CutPrefix(p, ":("); ok {
		if _, rest, closed := strings.Cut(long, ")"); closed {
			return strings.TrimPrefix(rest, "/")
		}
		return p
	}
	return strings.TrimLeft(p, ":!^/")
}

// checkLinks refuses a path whose directories are links that lead out.
func (t *workTree) checkLinks(p, rel string) error {
	if t.special(p) {
		return nil // it is matched against names, not opened
	}
	dir := filepath.Dir(rel)
	if _, err := os.Stat(filepath.Join(t.real, dir)); err != nil {
		return nil // nothing is there, so nothing is read
	}
	if _, err := t.root.Stat(dir); err != nil {
		return fmt.Errorf("%s: a directory of this path is a link that leads out of the work tree", quote(workspace.Escape(p)))
	}
	return nil
}
