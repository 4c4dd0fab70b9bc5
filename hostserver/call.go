package hostserver

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool/hosttool"
)

const (
	// maxIDBytes bounds the id of a call.
	maxIDBytes = 256
	// maxProgressBytes bounds the message of a progress report.
	maxProgressBytes = 1 << 10
)

// handler returns what serves the calls of one tool.
func (s *Server) handler(t *lent) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		call, err := newCall(callerOf(ctx).ID, request)
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
		arguments, err := t.fit.PrepareArguments(call.Arguments)
		if err != nil {
			return Errorf("the arguments do not fit the tool %s:\n%v", call.Tool, err).encode(), nil
		}
		call.Arguments = arguments
		result := s.run(ctx, t, call).encode()
		return s.bounded(call, result), nil
	}
}

// newCall reads a call and checks its key. The job is the one of the connection; a call that claims another is refused
// rather than corrected, since something is very wrong with it.
func newCall(run string, request *mcp.CallToolRequest) (*Call, error) {
	params := request.Params
	c := &Call{Run: run, Tool: params.Name, Arguments: params.Arguments}
	c.ID, _ = params.Meta[hosttool.MetaCallID].(string)
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage(`{}`)
	}
	claimed, _ := params.Meta[hosttool.MetaRun].(string)
	switch {
	case claimed != run:
		return nil, fmt.Errorf("the call is of another job than the connection")
	case c.ID == "" || len(c.ID) > maxIDBytes:
		return nil, fmt.Errorf("a call must have an id in _meta %s, of at most %d bytes", hosttool.MetaCallID, maxIDBytes)
	case len(c.Arguments) > hosttool.MaxArgumentBytes:
		return nil, fmt.Errorf("the arguments are larger than %d bytes", hosttool.MaxArgumentBytes)
	}
	c.progress = reporter(request)
	return c, nil
}

// reporter returns the function that reports progress, which does nothing if the job did not ask for it.
func reporter(request *mcp.CallToolRequest) func(context.Context, string) {
	token := request.Params.GetProgressToken()
	if token == nil {
		return func(context.Context, string) {}
	}
	var steps atomic.Int64
	return func(ctx context.Context, message string) {
		if len(message) > maxProgressBytes {
			message = strings.ToValidUTF8(message[:maxProgressBytes], "")
		}
		// A report that is lost is followed by the next one, or by the end of the call.
		_ = request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(steps.Add(1)), Message: message})
	}
}

// run does the work of a call and makes its panic the failure of this call alone.
func (s *Server) run(ctx context.Context, t *lent, call *Call) (result Result) {
	defer func() {
		if fault := recover(); fault != nil {
			s.log.ErrorContext(ctx, "a host tool failed inside", "run", call.Run, "call", call.ID, "tool", call.Tool,
				"fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
			result = Errorf("the tool %s failed inside; calling it again in the same way will not help", call.Tool)
		}
	}()
	return t.Run(ctx, call)
}

// bounded replaces a result that would end the connection.
func (s *Server) bounded(call *Call, result *mcp.CallToolResult) *mcp.CallToolResult {
	encoded, err := json.Marshal(result)
	switch {
	case err != nil:
		s.log.Error("the result of a host tool has no JSON form", "run", call.Run, "call", call.ID, "tool", call.Tool, "error", err)
		return Errorf("the tool %s failed inside: its result cannot be sent", call.Tool).encode()
	case len(encoded) > hosttool.MaxResultBytes:
		s.log.Error("the result of a host tool is too large", "run", call.Run, "call", call.ID, "tool", call.Tool, "bytes", len(encoded))
		return Errorf("the result of the tool %s has %d bytes, more than %d, and was dropped: ask for less. The call itself may have had its effect",
			call.Tool, len(encoded), hosttool.MaxResultBytes).encode()
	}
	return result
}
