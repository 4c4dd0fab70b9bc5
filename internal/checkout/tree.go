package checkout

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// entry is one file of a source.
type entry struct {
	// Path is relative to the source, with slashes.
	Path string `json:"path"`
	// Mode is modeFile, modeExecutable or modeLink.
	Mode string `json:"mode"`
	// Hash and Size are those of the content of a file.
	Hash string `json:"sha256,omitempty"`
	Size int64  `json:"size,omitempty"`
	// Target is where a link leads.
	Target string `json:"target,omitempty"`
	// object is the name that git has for the content.
	object string
}

// The modes of entries.
const (
	modeFile       = "file"
	modeExecutable = "executable"
	modeLink       = "link"
)

// invalid is an error that only somebody who changes the source, or the request, can mend.
func invalid(format string, args ...any) error {
	return &problem.Error{Kind: problem.Invalid, Op: "prepare the workspace", Err: fmt.Errorf(format, args...)}
}

// ofSource says which source an error is about.
func ofSource(name string, err error) error {
	kind := problem.Unavailable
	if known, ok := errors.AsType[*problem.Error](err); ok {
		kind = known.Kind
	}
	return &problem.Error{Kind: kind, Op: "prepare the workspace", Err: fmt.Errorf("the source %q: %w", name, inWords(cause(err)))}
}

// cause is the error without the operation around it, which is said once.
func cause(err error) error {
	if known, ok := err.(*problem.Error); ok && known.Err != nil {
		return known.Err
	}
	return err
}

// checkPath refuses a path that a tree of files has no business to hold.
func checkPath(name string) error {
	if len(name) > 4096 || strings.ContainsRune(name, 0) || path.Clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name)) || name == "." {
		return invalid("it holds a file with the path %q", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 255 {
			return invalid("it holds a file whose name has more than 255 bytes: %.80q", name)
		}
	}
	return nil
}

// staysInside reports whether a link leads to a place below the top of its source, as far as its text tells. Whoever opens
// it is confined all the same.
func staysInside(link, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) || len(target) > 4096 {
		return false
	}
	depth := strings.Count(link, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return false
			}
		default:
			depth++
		}
	}
	return true
}

// writer writes the files of a source below a directory that is held open. It may be used by several goroutines.
type writer struct {
	root *os.Root
	mu   sync.Mutex
	made map[string]bool
}

// writeSources makes a directory for each source.
func (s *Service) writeSources(ctx context.Context, r Request, root *os.Root, pins []Pin) (left []string, err error) {
	for _, pin := range pins {
		if err := root.Mkdir(pin.Name, 0o755); err != nil {
			return nil, err
		}
		below, err := root.OpenRoot(pin.Name)
		if err != nil {
			return nil, err
		}
		var notes []string
		w := &writer{root: below, made: map[string]bool{}}
		if pin.Kind == project.Git {
			notes, err = s.writeCommit(ctx, r, pin, w)
		} else {
			notes, err = s.writeSnapshot(ctx, pin, w)
		}
		if err = errors.Join(err, below.Close()); err != nil {
			return nil, ofSource(pin.Name, err)
		}
		for _, note := range notes {
			left = append(left, fmt.Sprintf("`source/%s/`: %s", pin.Name, note))
		}
	}
	return left, nil
}

