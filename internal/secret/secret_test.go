package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hozo-run/hozo/internal/secret"
)

const canary = "canary-4f9a1c77-value"

func place() secret.Place {
	return secret.Place{Tenant: "t", Table: "providers", ID: "p", Field: "key"}
}

func load(t *testing.T, path string) *secret.Ring {
	t.Helper()
	ring, err := secret.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func seal(t *testing.T, ring *secret.Ring, place secret.Place) string {
	t.Helper()
	sealed, err := ring.Seal(place, secret.New(canary))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestASealedValueOpensAtItsPlaceOnly(t *testing.T) {
	t.Parallel()
	ring := load(t, filepath.Join(t.TempDir(), "keys"))
	sealed := seal(t, ring, place())
	if got, err := ring.Open(place(), sealed); err != nil || got.Reveal() != canary {
		t.Fatalf("%q, %v", got.Reveal(), err)
	}
	for name, other := range map[string]secret.Place{
		"tenant": {Tenant: "u", Table: "providers", ID: "p", Field: "key"},
		"table":  {Tenant: "t", Table: "mcp_servers", ID: "p", Field: "key"},
		"row":    {Tenant: "t", Table: "providers", ID: "q", Field: "key"},
		"field":  {Tenant: "t", Table: "providers", ID: "p", Field: "other"},
		"border": {Tenant: "t", Table: "provider", ID: "sp", Field: "key"},
	} {
		if _, err := ring.Open(other, sealed); !errors.Is(err, secret.ErrDamaged) {
			t.Errorf("another %s: error = %v", name, err)
		}
	}
}

func TestTwoSealsOfOneValueDiffer(t *testing.T) {
	t.Parallel()
	ring := load(t, filepath.Join(t.TempDir(), "keys"))
	if a, b := seal(t, ring, place()), seal(t, ring, place()); a == b {
		t.Error("equal values can be told by their sealed forms")
	}
}

func TestAChangedSealIsRefused(t *testing.T) {
	t.Parallel()
	ring := load(t, filepath.Join(t.TempDir(), "keys"))
	sealed := seal(t, ring, place())
	head := sealed[:strings.LastIndexByte(sealed, ':')+1]
	data, err := base64.RawURLEncoding.DecodeString(sealed[len(head):])
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1
		if _, err := ring.Open(place(), head+base64.RawURLEncoding.EncodeToString(changed)); !errors.Is(err, secret.ErrDamaged) {
			t.Fatalf("byte %d: error = %v", i, err)
		}
	}
	for _, text := range []string{"", "hs1", "hs1:", "hs1:k", "hs1:k:", "hs2" + sealed[3:], sealed[:len(sealed)-1], sealed + "=", head, canary} {
		if _, err := ring.Open(place(), text); err == nil {
			t.Errorf("%q was opened", text)
		}
	}
}

func TestTheKeyFileIsMadeOnceAndForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "keys")
	rings := make([]*secret.Ring, 16)
	errs := make([]error, len(rings))
	var all sync.WaitGroup
	for i := range rings {
		all.Go(func() { rings[i], errs[i] = secret.Load(path) })
	}
	all.Wait()
	for i, ring := range rings {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if got, err := ring.Open(place(), seal(t, rings[0], place())); err != nil || got.Reveal() != canary {
			t.Errorf("ring %d: %v", i, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

func TestAKeyFileThatOthersMayReadIsRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no modes on this system")
	}
	path := filepath.Join(t.TempDir(), "keys")
	load(t, path)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := secret.Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: error = %v", mode, err)
		}
	}
}

