package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// EventPayload is what an event reports: a pointer to one of the …Data structs, which decides the event's type.
type EventPayload interface {
	// EventType names the type of the events that carry this data.
	EventType() EventType
}

// EventType returns EventStarted.
func (*StartedData) EventType() EventType { return EventStarted }

// EventType returns EventNotice.
func (*Notice) EventType() EventType { return EventNotice }

// EventType returns EventMessageDelta.
func (*MessageDeltaData) EventType() EventType { return EventMessageDelta }

// EventType returns EventMessage.
func (*MessageData) EventType() EventType { return EventMessage }

// EventType returns EventMessageDiscarded.
func (*MessageDiscardedData) EventType() EventType { return EventMessageDiscarded }

// EventType returns EventToolCall.
func (*ToolCallData) EventType() EventType { return EventToolCall }

// EventType returns EventToolResult.
func (*ToolResultData) EventType() EventType { return EventToolResult }

// EventType returns EventOutput.
func (*OutputData) EventType() EventType { return EventOutput }

// EventType returns EventSourceRead.
func (*SourceReadData) EventType() EventType { return EventSourceRead }

// EventType returns EventUsage.
func (*UsageData) EventType() EventType { return EventUsage }

// EventType returns EventSpan.
func (*SpanData) EventType() EventType { return EventSpan }

// EventType returns EventSuspended.
func (*SuspendedData) EventType() EventType { return EventSuspended }

// EventType returns EventResumed.
func (*ResumedData) EventType() EventType { return EventResumed }

// EventType returns EventCompaction.
func (*CompactionData) EventType() EventType { return EventCompaction }

// EventType returns EventStepRecorded.
func (*StepRecordedData) EventType() EventType { return EventStepRecorded }

// EventType returns EventMemoryUpdated.
func (*MemoryUpdatedData) EventType() EventType { return EventMemoryUpdated }

// EventType returns EventCompleted.
func (*CompletedData) EventType() EventType { return EventCompleted }

// EventType returns EventFailed.
func (*FailedData) EventType() EventType { return EventFailed }

// newPayload returns an empty payload for a type, nil for a type that has none in this version.
func newPayload(t EventType) EventPayload {
	switch t {
	case EventStarted:
		return new(StartedData)
	case EventNotice:
		return new(Notice)
	case EventMessageDelta:
		return new(MessageDeltaData)
	case EventMessage:
		return new(MessageData)
	case EventMessageDiscarded:
		return new(MessageDiscardedData)
	case EventToolCall:
		return new(ToolCallData)
	case EventToolResult:
		return new(ToolResultData)
	case EventOutput:
		return new(OutputData)
	case EventSourceRead:
		return new(SourceReadData)
	case EventUsage:
		return new(UsageData)
	case EventSpan:
		return new(SpanData)
	case EventSuspended:
		return new(SuspendedData)
	case EventResumed:
		return new(ResumedData)
	case EventCompaction:
		return new(CompactionData)
	case EventStepRecorded:
		return new(StepRecordedData)
	case EventMemoryUpdated:
		return new(MemoryUpdatedData)
	case EventCompleted:
		return new(CompletedData)
	case EventFailed:
		return new(FailedData)
	}
	return nil
}

// NewEvent makes an event and encodes it, so that every reader shares one buffer. The time is cut to milliseconds in UTC;
// parentCallID is empty for an event outside of a call. The data belongs to the event from here on and must not be
// changed. Runtimes call it, once an event.
//
// It panics if data cannot be encoded (raw JSON that is none, a span attribute that JSON has no form for): that is a
// fault of the runtime, not of a job.
func NewEvent(seq int64, at time.Time, jobID, parentCallID string, data EventPayload) *Event {
	e := &Event{
		Seq:          seq,
		At:           at.UTC().Truncate(time.Millisecond),
		JobID:        jobID,
		Type:         data.EventType(),
		ParentCallID: parentCallID,
		Data:         data,
	}
	line, err := e.encode()
	if err != nil {
		panic(err)
	}
	e.line = line
	return e
}

// Line returns the event as one line of JSON without its newline. The buffer is shared with every other caller and must
// not be changed. It is what NewEvent encoded or ParseEvent read; an event built by hand is encoded anew on each call and
// panics where NewEvent would.
func (e *Event) Line() []byte {
	if e.line != nil {
		return e.line
	}
	line, err := e.encode()
	if err != nil {
		panic(err)
	}
	return line
}

