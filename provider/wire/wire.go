// Package wire holds what every model adapter needs below its own message format: the reader of server-sent events, a
// small strict JSON reader, the assembly of a streamed response, the growing request, one shared HTTP transport and the
// translation of every fault into an *llm.Error. It knows no vendor: an adapter describes its format with a Decoder and
// an Endpoint and gets one exchange back.
//
// The package is built as functions over bytes, so all of it can be tested without a network. Two rules hold throughout:
// a piece of text is copied at most once between the socket and the message, and no error text ever quotes the bytes
// that were received or sent, because they may hold credentials or the data of a job.
package wire

import "errors"

// The limits of a response. They are far above what a model sends and exist so that a broken or hostile server cannot
// take the memory of the process.
const (
	// MaxEvent is the size of the largest event, line or unstreamed body in bytes.
	MaxEvent = 16 << 20
	// MaxAnswer is the size of everything kept of one response in bytes.
	MaxAnswer = 16 << 20
	// MaxCalls is the number of tool calls that one response may hold.
	MaxCalls = 1024
)

// ErrTooLarge is the cause of an error when a response exceeds one of the limits above.
var ErrTooLarge = errors.New("the response exceeds a size limit")