// file writes one file, which must not be there.
func (w *writer) file(e entry, content io.Reader) error {
	if err := w.makeDir(path.Dir(e.Path)); err != nil {
		return err
	}
	mode := fs.FileMode(0o444)
	if e.Mode == modeExecutable {
		mode = 0o555
	}
	file, err := w.root.OpenFile(filepath.FromSlash(e.Path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return invalid("this machine cannot tell the path %q from another one of the source", e.Path)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

func (w *writer) makeDir(dir string) error {
	if dir == "." {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made[dir] {
		return nil
	}
	if err := w.root.MkdirAll(filepath.FromSlash(dir), 0o755); err != nil {
		return err
	}
	w.made[dir] = true
	return nil
}

// link writes a link. It is called when every file is there, so that none is written through it.
func (w *writer) link(e entry) error {
	if err := w.makeDir(path.Dir(e.Path)); err != nil {
		return err
	}
	return w.root.Symlink(filepath.FromSlash(e.Target), filepath.FromSlash(e.Path))
}

// copyAll writes files whose content is in the store of artifacts, several at a time, and then the links.
func (s *Service) copyAll(ctx context.Context, w *writer, entries []entry) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan entry)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for e := range queue {
				if err := s.copyOne(ctx, w, e); err != nil {
					cancel(fmt.Errorf("%s: %w", e.Path, err))
				}
			}
		})
	}
	for _, e := range entries {
		if e.Mode != modeLink && ctx.Err() == nil {
			queue <- e
		}
	}
	close(queue)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, e := range entries {
		if e.Mode == modeLink {
			if err := w.link(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) copyOne(ctx context.Context, w *writer, e entry) error {
	from, err := s.config.Artifacts.Open(ctx, e.Hash)
	if err != nil {
		return err
	}
	return errors.Join(w.file(e, from), from.Close())
}

// inputs finds the artifacts that a run is given, with the paths below inputs/.
func (s *Service) inputs(ctx context.Context, r Request) ([]entry, error) {
	var all []entry
	taken := map[string]bool{}
	for _, in := range r.Inputs {
		if dir := in.dir(); !project.IsSourceName(dir) && !isRunID(dir) {
			return nil, invalid("%q is no directory for an input", dir)
		}
		found, err := s.artifactsOf(ctx, r.Tenant, in)
		if err != nil {
			return nil, fmt.Errorf("the input %q of run %s: %w", in.Path, in.Run, err)
		}
		for _, a := range found {
			e := entry{Path: path.Join(in.dir(), a.Path), Mode: modeFile, Hash: a.Hash, Size: a.Size}
			if a.Executable {
				e.Mode = modeExecutable
			}
			if err := checkPath(e.Path); err != nil {
				return nil, err
			}
			if taken[e.Path] {
				return nil, invalid("two inputs have the path inputs/%s", e.Path)
			}
			taken[e.Path] = true
			all = append(all, e)
		}
	}
	return all, s.bounded("the inputs", all)
}

func (s *Service) artifactsOf(ctx context.Context, tenant string, in Input) ([]artifact.Artifact, error) {
	if in.Path != "" {
		a, err := s.config.Artifacts.Find(ctx, tenant, in.Run, in.Path)
		return []artifact.Artifact{a}, err
	}
	const page = 1000
	var all []artifact.Artifact
	for after := ""; ; {
		some, err := s.config.Artifacts.OfRun(ctx, tenant, in.Run, after, page)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(all) == 0 {
			return nil, fmt.Errorf("the run has no outputs: %w", store.ErrNotFound)
		}
		if len(some) < page || len(all) > s.config.Limits.MaxFiles {
			return all, nil
		}
		after = some[len(some)-1].Path
	}
}

// bounded refuses what is more than a run may be given.
func (s *Service) bounded(what string, entries []entry) error {
	var bytes int64
	for _, e := range entries {
		bytes += e.Size
	}
	if len(entries) > s.config.Limits.MaxFiles || bytes > s.config.Limits.MaxBytes {
		return invalid("%s: more than %d files or %d bytes", what, s.config.Limits.MaxFiles, s.config.Limits.MaxBytes)
	}
	return nil
}

func (s *Service) writeInputs(ctx context.Context, root *os.Root, entries []entry) error {
	return s.copyAll(ctx, &writer{root: root, made: map[string]bool{}}, entries)
}

// isObjectID reports whether a text is the whole name of an object of git, of either hash.
func isObjectID(text string) bool {
	if len(text) != 40 && len(text) != 64 || strings.ToLower(text) != text {
		return false
	}
	_, err := hex.DecodeString(text)
	return err == nil
}
