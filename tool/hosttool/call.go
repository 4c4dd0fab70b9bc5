package hosttool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool"
)

// The ends of a call that are neither an answer nor the loss of the host.
var (
	errIdle  = errors.New("no answer and no progress in time")
	errLimit = errors.New("the longest time of a call is over")
	errLarge = fmt.Errorf("the arguments are larger than %d bytes", MaxArgumentBytes)
)

// runner returns the function that runs the calls of one tool.
func (s *Session) runner(e *Entry) func(context.Context, *tool.Env, json.RawMessage) tool.Result {
	return func(ctx context.Context, env *tool.Env, arguments json.RawMessage) tool.Result {
		answer, err := s.call(ctx, e.Name, env.CallID, arguments)
		if err != nil {
			return tool.Errorf("%s", e.explain(ctx, err))
		}
		return render(answer)
	}
}

// call makes one call and waits for its answer. It returns when ctx ends; the host is told.
func (s *Session) call(ctx context.Context, name, callID string, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	if len(arguments) > MaxArgumentBytes {
		return nil, errLarge
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.failure != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, s.failure)
	}
	limited, cancelLimit := context.WithTimeoutCause(ctx, min(10*s.timeout, maxTimeout), errLimit)
	defer cancelLimit()
	callCtx, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	idle := time.AfterFunc(s.timeout, func() { cancel(errIdle) })
	defer idle.Stop()

	params := &mcp.CallToolParams{Name: name, Arguments: arguments, Meta: mcp.Meta{MetaRun: s.config.Run, MetaCallID: callID}}
	token := "p" + strconv.FormatInt(s.tokens.Add(1), 10)
	params.SetProgressToken(token)
	s.reporters.Store(token, func() { idle.Reset(s.timeout) })
	defer s.reporters.Delete(token)

	returned := make(chan struct{})
	stop := context.AfterFunc(callCtx, func() { s.release(returned) })
	result, err := s.session.CallTool(callCtx, params)
	close(returned)
	stop()
	return result, s.cause(callCtx, err)
}

// release ends a call that does not return although its context has ended: the host does not read, so that the message
// cannot be written. A message that was written in part leaves the connection without use for any other.
func (s *Session) release(returned <-chan struct{}) {
	timer := time.NewTimer(writeGrace)
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		s.conn.Close()
	}
}

// cause returns why a call failed: an answer of the host in the protocol's words, the end of the call's time, or ErrLost.
func (s *Session) cause(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && !errors.Is(err, mcp.ErrConnectionClosed) {
		return e
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// explain turns the failure of a call into words for the model. For a call that may have changed something they say that
// nobody knows whether it did.
func (e *Entry) explain(ctx context.Context, err error) string {
	outcome := ""
	if e.Effect != string(tool.EffectRead) && !e.Idempotent {
		outcome = "; whether the call had an effect is unknown, check before you call again"
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Sprintf("the host refused the call (error %d): %s", refused.Code, line(refused.Message))
	}
	switch {
	case errors.Is(err, errLarge):
		return errLarge.Error() + "; send less"
	case errors.Is(err, errIdle), errors.Is(err, errLimit):
		return fmt.Sprintf("the tool %s was given up: %v%s", e.Name, err, outcome)
	case ctx.Err() != nil:
		return fmt.Sprintf("cancelled before the tool %s answered%s", e.Name, outcome)
	}
	return fmt.Sprintf("the tool %s cannot be used any more in this job, since the connection to its host is lost%s. Go on without it", e.Name, outcome)
}
