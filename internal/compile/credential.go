package compile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// fill fills in the accounts and servers that a job names. Those of a job that goes on stay as they were but for their
// credentials, as it would be another job otherwise.
func (c *Compiler) fill(ctx context.Context, r run.Run, spec *job.Spec, goesOn bool) error {
	configs, err := c.config.Accounts.Configs(ctx, r.Tenant, slices.Sorted(maps.Keys(spec.Providers))...)
	if errors.Is(err, store.ErrNotFound) {
		return &problem.Error{Kind: problem.NotFound, Op: "compile the run", Err: err}
	}
	if err != nil {
		return err
	}
	for id, current := range configs {
		if before := spec.Providers[id]; goesOn {
			if current, err = renewed(before, current); err != nil {
				return &problem.Error{Kind: problem.Conflict, Op: "go on with the run", Err: fmt.Errorf("the provider %q: %w", id, err)}
			}
		}
		spec.Providers[id] = current
	}
	return c.fillServers(ctx, r, spec, goesOn)
}

var errMoved = errors.New("its API or its address is not that with which the run began")

// renewed returns the account with which a run began, with the credentials that it has now.
func renewed(before, current job.ProviderConfig) (job.ProviderConfig, error) {
	if before.API != current.API || !sameAddress(before.BaseURL, current.BaseURL) {
		return before, errMoved
	}
	before.APIKey, before.AWS, before.BaseURL = current.APIKey, current.AWS, current.BaseURL
	before.Headers = values(before.Headers, current.Headers)
	before.TagHeaders = values(before.TagHeaders, current.TagHeaders)
	return before, nil
}

// values gives names the values that they have now.
func values(names, current map[string]string) map[string]string {
	filled := maps.Clone(names)
	for name := range filled {
		filled[name] = current[name]
	}
	return filled
}

// sameAddress compares two addresses without what of them is a credential.
func sameAddress(a, b string) bool {
	left, err := url.Parse(a)
	if err != nil {
		return a == b
	}
	right, err := url.Parse(b)
	return err == nil && left.Scheme == right.Scheme && left.Host == right.Host && left.Path == right.Path
}

func (c *Compiler) fillServers(ctx context.Context, r run.Run, spec *job.Spec, goesOn bool) error {
	if spec.MCP == nil {
		return nil
	}
	names := make([]string, len(spec.MCP.Servers))
	for i, s := range spec.MCP.Servers {
		names[i] = s.Name
	}
	specs, err := c.config.Accounts.Specs(ctx, r.Tenant, names)
	if err != nil {
		return err
	}
	if specs.AllowPrivate && !c.config.PrivateServers {
		return &problem.Error{Kind: problem.Forbidden, Op: "compile the run",
			Message: "an MCP server of the agent is at a private address, which this installation keeps closed; set jobs.private-mcp to open them"}
	}
	for i, current := range specs.Servers {
		before := spec.MCP.Servers[i]
		if !goesOn {
			spec.MCP.Servers[i] = current
			continue
		}
		if !sameAddress(before.URL, current.URL) {
			return &problem.Error{Kind: problem.Conflict, Op: "go on with the run", Err: fmt.Errorf("the MCP server %q: %w", before.Name, errMoved)}
		}
		before.URL, before.Headers = current.URL, values(before.Headers, current.Headers)
		spec.MCP.Servers[i] = before
	}
	return nil
}
