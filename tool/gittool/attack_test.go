package gittool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trick is an attempt to make git run a program, write a file or show what lies outside of the workspace. Every trick is
// played twice on the same files: by plain git, where it must work, or it would prove nothing, and by the tool without a
// sandbox, where it must not.
type trick struct {
	name string
	// prepare lays the trap.
	prepare func(t *testing.T, d *desk)
	// command is what the model says, also split into words for plain git; EVIL, OUT, WRITTEN and SECRET stand for paths.
	command string
	// plain, if not empty, is what plain git is given instead, for another spelling or several words.
	plain []string
	// directory is where, "" for the sources; "out" is the output directory, and the tool then writes.
	directory string
	// leak is what must not be shown, besides the content of the secret.
	leak string
	// env is given to plain git; for the tool it stands in this process's own environment.
	env []string
}

func (d *desk) expand(text string) string {
	return strings.NewReplacer("EVIL", d.evil, "OUTSIDE", d.outside, "WRITTEN", d.written, "SECRET", d.outside+"/secret.txt", "BASE", d.base).Replace(text)
}

// effects returns what a trick has achieved, and takes it back.
func (d *desk) effects(t *testing.T, text, leak string) (all []string) {
	t.Helper()
	for _, path := range []string{d.marker, d.written} {
		if _, err := os.Lstat(path); err == nil {
			all = append(all, "made "+filepath.Base(path))
			must(t, os.RemoveAll(path))
		}
	}
	if strings.Contains(text, "outside-canary") || leak != "" && strings.Contains(text, leak) {
		all = append(all, "shows what is outside")
	}
	return all
}

func (tr trick) play(t *testing.T) {
	d := newDesk(t, true)
	if tr.prepare != nil {
		tr.prepare(t, d)
	}
	d.effects(t, "", "")
	dir := d.src
	if tr.directory != "" {
		dir = filepath.Join(d.root, tr.directory)
	}
	args := tr.plain
	if args == nil {
		var err error
		args, err = split(d.expand(tr.command))
		must(t, err)
	} else {
		args = append([]string{}, args...)
		for i := range args {
			args[i] = d.expand(args[i])
		}
	}
	saved := d.save(t)
	env := make([]string, len(tr.env))
	for i := range tr.env {
		env[i] = d.expand(tr.env[i])
	}
	text, _ := d.plain(dir, args, env...) // most tricks fail after they have worked
	if d.effects(t, text, tr.leak) == nil {
		t.Errorf("plain git does not fall for it, so this proves nothing: %s", text)
	}
	d.restore(t, saved)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	writes := strings.HasPrefix(tr.directory, "out")
	r := d.call(t.Context(), t, New(Options{Writes: writes}), arguments{d.expand(tr.command), strings.TrimPrefix(dir, d.root+"/")})
	if got := d.effects(t, r.Text, tr.leak); got != nil {
		t.Errorf("the tool %s: %q", strings.Join(got, ", "), r.Text)
	}
}

// save copies the workspace, restore puts the copy back: plain git may have changed it.
func (d *desk) save(t *testing.T) string {
	t.Helper()
	saved := d.base + "/saved"
	must(t, os.CopyFS(saved, os.DirFS(d.root)))
	return saved
}

// restore changes what is in the directories only: the workspace holds the directories themselves open.
func (d *desk) restore(t *testing.T, saved string) {
	t.Helper()
	for _, dir := range []string{d.src, d.out} {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			must(t, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
		must(t, os.CopyFS(dir, os.DirFS(filepath.Join(saved, filepath.Base(dir)))))
	}
}

// config returns a preparation that sets entries of the configuration of the sources.
func config(pairs ...string) func(*testing.T, *desk) { return configIn("src", pairs...) }

func configIn(dir string, pairs ...string) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) {
		for i := 0; i < len(pairs); i += 2 {
			d.git(t, filepath.Join(d.root, dir), "config", "--add", d.expand(pairs[i]), d.expand(pairs[i+1]))
		}
	}
}

// both runs preparations one after another.
func both(all ...func(*testing.T, *desk)) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) {
		for _, prepare := range all {
			prepare(t, d)
		}
	}
}

// file returns a preparation that writes a file below the job's root.
func file(name, text string) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) { d.put(t, filepath.Join(d.root, name), d.expand(text)) }
}

// link returns a preparation that replaces a name below the job's root by a link.
func link(name, target string) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) {
		path := filepath.Join(d.root, name)
		must(t, os.RemoveAll(path))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.Symlink(d.expand(target), path))
	}
}

// foreign makes a repository outside whose commit is the canary.
func foreign(t *testing.T, d *desk) { d.repository(t, d.outside+"/repo", "outside-canary") }

