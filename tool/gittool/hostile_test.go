package gittool

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// attributes gives every text file of a directory an attribute.
func attributes(dir, attribute string) func(*testing.T, *desk) {
	return file(dir+"/.gitattributes", "*.txt "+attribute+"\n")
}

// nested puts a second repository into the sources as a submodule, set up as the pairs say and changed.
func nested(pairs ...string) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) {
		d.git(t, d.src, "-c", "protocol.file.allow=always", "submodule", "add", "-q", d.out, "sub")
		d.git(t, d.src, "commit", "-q", "-m", "sub")
		for i := 0; i < len(pairs); i += 2 {
			d.git(t, d.src+"/sub", "config", "--add", pairs[i], d.expand(pairs[i+1]))
		}
		d.put(t, d.src+"/sub/a.txt", "changed\n")
	}
}

// conflict makes two branches of the output directory that change the same file; other is the one to merge.
func conflict(t *testing.T, d *desk) {
	d.git(t, d.out, "switch", "-q", "-c", "other", "HEAD~1")
	d.put(t, d.out+"/a.txt", "one\nother\n")
	d.git(t, d.out, "commit", "-q", "-a", "-m", "other")
	d.git(t, d.out, "switch", "-q", "main")
}

func TestAttackG7ConfigurationOfTheRepository(t *testing.T) {
	filtered := both(attributes("src", "filter=f"), changed)
	playAll(t, []trick{
		{name: "fsmonitor in status", command: "status", prepare: config("core.fsmonitor", "EVIL")},
		{name: "fsmonitor in diff", command: "diff", prepare: config("core.fsmonitor", "EVIL")},
		{name: "fsmonitor in ls-files", command: "ls-files -m", prepare: config("core.fsmonitor", "EVIL")},
		{name: "external diff", command: "diff", prepare: both(changed, config("diff.external", "EVIL"))},
		{name: "diff driver", command: "diff", prepare: both(changed, attributes("src", "diff=d"), config("diff.d.command", "EVIL"))},
		{name: "textconv in diff", command: "diff", prepare: both(changed, attributes("src", "diff=d"), config("diff.d.textconv", "EVIL"))},
		{name: "textconv in log", command: "log -p", prepare: both(attributes("src", "diff=d"), config("diff.d.textconv", "EVIL"))},
		{name: "textconv in show", command: "show", prepare: both(attributes("src", "diff=d"), config("diff.d.textconv", "EVIL"))},
		{name: "textconv in blame", command: "blame a.txt", prepare: both(attributes("src", "diff=d"), config("diff.d.textconv", "EVIL"))},
		{name: "textconv with log -S", command: "log -Stwo", prepare: both(attributes("src", "diff=d"), config("diff.d.textconv", "EVIL"))},
		{name: "clean filter in diff", command: "diff", prepare: both(filtered, config("filter.f.clean", "EVIL"))},
		{name: "clean filter in status", command: "status", prepare: both(attributes("src", "filter=f"), sameSize, config("filter.f.clean", "EVIL"))},
		{name: "clean filter in ls-files", command: "ls-files -m", prepare: both(attributes("src", "filter=f"), sameSize, config("filter.f.clean", "EVIL"))},
		{name: "clean filter in blame", command: "blame a.txt", prepare: both(filtered, config("filter.f.clean", "EVIL"))},
		{name: "filter process", command: "diff", prepare: both(filtered, config("filter.f.process", "EVIL"))},
		{name: "required filter", command: "diff", prepare: both(filtered, config("filter.f.clean", "EVIL", "filter.f.required", "true"))},
		{name: "filter with = and . in its name", command: "diff", prepare: both(attributes("src", "filter=f=g.clean"), changed, config("filter.f=g.clean.clean", "EVIL"))},
		{name: "filter in capitals", command: "diff", prepare: both(attributes("src", "filter=F"), changed, appendTo("src/.git/config", "[FiLtEr \"F\"]\n\tcLeAn = EVIL\n"))},
		{name: "filter in the old notation", command: "diff", prepare: both(filtered, appendTo("src/.git/config", "[filter.f]\n\tclean = EVIL\n"))},
		{name: "filter in an included file", command: "diff", prepare: both(filtered, file("src/more", "[filter \"f\"]\n\tclean = EVIL\n"), config("include.path", "../more"))},
		{name: "filter in a conditionally included file", command: "diff", prepare: both(filtered, file("src/more", "[filter \"f\"]\n\tclean = EVIL\n"), config("includeIf.gitdir:**.path", "../more"))},
		{name: "filter in the configuration of the work tree", command: "diff", prepare: both(filtered, config("core.repositoryFormatVersion", "1", "extensions.worktreeConfig", "true"),
			file("src/.git/config.worktree", "[filter \"f\"]\n\tclean = EVIL\n"))},
		{name: "filter behind thousands of others", command: "diff", prepare: both(filtered, appendTo("src/.git/config", manyFilters()))},
		{name: "attributes of the repository", command: "diff", prepare: both(changed, file("src/.git/info/attributes", "*.txt filter=f\n"), config("filter.f.clean", "EVIL"))},
		{name: "attributes of the configuration", command: "diff", prepare: both(changed, file("src/attr", "*.txt diff=d\n"), config("core.attributesFile", "BASE/job/src/attr", "diff.d.textconv", "EVIL"))},
		{name: "signatures in log", command: "log", prepare: both(signed, config("log.showSignature", "true", "gpg.program", "EVIL"))},
		{name: "signatures in a format", command: "log --format=%G?", prepare: both(signed, config("gpg.program", "EVIL"))},
		{name: "signatures in a configured format", command: "log", prepare: both(signed, config("gpg.program", "EVIL", "format.pretty", "%GS"))},
		{name: "signatures of another kind", command: "log --format=%G?", prepare: both(signed, config("gpg.openpgp.program", "EVIL"))},
		{name: "ignore list of blame", command: "blame a.txt", prepare: config("blame.ignoreRevsFile", "SECRET")},
		{name: "work tree outside", command: "diff -- secret.txt", prepare: config("core.worktree", "OUTSIDE")},
		{name: "work tree outside in blame", command: "blame secret.txt", prepare: config("core.worktree", "OUTSIDE")},
		{name: "work tree outside in grep", command: "grep canary", prepare: config("core.worktree", "OUTSIDE")},
		{name: "alternate references", command: "rev-list --alternate-refs", prepare: both(foreign, file("src/.git/objects/info/alternates", "OUTSIDE/repo/.git/objects\n"), config("core.alternateRefsCommand", "EVIL"))},
		{name: "hook of the index", command: "status", prepare: both(link("src/.git/hooks/post-index-change", "EVIL"), touched)},
		{name: "submodule with a monitor in status", command: "status", prepare: nested("core.fsmonitor", "EVIL")},
		{name: "submodule with a monitor in diff", command: "diff", prepare: nested("core.fsmonitor", "EVIL")},
		{name: "submodule with a filter", command: "status", prepare: both(nested("filter.f.clean", "EVIL"), func(t *testing.T, d *desk) {
			d.put(t, d.git(t, d.src+"/sub", "rev-parse", "--absolute-git-dir")+"/info/attributes", "*.txt filter=f\n")
		})},
		{name: "submodule with an external diff", command: "diff", prepare: both(nested("diff.external", "EVIL"), config("diff.submodule", "diff"))},
		{name: "submodule in log", command: "log -p", prepare: both(nested(), bump, config("diff.submodule", "diff"),
			attributesOf("sub", "diff=d"), configIn("src/sub", "diff.d.textconv", "EVIL"))},
		{name: "summary of submodules", command: "status", prepare: both(nested("core.fsmonitor", "EVIL"), config("status.submoduleSummary", "true", "diff.ignoreSubmodules", "none"))},
	})
}

