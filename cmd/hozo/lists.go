package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/modeltable"
	"github.com/hozo-run/hozo/provider/offline"
	"github.com/hozo-run/hozo/schema"
	"github.com/hozo-run/hozo/tool"
)

func (p *program) modelsCommand() *cobra.Command {
	var provider string
	var asJSON bool
	command := &cobra.Command{
		Use:   "models",
		Short: "List the known models with their windows and prices",
		Long: `List the models of the built-in table that this version can reach: context window and longest answer in tokens, price
in US dollars per million tokens, thinking levels, image input. A dash is a value that is not known. Models that are not
listed work too; their window and price are then unknown unless the job document or --provider-config says them.`,
		Example: `  hozo models --provider anthropic
  hozo models --json | jq -r '.[] | select(.contextWindow > 500000) | .provider + "/" + .id'`,
		Args: noArguments,
		RunE: p.runs(func(*cobra.Command, []string) error {
			models, err := listedModels(provider)
			if err != nil {
				return err
			}
			if asJSON {
				return p.writeJSON(models)
			}
			return p.printModels(models)
		}),
	}
	command.Flags().StringVar(&provider, "provider", "", "only the models of this `PROVIDER`")
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

// listedModel is a model with its provider.
type listedModel struct {
	Provider string `json:"provider"`
	llm.Model
}

func listedModels(only string) ([]listedModel, error) {
	var models []listedModel
	add := func(provider string, some []llm.Model) {
		for _, m := range some {
			models = append(models, listedModel{provider, m})
		}
	}
	names := []string{job.APIOffline}
	if only == "" || only == job.APIOffline {
		add(job.APIOffline, offline.Models())
	}
	for _, provider := range modeltable.Providers() {
		if _, ok := speaks(provider.APIs); !ok {
			continue
		}
		names = append(names, provider.ID)
		if only == "" || only == provider.ID {
			add(provider.ID, modeltable.Models(provider.ID))
		}
	}
	if address, ok := localServers()[only]; ok {
		return nil, usageError("the table has no models of %q, a server on this machine: ask it at %s which it has, and run one with --model %s/ID",
			only, address+"/models", only)
	}
	if only != "" && !slices.Contains(names, only) {
		hint := "there are " + strings.Join(names, ", ")
		if best := problem.Closest(only, names); best != "" {
			hint = fmt.Sprintf("did you mean %q?", best)
		}
		return nil, usageError("unknown provider %q; %s", only, hint)
	}
	return models, nil
}

func (p *program) printModels(models []listedModel) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tWINDOW\tANSWER\t$/M IN\t$/M OUT\tTHINKING\tIMAGES")
	for _, m := range models {
		in, out := "-", "-"
		if m.Price != nil {
			in, out = llm.MicroUSD(m.Price.Input).String(), llm.MicroUSD(m.Price.Output).String()
		}
		thinking := "-"
		if levels := m.ThinkingLevels; len(levels) > 0 {
			thinking = string(levels[0])
			for _, l := range levels[1:] {
				thinking += "," + string(l)
			}
		}
		images := "-"
		if m.Images {
			images = "yes"
		}
		name := m.Provider + "/" + m.ID
		if m.Simulated {
			name += " (" + simulatedLabel + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, known(m.ContextWindow), known(m.MaxOutputTokens), in, out, thinking, images)
	}
	return w.Flush()
}

func known(n int64) string {
	if n == 0 {
		return "-"
	}
	return thousands(n)
}

func (p *program) toolsCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "tools",
		Short: "List the tools with their security boundaries",
		Long: `List the tools that an agent can be allowed to use, with what each can reach: the files it reads and writes, the
network, the processes it starts and the secrets it sees. An agent that lists no tools gets all of them; one that lists
some gets those.`,
		Example: "  hozo tools\n  hozo tools --json | jq -r '.[].name'",
		Args:    noArguments,
		RunE: p.runs(func(*cobra.Command, []string) error {
			tools, err := newTools(&operator{})
			if err != nil {
				return err
			}
			if asJSON {
				return p.writeJSON(listedTools(tools))
			}
			return p.printTools(tools)
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

// listedTool is the declaration of a tool as hozo tools --json writes it.
type listedTool struct {
	Name        string          `json:"name"`
	Effect      tool.Effect     `json:"effect"`
	Boundary    tool.Boundary   `json:"boundary"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func listedTools(tools *tool.Registry) []listedTool {
	var list []listedTool
	for _, t := range tools.Tools() {
		list = append(list, listedTool{t.Name, t.Effect, t.Boundary, t.Description, t.InputSchema})
	}
	return list
}

func (p *program) printTools(tools *tool.Registry) error {
	var b strings.Builder
	for _, t := range tools.Tools() {
		fmt.Fprintf(&b, "%s\n  effect     %s\n", t.Name, t.Effect)
		for _, line := range [][2]string{
			{"reads", t.Boundary.Reads}, {"writes", t.Boundary.Writes}, {"network", t.Boundary.Network},
			{"processes", t.Boundary.Processes}, {"secrets", t.Boundary.Secrets},
		} {
			fmt.Fprintf(&b, "  %-9s  %s\n", line[0], line[1])
		}
	}
	_, err := io.WriteString(p.stdout, b.String())
	return err
}

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "schema [job|event]",
		Short:     "Print the JSON Schema of job documents or of events",
		Long:      "Print the JSON Schema (draft 2020-12) of the job document (the default) or of one event.",
		Example:   "  hozo schema job > job.schema.json",
		ValidArgs: []string{"job", "event"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "job" && args[0] != "event" {
				return fmt.Errorf(`expected "job" or "event"`)
			}
			return nil
		},
		RunE: p.runs(func(_ *cobra.Command, args []string) error {
			document := schema.Job()
			if len(args) == 1 && args[0] == "event" {
				document = schema.Event()
			}
			_, err := p.stdout.Write(document)
			return err
		}),
	}
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: p.runs(func(*cobra.Command, []string) error {
			if !asJSON {
				_, err := fmt.Fprintf(p.stdout, "hozo %s\n", programVersion())
				return err
			}
			return p.writeJSON(map[string]string{
				"version":    programVersion(),
				"commit":     commit(),
				"go":         runtime.Version(),
				"platform":   runtime.GOOS + "/" + runtime.GOARCH,
				"apiVersion": job.APIVersion,
			})
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

// commit is the revision that Go recorded in the build, "" if none.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}
