package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/builder"
)

// admin joins the segments of a path of agents and skills, each of them escaped.
func admin(segments ...string) string {
	at := "/api/admin"
	for _, s := range segments {
		at += "/" + url.PathEscape(s)
	}
	return at
}

// versionQuery names a version; 0 is the current one.
func versionQuery(version int64, pairs ...string) url.Values {
	q := query(pairs...)
	if version > 0 {
		q.Set("version", strconv.FormatInt(version, 10))
	}
	return q
}

// Agents returns the agents of the release and of the installation.
func (c *Client) Agents(ctx context.Context) ([]builder.Agent, error) {
	return items[builder.Agent](ctx, c, get(admin("agents"), nil))
}

// AgentContext returns what an agent may name, and which names are taken.
func (c *Client) AgentContext(ctx context.Context) (builder.Surroundings, error) {
	return as[builder.Surroundings](ctx, c, get(admin("agents", "context"), nil))
}

// Agent returns one agent in full.
func (c *Client) Agent(ctx context.Context, name string) (wire.AgentDetail, error) {
	return as[wire.AgentDetail](ctx, c, get(admin("agents", name), nil))
}

// CreateAgent saves a new agent.
func (c *Client) CreateAgent(ctx context.Context, draft wire.AgentDraft) (builder.Saved, error) {
	return as[builder.Saved](ctx, c, call{method: http.MethodPost, path: admin("agents"), body: draft})
}

// SaveAgent saves a new version of an agent and makes it current. revision is that of the agent the draft was made from.
func (c *Client) SaveAgent(ctx context.Context, name string, revision IfMatch, draft wire.AgentDraft) (builder.Saved, error) {
	return as[builder.Saved](ctx, c, change(http.MethodPut, admin("agents", name), revision, draft))
}

// SwitchAgent switches an agent on or off.
func (c *Client) SwitchAgent(ctx context.Context, name string, revision IfMatch, enabled bool) (builder.Saved, error) {
	return as[builder.Saved](ctx, c, change(http.MethodPatch, admin("agents", name), revision, wire.AgentSwitch{Enabled: enabled}))
}

// DeleteAgent removes an agent with its versions.
func (c *Client) DeleteAgent(ctx context.Context, name string, revision IfMatch) error {
	return c.done(ctx, change(http.MethodDelete, admin("agents", name), revision, nil))
}

// CopyAgent makes an agent out of another one.
func (c *Client) CopyAgent(ctx context.Context, from string, to wire.AgentCopy) (builder.Saved, error) {
	return as[builder.Saved](ctx, c, call{method: http.MethodPost, path: admin("agents", from, "copy"), body: to})
}

// PreviewAgent checks a draft and shows the job that would come of it; nothing is kept.
func (c *Client) PreviewAgent(ctx context.Context, draft wire.PreviewRequest) (builder.Preview, error) {
	return as[builder.Preview](ctx, c, call{method: http.MethodPost, path: admin("agents", "preview"), body: draft, again: true})
}

// AgentDefinition returns the agent's part of a job; version 0 is the current one.
func (c *Client) AgentDefinition(ctx context.Context, name string, version int64) (wire.AgentDefinition, error) {
	return as[wire.AgentDefinition](ctx, c, get(admin("agents", name, "definition"), versionQuery(version)))
}

// ImportAgents imports agents or skills: all of them, or with any problem none.
func (c *Client) ImportAgents(ctx context.Context, request wire.AgentImport) (builder.Imported, error) {
	return as[builder.Imported](ctx, c, call{method: http.MethodPost, path: admin("agents", "import"), body: request})
}

// ExportAgent returns a version of an agent as a ZIP archive; version 0 is the current one. The caller closes it.
func (c *Client) ExportAgent(ctx context.Context, name string, version int64, format builder.Format) (io.ReadCloser, error) {
	return c.content(ctx, admin("agents", name, "export"), versionQuery(version, "format", string(format)))
}

// AgentVersions returns the history of an agent, the newest version first.
func (c *Client) AgentVersions(ctx context.Context, name string) ([]builder.Version, error) {
	return items[builder.Version](ctx, c, get(admin("agents", name, "versions"), nil))
}

// AgentVersion returns one version with its files.
func (c *Client) AgentVersion(ctx context.Context, name string, version int64) (wire.AgentVersion, error) {
	return as[wire.AgentVersion](ctx, c, get(admin("agents", name, "versions", strconv.FormatInt(version, 10)), nil))
}

// RestoreAgent makes an older version current again.
func (c *Client) RestoreAgent(ctx context.Context, name string, version int64, revision IfMatch) (builder.Saved, error) {
	return as[builder.Saved](ctx, c, change(http.MethodPost, admin("agents", name, "versions", strconv.FormatInt(version, 10), "restore"), revision, nil))
}

// Skills returns the shared skills of the release and of the installation.
func (c *Client) Skills(ctx context.Context) ([]builder.SkillSummary, error) {
	return items[builder.SkillSummary](ctx, c, get(admin("agent-skills"), nil))
}

// Skill returns one shared skill.
func (c *Client) Skill(ctx context.Context, name string) (builder.SharedSkill, error) {
	return as[builder.SharedSkill](ctx, c, get(admin("agent-skills", name), nil))
}

// CreateSkill saves a new shared skill; file is its SKILL.md.
func (c *Client) CreateSkill(ctx context.Context, name, file string) (builder.SharedSkill, error) {
	return as[builder.SharedSkill](ctx, c, call{method: http.MethodPost, path: admin("agent-skills"), body: wire.NewSkill{Name: name, File: file}})
}

// SaveSkill changes a shared skill for the next job of every agent that names it.
func (c *Client) SaveSkill(ctx context.Context, name string, revision IfMatch, file string) (builder.SharedSkill, error) {
	return as[builder.SharedSkill](ctx, c, change(http.MethodPut, admin("agent-skills", name), revision, wire.SkillDraft{File: file}))
}

// DeleteSkill removes a shared skill that no agent needs.
func (c *Client) DeleteSkill(ctx context.Context, name string, revision IfMatch) error {
	return c.done(ctx, change(http.MethodDelete, admin("agent-skills", name), revision, nil))
}

// ExportSkill returns a shared skill as a ZIP archive. The caller closes it.
func (c *Client) ExportSkill(ctx context.Context, name string) (io.ReadCloser, error) {
	return c.content(ctx, admin("agent-skills", name, "export"), nil)
}
