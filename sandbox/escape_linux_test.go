package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canary = "canary-of-the-sandbox-tests"

// memory holds the canary where another process would look for it.
var memory = []byte(canary)

// prison is what the attacks of a test have before them.
type prison struct {
	dir     string // may be written
	outside string // a directory that is out of reach
	self    string // this test binary
	shown   string // a file that may be read
}

func newPrison(t *testing.T) prison {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := prison{dir: realTemp(t), outside: realTemp(t), self: self}
	for _, name := range []string{"secret", "old", "loot"} {
		writeFile(t, filepath.Join(p.outside, name), canary)
	}
	writeFile(t, filepath.Join(p.dir, "mine"), "x")
	writeFile(t, filepath.Join(p.dir, "leased"), "x")
	p.shown = writeFile(t, filepath.Join(realTemp(t), "shown"), "x")
	if err := os.Symlink(filepath.Join(p.outside, "secret"), filepath.Join(p.dir, "link")); err != nil {
		t.Fatal(err)
	}
	return p
}

// attack runs an attack with these layers off and reports whether it was refused.
func (p prison) attack(t *testing.T, off layer, args ...string) (refused bool, why string) {
	t.Helper()
	// The race detector of the test binary needs all addresses there are.
	s := open(t, Policy{Read: []string{p.self, p.shown}, Write: []string{p.dir}, Limits: Limits{MemoryBytes: -1}, without: off})
	r := run(t, s, Command{Path: p.self, Args: append([]string{"attack"}, args...), Dir: p.dir, Env: Environment(p.dir)})
	switch r.ExitCode {
	case 0:
		return false, ""
	case 1:
		return true, string(bytes.TrimSpace(r.Output))
	}
	t.Fatalf("the attack ended with %d: %s", r.ExitCode, r.Output)
	return false, ""
}

// layers are all of them one by one.
func layers() map[string]layer {
	return map[string]layer{"landlock": layerLandlock, "seccomp": layerSeccomp, "namespaces": layerNamespaces, "capabilities": layerCapabilities}
}

// escape is an attack, and the layers that refuse it: each alone is enough, and without all of them it succeeds.
type escape struct {
	name string
	args []string
	by   layer
	// needs names what this machine must have for the attack to succeed without layers; "" is nothing.
	needs string
}

func TestSmokeIsolationRefusesEscapes(t *testing.T) {
	requireAll(t)
	p := newPrison(t)
	for _, e := range escapes(t, p) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if refused, _ := p.attack(t, 0, e.args...); !refused {
				t.Error("it succeeds")
			}
		})
	}
}

// TestEscapesSucceedWithoutTheirLayers shows that it is the sandbox that refuses: an attack that fails by itself proves
// nothing.
func TestEscapesSucceedWithoutTheirLayers(t *testing.T) {
	requireAll(t)
	p := newPrison(t)
	for _, e := range escapes(t, p) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if e.needs != "" {
				t.Skip("it cannot succeed here: " + e.needs)
			}
			if refused, why := p.attack(t, e.by, e.args...); refused {
				t.Errorf("it is refused all the same: %s", why)
			}
		})
	}
}

// TestEscapesAreRefusedByEachLayer switches off all layers but one of those that are said to refuse an attack.
func TestEscapesAreRefusedByEachLayer(t *testing.T) {
	requireAll(t)
	p := newPrison(t)
	for _, e := range escapes(t, p) {
		for name, l := range layers() {
			if e.by&l == 0 || e.by == l {
				continue
			}
			t.Run(e.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				if refused, _ := p.attack(t, e.by&^l, e.args...); !refused {
					t.Errorf("it succeeds although %s is on", name)
				}
			})
		}
	}
}

