// Package sandbox starts processes that reach nothing but what a Policy names, and ends them with everything they
// started. It is for the commands that a model writes: the tools shell, git and codemode use it, and so does whoever
// starts a job as a process of its own. It is not for code that must see the machine, and it is no virtual machine: the
// kernel is shared, and what the kernel offers on this machine is what holds. Probe says what that is, with evidence
// and with what to do about each protection that is missing; nothing is switched off in silence.
//
// A confined process is started without a helper program. One thread of this process gives up its rights (Landlock,
// capabilities, system calls) when a Sandbox is opened, and starts the children, which inherit what is left; the other
// threads keep theirs. A child begins in namespaces of its own, so that it is alone with its descendants, has no network, and takes all
// of them along when it ends. It is held at its first instruction until its resource limits are set.
//
// Where a machine has no such namespaces, the hidden command "hozo sandbox-exec" (Shim) stands between this process and
// the child: it adopts what the child leaves behind, and hunts it down.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/problem"
)

// Policy says what a confined process may reach. The zero value gives it the programs of the system and nothing else.
type Policy struct {
	// Read and Write are absolute paths of existing files and directories. What is below a Read path may be read and
	// executed; below a Write path everything may be done except making devices. A path that is in both may be written.
	Read  []string
	Write []string
	// Network permits TCP and UDP over IPv4 and IPv6. Without it there is no network at all, not even one that leads to
	// this machine.
	Network bool
	// UnixSockets permits sockets of this machine, which lead to services that may do anything on behalf of their
	// clients. Pairs of connected sockets are always permitted.
	UnixSockets bool
	// Limits bound what the process and its descendants use.
	Limits Limits
	// Unconfined leaves files, sockets and capabilities as they are for the calling process. The limits, the end of all
	// descendants and the empty environment still hold. It is the operator's word that something else confines this
	// process; no job can ask for it.
	Unconfined bool

	// Shim is the program that is started as "hozo sandbox-exec" where a command needs a helper, an absolute path;
	// empty means the running one. It must call Shim first of all.
	Shim string

	// showsGroup lets the process look into its control group, for the report that it makes of itself.
	showsGroup bool
	// changes is what the filter of system calls does about changes of modes and times.
	changes changes
	// without switches single layers off. Tests use it to show that a layer, and nothing else, refuses something.
	without layer
}

// layer is a set of protections.
type layer uint

const (
	layerLandlock layer = 1 << iota
	layerSeccomp
	layerNamespaces
	layerCapabilities
	layerCgroup
	layerTracing
)

// changes is what a filter does about the calls that change modes, times and attributes of files. Landlock has no rule
// for them, and whoever owns a file needs no other right: a command could make each file of its account readable for
// everybody, wherever it lies.
type changes int

// Sandbox starts commands under one policy. It is safe for concurrent use.
type Sandbox struct {
	policy  Policy
	starter starter

	mu      sync.Mutex
	closed  bool
	live    map[child]bool
	running sync.WaitGroup
}

// Open makes a sandbox, and marks the descriptors that this process was started with as not to be inherited. The paths of the policy are looked up here and once: what is put in their place later is not
// reached. A policy that is not sound is an error of kind Invalid, a path that does not exist of kind NotFound. A
// protection that Probe reports as active and that cannot be applied is an error of kind Unavailable: nothing runs with
// less than was reported. Whoever opens a sandbox closes it.
func Open(p Policy) (*Sandbox, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	unignoreSignals()
	s := &Sandbox{policy: p, live: map[child]bool{}}
	if err := s.starter.open(&s.policy); err != nil {
		return nil, wrap("open a sandbox", err)
	}
	return s, nil
}

// Close ends every command that still runs, with its descendants, and releases the sandbox. Nothing can be started
// afterwards. It may be called more than once.
func (s *Sandbox) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	for c := range s.live {
		c.kill()
	}
	s.mu.Unlock()
	s.running.Wait()
	if first {
		s.starter.close()
	}
}

// errClosed is the error of a sandbox that is used after Close.
var errClosed = errors.New("the sandbox is closed")

// spawn starts the command and remembers it until it has ended.
func (s *Sandbox) spawn(c *Command, stdio [3]*os.File) (child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	started, err := s.starter.start(&s.policy, c, stdio)
	if err != nil {
		return nil, err
	}
	s.live[started] = true
	s.running.Go(func() {
		<-started.exited()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.live, started)
	})
	return started, nil
}

