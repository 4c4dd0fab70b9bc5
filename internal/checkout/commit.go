package checkout

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/problem"
)

// CommitRequest says what to commit where.
type CommitRequest struct {
	// Tenant, Project and Run name the run, whose source is committed to.
	Tenant, Project, Run string
	// Settings are those of the project. They must be set.
	Settings project.Commit
	// OutDir is the output directory of the run.
	OutDir string
	// Message is the message of the commit; a line that names the run is added.
	Message string
}

// Committed is a commit that was made, or found.
type Committed struct {
	Commit string `json:"commit"`
	Branch string `json:"branch"`
	// Unchanged says that the branch had all outputs already, so that nothing was added.
	Unchanged bool `json:"unchanged,omitempty"`
	// Skipped are outputs that cannot be committed.
	Skipped []string `json:"skipped,omitempty"`
}

const (
	// commitTries is how often a branch may be moved by others in between.
	commitTries = 3
	// runTrailer names the run in a commit, so that the same outputs are not committed twice.
	runTrailer = "Hozo-Run: "
	// lookBack is how many commits of the branch are searched for that.
	lookBack = 50
)

// Commit adds the outputs of a run to a branch as one commit, on top of what the branch holds then. A branch that does not
// exist begins at the commit that the run worked on. Nothing is ever forced or removed: when others move the branch time and
// again, or the server refuses, the error is of kind Conflict and says so. The same request again finds its commit.
func (s *Service) Commit(ctx context.Context, r CommitRequest) (Committed, error) {
	c, err := s.commit(ctx, r)
	if err != nil {
		if _, known := errors.AsType[*problem.Error](err); !known {
			err = &problem.Error{Kind: problem.Unavailable, Err: inWords(err)}
		}
		return Committed{}, fmt.Errorf("commit the outputs of run %s to the source %q: %w", r.Run, r.Settings.Source, err)
	}
	return c, nil
}

func (s *Service) commit(ctx context.Context, r CommitRequest) (Committed, error) {
	pins, err := s.Pins(ctx, r.Tenant, r.Run)
	if err != nil {
		return Committed{}, err
	}
	for _, pin := range pins {
		if pin.Name != r.Settings.Source || pin.Kind != project.Git {
			continue
		}
		m, err := s.mirrorOf(ctx, Request{Tenant: r.Tenant, Project: r.Project, Run: r.Run}, pin.Name, pin.Location)
		if err != nil {
			return Committed{}, err
		}
		return m.add(ctx, r, pin, s.config.Now().Unix())
	}
	return Committed{}, invalid("the run has no git source of that name")
}

// add tries to add the commit until nobody has moved the branch in between.
func (m *mirror) add(ctx context.Context, r CommitRequest, pin Pin, at int64) (Committed, error) {
	branch := strings.ReplaceAll(r.Settings.Branch, "{run}", r.Run)
	var refused error
	for range commitTries {
		parent, err := m.tip(ctx, branch)
		if err != nil {
			return Committed{}, err
		}
		if parent == "" {
			if parent = pin.Digest; !m.has(ctx, parent) {
				if err := m.ensure(ctx, parent); err != nil {
					return Committed{}, err
				}
			}
		} else if found, err := m.search(ctx, parent, r.Run); err != nil || found != "" {
			return Committed{Commit: found, Branch: branch, Unchanged: true}, err
		}
		made, err := m.build(ctx, r, parent, at)
		made.Branch = branch
		if err != nil || made.Unchanged {
			return made, err
		}
		if refused = m.push(ctx, made.Commit, branch); refused == nil {
			return made, nil
		}
		if ctx.Err() != nil {
			return Committed{}, context.Cause(ctx)
		}
	}
	return Committed{}, &problem.Error{Kind: problem.Conflict, Message: fmt.Sprintf("the branch %s was not changed, as the server refused it or others moved it each time", branch), Err: refused}
}

// tip returns the commit at the end of a branch, "" if there is no such branch.
func (m *mirror) tip(ctx context.Context, branch string) (string, error) {
	ref := "refs/heads/" + branch
	out, err := m.git.run(ctx, call{dir: m.dir, remote: &m.remote, args: []string{"ls-remote", "--quiet", "--end-of-options", m.remote.location, ref}})
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		if commit, name, _ := strings.Cut(strings.TrimSpace(line), "\t"); name == ref && isObjectID(commit) {
			return m.fetch(ctx, ref, lookBack)
		}
	}
	return "", nil
}

