package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

// Event is one event of a run as it is stored: Line is the JSON document that was reported, without a line's end.
type Event struct {
	Seq  int64
	Type job.EventType
	Line []byte
}

// Recorder stores what one attempt of a run reports: it is the job.Journal of the attempt, and whoever reads the events of
// the job hands each to Event. Both reach the database in the order that a resume needs: a frame is acknowledged when it
// and every event before it are on the disk. The event that ends the attempt is held back until Finish, which stores it
// together with the state of the run. Event, Append and Finish may be called by different goroutines.
type Recorder struct {
	store *Store
	lease Lease
	files files
	// found is what the attempts before recorded.
	found found

	mu       sync.Mutex
	room     *sync.Cond
	events   []Event       // taken and not stored
	frames   []entry       // likewise
	seq      int64         // of the last event that was taken
	last     job.FrameHead // of the last frame that was taken
	terminal *job.Event    // held back
	started  *job.StartedData
	calls    map[string]job.CallStartedFrame
	failed   error
	closed   bool

	wake      chan struct{}
	stop      chan struct{} // closed when nothing more is taken
	done      chan struct{} // closed when the goroutine that stores has ended
	abandoned atomic.Bool
	giveUp    context.CancelFunc // ends the waiting of that goroutine
}

var _ job.Journal = (*Recorder)(nil)

// entry is a frame on its way to the database.
type entry struct {
	frame  []byte
	head   job.FrameHead
	stored chan error
}

// found is what was recorded before an attempt.
type found struct {
	seq     int64
	frame   job.FrameHead
	outcome *job.OutcomeFrame
}

const (
	// linger is how long events, and frames for which nobody waits at once, may gather.
	linger = 2 * time.Millisecond
	// maxPending is how many events may wait before whoever reports them has to wait.
	maxPending = 1024
)

// Record begins to record the attempt of a lease. End it with Finish, Release or Abandon.
func (s *Store) Record(ctx context.Context, lease Lease) (*Recorder, error) {
	r := &Recorder{store: s, lease: lease, files: files{blobs: s.config.Blobs}, calls: map[string]job.CallStartedFrame{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	r.room = sync.NewCond(&r.mu)
	if lease.Attempt > 1 {
		if err := r.look(ctx); err != nil {
			return nil, fmt.Errorf("read what was recorded of run %s: %w", lease.Run, err)
		}
	}
	r.seq, r.last = r.found.seq, r.found.frame
	s.hub.begin(lease.Run)
	ctx, r.giveUp = context.WithCancel(context.WithoutCancel(ctx)) // what was reported is stored, whoever gives up meanwhile
	go r.run(ctx)
	return r, nil
}

// look finds out where the attempts before ended.
func (r *Recorder) look(ctx context.Context) error {
	db, id := r.store.db, r.lease.Run
	if err := db.QueryRow(ctx, "SELECT COALESCE(MAX(seq), 0) FROM run_events WHERE run = ?", []any{id}, &r.found.seq); err != nil {
		return err
	}
	var frame string
	err := db.QueryRow(ctx, "SELECT frame FROM run_journal WHERE run = ? ORDER BY n DESC LIMIT 1", []any{id}, &frame)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	whole, err := job.ParseFrame([]byte(frame))
	if err != nil {
		return err
	}
	r.found.frame = job.FrameHead{V: whole.V, N: whole.N, Seq: whole.Seq, ActiveMS: whole.ActiveMS, Type: whole.Type}
	if whole.Type != job.FrameOutcome {
		return nil
	}
	r.found.outcome = new(job.OutcomeFrame)
	return json.Unmarshal(whole.Data, r.found.outcome)
}

// NextSeq is the number of the first event of the attempt, for job.Resume.
func (r *Recorder) NextSeq() int64 { return r.found.seq + 1 }

// Frames is how many frames the attempts before recorded. With none, the job begins at its beginning.
func (r *Recorder) Frames() int64 { return r.found.frame.N }

// Outcome is how the job ended, if an attempt before could record that and not report it; nil otherwise. Such a job must
// not be started again: Finish ends the run.
func (r *Recorder) Outcome() *job.OutcomeFrame { return r.found.outcome }

// KeepFilesOf says from which output directory the files of checkpoints are copied. It is called before the first Append.
func (r *Recorder) KeepFilesOf(outDir string) { r.files.outDir = outDir }

// Earlier implements job.Journal.
func (r *Recorder) Earlier() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for frame, err := range r.store.frames(context.Background(), r.lease.Run, r.found.frame.N) {
			if err == nil {
				err = r.note(frame)
			}
			if !yield(frame, err) || err != nil {
				return
			}
		}
	}
}

