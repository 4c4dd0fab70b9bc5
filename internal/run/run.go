// Package run keeps runs: what was asked for, in which state it is, and everything that its attempts recorded (journal,
// events, steps). A run is one durable execution with one attempt after another; the process that executes it holds a
// lease with a fence, and every write of an attempt carries both in its own statement, so that a process that was paused
// or cut off can write nothing once another one has taken over. The package knows the database and the records of a job;
// it starts no job, which is orchestrator's work, and it does not know who may see a run, which is api's.
//
// A Store creates runs, hands them out (Take), keeps them (Renew), ends them and answers questions about them. A Recorder
// is the job.Journal of one attempt and takes its events: what it acknowledges is on the disk. Follow reads the events of
// a run as they come, from any process, without gaps and without repeats.
package run

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/hozo-run/hozo/job"
)

// Request is what somebody asks for. It is kept as it was given.
type Request struct {
	// Tenant owns the run; Project is one of the tenant's, or "".
	Tenant, Project string
	// Agent is a name of the catalog. Version is "" for the current one; which one that is gets decided when the run starts.
	Agent, Version string
	// Origin says where the run comes from: "api", "schedule", "workflow" and so on. StartedBy is who asked.
	Origin, StartedBy string
	// Parent is the run to which this one belongs, or "".
	Parent string
	// Input is everything else that whoever compiles the run needs, a JSON document without credentials. Nil means {}.
	Input json.RawMessage
	// IdempotencyKey makes the second request with the same key and the same content the first one. "" means none.
	IdempotencyKey string
	// ProjectLimit is how many runs of the project may run at once; 0 means any number.
	ProjectLimit int64
	// NotBefore delays the run; the zero time does not.
	NotBefore time.Time
}

// Run is one run as the database has it.
type Run struct {
	ID string `json:"id"`
	// The fields of the Request.
	Tenant       string          `json:"-"`
	Project      string          `json:"project,omitempty"`
	Agent        string          `json:"agent"`
	Version      string          `json:"version,omitempty"`
	Origin       string          `json:"origin,omitempty"`
	StartedBy    string          `json:"startedBy,omitempty"`
	Parent       string          `json:"parent,omitempty"`
	Input        json.RawMessage `json:"input"`
	ProjectLimit int64           `json:"-"`

	State State `json:"state"`
	// Resolved is the version of the agent that runs, and Definition the digest of its definition, once it has started.
	Resolved   string `json:"resolvedVersion,omitempty"`
	Definition string `json:"definition,omitempty"`
	// NotBefore is when a queued run may start, zero for at once.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Attempts counts the attempts that were begun; Losses those in a row that ended without a word, Retries the attempts
	// in a row that could not begin.
	Attempts int64 `json:"attempts"`
	Losses   int64 `json:"losses,omitempty"`
	Retries  int64 `json:"retries,omitempty"`
	// Place is where the directories of the last attempt are (see Lease.Place).
	Place string `json:"-"`
	// CancelCause is set once somebody wants the run to end.
	CancelCause string `json:"cancelCause,omitempty"`
	// Waits are the calls that a suspended run waits for.
	Waits []job.Wait `json:"waits,omitempty"`
	// Reason, Code and Message say why a run failed or was cancelled.
	Reason  job.Reason `json:"reason,omitempty"`
	Code    string     `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
	// Outcome is the data of the terminal event of a run that has ended, Usage what it used until its last attempt ended.
	Outcome json.RawMessage `json:"outcome,omitempty"`
	Usage   json.RawMessage `json:"usage,omitempty"`

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`

	// QueueID is the entry of the queue that wakes somebody for the run, 0 if there is none.
	QueueID int64 `json:"-"`
	fence   int64
}

// Attempt is one attempt of a run.
type Attempt struct {
	N int64 `json:"n"`
	// Owner is the process that made it.
	Owner     string    `json:"owner"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// Ending is "" while the attempt lasts, the state of the run after it, or EndedLost.
	Ending  string `json:"ending,omitempty"`
	Message string `json:"message,omitempty"`
}

// EndedLost is the ending of an attempt whose process ended without a word.
const EndedLost = "lost"

// Lease is the right to execute a run. Whoever holds it writes with it; a lease that was lost writes nothing.
type Lease struct {
	Run string
	// Owner is the incarnation of a process: a name that no other process has, nor this one after its next start.
	Owner string
	Fence int64
	// Attempt is the number of the attempt that began with the lease.
	Attempt int64
}

// The errors that callers decide on, beside those of package store.
var (
	// ErrLost is the error of a write whose lease another process has taken, or that comes after the end of the run.
	ErrLost = errors.New("the lease of the run is lost")
	// ErrBusy is the error of a run that may not start yet, because as many run as may.
	ErrBusy = errors.New("as many runs are running as may")
	// ErrFull is the error of a run that is not accepted, because too many wait already.
	ErrFull = errors.New("the queue is full")
	// ErrOtherRequest is the error of an idempotency key that was used for a different request.
	ErrOtherRequest = errors.New("the idempotency key belongs to another request")
	// ErrState is the error of something that a run in its state cannot do.
	ErrState = errors.New("not possible in the state of the run")
)

// NewID makes the id of a run. Ids sort by the time at which they were made, to the millisecond.
func NewID(now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // it never fails
	return "run_" + lowerHex32().EncodeToString(b[:])
}

// NewOwner makes the name of a process incarnation. Label is for people: a machine, a role.
func NewOwner(label string) string {
	if label == "" {
		return rand.Text()
	}
	return label + "/" + rand.Text()
}

// lowerHex32 is the base32 whose order is that of the bytes, in small letters.
func lowerHex32() *base32.Encoding {
	return base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)
}
