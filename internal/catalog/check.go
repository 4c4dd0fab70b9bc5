package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// checkJob reports what no job may have, in the words of the contract: each rule about loops, answers, limits and
// rosters is said in package job alone.
func (p *Package) checkJob(list *problem.List) {
	c := compiler{pkg: p, origins: make(map[string]origin)}
	j := c.job()
	if c.entries > MaxRoster {
		findings{p.path, list}.add(CodeExtensionInvalid, "/"+keySubagents, p.roster[0].value.mark, "",
			fmt.Sprintf("the rosters of the agent and of its subagents have more than %d entries together", MaxRoster))
	}
	spec := job.Spec{APIVersion: job.APIVersion, Task: "check", Model: job.ModelRef{Provider: job.APIOffline, ID: job.APIOffline},
		Providers: map[string]job.ProviderConfig{job.APIOffline: {API: job.APIOffline}}}
	j.Apply(&spec)
	if spec.Limits.TimeoutSec == 0 {
		spec.Limits.TimeoutSec = 1 // whoever runs the agent says how long
	}
	for _, model := range Writers(&spec) {
		if model.Provider == "" {
			model.Provider = job.APIOffline
		}
		spec.Providers[model.Provider] = job.ProviderConfig{API: job.APIOffline}
	}
	var found problem.List
	for _, f := range spec.Check() {
		if part, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/"); slices.Contains(
			[]string{"loop", "subagents", "output", "limits", "approvals", "toolErrors"}, part) && !strings.Contains(f.Pointer, "/agent/") {
			f.Code = CodeExtensionInvalid
			found = append(found, f)
		}
	}
	for _, f := range j.Locate(found) {
		f.Pointer = "" // it is that of a job, and the place says where the fault stands
		*list = append(*list, f)
	}
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

// Check reports what the package and its subagents name and the installation does not have. The tools of an agent for
// members are not checked: they belong to the tools in which it will run.
func (p *Package) Check(in Installation) problem.List {
	var list problem.List
	f := findings{p.path, &list}
	if slices.Contains(in.Reserved, p.Name) {
		f.add(CodeNameReserved, "/name", p.marks["/name"], "choose another name", "the name "+strconv.Quote(p.Name)+" is reserved")
	}
	subagents := p.checkRosters(in, &list)
	p.each(func(agent *Package) { agent.checkNames(p, in, &list) })
	for _, x := range p.Extensions {
		if x.Key != keyApprovals || p.Audience == AudienceMember {
			continue
		}
		for i, key := range x.value.keys {
			if !slices.Contains(subagents, key.text) {
				checkTool(f, "/"+keyApprovals+"/"+x.value.token(i), key.mark, key.text, in)
			}
		}
	}
	return list
}

// checkNames checks the tools and the shared skills that one agent of the package owner names.
func (p *Package) checkNames(owner *Package, in Installation, list *problem.List) {
	f := findings{p.path, list}
	if owner.Audience != AudienceMember {
		for i, name := range p.Tools {
			pointer := p.at + "/tools/" + strconv.Itoa(i)
			checkTool(f, pointer, p.marks[pointer], name, in)
		}
	}
	for i, name := range p.SharedSkills {
		local := p.subagent && owner.skill(name) != nil
		if pointer := p.at + "/skills/" + strconv.Itoa(i); in.Skills != nil && !local && !slices.Contains(in.Skills, name) {
			f.add(CodeSkillUnknown, pointer, p.marks[pointer], nearHint(name, in.Skills), "unknown shared skill "+strconv.Quote(name))
		}
	}
}

// checkRosters reports subagents with the name of a tool and returns the names of all.
func (p *Package) checkRosters(in Installation, list *problem.List) []string {
	var names []string
	p.each(func(agent *Package) {
		for i := range agent.roster {
			e := &agent.roster[i]
			name := e.called()
			names = append(names, name)
			if slices.Contains(in.Tools, name) {
				findings{agent.path, list}.add(CodeNameReserved, agent.rosterAt()+"/"+strconv.Itoa(i)+"/name", e.nameMark(), "give it another name",
					"the subagent "+strconv.Quote(name)+" has the name of a tool")
			}
		}
	})
	return names
}

func checkTool(f findings, pointer string, at mark, name string, in Installation) {
	if rest, ok := strings.CutPrefix(name, mcpPrefix); ok {
		server, _, _ := strings.Cut(rest, "__")
		if in.MCPServers != nil && !slices.Contains(in.MCPServers, server) {
			f.add(CodeMCPServerUnknown, pointer, at, nearHint(server, in.MCPServers), "unknown MCP server "+strconv.Quote(server))
		}
		return
	}
	if in.Tools != nil && !slices.Contains(in.Tools, name) {
		f.add(CodeToolUnknown, pointer, at, nearHint(name, in.Tools), "unknown tool "+strconv.Quote(name))
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
