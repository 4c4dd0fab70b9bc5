package job

import "context"

type contextKey int

const (
	traceKey contextKey = iota
	callKey
)

// WithTrace returns a context for Runtime.Start that puts the job into a trace, given in the form of a W3C traceparent.
// A runtime hands it on: to its tools in their contexts, to a job process as an argument. It changes nothing else of a
// job, which is why it is no part of the spec.
func WithTrace(ctx context.Context, traceParent string) context.Context {
	return context.WithValue(ctx, traceKey, traceParent)
}

// TraceOf returns what WithTrace put into ctx, "" if nothing.
func TraceOf(ctx context.Context) string {
	trace, _ := ctx.Value(traceKey).(string)
	return trace
}

// WithCall returns a context that names the tool call in which something happens. The runtime makes it for each call.
func WithCall(ctx context.Context, callID string) context.Context {
	return context.WithValue(ctx, callKey, callID)
}

// CallOf returns the id of the innermost tool call, "" outside of any.
func CallOf(ctx context.Context) string {
	call, _ := ctx.Value(callKey).(string)
	return call
}
