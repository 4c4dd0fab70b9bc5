package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/hozo-run/hozo/job"
)

// A checkpoint says which files of the output directory a call changed. It is made after every call that does more than
// read and before the answer of that call is recorded: whoever finds the answer in the journal has the files as well.

// outFile is what is known of a file of the output directory.
type outFile struct {
	file  job.CheckpointFile
	inode os.FileInfo // nil if only the journal knows the file
}

// outFiles is the state of the output directory at the last checkpoint.
type outFiles map[string]outFile

// same reports whether a file is certainly as it was, without reading it.
func (f outFile) same(now fs.FileInfo) bool {
	return f.inode != nil && os.SameFile(f.inode, now) && f.inode.Size() == now.Size() && f.inode.ModTime().Equal(now.ModTime()) &&
		f.inode.Mode() == now.Mode() && time.Since(now.ModTime()) > racy
}

// racy is the age below which a time of change does not prove that a file is unchanged: a write within the resolution of
// the file system's clock leaves it as it is.
const racy = 2 * time.Second

// checkpoint records what changed in the output directory since the last checkpoint, if anything did.
func (r *run) checkpoint(callID string, turn int64) *stop {
	if r.record.journal == nil {
		return nil
	}
	frame := job.CheckpointFrame{CallID: callID, Turn: turn, Files: []job.CheckpointFile{}, Total: r.top.ledger.total}
	now, err := r.scan(&frame)
	if err != nil {
		return stopf(job.ReasonError, job.CodeJournalFailed, "the output directory cannot be recorded: %v", err)
	}
	for _, path := range slices.Sorted(maps.Keys(r.files)) {
		if _, left := now[path]; !left {
			frame.Removed = append(frame.Removed, path)
		}
	}
	r.files = now
	if len(frame.Files)+len(frame.Removed) == 0 {
		return nil
	}
	return r.record.put(job.FrameCheckpoint, &frame)
}

// scan returns the regular files of the output directory and adds those that changed to the frame. What is no regular file
// is left out: it is not an output.
func (r *run) scan(frame *job.CheckpointFrame) (outFiles, error) {
	root, err := os.OpenRoot(r.plan.workspace.Paths().Out)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	now := outFiles{}
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		known, was := r.files[path]
		if was && known.same(info) {
			now[path] = known
			return nil
		}
		file := job.CheckpointFile{Path: path, Size: info.Size(), Executable: info.Mode()&0o100 != 0}
		if file.Hash, file.Size, err = hashFile(root, path); err != nil {
			return err
		}
		now[path] = outFile{file: file, inode: info}
		if !was || known.file != file {
			frame.Files = append(frame.Files, file)
		}
		return nil
	})
	return now, err
}

func hashFile(root *os.Root, path string) (hash string, size int64, err error) {
	f, err := root.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err = io.Copy(sum, f)
	if err != nil {
		return "", 0, fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), size, nil
}

// recallCheckpoint takes over what an earlier attempt recorded of the output directory.
func (r *run) recallCheckpoint() *stop {
	var frame job.CheckpointFrame
	if _, stopped := r.record.take(job.FrameCheckpoint, &frame); stopped != nil {
		return stopped
	}
	for _, f := range frame.Files {
		r.files[f.Path] = outFile{file: f}
	}
	for _, path := range frame.Removed {
		delete(r.files, path)
	}
	return nil
}

// firstCheckpoint records the files that the output directory holds before the first turn.
func (r *run) firstCheckpoint() *stop {
	if r.record.upcoming() == job.FrameCheckpoint {
		return r.recallCheckpoint()
	}
	if r.record.replaying() {
		return nil
	}
	return r.checkpoint("", 0)
}
