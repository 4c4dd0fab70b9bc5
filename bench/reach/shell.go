package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/shelltool"
	"github.com/hozo-run/hozo/workspace"
)

// arguments are those of a call that does nothing.
const arguments = `{"command":":"}`

// shell returns bash that does nothing: started as it is, by the tool shell in the sandbox that a job opens once, by the
// tool in a sandbox that is opened for the call, by the tool with the sandbox switched off, and in bubblewrap.
func shell(bwrap string) (contenders []contender, release func() error, err error) {
	dir, err := os.MkdirTemp("", "hozo-bench-")
	if err != nil {
		return nil, nil, err
	}
	bash := []string{"/bin/bash", "--noprofile", "--norc", "-c", ":"}
	env := sandbox.Environment(dir)
	contenders = append(contenders, spawn("bash -c :", dir, env, bash...))
	if bwrap != "" {
		inside := []string{bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--bind", dir, dir,
			"--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"}
		contenders = append(contenders, spawn("bubblewrap", dir, env, append(inside, bash...)...))
	}
	w, p, err := openWorkspace(dir)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	kept, err := sandbox.Open(p)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close(), os.RemoveAll(dir))
	}
	off := p
	off.Unconfined = true
	open, err := sandbox.Open(off)
	if err != nil {
		kept.Close()
		return nil, nil, errors.Join(err, w.Close(), os.RemoveAll(dir))
	}
	contenders = append(contenders,
		shellCall("hozo", w, func() (*sandbox.Sandbox, func(), error) { return kept, func() {}, nil }),
		shellCall("hozo, sandbox off", w, func() (*sandbox.Sandbox, func(), error) { return open, func() {}, nil }),
		shellCall("hozo, first of a job", w, func() (*sandbox.Sandbox, func(), error) {
			s, err := sandbox.Open(p)
			return s, s.Close, err
		}))
	return contenders, func() error {
		kept.Close()
		open.Close()
		return errors.Join(w.Close(), os.RemoveAll(dir))
	}, nil
}

// openWorkspace makes a workspace below dir and the policy that a job with it has.
func openWorkspace(dir string) (*workspace.Workspace, sandbox.Policy, error) {
	c := workspace.Config{Root: filepath.Join(dir, "source"), OutDir: filepath.Join(dir, "out"), TmpDir: filepath.Join(dir, "tmp")}
	c.ReadOnly = []string{c.Root}
	for _, d := range []string{c.Root, c.OutDir, c.TmpDir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, sandbox.Policy{}, err
		}
	}
	w, err := workspace.Open(c)
	if err != nil {
		return nil, sandbox.Policy{}, err
	}
	paths := w.Paths()
	return w, sandbox.Policy{Read: paths.Read, Write: []string{paths.Out, paths.Tmp}}, nil
}

// shellCall calls the tool as the kernel does. open gives the sandbox when the call asks for it, and what releases it,
// which is not counted.
func shellCall(name string, w *workspace.Workspace, open func() (*sandbox.Sandbox, func(), error)) contender {
	shell := shelltool.New(shelltool.Options{})
	return contender{name, func(ctx context.Context) (time.Duration, error) {
		var s *sandbox.Sandbox
		release := func() {}
		env := &tool.Env{Workspace: w, CallID: "1.0", Processes: func() (_ *sandbox.Sandbox, err error) {
			if s == nil {
				s, release, err = open()
			}
			return s, err
		}}
		began := time.Now()
		prepared, err := shell.PrepareArguments([]byte(arguments))
		if err != nil {
			return 0, err
		}
		result := shell.Run(ctx, env, prepared)
		took := time.Since(began)
		release()
		if result.IsError {
			return 0, fmt.Errorf("the call failed: %s", result.Text)
		}
		return took, nil
	}}
}
