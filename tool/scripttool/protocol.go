package scripttool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxLine bounds a message of the child, such as a call with its arguments, in bytes.
const maxLine = 4 << 20

// order is the first message to the child: what to run.
type order struct {
	Code  string   `json:"code"`
	Tools []string `json:"tools"`
	// DeadlineMS is when the child ends the script by itself, which tells more than killing it does: milliseconds since
	// 1970, by the clock that both share.
	DeadlineMS int64 `json:"deadlineMs"`
	// CPUSeconds is how much processor time the child may use; 0 leaves it unbounded.
	CPUSeconds int64 `json:"cpuSeconds"`
	HeapBytes  int64 `json:"heapBytes"`
	// DataBytes bounds the memory of the whole child; 0 leaves it unbounded.
	DataBytes    int64 `json:"dataBytes"`
	ConsoleBytes int   `json:"consoleBytes"`
	OutputBytes  int   `json:"outputBytes"`
}

// answer is the end of a call, the only other message to the child.
type answer struct {
	ID int64 `json:"id"`
	// Value is the result as JSON; nil says that the call failed, and Error why.
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

// message is what the child says: exactly one of its fields is set.
type message struct {
	Call    *callMessage    `json:"call,omitempty"`
	Console *consoleMessage `json:"console,omitempty"`
	End     *end            `json:"end,omitempty"`
}

type callMessage struct {
	ID        int64           `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

type consoleMessage struct {
	Text string `json:"text"`
}

// end is the last message of the child.
type end struct {
	// Text is what the script returned, cut by the child if it is much too long; Bytes is its whole length.
	Text  string `json:"text,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Nothing says that the script returned undefined.
	Nothing bool `json:"nothing,omitempty"`
	// Failure is set if the script did not come to its end.
	Failure *failure `json:"failure,omitempty"`
}

// kind says why a script failed.
type kind string

const (
	kindSyntax   kind = "syntax"
	kindScript   kind = "script"
	kindResult   kind = "result"
	kindTimeout  kind = "timeout"
	kindMemory   kind = "memory"
	kindStack    kind = "stack"
	kindDeadlock kind = "deadlock"
	kindCalls    kind = "calls"
	kindAborted  kind = "aborted"
	kindSandbox  kind = "sandbox"
)

// failure is why a script failed, and where.
type failure struct {
	Kind    kind   `json:"kind"`
	Message string `json:"message"`
	// Line counts the lines of the script from 1; 0 is unknown.
	Line int `json:"line,omitempty"`
}

func (f *failure) Error() string { return string(f.Kind) + ": " + f.Message }

// errBroken marks a child that does not speak the protocol.
var errBroken = errors.New("the child broke the protocol")

// reader reads the messages of the child. Nothing about them is believed: a line that is too long, is no JSON or is no
// message is an error, after which nothing more is read.
type reader struct {
	lines *bufio.Reader
}

func newReader(r io.Reader) *reader { return &reader{lines: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next message, io.EOF at the end of the stream, or an error that wraps errBroken.
func (r *reader) next() (*message, error) {
	line, err := readLine(r.lines, maxLine)
	if err != nil {
		return nil, err
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, fmt.Errorf("%w: a line is no message: %w", errBroken, err)
	}
	return &m, m.check()
}

// readLine returns a line without its end. Only complete lines count: what a killed child began to say is dropped.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, fmt.Errorf("%w: a line is longer than %d bytes", errBroken, most)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			line = append(line, part...)
		case err != nil:
			return nil, io.EOF
		case line == nil:
			return part[:len(part)-1], nil
		default:
			return append(line, part[:len(part)-1]...), nil
		}
	}
}

func (m *message) check() error {
	set := 0
	if m.Console != nil {
		set++
	}
	if m.End != nil {
		set++
	}
	if m.Call != nil {
		set++
		if !bytes.HasPrefix(bytes.TrimLeft(m.Call.Arguments, " \t\r\n"), []byte{'{'}) {
			return fmt.Errorf("%w: the arguments of a call are no object", errBroken)
		}
	}
	if set != 1 {
		return fmt.Errorf("%w: a message has %d meanings", errBroken, set)
	}
	return nil
}

// writer writes messages, one a line. Several goroutines may use it.
type writer struct {
	mu sync.Mutex
	to io.Writer
}

// write encodes and writes a message. JSON texts inside of it go as they are.
func (w *writer) write(m any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(line.Bytes())
	return err
}
