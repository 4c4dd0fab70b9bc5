package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trial is the result of trying something once.
type trial struct {
	available bool
	err       error
}

// namespaces tries what cloneFlags asks for, on a thread that is as confined as later ones. No program is started for
// it: the kernel makes the namespaces before it finds that this path leads nowhere.
var namespaces = sync.OnceValue(func() trial {
	return tryClone(&syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC,
		Setsid:     true,
	})
})

// tracing reports whether a process may trace its own children, which is how their limits are set in time.
var tracing = sync.OnceValue(func() bool { return tryClone(&syscall.SysProcAttr{Ptrace: true}).available })

// nowhere is no path: its first part is no directory.
const nowhere = "/dev/null/nowhere"

func tryClone(attributes *syscall.SysProcAttr) trial {
	var result trial
	done := make(chan struct{})
	onThreadOfItsOwn(func() {
		defer close(done)
		err := (&confinement{dropCapabilities: true}).enter()
		if err == nil {
			_, err = os.StartProcess(nowhere, []string{nowhere}, &os.ProcAttr{Env: []string{}, Sys: attributes})
		}
		if result.available = errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES); !result.available {
			result.err = err
		}
	})
	<-done
	return result
}

// seccompAvailable reports whether the kernel takes filters and whether there is one for this architecture.
var seccompAvailable = sync.OnceValue(func() bool {
	if nativeArch() == 0 {
		return false
	}
	action := uint32(actionErrno)
	const actionAvailable = 2
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, actionAvailable, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
})

// rehearsal is what a confined thread finds when it tries what it must not do. An error says why a layer does not hold.
type rehearsal struct{ landlock, seccomp, privileges, capabilities error }

// rehearse confines a thread as commands are, and tries.
var rehearse = sync.OnceValue(func() rehearsal {
	var r rehearsal
	confined, err := prepare(&Policy{without: layerCgroup})
	if err != nil {
		return rehearsal{err, err, err, err}
	}
	defer confined.close()
	done := make(chan struct{})
	onThreadOfItsOwn(func() {
		defer close(done)
		if err := confined.enter(); err != nil {
			r = rehearsal{err, err, err, err}
			return
		}
		if _, err := os.ReadDir("/"); !errors.Is(err, unix.EACCES) {
			r.landlock = errors.New("a confined thread lists the root directory")
		}
		if fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
			unix.Close(fd)
			r.seccomp = errors.New("a confined thread opens a socket")
		}
		if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); set != 1 {
			r.privileges = errors.Join(errors.New("a confined thread does not have the flag"), err)
		}
		if held, err := permitted(); err != nil || held != 0 {
			r.capabilities = errors.Join(fmt.Errorf("a confined thread holds %x", held), err)
		}
	})
	<-done
	return r
})

// permitted returns the capabilities that the calling thread may use.
func permitted() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	err := unix.Capget(&header, &held[0])
	return uint64(held[1].Permitted)<<32 | uint64(held[0].Permitted), err
}

func probe() Report {
	protections := []Protection{
		probeLandlock(), probeNamespaces(), probeSeccomp(), probeUnixSockets(), probeNoNewPrivs(), probeCapabilities(), probeProcesses(),
		probeLimits(), probeCgroup(), probeDumpable(),
	}
	return Report{Level: level(protections), System: systemName(), Protections: protections}
}

func systemName() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "Linux"
	}
	return fmt.Sprintf("Linux %s %s", unix.ByteSliceToString(name.Release[:]), unix.ByteSliceToString(name.Machine[:]))
}

