package checkout

import (
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/job"
)

// guideName is the file that agents are told to read first.
const guideName = "WORKSPACE.md"

// guide is the text of WORKSPACE.md. It depends on what the run works on and on nothing else: no time, no machine.
func guide(pins []Pin, inputs []Input, left []job.Notice) string {
	var b strings.Builder
	b.WriteString("# Workspace\n\n## What is where\n\n")
	b.WriteString("- `source/`: what you work on. Read it; it cannot be changed.\n")
	b.WriteString("- `inputs/`: results of earlier runs. Read them; they cannot be changed.\n")
	b.WriteString("- `out/`: write everything here that should be kept. You can read it again.\n")
	b.WriteString("- `tmp/`: for temporary files of commands. It is removed.\n")
	b.WriteString("\n## Sources\n\n")
	if len(pins) == 0 {
		b.WriteString("There are none: `source/` is empty.\n")
	}
	for _, p := range pins {
		switch p.Kind {
		case project.Git:
			fmt.Fprintf(&b, "- `source/%s/`: git repository, commit `%s`%s\n", p.Name, p.Digest, refText(p.Ref))
		case project.Directory:
			fmt.Fprintf(&b, "- `source/%s/`: files as they were when the run began, snapshot `%s`\n", p.Name, p.Digest)
		}
	}
	if len(inputs) > 0 {
		b.WriteString("\n## Inputs\n\n")
		for _, in := range inputs {
			fmt.Fprintf(&b, "- `inputs/%s/`: %s of run `%s`\n", in.dir(), inputText(in), in.Run)
		}
	}
	if len(left) > 0 {
		b.WriteString("\n## Left out\n\n")
		for _, n := range left {
			b.WriteString("- " + n.Message + "\n")
		}
	}
	b.WriteString("\n## How to begin\n\nLook at the top of each source first. If `out/` holds files, an earlier part of this work wrote them: go on from there.\n")
	return b.String()
}

func refText(ref string) string {
	if ref == "" {
		return ""
	}
	return " of `" + ref + "`"
}

func inputText(in Input) string {
	if in.Path == "" {
		return "all outputs"
	}
	return fmt.Sprintf("%q", in.Path)
}

// dir is where the input goes below inputs/.
func (in Input) dir() string {
	if in.As == "" {
		return in.Run
	}
	return in.As
}
