package compaction

import (
	"github.com/hozo-run/hozo/llm"
)

// Input is one dialog that is to be shortened.
type Input struct {
	Dialog   Dialog
	Settings Settings
	Reason   Reason
	// Prompt is the size of the next request in tokens, as well as it is known; 0 means that only the estimate is. What a
	// provider counted corrects the estimate of every part.
	Prompt int64
	// FixedBytes is the size of what precedes the messages: the system prompt and the declared tools.
	FixedBytes int
	// Offered are the names of the tools that the model can call; nil means all that it called.
	Offered []string
	// Read and Changed are the paths of all files that the job has read and has written so far, in any order.
	Read, Changed []string
}

// Plan is what a compaction of one dialog may do. It belongs to one goroutine.
type Plan struct {
	in Input
	// cut divides the messages: those from cut on are recent.
	cut int
	// latest is the latest user message if it is not recent and not the task's, else -1.
	latest int
	// own is the estimate of the whole prompt, prompt its real size.
	own, prompt int64
}

// Result is a dialog after compaction.
type Result struct {
	Dialog Dialog
	// Before and After are the sizes of the prompt in tokens.
	Before, After int64
	// Summarised counts the messages that the summary replaces, Pruned the tool results of which only a line is left,
	// Shortened the recent results that lost their middle.
	Summarised, Pruned, Shortened int
}

// New plans the compaction of a dialog. It cannot fail; whether there is anything to gain shows in its methods.
func New(in Input) *Plan {
	p := &Plan{in: in, own: max(llm.EstimateTokens(in.Dialog.Bytes()+in.FixedBytes), 1)}
	p.prompt = min(in.Prompt, maxPrompt)
	if p.prompt <= 0 {
		p.prompt = p.own
	}
	p.cut = p.findCut()
	p.latest = p.findLatest()
	return p
}

// tokens is the size of so many bytes, corrected by what the provider counted for the whole.
func (p *Plan) tokens(bytes int) int64 {
	estimate := min(llm.EstimateTokens(bytes), maxPrompt)
	return (estimate*p.prompt + p.own - 1) / p.own
}

// room is how many bytes so many tokens are.
func (p *Plan) room(tokens int64) int { return int(tokens * 4 * p.own / p.prompt) }

// findCut returns where the recent part begins: as late as it holds no more than KeepRecent, but always with the newest
// turn, and never between a call and its result.
func (p *Plan) findCut() int {
	d := &p.in.Dialog
	var recent int64
	for i := len(d.Messages) - 1; i >= 0; i-- {
		if d.Task.holds(i) || d.isSummary(i) {
			continue
		}
		if recent += p.tokens(Bytes(d.Messages[i])); recent > p.in.Settings.KeepRecent {
			return p.cutAfter(i)
		}
	}
	return 0
}

// cutAfter returns the first place to cut after message i, else the last one before.
func (p *Plan) cutAfter(i int) int {
	messages := p.in.Dialog.Messages
	for j := i + 1; j < len(messages); j++ {
		if messages[j].Role != llm.RoleTool {
			return j
		}
	}
	for i > 0 && messages[i].Role == llm.RoleTool {
		i--
	}
	return i
}

// findLatest returns the latest user message if it must be carried over the cut.
func (p *Plan) findLatest() int {
	d := &p.in.Dialog
	for i := len(d.Messages) - 1; i >= d.Task.To; i-- {
		if d.Messages[i].Role == llm.RoleUser && !d.isSummary(i) {
			if i < p.cut {
				return i
			}
			return -1
		}
	}
	return -1
}

// verbatim reports whether message i stays as it is whatever happens.
func (p *Plan) verbatim(i int) bool {
	return i >= p.cut || i == p.latest || p.in.Dialog.Task.holds(i) || p.in.Dialog.isSummary(i)
}

// old returns the indices of the messages that a summary would replace, without the earlier summary.
func (p *Plan) old() []int {
	var indices []int
	for i := range p.cut {
		if !p.verbatim(i) {
			indices = append(indices, i)
		}
	}
	return indices
}

// Prune drops the bodies of old tool results and old images. It reports whether that is enough: that the prompt is a tenth
// smaller and short enough. After an overflow short enough is the limit; below the threshold form it is three quarters of
// it, since otherwise the next turns would compact again, each at the price of the provider's cache.
func (p *Plan) Prune() (Result, bool) {
	result := p.pruned()
	enough := p.in.Settings.Limit()
	if p.in.Reason != ReasonOverflow {
		enough = enough * 3 / 4
	}
	return result, result.After <= enough && smaller(result)
}

// smaller reports whether a result frees a tenth of the prompt.
func smaller(r Result) bool { return r.After*10 <= r.Before*9 }

// Finish returns the dialog with summary in place of everything old, as Summariser made it. With "" it returns the pruned
// dialog instead, which is right if there was nothing to summarise. Recent tool results are shortened if the prompt is
// above the limit even so. The error is ErrNotSmaller or ErrTooLarge; the dialog then stays as it was.
func (p *Plan) Finish(summary string) (Result, error) {
	var result Result
	kept := p.cut
	if summary == "" {
		result = p.pruned()
	} else {
		result = p.summarised(summary)
		kept = len(result.Dialog.Messages) - (len(p.in.Dialog.Messages) - p.cut)
	}
	if result.After > p.in.Settings.Limit() {
		p.shorten(&result, kept)
	}
	switch {
	case result.After > p.in.Settings.Window:
		return Result{}, ErrTooLarge
	case !smaller(result):
		return Result{}, ErrNotSmaller
	}
	return result, nil
}

// Omission stands for a summary that no model wrote: it keeps what the last compaction left and says that what came after
// is gone. With it a dialog that no longer fits can go on; the frame around it still names the tools and the files.
func (p *Plan) Omission() string {
	text := "No summary of the earlier messages could be written, so they were left out. The tools and the files named below are " +
		"exact; read again whatever is needed."
	if e := p.in.Dialog.State.Earlier; e != nil && e.Summary != "" {
		return e.Summary + "\n\nLater messages are missing as well. " + text
	}
	return text
}

// summarised puts the dialog together: the task, the summary, the latest user message, the recent part. The task stays
// where it is if it is recent itself.
func (p *Plan) summarised(summary string) Result {
	d := &p.in.Dialog
	next := Dialog{Messages: make([]llm.Message, 0, len(d.Messages)-p.cut+4)}
	if d.Task.To <= p.cut {
		next.Append(d.Messages[d.Task.From:d.Task.To]...)
		next.Task = Range{0, d.Task.To - d.Task.From}
	} else {
		shift := 1 - p.cut
		next.Task = Range{d.Task.From + shift, d.Task.To + shift}
	}
	next.Earlier = &Earlier{At: len(next.Messages), Summary: summary, Tools: p.toolsUsed()}
	next.Append(llm.UserText(p.frame(next.Earlier)))
	if p.latest >= 0 {
		next.Append(d.Messages[p.latest])
	}
	next.Append(d.Messages[p.cut:]...)
	return Result{Dialog: next, Before: p.prompt, After: p.size(&next), Summarised: len(p.old())}
}

// size is the prompt with this dialog, in tokens.
func (p *Plan) size(d *Dialog) int64 { return p.tokens(d.Bytes() + p.in.FixedBytes) }
