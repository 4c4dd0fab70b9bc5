package mcptool

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

// target is what a call is aimed at.
type target struct {
	// name and hash are the tool's own name and its definition when the job began.
	name, hash string
	// repeatable says that sending a call twice does no more than sending it once, as the server declares.
	repeatable bool
}

// runner returns the function that runs the calls of one tool.
func (srv *server) runner(t target) func(context.Context, *tool.Env, json.RawMessage) tool.Result {
	return func(ctx context.Context, env *tool.Env, arguments json.RawMessage) tool.Result {
		result, err := srv.call(ctx, t, arguments)
		if err != nil {
			return tool.Errorf("%s", srv.secrets.remove(visible(err.Error())))
		}
		return srv.convert(result, env)
	}
}

// call makes one call. It opens a new session and sends the call once more only if nothing reached the server, if the
// server refused it unread, or if the call may be repeated. The error is for the model.
func (srv *server) call(ctx context.Context, t target, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	var stale *mcp.ClientSession
	for first := true; ; first = false {
		session, err := srv.current(ctx, stale)
		if err != nil {
			return nil, srv.notMade(ctx, err, first)
		}
		if srv.hashOf(t.name) != t.hash {
			return nil, fmt.Errorf("refused: the MCP server %q has changed the definition of the tool %q since the job began", srv.config.Name, line(t.name))
		}
		result, err := srv.once(ctx, session, t, arguments)
		if err == nil {
			srv.succeeded()
			return result, nil
		}
		if first && ctx.Err() == nil && again(err, t) {
			stale = session
			continue
		}
		return nil, srv.explain(ctx, session, t, err)
	}
}

func (srv *server) hashOf(name string) string {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.hashes[name]
}

// again reports whether a failed call is worth a new session and may be sent once more.
func again(err error, t target) bool {
	if errors.Is(err, mcp.ErrConnectionClosed) {
		return true // the session ended before the call was written
	}
	if e := rpcError(err); e != nil {
		return e.Code == mcp.CodeHeaderMismatch // the server asks for exactly this: read the list again and repeat
	}
	for _, final := range []error{errTooLarge, errEncoded, errIdle, errLimit} {
		if errors.Is(err, final) {
			return false
		}
	}
	if _, redirected := errors.AsType[*redirectError](err); redirected || unsent(err) {
		return false
	}
	if e, ok := errors.AsType[*statusError](err); ok && e.status < 500 {
		return false
	}
	return t.repeatable
}

// notMade explains a call for which there was no session.
func (srv *server) notMade(ctx context.Context, err error, first bool) error {
	what := "the call was not made"
	if !first {
		what = "the call was not repeated, and whether the first try had an effect is unknown"
	}
	if lost, ok := errors.AsType[*lostError](err); ok {
		return fmt.Errorf("the MCP server %q is not used any more in this job (%s); %s. Go on without its tools", srv.config.Name, lost.why, what)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cancelled: %s", what)
	}
	srv.failed(err)
	return fmt.Errorf("the MCP server %q cannot be reached (%s); %s", srv.config.Name, reason(err), what)
}

// explain turns the failure of a call into words for the model. For a call that may have changed something they say that
// nobody knows whether it did.
func (srv *server) explain(ctx context.Context, session *mcp.ClientSession, t target, err error) error {
	outcome := ""
	if !t.repeatable {
		outcome = ". The call was not repeated: whether it had an effect is unknown; check before you call again"
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("cancelled before the MCP server %q answered%s", srv.config.Name, outcome)
	case rpcError(err) != nil:
		srv.succeeded()
		return srv.explainRPC(rpcError(err))
	case errors.Is(err, errTooLarge):
		srv.succeeded()
		return fmt.Errorf("the result is larger than %d MiB and was dropped; ask for less. The call itself may have had its effect", maxBody>>20)
	case unsent(err):
		srv.failed(err)
		return fmt.Errorf("the MCP server %q cannot be reached (%s); the call was not made", srv.config.Name, reason(err))
	case errors.Is(err, errGone):
		if _, lost := srv.usable(session); lost != nil { // the next call opens a new session
			return fmt.Errorf("the MCP server %q is not used any more in this job (%w)%s", srv.config.Name, lost, outcome)
		}
	}
	srv.failed(err)
	return fmt.Errorf("the MCP server %q failed (%s)%s", srv.config.Name, reason(err), outcome)
}

func (srv *server) explainRPC(e *jsonrpc.Error) error {
	switch e.Code {
	case mcp.CodeMissingRequiredClientCapabilities, mcp.CodeURLElicitationRequired:
		return fmt.Errorf("the tool wants to ask a person or a model in the middle of the call, which this job does not offer; it did not run (error %d: %s)", e.Code, line(e.Message))
	case jsonrpc.CodeInvalidParams:
		return fmt.Errorf("the MCP server %q refused the call (error %d), perhaps for its arguments: %s", srv.config.Name, e.Code, line(e.Message))
	}
	return fmt.Errorf("the MCP server %q answered with error %d: %s", srv.config.Name, e.Code, line(e.Message))
}

// once sends one call and waits for its answer. Progress starts the time anew, up to the limit of a call.
func (srv *server) once(ctx context.Context, session *mcp.ClientSession, t target, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	x := &exchange{told: make(chan struct{})}
	limited, cancelLimit := context.WithTimeoutCause(context.WithValue(ctx, exchangeKey{}, x), min(10*srv.timeout, maxTimeout), errLimit)
	callCtx, cancel := context.WithCancelCause(limited)
	x.ended = callCtx.Err
	x.cancel = func() {
		cancel(nil)
		cancelLimit()
	}
	idle := time.AfterFunc(srv.timeout, func() { cancel(errIdle) })
	defer idle.Stop()

	params := &mcp.CallToolParams{Name: t.name, Arguments: arguments, Meta: mcp.Meta{}}
	token := "p" + strconv.FormatInt(srv.tokens.Add(1), 10)
	params.SetProgressToken(token)
	srv.reporters.Store(token, func() { idle.Reset(srv.timeout) })
	defer srv.reporters.Delete(token)
	if srv.all.TraceParent != nil {
		if x.traceParent = srv.all.TraceParent(ctx); x.traceParent != "" {
			params.Meta["traceparent"] = x.traceParent
		}
	}
	result, err := session.CallTool(callCtx, params)
	ended := context.Cause(callCtx)
	if ended != nil && session.InitializeResult().ProtocolVersion < modernEra {
		srv.awaitTold(x)
	}
	x.finish(err != nil)
	switch {
	case err == nil:
		return result, nil
	case x.wasTooLarge():
		return nil, errTooLarge
	case ctx.Err() == nil && (errors.Is(ended, errIdle) || errors.Is(ended, errLimit)):
		return nil, ended
	}
	return nil, err
}

// awaitTold lets close wait until the server was told of a cancelled call. In the earlier revisions that is a request of
// its own, which the SDK sends after the call has returned; a session that ends first would leave the call running.
func (srv *server) awaitTold(x *exchange) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.closed {
		return
	}
	srv.telling.Go(func() {
		timer := time.NewTimer(closeGrace / 2)
		defer timer.Stop()
		select {
		case <-x.told:
		case <-timer.C:
		}
	})
}
