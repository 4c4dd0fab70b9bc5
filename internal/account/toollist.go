package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool/mcptool"
)

// maxToolList bounds the list of one server that is kept, as JSON.
const maxToolList = 4 << 20

// ToolStatus compares a tool with what somebody accepted.
type ToolStatus string

// The statuses.
const (
	// ToolAccepted is a tool as it was accepted.
	ToolAccepted ToolStatus = "accepted"
	// ToolNew was not there when the tools were accepted. It may be used under the same rules as others.
	ToolNew ToolStatus = "new"
	// ToolChanged has another definition than the accepted one. Jobs do not get it.
	ToolChanged ToolStatus = "changed"
	// ToolGone was accepted, and the server does not list it any more.
	ToolGone ToolStatus = "gone"
)

// ToolUse is what jobs may do with a tool.
type ToolUse string

// The uses.
const (
	// UseClaimed is a tool that jobs get since the server claims that it only reads. That is a claim, not a fact.
	UseClaimed ToolUse = "read-only-claim"
	// UseAllowed is a tool that jobs get since it is in AllowedTools.
	UseAllowed ToolUse = "allowed"
	// UseWithheld is a tool that no job gets: nobody vouches for it, or it has changed, or is gone.
	UseWithheld ToolUse = "withheld"
)

// ServerTool is a tool of an MCP server with what is to be decided about it.
type ServerTool struct {
	mcptool.Definition
	Status ToolStatus `json:"status"`
	Use    ToolUse    `json:"use"`
	// Accepted is the definition that was accepted, where the tool differs from it.
	Accepted *mcptool.Definition `json:"accepted,omitempty"`
}

// pin is an accepted definition, under the name of its tool.
type pin struct {
	Definition mcptool.Definition `json:"definition"`
}

// hashes returns the pins as a job has them.
func (server *Server) hashes() map[string]string {
	if len(server.pins) == 0 {
		return nil
	}
	hashes := make(map[string]string, len(server.pins))
	for name, p := range server.pins {
		hashes[name] = p.Definition.Hash
	}
	return hashes
}

// judge makes Tools of the list and the pins.
func (server *Server) judge() {
	server.Tools = []ServerTool{}
	listed := map[string]bool{}
	for _, d := range server.listed {
		listed[d.Name] = true
		tool := ServerTool{Definition: d, Status: ToolNew}
		if p, pinned := server.pins[d.Name]; pinned {
			tool.Status = ToolAccepted
			if p.Definition.Hash != d.Hash {
				tool.Status, tool.Accepted = ToolChanged, &p.Definition
			}
		}
		switch {
		case tool.Status == ToolChanged:
			tool.Use = UseWithheld
		case slices.Contains(server.AllowedTools, d.Name):
			tool.Use = UseAllowed
		case d.ReadOnly:
			tool.Use = UseClaimed
		default:
			tool.Use = UseWithheld
		}
		server.Tools = append(server.Tools, tool)
	}
	for _, name := range slices.Sorted(maps.Keys(server.pins)) {
		if !listed[name] && server.State != ServerUnchecked {
			server.Tools = append(server.Tools, ServerTool{Definition: server.pins[name].Definition, Status: ToolGone, Use: UseWithheld})
		}
	}
	slices.SortStableFunc(server.Tools, func(a, b ServerTool) int { return strings.Compare(a.Name, b.Name) })
}

// Drifted returns the names of tools that differ from what was accepted, are new, or are gone.
func (server *Server) Drifted() []string {
	var names []string
	for _, t := range server.Tools {
		if t.Status != ToolAccepted {
			names = append(names, t.Name)
		}
	}
	return names
}

// Refresh asks a server for its tools and keeps the list. The tools of the first list are accepted as they are: they are
// what the server had when it was registered. A server that cannot be used is no error: State and Reason say so, and the
// tools known so far stay. Errors are store.ErrNotFound, store.ErrStale if the server was changed meanwhile, and that of
// credentials that cannot be opened.
func (s *Service) Refresh(ctx context.Context, tenant, name string) (Server, error) {
	server, err := serverByName(ctx, s.db, tenant, name)
	if err != nil {
		return Server{}, err
	}
	held, err := unseal(s.keys, serverPlace(tenant, name), server.sealed)
	if err != nil {
		return Server{}, err
	}
	definitions, err := s.inspect(ctx, server, held)
	if ctx.Err() != nil {
		return Server{}, context.Cause(ctx)
	}
	server.State, server.Reason, server.CheckedAt = ServerReady, "", s.moment()
	if err != nil {
		server.State, server.Reason = ServerUnavailable, held.scrub(err.Error())
	} else {
		server.listed = definitions
		if server.pins == nil {
			server.pins = map[string]pin{}
			for _, d := range definitions {
				server.pins[d.Name] = pin{d}
			}
		}
	}
	if err := s.db.Write(ctx, func(tx *store.Tx) error { return observeServer(ctx, tx, tenant, &server) }); err != nil {
		return Server{}, err
	}
	server.judge()
	return server, nil
}