// search looks for the commit of a run below a commit.
func (m *mirror) search(ctx context.Context, from, run string) (string, error) {
	out, err := m.git.run(ctx, call{dir: m.dir, args: []string{"log", "-n", strconv.Itoa(lookBack), "--format=%H%x00%B%x00%x00", "--end-of-options", from}})
	if err != nil {
		return "", err
	}
	for text := range strings.SplitSeq(string(out), "\x00\x00") {
		commit, message, _ := strings.Cut(strings.TrimSpace(text), "\x00")
		for line := range strings.Lines(message) {
			if strings.TrimSpace(line) == runTrailer+run {
				return commit, nil
			}
		}
	}
	return "", nil
}

// build makes the commit in the mirror. git reads it as one stream, so no file of the repository is ever checked out.
func (m *mirror) build(ctx context.Context, r CommitRequest, parent string, at int64) (made Committed, err error) {
	root, err := os.OpenRoot(r.OutDir)
	if err != nil {
		return Committed{}, err
	}
	defer root.Close()
	ref := "refs/hozo/made/" + r.Run
	out, in := io.Pipe()
	written := make(chan error, 1)
	go func() {
		w := &commitStream{to: bufio.NewWriter(in), root: root, directory: r.Settings.Directory}
		err := w.write(ref, parent, r, at)
		made.Skipped = w.skipped
		in.CloseWithError(err)
		written <- err
	}()
	err = m.locked(func() error {
		_, err := m.git.run(ctx, call{dir: m.dir, args: []string{"fast-import", "--quiet", "--force", "--done", "--date-format=raw"}, stdin: out})
		return err
	})
	out.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	if failed := <-written; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return Committed{}, failed
	}
	if err != nil {
		return Committed{}, err
	}
	if made.Commit, err = m.resolve(ctx, ref); err != nil {
		return Committed{}, err
	}
	trees, err := m.git.run(ctx, call{dir: m.dir, args: []string{"rev-parse", "--verify", parent + "^{tree}"}})
	if err != nil {
		return Committed{}, err
	}
	tree, err := m.git.run(ctx, call{dir: m.dir, args: []string{"rev-parse", "--verify", made.Commit + "^{tree}"}})
	if err == nil && string(tree) == string(trees) {
		made.Commit, made.Unchanged = parent, true
	}
	return made, err
}

// push adds the commit to the branch, if that is where it was.
func (m *mirror) push(ctx context.Context, commit, branch string) error {
	_, err := m.git.run(ctx, call{dir: m.dir, remote: &m.remote, args: []string{"push", "--quiet", "--no-verify", "--no-signed", "--end-of-options", m.remote.location, commit + ":refs/heads/" + branch}})
	return err
}

// commitStream writes a commit as git-fast-import(1) reads it.
type commitStream struct {
	to        *bufio.Writer
	root      *os.Root
	directory string
	skipped   []string
}

func (w *commitStream) write(ref, parent string, r CommitRequest, at int64) error {
	message := strings.ToValidUTF8(strings.TrimSpace(r.Message), "\uFFFD")
	if message == "" {
		message = "Outputs of run " + r.Run
	}
	message = strings.ReplaceAll(message, "\x00", "") + "\n\n" + runTrailer + r.Run + "\n"
	author := fmt.Sprintf("%s <%s> %d +0000", r.Settings.AuthorName, r.Settings.AuthorEmail, at)
	fmt.Fprintf(w.to, "commit %s\nauthor %s\ncommitter %s\ndata %d\n%s\nfrom %s\n", ref, author, author, len(message), message, parent)
	if err := fs.WalkDir(w.root.FS(), ".", w.visit); err != nil {
		return err
	}
	fmt.Fprint(w.to, "\ndone\n")
	return w.to.Flush()
}

func (w *commitStream) visit(name string, e fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case e.IsDir():
		return nil
	case !e.Type().IsRegular():
		w.skipped = append(w.skipped, fmt.Sprintf("%q is no regular file", name))
		return nil
	}
	at := path.Join(w.directory, name)
	if !utf8.ValidString(at) || checkTreePath(at) != nil {
		w.skipped = append(w.skipped, fmt.Sprintf("%q is no path for a repository", name))
		return nil
	}
	file, err := openRegular(w.root, name)
	if err != nil {
		return err
	}
	return errors.Join(w.file(at, file), file.Close())
}

func (w *commitStream) file(at string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	mode := "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	fmt.Fprintf(w.to, "M %s inline %s\ndata %d\n", mode, quotePath(at), info.Size())
	if n, err := io.Copy(w.to, io.LimitReader(file, info.Size())); err != nil || n != info.Size() {
		return errors.Join(err, fmt.Errorf("%s changed while it was read", at))
	}
	return w.to.WriteByte('\n')
}

// quotePath writes a path so that nothing in it ends it.
func quotePath(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
