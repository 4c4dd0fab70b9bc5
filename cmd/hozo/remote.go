package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/client"
	"github.com/hozo-run/hozo/internal/server"
	"github.com/hozo-run/hozo/problem"
)

// remote says which server a command speaks to.
type remote struct {
	server  string
	keyFile string
	data    string
	json    bool
}

func (r *remote) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&r.server, "server", "", "the `URL` of the server (default HOZO_SERVER, else the one of the data directory)")
	flags.StringVar(&r.keyFile, "key-file", "", "`FILE` with an API key (default HOZO_API_KEY, HOZO_API_KEY_FILE)")
	flags.StringVar(&r.data, "data", "", "the data `DIRECTORY` of a server on this machine (default HOZO_DATA, else .hozo)")
	flags.BoolVar(&r.json, "json", false, "write JSON")
}

// client returns a client of the server: the one that flags or the environment name, or else the one that was started on
// this machine with the data directory, which lends its own key.
func (r *remote) client(p *program) (*client.Client, error) {
	url := first(r.server, p.getenv("HOZO_SERVER"))
	key, err := r.key(p)
	if err != nil {
		return nil, err
	}
	if url == "" {
		data := first(r.data, p.getenv("HOZO_DATA"), ".hozo")
		local, err := server.ReadLocal(data)
		if errors.Is(err, server.ErrNoServer) {
			return nil, usageError("no server: none runs with the data directory %s; start one with \"hozo up\", name its directory with --data or its address with --server", data)
		}
		if err != nil {
			return nil, err
		}
		if url = local.URL; key == "" {
			key = local.Key.Reveal()
		}
	}
	if key == "" {
		return nil, usageError("no API key for %s: set HOZO_API_KEY or HOZO_API_KEY_FILE, or name a file with --key-file", url)
	}
	c, err := client.New(client.Config{URL: url, Key: key, UserAgent: "hozo/" + programVersion()})
	if err != nil {
		return nil, usageError("%v", err)
	}
	return c, nil
}

func (r *remote) key(p *program) (string, error) {
	file := r.keyFile
	if file == "" {
		if key := p.getenv("HOZO_API_KEY"); key != "" {
			return key, nil
		}
		if file = p.getenv("HOZO_API_KEY_FILE"); file == "" {
			return "", nil
		}
	}
	text, err := readLimited(file, maxKeyBytes)
	if err != nil {
		return "", usageError("the file of the API key: %v", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// ask runs a command that speaks to a server, until it is done or a signal comes.
func (p *program) ask(r *remote, do func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return p.runs(func(_ *cobra.Command, args []string) error {
		c, err := r.client(p)
		if err != nil {
			return err
		}
		ctx, stop := abortOnSignals(func() {})
		defer stop()
		err = do(ctx, c, args)
		if err != nil && ctx.Err() != nil {
			return &exitError{code: exitInterrupted, err: context.Cause(ctx)}
		}
		return inWords(err)
	})
}

// inWords says what the server said, for people. The kind of the error, and with it the exit code, stays.
func inWords(err error) error {
	failed, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return err
	}
	words := &problem.Error{Kind: failed.Kind, Problems: failed.Problems}
	said, answered := errors.AsType[*client.Error](err)
	switch {
	case !answered && failed.Kind == problem.Unavailable:
		words.Message = "the server cannot be reached"
		words.Err = fmt.Errorf(`is it running? "hozo up" starts one: %w`, errors.Unwrap(failed))
	case !answered || len(failed.Problems) > 0:
		words.Message, words.Err = failed.Message, failed.Err
		if answered {
			words.Message, words.Err = "the server refuses it", nil
		}
	case said.Status == http.StatusNotFound:
		words.Message = "the server has nothing of this name that you may see"
	default:
		words.Message = strings.TrimSuffix(first(said.Detail, failed.Message), ".")
		if said.Status >= http.StatusInternalServerError {
			words.Message += " (request " + said.RequestID + ")"
		}
	}
	return words
}

// exitInterrupted is the exit code of a command that a signal ended.
const exitInterrupted = 130