// inspect returns the list of a server without its credentials in it. The error says why there is none.
func (s *Service) inspect(ctx context.Context, server Server, held credentials) ([]mcptool.Definition, error) {
	definitions, _, err := mcptool.Inspect(ctx, mcptool.Config{
		Servers:      []mcptool.Server{ready(server.Name, joinQuery(server.URL, held.Query), held.Headers, server.ServerSettings, nil)},
		AllowPrivate: server.AllowPrivate, Deadline: s.config.TestTimeout, Version: s.config.Version,
	})
	if lost, ok := errors.AsType[*mcptool.UnavailableError](err); ok {
		return nil, errors.New(strings.Join(lost.Reasons, "; "))
	}
	if err != nil {
		return nil, err
	}
	size := 0
	definitions = slices.DeleteFunc(definitions, func(d mcptool.Definition) bool { return held.scrub(d.Name) != d.Name })
	for i := range definitions {
		d := &definitions[i]
		d.Title, d.Description = held.scrub(d.Title), held.scrub(d.Description)
		d.InputSchema = json.RawMessage(held.scrub(string(d.InputSchema)))
		size += len(d.Title) + len(d.Description) + len(d.InputSchema)
	}
	if size > maxToolList {
		return nil, fmt.Errorf("the definitions of its tools have %d bytes together; the limit is %d", size, maxToolList)
	}
	return definitions, nil
}

// Accept pins tools as they were listed last, or drops the pins of tools that are gone. hashes are those that the caller
// looked at, by name, "" for a tool that is gone; one that is not the current one is a *problem.Error of kind Conflict, and
// nothing is accepted then. version is that of the server; the other errors are store.ErrNotFound and store.ErrStale.
func (s *Service) Accept(ctx context.Context, tenant, name string, version int64, hashes map[string]string) (Server, error) {
	var server Server
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		var err error
		if server, err = serverByName(ctx, tx, tenant, name); err != nil {
			return err
		}
		if server.Version != version {
			return store.ErrStale
		}
		if server.pins == nil {
			server.pins = map[string]pin{}
		}
		for _, tool := range slices.Sorted(maps.Keys(hashes)) {
			if err := server.accept(tool, hashes[tool]); err != nil {
				return err
			}
		}
		server.UpdatedAt = s.moment()
		return updateServer(ctx, tx, tenant, &server)
	})
	server.judge()
	return server, err
}

// accept pins one tool, or forgets the pin of one that is gone.
func (server *Server) accept(tool, hash string) error {
	i := slices.IndexFunc(server.listed, func(d mcptool.Definition) bool { return d.Name == tool })
	switch {
	case i < 0 && hash == "":
		delete(server.pins, tool)
		return nil
	case i < 0:
		return &problem.Error{Kind: problem.Conflict, Op: "accept tools", Message: fmt.Sprintf("the server does not list the tool %q any more", shorten(tool))}
	case server.listed[i].Hash != hash:
		return &problem.Error{Kind: problem.Conflict, Op: "accept tools", Message: fmt.Sprintf("the tool %q has changed again; look at it once more", shorten(tool))}
	}
	server.pins[tool] = pin{server.listed[i]}
	return nil
}

// RefreshDue refreshes the enabled servers of a tenant that were not looked at for a while, and returns those with drift.
// Faults of single servers are in their State; the error is the first of another kind.
func (s *Service) RefreshDue(ctx context.Context, tenant string, age time.Duration) ([]Server, error) {
	servers, err := listServers(ctx, s.db, tenant)
	if err != nil {
		return nil, err
	}
	var drifted []Server
	var first error
	for _, server := range servers {
		if server.Disabled || s.now().Sub(server.CheckedAt) < age {
			continue
		}
		fresh, err := s.Refresh(ctx, tenant, server.Name)
		if err != nil && !errors.Is(err, store.ErrStale) && !errors.Is(err, store.ErrNotFound) && first == nil {
			first = err
		}
		if len(fresh.Drifted()) > 0 {
			drifted = append(drifted, fresh)
		}
	}
	return drifted, first
}
