package journal

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// messageHead is what a cut has to know of a message.
type messageHead struct {
	Thread   string      `json:"thread"`
	Turn     int64       `json:"turn"`
	Purpose  llm.Purpose `json:"purpose"`
	Response struct {
		Message struct {
			Parts []struct {
				ToolCall *struct{} `json:"toolCall"`
			} `json:"parts"`
		} `json:"message"`
	} `json:"response"`
	Fault *struct{} `json:"fault"`
}

// answersTurn reports whether the message is a response that the job's agent went on with.
func (m *messageHead) answersTurn() bool {
	return m.Thread == "" && m.Fault == nil && (m.Purpose == llm.PurposeTurn || m.Purpose == llm.PurposeRepair)
}

func (m *messageHead) calls() bool {
	for _, p := range m.Response.Message.Parts {
		if p.ToolCall != nil {
			return true
		}
	}
	return false
}

// Fork says where a job leaves another one.
type Fork struct {
	// Turn is the last turn that the two have in common; 0 leaves only what was asked. Everything that its calls did is
	// taken over, everything after them is not.
	Turn int64
	// Results are other answers for calls of that turn, by call id.
	Results map[string]string
}

// Frames yields the frames of a journal that the fork takes over. It ends in an error if the journal does not reach the
// turn, or has no answer of a call to replace.
func (k Fork) Frames(frames iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		replaced := map[string]bool{}
		reached := int64(0)
		for frame, err := range frames {
			if err != nil {
				yield(nil, err)
				return
			}
			turn, end, err := k.place(frame)
			if err == nil && !end {
				reached = max(reached, turn)
				frame, err = k.replace(frame, replaced)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if end {
				break
			}
			if !yield(frame, nil) {
				return
			}
		}
		if err := k.missing(reached, replaced); err != nil {
			yield(nil, err)
		}
	}
}

// place returns the turn that a frame answers, if any, and whether it is the first that the fork does not take.
func (k Fork) place(frame []byte) (turn int64, end bool, err error) {
	head, err := job.ParseFrameHead(frame)
	if err != nil {
		return 0, false, err
	}
	switch head.Type {
	case job.FrameOutcome:
		return 0, true, nil
	case job.FrameMessage:
		var m messageHead
		if err := dataOf(frame, &m); err != nil {
			return 0, false, err
		}
		if m.Thread == "" && m.Turn > k.Turn {
			return 0, true, nil
		}
		if m.answersTurn() {
			turn = m.Turn
		}
	}
	return turn, false, nil
}

// replace gives a call of the last common turn another answer.
func (k Fork) replace(frame []byte, replaced map[string]bool) ([]byte, error) {
	if len(k.Results) == 0 {
		return frame, nil
	}
	whole, err := job.ParseFrame(frame)
	if err != nil || whole.Type != job.FrameCallFinished {
		return frame, err
	}
	var finished job.CallFinishedFrame
	if err := dataOf(frame, &finished); err != nil {
		return nil, err
	}
	text, ok := k.Results[finished.CallID]
	if !ok {
		return frame, nil
	}
	replaced[finished.CallID] = true
	finished.Text, finished.IsError, finished.Interrupted, finished.Images, finished.Summary = text, false, false, nil, "replaced"
	if whole.Data, err = json.Marshal(finished); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}

func (k Fork) missing(reached int64, replaced map[string]bool) error {
	if reached < k.Turn {
		return fmt.Errorf("the journal does not reach turn %d: its last answered turn is %d", k.Turn, reached)
	}
	for _, id := range slices.Sorted(maps.Keys(k.Results)) {
		if turn, _, _ := strings.Cut(id, "."); turn != fmt.Sprint(k.Turn) {
			return fmt.Errorf("the call %s is none of turn %d: the model has already gone on with its answer", id, k.Turn)
		}
		if !replaced[id] {
			return fmt.Errorf("the call %s has no answer in turn %d of the journal", id, k.Turn)
		}
	}
	return nil
}
