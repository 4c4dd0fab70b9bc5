package secret

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

const (
	keyBytes = 32
	// maxKeyFile bounds what is read of a key file.
	maxKeyFile = 64 << 10
	fileHead   = "# Keys of hozo, the newest first. Keep a copy apart from the database: without it, stored credentials are lost.\n"
)

// Ring is the keys of an installation, the newest first. It is safe for concurrent use. Printing it shows the ids of the
// keys only.
type Ring struct {
	mu   sync.RWMutex
	keys []ringKey
	// path is the file the keys are in, "" if they were given in another way.
	path string
}

type ringKey struct {
	id string
	// bytes is a function for the reason that Value.text is one.
	bytes func() []byte
}

func keyOf(id string, data []byte) ringKey {
	return ringKey{id, func() []byte { return data }}
}

// Load returns the ring in a key file. If there is no file, it is made with one random key and mode 0600; of several
// processes that do so at once, all return the same ring. A file that others than its owner may read is refused.
func Load(path string) (*Ring, error) {
	ring, err := read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return ring, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	switch err := write(path, []ringKey{key}, os.Link); {
	case err == nil, errors.Is(err, fs.ErrExist): // another process was faster
		return read(path)
	default:
		return nil, fmt.Errorf("make the key file: %w", err)
	}
}

// Parse returns the ring in a text in the form of a key file: one "<id>:<base64 of 32 bytes>" in a line or between
// commas, the newest key first; empty lines and those that begin with # are passed over. It is for keys that an
// environment variable or a secret store provides. Errors do not quote the text.
func Parse(text string) (*Ring, error) {
	r := &Ring{}
	for _, entry := range entries(text) {
		n := len(r.keys) + 1
		id, encoded, found := strings.Cut(entry, ":")
		if !found || !validID(id) {
			return nil, fmt.Errorf("key %d of the key ring does not begin with an id of letters, digits and hyphens, and a colon", n)
		}
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(data) != keyBytes {
			return nil, fmt.Errorf("key %q of the key ring is not %d bytes in base64", id, keyBytes)
		}
		if _, twice := r.key(id); twice {
			return nil, fmt.Errorf("the key ring has two keys with the id %q", id)
		}
		r.keys = append(r.keys, keyOf(id, data))
	}
	if len(r.keys) == 0 {
		return nil, errors.New(`the key ring is empty; it needs a line "<id>:<base64 of 32 bytes>"`)
	}
	return r, nil
}

// entries returns what stands in lines and between commas, without comments.
func entries(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for entry := range strings.SplitSeq(line, ",") {
			if entry = strings.TrimSpace(entry); entry != "" {
				all = append(all, entry)
			}
		}
	}
	return all
}

func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(strings.ToLower(id), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Rotate adds a new key, with which values are sealed from now on, and writes the file of the ring. Other processes see
// the key when they load the file again. A ring that was not loaded from a file cannot be rotated here.
func (r *Ring) Rotate() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.path == "" {
		return errors.New("the key ring is not in a file; add the new key, as the first one, where the ring comes from")
	}
	now, err := read(r.path) // another process may have added a key
	if err != nil {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	keys := append([]ringKey{key}, now.keys...)
	if err := write(r.path, keys, os.Rename); err != nil {
		return fmt.Errorf("write the key file: %w", err)
	}
	r.keys = keys
	return nil
}

// Reload reads the file of the ring again, for keys that another process has added. It changes nothing if that fails.
func (r *Ring) Reload() error {
	if r.path == "" {
		return nil
	}
	fresh, err := read(r.path)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = fresh.keys
	return nil
}

// IDs returns the ids of the keys, the newest first.
func (r *Ring) IDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ids := make([]string, len(r.keys))
	for i, k := range r.keys {
		ids[i] = k.id
	}
	return ids
}

// String returns the ids of the keys.
func (r *Ring) String() string { return fmt.Sprintf("key ring %v", r.IDs()) }

// Format writes String for every verb: some of them would look into the struct.
func (r *Ring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(r.String())) } // fmt has nowhere to report it

// LogValue is String.
func (r *Ring) LogValue() slog.Value { return slog.StringValue(r.String()) }

func (r *Ring) newest() ringKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.keys[0]
}

func (r *Ring) key(id string) (ringKey, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	i := slices.IndexFunc(r.keys, func(k ringKey) bool { return k.id == id })
	if i < 0 {
		return ringKey{}, false
	}
	return r.keys[i], true
}

func newKey() (ringKey, error) {
	data := make([]byte, keyBytes)
	_, err := rand.Read(data)
	return keyOf("k-"+strings.ToLower(rand.Text()[:10]), data), err
}

func read(path string) (*Ring, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the key file %s may be read by others than its owner (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fmt.Errorf("the key file %s is no regular file of at most %d bytes", path, maxKeyFile)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(file); err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	ring, err := Parse(text.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	ring.path = path
	return ring, nil
}

// write makes the file whole or not at all, and durable: place puts the finished file under its name.
func write(path string, keys []ringKey, place func(from, to string) error) error {
	text := []byte(fileHead)
	for _, k := range keys {
		text = fmt.Appendf(text, "%s:%s\n", k.id, base64.StdEncoding.EncodeToString(k.bytes()))
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // has mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // after a rename there is nothing to remove
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := place(file.Name(), path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// syncDirectory makes the name of a new file durable.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
