package compaction

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
)

const (
	// pruneAbove is the size in bytes up to which an old result is left alone: a line about it would hardly be shorter.
	// It is longer than any stub, so that no stub is replaced by another.
	pruneAbove = 400
	// shortenTo is the size in bytes below which no recent result is cut.
	shortenTo = 1200
	// shortenedNote tells the model why the middle of a result is missing, and what to do about it.
	shortenedNote = " because the window of the model is full; ask for a smaller part if you need them"
	// maxName bounds the name of a tool; models can make up any.
	maxName = 128
)

// pruned returns the dialog without the bodies of old results and without old images.
func (p *Plan) pruned() Result {
	d := &p.in.Dialog
	next := Dialog{Messages: slices.Clone(d.Messages), State: d.State}
	result := Result{Before: p.prompt}
	for _, i := range p.old() {
		next.Messages[i].Parts = pruneParts(d.Messages[i].Parts, &result.Pruned)
	}
	result.Dialog, result.After = next, p.size(&next)
	return result
}

// pruneParts returns parts without bodies of results and images. It counts the results in pruned.
func pruneParts(parts []llm.Part, pruned *int) []llm.Part {
	var changed []llm.Part
	for i, part := range parts {
		stub, ok := pruneOne(part)
		if !ok {
			continue
		}
		if changed == nil {
			changed = slices.Clone(parts)
		}
		changed[i] = stub
		if part.Type == llm.PartToolResult {
			*pruned++
		}
	}
	if changed == nil {
		return parts
	}
	return changed
}

func pruneOne(part llm.Part) (llm.Part, bool) {
	switch part.Type {
	case llm.PartImage:
		return imageStub(part), true
	case llm.PartToolResult:
		if partBytes(part) <= pruneAbove {
			return part, false
		}
		result := *part.ToolResult
		result.Content = []llm.Part{llm.TextPart(resultStub(part.ToolResult))}
		part.ToolResult = &result
		return part, true
	}
	return part, false
}

// resultStub is the line that an old result leaves: which tool, how it ended, and how much it was.
func resultStub(r *llm.ToolResult) string {
	status := "it succeeded"
	if r.IsError {
		status = "it failed"
	}
	bytes, images := 0, ""
	for _, part := range r.Content {
		bytes += len(part.Text)
		if part.Type == llm.PartImage {
			images = " and images"
		}
	}
	return fmt.Sprintf("[the old result of %s is no longer shown: %s, %d bytes of text%s]", cutBytes(oneLine(r.Name), maxName), status, bytes, images)
}

func imageStub(part llm.Part) llm.Part {
	return llm.TextPart("[an image (" + part.Image.MediaType + ") is no longer shown]")
}

// shorten cuts the middle out of recent tool results until the prompt is within the limit: the longest ones, to one common
// length. If that is not enough, the images of the results go too.
func (p *Plan) shorten(result *Result, from int) {
	d := &result.Dialog
	whole := slices.Clone(d.Messages)
	excess := p.room(result.After-p.in.Settings.Limit()) + 4
	level := levelFor(resultTexts(whole[from:]), excess)
	for _, images := range []bool{false, true} {
		result.Shortened = 0
		for i := from; i < len(whole); i++ {
			d.Messages[i].Parts = shortenParts(whole[i].Parts, level, images, &result.Shortened)
		}
		if result.After = p.size(d); result.After <= p.in.Settings.Limit() {
			return
		}
	}
}

// resultTexts returns the lengths of the texts of all results.
func resultTexts(messages []llm.Message) []int {
	var lengths []int
	for _, m := range messages {
		for _, part := range m.Parts {
			if part.Type != llm.PartToolResult {
				continue
			}
			for _, inner := range part.ToolResult.Content {
				lengths = append(lengths, len(inner.Text))
			}
		}
	}
	return lengths
}

// levelFor returns the length to which texts must be cut so that excess bytes go in all, at least shortenTo.
func levelFor(lengths []int, excess int) int {
	slices.SortFunc(lengths, func(a, b int) int { return b - a })
	above := 0 // the sum of the texts that are cut
	for i, length := range lengths {
		above += length
		next := 0
		if i+1 < len(lengths) {
			next = lengths[i+1]
		}
		if above-(i+1)*next >= excess {
			return max((above-excess)/(i+1), shortenTo)
		}
	}
	return shortenTo
}

// shortenParts returns parts whose results have no text longer than level and, if images is set, no image. It counts the
// results that it changed in shortened.
func shortenParts(parts []llm.Part, level int, images bool, shortened *int) []llm.Part {
	var changed []llm.Part
	for i, part := range parts {
		if part.Type != llm.PartToolResult || !slices.ContainsFunc(part.ToolResult.Content, func(inner llm.Part) bool {
			return len(inner.Text) > level || images && inner.Type == llm.PartImage
		}) {
			continue
		}
		result := *part.ToolResult
		result.Content = slices.Clone(result.Content)
		for j, inner := range result.Content {
			switch {
			case inner.Type == llm.PartImage && images:
				result.Content[j] = imageStub(inner)
			case len(inner.Text) > level:
				result.Content[j].Text = withoutMiddle(inner.Text, level, shortenedNote)
			}
		}
		if changed == nil {
			changed = slices.Clone(parts)
		}
		changed[i].ToolResult = &result
		*shortened++
	}
	if changed == nil {
		return parts
	}
	return changed
}

// withoutMiddle returns the beginning and the end of a text in at most limit bytes, with a note between them that says how
// many bytes are missing. limit must be longer than the note.
func withoutMiddle(text string, limit int, note string) string {
	if len(text) <= limit {
		return text
	}
	keep := limit - len(note) - 32
	head := cutBytes(text, keep*2/3)
	tail := text[len(text)-keep/3:]
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return fmt.Sprintf("%s\n[… %d bytes were left out%s …]\n%s", head, len(text)-len(head)-len(tail), note, tail)
}

// cutBytes returns at most limit bytes of text, ending at a rune border.
func cutBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
