package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hozo-run/hozo/job"
)

// blobs keeps output files by the digest of their content. A file under its name is whole: it gets the name only when
// its content is on the disk and has been checked.
type blobs struct {
	dir     string
	outDir  string
	further string // where else a file may be found

	root *os.Root // of outDir, opened with the first file
	made bool
}

// keep stores the files of a checkpoint.
func (b *blobs) keep(files []job.CheckpointFile) error {
	added := false
	for _, file := range files {
		if err := checkFile(file); err != nil {
			return err
		}
		if b.has(b.dir, file) {
			continue
		}
		if err := b.prepare(); err != nil {
			return err
		}
		if err := b.add(file); err != nil {
			return fmt.Errorf("keep the output file %s: %w", file.Path, err)
		}
		added = true
	}
	if !added {
		return nil
	}
	return syncDir(b.dir)
}

// checkFile refuses what no checkpoint may hold.
func checkFile(file job.CheckpointFile) error {
	digest, err := hex.DecodeString(file.Hash)
	if err != nil || len(digest) != sha256.Size || strings.ToLower(file.Hash) != file.Hash {
		return fmt.Errorf("checkpoint: %q of the file %s is no SHA-256 in small hex digits", file.Hash, file.Path)
	}
	return checkPath(file.Path)
}

func checkPath(path string) error {
	if !filepath.IsLocal(path) || path == "." {
		return fmt.Errorf("checkpoint: %q is no path of a file below the output directory", path)
	}
	return nil
}

func (b *blobs) has(dir string, file job.CheckpointFile) bool {
	info, err := os.Lstat(filepath.Join(dir, file.Hash))
	return err == nil && info.Mode().IsRegular() && info.Size() == file.Size
}

func (b *blobs) prepare() error {
	if b.made {
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	b.made = true
	return syncDir(filepath.Dir(b.dir))
}

// add copies a file from wherever it is.
func (b *blobs) add(file job.CheckpointFile) error {
	if b.further != "" && b.has(b.further, file) {
		from, err := os.Open(filepath.Join(b.further, file.Hash))
		if err != nil {
			return err
		}
		defer from.Close()
		return b.copy(from, file)
	}
	from, err := b.open(file.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	return b.copy(from, file)
}

// open opens a regular file below the output directory. Nothing that stands there instead can make it wait or lead
// outside.
func (b *blobs) open(path string) (*os.File, error) {
	if b.root == nil {
		if b.outDir == "" {
			return nil, errors.New("the journal was opened without an output directory")
		}
		root, err := os.OpenRoot(b.outDir)
		if err != nil {
			return nil, err
		}
		b.root = root
	}
	file, err := b.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is no regular file but %v", info.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// copy writes the content under the name of its digest, if it is what the checkpoint says.
func (b *blobs) copy(from io.Reader, file job.CheckpointFile) error {
	to, err := os.CreateTemp(b.dir, "new-*")
	if err != nil {
		return err
	}
	err = copyChecked(to, from, file)
	if err == nil {
		err = to.Sync()
	}
	err = errors.Join(err, to.Close())
	if err == nil {
		err = os.Rename(to.Name(), filepath.Join(b.dir, file.Hash))
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return nil
}

// copyChecked copies exactly the content that the checkpoint names.
func copyChecked(to io.Writer, from io.Reader, file job.CheckpointFile) error {
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(from, file.Size+1))
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); size != file.Size || got != file.Hash {
		return fmt.Errorf("the content is not that of the checkpoint (%d bytes, SHA-256 %s): something changed it since", file.Size, file.Hash)
	}
	return nil
}

// check reads a stored file and says what is wrong with it.
func (b *blobs) check(file job.CheckpointFile) error {
	from, err := os.Open(filepath.Join(b.dir, file.Hash))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the content of %s (SHA-256 %s) is missing", file.Path, file.Hash)
	}
	if err != nil {
		return err
	}
	defer from.Close()
	if err := copyChecked(io.Discard, from, file); err != nil {
		return fmt.Errorf("the content of %s: %w", file.Path, err)
	}
	return nil
}

func (b *blobs) close() error {
	if b.root == nil {
		return nil
	}
	return b.root.Close()
}
