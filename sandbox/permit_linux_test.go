package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPoliciesPermitWhatTheySay looks at sockets: what is permitted works, and nothing more is.
func TestPoliciesPermitWhatTheySay(t *testing.T) {
	requireAll(t)
	p := newPrison(t)
	tcp, udp := listenTCP(t), listenUDP(t)
	path, abstract := listenUnix(t, filepath.Join(p.dir, "socket")), listenUnix(t, "@"+filepath.Base(p.dir)+"permit")
	all := map[string][]string{
		"tcp": {"tcp", tcp}, "udp": {"udp", udp}, "path": {"unix", path}, "abstract": {"unix", abstract},
		"file": {"read", filepath.Join(p.outside, "secret")},
	}
	for name, tc := range map[string]struct {
		policy Policy
		works  string
	}{
		"nothing":      {Policy{}, ""},
		"network":      {Policy{Network: true}, "tcp udp"},
		"unix sockets": {Policy{UnixSockets: true}, "path"},
		"both":         {Policy{Network: true, UnixSockets: true}, "tcp udp path abstract"},
		"another root": {Policy{Read: []string{p.outside}}, "file"},
		"unconfined":   {Policy{Unconfined: true}, "tcp udp path abstract file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := tc.policy
			policy.Read = append([]string{p.self}, policy.Read...)
			policy.Write, policy.Limits.MemoryBytes = []string{p.dir}, -1
			s := open(t, policy)
			for what, args := range all {
				r := run(t, s, Command{Path: p.self, Args: append([]string{"attack"}, args...), Dir: p.dir})
				if works := strings.Contains(" "+tc.works+" ", " "+what+" "); works != (r.ExitCode == 0) {
					t.Errorf("%s: exit code %d: %s", what, r.ExitCode, r.Output)
				}
			}
		})
	}
}

func TestOrdinaryWorkIsPossible(t *testing.T) {
	t.Parallel()
	for way, off := range ways() {
		for name, script := range map[string]string{
			"pipes":                 "seq 5 | sort -r | head -1 | grep -qx 5",
			"process substitution":  "diff <(echo a) <(echo a)",
			"here documents":        "read x <<< hi; [ $x = hi ]; cat <<E >/dev/null\na\nE",
			"files":                 "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/c && ln -s c a/d && cp a/d a/e && cmp a/c a/e && rm -r a",
			"temporary files":       "f=$(mktemp) && echo x > $f && rm $f",
			"programs of one's own": "printf '#!/bin/sh\\nexit 3\\n' > p && chmod +x p; ./p; [ $? = 3 ]",
			"modes":                 "echo x > f && chmod 751 f && chmod 711 $PWD/f && ln -s f l && chmod 640 l && [ $(stat -c %a f) = 640 ] && mkdir d && chmod 2755 d && cd d && chmod 600 ../f && [ $(stat -c %a ../f) = 600 ]",
			"modes of open files":   "perl -e 'open F, q(>), q(f) or die; chmod 0711, *F or die $!; utime 5, 6, *F or die $!' && [ \"$(stat -c '%a %Y' f)\" = '711 6' ]",
			"times":                 "touch f && touch -d @9 f && [ $(stat -c %Y f) = 9 ] && touch f && [ $(stat -c %Y f) -gt 9 ] && ln -s f l && touch -h -d @7 l && [ $(stat -c %Y l) = 7 ]",
			"archives":              "mkdir d && echo x > d/f && chmod 751 d/f && touch -d @9 d/f && tar cf a d && mkdir e && tar xpf a -C e && cp -a d g && [ \"$(stat -c '%a %Y' e/d/f g/f)\" = $'751 9\\n751 9' ]",
			"jobs":                  "true & wait $!",
			"nowhere":               "echo x > /dev/null && head -c 5 /dev/urandom > /dev/null",
			"connected sockets":     "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die $!'",
			"git":                   "git init -q r && cd r && echo x > f && git add f && git commit -qm x && git log --oneline | grep -q x",
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				t.Parallel()
				if name == "git" {
					if _, err := os.Stat("/usr/bin/git"); err != nil {
						t.Skip("git is not installed")
					}
				}
				dir := realTemp(t)
				r := run(t, open(t, Policy{Write: []string{dir}, without: off}), bash(dir, script))
				if r.ExitCode != 0 || len(r.Output) != 0 {
					t.Errorf("exit code %d: %s", r.ExitCode, r.Output)
				}
			})
		}
	}
}

func TestSystemPathsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"/etc/passwd", "/etc/shadow", "/etc/gitconfig", "/etc/ssl/private/key.pem", "/etc/pki/tls/private/key.pem", "/etc/ssh/ssh_host_rsa_key",
		"/home/me/.ssh/id_rsa", "/home/me/.netrc", "/proc/1/environ", "/proc/self/environ", "/var/run/docker.sock", "/dev/mem", "/dev/tty", "/sys/kernel",
	} {
		for _, path := range append(systemPaths(), devices()...) {
			if path == secret || strings.HasPrefix(secret, path+"/") {
				t.Errorf("%s gives %s away", path, secret)
			}
		}
	}
}

func TestCertificatesAreThere(t *testing.T) {
	t.Parallel()
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	if _, err := os.Stat(bundle); err != nil {
		t.Skip("this system keeps its certificates elsewhere")
	}
	if r := run(t, open(t, Policy{}), bash("/", "grep -c BEGIN "+bundle+" > /dev/null")); r.ExitCode != 0 {
		t.Errorf("exit code %d: %s", r.ExitCode, r.Output)
	}
}

func TestPathsOfAPolicyAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	if landlockABI() == 0 {
		t.Skip("landlock: the kernel has none")
	}
	p := newPrison(t)
	root := filepath.Join(p.dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, Policy{Read: []string{root}})
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.outside, root); err != nil {
		t.Fatal(err)
	}
	if r := run(t, s, bash("/", "cat "+root+"/secret")); r.ExitCode == 0 || bytes.Contains(r.Output, memory) {
		t.Errorf("what took the place of a root is read: %s", r.Output)
	}
}

// TestChangesAreRefusedWhereNobodyCanBeAsked is about kernels and processes that take no listener.
func TestChangesAreRefusedWhereNobodyCanBeAsked(t *testing.T) {
	requireAll(t)
	t.Parallel()
	p := newPrison(t)
	s := open(t, Policy{Read: []string{p.dir}})
	if s.policy.changes != changesRefused {
		t.Fatalf("a supervisor for nothing: %v", s.policy.changes)
	}
	for _, script := range []string{"chmod 600 mine", "touch -d @5 mine"} {
		if r := run(t, s, bash(p.dir, script)); r.ExitCode == 0 {
			t.Errorf("%s: it is done", script)
		}
	}
}

func TestFilterFitsItsArchitecture(t *testing.T) {
	t.Parallel()
	if nativeArch() == 0 {
		t.Skip("seccomp: no filter is written for this architecture")
	}
	for name, p := range map[string]Policy{"nothing": {}, "network": {Network: true}, "all": {Network: true, UnixSockets: true},
		"refused": {changes: changesRefused}, "asked": {changes: changesAsked},
	} {
		f := newFilter(&p)
		for i, in := range f {
			if in.Code&7 == unix.BPF_JMP && (i+1+int(in.Jt) >= len(f) || i+1+int(in.Jf) >= len(f)) {
				t.Errorf("%s: instruction %d leaves the program", name, i)
			}
		}
		if last := f[len(f)-1]; last.Code != unix.BPF_RET|unix.BPF_K || last.K != actionAllow {
			t.Errorf("%s: it ends in %+v", name, last)
		}
	}
}

// TestControlGroupsOfVersion2 makes a group by hand where the controllers are missing that would make one by themselves.
func TestControlGroupsOfVersion2(t *testing.T) {
	requireAll(t)
	t.Parallel()
	parent := cgroupRoot
	if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil {
		parent = filepath.Join(cgroupRoot, "unified")
	}
	dir := filepath.Join(parent, groupPrefix+"test-"+mark())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("cgroup: no group of version 2 can be made: %v", err)
	}
	file, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Policy{without: layerCgroup})
	g := &controlGroup{dirs: []string{dir}, v2: file}
	s.starter.confined.group = g
	number := mark()
	c := bash("/", "sleep "+number+" & wait")
	p, err := s.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	awaitSleepers(t, number, 1)
	members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(members, []byte("\n")); n != 2 {
		t.Errorf("the group has the members %q", members)
	}
	if err := bound(dir, "cgroup.kill", 1); err != nil {
		t.Errorf("cgroup.kill: %v", err)
	}
	if r := p.Wait(); r.Signal != "SIGKILL" {
		t.Errorf("result: %+v", r)
	}
	s.Close()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the group is still there: %v", err)
	}
}
