package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hozo-run/hozo/internal/store"
)

// What an entry of the audit log may hold, in bytes.
const (
	maxAction = 64
	maxTarget = 256
)

// ActorKind says who did something.
type ActorKind string

// The kinds of actors.
const (
	ActorUser ActorKind = "user"
	// ActorKey is a program with an API key; the actor is the key.
	ActorKey ActorKind = "key"
	// ActorSystem is the server itself, or somebody at its command line.
	ActorSystem ActorKind = "system"
	// ActorNobody is somebody who was not signed in.
	ActorNobody ActorKind = "nobody"
)

// Outcome says what came of it.
type Outcome string

// The outcomes.
const (
	OutcomeDone Outcome = "done"
	// OutcomeRefused is something that was not permitted.
	OutcomeRefused Outcome = "refused"
	// OutcomeFailed is something that was permitted and did not work.
	OutcomeFailed Outcome = "failed"
)

// Entry is one entry of the audit log: names and times, never content and never a credential.
type Entry struct {
	Tenant string `json:"-"`
	// Seq counts the entries of the tenant from 1 without gaps.
	Seq int64 `json:"seq"`
	// At is exact to a millisecond.
	At        time.Time `json:"at"`
	ActorKind ActorKind `json:"actorKind"`
	// Actor is the id of a user or a key, "" for the others.
	Actor string `json:"actor,omitempty"`
	// Action is what was done, as "<thing>.<verb>" in lower case, such as "agent.update".
	Action string `json:"action"`
	// Target is the id of what it was done to.
	Target  string  `json:"target,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Address and RequestID are those of the request.
	Address   string `json:"address,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// Hash is SHA-256 over the hash of the entry before and all of this one.
	Hash []byte `json:"hash"`
}

// entryOf returns the entry of something that a principal did.
func entryOf(by *Principal, action, target string, from Origin) Entry {
	e := Entry{Tenant: by.Tenant, ActorKind: ActorUser, Actor: by.UserID, Action: action, Target: target, Outcome: OutcomeDone}
	if by.KeyID != "" {
		e.ActorKind, e.Actor = ActorKey, by.KeyID
	}
	return e.from(from)
}

func (e Entry) from(from Origin) Entry {
	e.Address, e.RequestID = from.Address, from.RequestID
	return e
}

// By fills in who did it: a principal, or nobody if p is nil.
func (e Entry) By(p *Principal) Entry {
	if p == nil {
		e.ActorKind, e.Actor = ActorNobody, ""
		return e
	}
	by := entryOf(p, e.Action, e.Target, Origin{})
	e.Tenant, e.ActorKind, e.Actor = by.Tenant, by.ActorKind, by.Actor
	return e
}

// Record appends an entry for something that is not this package's: what changes users, sessions and keys is recorded
// here already, together with the change. Seq, At and Hash are filled in. It returns when the entry is durable.
func (s *Service) Record(ctx context.Context, entry Entry, from Origin) error {
	return s.change(ctx, entry.from(from), func(*store.Tx) error { return nil })
}

// change makes a change and its entry in one transaction, which it may share with others.
func (s *Service) change(ctx context.Context, entry Entry, do func(*store.Tx) error) error {
	if err := entry.check(); err != nil {
		return err
	}
	entry.At = s.now().UTC().Truncate(time.Millisecond)
	entry.Target, entry.Address, entry.RequestID = oneLine(entry.Target, maxTarget), oneLine(entry.Address, maxTarget), oneLine(entry.RequestID, maxTarget)
	return s.db.Append(ctx, func(tx *store.Tx) error {
		// The entry goes first: it locks the log of the tenant, so that changes to one tenant are made one after another.
		if err := appendEntry(ctx, tx, entry); err != nil {
			return err
		}
		return do(tx)
	})
}

func (e Entry) check() error {
	if e.Tenant == "" || e.Action == "" || len(e.Action) > maxAction || strings.Trim(e.Action, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
		return fmt.Errorf("record %q: an entry needs a tenant and an action in lower-case words", e.Action)
	}
	if !slices.Contains([]Outcome{OutcomeDone, OutcomeRefused, OutcomeFailed}, e.Outcome) ||
		!slices.Contains([]ActorKind{ActorUser, ActorKey, ActorSystem, ActorNobody}, e.ActorKind) {
		return fmt.Errorf("record %s: unknown outcome %q or kind of actor %q", e.Action, e.Outcome, e.ActorKind)
	}
	return nil
}

