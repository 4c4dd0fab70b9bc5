package wire

import (
	"context"
	"net/http"

	"github.com/hozo-run/hozo/llm"
)

// Sender sends the requests of one dialog. It belongs to the dialog's goroutine.
type Sender struct {
	Endpoint *Endpoint
	Tags     llm.Tags
	headers  map[llm.Purpose]http.Header
	// signing is the endpoint of a sender that signs, with a hash that grows with the dialog.
	signing *Endpoint
}

// Stream sends a request and reads its response into d; err is what kept the dialog from building the body. It follows
// the contract of llm.Dialog.Stream.
func (s *Sender) Stream(ctx context.Context, call llm.Call, body Body, err error, d Decoder) (llm.Response, error) {
	if err != nil {
		return llm.Response{}, Unsendable(err)
	}
	header, err := s.header(call.Purpose)
	if err != nil {
		return llm.Response{}, Unsendable(err)
	}
	return s.endpoint().Exchange(ctx, header, body, d)
}

func (s *Sender) endpoint() *Endpoint {
	if s.Endpoint.sign == nil {
		return s.Endpoint
	}
	if s.signing == nil {
		signing := *s.Endpoint
		signing.bodyHash = new(growingHash).sum
		s.signing = &signing
	}
	return s.signing
}

// Request describes a request; err is what kept the dialog from building the body. It follows the contract of
// llm.Dialog.Request.
func (s *Sender) Request(body Body, err error) (llm.Request, error) {
	if err != nil {
		return llm.Request{}, Unsendable(err)
	}
	return llm.Request{Method: http.MethodPost, Path: s.Endpoint.url.EscapedPath(), Body: body}, nil
}

// Unsendable is the error for a request that cannot be built.
func Unsendable(err error) *llm.Error {
	return &llm.Error{Class: llm.ClassInvalidRequest, Err: err, Message: err.Error(), Final: true}
}

func (s *Sender) header(purpose llm.Purpose) (http.Header, error) {
	if header, ok := s.headers[purpose]; ok {
		return header, nil
	}
	header, err := s.Endpoint.Header(s.Tags, purpose)
	if err != nil {
		return nil, err
	}
	if s.headers == nil {
		s.headers = map[llm.Purpose]http.Header{}
	}
	s.headers[purpose] = header
	return header, nil
}
