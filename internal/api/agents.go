package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/builder"
)

// uploads lets a body be as large as a package can be.
func uploads() func(*huma.Operation) {
	return func(op *huma.Operation) { op.MaxBodyBytes = maxUpload }
}

func (h *Handler) agents() {
	const tag, all, one = "agents", "/api/admin/agents", "/api/admin/agents/{name}"
	agents := h.config.Agents
	route(h, tag, "list-agents", "GET "+all, "Agents of the release and of the installation", func(ctx context.Context, _ *nothing) (*plain[wire.Page[builder.Agent]], error) {
		return whole(agents.List(ctx, tenantOf(ctx)))
	})
	route(h, tag, "get-agent-context", "GET "+all+"/context", "What an agent may name: tools, MCP servers and shared skills, and names that are taken", func(ctx context.Context, _ *nothing) (*plain[builder.Surroundings], error) {
		found, err := agents.Surroundings(ctx, tenantOf(ctx))
		if err != nil {
			return nil, err
		}
		return &plain[builder.Surroundings]{*found}, nil
	})
	route(h, tag, "create-agent", "POST "+all, "Save a new agent", h.createAgent, makes(), uploads())
	route(h, tag, "preview-agent", "POST "+all+"/preview", "Check a draft and show the job that would come of it; nothing is kept", h.previewAgent, uploads())
	route(h, tag, "import-agents", "POST "+all+"/import", "Import agents or skills: all of them, or with any problem none", h.importAgents, makes(), uploads())
	route(h, tag, "get-agent", "GET "+one, "One agent in full", h.getAgent)
	route(h, tag, "save-agent", "PUT "+one, "Save a new version and make it current", h.saveAgent, uploads())
	route(h, tag, "switch-agent", "PATCH "+one, "Switch an agent on or off; no version is made", func(ctx context.Context, in *struct {
		ChangeByName
		Body wire.AgentSwitch
	}) (*tagged[builder.Saved], error) {
		base, err := in.version()
		if err != nil {
			return nil, err
		}
		return tagSaved(agents.SetEnabled(ctx, tenantOf(ctx), in.Name, in.Body.Enabled, base))
	})
	route(h, tag, "delete-agent", "DELETE "+one, "Remove an agent with its versions", func(ctx context.Context, in *ChangeByName) (*nothing, error) {
		base, err := in.version()
		if err != nil {
			return nil, err
		}
		return nil, agents.Delete(ctx, tenantOf(ctx), in.Name, base)
	})
	route(h, tag, "copy-agent", "POST "+one+"/copy", "Make an agent out of another one", h.copyAgent, makes())
	route(h, tag, "get-agent-definition", "GET "+one+"/definition", "The agent's part of a job, and what a model would be told", h.agentDefinition)
	route(h, tag, "export-agent", "GET "+one+"/export", "A version of an agent as a ZIP archive", h.exportAgent, content("application/zip", "The archive."))
	h.agentVersions(tag, one)
}

func (h *Handler) agentVersions(tag, one string) {
	agents := h.config.Agents
	route(h, tag, "list-agent-versions", "GET "+one+"/versions", "The history of an agent, newest first", func(ctx context.Context, in *ByName) (*plain[wire.Page[builder.Version]], error) {
		return whole(agents.Versions(ctx, tenantOf(ctx), in.Name))
	})
	route(h, tag, "get-agent-version", "GET "+one+"/versions/{version}", "One version with its files", func(ctx context.Context, in *VersionPath) (*plain[wire.AgentVersion], error) {
		v, err := agents.Version(ctx, tenantOf(ctx), in.Name, in.Version)
		if err != nil {
			return nil, err
		}
		return &plain[wire.AgentVersion]{wire.AgentVersion{Version: v.Version, Files: filesOf(v.Files)}}, nil
	})
	route(h, tag, "restore-agent-version", "POST "+one+"/versions/{version}/restore", "Make an older version current again", func(ctx context.Context, in *struct {
		Precondition
		VersionPath
	}) (*tagged[builder.Saved], error) {
		base, err := in.version()
		if err != nil {
			return nil, err
		}
		return tagSaved(agents.Restore(ctx, tenantOf(ctx), in.Name, in.Version, base))
	})
}

// VersionPath names a version of an agent.
type VersionPath struct {
	Name    string `path:"name" maxLength:"128"`
	Version int64  `path:"version" minimum:"1"`
}

func tagSaved(s *builder.Saved, err error) (*tagged[builder.Saved], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[builder.Saved]{wire.ETag(s.Revision), *s}, nil
}

func newAgent(s *builder.Saved, err error) (*created[builder.Saved], error) {
	if err != nil {
		return nil, err
	}
	return &created[builder.Saved]{"/api/admin/agents/" + s.Name, wire.ETag(s.Revision), *s}, nil
}

