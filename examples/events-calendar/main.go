// Command events-calendar serves the reference agent: it keeps a calendar of events, researches what is missing and
// reports on every run. It is one process with one SQLite file, built on the packages of hozo; docs/examples.md explains
// how it is put together and what to copy.
//
// Without flags it runs offline: the model is a script and no language model, and the web is a handful of pages that are
// part of the program.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopTime is how long a server that is told to stop waits for requests and runs.
const stopTime = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Args[1:], os.Getenv, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "events-calendar:", err)
		os.Exit(1)
	}
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) error {
	settings, err := parse(args, getenv, stderr)
	if errors.Is(err, errHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	p, err := open(ctx, settings, log)
	if err != nil {
		return err
	}
	defer p.close()
	listener, err := net.Listen("tcp", settings.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: p.handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(stderr, "listening on http://%s\nmodel %s/%s, search %s\n", listener.Addr(), p.model.Provider, p.model.ID, p.searching)
	if settings.madeKey {
		fmt.Fprintf(stderr, "API key (for this process; set EVENTS_API_KEY to choose one): %s\n", settings.key)
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = nil
	}
	return errors.Join(err, p.stop(server))
}

// stop lets the runs go first, so that clients who wait for one get their answer.
func (p *program) stop(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	p.runner.Stop(ctx)
	if err := server.Shutdown(ctx); err != nil {
		return server.Close() // streams of runs that another process will take up have no end
	}
	return nil
}
