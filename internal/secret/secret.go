// Package secret keeps credentials at rest. A Ring of keys seals values before they are stored, so that a copy of the
// database gives none of them away; the keys stand in a file of their own or come from the environment, never from the
// database. A sealed value is bound to its place (tenant, table, row and field) and opens nowhere else, so a row cannot
// be made to use the credential of another one.
//
// New values are sealed with the newest key; older keys stay in the ring until nothing needs them, and Stale says which
// values are due to be sealed again. A Value in memory shows itself to nobody who prints, logs or encodes it by mistake:
// only Reveal returns it.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// ErrKeyLost is the error of a value whose key is not in the ring: the key file is another one than that with which the
// value was sealed.
var ErrKeyLost = errors.New("the key that seals it is not in the key ring; restore the key file that belongs to this database")

// ErrDamaged is the error of a sealed value that does not open: it was changed, or moved here from another place.
var ErrDamaged = errors.New("the sealed value was changed or belongs to another place")

// format begins every sealed value. It changes when the way of sealing does.
const format = "hs1"

// Place is where a sealed value stands.
type Place struct {
	Tenant, Table, ID, Field string
}

// bytes returns the place so that no two places have equal bytes. The key is part of it: a value says by which key it
// opens, and must not be told otherwise.
func (p Place) bytes(key string) []byte {
	var b []byte
	for _, part := range []string{format, key, p.Tenant, p.Table, p.ID, p.Field} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// Seal encrypts a value for its place with the newest key. The result is text without spaces and quotes.
func (r *Ring) Seal(place Place, value Value) (string, error) {
	key := r.newest()
	aead, err := key.aead()
	if err != nil {
		return "", err
	}
	return format + ":" + key.id + ":" + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, []byte(value.Reveal()), place.bytes(key.id))), nil
}

// Open decrypts what Seal returned for the same place. Errors are ErrKeyLost, with the id of the key, or ErrDamaged; they
// name the place, which is no secret.
func (r *Ring) Open(place Place, sealed string) (Value, error) {
	id, data, ok := split(sealed)
	if !ok {
		return Value{}, place.fault(ErrDamaged)
	}
	key, known := r.key(id)
	if !known {
		return Value{}, place.fault(fmt.Errorf("key %q: %w", id, ErrKeyLost))
	}
	aead, err := key.aead()
	if err != nil {
		return Value{}, err
	}
	plain, err := aead.Open(nil, nil, data, place.bytes(id))
	if err != nil {
		return Value{}, place.fault(ErrDamaged)
	}
	return New(string(plain)), nil
}

// Stale reports whether a sealed value was sealed with another key than the newest one.
func (r *Ring) Stale(sealed string) bool {
	id, _, ok := split(sealed)
	return ok && id != r.newest().id
}

// Has reports whether the key of a sealed value is in the ring.
func (r *Ring) Has(sealed string) bool {
	id, _, ok := split(sealed)
	if !ok {
		return false
	}
	_, known := r.key(id)
	return known
}

func (p Place) fault(err error) error {
	return fmt.Errorf("open the %s of %s %q: %w", p.Field, p.Table, p.ID, err)
}

func split(sealed string) (key string, data []byte, ok bool) {
	rest, ok := strings.CutPrefix(sealed, format+":")
	if !ok {
		return "", nil, false
	}
	key, text, ok := strings.Cut(rest, ":")
	if !ok {
		return "", nil, false
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return key, data, err == nil
}

// aead returns AES-256-GCM, which makes a random nonce for each value and puts it in front. A key is good for 2^32 values.
func (k ringKey) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.bytes())
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
