package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/hozo-run/hozo/internal/secret"
)

// KeyPrefix begins every API key, so that scanners for leaked credentials know one.
const KeyPrefix = "hozo_"

const (
	tokenBytes = 32
	// keyBody and keyCheck are the lengths of the parts of a key after its prefix.
	keyBody  = 52
	keyCheck = 7
	// keyHint is how much of a key is shown in lists.
	keyHint = len(KeyPrefix) + 6
)

// newID returns an id with a prefix. Ids are no secrets, but nobody can guess one.
func newID(prefix string) string { return prefix + "_" + strings.ToLower(rand.Text()) }

// newToken returns 256 random bits as text.
func newToken() secret.Value {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails
	return secret.New(base64.RawURLEncoding.EncodeToString(b))
}

// digest is what is stored of a token. A token is random, so one round of SHA-256 is enough.
func digest(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// keyAlphabet is base32 in lower case: nothing in a key is lost by a double click or a change of case.
func keyAlphabet() *base32.Encoding {
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
}

// newKey returns an API key: the prefix, 256 random bits and a checksum.
func newKey() secret.Value {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails
	body := keyAlphabet().EncodeToString(b)
	return secret.New(KeyPrefix + body + keyChecksum(body))
}

func keyChecksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	return keyAlphabet().EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// IsKey reports whether text can be an API key: a mistyped one is known without a look into the database.
func IsKey(text string) bool {
	rest, ok := strings.CutPrefix(text, KeyPrefix)
	return ok && len(rest) == keyBody+keyCheck && keyChecksum(rest[:keyBody]) == rest[keyBody:]
}

// CSRFToken returns the token that a page sends with each change, beside the cookie of its session. It follows from the
// token of the session, so nothing is stored, and it dies with the session.
func CSRFToken(session secret.Value) string {
	mac := hmac.New(sha256.New, []byte(session.Reveal()))
	mac.Write([]byte("hozo csrf 1"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// CheckCSRF returns ErrCSRF if given is not the token of the session. The server asks for it with every request that has a
// session and may change something; a request with an API key needs none.
func CheckCSRF(session secret.Value, given string) error {
	if !hmac.Equal([]byte(CSRFToken(session)), []byte(given)) {
		return ErrCSRF
	}
	return nil
}
