// Package server puts the product together: from a configuration it opens the database, the keys and the blobs, makes every
// service with what it needs of the others, and runs them as one process until it is told to stop. A process may serve the
// API, execute runs, or do both. What else the product knows of the outside (providers, tools) is given by the program in
// Parts, so that this package names no provider and no tool.
//
// The data directory is one for each process. With SQLite it holds everything; with PostgreSQL it holds only what the
// machine needs for itself, and the blobs unless they are in a bucket.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/api"
	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/builtin"
	"github.com/hozo-run/hozo/internal/checkout"
	"github.com/hozo-run/hozo/internal/compile"
	"github.com/hozo-run/hozo/internal/orchestrator"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
)

// Parts are what the program brings. All but Logger are required.
type Parts struct {
	// Version is that of the program.
	Version string
	// Adapters and Models are those of kernel.Config.
	Adapters map[string]llm.Adapter
	Models   func(api, baseURL, id string) (llm.Model, bool)
	// Kernel checks and previews jobs, Tools are its tools.
	Kernel *kernel.Runtime
	Tools  []builder.Tool
	// Jobs starts jobs: Kernel itself, or one that gives each a process.
	Jobs job.Runtime
	// First is a model that needs no key. A new installation gets it, with its account, so that agents can be tried at once;
	// the zero value is none.
	First job.ModelRef
	// Logger gets what an operator should know; nil drops it.
	Logger *slog.Logger
}

// Roles are what a process does.
type Roles struct{ API, Worker bool }

// Server is an open server. Serve it once, then Close it.
type Server struct {
	config Config
	parts  Parts
	log    *slog.Logger

	data      *data
	db        *store.DB
	keys      *secret.Ring
	folder    *artifact.Folder
	access    *access.Service
	accounts  *account.Service
	artifacts *artifact.Store
	projects  *project.Service
	agents    *builder.Service
	builtIn   *builtin.Set
	runs      *run.Store
	worker    *orchestrator.Worker
	places    *workspaces
	api       *api.Handler
}

