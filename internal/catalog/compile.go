package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// DraftVersion is the version of a Definition whose package names none.
const DraftVersion = "draft"

// Definition compiles the package into the agent of a job: instructions verbatim, local skills by name. What the package
// asks for and this runtime cannot do yet is a finding, never left out: shared skills, templates and the x- keys. So is
// an agent that is not meant to run as a job.
func (p *Package) Definition() (job.Definition, problem.List) {
	var list problem.List
	f := findings{p.path, &list}
	if p.Audience == AudienceMember {
		f.add(CodeAudienceNotRunnable, "/metadata/audience", p.marks["/metadata/audience"], "give it the audience runtime to run it",
			fmt.Sprintf("agent %q is meant for people's own tools (audience member) and does not run as a job", p.Name))
	}
	for i, name := range p.SharedSkills {
		pointer := "/skills/" + strconv.Itoa(i)
		f.add(CodeSkillUnknown, pointer, p.marks[pointer], "make it local: skills/"+name+"/"+SkillFile,
			"shared skill "+strconv.Quote(name)+" is not known here")
	}
	if p.Template != "" {
		f.add(CodeExtensionUnsupported, "/template", p.marks["/template"], "write the instructions out", "templates are not supported by this runtime yet")
	}
	for _, x := range p.Extensions {
		f.add(CodeExtensionUnsupported, "/"+x.Key, p.marks["/"+x.Key], "remove the key to run the agent without it",
			x.Key+" is not supported by this runtime yet")
	}
	d := job.Definition{
		ID:                  p.Name,
		Version:             DraftVersion,
		Instructions:        p.Instructions,
		Tools:               slices.Clone(p.Tools),
		DenyCommandPatterns: slices.Clone(p.DenyCommandPatterns),
		Thinking:            p.Thinking,
	}
	if p.Version > 0 {
		d.Version = strconv.FormatInt(p.Version, 10)
	}
	for _, s := range p.Skills {
		d.Skills = append(d.Skills, job.Skill{Name: s.Name, Content: s.Content})
	}
	return d, list
}

// Installation is what a package is checked against beside its own format. A nil list is not checked.
type Installation struct {
	// Tools are the names of the kernel's tools.
	Tools []string
	// Skills are the names of the shared skills.
	Skills []string
	// MCPServers are the names of the registered MCP servers.
	MCPServers []string
	// Reserved are names that no package may take.
	Reserved []string
}

const mcpPrefix = "mcp__"

// Check reports what the package names and the installation does not have. The tools of an agent for members are not
// checked: they belong to the tools in which it will run.
func (p *Package) Check(in Installation) problem.List {
	var list problem.List
	f := findings{p.path, &list}
	if slices.Contains(in.Reserved, p.Name) {
		f.add(CodeNameReserved, "/name", p.marks["/name"], "choose another name", "the name "+strconv.Quote(p.Name)+" is reserved")
	}
	if p.Audience != AudienceMember {
		for i, name := range p.Tools {
			p.checkTool(f, "/tools/"+strconv.Itoa(i), name, in)
		}
	}
	if in.Skills != nil {
		for i, name := range p.SharedSkills {
			if pointer := "/skills/" + strconv.Itoa(i); !slices.Contains(in.Skills, name) {
				f.add(CodeSkillUnknown, pointer, p.marks[pointer], nearHint(name, in.Skills), "unknown shared skill "+strconv.Quote(name))
			}
		}
	}
	return list
}

func (p *Package) checkTool(f findings, pointer, name string, in Installation) {
	if rest, ok := strings.CutPrefix(name, mcpPrefix); ok {
		server, _, _ := strings.Cut(rest, "__")
		if in.MCPServers != nil && !slices.Contains(in.MCPServers, server) {
			f.add(CodeMCPServerUnknown, pointer, p.marks[pointer], nearHint(server, in.MCPServers), "unknown MCP server "+strconv.Quote(server))
		}
		return
	}
	if in.Tools != nil && !slices.Contains(in.Tools, name) {
		f.add(CodeToolUnknown, pointer, p.marks[pointer], nearHint(name, in.Tools), "unknown tool "+strconv.Quote(name))
	}
}

func nearHint(word string, known []string) string {
	if near := problem.Closest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 {
		return "there are none"
	}
	return "known: " + strings.Join(known, ", ")
}
