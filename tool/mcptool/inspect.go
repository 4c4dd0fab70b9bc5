package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/problem"
)

// Definition is a tool as its server lists it, for people who decide about it. Texts are cleaned like those for a model
// and hold no header value.
type Definition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	// What the server claims, with the protocol's defaults for what it does not say.
	ReadOnly    bool `json:"readOnly"`
	Destructive bool `json:"destructive"`
	Idempotent  bool `json:"idempotent"`
	OpenWorld   bool `json:"openWorld"`
	// Hash is the DefinitionHash, by which the tool can be pinned.
	Hash string `json:"hash"`
}

// Inspect opens the only server of c and returns every tool that it lists, sorted by name, whether a job could use it or
// not, and closes the connection. c.Allow is not looked at. Notices tell of tools that cannot be used at all. A server
// that cannot be used is an *UnavailableError; the other errors are those of Connect.
func Inspect(ctx context.Context, c Config) ([]Definition, []Notice, error) {
	if err := Check(c.Servers, nil, c.AllowPrivate).Err("inspect an MCP server"); err != nil {
		return nil, nil, err
	}
	if len(c.Servers) != 1 {
		return nil, nil, &problem.Error{Kind: problem.Invalid, Op: "inspect an MCP server", Message: fmt.Sprintf("there are %d servers instead of one", len(c.Servers))}
	}
	if c.Deadline <= 0 {
		c.Deadline = defaultDeadline
	}
	srv := newServer(&c, &c.Servers[0], &wish{all: true})
	defer srv.close()
	limited, cancel := context.WithTimeout(ctx, c.Deadline)
	defer cancel()
	stop := context.AfterFunc(limited, func() { srv.wire.drop(false) })
	defer stop()
	session, listed, err := srv.open(limited, "")
	if err != nil {
		if limited.Err() != nil {
			err = limited.Err()
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, &UnavailableError{Servers: []string{srv.config.Name}, Reasons: []string{srv.secrets.remove(reason(err))}}
	}
	srv.mu.Lock()
	srv.session = session
	srv.mu.Unlock()
	l := &listing{server: srv}
	for _, d := range srv.dropped {
		l.withhold(d[0], d[1])
	}
	definitions := make([]Definition, 0, len(listed))
	for _, t := range listed {
		d, err := srv.defined(t)
		if err != nil {
			l.withhold(t.Name, err.Error())
			continue
		}
		definitions = append(definitions, d)
	}
	return definitions, l.notices, nil
}

// defined returns the definition of a tool. One whose name holds a credential is an error: it could not be called by the
// name that may be shown.
func (srv *server) defined(t *mcp.Tool) (Definition, error) {
	if srv.secrets.remove(t.Name) != t.Name {
		return Definition{}, errors.New("its name holds what was sent to the server as a credential")
	}
	hash, err := definitionHash(t)
	if err != nil {
		return Definition{}, err
	}
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return Definition{}, fmt.Errorf("the input schema cannot be written: %w", err)
	}
	d := Definition{Name: t.Name, Title: srv.shown(t.Title), Description: srv.shown(t.Description), Destructive: true, OpenWorld: true, Hash: hash,
		InputSchema: json.RawMessage(srv.secrets.remove(string(schema)))}
	if a := t.Annotations; a != nil {
		d.ReadOnly, d.Idempotent = a.ReadOnlyHint, a.IdempotentHint
		if a.DestructiveHint != nil {
			d.Destructive = *a.DestructiveHint
		}
		if a.OpenWorldHint != nil {
			d.OpenWorld = *a.OpenWorldHint
		}
		if d.Title == "" {
			d.Title = srv.shown(a.Title)
		}
	}
	return d, nil
}

// shown is a text of the server for people.
func (srv *server) shown(text string) string {
	text, _ = clean(srv.secrets.remove(text))
	if len(text) > maxDescription {
		text = text[:border(text, maxDescription)] + "…"
	}
	return text
}
