// Package journal keeps the journal of one job in a file: it is the job.Journal of "hozo run --journal" and of every
// program that wants resumable jobs without a store of its own. The file holds one frame a line (see job.Frame), each with
// a checksum as its last member, and is private to its owner. Beside it, FILE.blobs holds the content of the output files
// that checkpoints name, by digest, and FILE.lock says which process and which attempt has the journal open. The package
// knows the heads of all frames and the few that it must act on; what they mean to a job is the kernel's.
//
// A frame counts as stored when it and everything before it is on the disk, and the events before it are with their
// reader (Options.Stored). Frames that wait for that together share one flush. A process that is killed leaves at most a
// last line without its end, which the next Open moves aside; a line that is damaged anywhere else is refused by its
// number and never skipped. After an error of the disk the journal takes nothing more.
//
// Read gives the frames of a journal to readers that write nothing, Summarize says what is in them, Verify what is wrong
// with them, Fork ends them after a turn, and Restore puts the output directory back as it was.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// Options say how a journal is kept. The zero value keeps frames and no output files.
type Options struct {
	// OutDir is the output directory of the job, from which checkpoints are copied. A checkpoint with files cannot be
	// stored without it.
	OutDir string
	// Blobs is a further directory of output files by digest: that of the journal from which a job is forked.
	Blobs string
	// Earlier are the frames that Earlier of a created journal yields: those of the job that is forked.
	Earlier iter.Seq2[[]byte, error]
	// Stored waits until the events up to seq are stored; nil waits for nothing. Its error ends the journal.
	Stored func(seq int64) error
}

// File is a journal that is open for writing. It implements job.Journal; Close must be called when the job has ended.
type File struct {
	path    string
	options Options
	disk    disk
	lock    *os.File
	attempt int64
	found   *Summary

	mu     sync.Mutex
	queue  []entry
	last   job.FrameHead // of the last frame that was taken
	ended  bool          // an outcome was taken
	closed bool
	failed error

	wake chan struct{} // has a value if the queue has
	done chan struct{} // closed when the committer has ended
}

var _ job.Journal = (*File)(nil)