// sameSize changes a.txt so that its size says nothing about its content.
func sameSize(t *testing.T, d *desk) { d.put(t, d.src+"/a.txt", "one\nTWO\n") }

// touched gives a.txt another time, so that git wants to refresh its index.
func touched(t *testing.T, d *desk) {
	must(t, os.Remove(d.src+"/a.txt"))
	d.put(t, d.src+"/a.txt", "one\ntwo\n")
}

// bump commits a new state of the submodule.
func bump(t *testing.T, d *desk) {
	d.git(t, d.src+"/sub", "commit", "-q", "-a", "-m", "bumped")
	d.git(t, d.src, "commit", "-q", "-a", "-m", "bump")
}

func attributesOf(sub, attribute string) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) {
		d.put(t, d.git(t, d.src+"/"+sub, "rev-parse", "--absolute-git-dir")+"/info/attributes", "*.txt "+attribute+"\n")
	}
}

func appendTo(name, text string) func(*testing.T, *desk) {
	return func(t *testing.T, d *desk) {
		old, err := os.ReadFile(filepath.Join(d.root, name))
		must(t, err)
		d.put(t, filepath.Join(d.root, name), string(old)+d.expand(text))
	}
}

// manyFilters hides one filter among more names than are kept of an output.
func manyFilters() string {
	var b strings.Builder
	b.WriteString("[filter \"f\"]\n\tclean = EVIL\n")
	for i := range 3000 {
		b.WriteString("[filter \"other" + strings.Repeat("x", i%30) + "\"]\n\tclean = cat\n")
	}
	return b.String()
}

