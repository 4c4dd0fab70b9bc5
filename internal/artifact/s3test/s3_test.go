// Package s3test runs the suite of places of blobs against a real S3 server: versitygw, which others wrote, as a process of
// its own over a directory. It is a module of its own, so that nothing of that server comes into the program.
package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/artifact/artifacttest"
	"github.com/hozo-run/hozo/internal/secret"
)

const (
	accessKey = "hozo-test"
	secretKey = "canary-secret-of-the-bucket"
	region    = "eu-test-1"
	bucket    = "blobs.of-hozo"
)

// server is where the server listens, set by TestMain.
var server string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the S3 server:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "hozo-s3-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "versitygw")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/versity/versitygw/cmd/versitygw").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build it: %w: %s", err, out)
	}
	data, meta := filepath.Join(dir, "data"), filepath.Join(dir, "meta")
	if err := errors.Join(os.MkdirAll(filepath.Join(data, bucket), 0o755), os.Mkdir(meta, 0o755)); err != nil {
		return 0, err
	}
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	command := exec.Command(program, "--port", address, "--region", region, "posix", "--sidecar", meta, data)
	command.Env = []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey, "PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return 0, err
	}
	defer func() { _, _ = command.Process.Kill(), command.Wait() }() // it has served
	server = "http://" + address
	if err := await(address); err != nil {
		text, _ := os.ReadFile(log.Name())
		return 0, fmt.Errorf("%w: %s", err, text)
	}
	return m.Run(), nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// await waits until somebody listens.
func await(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func config() artifact.S3Config {
	return artifact.S3Config{Endpoint: server, Region: region, Bucket: bucket, AccessKeyID: accessKey, SecretAccessKey: secret.New(secretKey), RetryAfter: time.Millisecond}
}

func open(t *testing.T, c artifact.S3Config) *artifact.S3 {
	t.Helper()
	s, err := artifact.NewS3(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestABucketIsAPlaceOfBlobs(t *testing.T) {
	t.Parallel()
	for name, prefix := range map[string]string{"without a prefix": "", "with a prefix": "of hozo/ünter+this"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			artifacttest.Exercise(t, func(t *testing.T) artifact.Blobs {
				c := config()
				c.Prefix = prefix
				return open(t, c)
			})
		})
	}
}

func TestAListHasMoreThanOnePage(t *testing.T) {
	t.Parallel()
	c := config()
	c.Prefix = "many"
	s := open(t, c)
	const many = 1100 // a page of the service has 1,000
	var group sync.WaitGroup
	for range 11 {
		group.Go(func() {
			for range many / 11 {
				content, hash := artifacttest.Content(8)
				if err := s.Put(t.Context(), hash, bytes.NewReader(content)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	n, last := 0, ""
	for blob, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if blob.Hash <= last {
			t.Errorf("%s after %s", blob.Hash, last)
		}
		last = blob.Hash
		n++
	}
	if n != many {
		t.Errorf("the list has %d blobs, want %d", n, many)
	}
}

// between returns the configuration of a proxy in front of the server.
func between(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, on http.Handler)) artifact.S3Config {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	// The signature covers the host, so it stays.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		r.Out.Host = r.In.Host
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, proxy) }))
	t.Cleanup(front.Close)
	c := config()
	c.Endpoint = front.URL
	return c
}

func TestAServiceThatFailsForAMomentIsAskedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := open(t, between(t, func(w http.ResponseWriter, r *http.Request, on http.Handler) {
		if asked.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		on.ServeHTTP(w, r)
	}))
	content, hash := artifacttest.Content(50_000)
	if err := s.Put(t.Context(), hash, io.MultiReader(bytes.NewReader(content))); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestContentThatIsChangedOnItsWayIsRefusedByTheService(t *testing.T) {
	t.Parallel()
	c := between(t, func(w http.ResponseWriter, r *http.Request, on http.Handler) {
		if r.Method == http.MethodPut {
			data, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			data[0]++
			r.Body = io.NopCloser(bytes.NewReader(data))
		}
		on.ServeHTTP(w, r)
	})
	s := open(t, c)
	content, hash := artifacttest.Content(1000)
	if err := s.Put(t.Context(), hash, bytes.NewReader(content)); err == nil {
		t.Error("no error")
	}
	if _, err := open(t, config()).Open(t.Context(), hash); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v", err)
	}
}

func TestWhatAServiceRefusesIsSaidWithoutTheCredential(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*artifact.S3Config)
		want   string
	}{
		"a wrong key":      {func(c *artifact.S3Config) { c.SecretAccessKey = secret.New("canary-wrong") }, "check the access key"},
		"an unknown key":   {func(c *artifact.S3Config) { c.AccessKeyID = "nobody" }, "check the access key"},
		"no such bucket":   {func(c *artifact.S3Config) { c.Bucket = "there-is-none" }, "make the bucket"},
		"nobody listening": {func(c *artifact.S3Config) { c.Endpoint = "http://127.0.0.1:1"; c.Retries = -1 }, "connect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := config()
			c.change(&settings)
			s := open(t, settings)
			content, hash := artifacttest.Content(10)
			err := s.Put(t.Context(), hash, bytes.NewReader(content))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("error = %v, want %q in it", err, c.want)
			}
		})
	}
}