func (h *Handler) createAgent(ctx context.Context, in *bodyOf[wire.AgentDraft]) (*created[builder.Saved], error) {
	draft, err := draftOf(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	return newAgent(h.config.Agents.Create(ctx, tenantOf(ctx), draft))
}

func (h *Handler) saveAgent(ctx context.Context, in *struct {
	ChangeByName
	Body wire.AgentDraft
}) (*tagged[builder.Saved], error) {
	base, err := in.version()
	if err != nil {
		return nil, err
	}
	draft, err := draftOf(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	return tagSaved(h.config.Agents.Save(ctx, tenantOf(ctx), in.Name, draft, base))
}

func (h *Handler) copyAgent(ctx context.Context, in *struct {
	ByName
	Body wire.AgentCopy
}) (*created[builder.Saved], error) {
	return newAgent(h.config.Agents.Copy(ctx, tenantOf(ctx), builder.CopyRequest{
		From: in.Name, Version: in.Body.Version, To: in.Body.Name, Note: in.Body.Note, Author: authorOf(ctx),
	}))
}

// authorOf names the caller in the history of an agent.
func authorOf(ctx context.Context) string { return cmp.Or(principalOf(ctx).Name, actorOf(ctx)) }

func (h *Handler) getAgent(ctx context.Context, in *ByName) (*tagged[wire.AgentDetail], error) {
	found, err := h.config.Agents.Get(ctx, tenantOf(ctx), in.Name)
	if err != nil {
		return nil, err
	}
	bindings, err := h.visibleBindings(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &tagged[wire.AgentDetail]{wire.ETag(found.Revision), wire.AgentDetail{Detail: *found, Files: filesOf(found.Files), Bindings: bindings}}, nil
}

// visibleBindings returns the bindings of an agent that the caller may see.
func (h *Handler) visibleBindings(ctx context.Context, agent string) ([]account.Binding, error) {
	all, err := h.config.Accounts.AgentBindings(ctx, tenantOf(ctx), agent)
	return slices.DeleteFunc(all, func(b account.Binding) bool { return !seesBindings(ctx, b.Project) }), err
}

func (h *Handler) previewAgent(ctx context.Context, in *bodyOf[wire.PreviewRequest]) (*plain[builder.Preview], error) {
	draft, err := draftOf(ctx, wire.AgentDraft{Files: in.Body.Files})
	if err != nil {
		return nil, err
	}
	preview, err := h.config.Agents.Preview(ctx, tenantOf(ctx), in.Body.Name, draft.Files)
	if err != nil {
		return nil, err
	}
	return &plain[builder.Preview]{*preview}, nil
}

func (h *Handler) agentDefinition(ctx context.Context, in *struct {
	ByName
	Version int64 `query:"version" minimum:"0" doc:"The version; the current one if absent."`
}) (*plain[wire.AgentDefinition], error) {
	found, err := h.config.Agents.Definition(ctx, tenantOf(ctx), in.Name, in.Version)
	if err != nil {
		return nil, err
	}
	prompt, err := h.config.Agents.PromptOf(ctx, tenantOf(ctx), in.Name, found.Version)
	if err != nil {
		return nil, err
	}
	return &plain[wire.AgentDefinition]{wire.AgentDefinition{
		Name: found.Name, Version: found.Version, BuiltIn: found.BuiltIn, Digest: found.Digest, Definition: found.Job, Prompt: prompt,
	}}, nil
}

func (h *Handler) importAgents(ctx context.Context, in *bodyOf[wire.AgentImport]) (*plain[builder.Imported], error) {
	if (len(in.Body.Files) == 0) == (len(in.Body.Archive) == 0) {
		return nil, invalid(ctx, "", "required", "give files or an archive, one of the two")
	}
	files, err := decodeFiles(ctx, in.Body.Files)
	if err != nil {
		return nil, err
	}
	made, err := h.config.Agents.Import(ctx, tenantOf(ctx), builder.ImportRequest{
		Format: in.Body.Format, Files: files, Archive: in.Body.Archive, Replace: in.Body.Replace, Note: in.Body.Note, Author: authorOf(ctx),
	})
	if err != nil {
		return nil, err
	}
	return &plain[builder.Imported]{*made}, nil
}

// archive is a download.
type archive struct {
	ContentType        string `header:"Content-Type"`
	ContentDisposition string `header:"Content-Disposition"`
	Losses             string `header:"Hozo-Losses" doc:"What the format cannot say, as a JSON list of {path, key, what}."`
	Body               []byte
}

func (h *Handler) exportAgent(ctx context.Context, in *struct {
	ByName
	Version int64  `query:"version" minimum:"0" doc:"The version; the current one if absent."`
	Format  string `query:"format" enum:"package,claude" default:"package" doc:"The form of the archive."`
}) (*archive, error) {
	return download(h.config.Agents.Export(ctx, tenantOf(ctx), in.Name, in.Version, builder.Format(in.Format)))
}

// download is the answer with an archive. A header is ASCII, so other characters of the losses are escaped.
func download(e *builder.Exported, err error) (*archive, error) {
	if err != nil {
		return nil, err
	}
	out := &archive{
		ContentType: "application/zip", ContentDisposition: mime.FormatMediaType("attachment", map[string]string{"filename": e.Name}), Body: e.Archive,
	}
	if len(e.Losses) > 0 {
		text, err := json.Marshal(e.Losses)
		if err != nil {
			return nil, err
		}
		out.Losses = ascii(text)
	}
	return out, nil
}

// ascii writes every other character of a JSON text as an escape.
func ascii(text []byte) string {
	var b []byte
	for _, r := range string(text) {
		switch {
		case r < utf8.RuneSelf:
			b = append(b, byte(r))
		case r > 0xffff:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return string(b)
}

// draftOf reads the files of a draft. Two files of one name are a fault: nobody could say which of them is meant.
func draftOf(ctx context.Context, draft wire.AgentDraft) (builder.Draft, error) {
	list, err := decodeFiles(ctx, draft.Files)
	if err != nil {
		return builder.Draft{}, err
	}
	files := builder.Files{}
	for i, f := range list {
		if _, ok := files[f.Path]; ok {
			return builder.Draft{}, invalid(ctx, fmt.Sprintf("/files/%d/path", i), "file-duplicate", "there is a file of this name already")
		}
		files[f.Path] = f.Content
	}
	return builder.Draft{Files: files, Note: draft.Note, Author: authorOf(ctx)}, nil
}

func decodeFiles(ctx context.Context, files []wire.File) ([]builder.File, error) {
	var out []builder.File
	for i, f := range files {
		content := []byte(f.Content)
		if f.Encoding == "base64" {
			var err error
			if content, err = base64.StdEncoding.DecodeString(f.Content); err != nil {
				return nil, invalid(ctx, fmt.Sprintf("/files/%d/content", i), "format", "the content is not in base64")
			}
		}
		out = append(out, builder.File{Path: f.Path, Content: content})
	}
	return out, nil
}

// filesOf lists files by path, those that are no text in base64.
func filesOf(files builder.Files) []wire.File {
	var out []wire.File
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := wire.File{Path: path, Content: string(files[path])}
		if !utf8.Valid(files[path]) {
			f.Content, f.Encoding = base64.StdEncoding.EncodeToString(files[path]), "base64"
		}
		out = append(out, f)
	}
	return out
}

func (h *Handler) skills() {
	const tag, all, one = "agent-skills", "/api/admin/agent-skills", "/api/admin/agent-skills/{name}"
	agents := h.config.Agents
	route(h, tag, "list-skills", "GET "+all, "Shared skills of the release and of the installation", func(ctx context.Context, _ *nothing) (*plain[wire.Page[builder.SkillSummary]], error) {
		return whole(agents.Skills(ctx, tenantOf(ctx)))
	})
	route(h, tag, "create-skill", "POST "+all, "Save a new shared skill", func(ctx context.Context, in *bodyOf[wire.NewSkill]) (*created[builder.SharedSkill], error) {
		s, err := agents.CreateSkill(ctx, tenantOf(ctx), in.Body.Name, in.Body.File, authorOf(ctx))
		if err != nil {
			return nil, err
		}
		return &created[builder.SharedSkill]{all + "/" + s.Name, wire.ETag(s.Revision), *s}, nil
	}, makes())
	route(h, tag, "get-skill", "GET "+one, "One shared skill", func(ctx context.Context, in *ByName) (*tagged[builder.SharedSkill], error) {
		return tagSkill(agents.Skill(ctx, tenantOf(ctx), in.Name))
	})
	route(h, tag, "save-skill", "PUT "+one, "Change a shared skill for the next job of every agent that names it", func(ctx context.Context, in *struct {
		ChangeByName
		Body wire.SkillDraft
	}) (*tagged[builder.SharedSkill], error) {
		base, err := in.version()
		if err != nil {
			return nil, err
		}
		return tagSkill(agents.SaveSkill(ctx, tenantOf(ctx), in.Name, in.Body.File, authorOf(ctx), base))
	})
	route(h, tag, "delete-skill", "DELETE "+one, "Remove a shared skill that no agent needs", func(ctx context.Context, in *ChangeByName) (*nothing, error) {
		base, err := in.version()
		if err != nil {
			return nil, err
		}
		return nil, agents.DeleteSkill(ctx, tenantOf(ctx), in.Name, base)
	})
	route(h, tag, "export-skill", "GET "+one+"/export", "A shared skill as a ZIP archive", func(ctx context.Context, in *ByName) (*archive, error) {
		return download(agents.ExportSkill(ctx, tenantOf(ctx), in.Name))
	}, content("application/zip", "The archive."))
}

func tagSkill(s *builder.SharedSkill, err error) (*tagged[builder.SharedSkill], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[builder.SharedSkill]{wire.ETag(s.Revision), *s}, nil
}
