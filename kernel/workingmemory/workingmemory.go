// Package workingmemory holds the words and rules of the second loop strategy: a job that works in single steps and keeps
// one Markdown document of five sections instead of a transcript. A step is shown the document, calls one tool for a stated
// objective, and a writer then rewrites the whole document with the outcome worked in; the model sees nothing else of what
// came before. The package makes every text that a model reads for this, reads and checks every document that a writer
// gives back, and folds an outcome in by itself where the writer fails. It asks no model, runs no tool and keeps no state:
// kernel does that and calls it between. The same input gives the same bytes.
//
// The files follow a step: document.go and markdown.go (what the document is), objective.go (how a call says what it is
// for), finish.go (the two tools of the loop itself), prompt.go (what the models are told), revise.go and mention.go (what
// a new document must keep), fold.go (the document without a writer), step.go (what is recorded), report.go (what is left
// at the end).
package workingmemory

// The numbers of the loop. Sizes of texts for models count Unicode code points, as people do.
const (
	// maxDocumentTokens is the most that a document may have, by llm.EstimateTokens.
	maxDocumentTokens = 8000
	// minDocumentTokens is what a document may have in the smallest window: five headings and a few lines.
	minDocumentTokens = 256
	// windowShare is the part of the model's window that a document may fill.
	windowShare = 4

	// maxArgumentChars and maxOutcomeChars bound what the writer is shown of a step.
	maxArgumentChars = 2000
	maxOutcomeChars  = 8000
	// foldChars is how much of an outcome a fold keeps.
	foldChars = 300
	// MaxInlineBytes is the size up to which a step record holds its outcome; larger ones are recorded by digest.
	MaxInlineBytes = 64 << 10
)

// Limit returns the most tokens that a document may have: 8,000, or a quarter of the window if that is less, or what the
// job configures if that is less still. A window or configured value of 0 or below says nothing. The result is never so
// small that the headings do not fit. The window is the smaller one if the writer is another model.
func Limit(window, configured int64) int64 {
	limit := int64(maxDocumentTokens)
	if window > 0 {
		limit = min(limit, window/windowShare)
	}
	if configured > 0 {
		limit = min(limit, configured)
	}
	return max(limit, minDocumentTokens)
}
