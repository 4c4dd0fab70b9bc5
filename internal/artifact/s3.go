package artifact

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/problem"
)

// S3Config says which bucket of an S3-compatible service to use.
type S3Config struct {
	// Endpoint is the address of the service, for example "https://s3.eu-central-1.amazonaws.com". The bucket follows in the
	// path, unless the address says with "{bucket}" where it stands.
	Endpoint string
	// Region is what requests are signed for; "" means "us-east-1", which services without regions expect.
	Region string
	// Bucket must exist.
	Bucket string
	// Prefix begins the name of every object; "" means none. It needs no slash at its end.
	Prefix string
	// AccessKeyID and SecretAccessKey are the credential, with SessionToken if it is lent for some time.
	AccessKeyID     string
	SecretAccessKey secret.Value
	SessionToken    secret.Value
	// HTTP sends the requests; nil means a client without a limit of the whole time, as contents may be large.
	HTTP *http.Client
	// Retries is how often a request is made again that failed for a reason that may pass; zero means 3, negative none.
	Retries int
	// RetryAfter is how long the first of them waits, each further one twice as long; zero means 200 ms.
	RetryAfter time.Duration
}

// S3 keeps content in the objects of a bucket, one request each: what an object holds is checked by the service against the
// hash that is signed with the request. It is the six requests that Blobs needs and no more; a general client would double
// the size of the program and its start.
type S3 struct {
	config S3Config
	base   *url.URL // of the bucket, with a slash at the end
	client *http.Client
}

var _ Blobs = (*S3)(nil)

// NewS3 checks the configuration; no request is made. Its error is a *problem.Error that lists everything that is wrong.
func NewS3(config S3Config) (*S3, error) {
	var problems problem.List
	need := func(pointer, value string) {
		if value == "" {
			problems.Add("required", pointer, "is missing")
		}
	}
	need("/bucket", config.Bucket)
	need("/accessKeyId", config.AccessKeyID)
	need("/secretAccessKey", config.SecretAccessKey.Reveal())
	address := config.Endpoint
	if strings.Contains(address, "{bucket}") {
		address = strings.ReplaceAll(address, "{bucket}", url.PathEscape(config.Bucket))
	} else {
		address = strings.TrimRight(address, "/") + "/" + url.PathEscape(config.Bucket)
	}
	base, err := url.Parse(strings.TrimRight(address, "/") + "/")
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil || base.RawQuery != "" {
		problems.AddHint("invalid", "/endpoint", "for example https://s3.eu-central-1.amazonaws.com", "is no http or https address without user and query")
	}
	if err := problems.Err("use the bucket"); err != nil {
		return nil, err
	}
	if config.Region == "" {
		config.Region = "us-east-1"
	}
	if config.Prefix = strings.Trim(config.Prefix, "/"); config.Prefix != "" {
		config.Prefix += "/"
	}
	if config.Retries == 0 {
		config.Retries = 3
	}
	if config.RetryAfter <= 0 {
		config.RetryAfter = 200 * time.Millisecond
	}
	s := &S3{config: config, base: base}
	s.client = clientFor(config.HTTP)
	return s, nil
}

