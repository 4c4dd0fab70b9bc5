package hosttool

import (
	"slices"
	"strings"
)

// ResearchBlock returns the paragraph about research tools for the part of the prompt that all jobs of one agent share,
// "" if no entry is for research. entries are those that the agent may use, see Granted: the paragraph names exactly
// these, and each sentence is there only together with its tool. Equal entries give equal bytes.
func ResearchBlock(entries []Entry) string {
	var names, sentences []string
	for _, e := range entries {
		if !e.Research {
			continue
		}
		names = append(names, e.Name)
		if e.Usage != "" && !slices.Contains(sentences, e.Usage) {
			sentences = append(sentences, e.Usage)
		}
	}
	if len(names) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<research-tools>\nTools for research: " + strings.Join(names, ", ") + ".\n")
	for _, s := range sentences {
		b.WriteString("- " + s + "\n")
	}
	b.WriteString("</research-tools>")
	return b.String()
}
