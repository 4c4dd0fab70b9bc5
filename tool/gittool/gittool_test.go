package gittool

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool"
)

func TestReadingCommands(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	d.git(t, d.src, "tag", "-a", "v1", "-m", "version")
	d.git(t, d.src, "branch", "side", "HEAD~1")
	d.put(t, d.src+"/a.txt", "one\ntwo\nthree\n")
	d.put(t, d.src+"/new.txt", "new\n")
	for command, want := range map[string]string{
		"log --oneline":                                       "second\n",
		"git log --oneline":                                   "first\n",
		"log -n 1 --format=%s":                                "second\n",
		"log -1 --format=%an%x20%s":                           "a second\n",
		"log --format=%s main -- dir":                         "first\n",
		"log --format=%s dir":                                 "first\n",
		"log --format=%s -- a.txt dir":                        "second\nfirst\n",
		"log --format=%s side..main":                          "second\n",
		"log -p -1 a.txt":                                     "+two\n",
		"log -L2,2:a.txt --format=%s":                         "second\n",
		"log --stat=80 --author 'a'":                          "a.txt | 1 +",
		"log --no-color --decorate=short -1":                  "(HEAD -> main, tag: v1)",
		"log --grep='^sec' --format=%s":                       "second\n",
		"log -S two --format=%s":                              "second\n",
		"log -Stwo --format=%s --all":                         "second\n",
		"show HEAD:a.txt":                                     "one\ntwo\n",
		"show --stat HEAD~1":                                  "3 files changed",
		"show --name-only --format=%s":                        "second\n\na.txt\n",
		"diff":                                                "+three\n",
		"diff HEAD~1 HEAD":                                    "+two\n",
		"diff HEAD~1..HEAD --stat":                            "1 file changed",
		"diff --name-only HEAD~1 -- a.txt":                    "a.txt\n",
		"diff -U0 -w a.txt":                                   "+three\n",
		"diff --exit-code":                                    "[exit code 1: there are differences]",
		"diff --cached --quiet":                               "(no output)",
		"status":                                              "modified:   a.txt",
		"status --short --branch":                             "## main\n M a.txt\n?? new.txt\n",
		"status -sb":                                          "## main\n",
		"status --porcelain=v2 -- a.txt":                      "a.txt\n",
		"blame a.txt":                                         "(Not Committed Yet",
		"blame -L1,1 HEAD -- a.txt":                           "1) one\n",
		"blame -s -L 2,2 HEAD~0 a.txt":                        "2) two\n",
		"ls-files":                                            "a.txt\ndir/b.txt\nsecret.txt\n",
		"ls-files -o --exclude-standard":                      "new.txt\n",
		"ls-files -m":                                         "a.txt\n",
		"ls-files dir":                                        "dir/b.txt\n",
		"ls-files -- '*.txt' ':(exclude)dir'":                 "a.txt\nsecret.txt\n",
		"ls-tree --name-only HEAD":                            "a.txt\ndir\nsecret.txt\n",
		"ls-tree -r HEAD -- dir":                              "dir/b.txt\n",
		"ls-tree -r HEAD dir/":                                "dir/b.txt\n",
		"grep two":                                            "a.txt:two\n",
		"grep -n -e two -e bee":                               "a.txt:2:two\ndir/b.txt:1:bee\n",
		"grep -in 'TWO$' HEAD -- '*.txt'":                     "HEAD:a.txt:2:two\n",
		"grep -l o HEAD~1 a.txt":                              "HEAD~1:a.txt\n",
		"grep -C1 two a.txt":                                  "a.txt-one\n",
		"grep --untracked new":                                "new.txt:new\n",
		"grep nothing-like-it":                                "[exit code 1: nothing matches]",
		"grep -e -x":                                          "",
		"rev-parse --abbrev-ref HEAD":                         "main\n",
		"rev-parse --verify --short HEAD":                     "\n",
		"rev-parse HEAD main":                                 "\n",
		"rev-parse --show-prefix":                             "",
		"rev-list --count HEAD":                               "2\n",
		"rev-list --max-count=1 --format=%s HEAD":             "second\n",
		"shortlog -sn":                                        "2\ta\n",
		"shortlog -s -n HEAD -- dir":                          "1\ta\n",
		"describe":                                            "v1\n",
		"describe --tags --always HEAD~1":                     "\n",
		"cat-file -p HEAD":                                    "\nsecond\n",
		"cat-file -t HEAD^{tree}":                             "tree\n",
		"cat-file blob HEAD:dir/b.txt":                        "bee\n",
		"cat-file -e HEAD:none":                               "[exit code 128]",
		"for-each-ref --format='%(refname:short)' refs/heads": "main\nside\n",
		"for-each-ref --contains HEAD --format=%(refname)":    "",
		"name-rev --name-only HEAD":                           "v1^0\n",
		"merge-base main side":                                "\n",
		"merge-base --is-ancestor main side":                  "[exit code 1: no]",
		"branch":                                              "* main\n  side\n",
		"branch --list 's*'":                                  "  side\n",
		"branch -a -v":                                        "second\n",
		"branch --show-current":                               "main\n",
		"branch --merged HEAD":                                "side\n",
		"branch --contains side --format='%(refname:short)'":  "side\n",
		"tag":                            "v1\n",
		"tag -l 'v*' -n1":                "v1              version\n",
		"tag --list --sort=-creatordate": "v1\n",
		"log --end":                      "is not permitted",
		"show HEAD:nothing":              "[exit code 128]",
		"log --format=%s nothing":        "[exit code 128]",
		"log -- nothing":                 "(no output)",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			r := d.read(t, command)
			failed := strings.Contains(want, "[exit code 128]") || strings.Contains(want, "not permitted") || want == ""
			if want == "" && (command == "rev-parse --show-prefix") {
				failed = false
			}
			if !strings.Contains(r.Text, want) || r.IsError != failed {
				t.Errorf("failed %v: %q, want %v: %q", r.IsError, r.Text, failed, want)
			}
			if r.Outputs != nil {
				t.Errorf("outputs: %v", r.Outputs)
			}
		})
	}
}