// clientFor returns a client that follows no redirect: the signature is for one host.
func clientFor(given *http.Client) *http.Client {
	if given == nil {
		given = &http.Client{}
	}
	client := *given
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// key is the name of the object, spread over the first digits as in a folder.
func (s *S3) key(hash string) string { return s.config.Prefix + hash[:2] + "/" + hash }

// Put implements Blobs. The content is read twice: nothing is sent before it is known to be right, as there are services
// that keep the beginning of what was cut off. What cannot be read twice goes to a temporary file first.
func (s *S3) Put(ctx context.Context, hash string, content io.Reader) error {
	if err := CheckHash(hash); err != nil {
		return err
	}
	if _, err := s.head(ctx, hash); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	body, size, release, err := verified(newVerifier(untilDone(ctx, content), hash), content)
	if err != nil {
		return fmt.Errorf("keep the blob %s: %w", hash, err)
	}
	defer release()
	response, err := s.send(ctx, &order{method: http.MethodPut, key: s.key(hash), payload: hash, size: size, body: func() (io.Reader, error) {
		return untilDone(ctx, io.NewSectionReader(body, 0, size)), nil
	}})
	if err != nil {
		return fmt.Errorf("keep the blob %s: %w", hash, err)
	}
	return finish(response)
}

// verified reads the content through check to its end and returns it for reading again.
func verified(check io.Reader, content io.Reader) (body io.ReaderAt, size int64, release func(), err error) {
	seeker, seeks := content.(io.Seeker)
	at, isAt := content.(io.ReaderAt)
	if seeks && isAt {
		begin, err := seeker.Seek(0, io.SeekCurrent)
		if err == nil {
			size, err = io.Copy(io.Discard, check)
			return io.NewSectionReader(at, begin, size), size, func() {}, err
		}
	}
	file, err := os.CreateTemp("", "hozo-blob-*")
	if err != nil {
		return nil, 0, nil, inWords(err)
	}
	release = func() { _ = file.Close() } // it has no name any more
	if err = os.Remove(file.Name()); err == nil {
		size, err = io.Copy(file, check)
	}
	if err != nil {
		release()
		return nil, 0, nil, inWords(err)
	}
	return file, size, release, nil
}

// Open implements Blobs.
func (s *S3) Open(ctx context.Context, hash string) (*Reader, error) {
	if err := CheckHash(hash); err != nil {
		return nil, err
	}
	blob, err := s.head(ctx, hash)
	if err != nil {
		return nil, err
	}
	return newReader(blob, func(offset int64) (io.ReadCloser, error) {
		o := &order{method: http.MethodGet, key: s.key(hash)}
		if offset > 0 {
			o.header = http.Header{"Range": {"bytes=" + strconv.FormatInt(offset, 10) + "-"}}
		}
		response, err := s.send(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("read the blob %s: %w", hash, err)
		}
		if offset > 0 && response.StatusCode != http.StatusPartialContent {
			return nil, errors.Join(fmt.Errorf("read the blob %s: the service does not answer requests for a part", hash), response.Body.Close())
		}
		return response.Body, nil
	}), nil
}

func (s *S3) head(ctx context.Context, hash string) (Blob, error) {
	response, err := s.send(ctx, &order{method: http.MethodHead, key: s.key(hash)})
	if err != nil {
		return Blob{}, fmt.Errorf("look for the blob %s: %w", hash, err)
	}
	if err := response.Body.Close(); err != nil {
		return Blob{}, err
	}
	if response.ContentLength < 0 {
		return Blob{}, fmt.Errorf("look for the blob %s: the service does not say its size", hash)
	}
	blob := Blob{Hash: hash, Size: response.ContentLength}
	if at, err := http.ParseTime(response.Header.Get("Last-Modified")); err == nil {
		blob.ModTime = at
	}
	return blob, nil
}

// Delete implements Blobs.
func (s *S3) Delete(ctx context.Context, hash string) error {
	if err := CheckHash(hash); err != nil {
		return err
	}
	response, err := s.send(ctx, &order{method: http.MethodDelete, key: s.key(hash)})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the blob %s: %w", hash, err)
	}
	return finish(response)
}

// page is one answer to a request for a list (ListObjectsV2 of the API reference of Amazon S3).
type page struct {
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct {
		Key          string
		Size         int64
		LastModified time.Time
	}
}

// maxPage bounds a page in memory; a service gives at most 1,000 names.
const maxPage = 8 << 20

// List implements Blobs.
func (s *S3) List(ctx context.Context) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		for token := ""; ; {
			p, err := s.page(ctx, token)
			if err != nil {
				yield(Blob{}, fmt.Errorf("list the blobs: %w", err))
				return
			}
			for _, c := range p.Contents {
				hash := c.Key[strings.LastIndexByte(c.Key, '/')+1:]
				if CheckHash(hash) != nil || s.key(hash) != c.Key {
					continue
				}
				if !yield(Blob{Hash: hash, Size: c.Size, ModTime: c.LastModified}, nil) {
					return
				}
			}
			if token = p.NextContinuationToken; !p.IsTruncated || token == "" {
				return
			}
		}
	}
}

func (s *S3) page(ctx context.Context, token string) (*page, error) {
	query := url.Values{"list-type": {"2"}, "prefix": {s.config.Prefix}}
	if token != "" {
		query.Set("continuation-token", token)
	}
	response, err := s.send(ctx, &order{method: http.MethodGet, query: query})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	p := new(page)
	return p, xml.NewDecoder(bytes.NewReader(data)).Decode(p)
}

// finish reads the rest of an answer, so that its connection can be used again.
func finish(response *http.Response) error {
	_, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxPage))
	return errors.Join(err, response.Body.Close())
}
