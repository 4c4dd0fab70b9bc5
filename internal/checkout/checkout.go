// Package checkout makes the directories of a run: source/ with the sources of its project, inputs/ with artifacts of
// earlier runs, the guide WORKSPACE.md, out/ and tmp/. Which content of a source a run works on is decided once, when its
// directories are first made, and recorded: a commit of a git repository, a snapshot of a directory. A later attempt, or a
// fork, on whatever machine, gets the same files to the byte.
//
// Sources come from strangers. A repository is fetched by git with a configuration of ours alone, into a bare mirror that
// nothing is ever checked out of by git; its files are written by this package, below a directory that is held open, without
// filters, hooks, submodules and links that lead out. Nothing in a source is read as a definition of anything.
//
// The directories of a run belong to one process at a time, which holds a lock that ends with it. They stay until the run
// has ended; Sweep removes what was left of runs that have.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// Projects tells the sources of projects. *project.Service implements it.
type Projects interface {
	// Sources returns the sources of a project in the order of their names.
	Sources(ctx context.Context, tenant, project string) ([]project.Source, error)
	// Credential returns the credential of a source, the empty one if it has none.
	Credential(ctx context.Context, tenant, project, name string) (secret.Value, error)
}

// Config is what a Service is made of.
type Config struct {
	// Base is the directory below which each run has its own, and Cache that of the mirrors. Base should be relative to the
	// working directory of the process and the same on every machine: its text becomes part of the paths in the job's
	// document, whose digest must not change when a run moves. Both are made if they are missing.
	Base, Cache string
	// DB, Artifacts and Projects are required.
	DB        *store.DB
	Artifacts *artifact.Store
	Projects  Projects
	// Directories are the absolute paths below which directories may be read.
	Directories []string
	// Git is the program, an absolute path; "" looks for it in sandbox.SearchPath when a repository is needed.
	Git string
	// KnownHosts is the file of host keys for ssh; "" means that a host is trusted when it is first seen, from then on by
	// the key that it had.
	KnownHosts string
	// FetchTimeout bounds a fetch or a push; zero means 10 minutes.
	FetchTimeout time.Duration
	// Limits bound what a run is given.
	Limits Limits
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Limits bound a source and the inputs of a run; zero means the default.
type Limits struct {
	// MaxFiles is the number of files (200,000), MaxBytes their size together (4 GiB).
	MaxFiles int
	MaxBytes int64
}

// Service makes the directories of runs. It is safe for concurrent use.
type Service struct {
	config Config
	git    *gitProgram
}

// Open makes the directories of the service. It starts no program.
func Open(config Config) (*Service, error) {
	if config.Limits.MaxFiles == 0 {
		config.Limits.MaxFiles = 200_000
	}
	if config.Limits.MaxBytes == 0 {
		config.Limits.MaxBytes = 4 << 30
	}
	if config.FetchTimeout == 0 {
		config.FetchTimeout = 10 * time.Minute
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	for _, dir := range []string{config.Base, config.Cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the directories of runs: %w", inWords(err))
		}
	}
	git, err := openGit(config)
	if err != nil {
		return nil, fmt.Errorf("make the cache of repositories: %w", inWords(err))
	}
	return &Service{config: config, git: git}, nil
}

// Request says which directories to make.
type Request struct {
	// Tenant, Project and Run name the run; Project may be "".
	Tenant, Project, Run string
	// SourcesOf is a run whose sources are taken instead of those of the project, for a fork; "" is none.
	SourcesOf string
	// Inputs are artifacts of earlier runs of the tenant.
	Inputs []Input
}

// Input is an artifact, or all artifacts, of an earlier run.
type Input struct {
	Run string `json:"run"`
	// Path is that of one artifact, "" for all.
	Path string `json:"path,omitempty"`
	// As is the directory below inputs/ it goes to; "" is the id of the run.
	As string `json:"as,omitempty"`
}

// Workspace is the directories of a run, which this process holds until Close or Remove.
type Workspace struct {
	// Job is the part of the job's document. Its paths begin with Config.Base.
	Job job.Workspace
	// Sources are what is in source/.
	Sources []Pin
	// Notices say what was left out.
	Notices []job.Notice

	dir  string
	lock *lock
}

// Prepare makes the directories of a run, or takes those that an earlier attempt left in the same place, with out/ as it
// was. Errors are *problem.Error: of kind Conflict if another process holds them, Unavailable if a source cannot be reached
// or there is no room, Invalid if a source or an input is not what it should be, NotFound for an input that does not exist.
func (s *Service) Prepare(ctx context.Context, r Request) (*Workspace, error) {
	if !isRunID(r.Run) {
		return nil, fail(problem.Invalid, fmt.Errorf("%q is no id of a run", r.Run))
	}
	lock, err := takeLock(s.config.Base, r.Run)
	if err != nil {
		return nil, fail(problem.Unavailable, err)
	}
	w := &Workspace{dir: filepath.Join(s.config.Base, r.Run), lock: lock}
	if err := s.fill(ctx, r, w); err != nil {
		return nil, fail(problem.Unavailable, errors.Join(err, lock.release()))
	}
	return w, nil
}

// fail gives an error that has no kind yet the one that fits.
func fail(kind problem.Kind, err error) error {
	if _, known := errors.AsType[*problem.Error](err); known {
		return err
	}
	if errors.Is(err, store.ErrNotFound) {
		kind = problem.NotFound
	}
	return &problem.Error{Kind: kind, Op: "prepare the workspace", Err: inWords(err)}
}

func isRunID(id string) bool {
	return id != "" && len(id) <= 128 && strings.Trim(strings.ToLower(id), "abcdefghijklmnopqrstuvwxyz0123456789_-") == "" && id[0] != '-'
}

// fill makes everything that is not there. What is complete has its name; what is being made has another one.
func (s *Service) fill(ctx context.Context, r Request, w *Workspace) error {
	for _, name := range []string{"", "out"} {
		if err := os.MkdirAll(filepath.Join(w.dir, name), 0o755); err != nil {
			return err
		}
	}
	pins, err := s.pins(ctx, r)
	if err != nil {
		return err
	}
	w.Sources = pins
	if w.Notices, err = s.complete(ctx, w.dir, "source", func(root *os.Root) ([]string, error) { return s.writeSources(ctx, r, root, pins) }); err != nil {
		return err
	}
	inputs, err := s.inputs(ctx, r)
	if err != nil {
		return err
	}
	if _, err := s.complete(ctx, w.dir, "inputs", func(root *os.Root) ([]string, error) { return nil, s.writeInputs(ctx, root, inputs) }); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(w.dir, guideName), guide(pins, r.Inputs, w.Notices)); err != nil {
		return err
	}
	tmp := filepath.Join(w.dir, "tmp")
	if err := errors.Join(removeTree(tmp), os.Mkdir(tmp, 0o700)); err != nil {
		return err
	}
	out := filepath.Join(w.dir, "out")
	w.Job = job.Workspace{Root: w.dir, ReadOnly: []string{filepath.Join(w.dir, "source"), filepath.Join(w.dir, "inputs"),
		filepath.Join(w.dir, guideName), out}, OutDir: out, TmpDir: tmp}
	return nil
}

