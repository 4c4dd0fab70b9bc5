package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/server"
)

func (p *program) configCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "config",
		Short: "Look at the settings of a server",
		Args:  cobra.ArbitraryArgs,
		RunE:  p.group,
	}
	command.AddCommand(p.configShowCommand())
	return command
}

// shownSetting is a setting as hozo config show --json writes it.
type shownSetting struct {
	Key    string        `json:"key"`
	Value  string        `json:"value"`
	Origin server.Origin `json:"origin"`
	Env    string        `json:"env"`
	Help   string        `json:"help"`
}

func (p *program) configShowCommand() *cobra.Command {
	f := &serverFlags{}
	var origin, asJSON bool
	command := &cobra.Command{
		Use:   "show",
		Short: "List every setting with its value",
		Long: `List every setting of "hozo up", "hozo serve" and "hozo worker" with the value that it would have if one of them were
started here and now, and with --origin where the value comes from. Secrets are not shown.`,
		Example: "  hozo config show --origin",
		Args:    noArguments,
		RunE: p.runs(func(*cobra.Command, []string) error {
			values, err := f.values(p)
			if err != nil {
				return err
			}
			if _, err := values.Config(); err != nil {
				return usageError("%v", err)
			}
			var shown []shownSetting
			for _, s := range server.Settings() {
				v := values[s.Key]
				shown = append(shown, shownSetting{s.Key, v.Shown(), v.Origin, s.Env(), s.Help})
			}
			if asJSON {
				return p.writeJSON(shown)
			}
			return p.printSettings(shown, origin)
		}),
	}
	f.register(command)
	command.Flags().StringVar(&f.address, "address", "", "the `ADDRESS` of the server")
	command.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

func (p *program) printSettings(shown []shownSetting, origin bool) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, s := range shown {
		value := s.Value
		if value == "" {
			value = "-"
		}
		if origin {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, value, s.Origin)
		} else {
			fmt.Fprintf(w, "%s\t%s\n", s.Key, value)
		}
	}
	return w.Flush()
}
