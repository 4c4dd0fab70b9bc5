package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/hozo-run/hozo/job"
)

// entry is a frame on its way to the disk.
type entry struct {
	frame  []byte
	head   job.FrameHead
	stored chan error
}

// The checksum is the last member of each line: `,"sum":"` with eight hex digits and `"}`. The frame is what is left.
const (
	sumPrefix = `,"sum":"`
	sumSuffix = `"}`
	sumBytes  = len(sumPrefix) + 8 + len(sumSuffix)
)

// appendLine adds the line of a frame.
func appendLine(b, frame []byte) []byte {
	b = append(b, frame[:len(frame)-1]...)
	b = append(b, sumPrefix...)
	b = append(b, sumOf(frame)...)
	b = append(b, sumSuffix...)
	return append(b, '\n')
}

func sumOf(frame []byte) string {
	text := strconv.FormatUint(uint64(crc32.Checksum(frame, crc32.MakeTable(crc32.Castagnoli))), 16)
	return "00000000"[len(text):] + text
}

// frameOf returns the frame of a line without its end. It is written over the line.
func frameOf(line []byte) ([]byte, error) {
	at := len(line) - sumBytes
	if at < 1 || string(line[at:at+len(sumPrefix)]) != sumPrefix || string(line[len(line)-len(sumSuffix):]) != sumSuffix {
		return nil, errors.New("the line does not end in a checksum")
	}
	sum := string(line[at+len(sumPrefix) : len(line)-len(sumSuffix)])
	frame := line[:at+1]
	frame[at] = '}'
	if want := sumOf(frame); sum != want {
		return nil, fmt.Errorf("the line is damaged: its checksum is %s, that of its frame %s", sum, want)
	}
	return frame, nil
}

// commit is the goroutine that writes. Whatever was appended while it wrote and flushed shares the next flush.
func (f *File) commit() {
	defer close(f.done)
	w := writer{file: f, blobs: blobs{dir: BlobsPath(f.path), outDir: f.options.OutDir, further: f.options.Blobs}}
	w.size = w.startSize()
	var waiting []entry
	var late <-chan time.Time // when those that nobody waits for must be flushed
	for open := true; open; {
		flush := false
		select {
		case _, open = <-f.wake:
		case <-late:
			flush = true
		}
		batch := f.take()
		w.write(batch)
		waiting = append(waiting, batch...)
		for _, e := range batch {
			flush = flush || urgent(e.head.Type)
		}
		switch {
		case len(waiting) == 0:
		case flush || !open || w.err != nil:
			w.flush(waiting)
			waiting, late = waiting[:0], nil
		case late == nil:
			late = time.After(linger)
		}
		f.fail(w.err)
	}
	f.fail(errors.Join(w.err, w.close()))
}

// take returns what was appended since the last call.
func (f *File) take() []entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	batch := f.queue
	f.queue = nil
	return batch
}

func (f *File) fail(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
}

// writer belongs to the committer. err is the first error; nothing is written after it, since a disk that failed once
// cannot be asked again what it has.
type writer struct {
	file  *File
	blobs blobs
	size  int64 // up to where the file holds whole lines
	line  []byte
	err   error
}

// startSize is the size of the file when it was opened.
func (w *writer) startSize() int64 {
	if w.file.lock == nil {
		return 0
	}
	info, err := w.file.lock.Stat()
	if err != nil {
		w.err = err
		return 0
	}
	return info.Size()
}

// write writes frames without waiting for the disk. The events before a frame come first: a journal must not know of an
// event that its reader does not have.
func (w *writer) write(batch []entry) {
	if len(batch) == 0 || w.err != nil {
		return
	}
	if wait := w.file.options.Stored; wait != nil {
		if err := wait(batch[len(batch)-1].head.Seq); err != nil {
			w.err = fmt.Errorf("the events before journal frame %d are not stored: %w", batch[0].head.N, err)
			return
		}
	}
	w.line = w.line[:0]
	for _, e := range batch {
		if e.head.Type == job.FrameCheckpoint {
			if err := w.checkpoint(e.frame); err != nil {
				w.err = err
				return
			}
		}
		w.line = appendLine(w.line, e.frame)
	}
	if _, err := w.file.disk.Write(w.line); err != nil {
		// A part of a line is as good as none, and must not be in the way of a later attempt.
		w.err = errors.Join(fmt.Errorf("write journal: %w", err), w.file.disk.Truncate(w.size))
		return
	}
	w.size += int64(len(w.line))
}

func (w *writer) checkpoint(frame []byte) error {
	c, err := checkpointOf(frame)
	if err != nil {
		return err
	}
	return w.blobs.keep(c.Files)
}

// flush makes the frames durable and tells whoever waits for them.
func (w *writer) flush(waiting []entry) {
	if w.err == nil {
		if err := w.file.disk.Sync(); err != nil {
			w.err = fmt.Errorf("flush journal: %w", err)
		}
	}
	for _, e := range waiting {
		e.stored <- w.err
	}
}

// close gives the journal free. The last holder stays named in FILE.lock, with its attempt.
func (w *writer) close() error {
	return errors.Join(w.blobs.close(), w.file.disk.Close())
}
