package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/problem"
)

const (
	// minPassword and maxPassword bound a password, in characters and in bytes.
	minPassword = 12
	maxPassword = 1024
	// minVariety is how many different characters a password has.
	minVariety = 5
	// maxHashing is how many passwords are hashed at once.
	maxHashing = 4
	saltBytes  = 16
	hashBytes  = 32
	// maxMemory, in KiB, and maxTime bound what a stored hash may ask for.
	maxMemory = 1 << 20
	maxTime   = 64
)

// Cost says how much work it is to hash a password with argon2id (RFC 9106).
type Cost struct {
	// Memory is in KiB, Time counts passes, Threads run at once.
	Memory, Time uint32
	Threads      uint8
}

// DefaultCost is what OWASP advises: it takes some 25 ms and 19 MiB.
func DefaultCost() Cost { return Cost{Memory: 19 << 10, Time: 2, Threads: 1} }

func (c Cost) check() error {
	if c.Time < 1 || c.Threads < 1 || c.Memory < 8*uint32(c.Threads) || c.Memory > maxMemory || c.Time > maxTime {
		return errors.New("the cost of password hashes must be 1 to 64 passes, 1 or more threads, and 8 KiB for each thread to 1 GiB of memory")
	}
	return nil
}

// hash returns a password's hash with its parameters, as "$argon2id$v=19$m=…,t=…,p=…$salt$hash".
func (c Cost) hash(password secret.Value) string {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	sum := argon2.IDKey([]byte(norm.NFC.String(password.Reveal())), salt, c.Time, c.Memory, c.Threads, hashBytes)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Time, c.Threads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum))
}

// verify reports whether password is the one that was hashed, and at which cost.
func verify(encoded string, password secret.Value) (Cost, bool) {
	cost, salt, sum, ok := parseHash(encoded)
	if !ok {
		return Cost{}, false
	}
	got := argon2.IDKey([]byte(norm.NFC.String(password.Reveal())), salt, cost.Time, cost.Memory, cost.Threads, uint32(len(sum)))
	return cost, subtle.ConstantTimeCompare(got, sum) == 1
}

func parseHash(encoded string) (cost Cost, salt, sum []byte, ok bool) {
	parts := strings.Split(encoded, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return Cost{}, nil, nil, false
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &cost.Memory, &cost.Time, &cost.Threads); n != 3 || err != nil || cost.check() != nil {
		return Cost{}, nil, nil, false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return Cost{}, nil, nil, false
	}
	sum, err = base64.RawStdEncoding.DecodeString(parts[5])
	return cost, salt, sum, err == nil && len(sum) >= 16 && len(sum) <= 64
}

// hashPassword hashes when it is its turn.
func (s *Service) hashPassword(ctx context.Context, password secret.Value) (string, error) {
	if err := s.enterHashing(ctx); err != nil {
		return "", err
	}
	defer s.leaveHashing()
	return s.config.Cost.hash(password), nil
}

// verifyPassword does the same work for an account without a password, encoded "", as for any other.
func (s *Service) verifyPassword(ctx context.Context, encoded string, password secret.Value) (cost Cost, ok bool, err error) {
	if err := s.enterHashing(ctx); err != nil {
		return Cost{}, false, err
	}
	defer s.leaveHashing()
	if encoded == "" {
		verify(s.decoy(), password)
		return Cost{}, false, nil
	}
	cost, ok = verify(encoded, password)
	return cost, ok, nil
}

func (s *Service) enterHashing(ctx context.Context) error {
	select {
	case s.hashing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Service) leaveHashing() { <-s.hashing }

// checkPassword adds what is wrong with a new password. It never quotes it. There are no rules about kinds of characters:
// they make passwords worse.
func checkPassword(problems *problem.List, password secret.Value, email string) {
	const at = "/password"
	text := norm.NFC.String(password.Reveal())
	different := map[rune]bool{}
	for _, r := range text {
		different[r] = true
	}
	switch name, _, _ := strings.Cut(email, "@"); {
	case !utf8.ValidString(text):
		problems.Add("invalid", at, "the password is not UTF-8")
	case len(text) > maxPassword:
		problems.Add("too-long", at, "the password has more than %d bytes", maxPassword)
	case utf8.RuneCountInString(text) < minPassword:
		problems.AddHint("too-short", at, "several words are easy to remember", "the password has fewer than %d characters", minPassword)
	case len(different) < minVariety:
		problems.Add("too-simple", at, "the password has fewer than %d different characters", minVariety)
	case strings.EqualFold(text, email) || name != "" && strings.EqualFold(strings.Trim(text, "0123456789!.-_ "), name):
		problems.Add("too-simple", at, "the password is the e-mail address")
	}
}
