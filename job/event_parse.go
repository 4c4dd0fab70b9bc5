package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// envelope is an event whose data has not been decoded.
type envelope struct {
	Seq          int64           `json:"seq"`
	At           time.Time       `json:"at"`
	JobID        string          `json:"jobId"`
	Type         EventType       `json:"type"`
	ParentCallID string          `json:"parentCallId"`
	Data         json.RawMessage `json:"data"`
}

// ParseEvent reads one line of an event stream, with or without its newline. Data gets the struct of the event's type; a
// type that this version does not know keeps its data as json.RawMessage, and fields that it does not know are ignored,
// since later versions add both. The event keeps a copy of the line for Line, byte for byte.
func ParseEvent(line []byte) (*Event, error) {
	line = bytes.Clone(bytes.TrimRight(line, "\r\n"))
	if quick, ok := cutEnvelope(line); ok {
		if e, err := quick.event(line); err == nil {
			return e, nil
		}
	}
	var whole envelope
	if err := json.Unmarshal(line, &whole); err != nil {
		return nil, fmt.Errorf("parse event: %w", err)
	}
	return whole.event(line)
}

// event decodes the data.
func (v *envelope) event(line []byte) (*Event, error) {
	switch {
	case v.Seq < 1:
		return nil, errors.New("parse event: seq is missing or below 1")
	case v.Type == "":
		return nil, errors.New("parse event: type is missing")
	case v.At.IsZero():
		return nil, errors.New("parse event: at is missing")
	case len(v.Data) == 0 || v.Data[0] != '{':
		return nil, fmt.Errorf("parse event: data of %q is no object", v.Type)
	}
	e := &Event{Seq: v.Seq, At: v.At, JobID: v.JobID, Type: v.Type, ParentCallID: v.ParentCallID, line: line}
	payload := newPayload(v.Type)
	if payload == nil {
		if !json.Valid(v.Data) {
			return nil, fmt.Errorf("parse event: data of %q is not valid JSON", v.Type)
		}
		e.Data = v.Data
		return e, nil
	}
	if err := json.Unmarshal(v.Data, payload); err != nil {
		return nil, fmt.Errorf("parse event %q: %w", v.Type, err)
	}
	e.Data = payload
	return e, nil
}

// cutEnvelope reads the envelope of a line that looks exactly as Line writes it, without a pass over the data. It is not
// sure that the data is valid and ends where the line does: if it does not decode, the line must be read in full.
func cutEnvelope(line []byte) (v envelope, ok bool) {
	rest := cutter{text: line, ok: true}
	rest.skip(`{"seq":`)
	seqText := string(rest.until(','))
	seq, err := strconv.ParseInt(seqText, 10, 64)
	rest.skip(`"at":"`)
	atErr := v.At.UnmarshalText(rest.until('"'))
	rest.skip(`,"jobId":"`)
	v.JobID = string(rest.until('"'))
	rest.skip(`,"type":"`)
	v.Type = EventType(rest.until('"'))
	if bytes.HasPrefix(rest.text, []byte(`,"parentCallId":"`)) {
		rest.skip(`,"parentCallId":"`)
		v.ParentCallID = string(rest.until('"'))
	}
	rest.skip(`,"data":`)
	data, closed := bytes.CutSuffix(rest.text, []byte("}"))
	v.Seq, v.Data = seq, data
	return v, rest.ok && closed && err == nil && atErr == nil && strconv.FormatInt(seq, 10) == seqText
}

// cutter takes known pieces from the front of a text; ok becomes false at the first that is not there.
type cutter struct {
	text []byte
	ok   bool
}

func (c *cutter) skip(prefix string) {
	rest, found := bytes.CutPrefix(c.text, []byte(prefix))
	c.text, c.ok = rest, c.ok && found
}

// until takes plain ASCII up to and including end, which it does not return.
func (c *cutter) until(end byte) []byte {
	for i, b := range c.text {
		switch {
		case b == end:
			taken := c.text[:i]
			c.text = c.text[i+1:]
			return taken
		case b < ' ' || b > '~' || b == '\\':
			c.ok = false
			return nil
		}
	}
	c.ok = false
	return nil
}
