package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/client"
	"github.com/hozo-run/hozo/internal/mcpserver"
)

func (p *program) mcpCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "mcp",
		Short: "MCP servers that agents use, and agents as an MCP server",
		Args:  cobra.ArbitraryArgs,
		RunE:  p.group,
	}
	command.AddCommand(p.mcpListCommand(), p.mcpShowCommand(), p.mcpAddCommand(), p.mcpRefreshCommand(), p.mcpAcceptCommand(), p.mcpRemoveCommand(), p.mcpServeCommand())
	return command
}

func (p *program) mcpListCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use: "list", Short: "List the MCP servers that agents may name",
		Long:    "List the registered MCP servers, with their state and how many tools each had when it was last asked.",
		Example: "  hozo mcp list --json",
		Args:    noArguments,
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, _ []string) error {
		servers, err := c.Servers(ctx)
		if err != nil {
			return err
		}
		if r.json {
			return p.writeJSON(servers)
		}
		w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tSTATE\tTOOLS\tURL")
		for i := range servers {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", servers[i].Name, stateOf(&servers[i]), len(servers[i].Tools), visibleLine(servers[i].URL))
		}
		return w.Flush()
	})
	return command
}

// stateOf is what there is to say of a server in one word or two.
func stateOf(s *account.Server) string {
	switch {
	case s.Disabled:
		return "disabled"
	case len(s.Drifted()) > 0:
		return string(s.State) + ", drifted"
	}
	return string(s.State)
}

func (p *program) mcpShowCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use: "show NAME", Short: "Show an MCP server with its tools",
		Long:    "Show an MCP server, and for each of its tools what the server claims about it and whether jobs get it.",
		Example: "  hozo mcp show wiki",
		Args:    exactly("the name of the server"),
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.Server(ctx, args[0])
		if err != nil {
			return err
		}
		return p.tellServer(found, r.json)
	})
	return command
}

func (p *program) tellServer(s account.Server, asJSON bool) error {
	if asJSON {
		return p.writeJSON(s)
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, stateOf(&s), visibleLine(first(s.Reason, s.URL)))
	for _, t := range s.Tools {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", visibleLine(t.Name), t.Status, t.Use)
	}
	return w.Flush()
}

func (p *program) mcpAddCommand() *cobra.Command {
	r := &remote{}
	draft := account.ServerDraft{}
	var headers []string
	command := &cobra.Command{
		Use:   "add NAME URL",
		Short: "Register an MCP server and list its tools",
		Long: `Register an MCP server. Its tools are listed and accepted as they are now; when one of them changes later, jobs do not get
it until somebody accepts the change. Tools that the server does not claim to be read-only need --allow.`,
		Example: "  hozo mcp add wiki https://wiki.example.com/mcp --header-env Authorization=WIKI_TOKEN --allow create_page",
		Args:    exactly("the name", "the URL"),
	}
	r.register(command)
	flags := command.Flags()
	flags.StringArrayVar(&headers, "header-env", nil, "send a header whose value is in an environment variable: `NAME=VARIABLE` (repeatable)")
	flags.StringSliceVar(&draft.AllowedTools, "allow", nil, "`TOOLS` that may run although they may change something")
	flags.BoolVar(&draft.Required, "required", false, "a job fails if the server cannot be used")
	flags.BoolVar(&draft.AllowPrivate, "private", false, "the server has a loopback or private address")
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		draft.Name, draft.URL = args[0], args[1]
		for _, entry := range headers {
			name, variable, ok := strings.Cut(entry, "=")
			value := p.getenv(variable)
			if !ok || value == "" {
				return usageError("--header-env %q: write NAME=VARIABLE with a variable that is set; values are not given on command lines, which everyone on the machine sees", entry)
			}
			if draft.Headers == nil {
				draft.Headers = map[string]string{}
			}
			draft.Headers[name] = value
		}
		if _, err := c.CreateServer(ctx, draft); err != nil {
			return err
		}
		found, err := c.RefreshServer(ctx, draft.Name)
		if err != nil {
			return err
		}
		return p.tellServer(found, r.json)
	})
	return command
}

func (p *program) mcpRefreshCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use: "refresh NAME", Short: "Ask an MCP server for its tools again",
		Long:    "Ask an MCP server for its tools again and show what has changed. A changed tool is withheld until it is accepted.",
		Example: "  hozo mcp refresh wiki",
		Args:    exactly("the name of the server"),
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.RefreshServer(ctx, args[0])
		if err != nil {
			return err
		}
		return p.tellServer(found, r.json)
	})
	return command
}

