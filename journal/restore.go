package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hozo-run/hozo/job"
)

// Tree is the output directory of a job at some point: its files by path.
type Tree map[string]job.CheckpointFile

// TreeOf returns the output directory as the last of the checkpoints among frames has it. Frames that a Fork has cut give
// it as it was then.
func TreeOf(frames iter.Seq2[[]byte, error]) (Tree, error) {
	tree := Tree{}
	for frame, err := range frames {
		if err != nil {
			return nil, err
		}
		head, err := job.ParseFrameHead(frame)
		if err != nil {
			return nil, err
		}
		if head.Type != job.FrameCheckpoint {
			continue
		}
		c, err := checkpointOf(frame)
		if err != nil {
			return nil, err
		}
		for _, path := range c.Removed {
			delete(tree, path)
		}
		for _, file := range c.Files {
			if err := checkFile(file); err != nil {
				return nil, err
			}
			tree[file.Path] = file
		}
	}
	return tree, nil
}

// Restore makes outDir, which is made if it is missing, hold exactly the files of the tree: what is not in the tree is
// removed, what differs is written anew from the directory of blobs. Directories are those that the files need.
func (t Tree) Restore(outDir, blobsDir string) error {
	return t.RestoreFrom(outDir, func(hash string) (io.ReadCloser, error) { return os.Open(filepath.Join(blobsDir, hash)) })
}

// RestoreFrom is Restore for content that is kept elsewhere: open returns what has a SHA-256, in hex. What it returns is
// checked.
func (t Tree) RestoreFrom(outDir string, open func(hash string) (io.ReadCloser, error)) error {
	if err := os.MkdirAll(outDir, 0o755); err != nil {
		return fmt.Errorf("restore the output directory: %w", err)
	}
	root, err := os.OpenRoot(outDir)
	if err != nil {
		return fmt.Errorf("restore the output directory: %w", err)
	}
	defer root.Close()
	if err := t.removeOthers(root); err != nil {
		return fmt.Errorf("restore the output directory: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(t)) {
		if err := restoreFile(root, open, t[path]); err != nil {
			return fmt.Errorf("restore the output file %s: %w", path, err)
		}
	}
	return nil
}

// removeOthers removes every file that is not in the tree, and then every directory that the tree does not need.
func (t Tree) removeOthers(root *os.Root) error {
	needed := map[string]bool{".": true}
	for path := range t {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			needed[dir] = true
		}
	}
	var dirs []string
	err := fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path = filepath.FromSlash(path)
		if entry.IsDir() {
			if !needed[path] {
				dirs = append(dirs, path)
			}
			return nil
		}
		if _, ours := t[path]; ours && entry.Type().IsRegular() {
			return nil
		}
		return root.Remove(path)
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := root.Remove(dir); err != nil {
			return err
		}
	}
	return nil
}

func restoreFile(root *os.Root, open func(hash string) (io.ReadCloser, error), file job.CheckpointFile) error {
	mode := fs.FileMode(0o644)
	if file.Executable {
		mode = 0o755
	}
	if same(root, file) {
		return setExecutable(root, file, mode)
	}
	from, err := open(file.Hash)
	if err != nil {
		return err
	}
	defer from.Close()
	if dir := filepath.Dir(file.Path); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	temporary := file.Path + ".restoring"
	to, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = errors.Join(copyChecked(to, from, file), to.Close())
	if err == nil {
		err = root.Rename(temporary, file.Path)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return nil
}

// same reports whether the file stands there already.
func same(root *os.Root, file job.CheckpointFile) bool {
	found, err := root.Open(file.Path)
	if err != nil {
		return false
	}
	defer found.Close()
	return copyChecked(io.Discard, found, file) == nil
}

func setExecutable(root *os.Root, file job.CheckpointFile, mode fs.FileMode) error {
	info, err := root.Stat(file.Path)
	if err != nil {
		return err
	}
	if executable := info.Mode()&0o100 != 0; executable == file.Executable {
		return nil
	}
	return root.Chmod(file.Path, mode)
}
