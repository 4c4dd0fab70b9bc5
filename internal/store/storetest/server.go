package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// server is a PostgreSQL server for tests.
type server struct {
	// address has the name of the database to be filled in.
	address url.URL
	// dir is where a server that was started keeps its files, "" for one that was there.
	dir string
	bin string
}

var (
	started     *server
	startServer = sync.OnceValues(func() (*server, error) {
		s, err := newServer()
		started = s
		return s, err
	})
)

func theServer() (*server, error) { return startServer() }

func newServer() (*server, error) {
	if named := os.Getenv("HOZO_TEST_POSTGRES"); named != "" {
		address, err := url.Parse(named)
		if err != nil {
			return nil, errors.New("HOZO_TEST_POSTGRES is not a URL")
		}
		return &server{address: *address}, nil
	}
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	return run(bin)
}

// findBinaries returns the directory of initdb and pg_ctl: on the path, or where Debian puts them, the newest version
// first.
func findBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("initdb is neither on the path nor below /usr/lib/postgresql; install the package postgresql")
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	return filepath.Dir(found[0]), nil
}

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// run makes a server that listens on a socket in a directory of its own, and on nothing else. Safety against a loss of
// power is switched off: these data are for a test.
func run(bin string) (*server, error) {
	dir, err := os.MkdirTemp("", "hozo-pg-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, bin: bin, address: url.URL{Scheme: "postgres", User: url.User("postgres"), RawQuery: "host=" + url.QueryEscape(dir)}}
	owner, err := unprivileged(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	data := filepath.Join(dir, "data")
	for _, args := range [][]string{
		{"initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"},
		{"pg_ctl", "-D", data, "-w", "-s", "-l", filepath.Join(dir, "log"), "start", "-o",
			"-k " + dir + " -c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=200"},
	} {
		command := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		command.SysProcAttr = owner
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w: %s", args[0], err, out), os.RemoveAll(dir))
		}
	}
	return s, nil
}

// unprivileged returns under whom the server runs: it refuses to run as root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		if owner, err = user.Lookup("nobody"); err != nil {
			return nil, errors.New("PostgreSQL does not run as root, and there is no other user")
		}
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(owner.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, os.Chown(dir, uid, gid)
}

func stopServer() error {
	s := started
	if s == nil || s.dir == "" {
		return nil
	}
	owner, err := unprivileged(s.dir)
	if err != nil {
		return err
	}
	command := exec.Command(filepath.Join(s.bin, "pg_ctl"), "-D", filepath.Join(s.dir, "data"), "-w", "-s", "-m", "immediate", "stop")
	command.SysProcAttr, command.Dir = owner, s.dir
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *server) url(database string) string {
	address := s.address
	address.Path = "/" + database
	return address.String()
}

func (s *server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// create makes an empty database and returns its name.
func (s *server) create(ctx context.Context) (string, error) {
	name := "hozo_" + strings.ToLower(rand.Text())
	return name, s.exec(ctx, "CREATE DATABASE "+name)
}

func (s *server) drop(ctx context.Context, name string) error {
	return s.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}
