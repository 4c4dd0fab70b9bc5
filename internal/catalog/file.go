package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hozo-run/hozo/problem"
)

// ParseFile reads the package of the agent file at path: the file itself and, in the folders beside it,
// skills/<name>/SKILL.md, subagents/<name>.md and schemas/<name>.json. It opens nothing else and reads regular files only, each up to its limit. Findings carry paths that begin with
// path's directory. Entries whose name begins with a dot are no part of a package.
func ParseFile(path string) (*Package, problem.List) {
	dir, base := filepath.Split(path)
	var list problem.List
	files := make(map[string][]byte)
	data, err := readRegular(func() (*os.File, error) { return os.OpenFile(path, openFlags, 0) }, MaxFrontmatter+MaxInstructions+1024)
	switch {
	case err != nil:
		unreadable(base, err, &list)
	case !strings.HasSuffix(base, ".md"):
		findings{base, &list}.add(CodeFileUnexpected, "", mark{}, "name it <name>.md", "an agent's file is a Markdown file")
	default:
		files[base] = data
	}
	var pkg *Package
	if files[base] != nil {
		readFolders(filepath.Clean(dir), files, &list)
		var found problem.List
		pkg, found = ParsePackage(files)
		list = append(list, found...)
		pkg.each(func(agent *Package) { agent.path = dir + filepath.FromSlash(agent.path) })
	}
	for i := range list {
		list[i].Path = dir + filepath.FromSlash(list[i].Path)
	}
	return pkg, list
}

// openFlags keeps an open of a named pipe from waiting for a writer; regular files are not affected.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

var (
	errNotRegular = errors.New("it is not a regular file")
	errTooLarge   = errors.New("it is too large")
	errLinkOut    = errors.New("it is a link that leads out of the package")
)

// readRegular reads what open opens if that is a regular file of at most limit bytes. The bytes read are counted, not
// the size that the file system claims.
func readRegular(open func() (*os.File, error), limit int64) (data []byte, err error) {
	file, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	stat, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !stat.Mode().IsRegular() {
		return nil, errNotRegular
	}
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: at most %d bytes are allowed", errTooLarge, limit)
	}
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// unreadable reports why a file of the package was not read.
func unreadable(path string, err error, list *problem.List) {
	code, hint := CodeFileUnreadable, ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code, hint = CodeFileMissing, "check the path"
	case errors.Is(err, errTooLarge):
		code = CodeFileTooLarge
	case errors.Is(err, errNotRegular), errors.Is(err, errLinkOut):
		hint = "a package holds regular files only"
	}
	// The path is in the finding already; of the error only its cause is news.
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		err = inPath.Err
	}
	findings{path, list}.add(code, "", mark{}, hint, "the file cannot be read: "+err.Error())
}

// readFolders adds the files of the folders in dir. Links that leave dir are not followed.
func readFolders(dir string, files map[string][]byte, list *problem.List) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		unreadable("", err, list)
		return
	}
	defer func() { _ = root.Close() }() // nothing was written through it, so there is nothing to lose
	for _, folder := range folders() {
		entries, err := readDir(root, folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			unreadable(folder, linkOut(root, folder, err), list)
			continue
		case tooMany(folder, len(entries), list):
			continue
		}
		for _, entry := range entries {
			if folder == folderSkills {
				readSkill(root, folder+"/"+entry, files, list)
			} else {
				readFile(root, folder+"/"+entry, files, list)
			}
		}
	}
}

// readFile adds a file of subagents or schemas.
func readFile(root *os.Root, path string, files map[string][]byte, list *problem.List) {
	limit := int64(MaxFrontmatter + MaxInstructions + 1024)
	switch folder, ok := folderOf(path); {
	case !ok:
		findings{path, list}.add(CodeFileUnexpected, "", mark{}, layoutHint, "the file is no part of a package")
		return
	case folder == folderSchemas:
		limit = MaxSchema
	}
	data, err := readRegular(func() (*os.File, error) { return root.OpenFile(path, openFlags, 0) }, limit)
	if err != nil {
		unreadable(path, linkOut(root, path, err), list)
		return
	}
	files[path] = data
}

// readSkill adds skills/<name>/SKILL.md and reports every other entry of the folder.
func readSkill(root *os.Root, folder string, files map[string][]byte, list *problem.List) {
	entries, err := readDir(root, folder)
	if err != nil {
		unreadable(folder, linkOut(root, folder, err), list)
		return
	}
	if !slices.Contains(entries, SkillFile) {
		findings{folder, list}.add(CodeFileMissing, "", mark{}, "add "+folder+"/"+SkillFile+", or remove the folder", "the skill's folder has no "+SkillFile)
	}
	for _, entry := range entries {
		path := folder + "/" + entry
		if entry != SkillFile {
			findings{path, list}.add(CodeFileUnexpected, "", mark{}, "a skill is its "+SkillFile+" alone", "the file is no part of a package")
			continue
		}
		data, err := readRegular(func() (*os.File, error) { return root.OpenFile(path, openFlags, 0) }, MaxFrontmatter+MaxSkill+1024)
		if err != nil {
			unreadable(path, linkOut(root, path, err), list)
			continue
		}
		files[path] = data
	}
}

// linkOut returns errLinkOut if path is a link that root did not follow, else err as it is.
func linkOut(root *os.Root, path string, err error) error {
	if _, system := errors.AsType[syscall.Errno](err); system || errors.Is(err, errNotRegular) || errors.Is(err, errTooLarge) {
		return err
	}
	if stat, failed := root.Lstat(path); failed == nil && stat.Mode()&fs.ModeSymlink != 0 {
		return errLinkOut
	}
	return err
}

// readDir returns the sorted names in a directory, without those that begin with a dot.
func readDir(root *os.Root, path string) ([]string, error) {
	file, err := root.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, err
	}
	names, err := file.Readdirnames(-1)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") })
	slices.Sort(names)
	return names, nil
}
