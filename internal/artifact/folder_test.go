package artifact_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/artifact/artifacttest"
)

func openFolder(t *testing.T, path string) *artifact.Folder {
	t.Helper()
	folder, err := artifact.OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func TestAFolderIsAPlaceOfBlobs(t *testing.T) {
	t.Parallel()
	artifacttest.Exercise(t, func(t *testing.T) artifact.Blobs { return openFolder(t, filepath.Join(t.TempDir(), "blobs")) })
}

func TestContentThatChangedOnTheDiskIsNeverServedAsTrue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := openFolder(t, dir)
	content, hash := artifacttest.Content(100_000)
	if err := folder.Put(t.Context(), hash, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, hash[:2], hash)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	content[99_999]++
	for name, damaged := range map[string][]byte{"a bit": content, "cut": content[:50_000], "empty": nil} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := folder.Open(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(r); !errors.Is(err, artifact.ErrMismatch) || len(data) == len(damaged) && len(data) > 0 {
			t.Errorf("%s: read %d bytes with error %v", name, len(data), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestALinkInAFolderIsNoBlob(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := openFolder(t, dir)
	hash := artifacttest.HashOf([]byte("canary"))
	if err := os.Mkdir(filepath.Join(dir, hash[:2]), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, hash[:2], hash)); err != nil {
		t.Fatal(err)
	}
	if r, err := folder.Open(t.Context(), hash); err == nil {
		t.Errorf("the link is read: %+v", r.Blob())
	}
	for blob := range folder.List(t.Context()) {
		t.Errorf("the link is listed: %+v", blob)
	}
}

func TestWhatADeadWriterLeftIsSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, young := filepath.Join(dir, "new-old"), filepath.Join(dir, "new-young")
	for path, age := range map[string]time.Duration{old: 48 * time.Hour, young: time.Minute} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	openFolder(t, dir)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a dead writer left is still there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("what somebody is writing is gone: %v", err)
	}
}
