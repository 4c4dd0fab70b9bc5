package hosttool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Verdict is what a check says about an answer.
type Verdict string

// The closed set of verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	// Unavailable means that the check could not be made, so that nothing is known about the answer.
	Unavailable Verdict = "unavailable"
)

// judgement is the structured result of a check.
type judgement struct {
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message,omitempty"`
}

// Check lets a tool of the host judge the answer of a turn. The call has the id check.<turn>.<check>. A check passes or
// fails by the structured result {"verdict": "pass" or "fail", "message": …} alone; whatever else happens is Unavailable.
// message is one line for people: why the answer failed, or why nobody knows. It returns when ctx ends.
func (s *Session) Check(ctx context.Context, c AnswerCheck, turn int64, answer string) (verdict Verdict, message string) {
	result, err := s.call(ctx, c.Tool, fmt.Sprintf("check.%d.%s", turn, c.ID), checkArguments(answer))
	if err != nil {
		return Unavailable, c.explain(ctx, err)
	}
	if _, waits := suspended(result); waits {
		return Unavailable, "a check cannot wait for a decision"
	}
	if why := incomplete(result); why != "" {
		return Unavailable, line(why)
	}
	if result.IsError {
		return Unavailable, "the check failed: " + line(render(result).Text)
	}
	return read(result)
}

func read(result *mcp.CallToolResult) (Verdict, string) {
	var j judgement
	data, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	switch {
	case err == nil && j.Verdict == Pass:
		return Pass, line(j.Message)
	case err == nil && j.Verdict == Fail && line(j.Message) == "":
		return Fail, "the check gave no reason"
	case err == nil && j.Verdict == Fail:
		return Fail, line(j.Message)
	}
	return Unavailable, "the check answered without a verdict"
}

func (c AnswerCheck) explain(ctx context.Context, err error) string {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Sprintf("the host refused the check (error %d): %s", refused.Code, line(refused.Message))
	}
	switch {
	case errors.Is(err, errLarge):
		return fmt.Sprintf("the answer is larger than the %d bytes that a check can take", MaxArgumentBytes)
	case errors.Is(err, errIdle), errors.Is(err, errLimit):
		return err.Error()
	case ctx.Err() != nil:
		return "cancelled before the check answered"
	}
	return ErrLost.Error()
}

func checkArguments(answer string) json.RawMessage {
	arguments, err := json.Marshal(map[string]string{"answer": answer})
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return arguments
}
