package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// bash is a command of one line.
func bash(dir, script string) Command {
	return Command{Path: "/bin/bash", Args: []string{"--noprofile", "--norc", "-c", script}, Dir: dir, Env: Environment(dir)}
}

// open opens a sandbox for the length of the test.
func open(t testing.TB, p Policy) *Sandbox {
	t.Helper()
	s, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// run runs a command that must start.
func run(t testing.TB, s *Sandbox, c Command) Result {
	t.Helper()
	r, err := s.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// realTemp is a temporary directory without links in its path, which is short enough for the path of a socket.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
