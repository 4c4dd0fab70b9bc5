package walk

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// report collects what the workers meet.
type report struct {
	mu sync.Mutex
	r  Report
}

// partial notes a reason, once, why the walk is not complete.
func (l *report) partial(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.r.Partial, reason) {
		l.r.Partial = append(l.r.Partial, reason)
	}
}

// problem notes an entry that could not be opened or read. An entry that is
// gone, or has become something else, was only seen too early; a mount point is
// counted apart.
func (l *report) problem(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errChanged) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, errMount) {
		l.r.Mounts++
		return
	}
	l.r.Unreadable++
	if len(l.r.Problems) < maxProblemsReported {
		l.r.Problems = append(l.r.Problems, Problem{Path: path, Err: err})
	}
}

func (l *report) result() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.r.Partial)
	slices.SortFunc(l.r.Problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return l.r
}

var (
	// errChanged says that an entry is no longer what its directory said.
	errChanged = errors.New("the entry changed during the walk")
	// errMount says that another file system, or part of one, is mounted here.
	errMount = errors.New("mount points are not entered")
)
