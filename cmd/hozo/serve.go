package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/server"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/provider/offline"
)

// serverFlags say where the configuration of a server comes from.
type serverFlags struct {
	data    string
	address string
	config  string
	set     []string
}

func (f *serverFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.data, "data", "", "the data `DIRECTORY` (default .hozo)")
	flags.StringVar(&f.config, "config", "", "read settings from this YAML `FILE` before others")
	flags.StringArrayVar(&f.set, "set", nil, "a setting as `KEY=VALUE`; hozo config show lists them")
}

// projectFile is the configuration in the working directory.
const projectFile = "hozo.yaml"

// values resolves the settings of a command line.
func (f *serverFlags) values(p *program) (server.Values, error) {
	sources := server.Sources{Flags: map[string]string{}, FlagNames: map[string]string{}, Getenv: p.getenv, Environ: p.environ()}
	for _, flag := range []struct{ name, key, value string }{{"--data", "data", f.data}, {"--address", "http.address", f.address}} {
		if flag.value != "" {
			sources.Flags[flag.key], sources.FlagNames[flag.key] = flag.value, flag.name
		}
	}
	for _, entry := range f.set {
		key, value, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, usageError("--set %q is not of the form KEY=VALUE", entry)
		}
		sources.Flags[key], sources.FlagNames[key] = value, "--set"
	}
	for _, s := range server.Settings() {
		if _, given := sources.Flags[s.Key]; given && s.Secret {
			return nil, usageError("%s is a secret, and command lines are seen by everyone on the machine: use the variable %s, or %s_FILE with the name of a file",
				s.Key, s.Env(), s.Env())
		}
	}
	if named := f.config; named != "" {
		sources.Named = []string{named}
	} else if named := p.getenv("HOZO_CONFIG"); named != "" {
		sources.Named = []string{named}
	}
	sources.Files = []string{projectFile}
	if dir := configDirectory(p.getenv); dir != "" {
		sources.Files = append(sources.Files, filepath.Join(dir, "hozo", "config.yaml"))
	}
	values, err := server.Resolve(sources)
	if err != nil {
		return nil, &exitError{code: job.ExitUsage, err: err}
	}
	return values, nil
}

// configDirectory is where a user keeps configurations, "" if nothing says so.
func configDirectory(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config")
	}
	return ""
}

// read resolves the settings and checks them.
func (f *serverFlags) read(p *program) (*server.Config, error) {
	values, err := f.values(p)
	if err != nil {
		return nil, err
	}
	config, err := values.Config()
	if err != nil {
		return nil, &exitError{code: job.ExitUsage, err: err}
	}
	return config, nil
}

func (p *program) upCommand() *cobra.Command {
	f := &serverFlags{}
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a server with everything in one directory",
		Long: `Start a server: the API, a worker that executes runs, and a database, all in this process and in one data directory,
which is made if it is missing. With database.url it works on PostgreSQL instead, beside other servers and workers.

The first start prints a link, valid once and for a day, with which somebody becomes the first administrator. Commands such
as "hozo run start" on the same machine find the server by its data directory and need no key.

Settings come from flags, then the environment (HOZO_…, and HOZO_…_FILE for the name of a file), then --config, hozo.yaml
in the working directory and hozo/config.yaml of the user, then defaults; "hozo config show" lists them with their origin.

An interrupt (Ctrl-C) or SIGTERM stops the server: calls in flight come to an end, and runs go on at the next start.`,
		Example: `  hozo up
  hozo up --data /var/lib/hozo --address 0.0.0.0:4696 --set http.public-url=https://hozo.example.com`,
		Args: noArguments,
		RunE: p.runs(func(*cobra.Command, []string) error { return p.serve(f, server.Roles{API: true, Worker: true}) }),
	}
	f.register(command)
	command.Flags().StringVar(&f.address, "address", "", "the `ADDRESS` and port to listen at (default 127.0.0.1:4696)")
	return command
}

func (p *program) serveCommand() *cobra.Command {
	f := &serverFlags{}
	command := &cobra.Command{
		Use:   "serve",
		Short: "Start a server that accepts runs and executes none",
		Long: `Start the API alone. Runs are executed by "hozo worker" processes, on this machine or others, which share the PostgreSQL
database (database.url), the key ring (keys) and the bucket of blobs (blobs.s3) with it.`,
		Example: "  HOZO_DATABASE_URL_FILE=/run/secrets/database hozo serve --address 0.0.0.0:4696",
		Args:    noArguments,
		RunE:    p.runs(func(*cobra.Command, []string) error { return p.serve(f, server.Roles{API: true}) }),
	}
	f.register(command)
	command.Flags().StringVar(&f.address, "address", "", "the `ADDRESS` and port to listen at (default 127.0.0.1:4696)")
	return command
}

