package llmtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Replay returns answers that play recorded exchanges over real HTTP, in order.
func Replay(recorded ...Recorded) []Answer {
	answers := make([]Answer, 0, len(recorded))
	for _, x := range recorded {
		kind := "application/json"
		if x.Streamed {
			kind = "text/event-stream; charset=utf-8"
		}
		answers = append(answers, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(x.Status)
			_, _ = io.WriteString(w, x.Body)
		})
	}
	return answers
}

// Recorder stands between an adapter and a real provider and keeps what passes. It keeps no request header and no query,
// so a recording holds no credential.
type Recorder struct {
	// URL is the address to use instead of the provider's.
	URL string

	// busy counts the exchanges that have begun and may not be kept yet.
	busy sync.WaitGroup
	mu   sync.Mutex
	kept cassette
}

// NewRecorder starts a recorder in front of the provider at upstream, an address with an optional path. It is closed
// when the test ends.
func NewRecorder(t testing.TB, upstream string) *Recorder {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{}
	proxy := &httputil.ReverseProxy{
		FlushInterval:  -1,
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(target) },
		ModifyResponse: r.keep,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.busy.Add(1)
		defer r.busy.Done()
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, q.WithContext(context.WithValue(q.Context(), requestBody{}, string(body))))
	}))
	r.URL = server.URL
	t.Cleanup(server.Close)
	return r
}

// requestBody is the context key of the text of a request.
type requestBody struct{}

func (r *Recorder) keep(response *http.Response) error {
	body, _ := response.Request.Context().Value(requestBody{}).(string)
	address := *response.Request.URL
	address.RawQuery, address.User = "", nil
	response.Body = &tee{ReadCloser: response.Body, done: func(text string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		i := interaction{ID: len(r.kept.Interactions)}
		i.Request.URL, i.Request.Body = address.String(), body
		i.Response.Code, i.Response.Body = response.StatusCode, text
		i.Response.Headers = map[string][]string{"Content-Type": response.Header.Values("Content-Type")}
		r.kept.Interactions = append(r.kept.Interactions, i)
	}}
	return nil
}

// tee keeps what is read until it is closed.
type tee struct {
	io.ReadCloser
	text bytes.Buffer
	done func(string)
	once sync.Once
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.text.Write(p[:n])
	return n, err
}

func (t *tee) Close() error {
	t.once.Do(func() { t.done(t.text.String()) })
	return t.ReadCloser.Close()
}

// Save writes the exchanges so far to a file that Recordings reads. It waits for those that are under way.
func (r *Recorder) Save(file string) error {
	r.busy.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := yaml.Marshal(r.kept)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
