package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/hozo-run/hozo/problem"
)

// holder is the content of FILE.lock: who has the journal open, or had it last, and where its output directory is. It is no lock by itself: the lock is on
// the journal, ends with its process whatever happens to it, and nothing has to be cleaned up after a crash.
type holder struct {
	PID     int   `json:"pid"`
	Attempt int64 `json:"attempt"`
	// OutDir is empty if the journal keeps no output files.
	OutDir string `json:"outDir,omitempty"`
}

// takeLock makes the file ours until it is closed.
func takeLock(file *os.File, path string) error {
	err := retried(func() error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) })
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return os.NewSyscallError("flock", err)
	}
	message := "the journal is in use by another process"
	if h, err := readHolder(path); err == nil && h.PID > 0 {
		message = fmt.Sprintf("the journal is in use by process %d", h.PID)
	}
	return &problem.Error{Kind: problem.Conflict, Message: message}
}

func retried(do func() error) error {
	for {
		if err := do(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func readHolder(path string) (h holder, err error) {
	data, err := os.ReadFile(lockPath(path))
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	return h, err
}

// lastAttempt is the attempt of the last holder, 0 if it is not known.
func lastAttempt(path string) int64 {
	h, err := readHolder(path)
	if err != nil {
		return 0 // lost or cut by a crash; the frames know of suspended attempts
	}
	return h.Attempt
}

// LastOutDir is the output directory of the last attempt of the journal at path, which an attempt before it may have had
// elsewhere. It is "" if that is not known.
func LastOutDir(path string) string {
	h, err := readHolder(path)
	if err != nil {
		return ""
	}
	return h.OutDir
}

// noteHolder replaces FILE.lock as a whole, so that nobody reads half of it.
func noteHolder(path string, h holder) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	temporary := lockPath(path) + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, lockPath(path))
}
