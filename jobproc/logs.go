package jobproc

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
)

// The bounds of a child's log: of a line, of all lines together, and of the end that a lost job reports.
const (
	maxLogLine  = 8 << 10
	maxLogBytes = 1 << 20
	maxLogTail  = 4 << 10
)

// logPump reads the log of a child to its end and passes redacted lines on.
type logPump struct {
	to       io.Writer
	redactor *Redactor
	done     chan struct{} // the log has ended

	mu    sync.Mutex
	sent  int
	lines []string // the last lines, at most maxLogTail bytes
	kept  int
}

func startLogs(from io.Reader, to io.Writer, redactor *Redactor) *logPump {
	l := &logPump{to: to, redactor: redactor, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.pump(bufio.NewReaderSize(from, 4<<10))
	}()
	return l
}

// pump reads line by line. Of a line that is too long the beginning is kept, redacted before it is cut so that no half of
// a credential is left at the cut.
func (l *logPump) pump(from *bufio.Reader) {
	var line []byte
	for {
		piece, err := from.ReadSlice('\n')
		if room := l.window() - len(line); room > 0 {
			line = append(line, piece[:min(len(piece), room)]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 {
			l.print(strings.TrimRight(string(line), "\r\n"))
			line = line[:0]
		}
		if err != nil {
			return
		}
	}
}

func (l *logPump) window() int { return maxLogLine + l.redactor.longest() }

// print passes one line on.
func (l *logPump) print(line string) {
	line = l.redactor.Redact(line)
	if len(line) > maxLogLine {
		line = strings.ToValidUTF8(line[:maxLogLine], "") + " [cut]"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.kept = append(l.lines, line), l.kept+len(line)+1
	for l.kept > maxLogTail && len(l.lines) > 1 {
		l.kept -= len(l.lines[0]) + 1
		l.lines = l.lines[1:]
	}
	if l.sent > maxLogBytes {
		return
	}
	if l.sent += len(line) + 1; l.sent > maxLogBytes {
		line = "the log of this job process is longer than its limit; the rest is dropped"
	}
	// A log that cannot be written must not end a job, and there is no other place to say so.
	_, _ = io.WriteString(l.to, line+"\n")
}

// tail returns the last lines.
func (l *logPump) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	tail := strings.Join(l.lines, "\n")
	if len(tail) > maxLogTail {
		tail = strings.ToValidUTF8(tail[len(tail)-maxLogTail:], "")
	}
	return tail
}