// changed gives a.txt a content that git has to look at.
var changed = file("src/a.txt", "one\ntwo\nthree\n")

func playAll(t *testing.T, tricks []trick) {
	for _, tr := range tricks {
		t.Run(tr.name, func(t *testing.T) {
			if tr.env == nil {
				t.Parallel()
			}
			tr.play(t)
		})
	}
}

func TestAttackG1OptionsBeforeTheSubcommand(t *testing.T) {
	playAll(t, []trick{
		{name: "fsmonitor", command: "-c core.fsmonitor=EVIL status"},
		{name: "ssh command", command: "-c core.sshCommand=EVIL fetch ssh://host/x"},
		{name: "hooks", command: "-c core.hooksPath=OUTSIDE/hooks commit --allow-empty -m x", directory: "out", prepare: func(t *testing.T, d *desk) {
			must(t, os.MkdirAll(d.outside+"/hooks", 0o755))
			must(t, os.Symlink(d.evil, d.outside+"/hooks/pre-commit"))
		}},
		{name: "editor", command: "-c core.editor=EVIL commit --allow-empty", directory: "out"},
		{name: "external diff", command: "-c diff.external=EVIL diff", prepare: changed},
		{name: "alias", command: "-c alias.x=!EVIL x"},
		{name: "alias by environment", command: "--config-env=alias.x=PLANTED x", env: []string{"PLANTED=!EVIL"}},
		{name: "another repository", command: "--git-dir=OUTSIDE/repo/.git log", prepare: foreign},
		{name: "another directory", command: "-C OUTSIDE/repo log", prepare: foreign},
		{name: "another work tree", command: "--work-tree=OUTSIDE diff -- secret.txt", leak: "outside-canary"},
		{name: "programs of git", command: "--exec-path=OUTSIDE/bin planted", prepare: func(t *testing.T, d *desk) {
			must(t, os.MkdirAll(d.outside+"/bin", 0o755))
			must(t, os.Symlink(d.evil, d.outside+"/bin/git-planted"))
		}},
		{name: "attributes and a filter", command: "-c filter.f.clean=EVIL diff", prepare: both(changed, file("src/.gitattributes", "*.txt filter=f\n"))},
	})
}

func TestAttackG2ProgramsOfTransports(t *testing.T) {
	playAll(t, []trick{
		{name: "ls-remote", command: "ls-remote --upload-pack=EVIL ."},
		{name: "fetch", command: "fetch --upload-pack=EVIL .", directory: "out"},
		{name: "pull", command: "pull --upload-pack=EVIL .", directory: "out"},
		{name: "clone", command: "clone -u EVIL . WRITTEN"},
		{name: "push", command: "push --receive-pack=EVIL . HEAD:refs/heads/x"},
		{name: "archive", command: "archive --remote=. --exec=EVIL HEAD"},
		{name: "fetch-pack", command: "fetch-pack --upload-pack=EVIL . main"},
		{name: "remote", command: "remote update", prepare: config("remote.origin.url", ".", "remote.origin.uploadpack", "EVIL")},
		{name: "submodule", command: "submodule foreach EVIL", prepare: func(t *testing.T, d *desk) {
			d.git(t, d.src, "-c", "protocol.file.allow=always", "submodule", "add", "-q", d.out, "sub")
		}},
	})
}

