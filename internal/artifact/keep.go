package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/hozo-run/hozo/internal/store"
)

// Outputs says which files to keep.
type Outputs struct {
	// Tenant and Run own them; Project may be "".
	Tenant, Project, Run string
	// Dir is the output directory of the run.
	Dir string
	// Limits bound what is kept.
	Limits Limits
}

// Limits bound the outputs of a run; zero means the default.
type Limits struct {
	// MaxFiles is the number of files (10,000), MaxFileBytes the size of one (1 GiB), MaxBytes that of all (4 GiB).
	MaxFiles               int
	MaxFileBytes, MaxBytes int64
}

func (l Limits) withDefaults() Limits {
	if l.MaxFiles == 0 {
		l.MaxFiles = 10_000
	}
	if l.MaxFileBytes == 0 {
		l.MaxFileBytes = 1 << 30
	}
	if l.MaxBytes == 0 {
		l.MaxBytes = 4 << 30
	}
	return l
}

// Kept is what Keep did.
type Kept struct {
	Artifacts []Artifact `json:"artifacts"`
	// Skipped are the files that were not kept, each with the reason.
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Skipped is a file that was not kept.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Keep makes artifacts of the regular files below an output directory. Links and special files are never followed or opened
// and, like files beyond the limits, are reported as skipped. All rows are stored in one transaction, after all contents;
// Keep again with the same directory changes nothing.
func (s *Store) Keep(ctx context.Context, o Outputs) (Kept, error) {
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return Kept{}, fmt.Errorf("keep the outputs of run %s: %w", o.Run, err)
	}
	defer root.Close()
	k := &keeping{store: s, outputs: o, limits: o.Limits.withDefaults(), root: root}
	if err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error { return k.visit(ctx, name, entry, err) }); err != nil {
		return Kept{}, fmt.Errorf("keep the outputs of run %s: %w", o.Run, err)
	}
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		for i := range k.kept.Artifacts {
			if err := insert(ctx, tx, &k.kept.Artifacts[i], s.now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Kept{}, fmt.Errorf("keep the outputs of run %s: %w", o.Run, err)
	}
	return k.kept, nil
}

// keeping is one call of Keep.
type keeping struct {
	store   *Store
	outputs Outputs
	limits  Limits
	root    *os.Root
	bytes   int64
	kept    Kept
}

func (k *keeping) skip(name, format string, args ...any) {
	k.kept.Skipped = append(k.kept.Skipped, Skipped{name, fmt.Sprintf(format, args...)})
}

func (k *keeping) visit(ctx context.Context, name string, entry fs.DirEntry, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case entry.IsDir():
		return nil
	case !entry.Type().IsRegular():
		k.skip(name, "it is no regular file but %v", entry.Type())
		return nil
	case !utf8.ValidString(name):
		k.skip(strings.ToValidUTF8(name, "\uFFFD"), "its name is no UTF-8")
		return nil
	case len(k.kept.Artifacts) >= k.limits.MaxFiles:
		k.skip(name, "there are more than %d files", k.limits.MaxFiles)
		return nil
	}
	file, err := k.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = k.file(ctx, name, file)
	return errors.Join(err, file.Close())
}

// file keeps one file that is open.
func (k *keeping) file(ctx context.Context, name string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	switch {
	case !info.Mode().IsRegular():
		k.skip(name, "it is no regular file but %v", info.Mode().Type())
		return nil
	case info.Size() > k.limits.MaxFileBytes:
		k.skip(name, "it has %d bytes, more than %d", info.Size(), k.limits.MaxFileBytes)
		return nil
	case k.bytes+info.Size() > k.limits.MaxBytes:
		k.skip(name, "together the outputs have more than %d bytes", k.limits.MaxBytes)
		return nil
	}
	a := Artifact{ID: newID("art_"), Tenant: k.outputs.Tenant, Project: k.outputs.Project, Run: k.outputs.Run, Path: name, Executable: info.Mode()&0o100 != 0}
	var head bytes.Buffer
	sum := sha256.New()
	if a.Size, err = io.Copy(sum, io.TeeReader(io.LimitReader(file, k.limits.MaxFileBytes+1), &limited{&head, sniffed})); err != nil {
		return err
	}
	a.Hash, a.MediaType = hex.EncodeToString(sum.Sum(nil)), mediaType(name, head.Bytes())
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := k.store.Put(ctx, a.Hash, io.NewSectionReader(file, 0, a.Size)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	k.bytes += a.Size
	k.kept.Artifacts = append(k.kept.Artifacts, a)
	return nil
}

// sniffed is how much of a file is looked at for its type.
const sniffed = 512

// limited keeps the beginning of what is written to it.
type limited struct {
	to   *bytes.Buffer
	most int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.to.Write(p[:min(len(p), max(0, l.most-l.to.Len()))])
	return len(p), nil
}

// mediaType returns what content is, by its beginning and its name. The name decides between kinds of text only, so that
// nothing that a browser would run is made of bytes that do not look like it, and pages and drawings with scripts in them
// are never called so: they are shown as text.
func mediaType(name string, head []byte) string {
	found := http.DetectContentType(head)
	kind, _, _ := mime.ParseMediaType(found)
	switch {
	case kind == "text/html", kind == "text/xml":
		return "text/plain; charset=utf-8"
	case kind != "text/plain":
		return found
	case !utf8.Valid(trimRune(head)):
		return found
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return "text/markdown; charset=utf-8"
	case ".json":
		return "application/json"
	case ".jsonl", ".ndjson":
		return "application/x-ndjson"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".yaml", ".yml":
		return "application/yaml"
	}
	return "text/plain; charset=utf-8"
}

// trimRune removes a character that was cut at the end.
func trimRune(head []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(head); i++ {
		if utf8.RuneStart(head[len(head)-i]) {
			if !utf8.FullRune(head[len(head)-i:]) {
				return head[:len(head)-i]
			}
			break
		}
	}
	return head
}
