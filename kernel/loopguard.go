package kernel

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// Two rules notice a model that goes in circles. The first counts equal pairs of call and answer: a pair that is new to
// the job resets the count, so reading a checklist again between new work never adds up, while any pair that comes back
// twelve times without news in between ends the job. The second bounds what one response may stream before it completes
// a tool call.

const (
	maxRepeats       = 12
	maxTextRunes     = 150_000
	maxArgumentRunes = 400_000
)

// repeats is the first rule.
type repeats struct {
	seen   map[[sha256.Size]byte]bool
	counts map[[sha256.Size]byte]int
}

// add counts one call with the answer that the model was given and returns the stop of a job in a circle.
func (r *repeats) add(tool string, arguments json.RawMessage, answer string) *stop {
	key := pairKey(tool, arguments, answer)
	if r.seen == nil {
		r.seen = make(map[[sha256.Size]byte]bool)
		r.counts = make(map[[sha256.Size]byte]int)
	}
	if !r.seen[key] {
		r.seen[key] = true
		clear(r.counts)
		r.counts[key] = 1
		return nil
	}
	r.counts[key]++
	if r.counts[key] < maxRepeats {
		return nil
	}
	return stopf(job.ReasonLoop, job.CodeRepeatedCall, "stopped: %s was called with the same arguments %d times", tool, maxRepeats)
}

func pairKey(tool string, arguments json.RawMessage, answer string) [sha256.Size]byte {
	canonical := slices.Clone(arguments)
	if (*jsontext.Value)(&canonical).Canonicalize() != nil {
		canonical = arguments // broken argument text counts as it was sent
	}
	buffer := make([]byte, 0, len(tool)+len(canonical)+len(answer)+2)
	buffer = append(append(buffer, tool...), 0)
	buffer = append(append(buffer, canonical...), 0)
	buffer = append(buffer, answer...)
	return sha256.Sum256(buffer)
}

// flood is the second rule, for one response.
type flood struct{ text, thinking, arguments int }

// add counts a delta, in code points, and returns the stop of a job whose response will not end.
func (f *flood) add(d llm.Delta) *stop {
	switch d.Kind {
	case llm.DeltaText:
		f.text += utf8.RuneCount(d.Text)
	case llm.DeltaThinking:
		f.thinking += utf8.RuneCount(d.Text)
	case llm.DeltaToolArguments:
		f.arguments += utf8.RuneCount(d.Text)
	case llm.DeltaToolDone:
		*f = flood{}
		return nil
	default:
		return nil
	}
	kind, n := "thinking", f.text+f.thinking
	switch {
	case f.arguments > maxArgumentRunes:
		kind, n = "tool-call arguments", f.arguments
	case n <= maxTextRunes:
		return nil
	case f.text > f.thinking:
		kind = "text"
	}
	return stopf(job.ReasonLoop, job.CodeEndlessTurn, "stopped: one turn produced %dk characters of %s without a tool call",
		(n+500)/1000, kind)
}
