package scripttool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// The bounds of the declarations, in bytes. They are part of every request of an agent.
const (
	maxDeclarations = 48 << 10
	maxToolComment  = 2000
	maxFirstLine    = 160
)

// detail is how much is said about each tool. All tools of an agent are declared in the same detail, the richest that
// fits.
type detail int

const (
	detailFull  detail = iota // descriptions and types with comments
	detailTypes               // first lines of descriptions, bare types
	detailNames               // names only
)

// declarations writes down what scripts can call, in the manner of TypeScript. Equal input gives equal bytes.
func declarations(callees []llm.ToolSpec) string {
	if len(callees) == 0 {
		return "This agent has no tools that a script could call."
	}
	for _, d := range []detail{detailFull, detailTypes} {
		if text := declareAll(callees, d); len(text) <= maxDeclarations {
			return text
		}
	}
	return declareAll(callees, detailNames)
}

func declareAll(callees []llm.ToolSpec, d detail) string {
	var b strings.Builder
	b.WriteString("What a script can call:\n\ndeclare const tools: {")
	if d == detailNames {
		b.WriteString("\n  // There are too many to describe them here. The error of a call with wrong arguments says what is missing.")
	}
	for i, c := range callees {
		if d == detailNames && b.Len() > maxDeclarations {
			fmt.Fprintf(&b, "\n  // And %d more.", len(callees)-i)
			break
		}
		b.WriteByte('\n')
		declare(&b, c, d)
	}
	b.WriteString("\n};")
	return b.String()
}

// declare writes one tool.
func declare(b *strings.Builder, c llm.ToolSpec, d detail) {
	switch d {
	case detailFull:
		comment(b, "  ", cut(about(c), maxToolComment))
	case detailTypes:
		first, _, _ := strings.Cut(about(c), "\n")
		comment(b, "  ", cut(first, maxFirstLine))
	}
	arguments := "object"
	if d != detailNames {
		arguments = argumentsType(c.InputSchema, d == detailFull)
	}
	optional := ""
	if !requiresArguments(c.InputSchema) {
		optional = "?"
	}
	// Tools of this runtime answer with text, those of servers with whatever they have.
	result := "string"
	if fromServer(c.Name) {
		result = "any"
	}
	fmt.Fprintf(b, "  %s(args%s: %s): Promise<%s>;", key(c.Name), optional, arguments, result)
}

// fromServer reports whether a tool comes from a server. It is then declared nowhere else, while tools of this runtime
// are declared to the model as well.
func fromServer(name string) bool { return strings.HasPrefix(name, "mcp__") }

// about is what is said of a tool: all of it, or its first paragraph if the model reads the rest elsewhere.
func about(c llm.ToolSpec) string {
	text := strings.TrimSpace(strings.ToValidUTF8(c.Description, "\uFFFD"))
	if !fromServer(c.Name) {
		text, _, _ = strings.Cut(text, "\n\n")
	}
	return text
}

// cut shortens a text to most bytes, with a mark.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.TrimSpace(prefix(text, most)) + " …"
}

// comment writes a text as comments, one a line.
func comment(b *strings.Builder, indent, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "%s\n", strings.TrimRight(indent+"// "+clean(strings.TrimRight(line, "\r\n")), " "))
	}
}

// key writes the name of a member.
func key(name string) string {
	for i, r := range name {
		letter := r == '_' || r == '$' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return literal(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// literal writes a JSON value on one line.
func literal(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "unknown" // what came out of JSON goes back into it
	}
	return strings.TrimSpace(b.String())
}