func TestTheDirectoryOfACall(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	d.git(t, d.out, "commit", "-q", "--allow-empty", "-m", "in-out")
	for directory, want := range map[string]string{
		"": "second", ".": "second", "src": "second", "src/dir": "second", d.src: "second", "out": "in-out", "out/dir": "in-out", d.out: "in-out",
	} {
		if r := d.read(t, "log -1 --format=%s", directory); r.IsError || r.Text != want+"\n" {
			t.Errorf("%q: %q", directory, r.Text)
		}
	}
	if r := d.read(t, "rev-parse --show-prefix", "src/dir"); r.Text != "dir/\n" {
		t.Errorf("prefix: %q", r.Text)
	}
	if r := d.read(t, "log --format=%s -- b.txt ../a.txt", "src/dir"); r.Text != "second\nfirst\n" {
		t.Errorf("paths of a directory: %q", r.Text)
	}
	foreign(t, d)
	must(t, os.Symlink(d.outside+"/repo", d.src+"/link"))
	must(t, os.Symlink(d.outside+"/repo", d.out+"/link"))
	for _, directory := range []string{"..", "/", d.outside + "/repo", "../outside/repo", "src/link", "out/link", "out/../../outside/repo", "src/.git", "src/.git/refs", "none", "out-twin", "~"} {
		if r := d.read(t, "log --format=%s", directory); !r.IsError || strings.Contains(r.Text, "canary\n") {
			t.Errorf("%q: %q", directory, r.Text)
		}
	}
}

func TestCommandsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	for command, want := range map[string]string{
		"":                         "empty",
		"git":                      "empty",
		"git git log":              "the subcommand \"git\" is not permitted",
		"log; id":                  "only a shell understands",
		"log && id":                "only a shell understands",
		"log | head":               "only a shell understands",
		"log > x":                  "only a shell understands",
		"log `id`":                 "only a shell understands",
		"log $(id)":                "only a shell understands",
		"log $HOME":                "a variable",
		"log ${HOME}":              "a variable",
		"log\nid":                  "more than one line",
		"log 'x":                   "not closed",
		"log \"x":                  "not closed",
		"log \\":                   "backslash",
		"--no-pager log":           "before the subcommand",
		"-C .. log":                "before the subcommand",
		"--version":                "before the subcommand",
		"fetch origin":             "would use the network",
		"push":                     "would use the network",
		"clone https://x/y":        "would use the network",
		"commit -m x":              "changes a repository",
		"config --list":            "is not permitted; these are: log, show",
		"help log":                 "is not permitted",
		"log --help":               `"--help" of log is not permitted`,
		"log -h":                   `"-h" of log is not permitted`,
		"log --outp=x":             `"--outp" of log is not permitted`,
		"log --author":             "needs a value",
		"log --author --all":       "begins with a dash",
		"log -S -x":                "\"-S-x\"",
		"log -n":                   "needs a value",
		"log --oneline=x":          "takes no value",
		"log -":                    "standard input",
		"log ''":                   "empty",
		"branch new":               "creates a branch",
		"branch -d main":           `"-d" of branch is not permitted`,
		"branch -m other":          "not permitted",
		"tag v2":                   "creates a tag",
		"tag -d v1":                "not permitted",
		"grep":                     "needs a pattern",
		"grep -lOcat x":            "write each option by itself",
		"status -v":                "not permitted",
		"describe --dirty":         "not permitted",
		"cat-file --batch":         "not permitted",
		"cat-file --textconv HEAD": "not permitted",
		"rev-parse --git-dir":      "not permitted",
		"rev-parse HEAD -- x":      "takes no paths",
		"log -- -x":                "write ./-x",
		"diff /etc/hostname a.txt": "outside of the repository's work tree",
		"diff ../x ../y":           "leads out",
		"log /etc":                 "outside",
		"log -- a.txt ../../x":     "leads out",
		"log -- ':(top)../../x'":   "leads out",
	} {
		if r := d.read(t, command); !r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%q: %q, want %q", command, r.Text, want)
		}
	}
}

func TestANameThatIsBothRevisionAndPath(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	d.git(t, d.src, "branch", "dir")
	if r := d.read(t, "log --format=%s dir"); !r.IsError || !strings.Contains(r.Text, "both a revision and a path") {
		t.Errorf("%q", r.Text)
	}
	if r := d.read(t, "log --format=%s dir --"); r.Text != "second\nfirst\n" {
		t.Errorf("revision: %q", r.Text)
	}
	if r := d.read(t, "log --format=%s -- dir"); r.Text != "first\n" {
		t.Errorf("path: %q", r.Text)
	}
}

func TestWritingCommands(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	d.put(t, d.out+"/new.txt", "new\n")
	for _, step := range []struct{ command, want string }{
		{"add new.txt", "(no output)"},
		{"commit -q -m 'third one'", "(no output)"},
		{"log -1 --format=%an:%s", "agent:third one\n"},
		{"switch -q -c side", "(no output)"},
		{"mv new.txt moved.txt", "(no output)"},
		{"rm -q dir/b.txt", "rm"},
		{"commit -m fourth", "2 files changed"},
		{"checkout -q main", "(no output)"},
		{"merge --no-ff -m joined side", "Merge made"},
		{"tag -a v1 -m version", "(no output)"},
		{"tag v2", "(no output)"},
		{"branch -d side", "Deleted branch side"},
		{"restore --source=HEAD~1 -- dir/b.txt", "(no output)"},
		{"stash push -u -m later", "Saved working directory"},
		{"stash list", "later"},
		{"stash pop", "Dropped refs"},
		{"checkout HEAD -- a.txt", "(no output)"},
		{"branch other", "(no output)"},
		{"branch", "* main\n  other\n"},
		{"status --short", "?? dir/\n"},
	} {
		r := d.write(t, step.command)
		if r.IsError || !strings.Contains(r.Text, step.want) && step.want != "rm" {
			t.Fatalf("%s: failed %v: %q, want %q", step.command, r.IsError, r.Text, step.want)
		}
	}
	r := d.call(t.Context(), t, New(Options{Writes: true}), arguments{"init -b trunk", "out/dir"})
	if r.IsError || !strings.Contains(r.Text, "Initialized empty Git repository") {
		t.Errorf("init: %q", r.Text)
	}
	if r := d.write(t, "init"); r.IsError || !strings.Contains(r.Text, "Reinitialized") {
		t.Errorf("init again: %q", r.Text)
	}
	if r := d.write(t, "commit --allow-empty"); !r.IsError {
		t.Errorf("commit without a message: %q", r.Text)
	}
	d.git(t, d.out, "fsck", "--strict")
}

func TestOutputsOfWritingCommands(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	r := d.write(t, "checkout -q HEAD~1")
	if diff := cmp.Diff([]tool.Output{{Path: "a.txt", Bytes: 4}}, r.Outputs); diff != "" || r.IsError {
		t.Errorf("%q: outputs (-want +got):\n%s", r.Text, diff)
	}
}

