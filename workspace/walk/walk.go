// Package walk goes through the directory tree below one open directory with
// several workers and delivers what it found in path order, the same on every
// run.
//
// It is confined by construction: every directory and file is opened relative
// to the open directory that holds it and never through a symbolic link, so
// nothing that happens to the tree meanwhile can lead the walk out. Mount points
// are not entered, only regular files can be opened, and a FIFO that takes the
// place of a file does not block.
//
// Path order compares element by element, so "a/x" comes before "a-b". A worker
// always takes the first piece of work in path order that nobody has, and
// results that are ready before their turn wait, up to a bound. That makes the
// first n results the right ones and still lets the walk stop as soon as the
// reader has enough. Directories that ignore rules leave out are not entered
// (see package ignore), nor is any .git.
package walk

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/hozo-run/hozo/workspace/ignore"
)

// Defaults of Config.
const (
	DefaultMaxEntries   = 1_000_000
	DefaultMaxListing   = 250_000
	DefaultMaxDepth     = 256
	DefaultMaxPending   = 256 << 10
	defaultMaxWorkers   = 8
	maxProblemsReported = 8
)

// Config says where a walk starts and where it stops.
type Config struct {
	// Dir is the directory to walk. The caller opens and closes it.
	Dir *os.Root
	// Path is the path of Dir from the directory that ignore rules are relative
	// to, with slashes; "" if Dir is that directory.
	Path string
	// Ignore holds the rules of the directories above Dir (see Above); nil if
	// there are none. The rules in Dir and below are read by the walk.
	Ignore *ignore.Level
	// Workers is the number of goroutines; 0 means one for each processor, at
	// most eight.
	Workers int
	// MaxEntries bounds the directory entries looked at in all, MaxListing
	// those of one directory, MaxDepth the depth of directories below Dir. Zero
	// means the default. A walk that meets a bound says so in its Report.
	MaxEntries, MaxListing, MaxDepth int
	// MaxPending bounds the summed sizes of results that wait for an earlier
	// one; 0 means the default.
	MaxPending int
	// MaxTime ends the walk with what it has; 0 means no bound.
	MaxTime time.Duration
}

func (c Config) withDefaults() Config {
	setDefault(&c.MaxEntries, DefaultMaxEntries)
	setDefault(&c.MaxListing, DefaultMaxListing)
	setDefault(&c.MaxDepth, DefaultMaxDepth)
	setDefault(&c.MaxPending, DefaultMaxPending)
	setDefault(&c.Workers, min(runtime.GOMAXPROCS(0), defaultMaxWorkers))
	return c
}

func setDefault(field *int, value int) {
	if *field <= 0 {
		*field = value
	}
}

// Kind is the kind of a directory entry.
type Kind uint8

// The kinds of entries. Special stands for FIFOs, sockets and devices.
const (
	Unknown Kind = iota
	Regular
	Directory
	Symlink
	Special
)

// Visitor is what one worker does with the entries. Every worker has its own,
// so a Visitor may keep buffers and needs no lock.
type Visitor[R any] interface {
	// Want reports whether the entry is to be visited. path is relative to
	// Config.Dir and only valid during the call. Directories that are not wanted
	// are entered all the same.
	Want(path []byte, kind Kind) bool
	// Visit returns the result for one wanted entry and its size, in whatever
	// measure Config.MaxPending has. Size 0 means that there is no result.
	Visit(ctx context.Context, entry *Entry) (result R, size int)
}

// Report says how a walk ended.
type Report struct {
	// Partial lists why the walk is not complete, in words that finish the
	// sentence "the search is incomplete: …". Empty means that it is.
	Partial []string
	// Mounts counts mount points, which are never entered.
	Mounts int
	// Problems are entries that could not be read, at most eight of them;
	// Unreadable counts all.
	Problems   []Problem
	Unreadable int
}

// Problem is an entry that could not be read.
type Problem struct {
	Path string // relative to Config.Dir
	Err  error
}

// Walk visits the tree. It makes one visitor for each worker and hands the
// results in path order to deliver, one call at a time, until deliver returns
// false. It returns once all workers have ended. The error is that of the
// context, or says that Dir itself could not be read; running into a bound is
// no error but noted in the Report.
func Walk[R any](ctx context.Context, c Config, visitor func() Visitor[R], deliver func(R) bool) (Report, error) {
	c = c.withDefaults()
	top, err := openTop(c.Dir)
	if err != nil {
		return Report{}, err
	}
	walkCtx, stop := context.WithCancel(ctx)
	defer stop()
	if c.MaxTime > 0 {
		walkCtx, stop = context.WithTimeoutCause(walkCtx, c.MaxTime, errTime)
		defer stop()
	}
	s := newSchedule(deliver, c.MaxPending, stop)
	log := &report{}
	first := s.start(&dirRef{handle: top}, c)

	var group sync.WaitGroup
	for range c.Workers {
		group.Go(func() {
			w := &worker[R]{config: c, schedule: s, visitor: visitor(), report: log}
			w.run(walkCtx)
		})
	}
	group.Wait()
	err = ctx.Err()
	s.flush(err == nil)
	if s.panicked != "" {
		panic(s.panicked)
	}
	if err != nil {
		return log.result(), err
	}
	if errors.Is(context.Cause(walkCtx), errTime) && !s.satisfied {
		log.partial("it was stopped after " + c.MaxTime.String())
	}
	return log.result(), first.err
}

// errTime is the cause of a walk's context after MaxTime.
var errTime = errors.New("the time of the walk is over")
