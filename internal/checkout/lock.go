package checkout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hozo-run/hozo/problem"
)

// lock is the right to a name: a file that is locked until it is closed, which the system does for a process that dies.
type lock struct {
	file *os.File
	path string
}

const lockSuffix = ".lock"

// errHeld is the cause when somebody else has the lock.
var errHeld = errors.New("another process works there")

// takeLock takes the lock of a run, or fails with an error of kind Conflict.
func takeLock(base, run string) (*lock, error) {
	l, err := lockFile(filepath.Join(base, run+lockSuffix), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, errHeld) {
		return nil, &problem.Error{Kind: problem.Conflict, Op: "prepare the workspace", Message: fmt.Sprintf("the directories of run %s are in use by another process", run), Err: err}
	}
	return l, err
}

// lockFile locks a file, which is made if it is missing. Somebody may have removed it in between: then the lock is on a file
// without a name, and it is tried again.
func lockFile(path string, how int) (*lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = retried(func() error { return syscall.Flock(int(file.Fd()), how) })
		if err != nil {
			if errors.Is(err, syscall.EWOULDBLOCK) {
				err = errHeld
			}
			return nil, errors.Join(err, file.Close())
		}
		ours, err1 := file.Stat()
		named, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(ours, named) {
			return &lock{file: file, path: path}, nil
		}
		if err := errors.Join(err1, ignoreAbsent(err2), file.Close()); err != nil {
			return nil, err
		}
	}
}

func retried(do func() error) error {
	for {
		if err := do(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// release gives the lock up. It may be called again.
func (l *lock) release() error {
	if !l.held() {
		return nil
	}
	// Closing is not enough: a program that is being started has the file too, for a moment.
	unlocked := retried(func() error { return syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) })
	return errors.Join(os.NewSyscallError("flock", unlocked), l.file.Close())
}

// held reports whether the lock was not given up.
func (l *lock) held() bool {
	_, err := l.file.Stat()
	return err == nil
}

// remove removes the file as long as nobody else can have it.
func (l *lock) remove() error { return errors.Join(ignoreAbsent(os.Remove(l.path)), l.release()) }

// runOf returns the run of the name of a lock.
func runOf(name string) (string, bool) {
	run, is := strings.CutSuffix(name, lockSuffix)
	return run, is && isRunID(run)
}
