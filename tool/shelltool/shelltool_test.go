package shelltool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
)

func TestResults(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, tc := range []struct {
		name, command, want string
		failed              bool
	}{
		{"output", "echo one; echo two", "one\ntwo\n", false},
		{"both streams in the order of writing", "echo a; echo b >&2; echo c; echo d >&2", "a\nb\nc\nd\n", false},
		{"nothing", "true", "(no output)", false},
		{"failure with output", "echo why; exit 3", "why\n\n[exit code 3]", true},
		{"failure without output", "false", "(no output)\n\n[exit code 1]", true},
		{"ended by a signal", "sh -c 'kill -KILL $$'; exit $?", "[exit code 137]", true},
		{"ended by itself", "sh -c 'kill -TERM $$'; exit $?", "[exit code 143]", true},
		{"unknown program", "no-such-program", "[exit code 127]", true},
		{"syntax error", "if", "[exit code 2]", true},
		{"dash first", "-n", "[exit code 127]", true},
		{"several lines", "x=1\necho $x\n", "1\n", false},
		{"here-document", "cat <<E\nin\nE", "in\n", false},
		{"the working directory is the root of the workspace", "pwd -P | sed 's,.*/,,'", "job\n", false},
		{"rune at the end", "printf 'é😀'", "é😀", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := d.shell(t, tc.command)
			if r.IsError != tc.failed || r.Text != tc.want && !(tc.failed && strings.Contains(r.Text, tc.want)) {
				t.Errorf("failed %v: %q, want %v: %q", r.IsError, r.Text, tc.failed, tc.want)
			}
		})
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, tc := range map[string]struct{ arguments, want string }{
		"empty":             {`{"command":""}`, "empty"},
		"blank":             {`{"command":" \n\t"}`, "empty"},
		"NUL":               {`{"command":"echo >$PWD/out/ran a\u0000b"}`, "NUL"},
		"too long":          {`{"command":"echo >out/ran; # ` + strings.Repeat("x", maxCommand) + `"}`, "write it to a file"},
		"no time":           {`{"command":"echo >out/ran","timeout":0}`, "between 0.1 and 600"},
		"negative time":     {`{"command":"echo >out/ran","timeout":-5}`, "between"},
		"hardly any time":   {`{"command":"echo >out/ran","timeout":1e-9}`, "between"},
		"negative infinity": {`{"command":"echo >out/ran","timeout":-1e999}`, "between"},
	} {
		r := New(Options{}).Run(t.Context(), d.env, json.RawMessage(tc.arguments))
		if !r.IsError || !strings.Contains(r.Text, tc.want) {
			t.Errorf("%s: %q", name, r.Text)
		}
	}
	if _, err := os.Stat(d.out + "/ran"); err == nil {
		t.Error("a refused command ran")
	}
	for name, arguments := range map[string]string{
		"no command": `{}`, "number": `{"command":{"a":1}}`, "unknown argument": `{"command":"true","cwd":"/"}`, "word as time": `{"command":"true","timeout":"soon"}`,
	} {
		tl := New(Options{})
		if _, err := tl.PrepareArguments(json.RawMessage(arguments)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, tc := range []struct{ timeout, want string }{
		{"599.5", ""}, {"3600", "[the timeout was taken as 600 s, the longest there is]"}, {"1e999", "taken as 600 s"}, {"120000", "taken as 600 s"},
	} {
		r := New(Options{}).Run(t.Context(), d.env, json.RawMessage(`{"command":"echo done","timeout":`+tc.timeout+`}`))
		if r.IsError || !strings.HasPrefix(r.Text, "done\n") || !strings.Contains(r.Text, tc.want) || tc.want == "" && r.Text != "done\n" {
			t.Errorf("timeout %s: %q", tc.timeout, r.Text)
		}
	}
}

// alive returns the processes of this machine that have the mark in their arguments.
func alive(t *testing.T, mark string) (pids []string) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, e := range entries {
		if line, err := os.ReadFile(e); err == nil && strings.Contains(string(line), mark) {
			pids = append(pids, e)
		}
	}
	return pids
}

func TestFaultX01GrandchildHoldsTheOutput(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	began := time.Now()
	r := d.call(t.Context(), t, New(Options{}), map[string]any{"command": "sh -c 'sleep 60601 & echo hi; sleep 60601'", "timeout": 1})
	if !r.IsError || !strings.HasPrefix(r.Text, "hi\n") ||
		!strings.HasSuffix(r.Text, "\n\n[timed out after 1 s: the command and everything that it started was ended]") {
		t.Errorf("%q", r.Text)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
	if left := alive(t, "60601"); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestFaultX02BackgroundAndDetachedChildren(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, command := range []string{
		"setsid sleep 60602 & echo hi", "(setsid sleep 60602 >/dev/null 2>&1 &); echo hi", "nohup sleep 60602 & disown; echo hi",
		"(trap '' TERM HUP; sleep 60602) & echo hi",
	} {
		r := d.call(t.Context(), t, New(Options{}), map[string]any{"command": command, "timeout": 60})
		if r.IsError || !strings.HasSuffix(r.Text, "hi\n") {
			t.Errorf("%s: %q", command, r.Text)
		}
	}
	r := d.call(t.Context(), t, New(Options{}), map[string]any{"command": "(setsid sleep 60602 &); sleep 60602", "timeout": 1})
	if !r.IsError || !strings.Contains(r.Text, "timed out after 1 s") {
		t.Errorf("%q", r.Text)
	}
	if left := alive(t, "60602"); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestFaultX03TheEndOfTheJobEndsTheCommand(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for {
			if _, err := os.Stat(d.out + "/started"); err == nil {
				cancel(errors.New("the caller has left"))
				return
			}
			runtime.Gosched()
		}
	}()
	r := d.call(ctx, t, New(Options{}), map[string]any{"command": "echo begun; (setsid sleep 60603 &); echo x > out/started; sleep 60603"})
	if !r.IsError || r.Text != "begun\n\n[ended before it was done: the caller has left]" {
		t.Errorf("%q", r.Text)
	}
	if diff := cmp.Diff([]tool.Output{{Path: "started", Bytes: 2}}, r.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if left := alive(t, "60603"); left != nil {
		t.Errorf("left: %v", left)
	}
	if r := d.call(ctx, t, New(Options{}), map[string]any{"command": "echo > out/late"}); !r.IsError {
		t.Errorf("a call of an ended job: %q", r.Text)
	}
	if _, err := os.Stat(d.out + "/late"); err == nil {
		t.Error("a call of an ended job ran")
	}
}

func TestFaultX04AttackS8NothingWaitsForATerminal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for command, want := range map[string]string{
		"read x; echo \"read=$x $?\"":            "read= 1\n",
		"cat":                                    "(no output)",
		"(: </dev/tty) 2>/dev/null || echo none": "none\n",
		"tty":                                    "not a tty\n\n[exit code 1]",
		"test -t 0 -o -t 1 || echo none":         "none\n",
	} {
		if r := d.call(t.Context(), t, New(Options{}), map[string]any{"command": command, "timeout": 60}); r.Text != want {
			t.Errorf("%s: %q, want %q", command, r.Text, want)
		}
	}
}

func TestFaultX05MuchOutputIsDrained(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.call(t.Context(), t, New(Options{}), map[string]any{"command": "trap '' TERM; head -c 10485760 /dev/zero | tr '\\0' x; echo; echo end; sleep 60605", "timeout": 5})
	if !r.IsError || !strings.HasPrefix(r.Text, "end\n\n[kept last 1 of 2 lines]\n[timed out after 5 s") {
		t.Errorf("%.200q", r.Text)
	}
}

func TestFaultX07ProgramsAreNotLookedUpInTheWorkspace(t *testing.T) {
	d := newDesk(t)
	for _, dir := range []string{d.src, d.out, d.root} {
		for _, name := range []string{"bash", "git", "ls"} {
			must(t, os.WriteFile(dir+"/"+name, []byte("#!/bin/sh\necho planted-program\n"), 0o755))
		}
	}
	t.Setenv("PATH", d.out+":.:"+d.src+":"+os.Getenv("PATH"))
	r := d.shell(t, "echo $PATH; cd out; type -p bash git ls; ls >/dev/null && echo ok")
	if r.IsError || strings.Contains(r.Text, "planted-program") || strings.Contains(r.Text, d.root) || !strings.HasPrefix(r.Text, sandbox.SearchPath+"\n") {
		t.Errorf("%q", r.Text)
	}
	for _, path := range []string{d.out + "/bash", "bash", "/nowhere/bash", d.out} {
		r := d.call(t.Context(), t, New(Options{Bash: path}), map[string]any{"command": "true"})
		if !r.IsError || !strings.Contains(r.Text, "there is no program "+path) {
			t.Errorf("bash at %s: %q", path, r.Text)
		}
	}
}

// TestFaultX08AttackS3TheEnvironmentIsBuiltFromNothing plants secrets in this process's environment.
func TestFaultX08AttackS3TheEnvironmentIsBuiltFromNothing(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"ANTHROPIC_API_KEY", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "BASH_ENV", "ENV", "LD_PRELOAD", "PROMPT_COMMAND", "BASH_FUNC_ls%%", "SSH_AUTH_SOCK", "GIT_PAGER"} {
		t.Setenv(name, "env-canary")
	}
	r := d.shell(t, "env | sort; echo --; set | grep canary; export -p | grep canary; tr '\\0' '\\n' </proc/self/environ 2>/dev/null | grep canary; true")
	if r.IsError || strings.Contains(r.Text, "env-canary") {
		t.Fatalf("%q", r.Text)
	}
	listed, _, _ := strings.Cut(r.Text, "--\n")
	var names []string
	for line := range strings.Lines(listed) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	want := []string{"CI", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME", "GIT_CONFIG_NOSYSTEM", "HOME", "LANG",
		"NO_COLOR", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "_"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if os.Getenv("DATABASE_URL") != "env-canary" {
		t.Error("this process's environment was changed")
	}
}

func TestAttackS2NothingSurvivesACall(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	prepare := `cd src; export PAGER=evil PROMPT_COMMAND='echo evil' BASH_ENV=$HOME/rc PATH=$PWD:$PATH; alias ls='echo evil'; shopt -s expand_aliases
declare -x X=evil; trap 'echo evil' EXIT DEBUG; ls() { echo evil; }; export -f ls; ulimit -n 7
for f in .bashrc .bash_profile .profile .bash_login .inputrc rc; do echo 'echo evil' > $HOME/$f; done`
	if r := d.shell(t, prepare); r.IsError && !strings.Contains(r.Text, "evil") {
		t.Fatalf("%q", r.Text)
	}
	r := d.shell(t, "pwd; echo \"$PAGER$PROMPT_COMMAND$BASH_ENV$X\"; echo $PATH; alias; trap; type -t ls; ulimit -n; bash -c 'echo inner'")
	want := d.root + "\n\n" + sandbox.SearchPath + "\nfile\n1024\ninner\n"
	if r.IsError || r.Text != want {
		t.Errorf("%q, want %q", r.Text, want)
	}
}

// TestAttackS4OtherProcessesAreOutOfReach needs no canary of its own: this test's environment is not the command's.
func TestAttackS4OtherProcessesAreOutOfReach(t *testing.T) {
	if !sandbox.Probe().Has(sandbox.ProtectionLandlock) && !sandbox.Probe().Has(sandbox.ProtectionNamespaces) {
		t.Skip("this machine has neither Landlock nor namespaces")
	}
	t.Setenv("PLANTED", "proc-canary")
	d := newDesk(t)
	open, err := os.Open(d.outside + "/secret.txt")
	must(t, err)
	defer open.Close()
	r := d.shell(t, `for p in $PPID 1 self `+itoa(os.Getpid())+`; do for f in environ cmdline mem maps; do head -c 100000 /proc/$p/$f 2>/dev/null | tr '\0' '\n'; done
	cat /proc/$p/fd/* 2>/dev/null; done | grep -a -e canary -e sandbox-exec; for fd in 3 4 5 6 7 8 9; do cat <&$fd; done 2>/dev/null; true`)
	if r.IsError || r.Text != "(no output)" {
		t.Errorf("%q", r.Text)
	}
}

func TestAttackS7MuchOutput(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, tc := range []struct {
		name, command string
		check         func(text string) bool
	}{
		{"5000 lines", "seq 5000", func(s string) bool {
			return strings.HasPrefix(s, "3001\n") && strings.HasSuffix(s, "5000\n\n[kept last 2000 of 5000 lines]")
		}},
		{"2000 lines are whole", "seq 2000", func(s string) bool { return strings.HasSuffix(s, "2000\n") && strings.HasPrefix(s, "1\n") }},
		{"long lines", "for i in $(seq 1000); do printf '%0100d\\n' $i; done", func(s string) bool {
			return strings.HasSuffix(s, "1000\n\n[kept last 506 of 1000 lines]") && len(s) < 51_300
		}},
		{"one line of a megabyte", "head -c 1000000 /dev/zero | tr '\\0' y", func(s string) bool {
			return s == strings.Repeat("y", 51_200)+"\n\n[kept last 51200 of 1000000 bytes]"
		}},
		{"runes at the cut", "printf '😀%.0s' $(seq 20000); printf x", func(s string) bool {
			return strings.HasPrefix(s, "😀") && strings.HasSuffix(s, "😀x\n\n[kept last 51197 of 80001 bytes]")
		}},
		{"random bytes", "head -c 3000000 /dev/urandom", func(s string) bool { return strings.Contains(s, "[kept last ") }},
		{"endless", "yes | head -c 100000000", func(s string) bool { return strings.HasSuffix(s, "y\n\n[kept last 2000 of 50000000 lines]") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := d.shell(t, tc.command)
			if r.IsError || !tc.check(r.Text) || !utf8.ValidString(r.Text) || len(r.Text) > 51_200+200 {
				t.Errorf("failed %v, %d bytes: %.100q … %q", r.IsError, len(r.Text), r.Text, r.Text[max(0, len(r.Text)-100):])
			}
		})
	}
}

func TestAttackS9ControlCharactersAreVisible(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for command, want := range map[string]string{
		`printf '\033]0;title\007x'`:                        `\x1b]0;title\x07x`,
		`printf '\033]52;c;aGk=\007'`:                       `\x1b]52;c;aGk=\x07`,
		`printf '\033]8;;http://e\033\\l\033]8;;\033\\'`:    `\x1b]8;;http://e\x1b\l\x1b]8;;\x1b\`,
		`printf '\033[2J\033[1;1Hx'`:                        `\x1b[2J\x1b[1;1Hx`,
		`printf '\033[31mred\033[0m \033[38;5;1mx\033[m'`:   `red x`,
		`printf '\033P1;2q\033\\'`:                          `\x1bP1;2q\x1b\`,
		`printf '\302\233 2J \302\235'`:                     `\u009b 2J \u009d`,
		`printf '\233 2J'`:                                  "\uFFFD 2J",
		`printf 'a\342\200\256b\342\201\246c\342\200\213d'`: `a\u202eb\u2066c\u200bd`,
		`printf 'safe\rEVIL\b\0\177'`:                       `safe\rEVIL\x08\x00\x7f`,
		`printf 'one\r\ntwo\r\n'`:                           "one\ntwo\n",
		`printf 'tab\tx\n'`:                                 "tab\tx\n",
		`printf '\363\240\201\201'`:                         `\U000e0041`,
		`printf '\342\200\250'`:                             `\u2028`,
		`printf 'bad \377\376 \355\240\200 end'`:            "bad \uFFFD \uFFFD end",
		`printf '\303\251 \360\237\230\200 \302\240'`:       "é 😀 \u00a0",
	} {
		if r := d.shell(t, command); r.IsError || r.Text != want {
			t.Errorf("%s: %q, want %q", command, r.Text, want)
		}
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
