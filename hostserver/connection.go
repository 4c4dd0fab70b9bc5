package hostserver

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool/hosttool"
)

// Run is the job at the other end of a connection.
type Run struct {
	// ID is the id of the job, as its events have it.
	ID string
	// Tools are the names of the tools that the job may call.
	Tools []string
}

// maxCalls bounds the calls of one job that run at once. A job of ours makes fewer; one that was taken over must not fill
// this process.
const maxCalls = 32

// caller is what a connection knows about its job.
type caller struct {
	Run
	slots chan struct{} // one for each call that runs
}

// callerKey is the key of the *caller in the context of a connection.
type callerKey struct{}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// Connection is one job's connection to the server.
type Connection struct {
	conn *closingConn
	done chan struct{}
}

// Connect serves a job at the other end of conn until one of the two ends closes it. The server takes conn over. The
// values of ctx reach every call; its end does not matter, since the job decides how long it runs. An error means that
// run names a tool that does not exist, or no job.
func (s *Server) Connect(ctx context.Context, conn io.ReadWriteCloser, run Run) (*Connection, error) {
	err := s.known(run.Tools)
	if run.ID == "" {
		err = errors.Join(err, errors.New("the job has no id"))
	}
	c := &Connection{conn: &closingConn{ReadWriteCloser: conn}, done: make(chan struct{})}
	if err != nil {
		return nil, errors.Join(err, c.conn.Close())
	}
	run.Tools = slices.Clone(run.Tools)
	ctx = context.WithValue(context.WithoutCancel(ctx), callerKey{}, &caller{Run: run, slots: make(chan struct{}, maxCalls)})
	session, err := s.server.Connect(ctx, &mcp.IOTransport{Reader: c.conn, Writer: c.conn, MaxLineLength: hosttool.MaxLineBytes}, nil)
	if err != nil {
		return nil, errors.Join(err, c.conn.Close())
	}
	go func() {
		defer close(c.done)
		// A connection ends when the job does, in whatever way; there is nobody to whom the way would matter.
		_ = session.Wait()
		c.conn.Close()
	}()
	return c, nil
}

// Done is closed when the connection has ended and every call of it has returned.
func (c *Connection) Done() <-chan struct{} { return c.done }

// Close ends the connection: the contexts of its calls end at once. It returns when the calls have.
func (c *Connection) Close() {
	c.conn.Close()
	<-c.done
}

// closingConn is a connection that is closed once, whoever does it first.
type closingConn struct {
	io.ReadWriteCloser
	once sync.Once
	err  error
}

// Close implements io.Closer.
func (c *closingConn) Close() error {
	c.once.Do(func() { c.err = c.ReadWriteCloser.Close() })
	return c.err
}

// onlyLent lets a job see and call the tools that it was lent and nothing else of the protocol.
func (s *Server) onlyLent(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		c := callerOf(ctx)
		switch method {
		case "initialize", "notifications/initialized", "server/discover", "ping", "notifications/cancelled":
			return next(ctx, method, request)
		case "tools/list":
			result, err := next(ctx, method, request)
			if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				shown := *list
				shown.Tools = slices.DeleteFunc(slices.Clone(list.Tools), func(t *mcp.Tool) bool { return !slices.Contains(c.Tools, t.Name) })
				return &shown, nil
			}
			return result, err
		case "tools/call":
			if err := c.admit(request); err != nil {
				return nil, err
			}
			defer func() { <-c.slots }()
			return next(ctx, method, request)
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this host does not offer " + method}
	}
}

// admit decides whether a call may run, and takes a slot for it. An unknown tool and one that is not lent give the same
// answer.
func (c *caller) admit(request mcp.Request) error {
	call, ok := request.(*mcp.CallToolRequest)
	if !ok || !slices.Contains(c.Tools, call.Params.Name) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such tool for this job"}
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	default:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "too many calls at once; wait for one to end"}
	}
}
