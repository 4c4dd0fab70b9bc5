package checkout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/project"
)

// manifest is the list of the files of a directory at some time. Its SHA-256, over this JSON, names the snapshot.
type manifest struct {
	V int `json:"v"`
	// Files are in the order of their paths.
	Files []entry `json:"files"`
	// Left says what was left out, and why.
	Left []string `json:"left,omitempty"`
}

const (
	manifestVersion = 1
	maxManifest     = 256 << 20
	// maxLeft bounds how many things that were left out are named.
	maxLeft = 50
	// maxLooks is how often a file is looked at that changes all the time.
	maxLooks = 5
)

// snapshot keeps what a directory holds now and returns the digest of its list.
func (s *Service) snapshot(ctx context.Context, tenant string, source project.Source) (string, error) {
	root, err := s.openDirectory(source.Location)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for range maxLooks {
		digest, err := s.snapshotOnce(ctx, tenant, root, source.Exclude)
		if !errors.Is(err, artifact.ErrMismatch) {
			return digest, err
		}
	}
	return "", fmt.Errorf("its files change all the time; exclude those that do")
}

// openDirectory opens a directory if that is really below one of those that may be read, wherever links lead.
func (s *Service) openDirectory(location string) (*os.Root, error) {
	real, err := filepath.EvalSymlinks(location)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, invalid("there is no directory %s on this machine", location)
	}
	if err != nil {
		return nil, err
	}
	if !s.permits(real) {
		return nil, invalid("%s leads to a directory that may not be read; the operator of the server names those that may", location)
	}
	return os.OpenRoot(real)
}

// permits reports whether a real path is below a directory that may be read.
func (s *Service) permits(real string) bool {
	for _, dir := range s.config.Directories {
		if at, err := filepath.EvalSymlinks(dir); err == nil && project.Below([]string{at}, real) {
			return true
		}
	}
	return false
}

func (s *Service) snapshotOnce(ctx context.Context, tenant string, root *os.Root, exclude []string) (string, error) {
	look := &looking{service: s, root: root, exclude: exclude, list: manifest{V: manifestVersion, Files: []entry{}}}
	if err := fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error { return look.visit(ctx, name, e, err) }); err != nil {
		return "", err
	}
	contents := make([]artifact.Content, 0, len(look.list.Files))
	hashes := make([]string, 0, len(look.list.Files))
	for _, e := range look.list.Files {
		if e.Mode == modeLink {
			continue
		}
		contents = append(contents, artifact.Content{Hash: e.Hash, Open: func() (io.ReadCloser, error) {
			file, err := openRegular(root, e.Path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
				err = fmt.Errorf("%w: %w", artifact.ErrMismatch, err)
			}
			if err != nil {
				return nil, err
			}
			return file, nil
		}})
		hashes = append(hashes, e.Hash)
	}
	if err := s.config.Artifacts.PutAll(ctx, contents); err != nil {
		return "", err
	}
	return s.keepManifest(ctx, tenant, &look.list, hashes)
}

func (s *Service) keepManifest(ctx context.Context, tenant string, list *manifest, hashes []string) (string, error) {
	data, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if err := s.config.Artifacts.Put(ctx, digest, bytes.NewReader(data)); err != nil {
		return "", err
	}
	return digest, s.config.Artifacts.Hold(ctx, artifact.Holder{Tenant: tenant, Kind: heldBySnapshot, ID: digest}, append(hashes, digest)...)
}

// looking is one walk through a directory.
type looking struct {
	service *Service
	root    *os.Root
	exclude []string
	list    manifest
	bytes   int64
}

func (l *looking) leave(format string, args ...any) {
	if len(l.list.Left) < maxLeft {
		l.list.Left = append(l.list.Left, fmt.Sprintf(format, args...))
	}
}

func (l *looking) visit(ctx context.Context, name string, e fs.DirEntry, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist) && name != ".": // removed meanwhile
		return nil
	case err != nil:
		return err
	case name == ".":
		return nil
	case l.excluded(name):
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	case !utf8.ValidString(name):
		l.leave("the name %q is no UTF-8", name)
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	case e.IsDir():
		return nil
	case len(l.list.Files) >= l.service.config.Limits.MaxFiles:
		return invalid("it has more than %d files; exclude what the runs do not need", l.service.config.Limits.MaxFiles)
	case e.Type()&fs.ModeSymlink != 0:
		return l.link(name)
	case !e.Type().IsRegular():
		l.leave("%q is no regular file but %v", name, e.Type())
		return nil
	}
	return l.file(ctx, name)
}

func (l *looking) excluded(name string) bool {
	for _, pattern := range l.exclude {
		if match, err := doublestar.Match(pattern, name); err == nil && match {
			return true
		}
	}
	return false
}

func (l *looking) link(name string) error {
	target, err := l.root.Readlink(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) { // it is none any more
		return nil
	}
	if err != nil {
		return err
	}
	target = filepath.ToSlash(target)
	if !utf8.ValidString(target) || !staysInside(name, target) {
		l.leave("the link %q leads out of the source", name)
		return nil
	}
	l.list.Files = append(l.list.Files, entry{Path: name, Mode: modeLink, Target: target})
	return nil
}

func (l *looking) file(ctx context.Context, name string) error {
	file, err := openRegular(l.root, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		l.leave("%q may not be read by the server", name)
		return nil
	}
	if err != nil {
		return err
	}
	e, err := l.look(ctx, name, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	l.list.Files = append(l.list.Files, e)
	return nil
}

func (l *looking) look(ctx context.Context, name string, file *os.File) (entry, error) {
	info, err := file.Stat()
	if err != nil {
		return entry{}, err
	}
	e := entry{Path: name, Mode: modeFile}
	if info.Mode()&0o100 != 0 {
		e.Mode = modeExecutable
	}
	room := l.service.config.Limits.MaxBytes - l.bytes
	sum := sha256.New()
	if e.Size, err = io.Copy(sum, io.LimitReader(file, room+1)); err != nil {
		return entry{}, err
	}
	if e.Size > room {
		return entry{}, invalid("its files have more than %d bytes together; exclude what the runs do not need", l.service.config.Limits.MaxBytes)
	}
	l.bytes += e.Size
	e.Hash = hex.EncodeToString(sum.Sum(nil))
	return e, ctx.Err()
}

// errNotRegular is the error of what is no regular file any more.
var errNotRegular = errors.New("it is no regular file")

// openRegular opens a regular file. Nothing that stands there instead can make it wait or lead outside.
func openRegular(root *os.Root, name string) (*os.File, error) {
	file, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// writeSnapshot writes the files of a snapshot, wherever it was made.
func (s *Service) writeSnapshot(ctx context.Context, pin Pin, w *writer) ([]string, error) {
	from, err := s.config.Artifacts.Open(ctx, pin.Digest)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(from, maxManifest))
	if err = errors.Join(err, from.Close()); err != nil {
		return nil, err
	}
	var list manifest
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("the list of the snapshot %s cannot be read: %w", pin.Digest, err)
	}
	if list.V != manifestVersion {
		return nil, fmt.Errorf("the list of the snapshot %s has version %d, this program knows %d", pin.Digest, list.V, manifestVersion)
	}
	for _, e := range list.Files {
		if err := checkPath(e.Path); err != nil {
			return nil, err
		}
		if e.Mode == modeLink && !staysInside(e.Path, e.Target) {
			return nil, invalid("the link %q leads out of the source", e.Path)
		}
	}
	return list.Left, s.copyAll(ctx, w, list.Files)
}
