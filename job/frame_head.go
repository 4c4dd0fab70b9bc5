package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// FrameHead is what whoever stores or carries a frame has to know of it; see Frame for the fields.
type FrameHead struct {
	V        int       `json:"v"`
	N        int64     `json:"n"`
	Seq      int64     `json:"seq"`
	ActiveMS int64     `json:"activeMs"`
	Type     FrameType `json:"type"`
}

// ParseFrameHead reads the head of one line of a journal. A line that looks as a Frame is encoded is not read further
// than that; any other is decoded in full. The error says why the line is no frame of this version.
func ParseFrameHead(line []byte) (FrameHead, error) {
	h, ok := cutFrameHead(line)
	if !ok {
		if err := json.Unmarshal(line, &h); err != nil {
			return FrameHead{}, fmt.Errorf("journal frame: %w", err)
		}
	}
	switch {
	case h.V != FrameVersion:
		return FrameHead{}, fmt.Errorf("journal frame %d has version %d; this program reads version %d", h.N, h.V, FrameVersion)
	case h.N < 1 || h.Seq < 0 || h.Type == "":
		return FrameHead{}, fmt.Errorf("journal frame %d of type %q with seq %d is none: n counts from 1, seq from 0, and the type is required",
			h.N, h.Type, h.Seq)
	}
	return h, nil
}

// cutFrameHead reads the head as json.Marshal writes it.
func cutFrameHead(line []byte) (h FrameHead, ok bool) {
	rest := cutter{text: line, ok: true}
	number := func(before string, end byte) int64 {
		rest.skip(before)
		n, err := strconv.ParseInt(string(rest.until(end)), 10, 64)
		rest.ok = rest.ok && err == nil
		return n
	}
	h.V = int(number(`{"v":`, ','))
	h.N = number(`"n":`, ',')
	h.Seq = number(`"seq":`, ',')
	h.ActiveMS = number(`"activeMs":`, ',')
	rest.skip(`"type":"`)
	h.Type = FrameType(rest.until('"'))
	if !rest.ok || !bytes.HasPrefix(rest.text, []byte(`,"data":`)) {
		return FrameHead{}, false
	}
	return h, true
}
