package checkout

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
)

// mirror is the bare repository in the cache that holds what was fetched from one address. Only objects and references of
// our own are in it. Several processes may share the cache.
type mirror struct {
	git    *gitProgram
	dir    string
	remote remote
}

// commits is where a mirror remembers the commits that runs work on.
const commits = "refs/hozo/commits/"

// mirror returns the mirror of an address, which is made if it is missing.
func (s *Service) mirror(ctx context.Context, location string, credential secret.Value) (*mirror, error) {
	if filepath.IsAbs(location) {
		real, err := filepath.EvalSymlinks(location)
		if err != nil {
			return nil, invalid("there is no repository %s on this machine", location)
		}
		if !s.permits(real) {
			return nil, invalid("%s may not be read; the operator of the server names the directories that may", location)
		}
	}
	sum := sha256.Sum256([]byte(location))
	m := &mirror{git: s.git, dir: filepath.Join(s.git.cache, "git", hex.EncodeToString(sum[:16])), remote: remote{location: location, credential: credential}}
	if _, err := os.Stat(filepath.Join(m.dir, "HEAD")); err == nil {
		return m, nil
	}
	return m, m.locked(func() error {
		if _, err := os.Stat(filepath.Join(m.dir, "HEAD")); err == nil {
			return nil
		}
		// It gets its name when it is whole.
		making := m.dir + ".new"
		if err := removeTree(making); err != nil {
			return err
		}
		if _, err := m.git.run(ctx, call{args: []string{"init", "--quiet", "--bare", making}}); err != nil {
			return err
		}
		return os.Rename(making, m.dir)
	})
}

// locked does what only one process may do with the mirror at a time.
func (m *mirror) locked(do func() error) error {
	l, err := lockFile(m.dir+lockSuffix, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	return errors.Join(do(), l.release())
}

// has reports whether a commit is there with all its files.
func (m *mirror) has(ctx context.Context, commit string) bool {
	_, err := m.git.run(ctx, call{dir: m.dir, args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", commits + commit + "^{commit}"}})
	return err == nil
}

// commitOf returns the commit that the reference of a source names now, and fetches it.
func (s *Service) commitOf(ctx context.Context, r Request, source project.Source) (string, error) {
	m, err := s.mirrorOf(ctx, r, source.Name, source.Location)
	if err != nil {
		return "", err
	}
	if isObjectID(source.Ref) {
		return source.Ref, m.ensure(ctx, source.Ref)
	}
	ref := source.Ref
	if ref == "" {
		ref = "HEAD"
	}
	return m.fetch(ctx, ref, 1)
}

// mirrorOf returns the mirror of a source, with the credential that the source has now if it is at the same address still.
func (s *Service) mirrorOf(ctx context.Context, r Request, name, location string) (*mirror, error) {
	credential, err := s.credential(ctx, r, name, location)
	if err != nil {
		return nil, err
	}
	return s.mirror(ctx, location, credential)
}

func (s *Service) credential(ctx context.Context, r Request, name, location string) (secret.Value, error) {
	if r.Project == "" || filepath.IsAbs(location) {
		return secret.Value{}, nil
	}
	sources, err := s.config.Projects.Sources(ctx, r.Tenant, r.Project)
	if errors.Is(err, store.ErrNotFound) { // the project was removed; a mirror may have everything
		return secret.Value{}, nil
	}
	if err != nil {
		return secret.Value{}, err
	}
	for _, source := range sources {
		if source.Name == name && source.Location == location {
			return s.config.Projects.Credential(ctx, r.Tenant, r.Project, name)
		}
	}
	return secret.Value{}, nil
}

// ensure fetches a commit unless it is there. A server that gives no single commits is asked for all branches and tags.
func (m *mirror) ensure(ctx context.Context, commit string) error {
	if m.has(ctx, commit) {
		return nil
	}
	_, err := m.fetch(ctx, commit, 1)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if all := m.fetchAll(ctx, commit); all != nil {
		return fmt.Errorf("the commit %s cannot be fetched: %w", commit, errors.Join(err, all))
	}
	return nil
}

// fetch fetches what a reference names and returns the commit, which stays in the mirror from then on. depth is how many
// commits of its history come with it.
func (m *mirror) fetch(ctx context.Context, ref string, depth int) (commit string, err error) {
	err = m.locked(func() error {
		into := "refs/hozo/fetch/" + strings.ToLower(rand.Text())
		_, err := m.git.run(ctx, call{dir: m.dir, remote: &m.remote, args: []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
			"--no-auto-gc", fmt.Sprintf("--depth=%d", depth), "--end-of-options", m.remote.location, "+" + ref + ":" + into}})
		if err != nil {
			return err
		}
		commit, err = m.resolve(ctx, into)
		if err != nil {
			return invalid("%q is no commit: %w", ref, err)
		}
		return m.keep(ctx, commit, into)
	})
	return commit, err
}

func (m *mirror) fetchAll(ctx context.Context, commit string) error {
	return m.locked(func() error {
		into := "refs/hozo/fetch/" + strings.ToLower(rand.Text())
		_, err := m.git.run(ctx, call{dir: m.dir, remote: &m.remote, args: []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
			"--no-auto-gc", "--end-of-options", m.remote.location, "+refs/heads/*:" + into + "/heads/*", "+refs/tags/*:" + into + "/tags/*"}})
		if err != nil {
			return err
		}
		if _, err := m.resolve(ctx, commit); err != nil {
			return invalid("no branch and no tag of the repository has it (any more)")
		}
		refs, err := m.git.run(ctx, call{dir: m.dir, args: []string{"for-each-ref", "--format=%(refname)", into + "/"}})
		if err != nil {
			return err
		}
		return m.keep(ctx, commit, strings.Fields(string(refs))...)
	})
}

// resolve returns the commit that a name stands for.
func (m *mirror) resolve(ctx context.Context, name string) (string, error) {
	out, err := m.git.run(ctx, call{dir: m.dir, args: []string{"rev-parse", "--verify", "--end-of-options", name + "^{commit}"}})
	if err != nil {
		return "", err
	}
	commit := strings.TrimSpace(string(out))
	if !isObjectID(commit) {
		return "", fmt.Errorf("git names a commit %q", commit)
	}
	return commit, nil
}

// keep remembers a commit and forgets the references that it was fetched by.
func (m *mirror) keep(ctx context.Context, commit string, fetched ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "update %s%s %s\n", commits, commit, commit)
	for _, ref := range fetched {
		fmt.Fprintf(&b, "delete %s\n", ref)
	}
	_, err := m.git.run(ctx, call{dir: m.dir, args: []string{"update-ref", "--no-deref", "--stdin"}, stdin: strings.NewReader(b.String())})
	return err
}