// note remembers the calls that earlier attempts had started.
func (r *Recorder) note(frame []byte) error {
	head, err := job.ParseFrameHead(frame)
	if err != nil || head.Type != job.FrameCallStarted {
		return err
	}
	var call job.CallStartedFrame
	if err := dataOf(frame, &call); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[call.CallID] = call
	return nil
}

func dataOf(frame []byte, data any) error {
	whole, err := job.ParseFrame(frame)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(whole.Data, data); err != nil {
		return fmt.Errorf("journal frame %d: %w", whole.N, err)
	}
	return nil
}

// Event takes the next event of the job. It returns at once unless very many wait to be stored. Its error says that
// nothing is stored any more; the job must be ended.
func (r *Recorder) Event(e *job.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.events) >= maxPending && r.failed == nil {
		r.room.Wait()
	}
	switch {
	case r.failed != nil:
		return r.failed
	case r.closed:
		return errors.New("the attempt has ended")
	case e.Seq != r.seq+1:
		return fmt.Errorf("event %d comes after event %d", e.Seq, r.seq)
	case r.terminal != nil:
		return fmt.Errorf("event %d comes after the end of the attempt", e.Seq)
	}
	r.seq = e.Seq
	if e.Type.Terminal() || e.Type == job.EventSuspended {
		r.terminal = e
		return nil
	}
	if d, ok := e.Data.(*job.StartedData); ok {
		r.started = d
	}
	r.events = append(r.events, Event{Seq: e.Seq, Type: e.Type, Line: e.Line()})
	r.signal()
	return nil
}

// Append implements job.Journal. A frame that does not follow the one before it is refused.
func (r *Recorder) Append(frame []byte) (<-chan error, error) {
	head, err := job.ParseFrameHead(frame)
	if err != nil {
		return nil, err
	}
	if frame[len(frame)-1] != '}' || bytes.IndexByte(frame, '\n') >= 0 {
		return nil, fmt.Errorf("journal frame %d is not one line with one object", head.N)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failed != nil:
		return nil, r.failed
	case r.closed:
		return nil, errors.New("the attempt has ended")
	case head.N != r.last.N+1:
		return nil, fmt.Errorf("journal frame %d comes after frame %d", head.N, r.last.N)
	case head.Seq < r.last.Seq:
		return nil, fmt.Errorf("journal frame %d stands after event %d, the frame before it after event %d", head.N, head.Seq, r.last.Seq)
	case r.last.Type == job.FrameOutcome:
		return nil, fmt.Errorf("journal frame %d comes after the outcome of the job", head.N)
	}
	r.last = head
	e := entry{frame: frame, head: head, stored: make(chan error, 1)}
	r.frames = append(r.frames, e)
	r.signal()
	return e.stored, nil
}

// signal wakes the goroutine that stores.
func (r *Recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Err says why nothing is stored any more, nil as long as everything is. It is ErrLost if another process has the run.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Abandon ends the recording without an end of the attempt: nothing more is stored, and whoever waits for a frame gets an
// error. It is for a lease that is lost, returns at once, and may be called by any goroutine and after Finish.
func (r *Recorder) Abandon() {
	r.abandoned.Store(true)
	r.fail(ErrLost)
	r.stopTaking()
	r.giveUp()
}

// stopTaking says that nothing more is reported.
func (r *Recorder) stopTaking() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.stop)
	}
}

// settle waits until everything that was reported is stored, or cannot be, and returns why not.
func (r *Recorder) settle() error {
	r.stopTaking()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned.Load() {
		return ErrLost
	}
	return r.failed
}

// fail notes the first reason for which nothing is stored any more, and tells whoever waits.
func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
	for _, e := range r.frames {
		e.stored <- r.failed
	}
	r.events, r.frames = nil, nil
	r.room.Broadcast()
}

// dropTerminal forgets the event that was held back: the attempt does not end with it.
func (r *Recorder) dropTerminal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.terminal != nil {
		r.seq, r.terminal = r.terminal.Seq-1, nil
	}
}
