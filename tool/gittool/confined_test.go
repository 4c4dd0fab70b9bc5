package gittool

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
)

// TestTheSandboxHoldsWhatTheToolDoesNot lets a program of the repository run, as a trick that nobody knows yet would, and
// shows that it still reaches nothing. With the sandbox off the same program succeeds.
func TestTheSandboxHoldsWhatTheToolDoesNot(t *testing.T) {
	t.Parallel()
	if !sandbox.Probe().Has(sandbox.ProtectionLandlock) {
		t.Skip("this machine has no Landlock")
	}
	for _, unconfined := range []bool{false, true} {
		d := newDesk(t, unconfined)
		d.put(t, d.src+"/monitor", "#!/bin/sh\ncat "+d.outside+"/secret.txt >&2\necho x > "+d.written+"\ncat /etc/passwd >&2\n")
		must(t, os.Chmod(d.src+"/monitor", 0o755))
		s, err := d.env.Processes()
		must(t, err)
		r, err := s.Run(t.Context(), sandbox.Command{Path: "/usr/bin/git", Args: []string{"-c", "core.fsmonitor=" + d.src + "/monitor", "status"}, Dir: d.src,
			Env: sandbox.Environment(d.tmp, "GIT_DIR="+d.src+"/.git", "GIT_WORK_TREE="+d.src)})
		must(t, err)
		_, statErr := os.Stat(d.written)
		reached := statErr == nil || strings.Contains(string(r.Output), "outside-canary") || strings.Contains(string(r.Output), "root:")
		if reached != unconfined {
			t.Errorf("unconfined %v: reached %v: %q", unconfined, reached, r.Output)
		}
	}
}

func TestWithoutASandboxNothingRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	for _, processes := range []func() (*sandbox.Sandbox, error){nil, func() (*sandbox.Sandbox, error) { return nil, errors.New("no protection") }} {
		d.env = &tool.Env{Workspace: d.env.Workspace, Processes: processes}
		if r := d.read(t, "log"); !r.IsError || !strings.Contains(r.Text, "hozo doctor") {
			t.Errorf("%q", r.Text)
		}
	}
}

func TestFaultX07GitIsNotLookedUpInTheWorkspace(t *testing.T) {
	d := newDesk(t, true)
	for _, dir := range []string{d.src, d.out, d.root} {
		d.put(t, dir+"/git", "#!/bin/sh\necho planted-program\n")
		must(t, os.Chmod(dir+"/git", 0o755))
	}
	t.Setenv("PATH", d.out+":.:"+os.Getenv("PATH"))
	if r := d.read(t, "log -1 --format=%s"); r.Text != "second\n" {
		t.Errorf("%q", r.Text)
	}
	for path, want := range map[string]string{d.out + "/git": "no program", "git": "no program", "/nowhere/git": "no program", "/bin/true": "or newer is needed"} {
		r := d.call(t.Context(), t, New(Options{Git: path}), arguments{Command: "log"})
		if !r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("git at %s: %q", path, r.Text)
		}
	}
}

func TestFaultX04NothingWaitsForATerminal(t *testing.T) {
	t.Parallel()
	d := newDesk(t, true)
	must(t, os.WriteFile(d.out+"/long.txt", []byte(strings.Repeat("line\n", 5000)), 0o644))
	for _, command := range []string{"add long.txt", "commit -q -m long", "log -p"} {
		if r := d.write(t, command); r.IsError {
			t.Fatalf("%s: %q", command, r.Text)
		}
	}
	if r := d.write(t, "show HEAD:long.txt"); !strings.HasSuffix(r.Text, "line\n\n[kept last 2000 of 5000 lines]") {
		t.Errorf("%.100q", r.Text)
	}
	if r := d.write(t, "commit --amend"); !r.IsError {
		t.Errorf("an editor ran: %q", r.Text)
	}
}

// TestAttackS9NamesAndMessagesAreShownSafely: history is text of strangers.
func TestAttackS9NamesAndMessagesAreShownSafely(t *testing.T) {
	t.Parallel()
	d := newDesk(t, false)
	d.put(t, d.src+"/esc\x1b]0;t\x07", "x")
	d.git(t, d.src, "add", ".")
	d.git(t, d.src, "-c", "i18n.commitEncoding=UTF-8", "commit", "-q", "-m", "clear\x1b[2J\u202e")
	if r := d.read(t, "log -1 --name-only --format=%s"); r.Text != `clear\x1b[2J\u202e`+"\n\n"+`"esc\033]0;t\a"`+"\n" {
		t.Errorf("%q", r.Text)
	}
	if r := d.read(t, "ls-files -z"); strings.ContainsAny(r.Text, "\x00\x1b\x07") {
		t.Errorf("%q", r.Text)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"git version 2.39.5\n": true, "git version 2.31.9": false, "git version 2.32.0 (Apple Git-132)": true, "git version 3.0": true, "git version 1.99.1": false} {
		v, ok := parseVersion(text)
		if !ok || v.less(oldest()) == want {
			t.Errorf("%q: %v, %v", text, v, ok)
		}
	}
	for _, text := range []string{"", "git", "git version", "git version x.y", "git version 2", "GNU tar 1.2"} {
		if _, ok := parseVersion(text); ok {
			t.Errorf("%q is a version", text)
		}
	}
}