func escapes(t *testing.T, p prison) []escape {
	t.Helper()
	abi := landlockABI()
	me := strconv.Itoa(os.Getpid())
	address := fmt.Sprintf("%x", uintptr(unsafe.Pointer(&memory[0])))
	secret := filepath.Join(p.outside, "secret")
	others := layerLandlock | layerNamespaces
	var root string
	if os.Getuid() == 0 {
		// The superuser's processes hold capabilities, and who holds fewer may not look into them.
		others |= layerCapabilities
	} else {
		root = "only the superuser may read it"
	}
	network := layerSeccomp | layerNamespaces
	tcp := network
	if abi >= abiTCP {
		tcp |= layerLandlock
	}
	udp := network
	if abi >= abiUDP {
		udp |= layerLandlock
	}
	path, abstract := layerSeccomp, network
	if abi >= abiSocket {
		path |= layerLandlock
	}
	if abi >= abiScope {
		abstract |= layerLandlock
	}
	var attributes string
	if err := unix.Setxattr(filepath.Join(p.outside, "old"), "user.x", nil, 0); err != nil {
		attributes = "this file system keeps no attributes"
	}
	// What is set after the start is not in the environment that others see, so one of the first entries is looked for.
	all := []escape{
		{"read a file outside", []string{"read", secret}, layerLandlock, ""},
		{"read through a link", []string{"read", filepath.Join(p.dir, "link")}, layerLandlock, ""},
		{"read the accounts", []string{"read", "/etc/passwd"}, layerLandlock, ""},
		{"read the passwords", []string{"read", "/etc/shadow"}, layerLandlock, root},
		{"list the root", []string{"list", "/"}, layerLandlock, ""},
		{"list processes", []string{"list", "/proc"}, layerLandlock, ""},
		{"write outside", []string{"write", filepath.Join(p.outside, "new")}, layerLandlock, ""},
		{"overwrite outside", []string{"write", filepath.Join(p.outside, "old")}, layerLandlock, ""},
		{"move a file out", []string{"move", filepath.Join(p.dir, "mine"), filepath.Join(p.outside, "mine")}, layerLandlock, ""},
		{"move a file in", []string{"move", filepath.Join(p.outside, "loot"), filepath.Join(p.dir, "loot")}, layerLandlock, ""},
		{"open a file outside to everybody", []string{"mode", secret}, layerSeccomp, ""},
		{"open a file to everybody through a link", []string{"mode", filepath.Join(p.dir, "link")}, layerSeccomp, ""},
		{"change the mode of a file that may be read", []string{"mode by descriptor", p.shown}, layerSeccomp, ""},
		{"change times outside", []string{"times", secret}, layerSeccomp, ""},
		{"attach something to a file outside", []string{"attribute", secret}, layerSeccomp, attributes},
		{"leave a program with the rights of its owner", []string{"set-id", filepath.Join(p.dir, "present")}, layerSeccomp, ""},
		{"watch a directory outside", []string{"watch", p.outside}, layerSeccomp, ""},
		{"hold up who writes", []string{"lease", filepath.Join(p.dir, "leased")}, layerSeccomp, ""},
		{"connect by TCP", []string{"tcp", listenTCP(t)}, tcp, ""},
		{"send by UDP", []string{"udp", listenUDP(t)}, udp, ""},
		{"ask a name server", []string{"dns", listenUDP(t)}, udp, ""},
		{"connect to a socket with a path", []string{"unix", listenUnix(t, filepath.Join(p.dir, "socket"))}, path, ""},
		{"connect to an abstract socket", []string{"unix", listenUnix(t, "@"+filepath.Base(p.dir)+me)}, abstract, ""},
		{"turn a pair of sockets", []string{"datagram", listenDatagrams(t, filepath.Join(p.dir, "log"))}, path, ""},
		{"read the environment of the job process", []string{"environ", me, os.Environ()[0]}, others, ""},
		{"read the memory of the job process", []string{"mem", me, address, canary}, others, ""},
		{"signal the job process", []string{"signal", me}, others &^ layerCapabilities, ""},
		{"hold a capability", []string{"capability"}, layerCapabilities | layerNamespaces, root},
		{"reach rings of the kernel", []string{"call", "io_uring"}, layerSeccomp, ""},
		{"reach keys", []string{"call", "keyctl"}, layerSeccomp, ""},
		{"load programs into the kernel", []string{"call", "bpf"}, layerSeccomp, ""},
	}
	for i := range all {
		if all[i].args[0] == "signal" && abi < abiScope {
			all[i].by = layerNamespaces
		}
	}
	return all
}

