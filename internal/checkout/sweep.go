package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Sweep removes the directories of runs that have ended, which a process left that died: it is called when a process starts,
// and now and then. ended says whether a run has ended, or is not known. What a living process holds is left alone. It
// returns the runs whose directories it removed.
func (s *Service) Sweep(ctx context.Context, ended func(ctx context.Context, run string) (bool, error)) ([]string, error) {
	entries, err := os.ReadDir(s.config.Base)
	if err != nil {
		return nil, fmt.Errorf("sweep the workspaces: %w", err)
	}
	runs := map[string]bool{}
	for _, e := range entries {
		if run, is := runOf(e.Name()); is {
			runs[run] = true
		} else if e.IsDir() && isRunID(e.Name()) {
			runs[e.Name()] = true
		}
	}
	var removed []string
	var errs []error
	for run := range runs {
		if ctx.Err() != nil {
			return removed, context.Cause(ctx)
		}
		gone, err := s.sweep(ctx, run, ended)
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep the workspace of run %s: %w", run, err))
		}
		if gone {
			removed = append(removed, run)
		}
	}
	return removed, errors.Join(errs...)
}

func (s *Service) sweep(ctx context.Context, run string, ended func(context.Context, string) (bool, error)) (bool, error) {
	l, err := lockFile(filepath.Join(s.config.Base, run+lockSuffix), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, errHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	over, err := ended(ctx, run)
	if err != nil || !over {
		return false, errors.Join(err, l.release())
	}
	w := &Workspace{dir: filepath.Join(s.config.Base, run), lock: l}
	return true, w.Remove()
}
