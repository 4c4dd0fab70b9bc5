package main

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/hostlender"
	"github.com/hozo-run/hozo/kernel/mcplender"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/modeltable"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"

	"github.com/hozo-run/hozo/examples/events-calendar/agent"
	"github.com/hozo-run/hozo/examples/events-calendar/api"
	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/database"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/prompt"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
	"github.com/hozo-run/hozo/examples/events-calendar/runner"
	"github.com/hozo-run/hozo/examples/events-calendar/search"
)

//go:embed script/demo.yaml
var demoScript []byte

// version is what others are told about this program.
const version = "1"

// program is everything that a server holds.
type program struct {
	handler   http.Handler
	runner    *runner.Runner
	model     job.ModelRef
	searching string

	closers []func() error
}

// close releases what open has opened, in reverse.
func (p *program) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		_ = p.closers[i]() // the process ends; what was to be kept has been kept
	}
}

// open wires the program and starts its runner. It is the only place that knows which parts there are.
func open(ctx context.Context, s *settings, log *slog.Logger) (_ *program, err error) {
	p := &program{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	config := runner.Config{Dir: filepath.Join(s.data, "runs"), PromptLabel: s.promptLabel, Concurrent: s.runs, Waiting: s.waiting, Log: log}
	if config.Agent, err = agent.Parse(agent.Files, agent.Name); err != nil {
		return nil, err
	}
	lessons, err := p.stores(ctx, s, &config)
	if err != nil {
		return nil, err
	}
	if err := s.chooseModel(&config); err != nil {
		return nil, err
	}
	if err := p.chooseSearch(s, &config); err != nil {
		return nil, err
	}
	if config.Runtime, err = newRuntime(s.private || s.search == demo); err != nil {
		return nil, err
	}
	if s.langfuseURL != "" {
		config.Prompts, err = prompt.NewLangfuse(prompt.LangfuseConfig{URL: s.langfuseURL, PublicKey: s.langfusePublic, SecretKey: s.langfuseSecret})
		if err != nil {
			return nil, err
		}
	}
	p.model = config.Model
	if p.runner, err = runner.New(config); err != nil {
		return nil, err
	}
	p.handler, err = api.New(api.Config{Agent: p.runner, Runs: config.Runs, Calendar: config.Calendar, Memory: lessons, Key: s.key, Version: version, Log: log})
	if err != nil {
		return nil, err
	}
	return p, p.runner.Start(ctx)
}

// stores opens the database and what is kept in it.
func (p *program) stores(ctx context.Context, s *settings, c *runner.Config) (*memory.Store, error) {
	if err := os.MkdirAll(s.data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	var db *sql.DB
	db, err := database.Open(ctx, filepath.Join(s.data, "events.db"))
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, db.Close)
	lessons, err := memory.Open(ctx, memory.Config{DB: db})
	if err != nil {
		return nil, err
	}
	c.Memory = lessons
	if c.Calendar, err = calendar.Open(ctx, calendar.Config{DB: db}); err != nil {
		return nil, err
	}
	c.Runs, err = run.Open(ctx, run.Config{DB: db})
	return lessons, err
}

// newRuntime wires the kernel: Chat Completions, which every OpenAI-compatible server speaks, the scripted model, and the
// two kinds of tools that come from outside. It has no tools of its own, so no agent of this program can touch a file or
// start a process.
func newRuntime(private bool) (*kernel.Runtime, error) {
	none, err := tool.NewRegistry()
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Config{
		Version:  version,
		Adapters: map[string]llm.Adapter{job.APIOpenAIChat: openaichat.New, job.APIScripted: scripted.New},
		Models:   findModel,
		Tools:    none,
		Lenders:  []kernel.Lender{hostlender.New(version), mcplender.New(mcplender.Options{AllowPrivate: private, Version: version})},
	})
}

func findModel(api, baseURL, id string) (llm.Model, bool) {
	if api == job.APIScripted {
		return llm.Model{ID: id, Name: "scripted model", Price: &llm.Price{}, Simulated: true}, true
	}
	return modeltable.Lookup(api, baseURL, id)
}

// chooseModel sets the model and its account.
func (s *settings) chooseModel(c *runner.Config) error {
	if s.model == demo {
		text := demoScript
		if s.script != nil {
			text = s.script
		}
		script, err := scripted.FromYAML(text)
		if err != nil {
			return fmt.Errorf("read the demo script: %w", err)
		}
		c.Model, c.Provider = job.ModelRef{Provider: "script", ID: demo}, job.ProviderConfig{API: job.APIScripted, Script: script}
		c.Simulated, c.Priced = true, true
		return nil
	}
	c.Model = job.ModelRef{Provider: "endpoint", ID: s.model}
	c.Provider = job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: s.baseURL, APIKey: s.modelKey, TagHeaders: s.tagHeaders, TagPreset: s.gateway}
	var override job.ModelConfig
	if s.contextWindow > 0 {
		override.ContextWindow = &s.contextWindow
	}
	if s.textCalls != "" {
		override.Compat = &llm.Compat{TextToolCalls: s.textCalls}
	}
	if override.ContextWindow != nil || override.Compat != nil {
		c.Provider.Models = map[string]job.ModelConfig{s.model: override}
	}
	known, ok := findModel(job.APIOpenAIChat, s.baseURL, s.model)
	c.Priced = ok && known.Price != nil
	return nil
}

// chooseSearch sets the search server. The small web is served on a port of its own, so that the agent reaches it as it
// reaches any other.
func (p *program) chooseSearch(s *settings, c *runner.Config) error {
	p.searching = "none"
	switch s.search {
	case "":
		return nil
	case demo:
		handler, err := search.Handler(search.Config{})
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("serve the small web: %w", err)
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: stopTime}
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Serve(listener) }() // it ends when it is closed
		p.closers = append(p.closers, func() error { err := server.Close(); <-done; return err })
		p.searching = "the small web of the program"
		c.Search = &job.MCPServer{URL: fmt.Sprintf("http://%s/mcp", listener.Addr())}
		return nil
	}
	c.Search = &job.MCPServer{URL: s.search, AllowedTools: s.searchTools}
	if s.searchAuthorization != "" {
		c.Search.Headers = map[string]string{"Authorization": s.searchAuthorization}
	}
	p.searching = "as configured"
	return nil
}