// complete makes a directory whole or not at all. What it could not take over stands in a file beside it, so that a later
// attempt knows it too.
func (s *Service) complete(ctx context.Context, dir, name string, fill func(*os.Root) ([]string, error)) ([]job.Notice, error) {
	final, notes := filepath.Join(dir, name), filepath.Join(dir, "."+name+".notes")
	if _, err := os.Lstat(final); err == nil {
		text, err := os.ReadFile(notes)
		return notices(string(text)), err
	}
	making := filepath.Join(dir, "."+name+".new")
	if err := errors.Join(removeTree(making), os.Mkdir(making, 0o755)); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(making)
	if err != nil {
		return nil, err
	}
	left, err := fill(root)
	if err == nil {
		err = protect(root)
	}
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, errors.Join(err, removeTree(making))
	}
	text := strings.Join(left, "\n")
	if err := errors.Join(ctx.Err(), writeFile(notes, text), os.Rename(making, final)); err != nil {
		return nil, err
	}
	return notices(text), nil
}

func notices(text string) []job.Notice {
	var all []job.Notice
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			all = append(all, job.Notice{Code: "source-left-out", Message: line})
		}
	}
	return all
}

// writeFile replaces a file in one step, unless it says the same already.
func writeFile(path, text string) error {
	if now, err := os.ReadFile(path); err == nil && string(now) == text {
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Chmod(0o444), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// protect takes the right to write away from every directory. Files have none from the beginning.
func protect(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || name == "." { // the top is renamed yet
			return err
		}
		return root.Chmod(filepath.FromSlash(name), 0o555)
	})
}

// Close gives the directories up and leaves them where they are, for the next attempt.
func (w *Workspace) Close() error { return w.lock.release() }

// Remove removes the directories, once the run has ended and what is wanted of them was kept.
func (w *Workspace) Remove() error {
	if !w.lock.held() {
		return errors.New("remove the workspace: it was given up")
	}
	if err := removeTree(w.dir); err != nil {
		return errors.Join(fmt.Errorf("remove the workspace: %w", err), w.lock.release())
	}
	return w.lock.remove()
}

// removeTree removes a directory with everything in it, whatever rights somebody has taken away there. Links are removed,
// never followed.
func removeTree(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return ignoreAbsent(err)
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && err == nil {
			return root.Chmod(filepath.FromSlash(name), 0o700)
		}
		return err
	})
	return errors.Join(err, root.Close(), os.RemoveAll(path))
}

// inWords names the errors that somebody has to do something about.
func inWords(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk of the workspaces is full; make room, or give them a larger one: %w", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the disk of the workspaces is mounted read-only: %w", err)
	}
	return err
}
