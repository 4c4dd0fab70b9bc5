package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hozo returns the program with an environment of its own.
func hozo(t *testing.T, dir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: self, Args: append([]string{"hozo"}, args...), Dir: dir, Env: append([]string{"TMPDIR=" + dir}, env...)}
}

// finished runs the program to its end and returns what it wrote and its exit code.
func finished(t *testing.T, c *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	if err := c.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.String(), log.String(), code
}

// plant writes files below a new directory.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const agentFile = "---\nname: agent\ndescription: Works.\n---\nAnswer the question.\n"

func TestADocumentThatCannotBeReadIsWrongUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, spec := range []string{".", "missing.json"} {
		stdout, stderr, code := finished(t, hozo(t, dir, nil, "job", "--spec", spec))
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "hozo job: ") {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q", spec, code, stdout, stderr)
		}
	}
}
