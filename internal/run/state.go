package run

import "slices"

// State is where a run is in its life.
type State string

// The states. The last three are final.
const (
	// Queued runs wait for a process with room: new ones, and those that go on later.
	Queued State = "queued"
	// Running runs have an owner with a lease, or had one whose lease has expired.
	Running State = "running"
	// Suspended runs wait for decisions of people.
	Suspended State = "suspended"
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// States returns every state.
func States() []State { return []State{Queued, Running, Suspended, Completed, Failed, Cancelled} }

// Final reports whether a run in this state has ended.
func (s State) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// Cause is what moves a run from one state to another.
type Cause string

// The causes.
const (
	// CauseTake is a process that begins an attempt; from Running it takes over an expired lease.
	CauseTake Cause = "take"
	// CauseRelease is an attempt that ends so that another can go on: a drain, a retry.
	CauseRelease Cause = "release"
	// CauseSuspend is an attempt that ends until something is decided.
	CauseSuspend Cause = "suspend"
	// CauseDecide is the last decision that a suspended run waited for.
	CauseDecide Cause = "decide"
	// CauseComplete, CauseFail and CauseAbort are the ends that an attempt reports.
	CauseComplete Cause = "complete"
	CauseFail     Cause = "fail"
	CauseAbort    Cause = "abort"
	// CauseCancel is somebody who wants a run to end that nobody executes. A running one is told, and ends by CauseAbort.
	CauseCancel Cause = "cancel"
	// CausePark is the end of a run that was lost too often.
	CausePark Cause = "park"
)

// transition is one row of the state machine.
type transition struct {
	from  State
	cause Cause
	to    State
}

// transitions is the state machine, whole: what is not in it does not happen.
//
//	          take                complete, fail, abort, park
//	queued ──────────▶ running ──────────────────────────────▶ completed, failed, cancelled
//	  ▲ ▲   release      │  ▲ │                                        ▲
//	  │ └────────────────┘  └─┘ take (an expired lease)               │
//	  │ decide           suspend│                                      │
//	  └──────── suspended ◀─────┘                                      │
//	  └────────────┴──────────────── cancel ───────────────────────────┘
func transitions() []transition {
	return []transition{
		{Queued, CauseTake, Running},
		{Queued, CauseCancel, Cancelled},
		{Running, CauseTake, Running},
		{Running, CauseRelease, Queued},
		{Running, CauseSuspend, Suspended},
		{Running, CauseComplete, Completed},
		{Running, CauseFail, Failed},
		{Running, CauseAbort, Cancelled},
		{Running, CausePark, Failed},
		{Suspended, CauseDecide, Queued},
		{Suspended, CauseCancel, Cancelled},
	}
}

// Next returns the state to which a cause moves a run, and false if it does not move one from there.
func (s State) Next(cause Cause) (State, bool) {
	all := transitions()
	i := slices.IndexFunc(all, func(t transition) bool { return t.from == s && t.cause == cause })
	if i < 0 {
		return s, false
	}
	return all[i].to, true
}