func probeLandlock() Protection {
	abi, failure := landlockABI(), rehearse().landlock
	p := Protection{
		Name: ProtectionLandlock, Title: "files (Landlock)", Active: abi > 0 && failure == nil, Essential: true,
		Evidence: fmt.Sprintf("a confined thread cannot list the root directory (ABI %d)", abi),
		Effect:   "commands read the workspace and the system's programs, and write to the output directory",
	}
	switch {
	case !p.Active:
		p.Evidence = "the kernel has no Landlock, or it is switched off at boot"
		if abi > 0 {
			p.Evidence = failure.Error()
		}
		p.Effect = "commands read and write every file that this account may"
		p.Fix = "use Linux 5.13 or later with landlock in the boot option lsm=, and a container runtime whose system call filter permits it"
	case abi < abiRefer:
		p.Effect += "; moving files between directories is refused"
		p.Fix = "use Linux 5.19 or later to permit moving files between directories"
	case abi < abiScope:
		p.Fix = "use Linux 6.12 or later to keep signals and abstract sockets inside as well; the namespaces do so meanwhile"
	}
	return p
}

func probeNamespaces() Protection {
	t := namespaces()
	p := Protection{
		Name: ProtectionNamespaces, Title: "processes and network (namespaces)", Active: t.available, Essential: true,
		Evidence: "a process in new user, PID, network and IPC namespaces could be made",
		Effect:   "commands have no network, see no other process, and end with everything they started, also when hozo is killed",
	}
	if !t.available {
		p.Evidence = "making a process in new namespaces: " + refusal(t.err)
		p.Effect = "the network is refused by system call filter alone, and a helper process hunts down what a command leaves behind"
		p.Fix = "permit unprivileged user namespaces: sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 and " +
			"kernel.apparmor_restrict_unprivileged_userns=0 where they exist; in a container, a system call filter that permits clone and unshare"
	}
	return p
}

// refusal says why namespaces cannot be made. What the kernel calls a full device is a limit that is reached.
func refusal(err error) string {
	errno, ok := errors.AsType[unix.Errno](err)
	switch {
	case !ok:
		return err.Error()
	case errno == unix.ENOSPC:
		return "the limit of user namespaces is reached, or is 0"
	}
	return errno.Error()
}

func probeSeccomp() Protection {
	failure := rehearse().seccomp
	p := Protection{
		Name: ProtectionSeccomp, Title: "sockets (seccomp)", Active: seccompAvailable() && failure == nil, Essential: true,
		Evidence: "a confined thread cannot open a socket",
		Effect: "commands open no sockets, also none that lead to services of this machine; key rings, io_uring, bpf and perf are absent; " +
			"modes and times of files are changed below the output directory only",
	}
	if !supervising() {
		p.Effect = strings.TrimSuffix(p.Effect, "are changed below the output directory only") +
			"cannot be changed at all, because this process is not permitted to do it for a command (seccomp listeners, process_vm_readv, openat2)"
	}
	if !p.Active {
		p.Evidence = "the kernel takes no system call filter, or none is written for this architecture"
		if seccompAvailable() {
			p.Evidence = failure.Error()
		}
		p.Effect = "commands can connect to Unix sockets that this account may write to, and change the modes and times of all its files"
		p.Fix = "use a kernel with CONFIG_SECCOMP_FILTER on amd64 or arm64"
	}
	return p
}

func probeUnixSockets() Protection {
	abi := landlockABI()
	p := Protection{
		Name: ProtectionUnixSockets, Title: "sockets with a path (Landlock)", Active: abi >= abiSocket,
		Evidence: fmt.Sprintf("Landlock ABI %d, which needs to be %d or higher", abi, abiSocket),
		Effect:   "sockets with a path are refused by a second layer",
	}
	if !p.Active {
		p.Effect = "sockets with a path are refused by seccomp alone"
		if rehearse().seccomp != nil || !seccompAvailable() {
			p.Effect = "sockets with a path are not refused"
		}
	}
	return p
}

func probeNoNewPrivs() Protection {
	failure := rehearse().privileges
	p := Protection{
		Name: ProtectionNoNewPrivs, Title: "no new privileges", Active: failure == nil, Essential: true,
		Evidence: "a confined thread has the flag",
		Effect:   "sudo and other set-user-ID programs give a command nothing",
	}
	if failure != nil {
		p.Evidence = failure.Error()
		p.Effect = "set-user-ID programs can raise a command's rights"
		p.Fix = "use Linux 3.5 or later"
	}
	return p
}

