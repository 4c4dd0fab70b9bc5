package access

import (
	"strings"
	"testing"

	"github.com/hozo-run/hozo/internal/secret"
)

func TestAPasswordIsTheSameHoweverItsAccentsAreTyped(t *testing.T) {
	t.Parallel()
	cost := Cost{Memory: 64, Time: 1, Threads: 1}
	hashed := cost.hash(secret.New("cafe\u0301 au lait"))
	if _, ok := verify(hashed, secret.New("caf\u00e9 au lait")); !ok {
		t.Error("the composed form is another password")
	}
	if _, ok := verify(hashed, secret.New("cafe au lait")); ok {
		t.Error("the password without its accent is taken")
	}
	if one, two := cost.hash(secret.New("a")), cost.hash(secret.New("a")); one == two {
		t.Error("equal passwords have equal hashes")
	}
}

// FuzzAStoredHash must neither panic nor take endless memory, whatever somebody has put into the column.
func FuzzAStoredHash(f *testing.F) {
	valid := Cost{Memory: 64, Time: 1, Threads: 1}.hash(secret.New("x"))
	f.Add(valid)
	f.Add(strings.Replace(valid, "m=64", "m=4294967295", 1))
	f.Add(strings.Replace(valid, "t=1", "t=0", 1))
	f.Add(strings.Replace(valid, "t=1", "t=4294967295", 1))
	f.Add(strings.Replace(valid, "argon2id", "argon2i", 1))
	f.Add("$argon2id$v=19$m=64,t=1,p=1$$")
	f.Add("")
	f.Fuzz(func(t *testing.T, encoded string) {
		cost, salt, sum, ok := parseHash(encoded)
		if !ok {
			return
		}
		if cost.check() != nil || cost.Memory > maxMemory || cost.Time > maxTime || len(sum) < 16 {
			t.Errorf("%q is taken as %+v with %d bytes of salt and %d of hash", encoded, cost, len(salt), len(sum))
		}
	})
}

func TestGroupsOfAClaim(t *testing.T) {
	t.Parallel()
	for claim, want := range map[string]string{`"a"`: "a", `["a","b"]`: "a b", `[]`: "", `""`: "", `5`: "", `{"a":1}`: "", `["a",5]`: "", ``: "", `null`: ""} {
		if got := strings.Join(texts([]byte(claim)), " "); got != want {
			t.Errorf("%s: %q, want %q", claim, got, want)
		}
	}
}
