// Package artifact keeps content: the outputs of runs that somebody wants to have, and everything else of a run that is too
// large for a row or that another machine must find again. Content is stored once, under its SHA-256, in a folder or in a
// bucket of an S3-compatible service; rows of the database say what it is, who owns it and who still needs it.
//
// Blobs is the one interface to the places, with a suite in artifacttest that each of them passes. A Store joins a place
// with the database: what is put there is known by its row before it is written, so that nothing is forgotten, and Collect
// removes what no row needs any more. Content is checked against its hash on the way in and on the way out.
package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"
)

// Blobs is a place that keeps content under its SHA-256. It is safe for concurrent use, also by several processes.
type Blobs interface {
	// Put stores what content yields under its hash. When it returns nil the content is durable and whole; content that
	// does not fit the hash is ErrMismatch, and any error leaves nothing under the name. What is there already need not
	// be read.
	Put(ctx context.Context, hash string, content io.Reader) error
	// Open returns the content, or an error that is fs.ErrNotExist. ctx must last until the Reader is closed.
	Open(ctx context.Context, hash string) (*Reader, error)
	// Delete removes the content. That there is none is no error.
	Delete(ctx context.Context, hash string) error
	// List yields what is there, in the order of the hashes, and ends after an error.
	List(ctx context.Context) iter.Seq2[Blob, error]
}

// Blob is one content of a place.
type Blob struct {
	// Hash is the SHA-256 in 64 small hex digits.
	Hash string
	// Size is in bytes.
	Size int64
	// ModTime is when it was stored.
	ModTime time.Time
}

// The errors that callers decide on, beside those of package store and fs.ErrNotExist.
var (
	// ErrMismatch is the error of content that does not have its hash: it was changed on its way, or where it is kept.
	ErrMismatch = errors.New("the content does not fit its SHA-256")
	// ErrReadOnly is the error of a place that takes nothing.
	ErrReadOnly = errors.New("the place of blobs is read-only")
	// ErrFull is the error of a place without room.
	ErrFull = errors.New("the place of blobs is full")
)

// CheckHash refuses what is no SHA-256 in small hex digits: hashes become names of files.
func CheckHash(hash string) error {
	if len(hash) != 2*sha256.Size || strings.Trim(hash, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is no SHA-256 in small hex digits", hash)
	}
	return nil
}

// verifier yields content up to its end only if it has the hash. The last bytes are held back until that is known, so that
// whoever reads a fixed number of bytes notices too.
type verifier struct {
	from io.Reader
	want string
	sum  hash.Hash
	next []byte // read and not yet given
	buf  []byte
	err  error
}

func newVerifier(from io.Reader, want string) *verifier {
	return &verifier{from: from, want: want, sum: sha256.New()}
}

// Read implements io.Reader.
func (v *verifier) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		// One byte more than was given is always known, or the end is.
		if len(v.next) > 1 || len(v.next) == 1 && v.err != nil {
			n := copy(p, v.next[:len(v.next)-v.held()])
			v.next = v.next[n:]
			return n, nil
		}
		if v.err != nil {
			return 0, v.err
		}
		v.fill()
	}
}

// held is how many bytes at the end of next may not be given yet.
func (v *verifier) held() int {
	if errors.Is(v.err, io.EOF) {
		return 0
	}
	return 1
}

func (v *verifier) fill() {
	if v.buf == nil {
		v.buf = make([]byte, 64<<10)
	}
	kept := copy(v.buf, v.next)
	n, err := v.from.Read(v.buf[kept:])
	_, _ = v.sum.Write(v.buf[kept : kept+n]) // it never fails
	v.next = v.buf[:kept+n]
	if errors.Is(err, io.EOF) && hex.EncodeToString(v.sum.Sum(nil)) != v.want {
		err = fmt.Errorf("%w %s", ErrMismatch, v.want)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		v.next = nil
	}
	v.err = err
}

// Reader reads one content from wherever it is kept. It implements io.ReadSeekCloser, so a part can be read without what is
// before it. Reading from the beginning to the end checks the hash: the last Read fails with ErrMismatch then. It belongs to
// one goroutine.
type Reader struct {
	blob Blob
	// from opens the content at an offset.
	from func(offset int64) (io.ReadCloser, error)

	at     int64
	body   io.ReadCloser
	reader io.Reader
	closed bool
}

// newReader returns a reader that opens the content when it is first read.
func newReader(blob Blob, from func(offset int64) (io.ReadCloser, error)) *Reader {
	return &Reader{blob: blob, from: from}
}

// Blob says what is read.
func (r *Reader) Blob() Blob { return r.blob }

// Size is the size in bytes.
func (r *Reader) Size() int64 { return r.blob.Size }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	if r.reader == nil {
		if r.at > 0 && r.at >= r.blob.Size {
			return 0, io.EOF
		}
		body, err := r.from(r.at)
		if err != nil {
			return 0, err
		}
		r.body, r.reader = body, body
		if r.at == 0 {
			r.reader = newVerifier(body, r.blob.Hash)
		}
	}
	n, err := r.reader.Read(p)
	r.at += int64(n)
	return n, err
}

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.blob.Size
	default:
		return 0, fmt.Errorf("seek: %d is no place to start from", whence)
	}
	if offset < 0 {
		return 0, errors.New("seek: before the beginning")
	}
	if r.closed {
		return 0, fs.ErrClosed
	}
	if offset == r.at {
		return offset, nil
	}
	r.at = offset
	return offset, r.drop()
}

func (r *Reader) drop() error {
	body := r.body
	r.body, r.reader = nil, nil
	if body == nil {
		return nil
	}
	return body.Close()
}

// Close ends the reading.
func (r *Reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	return r.drop()
}