func (p *program) mcpAcceptCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use:     "accept NAME TOOL…",
		Short:   "Accept changed tools of an MCP server",
		Long:    `Accept the definitions of tools as they were listed last; "hozo mcp show --json" has them. What was accepted and is gone is forgotten.`,
		Example: "  hozo mcp accept wiki create_page",
		Args:    cobra.MinimumNArgs(2),
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.Server(ctx, args[0])
		if err != nil {
			return err
		}
		hashes := map[string]string{}
		for _, name := range args[1:] {
			at := slices.IndexFunc(found.Tools, func(t account.ServerTool) bool { return t.Name == name })
			if at < 0 {
				return usageError("%s has no tool %q", found.Name, name)
			}
			if hashes[name] = found.Tools[at].Hash; found.Tools[at].Status == account.ToolGone {
				hashes[name] = ""
			}
		}
		accepted, err := c.AcceptTools(ctx, args[0], hashes)
		if err != nil {
			return err
		}
		return p.tellServer(accepted, r.json)
	})
	return command
}

func (p *program) mcpRemoveCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use: "remove NAME", Short: "Forget an MCP server with its credentials",
		Long:    "Forget an MCP server, its credentials and what was accepted of its tools. Agents that name it become invalid.",
		Example: "  hozo mcp remove wiki",
		Args:    exactly("the name of the server"),
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.Server(ctx, args[0])
		if err != nil {
			return err
		}
		return c.DeleteServer(ctx, found.Name, client.IfMatch(found.Version))
	})
	return command
}

// mcpServeFlags are the flags of hozo mcp serve.
type mcpServeFlags struct {
	remote
	agents  []string
	project string
	http    string
}

func (p *program) mcpServeCommand() *cobra.Command {
	f := &mcpServeFlags{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Offer agents of a server as tools over MCP",
		Long: `Speak the Model Context Protocol on standard input and output, as programs that start MCP servers expect, and offer the
named agents as tools. Each call is a run of the server with what the key permits; one that is given up is cancelled.

With --http it listens instead, and works for each caller with the API key that the caller sends as a bearer token.`,
		Example: "  hozo mcp serve --agent structure --agent behaviour=\"Explains what a program does.\"",
		Args:    noArguments,
	}
	f.remote.register(command)
	if err := command.Flags().MarkHidden("json"); err != nil {
		panic(err) // the flag was registered above
	}
	command.Flags().StringArrayVar(&f.agents, "agent", nil, "an `AGENT` to offer, with NAME=DESCRIPTION in other words than its name (repeatable)")
	command.Flags().StringVar(&f.project, "project", "", "the `PROJECT` in which the runs work")
	command.Flags().StringVar(&f.http, "http", "", "listen at this `ADDRESS` and port instead")
	command.RunE = p.runs(func(*cobra.Command, []string) error { return p.serveMCP(f) })
	return command
}

func (f *mcpServeFlags) offered() []mcpserver.Agent {
	var agents []mcpserver.Agent
	for _, entry := range f.agents {
		name, description, _ := strings.Cut(entry, "=")
		agents = append(agents, mcpserver.Agent{Name: name, Description: first(description, "The agent "+name+" works on a task by itself and answers with text.")})
	}
	return agents
}

func (p *program) serveMCP(f *mcpServeFlags) error {
	if len(f.agents) == 0 {
		return usageError("name the agents to offer with --agent")
	}
	c, err := f.client(p)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	serverFor := func(c *client.Client) (*mcp.Server, error) {
		return mcpserver.New(mcpserver.Config{Runs: c, Agents: f.offered(), Project: f.project, Version: programVersion(), Logger: logger})
	}
	ctx, stop := stopOnSignals()
	defer stop()
	if f.http != "" {
		return p.serveMCPOverHTTP(ctx, f, c, serverFor, logger)
	}
	server, err := serverFor(c)
	if err != nil {
		return err
	}
	if err := server.Run(ctx, &mcp.StdioTransport{}); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// serveMCPOverHTTP works for each caller with the key of the caller.
func (p *program) serveMCPOverHTTP(ctx context.Context, f *mcpServeFlags, c *client.Client, serverFor func(*client.Client) (*mcp.Server, error), logger *slog.Logger) error {
	var way net.ListenConfig
	listener, err := way.Listen(ctx, "tcp", f.http)
	if err != nil {
		return err
	}
	front := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: mcpserver.Handler(func(key string) (*mcp.Server, error) {
		return serverFor(c.WithKey(key))
	}, logger)}
	fmt.Fprintf(p.stdout, "MCP at http://%s/\n", listener.Addr())
	failed := make(chan error, 1)
	go func() { failed <- front.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = front.Shutdown(limited)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