func probeCapabilities() Protection {
	failure := rehearse().capabilities
	own, err := permitted()
	p := Protection{
		Name: ProtectionCapabilities, Title: "capabilities", Active: failure == nil && err == nil, Essential: true,
		Evidence: fmt.Sprintf("a confined thread holds none; this process, of account %d, holds %x", os.Geteuid(), own),
		Effect:   "commands hold no capability, also for the superuser",
	}
	if !p.Active {
		p.Evidence = errors.Join(failure, err).Error()
		p.Effect = "commands may keep capabilities"
		p.Fix = "run hozo as an account that has none"
	} else if os.Geteuid() == 0 {
		p.Fix = "run hozo as an account of its own: that protects files better than taking capabilities from the superuser does"
	}
	return p
}

func probeProcesses() Protection {
	p := Protection{Name: ProtectionProcesses, Title: "number of processes", Essential: true}
	groups := findCgroups()
	switch {
	case groups.fault == "":
		p.Active = true
		p.Evidence = "control groups with a pids controller can be made below this one"
		p.Effect = "a fork bomb stops at the limit and harms nobody else"
	case groups.bound != "":
		p.Active = true
		p.Evidence = "this process is in a control group of at most " + groups.bound + " processes"
		p.Effect = "a fork bomb stops at the limit and harms nobody but its job"
	case os.Getuid() != 0 && namespaces().available:
		p.Active = true
		p.Evidence = "the kernel counts the processes of each new user namespace for this account"
		p.Effect = "a fork bomb stops at the limit and harms nobody else"
	case os.Getuid() != 0:
		p.Active = true
		p.Evidence = "the kernel counts all processes of this account together"
		p.Effect = "a fork bomb stops at the limit; commands that run at the same time share it"
	default:
		p.Evidence = "the kernel does not count processes of the superuser, and " + groups.fault
		p.Effect = "a fork bomb is only bounded by what bounds hozo itself"
		p.Fix = "run hozo as another account than the superuser, or give it a control group that it may divide"
	}
	return p
}

func probeLimits() Protection {
	p := Protection{
		Name: ProtectionLimits, Title: "memory, file size, core dumps", Active: true,
		Evidence: "a process is held at its first instruction until its limits are set",
		Effect:   "each process is bounded, also for the superuser",
	}
	if !tracing() {
		p.Evidence = "processes may not be traced here, so a helper process is in front of each command that passes limits on"
		p.Fix = "permit ptrace of own children: that saves some ten milliseconds with each command"
	}
	if groups := findCgroups(); groups.fault == "" && (groups.v2 != "" || groups.v1["memory"] != "") {
		p.Effect += "; a control group bounds the memory of all of a command together"
	}
	return p
}

func probeCgroup() Protection {
	groups := findCgroups()
	p := Protection{
		Name: ProtectionCgroup, Title: "control group for each command", Active: groups.fault == "",
		Evidence: "a group can be made with version 1 of control groups, which has no cgroup.kill",
		Effect:   "processes and memory are bounded for all of a command together",
	}
	switch {
	case groups.fault != "":
		p.Evidence = groups.fault
		p.Effect = "limits hold for single processes, and the namespace ends a command's descendants"
		p.Fix = "for limits of all of a command together, delegate a control group: with systemd, Delegate=yes and DelegateSubgroup= in the service"
	case groups.v2 != "":
		p.Evidence = "a group can be made with version 2 of control groups, with cgroup.kill"
	}
	return p
}

func probeDumpable() Protection {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	p := Protection{
		Name: ProtectionDumpable, Title: "memory of this process", Active: err == nil && dumpable == 0,
		Evidence: fmt.Sprintf("this process has the dumpable flag %d", dumpable),
		Effect:   "other processes of this account cannot read its memory and environment",
	}
	if !p.Active {
		p.Effect = "unconfined processes of this account can read its memory; commands cannot, and job processes set the flag for themselves"
	}
	return p
}
