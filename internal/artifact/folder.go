package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Folder keeps content in files of a directory on this machine. A file is called by its hash, below a directory of the
// first two digits, and has that name only when its content is whole and on the disk.
type Folder struct {
	root *os.Root
	path string
}

var _ Blobs = (*Folder)(nil)

// temporaryPrefix begins the names of files that are being written. What a process left behind is older than a day.
const (
	temporaryPrefix = "new-"
	temporaryAge    = 24 * time.Hour
)

// OpenFolder opens a directory, which is made if it is missing, and removes what writers that died left in it.
func OpenFolder(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder of blobs: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the folder of blobs: %w", err)
	}
	f := &Folder{root: root, path: path}
	if err := f.sweep(time.Now().Add(-temporaryAge)); err != nil {
		return nil, errors.Join(fmt.Errorf("sweep the folder of blobs: %w", err), root.Close())
	}
	return f, nil
}

// Close releases the directory.
func (f *Folder) Close() error { return f.root.Close() }

func (f *Folder) sweep(before time.Time) error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), temporaryPrefix) {
			continue
		}
		info, err := e.Info()
		if err == nil && info.ModTime().Before(before) {
			err = f.root.Remove(e.Name())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func fileOf(hash string) string { return filepath.Join(hash[:2], hash) }

// Put implements Blobs.
func (f *Folder) Put(ctx context.Context, hash string, content io.Reader) error {
	if err := CheckHash(hash); err != nil {
		return err
	}
	if info, err := f.root.Lstat(fileOf(hash)); err == nil && info.Mode().IsRegular() {
		return nil
	}
	if err := f.write(ctx, hash, content); err != nil {
		return fmt.Errorf("keep the blob %s: %w", hash, inWords(err))
	}
	return nil
}

func (f *Folder) write(ctx context.Context, hash string, content io.Reader) error {
	if err := f.makeDir(hash[:2]); err != nil {
		return err
	}
	name := temporaryPrefix + newID("")
	to, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, newVerifier(untilDone(ctx, content), hash))
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = f.root.Rename(name, fileOf(hash))
	}
	if err != nil {
		return errors.Join(err, f.root.Remove(name))
	}
	return f.sync(hash[:2])
}

func (f *Folder) makeDir(name string) error {
	switch err := f.root.Mkdir(name, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return f.sync(".")
}

// sync makes the names in a directory durable.
func (f *Folder) sync(name string) error {
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Open implements Blobs.
func (f *Folder) Open(_ context.Context, hash string) (*Reader, error) {
	if err := CheckHash(hash); err != nil {
		return nil, err
	}
	info, err := f.root.Lstat(fileOf(hash))
	if err != nil {
		return nil, fmt.Errorf("open the blob %s: %w", hash, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open the blob %s: it is no regular file but %v", hash, info.Mode().Type())
	}
	return newReader(Blob{Hash: hash, Size: info.Size(), ModTime: info.ModTime()}, func(offset int64) (io.ReadCloser, error) {
		file, err := f.root.Open(fileOf(hash))
		if err != nil {
			return nil, fmt.Errorf("read the blob %s: %w", hash, err)
		}
		if _, err := file.Seek(offset, io.SeekStart); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return file, nil
	}), nil
}

// Delete implements Blobs.
func (f *Folder) Delete(_ context.Context, hash string) error {
	if err := CheckHash(hash); err != nil {
		return err
	}
	if err := f.root.Remove(fileOf(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the blob %s: %w", hash, inWords(err))
	}
	return nil
}

// List implements Blobs.
func (f *Folder) List(ctx context.Context) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		err := fs.WalkDir(f.root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, fs.ErrNotExist): // removed meanwhile
				return nil
			case err != nil:
				return err
			case !e.Type().IsRegular() || CheckHash(e.Name()) != nil || filepath.FromSlash(path) != fileOf(e.Name()):
				return nil
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if !yield(Blob{Hash: e.Name(), Size: info.Size(), ModTime: info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Blob{}, fmt.Errorf("list the blobs: %w", err))
		}
	}
}

// inWords names the errors that somebody has to do something about.
func inWords(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room, or move it to a larger disk: %w", ErrFull, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: this process may not write there: %w", ErrReadOnly, err)
	}
	return err
}

// readerFunc is a function as an io.Reader.
type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// untilDone stops reading when ctx ends.
func untilDone(ctx context.Context, from io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return from.Read(p)
	})
}
