package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// DraftVersion is the version of an agent whose package names none.
const DraftVersion = "draft"

// Job is the part of a job that is the agent's: what a package compiles into. Whoever runs it adds the task, the model,
// the accounts and the directories. A writer's model without a provider is one of the job's own provider.
type Job struct {
	Agent     job.Definition    `json:"agent"`
	Loop      *job.Loop         `json:"loop,omitempty"`
	Subagents []job.Subagent    `json:"subagents,omitempty"`
	Output    *job.OutputSchema `json:"output,omitempty"`
	// Limits are what holds where whoever runs the job says nothing else.
	Limits     *Budget         `json:"limits,omitempty"`
	Approvals  *job.Approvals  `json:"approvals,omitempty"`
	ToolErrors *job.ToolErrors `json:"toolErrors,omitempty"`

	origins map[string]origin
}

// Compile makes the agent's part of a job: instructions verbatim, local skills by name, subagents with their files put in.
// What the package asks for and this runtime cannot do yet is a finding, never left out: shared skills and templates. So
// is an agent that is not meant to run as a job. The package must have no findings of its own.
func (p *Package) Compile() (*Job, problem.List) { return p.CompileWith(nil) }

// CompileWith is Compile with shared skills at hand: their contents by name. An agent's shared skills come in its order
// and before its local ones; a skill that is not in the map is a finding.
func (p *Package) CompileWith(shared map[string]string) (*Job, problem.List) {
	var list problem.List
	if p.Audience == AudienceMember {
		findings{p.path, &list}.add(CodeAudienceNotRunnable, "/metadata/audience", p.marks["/metadata/audience"], "give it the audience runtime to run it",
			fmt.Sprintf("agent %q is meant for people's own tools (audience member) and does not run as a job", p.Name))
	}
	p.each(func(agent *Package) { agent.unsupported(p, shared, &list) })
	c := compiler{pkg: p, shared: shared, origins: make(map[string]origin)}
	return c.job(), list
}

