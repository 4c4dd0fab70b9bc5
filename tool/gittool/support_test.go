package gittool

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// TestMain makes this test binary the helper of the sandboxes of its own tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ShimArgument {
		os.Exit(sandbox.Shim())
	}
	dir, err := os.MkdirTemp("", "gittool")
	if err != nil {
		panic(err)
	}
	templates = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// templates is a directory for repositories that are made once and copied, since git takes its time.
var templates string

// made are the subjects of the templates that there are.
var made sync.Map

// desk is a workspace with a repository in src and another in out, both with two commits, and a place outside with a
// secret, a program that leaves a marker when it runs, and a repository of its own.
type desk struct {
	base, root, src, out, tmp, outside string
	// evil is the program, marker what it leaves, written a file that nobody may write.
	evil, marker, written string
	env                   *tool.Env
}

// newDesk makes a desk. unconfined leaves the sandbox out, so that what holds is the tool itself.
func newDesk(t testing.TB, unconfined bool) *desk {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	d := &desk{base: base, root: base + "/job", tmp: base + "/tmp", outside: base + "/outside"}
	d.src, d.out = d.root+"/src", d.root+"/out"
	d.evil, d.marker, d.written = d.outside+"/evil", d.outside+"/ran", d.outside+"/written"
	for _, dir := range []string{d.src, d.out, d.tmp, d.outside} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	d.put(t, d.outside+"/secret.txt", "outside-canary\n")
	d.put(t, d.evil, "#!/bin/sh\necho ran >>"+d.marker+"\n[ $# -gt 0 ] || exec cat\n")
	must(t, os.Chmod(d.evil, 0o755))
	for _, dir := range []string{d.src, d.out} {
		d.repository(t, dir, "first")
	}
	w, err := workspace.Open(workspace.Config{Root: d.root, ReadOnly: []string{d.src}, OutDir: d.out, TmpDir: d.tmp})
	must(t, err)
	open := sync.OnceValues(func() (*sandbox.Sandbox, error) {
		return sandbox.Open(sandbox.Policy{Read: []string{d.src}, Write: []string{d.out, d.tmp}, Unconfined: unconfined})
	})
	t.Cleanup(func() {
		if s, err := open(); err == nil {
			s.Close()
		}
		must(t, w.Close())
	})
	d.env = &tool.Env{Workspace: w, Processes: open}
	return d
}

// repository makes a repository with two commits of a.txt, dir/b.txt and secret.txt.
func (d *desk) repository(t testing.TB, dir, subject string) {
	t.Helper()
	template := filepath.Join(templates, subject)
	once, _ := made.LoadOrStore(subject, sync.OnceFunc(func() { d.template(t, template, subject) }))
	once.(func())()
	must(t, os.CopyFS(dir, os.DirFS(template)))
}

func (d *desk) template(t testing.TB, dir, subject string) {
	must(t, os.MkdirAll(dir+"/dir", 0o755))
	d.git(t, dir, "init", "-q", "-b", "main", "--template=")
	d.put(t, dir+"/a.txt", "one\n")
	d.put(t, dir+"/dir/b.txt", "bee\n")
	d.put(t, dir+"/secret.txt", "public\n")
	d.git(t, dir, "add", ".")
	d.git(t, dir, "commit", "-q", "-m", subject)
	d.put(t, dir+"/a.txt", "one\ntwo\n")
	d.git(t, dir, "commit", "-q", "-a", "-m", "second")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) put(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// plain runs the git of this machine as anybody would.
func (d *desk) plain(dir string, args []string, env ...string) (string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, git, args...)
	c.WaitDelay = time.Second
	c.Dir = dir
	c.Env = append([]string{"PATH=" + sandbox.SearchPath, "HOME=" + d.tmp, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost", "GIT_AUTHOR_DATE=2001-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2001-01-01T00:00:00Z"}, env...)
	output, err := c.CombinedOutput()
	return string(output), err
}

// git runs plain git, which must succeed.
func (d *desk) git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	output, err := d.plain(dir, args)
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(output)
}

func (d *desk) call(ctx context.Context, t testing.TB, tl tool.Tool, arguments any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(arguments)
	must(t, err)
	prepared, err := tl.PrepareArguments(raw)
	if err != nil {
		t.Fatalf("arguments %s: %v", raw, err)
	}
	return tl.Run(ctx, d.env, prepared)
}

// read runs a call of the reading tool in the directory "" or the given one.
func (d *desk) read(t testing.TB, command string, directory ...string) tool.Result {
	t.Helper()
	return d.call(t.Context(), t, New(Options{}), arguments{command, strings.Join(directory, "")})
}

// write runs a call of the writing tool in the output directory.
func (d *desk) write(t testing.TB, command string) tool.Result {
	t.Helper()
	return d.call(t.Context(), t, New(Options{Writes: true}), arguments{command, "out"})
}