// disk is what a journal does to its file.
type disk interface {
	Write(p []byte) (int, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

// BlobsPath is the directory of the output files of the journal at path.
func BlobsPath(path string) string { return path + ".blobs" }

func lockPath(path string) string { return path + ".lock" }

func tornPath(path string) string { return path + ".torn" }

// Create makes a journal at a path where there is none yet, or an empty file. An existing journal is an error of kind
// Conflict, and so are output files that another one has left beside it.
func Create(path string, o Options) (*File, error) {
	file, err := openRegular(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	f := &File{path: path, options: o, lock: file}
	if err := f.begin(func() error { return f.createIn(file) }); err != nil {
		return nil, fmt.Errorf("create journal %s: %w", path, err)
	}
	return f, nil
}

// openRegular opens a file that is a regular one. Anything else is an error of kind Conflict, and is left as it is: a device
// would get another mode, and a pipe would be waited for.
func openRegular(path string, flag int) (*os.File, error) {
	file, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &problem.Error{Kind: problem.Conflict, Message: path + " is no regular file, which a journal has to be"}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (f *File) createIn(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		return &problem.Error{Kind: problem.Conflict, Message: "the file is not empty; resume the job that it holds, or name another file"}
	}
	if err := file.Chmod(0o600); err != nil {
		return err
	}
	// A journal that was moved away may have left its output files here, the only copy of them.
	if left, err := os.ReadDir(BlobsPath(f.path)); err == nil && len(left) > 0 {
		return &problem.Error{Kind: problem.Conflict, Message: BlobsPath(f.path) +
			" holds the output files of another journal; move it with its journal, remove it, or name another file"}
	}
	if err := os.RemoveAll(BlobsPath(f.path)); err != nil {
		return err
	}
	f.attempt = 1
	return syncDir(filepath.Dir(f.path))
}

// Open opens the journal of a job for a further attempt. A job that has ended is an error of kind Conflict that says how;
// a journal that another process has open is one, too, and names the process. Bytes after the last whole line are moved
// to FILE.torn.
func Open(path string, o Options) (*File, error) {
	file, err := openRegular(path, os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	f := &File{path: path, options: o, lock: file}
	if err := f.begin(func() error { return f.openIn(file) }); err != nil {
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	return f, nil
}

func (f *File) openIn(file *os.File) error {
	if err := cutTorn(f.path, file); err != nil {
		return err
	}
	summary, err := Summarize(Read(f.path))
	if err != nil {
		return err
	}
	if summary.Frames == 0 {
		return &problem.Error{Kind: problem.NotFound, Message: "the journal is empty: no job was recorded in it"}
	}
	if summary.Outcome != nil {
		return &problem.Error{Kind: problem.Conflict, Message: "the job has already ended as " + summary.Ending()}
	}
	f.found, f.last = summary, summary.Last
	if _, err := file.Seek(0, 2); err != nil {
		return err
	}
	f.attempt = max(lastAttempt(f.path), int64(summary.Suspensions), 1) + 1
	return nil
}

// begin takes the lock, prepares the file and starts the committer.
func (f *File) begin(prepare func() error) error {
	err := takeLock(f.lock, f.path)
	if err == nil {
		err = prepare()
	}
	if err == nil {
		err = noteHolder(f.path, holder{PID: os.Getpid(), Attempt: f.attempt, OutDir: f.options.OutDir})
	}
	if err != nil {
		return errors.Join(err, f.lock.Close())
	}
	f.disk = f.lock
	f.start()
	return nil
}

func (f *File) start() {
	f.wake, f.done = make(chan struct{}, 1), make(chan struct{})
	go f.commit()
}

// Attempt is the number of the attempt for which the journal is open, 1 for a created one. Each Open counts, whether its
// process then wrote a frame or not.
func (f *File) Attempt() int64 { return f.attempt }

// Summary is what the journal held when it was opened, nil for a created one.
func (f *File) Summary() *Summary { return f.found }

// Earlier implements job.Journal.
func (f *File) Earlier() iter.Seq2[[]byte, error] {
	if f.options.Earlier != nil {
		return f.options.Earlier
	}
	if f.found == nil {
		return func(func([]byte, error) bool) {}
	}
	frames, until := Read(f.path), f.found.Last.N
	return func(yield func([]byte, error) bool) {
		n := int64(0)
		for frame, err := range frames {
			if n++; n > until || !yield(frame, err) {
				return
			}
		}
	}
}

// Append implements job.Journal. A frame that does not follow the one before it is refused.
func (f *File) Append(frame []byte) (<-chan error, error) {
	head, err := job.ParseFrameHead(frame)
	if err != nil {
		return nil, err
	}
	if frame[len(frame)-1] != '}' || bytes.IndexByte(frame, '\n') >= 0 {
		return nil, fmt.Errorf("journal frame %d is not one line with one object", head.N)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.failed != nil:
		return nil, f.failed
	case f.closed:
		return nil, errors.New("the journal is closed")
	case f.ended:
		return nil, fmt.Errorf("journal frame %d comes after the outcome of the job", head.N)
	}
	if err := follows(f.last, head); err != nil {
		return nil, err
	}
	e := entry{frame: frame, head: head, stored: make(chan error, 1)}
	f.queue, f.last, f.ended = append(f.queue, e), head, head.Type == job.FrameOutcome
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return e.stored, nil
}

// follows reports why a frame cannot come after another.
func follows(last, next job.FrameHead) error {
	switch {
	case next.N != last.N+1:
		return fmt.Errorf("journal frame %d comes after frame %d", next.N, last.N)
	case next.Seq < last.Seq:
		return fmt.Errorf("journal frame %d stands after event %d, the frame before it after event %d", next.N, next.Seq, last.Seq)
	case last.N == 0 && next.Type != job.FrameSpec:
		return fmt.Errorf("the first frame of a journal is of type %q; it must be %q", next.Type, job.FrameSpec)
	}
	return nil
}

// Close stores what was appended and gives the journal free. It returns the error that kept frames from being stored.
// Calls after the first return the same.
func (f *File) Close() error {
	f.mu.Lock()
	closed := f.closed
	f.closed = true
	f.mu.Unlock()
	if !closed {
		close(f.wake)
	}
	<-f.done
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// checkpointOf decodes the data of a checkpoint.
func checkpointOf(frame []byte) (*job.CheckpointFrame, error) {
	whole, err := job.ParseFrame(frame)
	if err != nil {
		return nil, err
	}
	c := new(job.CheckpointFrame)
	if err := json.Unmarshal(whole.Data, c); err != nil {
		return nil, fmt.Errorf("journal frame %d: %w", whole.N, err)
	}
	return c, nil
}

// linger is how long a frame after which nobody waits at once may stay without a flush of its own.
const linger = 2 * time.Millisecond

// urgent reports whether the runtime may wait for a frame of this type as soon as it is appended. The others are followed
// by one of these, or by a request to a model, which waits no longer than linger.
func urgent(t job.FrameType) bool {
	switch t {
	case job.FrameSpec, job.FrameLists, job.FrameMessage, job.FrameCheckpoint, job.FrameCallDecided:
		return false
	}
	return true
}

// syncDir makes the names in a directory as durable as their files.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, fs.ErrInvalid) {
		err = nil // a file system that does not know this
	}
	return errors.Join(err, dir.Close())
}

// Discard removes a closed journal in which nothing was recorded, and what stands beside it. A journal that holds anything
// is left as it is.
func Discard(path string) {
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 || !info.Mode().IsRegular() {
		return
	}
	// What cannot be removed is empty and does no harm.
	_ = os.Remove(path)
	_ = os.Remove(lockPath(path))
}
