package jobproc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hozo-run/hozo/job"
)

// lentJournal carries the frames of a job between its process and the job.Journal of the caller. A nil *lentJournal is a
// journal that was not lent.
//
// A frame is handed to the journal when its events have been taken, so that whatever the child does, the journal never
// knows more than the reader of the events; it is acknowledged to the child when the journal has stored it.
type lentJournal struct {
	theirs *os.File // until the child has it
	ours   *drainedPipe
	events progress // what the reader of the events has taken
	// open counts the frames that were received and not acknowledged.
	open atomic.Int64
	// telling is done when nothing is read from the journal any more.
	telling sync.WaitGroup
	// done is closed when every frame of the child has been received and acknowledged.
	done chan struct{}

	mu      sync.Mutex // the journal is used by one goroutine at a time
	journal job.Journal
	last    job.FrameHead
	fault   error
}

// lendJournal prepares a journal for a child.
func lendJournal(journal job.Journal, resume *job.Resume) (*lentJournal, error) {
	if journal == nil {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("lend the journal to the job process: %w", err)
	}
	l := &lentJournal{journal: journal, theirs: w, ours: &drainedPipe{File: r}, done: make(chan struct{})}
	l.events.more = sync.NewCond(&l.events.mu)
	if resume != nil {
		l.events.seq = resume.NextSeq - 1
	}
	return l, nil
}

// pass gives the child its end.
func (l *lentJournal) pass(command *exec.Cmd) {
	if l == nil {
		return
	}
	command.Args = append(command.Args, "--journal-fd", strconv.Itoa(firstExtra+len(command.ExtraFiles)))
	command.ExtraFiles = append(command.ExtraFiles, l.theirs)
}

// begin is called when the child has its end.
func (l *lentJournal) begin() {
	if l == nil {
		return
	}
	l.theirs.Close()
}

// end releases everything. It is called when the child is gone or was never started.
func (l *lentJournal) end() {
	if l == nil {
		return
	}
	closeAll(l.theirs, l.ours.File)
	l.telling.Wait()
}

// busy reports whether the child may be waiting for the journal.
func (l *lentJournal) busy() bool { return l != nil && l.open.Load() > 0 }

// tell sends the child the frames of the earlier attempts. It is a goroutine of its own: the child may write frames, and
// wait for them, before it has read all of these.
func (l *lentJournal) tell(h *Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for frame, err := range l.journal.Earlier() {
		var head job.FrameHead
		if err == nil {
			head, err = job.ParseFrameHead(frame)
		}
		if err != nil {
			h.decide(job.ReasonError, job.CodeJournalFailed, fmt.Sprintf("the earlier frames of the journal cannot be read: %v", err))
			h.process.kill()
			return
		}
		if l.last.N < head.N {
			l.last = head
		}
		line := encodeFrame(frame)
		l.mu.Unlock()
		h.send(line)
		l.mu.Lock()
	}
	l.mu.Unlock()
	h.send([]byte(`{"type":"` + messageEnd + `"}` + "\n"))
	l.mu.Lock()
}

// receipt is a frame that was handed to the journal.
type receipt struct {
	n      int64
	stored <-chan error
	err    error
}

// receive hands the child's frames to the journal until the child has no more.
func (l *lentJournal) receive(h *Handle) {
	receipts := make(chan receipt, 256)
	defer close(receipts)
	go l.acknowledge(h, receipts)
	lines := lineReader{source: bufio.NewReaderSize(l.ours, 32<<10), limit: maxFrameBytes}
	var before int64
	for {
		line, err := lines.next()
		if err != nil {
			if errors.Is(err, errLongLine) {
				l.breakOff(h, err)
			}
			return // a frame that was cut is one that was never stored
		}
		head, err := job.ParseFrameHead(line)
		if err == nil && before > 0 && head.N != before+1 {
			err = fmt.Errorf("journal frame %d came after frame %d", head.N, before)
		}
		if err != nil {
			l.breakOff(h, err)
			return
		}
		before = head.N
		l.open.Add(1)
		if !l.events.wait(head.Seq) {
			return // the child is gone, and with it the events before this frame
		}
		receipts <- l.append(bytes.Clone(line), head)
	}
}

func (l *lentJournal) append(frame []byte, head job.FrameHead) receipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored, err := l.journal.Append(frame)
	if err == nil {
		l.last = head
	}
	return receipt{n: head.N, stored: stored, err: err}
}

// breakOff ends a child that does not keep to the protocol.
func (l *lentJournal) breakOff(h *Handle, err error) {
	l.mu.Lock()
	l.fault = err
	l.mu.Unlock()
	h.process.kill()
}

// acknowledge tells the child which frames are stored. Those that are stored together are told together.
func (l *lentJournal) acknowledge(h *Handle, receipts <-chan receipt) {
	defer close(l.done)
	var told, stored int64
	tell := func(failed error) {
		if stored > told || failed != nil {
			h.send(encodeAck(stored, failed))
			told = stored
		}
	}
	for {
		var r receipt
		var ok bool
		select {
		case r, ok = <-receipts:
		default:
			tell(nil)
			r, ok = <-receipts
		}
		if !ok {
			return
		}
		err := r.err
		if err == nil && r.stored != nil {
			select {
			case err = <-r.stored:
			default:
				tell(nil)
				err = <-r.stored
			}
		}
		if err == nil {
			stored = r.n
		} else {
			tell(err)
		}
		l.open.Add(-1)
	}
}

// finish waits until the frames of a child that is gone are in the journal. It returns why the child was ended if that was
// for a frame.
func (l *lentJournal) finish() error {
	if l == nil {
		return nil
	}
	l.events.end()
	l.ours.writersGone()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// close records an end that this side decided on, so that nobody resumes a job that was reported as ended.
func (l *lentJournal) close(outcome job.OutcomeFrame, seq int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.N == 0 || l.last.Type == job.FrameOutcome {
		return nil // nothing to resume
	}
	data, err := json.Marshal(outcome)
	if err != nil {
		return err
	}
	frame, err := json.Marshal(job.Frame{V: job.FrameVersion, N: l.last.N + 1, Seq: max(seq, l.last.Seq), ActiveMS: l.last.ActiveMS,
		Type: job.FrameOutcome, Data: data})
	if err != nil {
		return err
	}
	stored, err := l.journal.Append(frame)
	if err == nil && stored != nil {
		err = <-stored
	}
	if err != nil {
		return fmt.Errorf("record the end of the job: %w", err)
	}
	return nil
}

// progress is how far the events have been taken.
type progress struct {
	mu    sync.Mutex
	more  *sync.Cond
	seq   int64
	ended bool
}

func (p *progress) reach(seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq = seq
	p.more.Broadcast()
}

// end says that no more events come.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.more.Broadcast()
}

// wait waits until the event is taken, and reports whether it is.
func (p *progress) wait(seq int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.seq < seq && !p.ended {
		p.more.Wait()
	}
	return p.seq >= seq
}

// OpenJournal opens the descriptor that the parent handed down with "--journal-fd", for Child.Journal. A job process calls
// it before anything that could start another process, since from then on the descriptor is not inherited any more: no
// command of the job can write to its journal.
func OpenJournal(fd int) (*os.File, error) {
	if fd < firstExtra {
		return nil, fmt.Errorf("open the journal: %d is no descriptor that a parent hands down", fd)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "journal")
	if f == nil {
		return nil, fmt.Errorf("open the journal: there is no descriptor %d", fd)
	}
	if _, err := f.Stat(); err != nil {
		return nil, fmt.Errorf("open the journal: descriptor %d: %w", fd, err)
	}
	return f, nil
}