func (p *Policy) uses(l layer) bool { return p.without&l == 0 }

// Limits bound the resources of a confined process. Zero means the default, a negative number no limit.
type Limits struct {
	// Processes is how many processes and threads may exist at the same time; 512 by default. Probe says what enforces
	// it: for the superuser a control group is needed.
	Processes int64
	// MemoryBytes bounds the address space of each single process; 4 GiB by default. Where a control group is at hand, it
	// bounds the memory of all of them together as well.
	MemoryBytes int64
	// FileBytes bounds each file that is written; 256 MiB by default.
	FileBytes int64
	// CPUSeconds bounds the processor time of each single process; no limit by default, since a Command has a timeout.
	CPUSeconds int64
	// OpenFiles bounds the descriptors of each single process; 1024 by default.
	OpenFiles int64
}

// The defaults of Limits.
const (
	DefaultProcesses   = 512
	DefaultMemoryBytes = 4 << 30
	DefaultFileBytes   = 256 << 20
	DefaultOpenFiles   = 1024
)

// withDefaults replaces zeros. A negative number stays and means that there is no limit.
func (l Limits) withDefaults() Limits {
	set := func(n *int64, to int64) {
		if *n == 0 {
			*n = to
		}
	}
	set(&l.Processes, DefaultProcesses)
	set(&l.MemoryBytes, DefaultMemoryBytes)
	set(&l.FileBytes, DefaultFileBytes)
	set(&l.OpenFiles, DefaultOpenFiles)
	set(&l.CPUSeconds, -1)
	return l
}

// systemPaths returns what every confined process may read and execute: programs and libraries, and the few files below
// /etc that they need to find each other, certificates and hosts. Private keys that lie beside certificates, the lists of
// accounts and the configuration of git are not among them; Environment says what stands in for the latter. No entry of /proc is there, not even the process's own: what
// it holds about other processes is worth more than what programs do with theirs.
func systemPaths() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
		"/etc/alternatives", "/etc/localtime",
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates",
		"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/cacert.pem", "/etc/pki/tls/openssl.cnf",
		"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf",
	}
}

// The devices that every confined process may use. Those of deviceSinks may be written as well.
func devices() []string     { return []string{"/dev/null", "/dev/zero", "/dev/urandom"} }
func deviceSinks() []string { return []string{"/dev/null"} }

// SearchPath is the PATH of Environment. It names no directory that a job can write.
const SearchPath = "/usr/local/bin:/usr/bin:/bin"

// Environment returns the whole environment of a confined process, built from nothing: tmp becomes HOME and TMPDIR, and
// what programs would look up in the list of accounts or in somebody's configuration is said outright. Each of extra is
// KEY=VALUE and goes before an entry of the same key. The order is fixed, so equal input gives equal output.
func Environment(tmp string, extra ...string) []string {
	fixed := []string{
		"PATH=" + SearchPath,
		"HOME=" + tmp,
		"TMPDIR=" + tmp,
		"LANG=C.UTF-8",
		"TERM=dumb",
		"CI=1",
		"NO_COLOR=1",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=agent",
		"GIT_AUTHOR_EMAIL=agent@localhost",
		"GIT_COMMITTER_NAME=agent",
		"GIT_COMMITTER_EMAIL=agent@localhost",
	}
	var env []string
	for _, entry := range fixed {
		key, _, _ := strings.Cut(entry, "=")
		if !hasKey(extra, key) {
			env = append(env, entry)
		}
	}
	return append(env, extra...)
}

func hasKey(env []string, key string) bool {
	for _, entry := range env {
		if strings.HasPrefix(entry, key+"=") {
			return true
		}
	}
	return false
}

// Check returns what is wrong with the policy itself, an error of kind Invalid, or nil. It looks at no file: Start does.
func (p *Policy) Check() error {
	var problems problem.List
	check := func(field string, paths []string) {
		for i, path := range paths {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path {
				problems.AddHint("invalid-path", fmt.Sprintf("/%s/%d", field, i), "give it from the root, without . and ..",
					"%q is no clean absolute path", path)
			}
		}
	}
	check("read", p.Read)
	check("write", p.Write)
	if p.Shim != "" && !filepath.IsAbs(p.Shim) {
		problems.AddHint("invalid-path", "/shim", "give it from the root", "%q is no absolute path", p.Shim)
	}
	return problems.Err("check the sandbox policy")
}