func TestAttackG3ProgramsOfSubcommands(t *testing.T) {
	playAll(t, []trick{
		{name: "grep -O", command: "grep -OEVIL one"},
		{name: "grep -O in a group", command: "grep -lOEVIL one"},
		{name: "grep --open-files-in-pager", command: "grep --open-files-in-pager=EVIL one"},
		{name: "grep with a shortened option", command: "grep --open-f=EVIL one"},
		{name: "difftool", command: "difftool -y -x EVIL HEAD~1"},
		{name: "rebase", command: "rebase --exec EVIL HEAD~1", directory: "out"},
		{name: "bisect", command: "bisect run EVIL", directory: "out", prepare: func(t *testing.T, d *desk) {
			d.git(t, d.out, "bisect", "start", "HEAD", "HEAD~1")
		}},
		{name: "filter-branch", command: "filter-branch -f --msg-filter EVIL HEAD", directory: "out", env: []string{"FILTER_BRANCH_SQUELCH_WARNING=1"}},
		{name: "hook", command: "hook run pre-commit", directory: "out", prepare: link("out/.git/hooks/pre-commit", "EVIL")},
		{name: "diff --output", command: "diff --output=WRITTEN HEAD~1"},
		{name: "log --output", command: "log -p --output=WRITTEN"},
		{name: "show --output", command: "show --output=WRITTEN HEAD"},
		{name: "format-patch", command: "format-patch -o WRITTEN HEAD~1"},
		{name: "archive -o", command: "archive -o WRITTEN HEAD"},
		{name: "bundle", command: "bundle create WRITTEN HEAD"},
		{name: "worktree", command: "worktree add WRITTEN"},
		{name: "init elsewhere", command: "init WRITTEN", directory: "out"},
		{name: "init with a separate directory", command: "init --separate-git-dir=WRITTEN", directory: "out"},
		{name: "checkout-index", command: "checkout-index --prefix=WRITTEN/ -a"},
		{name: "log --ext-diff", command: "log -p --ext-diff", prepare: config("diff.external", "EVIL")},
		{name: "grep --textconv", command: "grep --textconv one", prepare: both(config("diff.d.textconv", "EVIL"), file("src/.gitattributes", "*.txt diff=d\n"))},
		{name: "cat-file --textconv", command: "cat-file --textconv HEAD:a.txt", prepare: both(config("diff.d.textconv", "EVIL"), file("src/.gitattributes", "*.txt diff=d\n"))},
		{name: "cat-file --filters", command: "cat-file --filters HEAD:a.txt", prepare: both(config("filter.f.smudge", "EVIL"), file("src/.gitattributes", "*.txt filter=f\n"))},
	})
}

func TestAttackG4ProgramsAsAddresses(t *testing.T) {
	playAll(t, []trick{
		{name: "clone", command: "clone 'ext::EVIL x' WRITTEN", plain: []string{"-c", "protocol.ext.allow=always", "clone", "ext::EVIL x", "WRITTEN"}},
		{name: "fetch as the repository says", command: "fetch origin", prepare: config("protocol.ext.allow", "always", "remote.origin.url", "ext::EVIL x")},
		{name: "missing objects as the repository says", command: "show HEAD:a.txt", prepare: missing("remote.origin.url", "ext::EVIL x", "protocol.ext.allow", "always")},
		{name: "missing objects by ssh", command: "log -p", prepare: missing("remote.origin.url", "ssh://host/x", "core.sshCommand", "EVIL")},
		{name: "missing objects with a program", command: "diff HEAD~1 HEAD", prepare: missing("remote.origin.url", ".", "remote.origin.uploadpack", "EVIL")},
	})
}

// missing makes a partial clone of the sources whose objects are to be fetched as the pairs say.
func missing(pairs ...string) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) {
		config(append(pairs, "core.repositoryFormatVersion", "1", "extensions.partialClone", "origin", "remote.origin.promisor", "true")...)(t, d)
		blob := d.git(t, d.src, "rev-parse", "HEAD:a.txt")
		must(t, os.Remove(filepath.Join(d.src, ".git/objects", blob[:2], blob[2:])))
	}
}

func TestAttackG6FilesOutside(t *testing.T) {
	playAll(t, []trick{
		{name: "diff --no-index", command: "diff --no-index SECRET /dev/null"},
		{name: "diff without the option", command: "diff SECRET /dev/null"},
		{name: "diff behind the dashes", command: "diff -- SECRET /dev/null"},
		{name: "diff by dots", command: "diff a.txt ../../outside/secret.txt"},
		{name: "diff of one outside", command: "diff ../../outside/secret.txt a.txt"},
		{name: "blame --contents", command: "blame --contents SECRET a.txt"},
		{name: "blame with an ignore list", command: "blame --ignore-revs-file=SECRET a.txt"},
		{name: "blame through a linked directory", command: "blame dir/b.txt", prepare: both(link("src/dir", "OUTSIDE/twin"), func(t *testing.T, d *desk) {
			d.put(t, d.outside+"/twin/b.txt", "outside-canary\n")
		})},
		{name: "grep --no-index", command: "grep --no-index canary OUTSIDE", plain: []string{"-C", "OUTSIDE", "grep", "--no-index", "canary", "."}},
		{name: "commit -F", command: "commit --allow-empty -v -F SECRET", directory: "out"},
		{name: "tag -F", command: "tag -a -F SECRET t", directory: "out", plain: []string{"-c", "alias.x=!git tag -a -F SECRET t && git cat-file tag t", "x"}},
		{name: "add of a file outside", command: "add SECRET", directory: "out", plain: []string{"diff", "--no-index", "SECRET", "/dev/null"}},
		{name: "config of a file", command: "config -f SECRET --list", prepare: func(t *testing.T, d *desk) {
			d.put(t, d.outside+"/secret.txt", "[x]\ny = outside-canary\n")
		}},
	})
}