// signed makes a commit that claims to be signed.
func signed(t *testing.T, d *desk) {
	tree, parent := d.git(t, d.src, "rev-parse", "HEAD^{tree}"), d.git(t, d.src, "rev-parse", "HEAD")
	d.put(t, d.base+"/commit", "tree "+tree+"\nparent "+parent+"\nauthor a <a@localhost> 1 +0000\ncommitter a <a@localhost> 1 +0000\n"+
		"gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\nsigned\n")
	d.git(t, d.src, "update-ref", "HEAD", d.git(t, d.src, "hash-object", "-t", "commit", "-w", d.base+"/commit"))
}

func TestAttackG7ConfigurationWhenWriting(t *testing.T) {
	filtered := attributes("out", "filter=f")
	playAll(t, []trick{
		{name: "hook before a commit", command: "commit --allow-empty -m x", directory: "out", prepare: link("out/.git/hooks/pre-commit", "EVIL")},
		{name: "hook after a commit", command: "commit --allow-empty -m x", directory: "out", prepare: link("out/.git/hooks/post-commit", "EVIL")},
		{name: "directory of hooks", command: "commit --allow-empty -m x", directory: "out", prepare: both(link("out/hooks/commit-msg", "EVIL"), configIn("out", "core.hooksPath", "hooks"))},
		{name: "hook after a checkout", command: "checkout HEAD~1", directory: "out", prepare: link("out/.git/hooks/post-checkout", "EVIL")},
		{name: "hook of references", command: "branch x", directory: "out", prepare: link("out/.git/hooks/reference-transaction", "EVIL")},
		{name: "hook after a merge", command: "merge -m x other", directory: "out", prepare: both(conflict, func(t *testing.T, d *desk) {
			d.git(t, d.out, "reset", "-q", "--hard", "HEAD~1")
		}, link("out/.git/hooks/post-merge", "EVIL"))},
		{name: "smudge filter in checkout", command: "checkout HEAD~1 -- a.txt", directory: "out", prepare: both(filtered, configIn("out", "filter.f.smudge", "EVIL"))},
		{name: "smudge filter in restore", command: "restore --source=HEAD~1 a.txt", directory: "out", prepare: both(filtered, configIn("out", "filter.f.smudge", "EVIL"))},
		{name: "smudge filter in switch", command: "switch --detach HEAD~1", directory: "out", prepare: both(filtered, configIn("out", "filter.f.smudge", "EVIL"))},
		{name: "clean filter in add", command: "add a.txt", directory: "out", prepare: both(filtered, file("out/a.txt", "new\n"), configIn("out", "filter.f.clean", "EVIL"))},
		{name: "filter process in add", command: "add a.txt", directory: "out", prepare: both(filtered, file("out/a.txt", "new\n"), configIn("out", "filter.f.process", "EVIL"))},
		{name: "filter in stash", command: "stash", directory: "out", prepare: both(filtered, file("out/a.txt", "new\n"), configIn("out", "filter.f.clean", "EVIL"))},
		{name: "merge driver", command: "merge -m x other", directory: "out", prepare: both(conflict, file("out/.git/info/attributes", "*.txt merge=m\n"), configIn("out", "merge.m.driver", "EVIL"))},
		{name: "default merge driver", command: "merge -m x other", directory: "out", prepare: both(conflict, configIn("out", "merge.default", "m", "merge.m.driver", "EVIL"))},
		{name: "editor", command: "commit --allow-empty", directory: "out", prepare: configIn("out", "core.editor", "EVIL")},
		{name: "editor of a merge", command: "merge other --no-ff", directory: "out", env: []string{"GIT_MERGE_AUTOEDIT=yes"}, prepare: both(conflict, configIn("out", "core.editor", "EVIL"), func(t *testing.T, d *desk) {
			d.git(t, d.out, "reset", "-q", "--hard", "HEAD~1")
		})},
		{name: "signed commits", command: "commit --allow-empty -m x", directory: "out", prepare: configIn("out", "commit.gpgSign", "true", "gpg.program", "EVIL")},
		{name: "signed tags", command: "tag -a -m x t", directory: "out", prepare: configIn("out", "tag.gpgSign", "true", "gpg.program", "EVIL")},
		{name: "signed plain tags", command: "tag -m x t", directory: "out", prepare: configIn("out", "tag.forceSignAnnotated", "true", "gpg.program", "EVIL")},
		{name: "verified merges", command: "merge other", directory: "out", prepare: both(conflict, configIn("out", "merge.verifySignatures", "true", "gpg.program", "EVIL"), func(t *testing.T, d *desk) {
			d.git(t, d.out, "switch", "-q", "other")
			d.git(t, d.out, "update-ref", "refs/heads/other", signIn(t, d, d.out))
			d.git(t, d.out, "switch", "-q", "-f", "main")
		})},
		{name: "message through a link", command: "commit --allow-empty -m outside-canary", directory: "out", prepare: link("out/.git/COMMIT_EDITMSG", "WRITTEN")},
		{name: "log through a link", command: "commit --allow-empty -m x", directory: "out", prepare: link("out/.git/logs/HEAD", "WRITTEN")},
	})
}

