package walk

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/hozo-run/hozo/workspace/ignore"
)

// Entry is one entry of a directory, valid while it is being visited.
type Entry struct {
	kind   Kind
	path   []byte // from Config.Dir
	name   []byte
	dir    *dirRef
	report *report
}

// Path returns the path relative to Config.Dir, with slashes. It is "" for
// Config.Dir itself.
func (e *Entry) Path() string { return string(e.path) }

// Kind returns the kind that the directory gave for the entry.
func (e *Entry) Kind() Kind { return e.kind }

// Open opens a regular file for reading. It reports false if that is
// impossible; why is in the walk's Report, unless the entry has merely changed
// since its directory was read. The caller closes the file.
func (e *Entry) Open() (*File, bool) {
	if e.kind != Regular {
		return nil, false
	}
	f, err := e.dir.handle.openFile(string(e.name))
	if err != nil {
		e.report.problem(string(e.path), err)
		return nil, false
	}
	return f, true
}

// Fail notes in the walk's Report that reading the entry failed.
func (e *Entry) Fail(err error) { e.report.problem(string(e.path), err) }

// worker is one goroutine of a walk.
type worker[R any] struct {
	config   Config
	schedule *schedule[R]
	visitor  Visitor[R]
	report   *report
	path     []byte // scratch space for the path in hand
	buffer   []byte // for reading directories
}

// run works until there is nothing left to do. A panic of the visitor ends the
// walk and is raised again where Walk was called.
func (w *worker[R]) run(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			w.schedule.abort(fmt.Sprintf("%v\n\n%s", v, debug.Stack()))
		}
	}()
	for {
		j, ok := w.schedule.take(ctx)
		if !ok {
			return
		}
		results, size := w.visit(ctx, j)
		var below *listing[R]
		if j.end != nil {
			below = w.enter(ctx, j)
		}
		w.schedule.finish(j, results, size, below)
	}
}

// visit hands the wanted entries of a job to the visitor.
func (w *worker[R]) visit(ctx context.Context, j job[R]) (results []R, size int) {
	for _, it := range j.listing.items[j.from:j.to] {
		if !it.wanted || ctx.Err() != nil {
			continue
		}
		name := j.listing.name(it)
		w.path = join(w.path, j.listing.path, name)
		entry := Entry{kind: it.kind, path: w.relative(w.path), name: name, dir: j.listing.dir, report: w.report}
		if r, n := w.visitor.Visit(ctx, &entry); n > 0 {
			results = append(results, r)
			size += n
		}
	}
	return results, size
}

// relative cuts Config.Path off a path.
func (w *worker[R]) relative(path []byte) []byte {
	if w.config.Path == "" || len(path) == len(w.config.Path) {
		return path[len(w.config.Path):]
	}
	return path[len(w.config.Path)+1:]
}

// enter opens and reads the directory of a job. It returns nil if there is
// nothing to do inside.
func (w *worker[R]) enter(ctx context.Context, j job[R]) *listing[R] {
	if ctx.Err() != nil || w.schedule.entries.Load() > int64(w.config.MaxEntries) {
		j.abandon()
		return nil
	}
	it := j.listing.items[j.from]
	w.path = join(w.path, j.listing.path, j.listing.name(it))
	l := &listing[R]{dirContent: dirContent{path: string(w.path), level: j.listing.level, depth: j.listing.depth + 1}}
	if j.listing.top != nil {
		l.dir, l.depth = j.listing.top.ref, 0
	} else if !w.open(j, l) {
		return nil
	}
	if err := w.read(ctx, l); err != nil {
		w.problem(l, err)
		if j.listing.top != nil {
			j.listing.top.err = err
		}
	}
	if len(l.items) == 0 {
		l.dir.release()
		return nil
	}
	return l
}

// abandon closes the top directory if the job would have entered it.
func (j job[R]) abandon() {
	if j.listing.top != nil {
		j.listing.top.ref.release()
	}
}

// open opens the directory of a job for its listing.
func (w *worker[R]) open(j job[R], l *listing[R]) bool {
	if l.depth > w.config.MaxDepth {
		w.report.partial(fmt.Sprintf("directories more than %d levels deep were not entered", w.config.MaxDepth))
		return false
	}
	h, err := j.listing.dir.handle.openDir(string(j.listing.name(j.listing.items[j.from])))
	if err != nil {
		w.problem(l, err)
		return false
	}
	l.dir = &dirRef{handle: h}
	l.dir.refs.Store(1)
	return true
}

// read fills a listing with the entries of its directory that are not ignored
// and that are directories or wanted, in order.
func (w *worker[R]) read(ctx context.Context, l *listing[R]) error {
	if w.buffer == nil {
		w.buffer = make([]byte, 32<<10)
	}
	var files fileNames
	err := l.dir.handle.list(w.buffer, func(name []byte, kind Kind) bool {
		if len(l.items) == w.config.MaxListing {
			w.report.partial(fmt.Sprintf("only %d entries of a single directory are looked at", w.config.MaxListing))
			return false
		}
		if w.schedule.entries.Add(1) > int64(w.config.MaxEntries) {
			w.report.partial(fmt.Sprintf("it was stopped after %d directory entries", w.config.MaxEntries))
			return false
		}
		files.note(name)
		return l.add(name, kind) && ctx.Err() == nil
	})
	level, rulesErr := l.dir.handle.rules(l.level, l.path, files)
	if rulesErr != nil {
		w.problem(l, rulesErr)
	}
	l.level = level
	w.keep(l)
	l.sort()
	return err
}

// problem notes a failure to do with the directory of a listing.
func (w *worker[R]) problem(l *listing[R], err error) {
	w.report.problem(string(w.relative([]byte(l.path))), err)
}

// keep drops the entries of a listing that are ignored, and those that are
// neither directories nor wanted.
func (w *worker[R]) keep(l *listing[R]) {
	kept := l.items[:0]
	for _, it := range l.items {
		name := l.name(it)
		if string(name) == ignore.RepositoryName {
			continue
		}
		if it.kind == Unknown {
			var err error
			if it.kind, err = l.dir.handle.kind(string(name)); err != nil {
				continue // gone since the directory was read
			}
		}
		w.path = join(w.path, l.path, name)
		isDir := it.kind == Directory
		if l.level.Ignored(w.path, isDir) {
			continue
		}
		it.wanted = w.visitor.Want(w.relative(w.path), it.kind)
		if it.wanted || isDir {
			kept = append(kept, it)
		}
	}
	l.items = kept
}
