// Package client speaks with a hozo server: it is what the command line and programs written in Go use. Every route of the
// API has a method; records come as their own packages declare them. Errors are *problem.Error with the kind that the
// status stands for, every fault of the request in Problems, and an *Error with the details as their cause.
//
// What may be repeated is repeated: reading, and starting a run, which carries an idempotency key. A change is repeated only
// where the server said that it did not do it (429 and 503 with Retry-After). Streams of events go on by themselves where
// they broke off, without a gap and without an event twice. Lists can be read page by page or as iterators over all of
// their items.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/api/wire"
)

// Config says where the server is and who asks.
type Config struct {
	// URL is the address of the server, such as "https://hozo.example.com".
	URL string
	// Key is an API key; without one only open routes answer.
	Key string
	// HTTP sends requests; nil means a client without a time limit of its own: contexts have them.
	HTTP *http.Client
	// Retries is how often a request is repeated; zero means 4, a negative number never.
	Retries int
	// Wait is the time before the first repetition, which doubles with each; zero means 250 ms.
	Wait time.Duration
	// UserAgent names the program; "" means "hozo".
	UserAgent string
}

// Client speaks with one server. It is safe for concurrent use.
type Client struct {
	config Config
	base   *url.URL
}

// New returns a client. It does no input or output.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a server; it begins with https:// or http://", config.URL)
	}
	if base.User != nil {
		return nil, errors.New("the address of the server has a user in it; give an API key instead")
	}
	if config.HTTP == nil {
		config.HTTP = &http.Client{}
	}
	switch {
	case config.Retries == 0:
		config.Retries = 4
	case config.Retries < 0:
		config.Retries = 0
	}
	if config.Wait == 0 {
		config.Wait = 250 * time.Millisecond
	}
	if config.UserAgent == "" {
		config.UserAgent = "hozo"
	}
	return &Client{config: config, base: base}, nil
}

// WithKey returns a client of the same server that asks with another key.
func (c *Client) WithKey(key string) *Client {
	other := *c
	other.config.Key = key
	return &other
}

// call is one request, which may be sent several times.
type call struct {
	method string
	path   string
	query  url.Values
	// body is encoded as JSON; nil sends none.
	body   any
	header http.Header
	// again says that the request may be repeated although the server may have done it.
	again bool
}

// get is a call that reads.
func get(path string, query url.Values) call {
	return call{method: http.MethodGet, path: path, query: query, again: true}
}

// path joins the segments of a path, each of them escaped.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/api/v1")
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// IfMatch names the version that a change was made from.
type IfMatch int64

// Any takes the place of a version where a change may replace whatever there is.
const Any IfMatch = -1

// None takes the place of a version where a change makes something that must not be there yet.
const None IfMatch = 0

// change is a call that changes a version of a record.
func change(method, path string, version IfMatch, body any) call {
	header := http.Header{}
	switch version {
	case Any:
		header.Set("If-Match", "*")
	case None:
		header.Set("If-None-Match", "*")
	default:
		header.Set("If-Match", wire.ETag(int64(version)))
	}
	return call{method: method, path: path, body: body, header: header}
}

// as makes a call and decodes what comes back.
func as[T any](ctx context.Context, c *Client, k call) (T, error) {
	var v T
	response, err := c.do(ctx, k)
	if err != nil {
		return v, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&v); err != nil {
		return v, fmt.Errorf("%s %s: the answer is not what the API describes: %w", k.method, k.path, err)
	}
	return v, nil
}

// done makes a call of which nothing but success is of interest.
func (c *Client) done(ctx context.Context, k call) error {
	response, err := c.do(ctx, k)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// do makes a call, again and again if it may, and returns an answer that is no error. The caller closes its body.
func (c *Client) do(ctx context.Context, k call) (*http.Response, error) {
	var body []byte
	if k.body != nil {
		var err error
		if body, err = json.Marshal(k.body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", k.method, k.path, err)
		}
	}
	for try := 0; ; try++ {
		response, err := c.send(ctx, k, body)
		wait, repeat := c.repeat(k, try, response, err)
		if !repeat {
			if err != nil {
				return nil, unreachable(ctx, k, err)
			}
			return response, failure(k, response)
		}
		if response != nil {
			_ = response.Body.Close() // it is given up
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// send sends a call once.
func (c *Client) send(ctx context.Context, k call, body []byte) (*http.Response, error) {
	address := c.base.JoinPath() // a copy
	address.RawPath = strings.TrimSuffix(address.EscapedPath(), "/") + k.path
	address.Path, _ = url.PathUnescape(address.RawPath)
	address.RawQuery = k.query.Encode()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, k.method, address.String(), reader)
	if err != nil {
		return nil, err
	}
	for name, values := range k.header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", c.config.UserAgent)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.config.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.config.Key)
	}
	return c.config.HTTP.Do(r)
}

// repeat says whether a call is made again, and after which time.
func (c *Client) repeat(k call, try int, response *http.Response, err error) (time.Duration, bool) {
	if try >= c.config.Retries {
		return 0, false
	}
	wait := c.backoff(try)
	if err != nil {
		return wait, k.again && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	asked, refused := retryAfter(response)
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return max(wait, asked), k.again || refused
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return wait, k.again
	}
	return 0, false
}

// backoff is the time before a repetition: twice that of the one before, give or take a half.
func (c *Client) backoff(try int) time.Duration {
	wait := c.config.Wait << min(try, 6)
	return wait/2 + rand.N(wait)
}

// retryAfter reads the header of this name; a server that sends it did nothing yet.
func retryAfter(response *http.Response) (time.Duration, bool) {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0, false
	}
	return time.Duration(seconds) * time.Second, true
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
