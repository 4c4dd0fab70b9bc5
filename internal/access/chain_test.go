package access

import (
	"encoding/hex"
	"testing"
	"time"
)

func TestAHashDependsOnTheEntryBeforeAndOnEveryField(t *testing.T) {
	t.Parallel()
	base := Entry{Tenant: "t", Seq: 7, At: time.UnixMilli(5), ActorKind: ActorUser, Actor: "ab", Action: "c", Target: "d", Outcome: OutcomeDone, Address: "e", RequestID: "f"}
	seen := map[string]string{hex.EncodeToString(base.chain([]byte{1})): "the entry itself"}
	for name, change := range map[string]func(*Entry) []byte{
		"before":  func(*Entry) []byte { return []byte{2} },
		"tenant":  func(e *Entry) []byte { e.Tenant = "u"; return []byte{1} },
		"seq":     func(e *Entry) []byte { e.Seq++; return []byte{1} },
		"at":      func(e *Entry) []byte { e.At = time.UnixMilli(6); return []byte{1} },
		"kind":    func(e *Entry) []byte { e.ActorKind = ActorKey; return []byte{1} },
		"actor":   func(e *Entry) []byte { e.Actor = "xx"; return []byte{1} },
		"action":  func(e *Entry) []byte { e.Action = "x"; return []byte{1} },
		"target":  func(e *Entry) []byte { e.Target = "x"; return []byte{1} },
		"outcome": func(e *Entry) []byte { e.Outcome = OutcomeFailed; return []byte{1} },
		"address": func(e *Entry) []byte { e.Address = "x"; return []byte{1} },
		"request": func(e *Entry) []byte { e.RequestID = "x"; return []byte{1} },
		"borders": func(e *Entry) []byte { e.Actor, e.Action = "a", "bc"; return []byte{1} },
	} {
		e := base
		before := change(&e)
		hash := hex.EncodeToString(e.chain(before))
		if other, twice := seen[hash]; twice {
			t.Errorf("a change of %s has the hash of %s", name, other)
		}
		seen[hash] = name
	}
}
