package checkout_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/checkout"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const tenant = "acme"

// bench is an installation with one project and a directory in which sources are.
type bench struct {
	db        *store.DB
	artifacts *artifact.Store
	projects  *project.Service
	project   project.Project
	// sources may be read, dir is for everything else.
	sources, dir string
}

// setup makes a bench on SQLite; what concerns rows runs on both databases.
func setup(t *testing.T) *bench {
	t.Helper()
	return setupOn(t, storetest.Open(t, storetest.SQLite(t)))
}

func setupOn(t *testing.T, db *store.DB) *bench {
	t.Helper()
	b := &bench{db: db, sources: t.TempDir(), dir: t.TempDir()}
	folder, err := artifact.OpenFolder(filepath.Join(b.dir, "blobs"))
	must(t, err)
	t.Cleanup(func() { must(t, folder.Close()) })
	b.artifacts = artifact.New(artifact.Config{DB: db, Blobs: folder})
	ring, err := secret.Load(filepath.Join(b.dir, "keys"))
	must(t, err)
	b.projects, err = project.New(project.Config{DB: db, Keys: ring, Directories: []string{b.sources}, PlainHTTP: true})
	must(t, err)
	b.project, err = b.projects.Create(t.Context(), tenant, project.Draft{Name: "Shop"})
	must(t, err)
	return b
}

// machine returns a service with directories of its own, as on a machine of its own.
func (b *bench) machine(t *testing.T, name string) *checkout.Service {
	t.Helper()
	s, err := checkout.Open(b.config(name))
	must(t, err)
	return s
}

func (b *bench) config(name string) checkout.Config {
	return checkout.Config{Base: filepath.Join(b.dir, name, "runs"), Cache: filepath.Join(b.dir, name, "cache"), DB: b.db, Artifacts: b.artifacts,
		Projects: b.projects, Directories: []string{b.sources}}
}

func (b *bench) source(t *testing.T, name string, draft project.SourceDraft) {
	t.Helper()
	_, err := b.projects.PutSource(t.Context(), tenant, b.project.ID, name, 0, draft)
	must(t, err)
}

func (b *bench) request(run string) checkout.Request {
	return checkout.Request{Tenant: tenant, Project: b.project.ID, Run: run}
}

// prepare makes the directories of a run and removes them at the end of the test.
func prepare(t *testing.T, s *checkout.Service, r checkout.Request) *checkout.Workspace {
	t.Helper()
	w, err := s.Prepare(t.Context(), r)
	must(t, err)
	t.Cleanup(func() { must(t, w.Remove()) })
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// git runs the real git as a person would.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return gitWith(t, dir, "", args...)
}

func gitWith(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	command := exec.Command("git", args...)
	command.Dir = dir
	command.Stdin = strings.NewReader(stdin)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com"}
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// repository makes a repository with one commit of some files.
func (b *bench) repository(t *testing.T, name string, files map[string]string) (dir string) {
	t.Helper()
	dir = filepath.Join(b.sources, name)
	must(t, os.MkdirAll(dir, 0o755))
	git(t, dir, "init", "-q", "-b", "main")
	for path, text := range files {
		put(t, filepath.Join(dir, path), text)
	}
	commitAll(t, dir, "first")
	return dir
}

func commitAll(t *testing.T, dir, message string) string {
	t.Helper()
	git(t, dir, "add", "-A", "-f")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", message)
	return git(t, dir, "rev-parse", "HEAD")
}

// tree returns what a directory holds: mode and content, or target, by path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			all[rel] = "-> " + target
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if all[rel] = fmt.Sprintf("%04o %s", info.Mode().Perm(), data); len(data) > 200 {
			all[rel] = fmt.Sprintf("%04o %x", info.Mode().Perm(), sha256.Sum256(data))
		}
		return err
	}))
	return all
}
