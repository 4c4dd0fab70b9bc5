package server

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/secret"
)

// The names in a data directory.
const (
	databaseFile = "hozo.db"
	keyFile      = "keys"
	localKeyFile = "local-key"
	placeFile    = "place"
	lockFile     = "lock"
	serverFile   = "server.json"
	blobsDir     = "blobs"
	runsDir      = "runs"
	cacheDir     = "cache"
)

// Local is what a program on the machine of a running server needs to talk to it.
type Local struct {
	// URL is where the server listens, PID its process.
	URL string `json:"url"`
	PID int    `json:"pid"`
	// Key permits everything.
	Key secret.Value `json:"-"`
}

// ErrNoServer is the error of ReadLocal where no server was started.
var ErrNoServer = errors.New("no server was started with this data directory")

// ReadLocal returns how to reach the server of a data directory. It does not ask whether the server is still there. The
// error is ErrNoServer where none was started.
func ReadLocal(data string) (Local, error) {
	var local Local
	text, err := readLimited(filepath.Join(data, serverFile), 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return local, ErrNoServer
	}
	if err != nil {
		return local, err
	}
	if err := json.Unmarshal(text, &local); err != nil {
		return local, fmt.Errorf("%s: %w", filepath.Join(data, serverFile), err)
	}
	key, err := readLimited(filepath.Join(data, localKeyFile), 4<<10)
	if err != nil {
		return local, err
	}
	local.Key = secret.New(strings.TrimSpace(string(key)))
	return local, nil
}

// data is an open data directory. Of two servers on one directory the second one does not start.
type data struct {
	dir   string
	lock  *os.File
	local secret.Value
	place string
}

// openData opens a data directory, which is made if it is missing.
func openData(dir string) (*data, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	d := &data{dir: dir}
	var err error
	if d.lock, err = os.OpenFile(d.path(lockFile), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("open the data directory: %w", err)
	}
	if err := lock(d.lock); err != nil {
		return nil, errors.Join(fmt.Errorf("another server works in %s; stop it first or choose another directory with --data: %w", dir, err), d.lock.Close())
	}
	key, err := once(d.path(localKeyFile), func() string { return access.NewKey().Reveal() })
	if err == nil {
		d.local = secret.New(key)
		d.place, err = once(d.path(placeFile), rand.Text)
	}
	if err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

func (d *data) path(name string) string { return filepath.Join(d.dir, name) }

// close gives the directory up to others.
func (d *data) close() error { return d.lock.Close() }

// announce writes down where the server listens.
func (d *data) announce(url string) error {
	text, err := json.Marshal(Local{URL: url, PID: os.Getpid()})
	if err != nil {
		return err
	}
	return replaceFile(d.path(serverFile), append(text, '\n'))
}

// silence removes what announce wrote.
func (d *data) silence() error {
	err := os.Remove(d.path(serverFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// once returns the content of a private file, which is made with what content returns if it is missing.
func once(path string, content func() string) (string, error) {
	text, err := readLimited(path, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(content() + "\n")
		err = replaceFile(path, text)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("%s may be read by others (mode %04o): chmod 600 it", path, mode)
	}
	return strings.TrimSpace(string(text)), nil
}

// replaceFile writes a private file, whole or not at all.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
