package jobproc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// Memory must not depend on what the other side sends: a longer line ends the job.
const (
	// maxFrameBytes bounds a frame of the journal. The largest spec fits, and the largest dialog.
	maxFrameBytes = 2 * job.MaxSpecBytes
	// maxMessageBytes bounds a line to the child. The largest frame fits.
	maxMessageBytes = maxFrameBytes + 1<<10
	// maxEventBytes bounds a line from the child.
	maxEventBytes = 16 << 20
)

// The types of a message to the child. All but the first two are for jobs with a journal: the frames of the earlier
// attempts and their end, the number of the last frame that is stored, and the order to end the attempt and not the job.
const (
	messageSpec   = "spec"
	messageAbort  = "abort"
	messageFrame  = "frame"
	messageEnd    = "end"
	messageAck    = "ack"
	messageDetach = "detach"
)

// message is one line to the child.
type message struct {
	Type string `json:"type"`
	// Spec is set for messageSpec, Cause for messageAbort, Frame for messageFrame.
	Spec  json.RawMessage `json:"spec,omitempty"`
	Cause string          `json:"cause,omitempty"`
	Frame json.RawMessage `json:"frame,omitempty"`
	// N is set for messageAck: the frames up to it are stored. Error is why the next ones are not.
	N     int64  `json:"n,omitempty"`
	Error string `json:"error,omitempty"`
}

// refusal is the one line of a child that does not start the job.
type refusal struct {
	Problems problem.List `json:"problems"`
}

// encodeSpec returns the line that carries spec. Text is not escaped for HTML: what the caller wrote arrives unchanged,
// raw JSON included.
func encodeSpec(spec *job.Spec) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"type":"` + messageSpec + `","spec":`)
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(spec); err != nil {
		return nil, fmt.Errorf("encode the spec: %w", err)
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
	b.WriteString("}\n")
	return b.Bytes(), nil
}

func encodeAbort(cause string) []byte {
	return encodeMessage(message{Type: messageAbort, Cause: cause})
}

func encodeDetach() []byte { return encodeMessage(message{Type: messageDetach}) }

func encodeAck(n int64, failed error) []byte {
	m := message{Type: messageAck, N: n}
	if failed != nil {
		m.Error = failed.Error()
	}
	return encodeMessage(m)
}

// encodeMessage encodes a message that carries no JSON of somebody else.
func encodeMessage(m message) []byte {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and numbers always have a JSON form
	}
	return append(line, '\n')
}

// The beginning and the end of a message with a frame. The frame is not encoded again: its bytes are what was stored.
const (
	beforeFrame = `{"type":"` + messageFrame + `","frame":`
	afterFrame  = `}`
)

func encodeFrame(frame []byte) []byte {
	line := make([]byte, 0, len(beforeFrame)+len(frame)+len(afterFrame)+1)
	line = append(append(append(line, beforeFrame...), frame...), afterFrame...)
	return append(line, '\n')
}

// parseMessage reads a line from the parent. A frame is a copy.
func parseMessage(line []byte) (m message, err error) {
	if rest, ok := bytes.CutPrefix(line, []byte(beforeFrame)); ok && bytes.HasSuffix(rest, []byte(afterFrame)) {
		return message{Type: messageFrame, Frame: bytes.Clone(rest[:len(rest)-len(afterFrame)])}, nil
	}
	err = json.Unmarshal(line, &m)
	return m, err
}

// WriteRefusal writes the one line {"problems":[…]} of a job that was not started. An error without problems becomes the
// one problem whose code is its kind.
func WriteRefusal(w io.Writer, err error) error {
	problems := problem.Of(err)
	if len(problems) == 0 {
		problems.Add(string(problem.KindOf(err)), "", "%v", err)
	}
	line, err := json.Marshal(refusal{Problems: problems})
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// parseRefusal reports whether line is a refusal, and returns it as the error that the child's runtime had returned.
func parseRefusal(line []byte) (error, bool) {
	if !bytes.HasPrefix(line, []byte(`{"problems":`)) {
		return nil, false
	}
	var r refusal
	if err := json.Unmarshal(line, &r); err != nil || len(r.Problems) == 0 {
		return nil, false
	}
	kind := problem.Invalid
	if len(r.Problems) == 1 {
		switch k := problem.Kind(r.Problems[0].Code); k {
		case problem.NotFound, problem.Conflict, problem.Forbidden, problem.Unavailable, problem.Internal:
			kind = k
		}
	}
	return &problem.Error{Kind: kind, Op: "start job", Problems: r.Problems}, true
}

// errLongLine is the error of a line above its limit.
var errLongLine = errors.New("a line is longer than its limit")

// lineReader cuts a stream into lines and never holds more than one of them.
type lineReader struct {
	source *bufio.Reader
	limit  int
	long   []byte // the beginning of a line that is longer than the source's buffer
}

// next returns the next line without its newline, valid until the next call. A last line without a newline is
// io.ErrUnexpectedEOF: it was cut.
func (l *lineReader) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		piece, err := l.source.ReadSlice('\n')
		if len(l.long)+len(piece) > l.limit {
			return nil, fmt.Errorf("%w of %d bytes", errLongLine, l.limit)
		}
		switch {
		case err == nil && len(l.long) == 0:
			return piece[:len(piece)-1], nil
		case err == nil:
			l.long = append(l.long, piece...)
			return l.long[:len(l.long)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, piece...)
		case errors.Is(err, io.EOF) && len(l.long)+len(piece) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