func signIn(t *testing.T, d *desk, dir string) string {
	d.put(t, d.base+"/commit", "tree "+d.git(t, dir, "rev-parse", "HEAD^{tree}")+"\nparent "+d.git(t, dir, "rev-parse", "HEAD")+
		"\nauthor a <a@localhost> 1 +0000\ncommitter a <a@localhost> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\nsigned\n")
	return d.git(t, dir, "hash-object", "-t", "commit", "-w", d.base+"/commit")
}

// TestAttackG7FilesOfTheRepository: git prints lines of its own files that it does not understand.
func TestAttackG7FilesOfTheRepository(t *testing.T) {
	playAll(t, []trick{
		{name: "packed references", command: "log", prepare: link("src/.git/packed-refs", "SECRET")},
		{name: "shallow list", command: "log", prepare: link("src/.git/shallow", "SECRET")},
		{name: "state of a rebase", command: "status", prepare: both(
			file("src/.git/rebase-merge/interactive", ""), file("src/.git/rebase-merge/head-name", "refs/heads/main\n"), file("src/.git/rebase-merge/onto", "x\n"),
			file("src/.git/rebase-merge/git-rebase-todo", "pick 1 x\n"), link("src/.git/rebase-merge/done", "SECRET"))},
		{name: "start of a bisection", command: "status", prepare: both(file("src/.git/BISECT_LOG", ""), link("src/.git/BISECT_START", "SECRET"))},
		{name: "whole repository", command: "log", prepare: both(foreign, link("src/.git", "OUTSIDE/repo/.git"))},
		{name: "repository by a file", command: "log", prepare: both(foreign, func(t *testing.T, d *desk) { must(t, os.RemoveAll(d.src+"/.git")) }, file("src/.git", "gitdir: OUTSIDE/repo/.git\n"))},
		{name: "repository by a file with dots", command: "log", prepare: both(foreign, func(t *testing.T, d *desk) { must(t, os.RemoveAll(d.src+"/.git")) }, file("src/.git", "gitdir: ../../outside/repo/.git\n"))},
		{name: "shared directory", command: "log", prepare: both(foreign, func(t *testing.T, d *desk) { must(t, os.RemoveAll(d.src+"/.git/refs")) },
			file("src/.git/commondir", "OUTSIDE/repo/.git\n"))},
		{name: "further objects", command: "log --all", prepare: both(foreign, file("src/.git/objects/info/alternates", "OUTSIDE/repo/.git/objects\n"), func(t *testing.T, d *desk) {
			d.git(t, d.src, "update-ref", "refs/heads/stolen", d.git(t, d.outside+"/repo", "rev-parse", "HEAD"))
		})},
		{name: "objects", command: "log stolen", prepare: both(foreign, func(t *testing.T, d *desk) {
			d.put(t, d.src+"/.git/refs/heads/stolen", d.git(t, d.outside+"/repo", "rev-parse", "HEAD")+"\n")
		}, link("src/.git/objects", "OUTSIDE/repo/.git/objects"))},
		{name: "a branch", command: "log stolen", prepare: both(foreign, link("src/.git/refs/heads", "OUTSIDE/repo/.git/refs/heads"), file("src/.git/objects/info/alternates", "OUTSIDE/repo/.git/objects\n")),
			plain: []string{"log", "main"}},
	})
}

