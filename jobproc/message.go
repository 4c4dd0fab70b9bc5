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
	// maxMessageBytes bounds a line to the child. The largest spec fits.
	maxMessageBytes = job.MaxSpecBytes + 1<<10
	// maxEventBytes bounds a line from the child.
	maxEventBytes = 16 << 20
)

// The types of a message to the child. Frame, end, ack and detach belong to journaled jobs, which this version does not
// have; a child ends its job when it gets one.
const (
	messageSpec  = "spec"
	messageAbort = "abort"
)

// message is one line to the child.
type message struct {
	Type string `json:"type"`
	// Spec is set for messageSpec, Cause for messageAbort.
	Spec  json.RawMessage `json:"spec,omitempty"`
	Cause string          `json:"cause,omitempty"`
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
	line, err := json.Marshal(message{Type: messageAbort, Cause: cause})
	if err != nil {
		panic(err) // two strings always have a JSON form
	}
	return append(line, '\n')
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
