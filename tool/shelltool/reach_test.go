package shelltool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
)

func TestOutputsAreWhatTheCommandWrote(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, text := range map[string]string{"kept.txt": "kept", "changed.txt": "before", "same-size.txt": "AAAA", "gone.txt": "x", "moved.txt": "m"} {
		must(t, os.WriteFile(d.out+"/"+name, []byte(text), 0o644))
	}
	r := d.shell(t, `cd out; echo after > changed.txt; printf BBBB > same-size.txt; mkdir -p a/b; echo hi > a/b/new.md; : > empty; rm gone.txt; mv moved.txt a/
	cat kept.txt >/dev/null; touch -r kept.txt kept.txt; ln -s /etc/passwd link; ln -s ../src dir-link; mkfifo pipe; mkdir bare; echo no > "$TMPDIR/tmp.txt"`)
	want := []tool.Output{{Path: "a/b/new.md", Bytes: 3}, {Path: "a/moved.txt", Bytes: 1}, {Path: "changed.txt", Bytes: 6}, {Path: "empty", Bytes: 0}, {Path: "same-size.txt", Bytes: 4}}
	if diff := cmp.Diff(want, r.Outputs); diff != "" || r.IsError {
		t.Errorf("%q: outputs (-want +got):\n%s", r.Text, diff)
	}
	if r := d.shell(t, "cat out/*.txt >/dev/null"); r.Outputs != nil {
		t.Errorf("a command that only reads: %v", r.Outputs)
	}
	if r := d.shell(t, "echo x > out/failed.txt; exit 1"); len(r.Outputs) != 1 || !r.IsError {
		t.Errorf("a command that fails: %v", r.Outputs)
	}
}

func TestOutputsThatCannotBeReported(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.shell(t, `cd out; touch $'esc\033x' 'back\slash' $'bad\377' $'new\nline' plain`)
	if diff := cmp.Diff([]tool.Output{{Path: "plain"}}, r.Outputs); diff != "" || !strings.Contains(r.Text, "4 written files are not reported") {
		t.Errorf("%q: outputs (-want +got):\n%s", r.Text, diff)
	}
	r = d.shell(t, "cd out; mkdir many; cd many; touch $(seq 1500)")
	if len(r.Outputs) != 1000 || !strings.Contains(r.Text, "[the first 1000 of 1500 written files are reported as outputs]") {
		t.Errorf("%d outputs: %q", len(r.Outputs), r.Text)
	}
}

func TestWithoutASandboxNothingRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, env := range map[string]*tool.Env{
		"none lent": {Workspace: d.env.Workspace},
		"an error":  {Workspace: d.env.Workspace, Processes: func() (*sandbox.Sandbox, error) { return nil, errors.New("the operator permits none") }},
		"no value":  {Workspace: d.env.Workspace, Processes: func() (*sandbox.Sandbox, error) { return nil, nil }},
	} {
		d.env = env
		if r := d.shell(t, "echo > out/ran"); !r.IsError || !strings.Contains(r.Text, "hozo doctor") {
			t.Errorf("%s: %q", name, r.Text)
		}
	}
	if _, err := os.Stat(d.out + "/ran"); err == nil {
		t.Error("something ran")
	}
}

