package gittool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/command"
	"github.com/hozo-run/hozo/workspace"
)

const (
	// maxInsides bounds the names that are looked at in the insides of a repository.
	maxInsides = 200_000
	// maxPointer bounds the files of a repository that hold a path, maxAlternates how many of them lead on.
	maxPointer    = 64 << 10
	maxAlternates = 16
)

// repository is a work tree and its repository, both inside the directories of the job. git is told where they are, so
// that it does not look for them, and takes no work tree from the repository's own configuration.
type repository struct {
	// dir is where the command runs, tree the work tree, git the repository, common what it shares with others of the same
	// origin (the same directory, for most). All are real, absolute paths.
	dir, tree, git, common string
	// out says that work tree and repository are in the output directory.
	out bool
}

// areas are the directories of the job that may hold a repository.
type areas struct {
	read []string
	out  string
}

// hold reports whether a real path lies in one of the areas.
func (a *areas) hold(real string) bool {
	for _, dir := range append([]string{a.out}, a.read...) {
		if command.Below(dir, real) {
			return true
		}
	}
	return false
}

// holder returns the area that a directory lies in.
func (a *areas) holder(real string) string {
	for _, dir := range append([]string{a.out}, a.read...) {
		if command.Below(dir, real) {
			return dir
		}
	}
	return ""
}

// place returns the real directory for the argument directory, confined as the paths of file tools are.
func place(env *tool.Env, directory string) (real string, _ *areas, err error) {
	paths := env.Workspace.Paths()
	a := &areas{read: paths.Read, out: paths.Out}
	if directory == "" {
		directory = "."
	}
	var full string
	dir, err := env.Workspace.OpenDir(directory)
	if err == nil {
		root, rel := dir.Entry()
		full = filepath.Join(root.Name(), filepath.FromSlash(rel))
		defer dir.Close()
	} else if full = output(env, directory); full == "" {
		return "", nil, err
	}
	real, err = filepath.EvalSymlinks(full)
	if err != nil || !a.hold(real) {
		return "", nil, fmt.Errorf("%q cannot be used: it is not there, or leads out of the directories of the job", workspace.Escape(directory))
	}
	return real, a, nil
}

// output returns the place of a directory that is named as one below the output directory, "" if it is none.
func output(env *tool.Env, directory string) string {
	paths := env.Workspace.Paths()
	clean := filepath.Clean(directory)
	if rel, err := filepath.Rel(filepath.FromSlash(env.Workspace.Layout().Out), clean); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(paths.Out, rel)
	}
	if filepath.IsAbs(clean) && command.Below(paths.Out, clean) {
		return clean
	}
	return ""
}

// find looks for the repository of a directory, upwards but not out of its area.
func find(ctx context.Context, dir string, a *areas) (*repository, error) {
	area := a.holder(dir)
	for tree := dir; ; tree = filepath.Dir(tree) {
		stat, err := os.Lstat(filepath.Join(tree, ".git"))
		if err == nil {
			r := &repository{dir: dir, tree: tree}
			if err := r.open(ctx, stat, a); err != nil {
				return nil, err
			}
			return r, nil
		}
		if tree == area || !command.Below(area, tree) {
			return nil, errNoRepository
		}
	}
}

var errNoRepository = errors.New("there is no git repository here (no .git in this directory of the job, nor above it); " +
	"give the argument directory if it is elsewhere")

// open looks at what .git is and checks everything that git would follow.
func (r *repository) open(ctx context.Context, stat fs.FileInfo, a *areas) error {
	r.git = filepath.Join(r.tree, ".git")
	if stat.Mode().IsRegular() {
		target, err := pointer(r.git, "gitdir: ")
		if err != nil {
			return err
		}
		r.git = absolute(r.tree, target)
	}
	var err error
	if r.git, err = inside(r.git, a); err != nil {
		return err
	}
	if command.Below(r.git, r.dir) {
		return errors.New("this is inside of a repository's own files; name a directory of its work tree")
	}
	r.common = r.git
	if target, err := pointer(filepath.Join(r.git, "commondir"), ""); err == nil {
		if r.common, err = inside(absolute(r.git, target), a); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.out = command.Below(a.out, r.tree) && command.Below(a.out, r.git) && command.Below(a.out, r.common)
	dirs := []string{r.git}
	if r.common != r.git && !command.Below(r.git, r.common) && !command.Below(r.common, r.git) {
		dirs = append(dirs, r.common)
	} else if command.Below(r.common, r.git) {
		dirs = []string{r.common}
	}
	for _, dir := range dirs {
		if err := checkInsides(ctx, dir, a); err != nil {
			return err
		}
	}
	return checkAlternates(filepath.Join(r.common, "objects"), a, 0)
}

func absolute(dir, target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(dir, target)
}

var errLeadsOut = errors.New("this repository refers to files outside of the directories of the job, so it is not used")

// inside returns the real path if it lies in one of the areas.
func inside(path string, a *areas) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !a.hold(real) {
		return "", errLeadsOut
	}
	return real, nil
}

// pointer reads a file that holds one path.
func pointer(path, prefix string) (string, error) {
	data, err := readSmall(path)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !ok || target == "" {
		return "", errors.New("the .git of this directory is no repository")
	}
	return target, nil
}

// readSmall reads a regular file without following a link. A file that is missing is fs.ErrNotExist.
func readSmall(path string) ([]byte, error) {
	stat, err := os.Lstat(path)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	if !stat.Mode().IsRegular() {
		return nil, errLeadsOut
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.New("the repository cannot be read by the account of the job")
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPointer+1))
	if err != nil || len(data) > maxPointer {
		return nil, errors.New("a file of the repository that should hold a path is too large, or cannot be read")
	}
	return data, nil
}

// checkAlternates follows the lists of further object directories.
func checkAlternates(objects string, a *areas, depth int) error {
	data, err := readSmall(filepath.Join(objects, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || depth >= maxAlternates {
		return errLeadsOut
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxPointer+1)
	for n := 0; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		// git takes a quoted path too; nobody needs one.
		if n >= maxAlternates || line[0] == '"' {
			return errLeadsOut
		}
		next, err := inside(absolute(objects, line), a)
		if err != nil {
			return err
		}
		if err := checkAlternates(next, a, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// checkInsides walks the insides of a repository, without the objects, which git verifies. Links that lead out and files
// that would make git wait are errors: git prints lines of files that it cannot understand, and writes through links.
func checkInsides(ctx context.Context, dir string, a *areas) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return errors.New("the repository cannot be read by the account of the job")
	}
	defer root.Close()
	seen := 0
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return errors.New("a part of the repository cannot be read by the account of the job")
		}
		if seen++; seen > maxInsides {
			return fmt.Errorf("the repository has more than %d files of its own besides objects: it is too large for this tool", maxInsides)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch kind := entry.Type(); {
		case entry.IsDir() && isFanOut(name):
			return fs.SkipDir
		case kind&fs.ModeSymlink != 0:
			_, err := inside(filepath.Join(dir, name), a)
			return err
		case !kind.IsRegular() && !entry.IsDir() && kind&fs.ModeSocket == 0:
			return errors.New("the repository holds a pipe or a device, so it is not used")
		}
		return nil
	})
}

// isFanOut reports whether a directory holds single objects.
func isFanOut(name string) bool {
	dir, base, _ := strings.Cut(name, "/")
	return dir == "objects" && len(base) == 2
}

// prefix is the working directory relative to the work tree, "." at its top.
func (r *repository) prefix() string {
	rel, err := filepath.Rel(r.tree, r.dir)
	if err != nil {
		return "."
	}
	return rel
}
