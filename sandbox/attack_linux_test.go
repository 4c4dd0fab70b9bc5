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
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// roles are what this test binary does when it is started with one of these words.
func roles() map[string]func([]string) int {
	return map[string]func([]string) int{
		"attack": attackMain, "parent": parentMain, "confined": confinedMain, "threaded": threadedMain,
	}
}

// attackMain tries to do what a confined process must not. Its exit code is 0 if it could, 1 if it was refused.
func attackMain(args []string) int {
	if err := attack(args[0], args[1:]); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func attack(what string, args []string) error {
	switch what {
	case "read":
		_, err := os.ReadFile(args[0])
		return err
	case "list":
		_, err := os.ReadDir(args[0])
		return err
	case "write":
		return os.WriteFile(args[0], []byte("x"), 0o600)
	case "move":
		return os.Rename(args[0], args[1])
	case "environ":
		return readFor("/proc/"+args[0]+"/environ", args[1])
	case "mem":
		return readMemory(args)
	case "fd":
		return readDescriptor(args[0])
	case "signal":
		pid, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return syscall.Kill(pid, 0)
	case "tcp", "unix":
		c, err := net.Dial(what, args[0])
		if err == nil {
			c.Close()
		}
		return err
	case "udp":
		return askUDP(args[0])
	case "dns":
		return askDNS(args[0])
	case "datagram":
		return turnPair(args[0])
	case "mode", "mode by descriptor", "set-id", "times", "attribute", "watch", "lease":
		return changeFile(what, args[0])
	case "call":
		return callKernel(args[0])
	case "capability":
		return raise()
	case "processes":
		return multiply(args[0])
	}
	return fmt.Errorf("no attack %q", what)
}

// readFor looks for a text in a file.
func readFor(path, text string) error {
	all, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(all, []byte(text)) {
		return fmt.Errorf("%s does not hold it", path)
	}
	return nil
}

// readMemory reads a text at an address of another process.
func readMemory(args []string) error {
	f, err := os.Open("/proc/" + args[0] + "/mem")
	if err != nil {
		return err
	}
	defer f.Close()
	address, err := strconv.ParseInt(args[1], 16, 64)
	if err != nil {
		return err
	}
	got := make([]byte, len(args[2]))
	if _, err := f.ReadAt(got, address); err != nil {
		return err
	}
	if string(got) != args[2] {
		return errors.New("the memory holds something else")
	}
	return nil
}

func readDescriptor(number string) error {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	_, err = unix.Pread(fd, make([]byte, 1), 0)
	return err
}

func askUDP(address string) error {
	c, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("secret")); err != nil {
		return err
	}
	return c.SetReadDeadline(time.Now())
}

// askDNS sends a question whose name could carry anything. The server of the test answers none.
func askDNS(address string) error {
	sent := make(chan error, 16)
	r := net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		c, err := net.Dial("udp", address)
		if err == nil {
			_, err = c.Write([]byte("secret.example.com"))
			c.Close()
		}
		select {
		case sent <- err:
		default: // one is enough
		}
		return nil, errors.New("no answer is needed")
	}}
	_, err := r.LookupHost(context.Background(), "secret.example.com")
	select {
	case err := <-sent:
		return err
	default:
		return err
	}
}

// turnPair connects one end of a pair of datagram sockets to something else.
func turnPair(path string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Connect(fds[0], &unix.SockaddrUnix{Name: path})
}

// changeFile changes what a file has besides its content, or what others have of it.
func changeFile(what, path string) error {
	switch what {
	case "mode":
		return os.Chmod(path, 0o666)
	case "times":
		return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
	case "attribute":
		return unix.Setxattr(path, "user.x", []byte("x"), 0)
	case "set-id":
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY, 0o4755)
		if err == nil {
			unix.Close(fd)
			return nil
		}
		writeErr := os.WriteFile(path, nil, 0o700)
		return errors.Join(writeErr, unix.Chmod(path, 0o4755))
	case "watch":
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		_, err = unix.InotifyAddWatch(fd, path, unix.IN_ALL_EVENTS)
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if what == "lease" {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Chmod(info.Mode())
}

// callKernel calls what a filter makes absent, with arguments that the kernel itself refuses in another way.
func callKernel(name string) error {
	var errno syscall.Errno
	switch name {
	case "io_uring":
		_, _, errno = unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0)
	case "keyctl":
		_, _, errno = unix.Syscall(unix.SYS_KEYCTL, 0, ^uintptr(2), 0) // the session's key ring
	case "bpf":
		_, _, errno = unix.Syscall(unix.SYS_BPF, ^uintptr(0), 0, 0)
	}
	if errno == unix.ENOSYS {
		return errno
	}
	return nil
}

// raise succeeds if the process holds a capability.
func raise() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return err
	}
	if held[0].Permitted|held[1].Permitted == 0 {
		return errors.New("no capability is held")
	}
	return nil
}

// multiply starts processes that stay, and succeeds if it gets as many as it wants.
func multiply(wanted string) error {
	n, err := strconv.Atoi(wanted)
	if err != nil {
		return err
	}
	for i := range n {
		if err := exec.Command("/bin/sleep", "999").Start(); err != nil {
			return fmt.Errorf("%d processes, then: %w", i, err)
		}
	}
	return nil
}

// parentMain runs a command that never ends and says when it is up. It is there to be killed.
func parentMain(args []string) int {
	var p Policy
	if args[0] == "shim" {
		p.without = layerNamespaces
	}
	s, err := Open(p)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	c := bash("/", args[1])
	c.Timeout = -1
	c.OnOutput = func(piece []byte) { os.Stdout.Write(piece) }
	running, err := s.Start(context.Background(), c)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	running.Wait()
	return 0
}

// confinedMain confines itself, reports its number of lives, and does the attacks that stand on its input, a line each.
func confinedMain(args []string) int {
	if err := ConfineSelf(JobPolicy(nil, args)); err != nil {
		fmt.Println(err)
		return 2
	}
	return attacksFromInput()
}

// threadedMain is confined by the thread that starts it.
func threadedMain([]string) int {
	if err := Harden(); err != nil {
		fmt.Println(err)
		return 2
	}
	return attacksFromInput()
}

func attacksFromInput() int {
	all, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Println(err)
		return 2
	}
	for line := range strings.Lines(string(all)) {
		words := strings.Fields(line)
		fmt.Printf("%s: ", strings.TrimSpace(line))
		switch {
		case words[0] == "run":
			fmt.Println(nested(0, words[1:]))
		case words[0] == "report":
			for _, p := range Probe().Protections {
				if p.Name == words[1] {
					fmt.Println(p.Active, p.Evidence)
				}
			}
		case words[0] == "shim":
			fmt.Println(nested(layerNamespaces, words[1:]))
		default:
			fmt.Println(attack(words[0], words[1:]))
		}
	}
	return 0
}

// nested runs a command in a sandbox inside of the confinement of this process.
func nested(off layer, args []string) string {
	s, err := Open(Policy{Write: args[:1], without: off})
	if err != nil {
		return err.Error()
	}
	defer s.Close()
	r, err := s.Run(context.Background(), bash(args[0], strings.Join(args[1:], " ")))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %q", r.ExitCode, r.Output)
}