func (p *program) workerCommand() *cobra.Command {
	f := &serverFlags{}
	command := &cobra.Command{
		Use:   "worker",
		Short: "Execute the runs that servers accept",
		Long: `Execute runs that "hozo serve" and "hozo up" accept, without an API. A worker needs the PostgreSQL database
(database.url) and the key ring (keys) of the servers, and a place of blobs that all share (blobs.s3, unless all are on one
machine). Workers may come and go: what one of them executes goes on elsewhere within seconds.`,
		Example: "  HOZO_DATABASE_URL=postgres://hozo@db/hozo hozo worker --data /var/lib/hozo-worker",
		Args:    noArguments,
		RunE:    p.runs(func(*cobra.Command, []string) error { return p.serve(f, server.Roles{Worker: true}) }),
	}
	f.register(command)
	return command
}

// stopOnSignals returns a context that ends at the first signal to stop. A later one ends the process at once; what comes
// within a moment of the first counts as the same, as some programs send a signal to a process and to its group.
func stopOnSignals() (context.Context, func()) {
	var asked atomic.Int64
	ctx, stop := abortOnSignals(func() {
		if at := asked.Load(); at != 0 && time.Now().UnixNano()-at > int64(time.Second) {
			os.Exit(exitInterrupted)
		}
	})
	context.AfterFunc(ctx, func() { asked.Store(time.Now().UnixNano()) })
	return ctx, stop
}

// serve runs a process of the server until a signal stops it. A second signal ends it at once.
func (p *program) serve(f *serverFlags, roles server.Roles) error {
	config, err := f.read(p)
	if err != nil {
		return err
	}
	if !(roles.API && roles.Worker) && config.DatabaseURL.Empty() {
		return usageError("a server and its workers are separate processes only with PostgreSQL: set database.url, or use hozo up")
	}
	ctx, stop := stopOnSignals()
	defer stop()
	parts, err := p.parts(config)
	if err != nil {
		return err
	}
	var listener net.Listener
	if roles.API {
		if listener, err = config.Listen(ctx); err != nil {
			return err
		}
		defer listener.Close()
	}
	s, err := server.Open(ctx, *config, roles, *parts)
	if err != nil {
		return err
	}
	finish := func() error { return nil }
	err = s.Serve(ctx, listener, func() error {
		if !roles.API {
			fmt.Fprintf(p.stdout, "hozo %s executes runs\n", programVersion())
			return nil
		}
		done, err := s.Announce("http://" + config.Address)
		finish = done
		return errors.Join(err, p.greet(ctx, s, config))
	})
	return errors.Join(err, finish(), s.Close())
}

// greet says that a server works, and where.
func (p *program) greet(ctx context.Context, s *server.Server, config *server.Config) error {
	link, err := s.FirstAdminLink(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "hozo %s is ready\n  address    %s\n  data       %s\n", programVersion(), config.PublicURL, config.Data)
	if link != "" {
		fmt.Fprintf(&b, "  first administrator (the link works once, for 24 hours):\n    %s\n", link)
	}
	_, err = io.WriteString(p.stdout, b.String())
	return err
}

// parts is what this program brings to a server.
func (p *program) parts(config *server.Config) (*server.Parts, error) {
	jobs := config.Jobs
	o := &operator{sandbox: jobs.Sandbox, shellNetwork: jobs.ShellNetwork, gitWrites: jobs.GitWrites, privateMCP: jobs.PrivateMCP,
		noProcessTools: !jobs.ProcessTools}
	kernel, err := newKernel(o)
	if err != nil {
		return nil, err
	}
	registry, err := newTools(o)
	if err != nil {
		return nil, err
	}
	parts := &server.Parts{Version: programVersion(), Adapters: adapters(), Models: lookUpModel, Kernel: kernel, Jobs: kernel,
		First: job.ModelRef{Provider: job.APIOffline, ID: offline.Surveyor}, Logger: p.serverLog(config)}
	for _, t := range registry.Tools() {
		listed := builder.Tool{Name: t.Name, Description: t.Description, Effect: string(t.Effect)}
		if o.noProcessTools && (t.Name == processTools[0] || t.Name == processTools[1]) {
			listed.Note = "this installation gives it only to agents that name it"
		}
		parts.Tools = append(parts.Tools, listed)
	}
	if !jobs.InProcess {
		children, err := jobproc.New(jobproc.Config{Logs: p.stderr, Arguments: o.arguments(), Confine: o.sandbox != sandboxNone})
		if err != nil {
			return nil, err
		}
		parts.Jobs = children
	}
	return parts, nil
}

// serverLog is the log of a server, on standard error.
func (p *program) serverLog(config *server.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: config.LogLevel}
	if config.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(p.stderr, options))
	}
	return slog.New(slog.NewTextHandler(p.stderr, options))
}

// environ lists the environment, for variables that nobody knows.
func (p *program) environ() []string { return os.Environ() }