// TestSourcesAreNeverChanged aims every writing command at a read-only repository, without a sandbox.
func TestSourcesAreNeverChanged(t *testing.T) {
	t.Parallel()
	d := newDesk(t, true)
	before := d.git(t, d.src, "rev-parse", "HEAD")
	d.put(t, d.src+"/a.txt", "changed\n")
	for _, command := range []string{"add a.txt", "commit -a -m x", "checkout -f HEAD", "restore a.txt", "switch -c x", "branch x", "tag x", "stash", "init", "rm -f a.txt", "mv a.txt b.txt", "merge HEAD~1"} {
		if r := d.call(t.Context(), t, New(Options{Writes: true}), arguments{Command: command}); !r.IsError || !strings.Contains(r.Text, "only those in the output directory") {
			t.Errorf("%s: %q", command, r.Text)
		}
	}
	if after := d.git(t, d.src, "rev-parse", "HEAD"); after != before || d.git(t, d.src, "status", "--short") != "M a.txt" {
		t.Error("the sources were changed")
	}
}

// TestReadingLeavesTheIndexAlone: even git's own refreshing of its index is a write.
func TestReadingLeavesTheIndexAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, true)
	stamp := func() string {
		stat, err := os.Stat(d.src + "/.git/index")
		must(t, err)
		return stat.ModTime().String()
	}
	before := stamp()
	d.put(t, d.src+"/dir/b.txt", "bee\n")
	for _, command := range []string{"status", "diff", "diff HEAD", "describe --always", "ls-files -m", "blame a.txt", "log", "grep one"} {
		if r := d.read(t, command); r.IsError {
			t.Errorf("%s: %q", command, r.Text)
		}
		if stamp() != before {
			t.Fatalf("%s wrote the index", command)
		}
	}
	d.git(t, d.src, "status")
	if stamp() == before {
		t.Error("plain git writes no index either, so this test shows nothing")
	}
}

func TestDescriptionIsTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, writes := range []bool{false, true} {
		a, b := New(Options{Writes: writes}), New(Options{Writes: writes})
		if a.Description != b.Description || string(a.InputSchema) != string(b.InputSchema) {
			t.Error("two descriptions differ")
		}
		listed := a.Description
		for _, name := range offered(writes)().order {
			if !strings.Contains(listed, name) {
				t.Errorf("the description does not name %s", name)
			}
		}
		if !json.Valid(a.InputSchema) {
			t.Error("the schema is no JSON")
		}
	}
}

// TestRepositoriesThatAreNoPlainDirectory: submodules, linked work trees and shared objects are fine while they stay inside.
func TestRepositoriesThatAreNoPlainDirectory(t *testing.T) {
	t.Parallel()
	for _, unconfined := range []bool{false, true} {
		d := newDesk(t, unconfined)
		d.git(t, d.src, "-c", "protocol.file.allow=always", "submodule", "add", "-q", d.src, "sub")
		d.git(t, d.src, "commit", "-q", "-m", "with-sub")
		d.git(t, d.src, "worktree", "add", "-q", "linked", "HEAD~1")
		d.git(t, d.src, "clone", "-q", "--shared", ".", "shared")
		for directory, want := range map[string]string{"src/sub": "second", "src/sub/dir": "second", "src/linked": "second", "src/shared": "with-sub", "src": "with-sub"} {
			if r := d.read(t, "log -1 --format=%s", directory); r.IsError || r.Text != want+"\n" {
				t.Errorf("%s: %q", directory, r.Text)
			}
			if r := d.read(t, "status --short -uno", directory); r.IsError || r.Text != "(no output)" {
				t.Errorf("status of %s: %q", directory, r.Text)
			}
		}
	}
}

func TestWithoutARepository(t *testing.T) {
	t.Parallel()
	d := newDesk(t, true)
	must(t, os.RemoveAll(d.src+"/.git"))
	d.repository(t, d.root, "above-the-entry")
	if r := d.read(t, "log"); !r.IsError || !strings.Contains(r.Text, "no git repository here") {
		t.Errorf("%q", r.Text)
	}
}

func BenchmarkLog(b *testing.B) {
	d := newDesk(b, false)
	tl := New(Options{})
	for b.Loop() {
		if r := tl.Run(b.Context(), d.env, json.RawMessage(`{"command":"log --oneline"}`)); r.IsError {
			b.Fatal(r.Text)
		}
	}
}
