package wire

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hozo-run/hozo/llm"
)

// Decoder turns the events of one response into an *Assembly and a Response. It is made for one response and used by
// one goroutine.
type Decoder interface {
	// Event takes one event. The name is empty where the server gave none. An error ends the response.
	Event(ev Event) error
	// Whole takes the body of a response that was not streamed.
	Whole(body []byte) error
	// State says how far the response has come.
	State() State
	// Close returns what has arrived. err is nil if the input ended in good order or the state is Done; the decoder then
	// checks that the response is complete. Any other fault is returned as it was given.
	Close(err error) (llm.Response, error)
}

// State is how far a response has come.
type State uint8

const (
	// Streaming means that the finish mark has not come.
	Streaming State = iota
	// Finished means that the answer is complete and only extras such as the token counts may follow.
	Finished
	// Done means that nothing may follow.
	Done
)

// finishGrace is how long a server may take between the finish mark and the end of the stream. It bounds servers that
// keep the connection open; the answer is complete by then.
const finishGrace = 5 * time.Second

// Decode reads one whole response from r, streamed as events, without HTTP.
func Decode(r io.Reader, d Decoder) (llm.Response, error) {
	var events Events
	events.Reset(r)
	defer events.Close()
	return d.Close(pump(context.Background(), &events, d, func() {}))
}

// DecodeFrames is Decode for a stream in the framing of Frames.
func DecodeFrames(r io.Reader, d Decoder) (llm.Response, error) {
	var frames Frames
	frames.Reset(r)
	defer frames.Close()
	return d.Close(pump(context.Background(), &frames, d, func() {}))
}

// pump feeds events to d until the response is done, the input ends or something fails. finished is called once, when
// the finish mark has come. After ctx has ended nothing more is decoded, even if it has been received.
func pump(ctx context.Context, events eventReader, d Decoder, finished func()) error {
	told := false
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && events.Alien():
			return Malformed("the response is no event stream; check the base URL and any proxy in between", nil)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if err := d.Event(ev); err != nil {
			return &decodeError{err}
		}
		switch d.State() {
		case Streaming:
			continue
		case Done:
			return nil
		}
		if !told {
			told = true
			finished()
		}
	}
}

// decodeError marks an error of the decoder or the sink, to tell it from one of the connection.
type decodeError struct{ error }

func (e *decodeError) Unwrap() error { return e.error }

// Exchange sends one request and reads its response into d. The error follows the contract of llm.Dialog.Stream.
func (e *Endpoint) Exchange(ctx context.Context, header http.Header, body Body, d Decoder) (llm.Response, error) {
	response, err := e.exchange(ctx, header, body, d)
	if err != nil {
		err = e.clean(err)
	}
	return response, err
}

func (e *Endpoint) exchange(ctx context.Context, header http.Header, body Body, d Decoder) (llm.Response, error) {
	if ctx.Err() != nil {
		return llm.Response{}, TransportError(ctx, "before it was sent", ctx.Err())
	}
	request, err := e.request(header, body)
	if err != nil {
		return llm.Response{}, Unsendable(err)
	}
	answer, err := transport().RoundTrip(request.WithContext(ctx))
	if err != nil {
		return llm.Response{}, TransportError(ctx, "while waiting for the response", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return llm.Response{}, refused(ctx, answer)
	}
	src, err := content(answer)
	if err != nil {
		return llm.Response{}, TransportError(ctx, "while reading the response", err)
	}
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
	case "application/json":
		err = whole(src, d)
	case "text/html", "application/xhtml+xml":
		err = &decodeError{Malformed("the answer is a web page, not an answer of the API; "+
			"check the base URL and any proxy in between", nil)}
	default:
		err = stream(ctx, answer, framing(kind, src), src, d)
	}
	response, err := settle(ctx, d, err)
	id := requestID(answer.Header)
	if f, ok := errors.AsType[*llm.Error](err); ok && f == err && f.RequestID == "" {
		f.RequestID = id
	}
	if response.ID == "" {
		response.ID = e.secrets.clean(id)
	}
	return response, err
}

