package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/hozo-run/hozo/job"
)

// maxLineBytes bounds a line of a journal. The largest frame holds a spec or a whole dialog.
const maxLineBytes = 2 * job.MaxSpecBytes

// Read yields the frames of the journal at path, each as it was appended and in memory of its own, after its checksum and
// its place have been checked. The first error is the last value. A last line without its end was never stored and is left
// out: a process may be writing it, or have been killed while it did. No lock is taken.
func Read(path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		file, err := openRegular(path, os.O_RDONLY)
		if err != nil {
			yield(nil, fmt.Errorf("read journal: %w", err))
			return
		}
		defer file.Close()
		readFrames(file, path, yield)
	}
}

func readFrames(from io.Reader, path string, yield func([]byte, error) bool) {
	in := bufio.NewReaderSize(from, 64<<10)
	var last job.FrameHead
	for number := 1; ; number++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return
		}
		var frame []byte
		if err == nil {
			frame, last, err = checkLine(line, last)
		}
		if err != nil {
			yield(nil, fmt.Errorf("journal %s, line %d: %w", path, number, err))
			return
		}
		if !yield(frame, nil) {
			return
		}
	}
}

// checkLine returns the frame of a line and its head.
func checkLine(line []byte, last job.FrameHead) ([]byte, job.FrameHead, error) {
	frame, err := frameOf(line)
	if err != nil {
		return nil, last, err
	}
	head, err := job.ParseFrameHead(frame)
	if err == nil {
		err = follows(last, head)
	}
	if err == nil && last.Type == job.FrameOutcome {
		err = errors.New("there is a frame after the outcome of the job")
	}
	return frame, head, err
}

// readLine returns the next whole line without its end; io.EOF also stands for a line that has none.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		if len(line)+len(piece) > maxLineBytes {
			return nil, fmt.Errorf("the line has more than %d bytes", maxLineBytes)
		}
		line = append(line, piece...)
		if err == nil {
			return line[:len(line)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// cutTorn moves what comes after the last end of a line to FILE.torn: the beginning of a frame that was never stored. It
// is kept because somebody may want to know how far the process had come.
func cutTorn(path string, file *os.File) error {
	size, whole, err := lineEnds(file)
	if err != nil || whole == size {
		return err
	}
	rest := make([]byte, size-whole)
	if _, err := file.ReadAt(rest, whole); err != nil {
		return err
	}
	if err := os.WriteFile(tornPath(path), rest, 0o600); err != nil {
		return err
	}
	if err := file.Truncate(whole); err != nil {
		return err
	}
	return file.Sync()
}

// lineEnds returns the size of a file and where its last whole line ends.
func lineEnds(file *os.File) (size, whole int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	size = info.Size()
	window := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(window)))
		part := window[:end-start]
		if _, err := file.ReadAt(part, start); err != nil {
			return size, 0, err
		}
		if at := bytes.LastIndexByte(part, '\n'); at >= 0 {
			return size, start + int64(at) + 1, nil
		}
		end = start
	}
	return size, 0, nil
}
