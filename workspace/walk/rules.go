package walk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/hozo-run/hozo/workspace/ignore"
)

// maxRules bounds the size of an ignore file that is read.
const maxRules = 1 << 20

// fileNames tells which files with rules a directory has.
type fileNames struct {
	git, plain, repository bool
}

func (f *fileNames) note(name []byte) {
	switch string(name) {
	case ignore.GitFile:
		f.git = true
	case ignore.PlainFile:
		f.plain = true
	case ignore.RepositoryName:
		f.repository = true
	}
}

// rules returns the level for the directory h, whose path is dir. An error
// names the file that could not be read; the level then lacks its rules.
func (h handle) rules(above *ignore.Level, dir string, names fileNames) (*ignore.Level, error) {
	files := ignore.Files{Repository: names.repository}
	var errs [3]error
	if names.git {
		files.Git, errs[0] = h.ruleFile(ignore.GitFile)
	}
	if names.plain {
		files.Plain, errs[1] = h.ruleFile(ignore.PlainFile)
	}
	if names.repository {
		files.Exclude, errs[2] = h.excludeFile()
	}
	return above.Below(dir, files), errors.Join(errs[:]...)
}

// excludeFile reads .git/info/exclude, which is absent where .git is a file.
func (h handle) excludeFile() (*ignore.Rules, error) {
	elements := strings.Split(ignore.ExcludeFile, "/")
	dirs, name := elements[:len(elements)-1], elements[len(elements)-1]
	for i, element := range dirs {
		next, err := h.openDir(element)
		if i > 0 {
			h.close()
		}
		if err != nil {
			return nil, notApplied(ignore.ExcludeFile, err)
		}
		h = next
	}
	defer h.close()
	return h.ruleFile(name)
}

func (h handle) ruleFile(name string) (*ignore.Rules, error) {
	f, err := h.openFile(name)
	if err != nil {
		return nil, notApplied(name, err)
	}
	defer f.Close()
	if f.Size() > maxRules {
		return nil, notApplied(name, fmt.Errorf("it is larger than %d bytes", maxRules))
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, notApplied(name, err)
	}
	return ignore.Parse(content), nil
}

// notApplied says that a file with rules could not be used. It drops an error
// which says that there is no such regular file or directory; links to rules
// are not followed.
func notApplied(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errChanged) {
		return nil
	}
	return fmt.Errorf("its %s is not applied: %w", name, err)
}

// Above returns the rules that the directories above dir carry, from top down,
// for use as Config.Ignore; dir is relative to top, with slashes. A directory
// that cannot be read contributes nothing, which leaves out less than it might.
// If the rules leave out dir itself there are none: who names such a directory
// wants to see it.
func Above(top *os.Root, dir string) *ignore.Level {
	var level *ignore.Level
	way := wayTo(path.Clean(dir))
	for i, next := range way[1:] {
		level = below(level, top, way[i])
		if level.Ignored([]byte(next), true) {
			return nil
		}
	}
	return level
}

// wayTo lists the directories on the way to dir: for "a/b" they are ".", "a"
// and "a/b".
func wayTo(dir string) []string {
	way := []string{"."}
	for i := range len(dir) {
		if dir[i] == '/' {
			way = append(way, dir[:i])
		}
	}
	if dir != "." {
		way = append(way, dir)
	}
	return way
}

func below(level *ignore.Level, top *os.Root, dir string) *ignore.Level {
	root, err := top.OpenRoot(dir)
	if err != nil {
		return level
	}
	defer root.Close()
	h, err := openTop(root)
	if err != nil {
		return level
	}
	defer h.close()
	_, err = root.Lstat(ignore.RepositoryName)
	if dir == "." {
		dir = ""
	}
	next, _ := h.rules(level, dir, fileNames{git: true, plain: true, repository: err == nil})
	return next
}
