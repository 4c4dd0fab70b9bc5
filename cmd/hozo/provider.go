package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/client"
	"github.com/hozo-run/hozo/llm"
)

func (p *program) providerCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "provider",
		Short: "Accounts at model providers, and which agent uses which model",
		Args:  cobra.ArbitraryArgs,
		RunE:  p.group,
	}
	command.AddCommand(p.providerListCommand(), p.providerAddCommand(), p.providerTestCommand(), p.providerRemoveCommand(), p.providerBindCommand(), p.providerBindingsCommand())
	return command
}

func (p *program) providerListCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use: "list", Short: "List the accounts of a server",
		Long:    "List the accounts at model providers that a server has. Credentials are never shown, only whether there are any.",
		Example: "  hozo provider list --json",
		Args:    noArguments,
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, _ []string) error {
		found, err := c.Providers(ctx)
		if err != nil {
			return err
		}
		if r.json {
			return p.writeJSON(found)
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tAPI\tKEY\tADDRESS\tNAME")
		for i := range found {
			key := "no"
			if found[i].HasKey {
				key = "yes"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", found[i].ID, found[i].Config.API, key, first(found[i].Config.BaseURL, "-"), visibleLine(found[i].Name))
		}
		return w.Flush()
	})
	return command
}

func (p *program) providerAddCommand() *cobra.Command {
	r := &remote{}
	f := &accountFlags{}
	var name, id string
	command := &cobra.Command{
		Use:   "add PROVIDER",
		Short: "Add an account",
		Long: `Add an account at a provider. A provider that hozo knows by name needs its key only, which comes from the environment
(OPENAI_API_KEY, ANTHROPIC_API_KEY, …), or from the variable or file you name; it is sealed on the server and never shown
again. --base-url is for any server with an OpenAI-compatible API.`,
		Example: "  hozo provider add anthropic\n  hozo provider add local --base-url http://127.0.0.1:8080/v1",
		Args:    exactly("the provider"),
	}
	r.register(command)
	flags := command.Flags()
	flags.StringVar(&id, "id", "", "the `ID` of the account (default the name of the provider)")
	flags.StringVar(&name, "name", "", "the `NAME` for people (default the id)")
	flags.StringVar(&f.api, "api", "", "`API` of the provider; the provider's own if absent")
	flags.StringVar(&f.baseURL, "base-url", "", "address of the API, as `URL` without the method's path")
	flags.StringVar(&f.keyEnv, "api-key-env", "", "environment variable `NAME` that holds the key")
	flags.StringVar(&f.keyFile, "api-key-file", "", "`FILE` that holds the key")
	flags.StringVar(&f.configFile, "provider-config", "", "JSON `FILE` of accounts by provider, as in a job document")
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		f.model = args[0] + "/model"
		if args[0] == "offline" {
			f.model = "offline/surveyor"
		}
		_, config, err := f.resolve(p.getenv)
		if err != nil {
			return err
		}
		id = first(id, args[0])
		made, err := c.CreateProvider(ctx, account.ProviderDraft{ID: id, Name: first(name, id), Config: config})
		if err != nil {
			return err
		}
		if r.json {
			return p.writeJSON(made)
		}
		_, err = fmt.Fprintln(p.stdout, made.ID)
		return err
	})
	return command
}

func (p *program) providerTestCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use:     "test ID MODEL",
		Short:   "Send one small request to a model, which may cost money",
		Long:    "Send one small request with an account to a model and say whether it answered, how fast, and what is wrong if it did not.",
		Example: "  hozo provider test anthropic claude-sonnet-4-5",
		Args:    exactly("the id of the account", "the model"),
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		result, err := c.TestProvider(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		if r.json {
			err = p.writeJSON(result)
		} else if result.OK {
			_, err = fmt.Fprintf(p.stdout, "%s answers (%d ms)\n", visibleLine(first(result.ServedModel, result.Model)), result.DurationMS)
		} else {
			_, err = fmt.Fprintf(p.stdout, "%s: %s\n", result.Class, visibleLine(result.Message))
		}
		if err == nil && !result.OK {
			err = exitWith(1)
		}
		return err
	})
	return command
}

func (p *program) providerRemoveCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use: "remove ID", Short: "Remove an account with its credentials",
		Long:    "Remove an account and its credentials. An account that a binding names is kept; remove the binding first.",
		Example: "  hozo provider remove local",
		Args:    exactly("the id of the account"),
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.Provider(ctx, args[0])
		if err != nil {
			return err
		}
		return c.DeleteProvider(ctx, found.ID, client.IfMatch(found.Version))
	})
	return command
}

// everyAgent stands for every agent that has no binding of its own.
const everyAgent = "*"

func (p *program) providerBindCommand() *cobra.Command {
	r := &remote{}
	var project, thinking string
	command := &cobra.Command{
		Use:   "bind AGENT PROVIDER/MODEL",
		Short: "Say which model an agent uses",
		Long: `Bind an agent to a model. "*" stands for every agent without a binding of its own. A binding of a project goes before that
of the installation. What there was is replaced.`,
		Example: "  hozo provider bind '*' anthropic/claude-sonnet-4-5",
		Args:    exactly("the agent", "the model"),
	}
	r.register(command)
	command.Flags().StringVar(&project, "project", "", "for the runs of this `PROJECT` only")
	command.Flags().StringVar(&thinking, "thinking", "", "thinking `LEVEL`; the agent's own if absent")
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		provider, model, ok := strings.Cut(args[1], "/")
		if !ok || model == "" {
			return usageError("%q is not of the form PROVIDER/MODEL", args[1])
		}
		bound, err := c.SaveBinding(ctx, project, agentOfBinding(args[0]), client.Any, wire.BindingDraft{Provider: provider, Model: model, Thinking: llm.Level(thinking)})
		if err != nil {
			return err
		}
		if r.json {
			return p.writeJSON(bound)
		}
		return nil
	})
	return command
}

func agentOfBinding(name string) string {
	if name == everyAgent {
		return ""
	}
	return name
}

func (p *program) providerBindingsCommand() *cobra.Command {
	r := &remote{}
	var project string
	command := &cobra.Command{
		Use: "bindings", Short: "List which agent uses which model",
		Long:    "List the bindings of agents to models, those of the installation and those of projects.",
		Example: "  hozo provider bindings",
		Args:    noArguments,
	}
	r.register(command)
	command.Flags().StringVar(&project, "project", "", "those of this `PROJECT` (default those of the installation)")
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, _ []string) error {
		found, err := c.Bindings(ctx, project)
		if err != nil {
			return err
		}
		if r.json {
			return p.writeJSON(found)
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "AGENT\tMODEL\tTHINKING")
		for _, b := range found {
			fmt.Fprintf(w, "%s\t%s/%s\t%s\n", first(b.Agent, everyAgent), b.Provider, b.Model, first(string(b.Thinking), "-"))
		}
		return w.Flush()
	})
	return command
}