// TestAttackG7PipesInTheRepository: reading one would never end.
func TestAttackG7PipesInTheRepository(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"packed-refs", "HEAD", "config", "info/attributes"} {
		d := newDesk(t, true)
		path := d.src + "/.git/" + name
		must(t, os.RemoveAll(path))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, syscall.Mkfifo(path, 0o644))
		if r := d.read(t, "status"); !r.IsError || !strings.Contains(r.Text, "pipe") {
			t.Errorf("%s: %q", name, r.Text)
		}
	}
}

func TestAttackG8BareRepositoryInTheTree(t *testing.T) {
	hidden := func(t *testing.T, d *desk) {
		d.git(t, d.src, "init", "-q", "--bare", "sub")
		d.git(t, d.src+"/sub", "config", "core.bare", "false")
		d.git(t, d.src+"/sub", "config", "core.worktree", "..")
		d.git(t, d.src+"/sub", "config", "core.fsmonitor", d.evil)
	}
	playAll(t, []trick{
		{name: "status", command: "status", directory: "src/sub", prepare: hidden},
		{name: "diff", command: "diff", directory: "src/sub", prepare: hidden},
		{name: "below it", command: "status", directory: "src/sub/refs", prepare: hidden},
	})
}

// TestAttackG9Environment plants settings in this process's environment and in the home of commands.
func TestAttackG9Environment(t *testing.T) {
	home := func(name, text string) func(*testing.T, *desk) {
		return func(t *testing.T, d *desk) { d.put(t, d.tmp+"/"+name, d.expand(text)) }
	}
	playAll(t, []trick{
		{name: "configuration in variables", command: "status", env: []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=EVIL"}},
		{name: "parameters", command: "status", env: []string{"GIT_CONFIG_PARAMETERS='core.fsmonitor=EVIL'"}},
		{name: "configuration file", command: "status", env: []string{"GIT_CONFIG_GLOBAL=OUTSIDE/config"}, prepare: func(t *testing.T, d *desk) {
			d.put(t, d.outside+"/config", "[core]\n\tfsmonitor = "+d.evil+"\n")
		}},
		{name: "external diff", command: "diff", env: []string{"GIT_EXTERNAL_DIFF=EVIL"}, prepare: changed},
		{name: "ssh command", command: "ls-remote ssh://host/x", env: []string{"GIT_SSH_COMMAND=EVIL"}},
		{name: "repository", command: "log", env: []string{"GIT_DIR=OUTSIDE/repo/.git"}, prepare: foreign},
		{name: "work tree", command: "diff -- secret.txt", env: []string{"GIT_WORK_TREE=OUTSIDE", "GIT_DIR=BASE/job/src/.git"}},
		{name: "programs", command: "log", env: []string{"GIT_EXEC_PATH=OUTSIDE/bin"}, plain: []string{"planted"}, prepare: func(t *testing.T, d *desk) {
			must(t, os.MkdirAll(d.outside+"/bin", 0o755))
			must(t, os.Symlink(d.evil, d.outside+"/bin/git-planted"))
		}},
		{name: "trace file", command: "log", env: []string{"GIT_TRACE=WRITTEN"}},
		{name: "editor", command: "commit --allow-empty", directory: "out", env: []string{"GIT_EDITOR=EVIL"}},
		{name: "home", command: "status", prepare: home(".gitconfig", "[core]\n\tfsmonitor = EVIL\n")},
		{name: "home of another kind", command: "status", prepare: home(".config/git/config", "[core]\n\tfsmonitor = EVIL\n")},
		{name: "attributes at home", command: "diff", prepare: both(changed, home(".config/git/attributes", "*.txt diff=d\n"), config("diff.d.textconv", "EVIL"))},
	})
}

func TestAttackG10NamesThatLookLikeOptions(t *testing.T) {
	output := func(t *testing.T, d *desk) { d.put(t, d.src+"/--output=x", "x\n") }
	playAll(t, []trick{
		{name: "option among revisions", command: "log HEAD --output=WRITTEN -p"},
		{name: "option after a path", command: "diff HEAD~1 --output=WRITTEN"},
		{name: "in quotes", command: `diff HEAD~1 "--output=WRITTEN"`},
		{name: "pattern of files", command: "diff HEAD~1 '--output=WRITTEN'", prepare: output},
		{name: "with backslashes", command: `diff HEAD~1 \-\-output=WRITTEN`},
		{name: "value of an option without one", command: "diff HEAD~1 --stat --output=WRITTEN"},
		{name: "pattern of grep", command: "grep -e one -OEVIL"},
		{name: "pattern that is an option", command: "grep -OEVIL -e one"},
	})
	d := newDesk(t, true)
	output(t, d)
	d.git(t, d.src, "update-ref", "refs/heads/--output=y", "HEAD")
	for _, command := range []string{"log --output=x", "diff -- --output=x", "log -- --output=x", "show --output=y", "log --author --output=x", "diff -S --output=x", "blame -- --output=x"} {
		if r := d.read(t, command); !r.IsError {
			t.Errorf("%s: %q", command, r.Text)
		}
	}
	for command, want := range map[string]string{"ls-files -o -- ./--output=x": "--output=x\n", "log -1 --format=%s refs/heads/--output=y": "second\n", "log --grep=--output -1": "(no output)"} {
		if r := d.read(t, command); r.IsError || r.Text != want {
			t.Errorf("%s: %q, want %q", command, r.Text, want)
		}
	}
	for _, name := range []string{"x", "y"} {
		if _, err := os.Lstat(d.src + "/" + name); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// TestAttackG6ObjectsOfForeignFiles: a file outside must not become an object that can be shown afterwards.
func TestAttackG6ObjectsOfForeignFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t, true)
	object := d.git(t, d.src, "hash-object", d.outside+"/secret.txt")
	for _, command := range []string{"hash-object -w " + d.outside + "/secret.txt", "add " + d.outside + "/secret.txt", "add -f -- ../../outside/secret.txt",
		"update-index --add --cacheinfo 100644," + object + ",x", "commit -m x -- " + d.outside + "/secret.txt"} {
		if r := d.write(t, command); !r.IsError {
			t.Errorf("%s: %q", command, r.Text)
		}
	}
	must(t, os.Symlink(d.outside, d.out+"/linked"))
	if r := d.write(t, "add linked/secret.txt"); !r.IsError {
		t.Errorf("through a link: %q", r.Text)
	}
	if r := d.write(t, "add linked"); r.IsError {
		t.Errorf("the link itself: %q", r.Text)
	}
	if _, err := d.plain(d.out, []string{"cat-file", "-e", object}); err == nil {
		t.Error("the file outside has become an object")
	}
	d.git(t, d.out, "hash-object", "-w", d.outside+"/secret.txt")
	if r := d.call(t.Context(), t, New(Options{}), arguments{"cat-file -p " + object, "out"}); r.Text != "outside-canary\n" {
		t.Errorf("plain git cannot do it either, so this proves nothing: %q", r.Text)
	}
}
