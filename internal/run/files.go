package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hozo-run/hozo/job"
)

// files copies the output files of checkpoints to where every process finds them.
type files struct {
	outDir string
	blobs  Blobs
	kept   map[string]bool // the hashes that this attempt has stored
}

// keep stores the files of a checkpoint, each if it is a regular file below the output directory with the content that
// the checkpoint names.
func (f *files) keep(ctx context.Context, all []job.CheckpointFile) error {
	for _, file := range all {
		if f.kept[file.Hash] {
			continue
		}
		if err := f.add(ctx, file); err != nil {
			return fmt.Errorf("keep the output file %s: %w", file.Path, err)
		}
		if f.kept == nil {
			f.kept = map[string]bool{}
		}
		f.kept[file.Hash] = true
	}
	return nil
}

func (f *files) add(ctx context.Context, file job.CheckpointFile) error {
	digest, err := hex.DecodeString(file.Hash)
	switch {
	case f.blobs == nil || f.outDir == "":
		return errors.New("the run is recorded without a place for files")
	case err != nil || len(digest) != sha256.Size || strings.ToLower(file.Hash) != file.Hash:
		return fmt.Errorf("%q is no SHA-256 in small hex digits", file.Hash)
	case !filepath.IsLocal(file.Path) || file.Path == ".":
		return errors.New("it is no path of a file below the output directory")
	}
	root, err := os.OpenRoot(f.outDir)
	if err != nil {
		return err
	}
	defer root.Close()
	// Nothing that stands there instead of the file can make this wait or lead outside.
	from, err := root.OpenFile(file.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file but %v", info.Mode().Type())
	}
	return f.blobs.Put(ctx, file.Hash, &checked{from: from, file: file, hash: sha256.New()})
}

// checked is the content of a file; reading it fails at its end if it is not what the checkpoint names.
type checked struct {
	from io.Reader
	file job.CheckpointFile
	hash interface {
		io.Writer
		Sum(b []byte) []byte
	}
	size int64
}

// Read implements io.Reader.
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	_, _ = c.hash.Write(p[:n]) // it never fails
	c.size += int64(n)
	if wrong := c.size > c.file.Size || errors.Is(err, io.EOF) && (c.size != c.file.Size || hex.EncodeToString(c.hash.Sum(nil)) != c.file.Hash); wrong {
		return n, fmt.Errorf("the content is not that of the checkpoint (%d bytes, SHA-256 %s): something changed it since", c.file.Size, c.file.Hash)
	}
	return n, err
}
