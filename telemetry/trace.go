package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/job"
)

type spanID [8]byte

// Trace is where the spans of one job belong. The ids of its spans follow from it and from what a span is of (the job, a
// turn, a call), so that the process that runs a job and the one that exports its events know the same ids without
// talking about them.
type Trace struct {
	id     [16]byte
	parent spanID
	// salt keeps the ids of two jobs in one trace apart.
	salt       spanID
	notSampled bool
}

// NewTrace returns a Trace below a W3C traceparent, or a new one if parent is empty or no valid traceparent, as the
// recommendation demands.
func NewTrace(parent string) Trace {
	t, err := parseTraceParent(parent)
	if err != nil {
		t = Trace{}
		_, _ = rand.Read(t.id[:]) // crypto/rand does not fail
	}
	t.parent = t.salt
	_, _ = rand.Read(t.salt[:])
	return t
}

// String returns the Trace in the form of a traceparent, for job.WithTrace: the runtime, and a job process, take it from
// there.
func (t Trace) String() string { return t.traceParent(t.salt) }

func (t Trace) flags() byte {
	if t.notSampled {
		return 0
	}
	return 1
}

func (t Trace) traceParent(id spanID) string {
	return fmt.Sprintf("00-%x-%x-%02x", t.id[:], id[:], t.flags())
}

// span returns the id of the span of something.
func (t Trace) span(of string) spanID {
	h := sha256.New()
	h.Write(t.id[:])
	h.Write(t.salt[:])
	h.Write([]byte(of))
	id := spanID(h.Sum(nil)[:8])
	if id == (spanID{}) {
		id[7] = 1 // zero is no id
	}
	return id
}

// What spans are of.
const ofJob = "job"

func ofTurn(n int64) string { return fmt.Sprintf("turn %d", n) }

func ofCall(id string) string { return "call " + id }

// TraceParent returns the traceparent for a request that a job makes: below the span of the tool call in whose context it
// is made, else below that of the job, "" if the job belongs to no trace. It is for the lenders of a runtime.
func TraceParent(ctx context.Context) string {
	t, err := parseTraceParent(job.TraceOf(ctx))
	if err != nil {
		return ""
	}
	if call := job.CallOf(ctx); call != "" {
		return t.traceParent(t.span(ofCall(call)))
	}
	return t.traceParent(t.span(ofJob))
}

// CheckTraceParent returns why a text is no W3C traceparent, nil if it is one. It is for flags, where a mistake should be
// told rather than passed over.
func CheckTraceParent(text string) error {
	_, err := parseTraceParent(text)
	return err
}

// parseTraceParent reads a traceparent; the id of the parent span goes to salt. Versions above 00 may have more parts,
// which are of no interest.
func parseTraceParent(text string) (Trace, error) {
	var t Trace
	parts := strings.Split(text, "-")
	fits := len(parts) >= 4 && len(parts[0]) == 2 && len(parts[1]) == 32 && len(parts[2]) == 16 && len(parts[3]) == 2 &&
		(len(parts) == 4 || parts[0] != "00")
	var version, flags [1]byte
	if !fits || parts[0] == "ff" || !lowerHex(version[:], parts[0]) || !lowerHex(t.id[:], parts[1]) ||
		!lowerHex(t.salt[:], parts[2]) || !lowerHex(flags[:], parts[3]) {
		return Trace{}, fmt.Errorf("%q is no traceparent; one looks like 00-<32 hex digits>-<16 hex digits>-01, in lower case", cut(text, 80))
	}
	if t.id == ([16]byte{}) || t.salt == (spanID{}) {
		return Trace{}, fmt.Errorf("the traceparent %q has an id of zeros only", text)
	}
	t.notSampled = flags[0]&1 == 0
	return t, nil
}

func lowerHex(to []byte, text string) bool {
	_, err := hex.Decode(to, []byte(text))
	return err == nil && strings.ToLower(text) == text
}