// TestAttackS1DenyPatternsAreAHelpAndNoProtection writes down which spellings of a command a pattern for it catches.
func TestAttackS1DenyPatternsAreAHelpAndNoProtection(t *testing.T) {
	t.Parallel()
	denials, err := tool.NewDenials([]string{`\brm -rf\b`})
	must(t, err)
	tl := New(Options{})
	for command, caught := range map[string]bool{
		"rm -rf x": true, "r''m -rf x": true, `\rm -rf x`: true, `"rm" -rf x`: true, "command rm -rf x": true, "rm\t-rf x": true, "rm   -rf x": true,
		"true;rm -rf x": true, "true\nrm -rf x": true, "echo x | xargs rm -rf": true, "busybox rm -rf x": true, "eval 'rm -rf x'": true,
		"bash <<E\nrm -rf x\nE": true, "rm \\\n-rf x": true,
		"$(echo rm) -rf x": false, "rm -fr x": false, "rm -r -f x": false, "find x -delete": false, "perl -e 'unlink q(x)'": false,
		"echo cm0gLXJmIHg= | base64 -d | sh": false, "a=rm; $a -rf x": false, `$'\u0072m' -rf x`: false, "rm$IFS-rf x": false, "truncate -s 0 x": false,
	} {
		arguments := fmt.Appendf(nil, `{"command":%q}`, command)
		if got := denials.Blocks(&tl, arguments) != ""; got != caught {
			t.Errorf("%q: caught %v, want %v", command, got, caught)
		}
	}
	// What is not caught still meets the sandbox.
	if !sandbox.Probe().Has(sandbox.ProtectionLandlock) {
		t.Skip("this machine has no Landlock")
	}
	d := newDesk(t)
	must(t, os.WriteFile(d.src+"/source.txt", []byte("source"), 0o666))
	d.shell(t, "a=rm; $a -fr src/source.txt ../outside/secret.txt; find src ../outside -delete; truncate -s 0 src/source.txt ../outside/secret.txt; chmod 777 src")
	for _, path := range []string{d.src + "/source.txt", d.outside + "/secret.txt"} {
		if data, err := os.ReadFile(path); err != nil || len(data) == 0 {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

func TestFilesOutsideAreOutOfReach(t *testing.T) {
	t.Parallel()
	if !sandbox.Probe().Has(sandbox.ProtectionLandlock) {
		t.Skip("this machine has no Landlock")
	}
	d := newDesk(t)
	must(t, os.Symlink(d.outside+"/secret.txt", d.src+"/link"))
	must(t, os.WriteFile(d.src+"/a.txt", []byte("inside\n"), 0o644))
	r := d.shell(t, `cat ../outside/secret.txt src/link /etc/passwd /etc/shadow ~root/.ssh/id_rsa 2>/dev/null; ln -s ../../outside/secret.txt out/l; cat out/l 2>/dev/null
	ln ../outside/secret.txt out/hard 2>/dev/null; exec 2>/dev/null; echo x > ../outside/new; echo x > src/new; echo x > new; cat src/a.txt`)
	if r.IsError || r.Text != "inside\n" {
		t.Errorf("%q", r.Text)
	}
	for _, path := range []string{d.outside + "/new", d.src + "/new", d.root + "/new"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
}

// TestFilesOutsideAreHeldByTheSandboxAlone: with the sandbox off the same commands succeed, so that it is what refuses them.
func TestFilesOutsideAreHeldByTheSandboxAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	open, err := sandbox.Open(sandbox.Policy{Read: []string{d.src}, Write: []string{d.out, d.tmp}, Unconfined: true})
	must(t, err)
	defer open.Close()
	d.env.Processes = func() (*sandbox.Sandbox, error) { return open, nil }
	r := d.shell(t, "cat ../outside/secret.txt; head -c 5 /etc/passwd; echo x > ../outside/new; echo x > src/new")
	if r.IsError || r.Text != "outside-canary\nroot:" {
		t.Errorf("%q", r.Text)
	}
	for _, path := range []string{d.outside + "/new", d.src + "/new"} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestAttackS6ForkBombEnds(t *testing.T) {
	t.Parallel()
	if !sandbox.Probe().Has(sandbox.ProtectionProcesses) && !sandbox.Probe().Has(sandbox.ProtectionCgroup) {
		t.Skip("nothing bounds the processes of this account on this machine")
	}
	d := newDesk(t)
	r := d.call(t.Context(), t, New(Options{}), map[string]any{"command": "b() { sleep 60606 & b | b & }; b; sleep 60606", "timeout": 3})
	if !r.IsError {
		t.Errorf("%.200q", r.Text)
	}
	if left := alive(t, "60606"); left != nil {
		t.Errorf("left: %d processes", len(left))
	}
	if r := d.shell(t, "echo well"); r.Text != "well\n" {
		t.Errorf("the next call: %q", r.Text)
	}
}

func TestAttackS11NoNetwork(t *testing.T) {
	t.Parallel()
	if !sandbox.Probe().Has(sandbox.ProtectionNamespaces) {
		t.Skip("this machine has no namespaces")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer packets.Close()
	tcp, udp := listener.Addr().(*net.TCPAddr).Port, packets.LocalAddr().(*net.UDPAddr).Port
	d := newDesk(t)
	attempt := fmt.Sprintf("(echo x >/dev/tcp/127.0.0.1/%d) 2>/dev/null && echo connected; (echo x >/dev/udp/127.0.0.1/%d) 2>/dev/null && echo sent; "+
		"(: >/dev/tcp/169.254.169.254/80) 2>/dev/null && echo connected; true", tcp, udp)
	if r := d.shell(t, attempt); r.Text != "(no output)" {
		t.Errorf("%q", r.Text)
	}
	permitted, err := sandbox.Open(sandbox.Policy{Read: []string{d.src}, Write: []string{d.out, d.tmp}, Network: true})
	must(t, err)
	defer permitted.Close()
	d.env.Processes = func() (*sandbox.Sandbox, error) { return permitted, nil }
	if r := d.shell(t, fmt.Sprintf("echo x >/dev/tcp/127.0.0.1/%d && echo connected", tcp)); r.Text != "connected\n" {
		t.Errorf("where the operator permits it: %q", r.Text)
	}
}

func TestAttackS12LimitsOfOneCommand(t *testing.T) {
	t.Parallel()
	if !sandbox.Probe().Has(sandbox.ProtectionLimits) {
		t.Skip("this machine has no resource limits")
	}
	d := newDesk(t)
	r := d.shell(t, "ulimit -f; ulimit -n; ulimit -n 4096 2>/dev/null && echo raised; head -c 300000000 /dev/zero > $TMPDIR/big; stat -c %s $TMPDIR/big; rm $TMPDIR/big")
	if !strings.HasPrefix(r.Text, "262144\n1024\n") || strings.Contains(r.Text, "raised") || !strings.Contains(r.Text, "268435456") {
		t.Errorf("%q", r.Text)
	}
}

func TestDescriptionIsTheSameBytes(t *testing.T) {
	t.Parallel()
	a, b := New(Options{}), New(Options{Bash: "/bin/bash"})
	if a.Description != b.Description || string(a.InputSchema) != string(b.InputSchema) {
		t.Error("the description depends on the machine")
	}
	if a.Effect != tool.EffectExternal || !cmp.Equal(a.CommandArguments, []string{"command"}) {
		t.Errorf("effect %s, command arguments %v", a.Effect, a.CommandArguments)
	}
}

func BenchmarkCall(b *testing.B) {
	d := newDesk(b)
	tl := New(Options{})
	for b.Loop() {
		if r := tl.Run(b.Context(), d.env, json.RawMessage(`{"command":":"}`)); r.IsError {
			b.Fatal(r.Text)
		}
	}
}

// BenchmarkBareBash is what BenchmarkCall is compared with.
func BenchmarkBareBash(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/bash", "--noprofile", "--norc", "-c", ":").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
