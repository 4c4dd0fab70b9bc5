package artifact

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// order is a request to be made, maybe more than once.
type order struct {
	method string
	key    string // "" is the bucket itself
	query  url.Values
	header http.Header
	// payload is the hash of the body, "" for none. body returns it from its beginning.
	payload string
	size    int64
	body    func() (io.Reader, error)
}

// emptyHash is the SHA-256 of nothing.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// s3Error is what a service says about a request that failed. Nothing of the request is in it.
type s3Error struct {
	Status  int    `xml:"-"`
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

// Error implements error.
func (e *s3Error) Error() string {
	text := fmt.Sprintf("the service answered %d %s", e.Status, http.StatusText(e.Status))
	if e.Code != "" {
		text += fmt.Sprintf(" (%s: %.200s)", e.Code, e.Message)
	}
	switch {
	case e.Code == "NoSuchBucket":
		text += "; make the bucket, or correct its name"
	case e.Status == http.StatusForbidden, e.Status == http.StatusUnauthorized, e.Status == http.StatusNotFound && !e.absent():
		text += "; check the access key, its rights to the bucket and the clock of this machine"
	case e.Status/100 == 3:
		text += "; the bucket is in another region, or the endpoint is not its address"
	}
	return text
}

// absent reports whether it is an object that is missing: some services say "not found" of buckets and of access keys too.
// The answer to a HEAD has no code.
func (e *s3Error) absent() bool {
	return e.Status == http.StatusNotFound && (e.Code == "" || e.Code == "NoSuchKey" || e.Code == "NotFound")
}

// Unwrap makes an object that is missing fs.ErrNotExist.
func (e *s3Error) Unwrap() error {
	switch {
	case e.absent():
		return fs.ErrNotExist
	case e.Status == http.StatusInsufficientStorage, e.Code == "QuotaExceeded":
		return ErrFull
	case e.Status == http.StatusForbidden:
		return fs.ErrPermission
	}
	return nil
}

// passes reports whether the same request may succeed later.
func (e *s3Error) passes() bool {
	return e.Status >= 500 && e.Status != http.StatusNotImplemented && e.Status != http.StatusInsufficientStorage || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// send makes the request until it succeeds, fails for good, or has been made often enough. Every request of this package
// may be made twice. The body of the answer is the caller's to close.
func (s *S3) send(ctx context.Context, o *order) (*http.Response, error) {
	wait := s.config.RetryAfter
	for try := 0; ; try++ {
		response, err := s.sendOnce(ctx, o)
		if err == nil || try >= s.config.Retries || ctx.Err() != nil || !mayPass(err) {
			return response, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(context.Cause(ctx), err)
		}
		wait *= 2
	}
}

func mayPass(err error) bool {
	if e, ok := errors.AsType[*s3Error](err); ok {
		return e.passes()
	}
	_, network := errors.AsType[*url.Error](err)
	return network && !errors.Is(err, ErrMismatch)
}

func (s *S3) sendOnce(ctx context.Context, o *order) (*http.Response, error) {
	request, err := s.request(ctx, o)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	failed := &s3Error{Status: response.StatusCode}
	// An answer without a body, or with one that is no document of S3, leaves the status alone.
	_ = xml.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(failed)
	return nil, errors.Join(failed, response.Body.Close())
}

// request makes the signed request. The signature covers the hash of the body, so the service refuses any other body.
func (s *S3) request(ctx context.Context, o *order) (*http.Request, error) {
	address := *s.base
	address.Path += o.key
	address.RawPath = s.base.EscapedPath() + escaped(o.key)
	address.RawQuery = o.query.Encode()
	request, err := http.NewRequestWithContext(ctx, o.method, address.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range o.header {
		request.Header[name] = values
	}
	payload := emptyHash
	if o.body != nil {
		payload = o.payload
		body, err := o.body()
		if err != nil {
			return nil, err
		}
		if request.ContentLength = o.size; o.size > 0 {
			request.Body = io.NopCloser(body)
		}
		request.Header.Set("Content-Type", "application/octet-stream")
	}
	request.Header.Set("X-Amz-Content-Sha256", payload)
	credentials := aws.Credentials{AccessKeyID: s.config.AccessKeyID, SecretAccessKey: s.config.SecretAccessKey.Reveal(), SessionToken: s.config.SessionToken.Reveal()}
	signer := v4.NewSigner(func(options *v4.SignerOptions) { options.DisableURIPathEscaping = true })
	return request, signer.SignHTTP(ctx, credentials, request, payload, "s3", s.config.Region, time.Now())
}

// escaped writes a key as signatures want it: everything but letters, digits, "-", ".", "_", "~" and slashes in percent.
func escaped(key string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(key))
}
