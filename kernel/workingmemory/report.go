package workingmemory

import (
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// ReportFile is the name of the report in the output directory.
const ReportFile = "working-memory.md"

// ReportStatus says how a loop ended.
type ReportStatus string

// The closed set of ends.
const (
	ReportFinished ReportStatus = "finished"
	// ReportMaxLoops is the backstop: the last step that was allowed did not finish.
	ReportMaxLoops ReportStatus = "max-loops"
	ReportFailed   ReportStatus = "failed"
	ReportAborted  ReportStatus = "aborted"
)

// Report is what is left of a loop: the result and the final document, in one Markdown file with frontmatter. It is written
// however the loop ended; without a result it says so.
type Report struct {
	Status ReportStatus
	// Reason and Message say why a loop ended without finish; both are "" for one that finished.
	Reason, Message string
	Agent, Version  string
	// Steps counts the steps, Fallbacks those whose document was written without the writer.
	Steps, Fallbacks int64
	Tokens           int64
	CostMicroUSD     llm.MicroUSD
	// Finish is the accepted call, nil if there is none.
	Finish *Finish
	// Degraded are the services that the job had to do without, one sentence each.
	Degraded []string
	Document Document
}

// Markdown returns the file. The same report gives the same bytes; the document stands in it verbatim.
func (r Report) Markdown() string {
	var b strings.Builder
	b.WriteString("---\n")
	line := func(key string, value any) { fmt.Fprintf(&b, "%s: %s\n", key, encode(value)) }
	line("status", string(r.Status))
	if r.Reason != "" {
		line("reason", r.Reason)
	}
	line("agent", r.Agent)
	line("version", r.Version)
	line("steps", r.Steps)
	line("fallbacks", r.Fallbacks)
	line("tokens", r.Tokens)
	line("costUsd", llm.USD(r.CostMicroUSD))
	r.ratings(line)
	line("openItems", len(r.Document.OpenItems()))
	list(&b, "gaps", r.gaps())
	list(&b, "degraded", r.Degraded)
	line("document", r.Document.Hash())
	b.WriteString("---\n\n")
	b.WriteString(r.Body())
	return b.String()
}

// Body returns the file without its frontmatter: what a subagent gives back to its parent.
func (r Report) Body() string {
	var b strings.Builder
	b.WriteString("# Result\n\n")
	switch {
	case r.Finish != nil:
		b.WriteString(strings.TrimSpace(r.Finish.Answer))
	case r.Message != "":
		b.WriteString("There is no finished result: " + oneLine(r.Message, 1000))
	default:
		b.WriteString("There is no finished result.")
	}
	b.WriteString("\n\n# Working memory\n\n")
	b.WriteString(r.Document.String())
	return b.String()
}

// ratings writes coverage and confidence. Without a finish the document's own confidence stands; where the document bears
// out less than the model claims, both are told.
func (r Report) ratings(line func(key string, value any)) {
	if coverage, ok := r.Document.Coverage(); ok {
		line("coverage", coverage)
	}
	complete := r.Finish != nil && len(r.Finish.Gaps) == 0 && len(r.Document.OpenItems()) == 0
	line("complete", complete)
	if r.Finish == nil {
		if confidence, ok := r.Document.Confidence(); ok {
			line("confidence", confidence)
		}
		return
	}
	calibrated := r.Finish.Calibrated(r.Document)
	line("confidence", calibrated)
	if calibrated != r.Finish.Confidence {
		line("confidenceClaimed", r.Finish.Confidence)
	}
}

func (r Report) gaps() []string {
	if r.Finish != nil {
		return r.Finish.Gaps
	}
	return r.Document.OpenItems()
}

// list writes a list of texts, nothing for an empty one.
func list(b *strings.Builder, key string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", key)
	for _, item := range items {
		fmt.Fprintf(b, "  - %s\n", encode(item))
	}
}
