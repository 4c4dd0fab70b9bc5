package wire

import (
	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/catalog"
)

// File is one file of a package.
type File struct {
	Path string `json:"path" minLength:"1" maxLength:"512" doc:"The path in the package, with slashes, such as skills/count/SKILL.md."`
	// Content is text, or base64 where Encoding says so.
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty" enum:"utf-8,base64" doc:"How content is written; utf-8 if absent."`
}

// AgentDraft is an agent as somebody wrote it.
type AgentDraft struct {
	Files []File `json:"files" maxItems:"256" doc:"The files of the package: <name>.md and its folders."`
	Note  string `json:"note,omitempty" maxLength:"1000" doc:"What changed, for the history."`
}

// PreviewRequest is a draft that nobody has saved.
type PreviewRequest struct {
	Name  string `json:"name,omitempty" maxLength:"128" doc:"The agent that is edited; absent for a new one."`
	Files []File `json:"files" maxItems:"256"`
}

// AgentSwitch switches an agent on or off.
type AgentSwitch struct {
	Enabled bool `json:"enabled"`
}

// AgentCopy makes an agent out of another one.
type AgentCopy struct {
	Name    string `json:"name" minLength:"1" maxLength:"128" doc:"The name of the copy."`
	Version int64  `json:"version,omitempty" minimum:"1" doc:"The version to copy; the current one if absent."`
	Note    string `json:"note,omitempty" maxLength:"1000"`
}

// AgentImport brings agents or skills from outside, as files or as a ZIP archive.
type AgentImport struct {
	Format  builder.Format `json:"format,omitempty" enum:"package,claude,agent-skills" doc:"package if absent."`
	Files   []File         `json:"files,omitempty" maxItems:"1024"`
	Archive []byte         `json:"archive,omitempty" doc:"A ZIP archive, in place of files."`
	Replace bool           `json:"replace,omitempty" doc:"Permits new versions of agents and new texts of skills that exist."`
	Note    string         `json:"note,omitempty" maxLength:"1000"`
}

// AgentDetail is an agent in full.
type AgentDetail struct {
	builder.Detail
	// Files are as they were given.
	Files []File `json:"files"`
	// Bindings are the models that the agent uses, where the caller may see them.
	Bindings []account.Binding `json:"bindings"`
}

// AgentVersion is a version with its files.
type AgentVersion struct {
	builder.Version
	Files []File `json:"files"`
}

// AgentDefinition is the part of a job that is the agent's.
type AgentDefinition struct {
	Name       string       `json:"name"`
	Version    int64        `json:"version"`
	BuiltIn    bool         `json:"builtIn"`
	Digest     string       `json:"digest" doc:"SHA-256 of the definition in hex digits."`
	Definition *catalog.Job `json:"definition"`
	// Prompt is what a model would be told.
	Prompt *builder.Prompt `json:"prompt"`
}

// SkillDraft is the text of a shared skill.
type SkillDraft struct {
	File string `json:"file" doc:"The file SKILL.md."`
}

// NewSkill is a shared skill that shall be made.
type NewSkill struct {
	Name string `json:"name" minLength:"1" maxLength:"128"`
	File string `json:"file" doc:"The file SKILL.md."`
}
