package walk

import (
	"context"
	"sync"
	"sync/atomic"
)

// The schedule keeps two structures under one lock.
//
// Work: a stack of listings, each a sorted directory with a cursor, ordered so
// that the top holds the first entry in path order that nobody has taken. A
// directory's own listing sorts before the rest of the listing that it came
// from, so new listings go on top; only when two workers read directories at
// the same time may one have to go a place deeper.
//
// Results: a doubly linked list of slots in path order. A job gets a slot when
// it is taken. A directory gets a second one that marks its end: the slots of
// its entries are inserted before that mark as they are taken, which keeps the
// list in order whatever the workers' speed. The head of the list is delivered
// and dropped for as long as it is done.

// batch bounds the entries, other than directories, that are taken at once.
const batch = 32

// slot is the place of a job's results in the order of delivery.
type slot[R any] struct {
	prev, next *slot[R]
	results    []R
	size       int
	done       bool
}

// listing is a directory that has been read.
type listing[R any] struct {
	dirContent
	dir    *dirRef
	cursor int
	end    *slot[R]
}

// job is what a worker takes: one directory, or some entries of a listing that
// are not directories.
type job[R any] struct {
	listing  *listing[R]
	from, to int
	slot     *slot[R]
	end      *slot[R] // the end mark, for a directory
}

type schedule[R any] struct {
	deliver    func(R) bool
	maxPending int
	stop       context.CancelFunc

	mu        sync.Mutex
	changed   sync.Cond
	stack     []*listing[R]
	list      slot[R] // the ring that holds all slots
	entries   atomic.Int64
	busy      int    // jobs taken and not yet finished
	pending   int    // size of results that wait
	satisfied bool   // deliver wants no more
	panicked  string // what a visitor panicked with, and where
}

func newSchedule[R any](deliver func(R) bool, maxPending int, stop context.CancelFunc) *schedule[R] {
	s := &schedule[R]{deliver: deliver, maxPending: maxPending, stop: stop}
	s.changed.L = &s.mu
	s.list.prev, s.list.next = &s.list, &s.list
	return s
}

// start puts the top directory on the stack, as the only entry of a listing
// that no directory holds.
func (s *schedule[R]) start(top *dirRef, c Config) *topDir {
	t := &topDir{ref: top}
	top.refs.Store(1)
	s.stack = append(s.stack, &listing[R]{
		dirContent: dirContent{top: t, path: c.Path, level: c.Ignore, items: []item{{kind: Directory}}},
		end:        s.insert(&s.list),
	})
	return t
}

// take returns the first job that nobody has. It waits while there may be one
// later, or while too much waits for an earlier result, and reports false when
// the walk is over. Who waits is woken by a worker that is busy: there always
// is one, and it finishes early when the context ends.
func (s *schedule[R]) take(ctx context.Context) (job[R], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.satisfied || ctx.Err() != nil:
			return job[R]{}, false
		case len(s.stack) > 0 && (s.pending < s.maxPending || s.busy == 0):
			s.busy++
			return s.next(), true
		case len(s.stack) == 0 && s.busy == 0:
			return job[R]{}, false
		}
		s.changed.Wait()
	}
}

// next cuts a job off the top of the stack.
func (s *schedule[R]) next() job[R] {
	l := s.stack[len(s.stack)-1]
	j := job[R]{listing: l, from: l.cursor, slot: s.insert(l.end)}
	if l.items[l.cursor].kind == Directory {
		l.cursor++
		j.end = s.insert(l.end)
	} else {
		for l.cursor < len(l.items) && l.cursor < j.from+batch && l.items[l.cursor].kind != Directory {
			l.cursor++
		}
	}
	j.to = l.cursor
	l.dir.retain()
	if l.cursor == len(l.items) {
		s.stack[len(s.stack)-1] = nil
		s.stack = s.stack[:len(s.stack)-1]
		l.end.done = true
		l.dir.release()
	}
	return j
}

// finish hands in the results of a job and, for a directory, its listing; a nil
// listing means that there is nothing below.
func (s *schedule[R]) finish(j job[R], results []R, size int, below *listing[R]) {
	j.listing.dir.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	j.slot.results, j.slot.size, j.slot.done = results, size, true
	s.pending += size
	if j.end != nil {
		if below != nil {
			below.end = j.end
			s.push(below)
		} else {
			j.end.done = true
		}
	}
	s.advance(false)
	s.changed.Broadcast()
}

// push puts a listing where it belongs in the stack.
func (s *schedule[R]) push(l *listing[R]) {
	at := len(s.stack)
	for at > 0 && s.stack[at-1].before(&l.dirContent) {
		at--
	}
	s.stack = append(s.stack, nil)
	copy(s.stack[at+1:], s.stack[at:])
	s.stack[at] = l
}

// advance delivers and drops slots at the head of the list while they are done;
// with all set it also passes over those that are not.
func (s *schedule[R]) advance(all bool) {
	for head := s.list.next; head != &s.list && (head.done || all); head = s.list.next {
		for _, r := range head.results {
			if s.satisfied || !s.deliver(r) {
				s.satisfied = true
				s.stop()
				break
			}
		}
		s.pending -= head.size
		s.list.next = head.next
		head.next.prev = &s.list
	}
}

// flush lets go of directories that nobody has entered, after the workers have
// ended early. With rest set it delivers the results that still wait, although
// some before them are missing.
func (s *schedule[R]) flush(rest bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rest && !s.satisfied {
		s.advance(true)
	}
	for _, l := range s.stack {
		l.dir.release()
		if l.top != nil {
			l.top.ref.release()
		}
	}
	s.stack = nil
}

// abort ends the walk because of a panic.
func (s *schedule[R]) abort(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.satisfied, s.panicked = true, reason
	s.stop()
	s.changed.Broadcast()
}

// insert adds a slot before another one.
func (s *schedule[R]) insert(before *slot[R]) *slot[R] {
	n := &slot[R]{prev: before.prev, next: before}
	before.prev.next = n
	before.prev = n
	return n
}
