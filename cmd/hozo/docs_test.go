package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

const pagesDir = "../../docs/cli"

func newTestRoot() *cobra.Command {
	return (&program{stdout: os.Stdout, stderr: os.Stderr, getenv: func(string) string { return "" }}).newRoot()
}

func TestReferencePagesAreWhatTheCommandsSay(t *testing.T) {
	t.Parallel()
	pages := commandPages(newTestRoot())
	for name, page := range pages {
		written, err := os.ReadFile(filepath.Join(pagesDir, name))
		if err != nil {
			t.Errorf("%v; run make generate", err)
			continue
		}
		if d := cmp.Diff(string(page), string(written)); d != "" {
			t.Errorf("%s is out of date, run make generate (-want +written):\n%s", name, d)
		}
	}
	entries, err := os.ReadDir(pagesDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if pages[e.Name()] == nil {
			t.Errorf("%s belongs to no command; remove it", e.Name())
		}
	}
}

func TestEveryCommandIsExplained(t *testing.T) {
	t.Parallel()
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			if !below.IsAvailableCommand() {
				continue
			}
			visit(below)
			if below.Short == "" || strings.HasSuffix(below.Short, ".") {
				t.Errorf("%s: the short text %q must be one phrase without a full stop", below.CommandPath(), below.Short)
			}
			if len(below.Commands()) == 0 && below.Name() != "version" && below.Name() != "help" && (below.Long == "" || below.Example == "") {
				t.Errorf("%s needs a long text and an example", below.CommandPath())
			}
		}
	}
	visit(newTestRoot())
}

func TestTheToolsThatComeByAbsenceAreNamed(t *testing.T) {
	t.Parallel()
	tools, err := newTools(&operator{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/job-spec.md")
	if err != nil {
		t.Fatal(err)
	}
	if list := "`" + strings.Join(tools.Names(), " ") + "`"; !strings.Contains(string(page), list) {
		t.Errorf("docs/job-spec.md does not name the tools of an agent that names none: %s", list)
	}
}

func TestNoFlagTakesACredential(t *testing.T) {
	t.Parallel()
	for name, page := range commandPages(newTestRoot()) {
		for _, flag := range []string{"--api-key ", "--key ", "--token ", "--password ", "--header "} {
			if strings.Contains(string(page), flag) {
				t.Errorf("%s: the flag %s would be seen by everyone on the machine", name, flag)
			}
		}
	}
}