// Open opens everything and brings the schema of the database up to date. Nothing is served or executed yet.
func Open(ctx context.Context, config Config, roles Roles, parts Parts) (*Server, error) {
	if parts.Logger == nil {
		parts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: config, parts: parts, log: parts.Logger}
	for _, open := range []func(context.Context) error{s.openStores, s.openServices, s.openBuilder} {
		if err := open(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.openRuns(ctx, roles); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.openAPI(roles); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openStores opens what is on disks: the data directory, the database, the keys and the blobs.
func (s *Server) openStores(ctx context.Context) error {
	var err error
	if s.data, err = openData(s.config.Data); err != nil {
		return err
	}
	s.db, err = store.Open(ctx, store.Config{URL: s.config.DatabaseURL.Reveal(), Path: s.data.path(databaseFile)})
	if err != nil {
		return err
	}
	if text := s.config.Keys.Reveal(); text != "" {
		s.keys, err = secret.Parse(text)
	} else {
		s.keys, err = secret.Load(s.data.path(keyFile))
	}
	if err != nil {
		return fmt.Errorf("read the key ring: %w", err)
	}
	var blobs artifact.Blobs
	if s.config.S3 != nil {
		blobs, err = artifact.NewS3(*s.config.S3)
	} else {
		s.folder, err = artifact.OpenFolder(s.data.path(blobsDir))
		blobs = s.folder
	}
	if err != nil {
		return fmt.Errorf("open the blobs: %w", err)
	}
	s.artifacts = artifact.New(artifact.Config{DB: s.db, Blobs: blobs})
	return nil
}

// openServices makes the services that stand on the database alone.
func (s *Server) openServices(ctx context.Context) error {
	var err error
	if s.access, err = access.New(access.Config{DB: s.db, Keys: s.keys, OIDC: s.config.OIDC, Local: s.data.local}); err != nil {
		return err
	}
	s.accounts, err = account.New(account.Config{DB: s.db, Keys: s.keys, Adapters: s.parts.Adapters, Models: s.parts.Models, Version: s.parts.Version})
	if err != nil {
		return err
	}
	s.projects, err = project.New(project.Config{DB: s.db, Keys: s.keys, Directories: s.config.Directories})
	if err != nil {
		return err
	}
	sealed, err := s.accounts.CheckKeys(ctx, access.DefaultTenant)
	if err != nil {
		return err
	}
	if len(sealed.Lost) > 0 {
		s.log.ErrorContext(ctx, "credentials cannot be opened: the key ring is not the one they were sealed with", "lost", sealed.Lost)
	}
	return s.firstAccount(ctx)
}

// openBuilder makes the service of agents, which asks the accounts.
func (s *Server) openBuilder(context.Context) error {
	var err error
	if s.builtIn, err = builtin.Load(); err != nil {
		return fmt.Errorf("read what the release brings: %w", err)
	}
	s.agents, err = builder.New(builder.Config{
		DB: s.db, BuiltIn: s.builtIn, Runtime: s.parts.Kernel, Tools: s.parts.Tools,
		MCPServers: func(ctx context.Context, tenant string) ([]string, error) {
			servers, err := s.accounts.Servers(ctx, tenant)
			names := make([]string, len(servers))
			for i := range servers {
				names[i] = servers[i].Name
			}
			return names, err
		},
		Bindings: func(ctx context.Context, tenant string) (map[string]builder.Binding, error) {
			bindings, err := s.accounts.Bindings(ctx, tenant, "")
			found := make(map[string]builder.Binding, len(bindings))
			for _, b := range bindings {
				found[b.Agent] = builder.Binding{Provider: b.Provider, Model: b.Model, Thinking: b.Thinking}
			}
			return found, err
		},
	})
	return err
}

// openRuns makes the store of runs and the worker, which only accepts runs if this process executes none.
func (s *Server) openRuns(ctx context.Context, roles Roles) error {
	queue, err := orchestrator.NewRiver(ctx, s.db, slog.New(quiet{s.log.Handler()}))
	if err != nil {
		return fmt.Errorf("open the queue: %w", err)
	}
	s.runs = run.New(s.db, run.Config{Blobs: s.artifacts, Queue: queue})
	checkouts, err := checkout.Open(checkout.Config{Base: s.data.path(runsDir), Cache: s.data.path(cacheDir), DB: s.db, Artifacts: s.artifacts,
		Projects: s.projects, Directories: s.config.Directories})
	if err != nil {
		return err
	}
	s.places = &workspaces{checkouts: checkouts, artifacts: s.artifacts, projects: s.projects, log: s.log, held: map[string]*heldWorkspace{}}
	compiler, err := compile.New(compile.Config{Agents: s.agents, Accounts: s.accounts, Workspaces: s.places, Journals: s.runs,
		TimeoutSec: s.config.Timeout.Seconds(), MaxTimeoutSec: s.config.MaxTimeout.Seconds(), MaxCostUSD: s.config.MaxCostUSD,
		PrivateServers: s.config.Jobs.PrivateMCP})
	if err != nil {
		return err
	}
	slots := s.config.Slots
	if !roles.Worker {
		slots = -1
	}
	host, _ := os.Hostname() // only for people
	s.worker = orchestrator.New(orchestrator.Config{Runs: s.runs, Queue: queue, Runtime: s.parts.Jobs, Compiler: compiler, Blobs: s.artifacts,
		Label: host, Place: s.data.place, Slots: slots, MaxRunning: s.config.MaxRunning, MaxQueued: s.config.MaxQueued,
		Alone: s.db.Dialect() == store.SQLite, Logger: s.log})
	return nil
}

// quiet drops what is below a warning: what a library says of its daily work is no news for an operator.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

// openAPI makes the handler of the API.
func (s *Server) openAPI(roles Roles) error {
	if !roles.API {
		return nil
	}
	var err error
	s.api, err = api.New(api.Config{Access: s.access, Accounts: s.accounts, Runs: s.runs, Orchestrator: &intake{s}, Agents: s.agents,
		Projects: s.projects, Artifacts: s.artifacts, Secure: s.config.Secure(),
		Proxies: s.config.Proxies, Ready: s.ready, Log: s.log, Version: s.parts.Version})
	return err
}

// readyWithin is how long the database may take to answer before the server says that it is not ready.
const readyWithin = 2 * time.Second

func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	return s.db.Writer().PingContext(ctx)
}

// Serve works until ctx ends, and then lets what is in flight come to an end: runs go on at the next start or elsewhere.
// The listener is nil for a process without the API. ready is called once everything works.
func (s *Server) Serve(ctx context.Context, listener net.Listener, ready func() error) error {
	working := context.WithoutCancel(ctx)
	if err := s.worker.Start(working); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	var beside sync.WaitGroup
	upkeep, stop := context.WithCancel(working)
	beside.Go(func() { s.upkeep(upkeep) })
	failed := make(chan error, 1)
	var front *http.Server
	if listener != nil {
		front = s.api.Server()
		front.Handler = s.pages(front.Handler)
		beside.Go(func() { failed <- front.Serve(listener) })
	}
	err := ready()
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	return errors.Join(err, s.drain(front, stop, &beside))
}

// drain ends the work in the order in which parts need each other.
func (s *Server) drain(server *http.Server, stop context.CancelFunc, beside *sync.WaitGroup) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Drain)
	defer cancel()
	s.log.Info("stopping", "runs", s.worker.Running())
	if s.api != nil {
		s.api.Drain()
	}
	var err error
	if server != nil {
		if err = server.Shutdown(ctx); err != nil {
			err = errors.Join(fmt.Errorf("stop the API: %w", err), server.Close())
		}
	}
	err = errors.Join(err, s.worker.Stop(ctx))
	stop()
	beside.Wait()
	return err
}

// Close closes what Open opened. It is for a server that is not served, or not any more.
func (s *Server) Close() error {
	var errs []error
	if s.runs != nil {
		s.runs.Close()
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.folder != nil {
		errs = append(errs, s.folder.Close())
	}
	if s.data != nil {
		errs = append(errs, s.data.close())
	}
	return errors.Join(errs...)
}

// Announce writes down in the data directory where the server listens, for commands on the same machine. done takes it back.
func (s *Server) Announce(url string) (done func() error, err error) {
	return s.data.silence, s.data.announce(url)
}

// FirstAdminLink returns the address at which somebody becomes the first administrator, "" if there are users already.
func (s *Server) FirstAdminLink(ctx context.Context) (string, error) {
	token, needed, err := s.access.FirstAdminLink(ctx, access.DefaultTenant)
	if err != nil || !needed {
		return "", err
	}
	return s.config.PublicURL + "/welcome#token=" + token.Reveal(), nil
}