// SharedSkillNames returns the names of the skills outside of the package that its agent and subagents name, sorted.
func (p *Package) SharedSkillNames() []string {
	var names []string
	p.each(func(agent *Package) {
		for _, name := range agent.SharedSkills {
			if !agent.subagent || p.skill(name) == nil {
				names = append(names, name)
			}
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// unsupported reports what an agent of the package owner asks for and this runtime cannot do.
func (p *Package) unsupported(owner *Package, shared map[string]string, list *problem.List) {
	f := findings{p.path, list}
	for i, name := range p.SharedSkills {
		if _, known := shared[name]; known || p.subagent && owner.skill(name) != nil {
			continue
		}
		pointer := p.at + "/skills/" + strconv.Itoa(i)
		f.add(CodeSkillUnknown, pointer, p.marks[pointer], "make it local: skills/"+name+"/"+SkillFile,
			"shared skill "+strconv.Quote(name)+" is not known here")
	}
	if p.Template != "" {
		f.add(CodeExtensionUnsupported, "/template", p.marks["/template"], "write the instructions out", "templates are not supported by this runtime yet")
	}
}

// skill returns the local skill of a name, nil if there is none.
func (p *Package) skill(name string) *Skill {
	if at := slices.IndexFunc(p.Skills, func(s Skill) bool { return s.Name == name }); at >= 0 {
		return &p.Skills[at]
	}
	return nil
}

// compiler makes the Job of a package and keeps where its parts come from.
type compiler struct {
	pkg *Package
	// shared are the contents of shared skills by name.
	shared  map[string]string
	origins map[string]origin
	// entries counts those of all rosters. More than MaxRoster are not compiled.
	entries int
	// way are the files of the rosters that lead to the one which is compiled.
	way []string
}

func (c *compiler) job() *Job {
	p := c.pkg
	j := &Job{Agent: c.definition(p, "/agent"), Limits: p.budget, ToolErrors: p.toolErrors, origins: c.origins}
	if p.loop != nil {
		j.Loop = cloneLoop(p.loop)
	}
	if p.output != nil {
		said := p.output.OutputSchema
		j.Output = &said
	}
	if p.approvals != nil {
		j.Approvals = &job.Approvals{Tools: maps.Clone(p.approvals)}
	}
	for _, x := range p.Extensions {
		switch x.Key {
		case keyLoop:
			c.trace("/loop", p.path, x.value)
		case keyOutput:
			c.trace("/output", p.path, x.value)
		case keyBudget:
			c.trace("/limits", p.path, x.value)
		case keyApprovals:
			c.trace("/approvals/tools", p.path, x.value)
			c.origins["/approvals"] = origin{p.path, x.value.mark}
		case keyToolErrors:
			c.trace("/toolErrors", p.path, x.value)
		}
	}
	j.Subagents = c.roster(p, "")
	return j
}

// definition compiles the agent alone. The pointer is where it stands in the job.
func (c *compiler) definition(p *Package, pointer string) job.Definition {
	d := job.Definition{
		ID:                  p.Name,
		Version:             c.version(p),
		Instructions:        p.Instructions,
		Tools:               slices.Clone(p.Tools),
		DenyCommandPatterns: slices.Clone(p.DenyCommandPatterns),
		Thinking:            p.Thinking,
	}
	d.Skills = c.skills(p)
	c.origins[pointer] = origin{p.path, p.body}
	fields := map[string]string{"name": "id", "version": "version", "tools": "tools", "thinking": "thinking",
		"deny-command-patterns": "denyCommandPatterns"}
	for place, at := range p.marks {
		key, ok := strings.CutPrefix(place, p.at+"/")
		key, rest, _ := strings.Cut(key, "/")
		if name := fields[key]; ok && name != "" {
			c.origins[strings.TrimSuffix(pointer+"/"+name+"/"+rest, "/")] = origin{p.path, at}
		}
	}
	return d
}

// skills are those that an agent names, in its order, and then the local ones of the package, which a subagent has to name.
func (c *compiler) skills(p *Package) []job.Skill {
	var skills []job.Skill
	for _, name := range p.SharedSkills {
		if s := c.pkg.skill(name); p.subagent && s != nil {
			skills = append(skills, job.Skill{Name: name, Content: s.Content})
		} else if content, known := c.shared[name]; known {
			skills = append(skills, job.Skill{Name: name, Content: content})
		}
	}
	if !p.subagent {
		for _, s := range p.Skills {
			skills = append(skills, job.Skill{Name: s.Name, Content: s.Content})
		}
	}
	return skills
}

// version is the agent's; a subagent without one has that of the package.
func (c *compiler) version(p *Package) string {
	switch {
	case p.Version > 0:
		return strconv.FormatInt(p.Version, 10)
	case p != c.pkg:
		return c.version(c.pkg)
	}
	return DraftVersion
}

// roster compiles the subagents of an agent that stands at the pointer. Rosters deeper than a job may have are compiled as
// far as it takes to see that.
func (c *compiler) roster(p *Package, pointer string) []job.Subagent {
	if len(p.roster) == 0 || strings.Count(pointer, "/subagents/") > job.MaxSubagentDepth {
		return nil
	}
	var list []job.Subagent
	for i := range p.roster {
		e := &p.roster[i]
		if c.entries++; c.entries > MaxRoster {
			break
		}
		if agent := e.agent(c.pkg); agent != nil && (e.inline != nil || !slices.Contains(c.way, e.file)) {
			list = append(list, c.subagent(p.path, e, agent, fmt.Sprintf("%s/subagents/%d", pointer, i)))
		}
	}
	c.origins[pointer+"/subagents"] = origin{p.path, p.roster[0].value.mark}
	return list
}

func (c *compiler) subagent(path string, e *entry, agent *Package, pointer string) job.Subagent {
	s := job.Subagent{Name: e.called(), Description: e.description, Agent: c.definition(agent, pointer+"/agent")}
	if s.Description == "" {
		s.Description = agent.Description
	}
	if agent.loop != nil {
		s.Loop = cloneLoop(agent.loop)
	}
	if budget := e.budget.over(agent.budget); budget != nil {
		limits := budget.limits()
		s.Limits = &limits
	}
	for _, x := range agent.Extensions {
		switch x.Key {
		case keyLoop:
			c.trace(pointer+"/loop", agent.path, x.value)
		case keyBudget:
			c.trace(pointer+"/limits", agent.path, x.value)
		}
	}
	c.traceEntry(pointer, path, e.value)
	c.way = append(c.way, e.file)
	s.Subagents = c.roster(agent, pointer)
	c.way = c.way[:len(c.way)-1]
	return s
}

func (b *Budget) limits() job.SubagentLimits {
	l := job.SubagentLimits{MaxCostUSD: b.MaxCostUSD, MaxTurns: b.MaxTurns, IdleTimeoutSec: b.IdleTimeoutSec}
	if b.TimeoutSec != nil {
		l.TimeoutSec = *b.TimeoutSec
	}
	return l
}

// cloneLoop copies a loop, so that whoever runs the job can fill in the writer's provider.
func cloneLoop(l *job.Loop) *job.Loop {
	own := *l
	if own.Writer != nil {
		w := *own.Writer
		if w.Model != nil {
			m := *w.Model
			w.Model = &m
		}
		own.Writer = &w
	}
	return &own
}

// Writers returns the models of writers that a spec names, its own and those of its subagents, to be changed in place.
func Writers(spec *job.Spec) []*job.ModelRef {
	var models []*job.ModelRef
	add := func(l *job.Loop) {
		if l != nil && l.Writer != nil && l.Writer.Model != nil {
			models = append(models, l.Writer.Model)
		}
	}
	var walk func([]job.Subagent)
	walk = func(roster []job.Subagent) {
		for i := range roster {
			add(roster[i].Loop)
			walk(roster[i].Subagents)
		}
	}
	add(spec.Loop)
	walk(spec.Subagents)
	return models
}

// Apply sets the agent's part of a spec. Limits are set where the spec has none.
func (j *Job) Apply(spec *job.Spec) {
	spec.Agent, spec.Loop, spec.Subagents, spec.Output, spec.ToolErrors = j.Agent, j.Loop, j.Subagents, j.Output, j.ToolErrors
	if j.Approvals != nil {
		spec.Approvals = &job.Approvals{Tools: maps.Clone(j.Approvals.Tools)}
	}
	if j.Limits == nil {
		return
	}
	said, l := j.Limits.limits(), &spec.Limits
	if l.TimeoutSec == 0 {
		l.TimeoutSec = said.TimeoutSec
	}
	if l.MaxTurns == nil {
		l.MaxTurns = said.MaxTurns
	}
	if l.MaxCostUSD == nil {
		l.MaxCostUSD = said.MaxCostUSD
	}
	if l.IdleTimeoutSec == nil {
		l.IdleTimeoutSec = said.IdleTimeoutSec
	}
}
