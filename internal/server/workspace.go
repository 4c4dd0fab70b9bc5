package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/checkout"
	"github.com/hozo-run/hozo/internal/compile"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// workspaces lends the directories of package checkout to runs and keeps what they leave as artifacts. It implements
// compile.Workspaces.
type workspaces struct {
	checkouts *checkout.Service
	artifacts *artifact.Store
	projects  *project.Service
	log       *slog.Logger

	mu   sync.Mutex
	held map[string]*heldWorkspace
}

// heldWorkspace is the directories of a run that this process executes.
type heldWorkspace struct {
	*checkout.Workspace
	// ended says that the run needs them no more.
	ended bool
}

// Prepare implements compile.Workspaces.
func (w *workspaces) Prepare(ctx context.Context, r run.Run, inputs []compile.Input) (job.Workspace, []job.Notice, error) {
	request := checkout.Request{Tenant: r.Tenant, Project: r.Project, Run: r.ID}
	for _, in := range inputs {
		if len(in.Files) == 0 {
			request.Inputs = append(request.Inputs, checkout.Input{Run: in.Run, As: in.Name})
		}
		for _, file := range in.Files {
			request.Inputs = append(request.Inputs, checkout.Input{Run: in.Run, Path: file, As: in.Name})
		}
	}
	place, err := w.checkouts.Prepare(ctx, request)
	if failed, ok := errors.AsType[*problem.Error](err); ok && failed.Kind == problem.Conflict {
		return job.Workspace{}, nil, &problem.Error{Kind: problem.Unavailable, Op: failed.Op, Err: err} // somebody is about to give them up
	}
	if err != nil {
		return job.Workspace{}, nil, err
	}
	w.mu.Lock()
	w.held[r.ID] = &heldWorkspace{Workspace: place}
	w.mu.Unlock()
	if err := ownGuide(&place.Job); err != nil {
		w.Discard(ctx, r, place.Job)
		return job.Workspace{}, nil, &problem.Error{Kind: problem.Unavailable, Op: "prepare the workspace", Err: err}
	}
	return place.Job, place.Notices, nil
}

// guideDir is the directory of the guide in the directory of a run.
const guideDir = "guide"

// ownGuide gives each file that a job may read by itself, which is the guide, a directory that it may read, too: a process
// that is confined to what its job names cannot open the directory around a file otherwise, and that one holds more.
func ownGuide(place *job.Workspace) error {
	for i, file := range place.ReadOnly {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue // what is missing the job will name
		}
		dir := filepath.Join(place.Root, guideDir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err == nil {
			place.ReadOnly[i] = filepath.Join(dir, filepath.Base(file))
			err = replaceFile(place.ReadOnly[i], text)
		}
		if err != nil {
			return err
		}
		place.ReadOnly = append(place.ReadOnly, dir)
		return nil
	}
	return nil
}

// Keep implements compile.Workspaces: what a job left becomes artifacts, also that of one which failed, and a commit if the
// project wants one and the job completed.
func (w *workspaces) Keep(ctx context.Context, r run.Run, place job.Workspace, outcome job.Outcome) error {
	if _, err := os.Stat(place.OutDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kept, err := w.artifacts.Keep(ctx, artifact.Outputs{Tenant: r.Tenant, Project: r.Project, Run: r.ID, Dir: place.OutDir})
	if err != nil {
		return err
	}
	for _, s := range kept.Skipped {
		w.log.WarnContext(ctx, "an output was not kept", "run", r.ID, "path", s.Path, "reason", s.Reason)
	}
	if outcome.Completed != nil && r.Project != "" {
		w.commit(ctx, r, place)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if held := w.held[r.ID]; held != nil {
		held.ended = true
	}
	return nil
}

// commit adds the outputs to the branch that the project names. A branch that cannot be written does not undo the run: its
// outputs are artifacts already.
func (w *workspaces) commit(ctx context.Context, r run.Run, place job.Workspace) {
	p, err := w.projects.Get(ctx, r.Tenant, r.Project)
	if err == nil && p.Settings.Commit != nil {
		_, err = w.checkouts.Commit(ctx, checkout.CommitRequest{Tenant: r.Tenant, Project: r.Project, Run: r.ID, Settings: *p.Settings.Commit,
			OutDir: place.OutDir, Message: "Outputs of " + r.Agent})
	}
	if err != nil {
		w.log.ErrorContext(ctx, "the outputs of a run could not be committed", "run", r.ID, "project", r.Project, "error", err)
	}
}

// Discard implements compile.Workspaces. Directories of a run that goes on stay where they are, for an attempt here; one
// elsewhere makes its own.
func (w *workspaces) Discard(ctx context.Context, r run.Run, _ job.Workspace) {
	w.mu.Lock()
	held := w.held[r.ID]
	delete(w.held, r.ID)
	w.mu.Unlock()
	if held == nil {
		return
	}
	end := held.Close
	if held.ended {
		end = held.Remove
	}
	if err := end(); err != nil {
		w.log.WarnContext(ctx, "the directories of a run could not be given up", "run", r.ID, "error", err)
	}
}

// sweep removes directories of runs that have ended, which processes that died left behind.
func (w *workspaces) sweep(ctx context.Context, runs *run.Store, tenant string) error {
	_, err := w.checkouts.Sweep(ctx, func(ctx context.Context, id string) (bool, error) {
		r, err := runs.Get(ctx, tenant, id)
		if errors.Is(err, store.ErrNotFound) {
			return true, nil
		}
		return r.State.Final(), err
	})
	return err
}