// MarshalJSON returns a copy of Line, so that an event has one form wherever it is embedded.
func (e *Event) MarshalJSON() ([]byte, error) {
	if e.line != nil {
		return bytes.Clone(e.line), nil
	}
	return e.encode()
}

// UnmarshalJSON is ParseEvent.
func (e *Event) UnmarshalJSON(line []byte) error {
	parsed, err := ParseEvent(line)
	if err != nil {
		return err
	}
	*e = *parsed
	return nil
}

// envelopeBytes is what an envelope takes beside its ids, with room for the largest numbers.
const envelopeBytes = 160

// encode writes the envelope by hand, and the data too where appendData knows it.
func (e *Event) encode() ([]byte, error) {
	b := make([]byte, 0, envelopeBytes+len(e.JobID)+len(e.ParentCallID)+len(e.Type)+dataBytes(e.Data))
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"at":"`...)
	b = appendTime(b, e.At)
	b = append(b, `","jobId":`...)
	b = appendString(b, e.JobID)
	b = append(b, `,"type":`...)
	b = appendString(b, string(e.Type))
	if e.ParentCallID != "" {
		b = append(b, `,"parentCallId":`...)
		b = appendString(b, e.ParentCallID)
	}
	b = append(b, `,"data":`...)
	b, known, err := appendData(b, e.Data)
	if err == nil && !known {
		var data []byte
		data, err = encodeData(e.Data)
		b = append(b, data...)
	}
	if err != nil {
		return nil, fmt.Errorf("encode event %d of type %q: %w", e.Seq, e.Type, err)
	}
	return append(b, '}'), nil
}

// appendTime appends a time in the form of RFC 3339 with milliseconds, in UTC. It does what time.AppendFormat does in a
// third of the time, which is half of what a delta costs.
func appendTime(b []byte, at time.Time) []byte {
	at = at.UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 {
		return at.AppendFormat(b, "2006-01-02T15:04:05.000Z")
	}
	hour, minute, second := at.Clock()
	b = appendDigits(b, year, 1000)
	b = appendDigits(append(b, '-'), int(month), 10)
	b = appendDigits(append(b, '-'), day, 10)
	b = appendDigits(append(b, 'T'), hour, 10)
	b = appendDigits(append(b, ':'), minute, 10)
	b = appendDigits(append(b, ':'), second, 10)
	b = appendDigits(append(b, '.'), at.Nanosecond()/1e6, 100)
	return append(b, 'Z')
}

// appendDigits appends n with leading zeros; highest is the value of its first digit.
func appendDigits(b []byte, n, highest int) []byte {
	for ; highest > 0; highest /= 10 {
		b = append(b, byte('0'+n/highest%10))
	}
	return b
}

// encodeData encodes the data that appendData leaves, and attributes of spans. Lists are never null: a reader need not know two forms of "none".
func encodeData(data any) ([]byte, error) {
	switch d := data.(type) {
	case *StartedData:
		c := *d
		c.Tools = orEmpty(d.Tools)
		data = &c
	case *CompletedData:
		c := *d
		c.Outputs = orEmpty(d.Outputs)
		data = &c
	case *FailedData:
		c := *d
		c.Outputs = orEmpty(d.Outputs)
		data = &c
	case nil:
		return nil, errors.New("it has no data")
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return nil, err
	}
	line := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if !utf8.Valid(line) { // raw JSON is passed through unchecked
		line = bytes.ToValidUTF8(line, []byte(string(utf8.RuneError)))
	}
	return line, nil
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// appendString appends text as a JSON string. Bytes that are no UTF-8 become U+FFFD each. U+2028 and U+2029 are escaped:
// they are legal in JSON, but some readers of lines take them for line ends.
func appendString(b []byte, text string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, text[start:i]...)
			b = appendEscape(b, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r != utf8.RuneError && r != '\u2028' && r != '\u2029' || r == utf8.RuneError && size > 1 {
			i += size
			continue
		}
		b = append(b, text[start:i]...)
		switch r {
		case '\u2028':
			b = append(b, `\u2028`...)
		case '\u2029':
			b = append(b, `\u2029`...)
		default:
			b = append(b, "\ufffd"...)
		}
		i += size
		start = i
	}
	b = append(b, text[start:]...)
	return append(b, '"')
}

// appendEscape appends an ASCII character that a JSON string cannot hold as it is.
func appendEscape(b []byte, c byte) []byte {
	const short = "\bb\tt\nn\ff\rr\"\"\\\\"
	if at := strings.IndexByte(short, c); at >= 0 && at%2 == 0 {
		return append(b, '\\', short[at+1])
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
