package jobproc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"github.com/hozo-run/hozo/job"
)

// firstExtra is the descriptor that the first file of exec.Cmd.ExtraFiles has in the child.
const firstExtra = 3

// lentHost is a job.Host on its way to a child: the end of a socket that the child gets. The caller's own socket is
// handed down as it is. Anything else is connected to a socket by two goroutines that carry the bytes. A nil *lentHost is
// a host that was not lent.
type lentHost struct {
	conn   job.Host
	theirs *os.File // until the child has it
	ours   net.Conn // nil if the child gets the caller's own socket
	pumps  sync.WaitGroup
	once   sync.Once
}

// lend prepares a host for a child. It takes the host over, also when it fails.
func lend(host job.Host) (*lentHost, error) {
	if host == nil {
		return nil, nil
	}
	l := &lentHost{conn: host}
	var err error
	if socket, ok := host.(interface{ File() (*os.File, error) }); ok {
		l.theirs, err = socket.File()
	} else {
		l.ours, l.theirs, err = socketPair()
	}
	if err != nil {
		l.end()
		return nil, fmt.Errorf("lend the host to the job process: %w", err)
	}
	return l, nil
}

// pass gives the child its end.
func (l *lentHost) pass(command *exec.Cmd) {
	if l == nil {
		return
	}
	command.Args = append(command.Args, "--host-fd", strconv.Itoa(firstExtra+len(command.ExtraFiles)))
	command.ExtraFiles = append(command.ExtraFiles, l.theirs)
}

// begin is called when the child has its end. This process keeps no copy of it, so that the host sees the end of the
// connection when the child is gone.
func (l *lentHost) begin() {
	if l == nil {
		return
	}
	l.theirs.Close()
	if l.ours == nil {
		l.conn.Close()
		return
	}
	l.pumps.Go(func() { l.carry(l.ours, l.conn) })
	l.pumps.Go(func() { l.carry(l.conn, l.ours) })
}

// carry copies until one side ends, and then ends both: half a connection is of no use to the protocol.
func (l *lentHost) carry(to io.Writer, from io.Reader) {
	// How it ended does not matter: both sides see the end of the connection.
	_, _ = io.Copy(to, from)
	l.close()
}

func (l *lentHost) close() {
	l.once.Do(func() {
		if l.ours != nil {
			l.ours.Close()
		}
		l.conn.Close()
	})
}

// end releases everything. It is called when the child is gone or was never started.
func (l *lentHost) end() {
	if l == nil {
		return
	}
	if l.theirs != nil {
		l.theirs.Close()
	}
	l.close()
	l.pumps.Wait()
}

// SocketPair returns the two ends of a connection for job.Ports.Host: one for the server of the host's tools, one to
// lend. A job process gets a socket as it is, while the bytes of any other connection are carried to it.
func SocketPair() (host, lent *net.UnixConn, err error) {
	first, second, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	other, err := fileConn(second)
	if err != nil {
		return nil, nil, errors.Join(err, first.Close())
	}
	return first, other, nil
}

// socketPair returns two connected sockets, one of them as a file to hand down. Neither is inherited by accident.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := pairOfSockets()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	second := os.NewFile(uintptr(fds[1]), "host")
	first, err := fileConn(os.NewFile(uintptr(fds[0]), "host"))
	if err != nil {
		return nil, nil, errors.Join(err, second.Close())
	}
	return first, second, nil
}

// fileConn turns a file into the connection that it is. The file is closed.
func fileConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("descriptor %q is a socket of another kind", f.Name()), conn.Close())
	}
	return socket, nil
}

// OpenHost opens the descriptor that the parent handed down with "--host-fd", for Child.Host. A job process calls it
// before anything that could start another process, since from then on the descriptor is not inherited any more.
func OpenHost(fd int) (job.Host, error) {
	if fd < firstExtra {
		return nil, fmt.Errorf("open the host: %d is no descriptor that a parent hands down", fd)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "host")
	if f == nil {
		return nil, fmt.Errorf("open the host: there is no descriptor %d", fd)
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("open the host: descriptor %d: %w", fd, err)
	}
	return conn, nil
}
