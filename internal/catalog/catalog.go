// Package catalog holds agents as people write and keep them. The authored form of an agent is its package: a Markdown
// file named after the agent, whose frontmatter says who the agent is, what it may use and how it works, and whose body is
// its instructions. Beside it stand local skills in skills/<name>/SKILL.md, the agents it may call in subagents/<name>.md
// and JSON Schemas in schemas/<name>.json. Parsing is strict and reports every problem of every file at once, each with
// its place; nothing in a package is ignored. A parsed package is written back in one canonical form, so that equal
// content has equal bytes, and compiles into the parts of a job that are the agent's.
//
// The frontmatter is a subset of YAML 1.2: mappings, lists and scalars, with comments. Anchors, aliases, tags, merge
// keys, directives and second documents are refused, so that a file says only what it shows. Words such as yes and on
// are text, and a number is never read where text is due.
package catalog

import (
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// The limits of a package, in bytes where not said otherwise.
const (
	MaxFrontmatter  = 64 << 10
	MaxInstructions = 256 << 10
	MaxSkill        = 64 << 10
	MaxSkills       = 32 // files
	MaxPackage      = 1 << 20
	// MaxSubagentFiles and MaxSchemas count files; MaxRoster counts all entries of a job's rosters together.
	MaxSubagentFiles = 32
	MaxSchemas       = 32
	MaxSchema        = 64 << 10
	MaxRoster        = 128
	// MaxDescription counts characters.
	MaxDescription = 1024
)

// SkillFile is the name of the file that holds a local skill, in skills/<name>/.
const SkillFile = "SKILL.md"

// Audience says for whom an agent is meant.
type Audience string

// The closed set of audiences.
const (
	// AudienceRuntime agents run as jobs.
	AudienceRuntime Audience = "runtime"
	// AudienceMember agents are exported to people's own tools and never run as jobs.
	AudienceMember Audience = "member"
)

// Package is one agent as authored. A Package from ParsePackage or ParseFile also knows where in its file each value
// stood, so that the findings of later checks name the place.
type Package struct {
	// Name matches [a-z][a-z0-9-]{0,63}; it is the base name of the agent's file.
	Name string
	// Version is the number the author gave, 0 if none: the catalog numbers versions itself.
	Version int64
	// Description says in one paragraph what the agent is for.
	Description string
	// Tools is the allowlist. Nil means that the agent takes every kernel tool; empty means none.
	Tools []string
	// SharedSkills are the names of skills kept outside the package, in the author's order.
	SharedSkills []string
	// Thinking is the default level; "" leaves it to the job.
	Thinking llm.Level
	// DenyCommandPatterns are RE2 expressions against which the kernel matches the commands of process tools.
	DenyCommandPatterns []string
	// Audience is AudienceRuntime where the file names none.
	Audience Audience
	// Metadata holds the author's other metadata as text.
	Metadata map[string]string
	// Template names the template language of the instructions; "" means that they are verbatim.
	Template string
	// Extensions are the x- keys of the file, in canonical order. What they say of a job is in what Compile returns.
	Extensions []Extension
	// Instructions are the body of the file, byte for byte.
	Instructions string
	// Skills are the local skills, sorted by name.
	Skills []Skill
	// Subagents are the agents in subagents/<name>.md, sorted by name; they have none themselves.
	Subagents []*Package
	// Schemas are the files schemas/<name>.json, sorted by name.
	Schemas []Schema

	path  string
	marks map[string]mark
	// body is where the instructions stand.
	body mark
	// subagent says that the package is a file of another one or, at the place at of its file, an entry of x-subagents.
	subagent bool
	at       string
	// What the x- keys say; nil, too, where there was something wrong with the key.
	loop       *job.Loop
	roster     []entry
	output     *output
	budget     *Budget
	approvals  map[string]string
	toolErrors *job.ToolErrors
}

// Skill is a local skill of a package.
type Skill struct {
	// Name matches [a-z][a-z0-9-]{0,63} and is the name of the skill's folder.
	Name        string
	Description string
	// Content is the body of the skill's file, byte for byte.
	Content string
}

// Schema is a JSON Schema of a package that x-output names.
type Schema struct {
	// Name matches [a-z][a-z0-9-]{0,63}; the file is schemas/<name>.json.
	Name string
	// Content is the file, byte for byte.
	Content string
}

// Extension is one x- key. Its value is kept as it was written, for the canonical form.
type Extension struct {
	Key   string
	value value
}

// mark is a place in a file; both count from 1.
type mark struct{ line, column int }

// findings collects the problems of one file.
type findings struct {
	path string
	list *problem.List
}

// add reports a finding at m. The pointer names the place inside the frontmatter; hint may be empty.
func (f findings) add(code, pointer string, m mark, hint, message string) {
	if m == (mark{}) && f.path != "" {
		m = mark{1, 1} // what is wrong with a whole file is shown at its beginning
	}
	*f.list = append(*f.list, problem.Problem{
		Code: code, Pointer: pointer, Path: f.path, Line: m.line, Column: m.column, Message: message, Hint: hint,
	})
}
