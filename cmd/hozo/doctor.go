package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/sandbox"
)

func (p *program) doctorCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Show which protections this machine offers",
		Long: `Show what confines the commands that agents run on this machine: each protection, whether it is active for this account,
how that was found out, what holds because of it, and what to do about one that is missing. Nothing is changed.

The level is full if files, network, system calls, processes and resources are all confined, partial if some of it is
missing, and none if a command reaches what this account does. The file tools stay inside the workspace at every level.
The exit code is 0 whatever is found.`,
		Example: `  hozo doctor
  # Refuse to go on unless everything holds.
  hozo doctor --json | jq -e '.sandbox.level == "full"'`,
		Args: noArguments,
		RunE: p.runs(func(*cobra.Command, []string) error {
			d := diagnosis{Version: programVersion(), Sandbox: sandbox.Probe(), Programs: findPrograms("bash", "git")}
			if asJSON {
				return p.writeJSON(d)
			}
			return d.print(p.stdout)
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	command.AddCommand(p.doctorModelCommand())
	return command
}

// diagnosis is what doctor finds.
type diagnosis struct {
	Version  string         `json:"version"`
	Sandbox  sandbox.Report `json:"sandbox"`
	Programs []foundProgram `json:"programs"`
}

// foundProgram is a program that tools start.
type foundProgram struct {
	Name string `json:"name"`
	// Path is "" if there is none.
	Path string `json:"path,omitempty"`
}

// findPrograms looks where confined commands look, and nowhere else.
func findPrograms(names ...string) []foundProgram {
	var found []foundProgram
	for _, name := range names {
		f := foundProgram{Name: name}
		for _, dir := range filepath.SplitList(sandbox.SearchPath) {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				f.Path = path
				break
			}
		}
		found = append(found, f)
	}
	return found
}

// print writes a table of the protections, then what it means, then what to do.
func (d *diagnosis) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "hozo %s on %s\nsandbox: %s\n\n", d.Version, d.Sandbox.System, d.Sandbox.Level)
	fmt.Fprintln(w, "PROTECTION\tACTIVE\tEVIDENCE")
	for _, p := range d.Sandbox.Protections {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Title, yesOrNo(p.Active), visibleLine(p.Evidence))
	}
	fmt.Fprintln(w, "\nWhat this means")
	for _, p := range d.Sandbox.Protections {
		fmt.Fprintf(w, "  %s: %s.\n", p.Title, p.Effect)
	}
	d.printAdvice(w)
	return w.Flush()
}

func (d *diagnosis) printAdvice(w io.Writer) {
	fmt.Fprintln(w, "\nWhat to do")
	advice := 0
	for _, p := range d.Sandbox.Protections {
		if p.Fix != "" {
			advice++
			fmt.Fprintf(w, "  %s: %s.\n", p.Title, p.Fix)
		}
	}
	for _, f := range d.Programs {
		if f.Path == "" {
			advice++
			fmt.Fprintf(w, "  %s: there is none in %s; the tool of that name needs it.\n", f.Name, sandbox.SearchPath)
		}
	}
	if advice == 0 {
		fmt.Fprintln(w, "  Nothing.")
	}
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