func TestRotationSealsWithTheNewKeyAndOpensWithTheOld(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	ring, elsewhere := load(t, path), load(t, path)
	old := seal(t, ring, place())
	if ring.Stale(old) {
		t.Error("the newest key is stale")
	}
	if err := ring.Rotate(); err != nil {
		t.Fatal(err)
	}
	fresh := seal(t, ring, place())
	if !ring.Stale(old) || ring.Stale(fresh) || len(ring.IDs()) != 2 {
		t.Errorf("stale: old %t, new %t; keys %v", ring.Stale(old), ring.Stale(fresh), ring.IDs())
	}
	for name, r := range map[string]*secret.Ring{"the ring": ring, "the file": load(t, path)} {
		for _, sealed := range []string{old, fresh} {
			if got, err := r.Open(place(), sealed); err != nil || got.Reveal() != canary {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := elsewhere.Open(place(), fresh); !errors.Is(err, secret.ErrKeyLost) {
		t.Errorf("a ring from before: error = %v", err)
	}
	if err := elsewhere.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Open(place(), fresh); err != nil {
		t.Errorf("after a reload: %v", err)
	}
	// A process that rotates without knowing of an earlier rotation loses no key.
	if err := load(t, path).Rotate(); err != nil {
		t.Fatal(err)
	}
	if err := ring.Rotate(); err != nil || len(ring.IDs()) != 4 {
		t.Errorf("keys %v, %v", ring.IDs(), err)
	}
}

func TestALostKeyIsSaidClearly(t *testing.T) {
	t.Parallel()
	sealed := seal(t, load(t, filepath.Join(t.TempDir(), "keys")), place())
	other := load(t, filepath.Join(t.TempDir(), "keys"))
	_, err := other.Open(place(), sealed)
	if !errors.Is(err, secret.ErrKeyLost) || other.Has(sealed) {
		t.Fatalf("error = %v", err)
	}
	for _, want := range []string{"providers", `"p"`, "restore the key file", strings.Split(sealed, ":")[1]} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestKeysFromTheEnvironment(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	older := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32))
	ring, err := secret.Parse("# ours\nb:" + key + ",a:" + older + "\n\n")
	if err != nil || strings.Join(ring.IDs(), " ") != "b a" {
		t.Fatalf("%v, %v", ring, err)
	}
	if got, err := ring.Open(place(), seal(t, ring, place())); err != nil || got.Reveal() != canary {
		t.Error(err)
	}
	if err := ring.Rotate(); err == nil {
		t.Error("a ring that is not ours to write was rotated")
	}
	for _, text := range []string{"", "# nothing", key, ":" + key, "a b:" + key, "a:" + key[:20], "a:not base64", "a:" + key + ",a:" + older,
		"a:" + base64.StdEncoding.EncodeToString([]byte(canary))} {
		_, err := secret.Parse(text)
		if err == nil {
			t.Errorf("%q was taken", text)
			continue
		}
		if strings.Contains(err.Error(), key[:20]) || strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte(canary))) {
			t.Errorf("the error quotes the key: %v", err)
		}
	}
}

// TestNothingShowsASecret prints values and rings in every way there is.
func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	ring := load(t, path)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(file)), "\n")
	_, encoded, _ := strings.Cut(lines[len(lines)-1], ":")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) != 32 {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	value := secret.New(canary)
	held := struct {
		V secret.Value
		P *secret.Value
		R *secret.Ring
		v secret.Value
		r *secret.Ring
	}{value, &value, ring, value, ring}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%08b", "%e", "%c", "%U"} {
		fmt.Fprintf(&out, verb, value)
		fmt.Fprintf(&out, verb, &value)
		fmt.Fprintf(&out, verb, ring)
		fmt.Fprintf(&out, verb, held)
		fmt.Fprintf(&out, verb, []any{value, ring})
	}
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("x", "value", value, "held", held, "ring", ring)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "value", value, "held", held, "ring", ring)
	if _, err := json.Marshal(held); err == nil {
		t.Error("a value was encoded as JSON")
	}
	if _, err := json.Marshal(map[string]secret.Value{"a": value}); err == nil {
		t.Error("a value was encoded as JSON")
	}
	if err := gob.NewEncoder(&out).Encode(&value); err == nil {
		t.Error("a value was encoded by gob")
	}
	text, err := json.Marshal(map[string]any{"ring": ring})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)
	out.WriteString(seal(t, ring, place()))
	for _, hidden := range []string{canary, string(key)} {
		for _, form := range forms(hidden) {
			if strings.Contains(strings.ToLower(out.String()), strings.ToLower(form)) {
				t.Errorf("a secret is shown as %q", form)
			}
		}
	}
}

func forms(text string) []string {
	b := []byte(text)
	return []string{text, hex.EncodeToString(b), base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b), fmt.Sprint(b), fmt.Sprintf("%d", b)}
}

func BenchmarkSealAndOpen(b *testing.B) {
	ring, err := secret.Load(filepath.Join(b.TempDir(), "keys"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		sealed, err := ring.Seal(place(), secret.New(canary))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ring.Open(place(), sealed); err != nil {
			b.Fatal(err)
		}
	}
}
