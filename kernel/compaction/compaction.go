// Package compaction shortens what a model has been told, so that a long job goes on within the model's window. It is
// pure: it computes when a dialog is too long, what of it can go, what to ask a model for a summary, whether the answer is
// one, and what the dialog is afterwards; the kernel sends the requests and decides what a failure means. The same input
// gives the same bytes each time, so a job can be replayed.
//
// A compaction has up to three steps, each only if the one before it was not enough. Plan.Prune drops the bodies of old
// tool results, which needs no request. A Summariser asks for a summary of everything that is not recent. Plan.Finish puts
// the dialog together and, if what is left is still too much, shortens recent tool results as well. The task and the latest
// user message are never changed, and a tool call is never parted from its result.
package compaction

import (
	"errors"

	"github.com/hozo-run/hozo/llm"
)

// Reason says why a dialog is compacted.
type Reason string

// The closed set of reasons.
const (
	// ReasonThreshold: the next request would leave too little room for the answer.
	ReasonThreshold Reason = "threshold"
	// ReasonOverflow: the provider refused a request as too long, or had no room left for any answer.
	ReasonOverflow Reason = "overflow"
	// ReasonLength: the answer was cut because the prompt left too little of the window.
	ReasonLength Reason = "length"
)

// Why Plan.Finish has no result.
var (
	// ErrNotSmaller: the dialog would be less than a tenth smaller.
	ErrNotSmaller = errors.New("what may be left out is less than a tenth of the prompt")
	// ErrTooLarge: what must stay is larger than the window.
	ErrTooLarge = errors.New("what must stay is larger than the model's window")
)

const (
	maxReserve    = 16_384
	maxKeepRecent = 20_000
	// imageTokens is what an image counts in an estimate; providers count between 85 and 1,600 for the sizes that are sent.
	imageTokens = 1600
	// maxPrompt bounds the sizes that are calculated with, far above any model.
	maxPrompt = 1 << 30
)

// Settings are the sizes that decide about compaction, in tokens.
type Settings struct {
	// Window is what the model takes, prompt and answer together; 0 means unknown.
	Window int64
	// Reserve is what a request must leave of the window.
	Reserve int64
	// KeepRecent is how much of the newest part of a dialog stays as it is.
	KeepRecent int64
}

// SettingsFor returns the settings for a window. Both sizes are fixed for large windows and a share of small ones, since a
// model with a small window would otherwise compact before each turn or never.
func SettingsFor(window int64) Settings {
	window = min(max(window, 0), maxPrompt)
	return Settings{Window: window, Reserve: min(maxReserve, window/4), KeepRecent: min(maxKeepRecent, window*2/5)}
}

// Limit is the longest prompt that is sent without compaction, in tokens.
func (s Settings) Limit() int64 { return s.Window - s.Reserve }

// Due reports whether a prompt of this many tokens is to be shortened before it is sent. With an unknown window it never
// is.
func (s Settings) Due(prompt int64) bool { return s.Window > 0 && prompt > s.Limit() }

// AfterOverflow returns the settings, and the size of the prompt, to compact with after a provider has said that a prompt
// is too long which was believed to have prompt tokens. Either the estimate was too low (dense text has fewer bytes to a
// token), or the window is not what the model table says. An estimate is at most about twice too low: above half of the
// window the estimate is to blame, otherwise the window.
func AfterOverflow(window, prompt int64) (settings Settings, tokens int64) {
	prompt = max(prompt, 1)
	if window <= 0 || prompt < window/2 {
		return SettingsFor(prompt), prompt
	}
	return SettingsFor(window), max(prompt, window)
}

// Dialog is the exchange with a model as compaction sees it. Messages are never changed in place: what differs is copied,
// so a Dialog may share them with others.
type Dialog struct {
	Messages []llm.Message
	State
}

// State is what compaction has to know about the messages of a dialog. It changes with each compaction only, and is
// recorded with it.
type State struct {
	// Task is where the task is, with what belongs to it. These messages are never changed or left out.
	Task Range `json:"task"`
	// Earlier is what the latest compaction left, nil before the first.
	Earlier *Earlier `json:"earlier,omitempty"`
}

// Range is the half-open range [From, To) of messages.
type Range struct {
	From int `json:"from"`
	To   int `json:"to"`
}

func (r Range) holds(i int) bool { return i >= r.From && i < r.To }

// Earlier is what one compaction hands on to the next.
type Earlier struct {
	// At is the index of the message that holds the summary.
	At int `json:"at"`
	// Summary is the summary alone, as the model wrote it.
	Summary string `json:"summary"`
	// Tools are the exact names of the tools used before the summary's end, sorted.
	Tools []string `json:"tools,omitempty"`
}

// Append adds messages at the end. The kernel calls it for everything that it appends to the exchange itself.
func (d *Dialog) Append(messages ...llm.Message) { d.Messages = append(d.Messages, messages...) }

// Bytes is the size of the messages for llm.EstimateTokens.
func (d *Dialog) Bytes() int {
	n := 0
	for _, m := range d.Messages {
		n += Bytes(m)
	}
	return n
}

// isSummary reports whether message i is the summary of an earlier compaction.
func (d *Dialog) isSummary(i int) bool { return d.Earlier != nil && d.Earlier.At == i }

// Bytes is the size of a message for llm.EstimateTokens. An image counts as the tokens it is worth rather than its bytes.
func Bytes(m llm.Message) int {
	n := 0
	for _, p := range m.Parts {
		n += partBytes(p)
	}
	return n
}

func partBytes(p llm.Part) int {
	n := len(p.Text) + len(p.Signature)
	switch p.Type {
	case llm.PartImage:
		n += 4 * imageTokens
	case llm.PartToolCall:
		n += len(p.ToolCall.Name) + len(p.ToolCall.Arguments) + len(p.ToolCall.RawArguments)
	case llm.PartToolResult:
		for _, inner := range p.ToolResult.Content {
			n += partBytes(inner)
		}
	}
	return n
}