// settle closes the decoder with the fault in the words of the contract.
func settle(ctx context.Context, d Decoder, err error) (llm.Response, error) {
	if err == nil {
		return d.Close(nil)
	}
	fault, ok := errors.AsType[*decodeError](err)
	if !ok {
		return d.Close(TransportError(ctx, "while reading the response", err))
	}
	return d.Close(Stopped(fault.error))
}

// Stopped returns the error for a response that its sink ended. An *llm.Error of this package is returned as it is.
func Stopped(err error) error {
	if e, ok := errors.AsType[*llm.Error](err); ok && e == err {
		return e
	}
	return fmt.Errorf("model response stopped by its receiver: %w", err)
}

// stream reads the events. Once the finish mark has come, a fault of the connection no longer matters, except a
// compressed body that does not check out.
func stream(ctx context.Context, answer *http.Response, events eventReader, src io.Reader, d Decoder) error {
	defer events.Close()
	var grace *time.Timer
	defer func() {
		if grace != nil {
			grace.Stop()
		}
	}()
	arm := func() {
		if grace == nil {
			grace = time.AfterFunc(finishGrace, func() { _ = answer.Body.Close() })
		}
	}
	err := pump(ctx, events, d, arm)
	if err == nil && d.State() != Done {
		return nil
	}
	if err == nil {
		// The end of the body is read, so that the connection can be used again and a compressed body is checked.
		arm()
		err = drain(src)
	}
	if _, broken := errors.AsType[*decodeError](err); broken || d.State() == Streaming {
		return err
	}
	if _, packed := src.(*unpacker); packed && err != nil {
		return err
	}
	return nil
}

func drain(src io.Reader) error {
	_, err := io.CopyN(io.Discard, src, 64<<10)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// whole reads a body that was not streamed although a stream was asked for.
func whole(src io.Reader, d Decoder) error {
	body, err := io.ReadAll(io.LimitReader(src, MaxEvent+1))
	if err != nil {
		return err
	}
	if len(body) > MaxEvent {
		return fmt.Errorf("a response of more than %d bytes: %w", MaxEvent, ErrTooLarge)
	}
	if err := d.Whole(body); err != nil {
		return &decodeError{err}
	}
	return nil
}

// refused reads the error of an answer that is not a 200.
func refused(ctx context.Context, answer *http.Response) error {
	src, err := content(answer)
	if err != nil {
		src = strings.NewReader("")
	}
	grace := time.AfterFunc(finishGrace, func() { _ = answer.Body.Close() })
	defer grace.Stop()
	body, err := io.ReadAll(io.LimitReader(src, errorBody))
	if err != nil && ctx.Err() != nil {
		return TransportError(ctx, "while reading the response", err)
	}
	fault := StatusError(answer.StatusCode, answer.Header, body, time.Now())
	if answer.Request != nil && overflowsWithoutText(answer.Request.URL.Hostname(), answer.StatusCode, body) {
		fault.Class = llm.ClassContextOverflow
	}
	if answer.StatusCode/100 == 3 {
		fault.Message = "the provider answered with a redirect, which is not followed; " +
			"give the final address as baseUrl"
	}
	return fault
}

// content returns the body without its compression. Only identity is asked for, but some servers compress anyway.
func content(answer *http.Response) (io.Reader, error) {
	switch encoding := strings.ToLower(strings.TrimSpace(answer.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
		return answer.Body, nil
	case "gzip", "x-gzip":
		return &unpacker{src: answer.Body}, nil
	}
	return nil, Malformed("the response is compressed in a way that was not asked for", nil)
}

// unpacker reads gzip. Its header is read with the first byte, so that making one does not wait for the server. A
// body that lacks its trailer is an error.
type unpacker struct {
	src io.Reader
	zip *gzip.Reader
	err error
}

func (u *unpacker) Read(p []byte) (int, error) {
	if u.zip == nil && u.err == nil {
		if u.zip, u.err = gzip.NewReader(u.src); errors.Is(u.err, io.EOF) {
			u.err = io.ErrUnexpectedEOF
		}
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.zip.Read(p)
}