func listenTCP(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func listenUDP(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr().String()
}

func listenUnix(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return name
}

func listenDatagrams(t *testing.T, name string) string {
	t.Helper()
	c, err := net.ListenPacket("unixgram", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return name
}

// requireAll skips a test on a machine that lacks layers, and names them.
func requireAll(t *testing.T) {
	t.Helper()
	for _, p := range Probe().Protections {
		switch p.Name {
		case ProtectionLandlock, ProtectionNamespaces, ProtectionSeccomp:
			if !p.Active {
				t.Skipf("%s: %s", p.Name, p.Evidence)
			}
		}
	}
}

// TestDescriptorsAreNotInherited plants one that is not marked, as a careless parent process would.
func TestSmokeIsolationOfDescriptors(t *testing.T) {
	p := newPrison(t)
	for name, off := range map[string]layer{"direct": 0, "behind a shim": layerNamespaces} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(filepath.Join(p.outside, "secret"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 50)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			number := strconv.Itoa(fd)
			c := exec.Command(p.self, "attack", "fd", number)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("an ordinary child does not inherit it: %v %s", err, out)
			}
			if refused, _ := p.attack(t, off, "fd", number); !refused {
				t.Error("a confined child inherits it")
			}
		})
	}
}

func TestSmokeIsolationOfTheEnvironment(t *testing.T) {
	t.Setenv("SANDBOX_TEST_SECRET", canary)
	dir := realTemp(t)
	for name, off := range map[string]layer{"direct": 0, "behind a shim": layerNamespaces} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Policy{Write: []string{dir}, without: off})
			r := run(t, s, Command{Path: "/usr/bin/env", Dir: dir, Env: []string{"A=1"}})
			if got := string(r.Output); got != "A=1\n" {
				t.Errorf("the environment is %q", got)
			}
			if r := run(t, s, Command{Path: "/usr/bin/env", Dir: dir}); len(r.Output) != 0 {
				t.Errorf("without an environment it is %q", r.Output)
			}
			if r := run(t, s, bash(dir, "env; set; export -p; cat /proc/self/environ /proc/$PPID/environ /proc/1/environ")); bytes.Contains(r.Output, memory) {
				t.Errorf("the secret of the parent is in %q", r.Output)
			}
		})
	}
}

func TestConfinedProcessHasNoTerminal(t *testing.T) {
	t.Parallel()
	s := open(t, Policy{})
	r := run(t, s, bash("/", "exec 3<>/dev/tty && echo reached; read line; echo \"got $? [$line]\""))
	if got := string(r.Output); bytes.Contains(r.Output, []byte("reached")) || !bytes.HasSuffix(r.Output, []byte("got 1 []\n")) {
		t.Errorf("output: %q", got)
	}
}

// TestEverythingHoldsForAnOrdinaryAccount runs all tests of this package again as somebody without rights.
func TestEverythingHoldsForAnOrdinaryAccount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is an ordinary account already")
	}
	if testing.Short() {
		t.Skip("it runs all tests a second time")
	}
	const nobody = 65534
	dir := realTemp(t)
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "sandbox.test")
	copyProgram(t, self, program)
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-test.v")
	c.Dir = tmp
	c.Env = []string{"TMPDIR=" + tmp, "HOME=" + tmp, "PATH=" + SearchPath}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("as account %d: %v", nobody, err)
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	r, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStartSaysWhatIsMissing looks at the errors of commands and policies that cannot be had.
func TestStartSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := Open(Policy{Read: []string{"/no/such/place"}}); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path that does not exist: %v", err)
	}
	if _, err := Open(Policy{Write: []string{"relative"}}); err == nil {
		t.Error("a relative path is taken")
	}
	for name, off := range map[string]layer{"direct": 0, "behind a shim": layerNamespaces} {
		s := open(t, Policy{without: off})
		for what, c := range map[string]Command{
			"no such program":   {Path: "/usr/bin/no-such-program", Dir: "/"},
			"no such directory": {Path: "/bin/true", Dir: "/no/such/directory"},
		} {
			if _, err := s.Run(context.Background(), c); err == nil || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := s.Run(context.Background(), Command{Path: "/etc/hosts", Dir: "/"}); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s, a file that is no program: %v", name, err)
		}
	}
}