// oneLine makes text fit for a list: no control characters, valid UTF-8, at most limit bytes.
func oneLine(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	for len(text) > limit {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// chain returns the hash of the entry after one with the hash before.
func (e Entry) chain(before []byte) []byte {
	h := sha256.New()
	h.Write(before)
	number := func(n int64) { h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	number(e.Seq)
	number(e.At.UnixMilli())
	for _, text := range []string{e.Tenant, string(e.ActorKind), e.Actor, e.Action, e.Target, string(e.Outcome), e.Address, e.RequestID} {
		number(int64(len(text)))
		h.Write([]byte(text))
	}
	return h.Sum(nil)
}

// appendEntry takes the next number. Taking it locks the log of the tenant until the transaction ends.
func appendEntry(ctx context.Context, tx *store.Tx, e Entry) error {
	if _, err := tx.Exec(ctx, "INSERT INTO audit_heads (tenant, seq, hash) VALUES (?, 0, ?) ON CONFLICT (tenant) DO NOTHING", e.Tenant, []byte{}); err != nil {
		return err
	}
	var before []byte
	if err := tx.QueryRow(ctx, "UPDATE audit_heads SET seq = seq + 1 WHERE tenant = ? RETURNING seq, hash", []any{e.Tenant}, &e.Seq, &before); err != nil {
		return err
	}
	e.Hash = e.chain(before)
	if _, err := tx.Exec(ctx, "UPDATE audit_heads SET hash = ? WHERE tenant = ?", e.Hash, e.Tenant); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO audit_log (tenant, seq, at, actor_kind, actor, action, target, outcome, address, request_id, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Tenant, e.Seq, e.At.UnixMilli(), string(e.ActorKind), e.Actor, e.Action, e.Target, string(e.Outcome), e.Address, e.RequestID, e.Hash)
	return err
}

// AuditFilter chooses entries; an empty field chooses all.
type AuditFilter struct {
	Action, Actor string
	// Before chooses entries with a smaller Seq; 0 begins at the newest.
	Before int64
	// Limit bounds the list; 0 means 100, and 1,000 is the most.
	Limit int
}

// AuditLog returns entries of a tenant, the newest first.
func (s *Service) AuditLog(ctx context.Context, tenant string, f AuditFilter) ([]Entry, error) {
	query, args := auditColumns+" WHERE tenant = ?", []any{tenant}
	for _, c := range []struct {
		when bool
		sql  string
		arg  any
	}{{f.Action != "", " AND action = ?", f.Action}, {f.Actor != "", " AND actor = ?", f.Actor}, {f.Before > 0, " AND seq < ?", f.Before}} {
		if c.when {
			query, args = query+c.sql, append(args, c.arg)
		}
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	var entries []Entry
	err := s.db.Query(ctx, scanEntries(tenant, func(e Entry) error {
		entries = append(entries, e)
		return nil
	}), query+" ORDER BY seq DESC LIMIT ?", append(args, min(limit, 1000))...)
	return entries, err
}

const auditColumns = "SELECT seq, at, actor_kind, actor, action, target, outcome, address, request_id, hash FROM audit_log"

func scanEntries(tenant string, each func(Entry) error) func(store.Row) error {
	return func(row store.Row) error {
		e, at := Entry{Tenant: tenant}, int64(0)
		if err := row.Scan(&e.Seq, &at, &e.ActorKind, &e.Actor, &e.Action, &e.Target, &e.Outcome, &e.Address, &e.RequestID, &e.Hash); err != nil {
			return err
		}
		e.At = time.UnixMilli(at).UTC()
		return each(e)
	}
}

// ChainError reports an audit log that was changed outside of this program.
type ChainError struct {
	// Seq is the first entry that does not fit.
	Seq int64
}

// Error names the entry.
func (e *ChainError) Error() string {
	return fmt.Sprintf("the audit log was changed: entry %d does not follow from those before it", e.Seq)
}

// AuditHead is the end of an audit log. Whoever keeps it elsewhere can tell later that the log up to it is still the same,
// which the chain by itself cannot: who can write to the database can write a whole new chain.
type AuditHead struct {
	Seq  int64  `json:"seq"`
	Hash []byte `json:"hash"`
}

// VerifyAudit reads the log of a tenant from its beginning and returns its end. The error is a *ChainError if an entry was
// changed, removed or put in between, or if the log does not hold known, an end of it that somebody kept; a zero known
// is not looked for.
func (s *Service) VerifyAudit(ctx context.Context, tenant string, known AuditHead) (AuditHead, error) {
	at, found := AuditHead{Hash: []byte{}}, known.Seq == 0
	err := s.db.Query(ctx, scanEntries(tenant, func(e Entry) error {
		if e.Seq != at.Seq+1 || !bytes.Equal(e.chain(at.Hash), e.Hash) {
			return &ChainError{Seq: at.Seq + 1}
		}
		at = AuditHead{Seq: e.Seq, Hash: e.Hash}
		if e.Seq == known.Seq {
			if found = bytes.Equal(e.Hash, known.Hash); !found {
				return &ChainError{Seq: e.Seq}
			}
		}
		return nil
	}), auditColumns+" WHERE tenant = ? ORDER BY seq", tenant)
	if err != nil {
		return AuditHead{}, err
	}
	var head AuditHead
	err = s.db.QueryRow(ctx, "SELECT seq, hash FROM audit_heads WHERE tenant = ?", []any{tenant}, &head.Seq, &head.Hash)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return AuditHead{}, err
	}
	if !found || head.Seq < at.Seq || head.Seq == at.Seq && at.Seq > 0 && !bytes.Equal(head.Hash, at.Hash) {
		return AuditHead{}, &ChainError{Seq: at.Seq + 1}
	}
	if head.Seq > at.Seq { // the end was cut off, or entries were added since the log was read
		return at, s.verifyEnd(ctx, tenant, at.Seq+1)
	}
	return at, nil
}

// verifyEnd reports a log that was cut off before an entry.
func (s *Service) verifyEnd(ctx context.Context, tenant string, seq int64) error {
	var n int64
	err := s.db.QueryRow(ctx, "SELECT seq FROM audit_log WHERE tenant = ? AND seq = ?", []any{tenant, seq}, &n)
	if errors.Is(err, store.ErrNotFound) {
		return &ChainError{Seq: seq}
	}
	return err
}
