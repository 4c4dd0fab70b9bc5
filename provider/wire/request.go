package wire

import (
	"fmt"
	"io"
	"net/http"
)

// Body is the body of one request as a few pieces of memory that are sent one after the other. The pieces are not
// copied and must not change while the request may still be read; growing a slice behind a piece is no change.
type Body [][]byte

// Size returns the number of bytes.
func (b Body) Size() int64 {
	var n int64
	for _, piece := range b {
		n += int64(len(piece))
	}
	return n
}

// Bytes returns a copy in one piece.
func (b Body) Bytes() []byte {
	all := make([]byte, 0, b.Size())
	for _, piece := range b {
		all = append(all, piece...)
	}
	return all
}

// Reader returns a new reader of the whole body.
func (b Body) Reader() io.ReadCloser { return &bodyReader{rest: b} }

type bodyReader struct {
	rest Body
	at   int
}

func (r *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for len(r.rest) > 0 {
		m := copy(p[n:], r.rest[0][r.at:])
		n += m
		if r.at += m; r.at < len(r.rest[0]) {
			return n, nil
		}
		r.rest, r.at = r.rest[1:], 0
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *bodyReader) Close() error { return nil }

// request returns the request for a body, signed if the endpoint signs.
func (e *Endpoint) request(header http.Header, body Body) (*http.Request, error) {
	bodyHash := e.bodyHash
	if bodyHash == nil {
		bodyHash = new(growingHash).sum
	}
	r := &http.Request{
		Method: http.MethodPost, URL: e.url, Host: e.url.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: body.Size(),
		Body:    body.Reader(),
		GetBody: func() (io.ReadCloser, error) { return body.Reader(), nil },
	}
	if e.sign == nil {
		return r, nil
	}
	address := *e.url
	r.URL, r.Header = &address, header.Clone()
	if err := e.sign(r, bodyHash(body)); err != nil {
		return nil, fmt.Errorf("sign the request: %w", err)
	}
	return r, nil
}
