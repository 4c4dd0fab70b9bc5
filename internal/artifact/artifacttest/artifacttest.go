// Package artifacttest is the suite that every place of blobs passes. A new one is done when Exercise is green on the real
// service behind it. Contents are random, so several suites may share a place. The package is for tests alone.
package artifacttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/hozo-run/hozo/internal/artifact"
)

// Content returns n random bytes and their hash.
func Content(n int) (content []byte, hash string) {
	content = make([]byte, n)
	_, _ = rand.Read(content) // it never fails
	return content, HashOf(content)
}

// HashOf returns the SHA-256 of content in small hex digits.
func HashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Exercise runs the suite against a place that open returns.
func Exercise(t *testing.T, open func(t *testing.T) artifact.Blobs) {
	for name, test := range map[string]func(*testing.T, artifact.Blobs){
		"what is put can be read":                       exercisePut,
		"content of any size comes back":                exerciseSizes,
		"content that does not fit its hash is refused": exerciseMismatch,
		"content whose reading fails leaves nothing":    exerciseBroken,
		"an ended context leaves nothing":               exerciseEnded,
		"parts can be read":                             exerciseParts,
		"what is not there is fs.ErrNotExist":           exerciseAbsent,
		"what is deleted is gone":                       exerciseDelete,
		"the list has what is there, sorted":            exerciseList,
		"the same content may be put by many at once":   exerciseTogether,
		"what is no hash is refused":                    exerciseNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func put(t *testing.T, b artifact.Blobs, n int) (content []byte, hash string) {
	t.Helper()
	content, hash = Content(n)
	if err := b.Put(t.Context(), hash, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return content, hash
}

func read(t *testing.T, b artifact.Blobs, hash string) []byte {
	t.Helper()
	r, err := b.Open(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func isAbsent(t *testing.T, b artifact.Blobs, hash string) {
	t.Helper()
	if r, err := b.Open(t.Context(), hash); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, %v; want fs.ErrNotExist", r, err)
	}
}

func exercisePut(t *testing.T, b artifact.Blobs) {
	content, hash := put(t, b, 1000)
	if err := b.Put(t.Context(), hash, bytes.NewReader(content)); err != nil {
		t.Errorf("put again: %v", err)
	}
	if got := read(t, b, hash); !bytes.Equal(got, content) {
		t.Errorf("got %d other bytes", len(got))
	}
}

func exerciseSizes(t *testing.T, b artifact.Blobs) {
	for _, n := range []int{0, 1, 2, 64 << 10, 64<<10 + 1, 3 << 20} {
		content, hash := Content(n)
		// A reader that cannot seek, and gives one byte or half of what is asked for.
		from := iotest.HalfReader(bytes.NewReader(content))
		if n < 1000 {
			from = iotest.OneByteReader(bytes.NewReader(content))
		}
		if err := b.Put(t.Context(), hash, from); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if got := read(t, b, hash); !bytes.Equal(got, content) {
			t.Errorf("%d bytes came back as %d", n, len(got))
		}
		r, err := b.Open(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		if r.Size() != int64(n) || r.Blob().Hash != hash || r.Blob().ModTime.IsZero() {
			t.Errorf("the blob of %d bytes is %+v", n, r.Blob())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func exerciseMismatch(t *testing.T, b artifact.Blobs) {
	content, hash := Content(100_000)
	for name, wrong := range map[string][]byte{
		"changed": append([]byte{content[0] + 1}, content[1:]...),
		"shorter": content[:99_999],
		"longer":  append(bytes.Clone(content), 0),
		"nothing": {},
	} {
		if err := b.Put(t.Context(), hash, bytes.NewReader(wrong)); !errors.Is(err, artifact.ErrMismatch) {
			t.Errorf("%s: error = %v", name, err)
		}
		isAbsent(t, b, hash)
	}
}

func exerciseBroken(t *testing.T, b artifact.Blobs) {
	content, hash := Content(100_000)
	cause := errors.New("the disk fell out")
	from := io.MultiReader(bytes.NewReader(content[:60_000]), iotest.ErrReader(cause))
	if err := b.Put(t.Context(), hash, from); !errors.Is(err, cause) {
		t.Errorf("error = %v", err)
	}
	isAbsent(t, b, hash)
}

func exerciseEnded(t *testing.T, b artifact.Blobs) {
	content, hash := Content(1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Put(ctx, hash, bytes.NewReader(content)); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	isAbsent(t, b, hash)
}

func exerciseParts(t *testing.T, b artifact.Blobs) {
	content, hash := put(t, b, 200_000)
	r, err := b.Open(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	part := func(offset int64, whence, n int) []byte {
		t.Helper()
		if _, err := r.Seek(offset, whence); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, n)
		if _, err := io.ReadFull(r, got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	for name, c := range map[string][2][]byte{
		"from the middle":   {part(150_000, io.SeekStart, 100), content[150_000:150_100]},
		"on from there":     {part(50, io.SeekCurrent, 10), content[150_150:150_160]},
		"from the end":      {part(-10, io.SeekEnd, 10), content[199_990:]},
		"back to the start": {part(0, io.SeekStart, 200_000), content},
	} {
		if !bytes.Equal(c[0], c[1]) {
			t.Errorf("%s: other bytes", name)
		}
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
	if _, err := r.Seek(-1, io.SeekStart); err == nil {
		t.Error("a place before the beginning is accepted")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed reader says %v", err)
	}
}

func exerciseAbsent(t *testing.T, b artifact.Blobs) {
	_, hash := Content(10)
	isAbsent(t, b, hash)
	if err := b.Delete(t.Context(), hash); err != nil {
		t.Errorf("delete what is not there: %v", err)
	}
}

func exerciseDelete(t *testing.T, b artifact.Blobs) {
	content, hash := put(t, b, 1000)
	if err := b.Delete(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	isAbsent(t, b, hash)
	if err := b.Put(t.Context(), hash, bytes.NewReader(content)); err != nil {
		t.Errorf("put again: %v", err)
	}
	if !bytes.Equal(read(t, b, hash), content) {
		t.Error("other bytes")
	}
}

func exerciseList(t *testing.T, b artifact.Blobs) {
	want := map[string]int64{}
	for i := range 12 {
		_, hash := put(t, b, 10+i)
		want[hash] = int64(10 + i)
	}
	last := ""
	for blob, err := range b.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if blob.Hash <= last {
			t.Errorf("%s comes after %s", blob.Hash, last)
		}
		last = blob.Hash
		if size, ours := want[blob.Hash]; ours {
			if blob.Size != size || blob.ModTime.IsZero() {
				t.Errorf("blob = %+v, want %d bytes", blob, size)
			}
			delete(want, blob.Hash)
		}
	}
	if len(want) > 0 {
		t.Errorf("not in the list: %v", want)
	}
	for range b.List(t.Context()) {
		break // a reader that has enough is no error
	}
}

func exerciseTogether(t *testing.T, b artifact.Blobs) {
	content, hash := Content(300_000)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := b.Put(t.Context(), hash, bytes.NewReader(content)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if !bytes.Equal(read(t, b, hash), content) {
		t.Error("other bytes")
	}
}

func exerciseNames(t *testing.T, b artifact.Blobs) {
	_, good := Content(1)
	for _, name := range []string{"", "x", "../" + good[3:], good + "0", "/" + good[1:], good[:63] + "G", good[:63] + "A", good[:63] + "\x00"} {
		if err := b.Put(t.Context(), name, bytes.NewReader(nil)); err == nil {
			t.Errorf("Put accepts %q", name)
		}
		if _, err := b.Open(t.Context(), name); err == nil {
			t.Errorf("Open accepts %q", name)
		}
		if err := b.Delete(t.Context(), name); err == nil {
			t.Errorf("Delete accepts %q", name)
		}
	}
}
