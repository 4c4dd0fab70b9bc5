package jobproc

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/hozo-run/hozo/job"
)

// childJournal is the job.Journal of a job process: frames go to the parent over a descriptor of their own, what the
// parent answers comes with everything else on the standard input.
type childJournal struct {
	out     io.Writer
	line    []byte
	earlier frameQueue

	mu      sync.Mutex
	waiting []ticket
	failed  error
}

// ticket is a frame that the parent has not acknowledged.
type ticket struct {
	n      int64
	stored chan error
}

// newChildJournal returns nil for a process that was handed no descriptor.
func newChildJournal(out io.Writer) *childJournal {
	if out == nil {
		return nil
	}
	j := &childJournal{out: out}
	j.earlier.more = sync.NewCond(&j.earlier.mu)
	return j
}

// Earlier implements job.Journal.
func (j *childJournal) Earlier() iter.Seq2[[]byte, error] { return j.earlier.all }

// Append implements job.Journal.
func (j *childJournal) Append(frame []byte) (<-chan error, error) {
	head, err := job.ParseFrameHead(frame)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return nil, j.failed
	}
	t := ticket{n: head.N, stored: make(chan error, 1)}
	j.waiting = append(j.waiting, t)
	j.line = append(append(j.line[:0], frame...), '\n')
	j.mu.Unlock() // an acknowledgement may come while the pipe is full
	_, err = j.out.Write(j.line)
	j.mu.Lock()
	if err != nil {
		return nil, fmt.Errorf("send the frame to the parent process: %w", err)
	}
	return t.stored, nil
}

// acknowledge settles the frames up to n. An error settles all.
func (j *childJournal) acknowledge(n int64, failed error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.waiting) > 0 && j.waiting[0].n <= n {
		j.waiting[0].stored <- nil
		j.waiting = j.waiting[1:]
	}
	if failed == nil {
		return
	}
	if j.failed == nil {
		j.failed = failed
	}
	for _, t := range j.waiting {
		t.stored <- failed
	}
	j.waiting = nil
}

// parentGone ends every wait for the parent.
func (j *childJournal) parentGone() {
	if j == nil {
		return
	}
	err := errors.New("the parent process is gone")
	j.acknowledge(0, err)
	j.earlier.end(err)
}

// frameQueue holds the earlier frames that came and were not asked for yet. It has no bound: acknowledgements stand in the
// same stream behind them, and the job may wait for one before it asks for the next frame.
type frameQueue struct {
	mu    sync.Mutex
	more  *sync.Cond
	list  [][]byte
	ended bool
	err   error
}

func (q *frameQueue) add(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, frame)
	q.more.Signal()
}

// end says that there are no more frames, or with an error that the rest does not come.
func (q *frameQueue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.ended, q.err = true, err
	}
	q.more.Signal()
}

// next returns the next frame; ok is false when there is none.
func (q *frameQueue) next() (frame []byte, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.ended {
		q.more.Wait()
	}
	if len(q.list) == 0 {
		return nil, false, q.err
	}
	frame = q.list[0]
	q.list[0], q.list = nil, q.list[1:]
	return frame, true, nil
}

func (q *frameQueue) all(yield func([]byte, error) bool) {
	for {
		frame, ok, err := q.next()
		if err != nil {
			yield(nil, err)
			return
		}
		if !ok || !yield(frame, nil) {
			return
		}
	}
}
