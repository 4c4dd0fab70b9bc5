package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// entry is one entry of x-subagents: an agent written out, or a reference to a file of the package.
type entry struct {
	// inline is the agent that is written out in the entry, nil for a reference.
	inline *Package
	// file is the name of the file in subagents/, "" for an agent that is written out.
	file string
	// name and description are those of the tool that stands for the subagent, "" for those of the file.
	name, description string
	// budget goes before that of the file.
	budget *Budget
	// value is the entry as it was written.
	value value
}

// readRoster reads a list of subagents. One fault in it and the whole roster is left out of the job.
func readRoster(r reader, v value, pointer string) value {
	if v.kind != kindList {
		r.add(CodeExtensionInvalid, pointer, v.mark, "write one entry per subagent, each after -", "must be a list, not "+v.kind.String())
		return v
	}
	before := len(*r.list)
	if len(v.items) > job.MaxSubagents {
		r.add(CodeExtensionInvalid, pointer, v.mark, "", fmt.Sprintf("has %d entries; at most %d are allowed", len(v.items), job.MaxSubagents))
		return v
	}
	canonical := v
	canonical.items = nil
	roster := make([]entry, len(v.items))
	for i, item := range v.items {
		at := pointer + "/" + strconv.Itoa(i)
		roster[i] = entry{}
		if item.get("agent") != nil {
			item = roster[i].reference(r, item, at)
		} else {
			item = roster[i].writtenOut(r, item, at)
		}
		roster[i].value = item
		canonical.items = append(canonical.items, item)
		r.repeatedName(roster[:i], &roster[i], at)
	}
	if len(*r.list) == before {
		r.pkg.roster = roster
	}
	return canonical
}

// called is the name of the tool that stands for the subagent.
func (e *entry) called() string {
	if e.name != "" {
		return e.name
	}
	return e.file
}

// nameMark is where the name of the entry stands.
func (e *entry) nameMark() mark {
	for _, key := range []string{"name", "agent"} {
		if v := e.value.get(key); v != nil {
			return v.mark
		}
	}
	return e.value.mark
}

func (r reader) repeatedName(before []entry, e *entry, pointer string) {
	name := e.called()
	if name == "" || !slices.ContainsFunc(before, func(other entry) bool { return other.called() == name }) {
		return
	}
	r.add(CodeExtensionInvalid, pointer+"/name", e.nameMark(), "give one of them another name", "subagent "+strconv.Quote(name)+" is listed twice")
}

// reference reads an entry that names a file.
func (e *entry) reference(r reader, v value, pointer string) value {
	bounds := &Package{} // takes the budget, which is the entry's and no agent's
	out := r.shape(v, pointer, []member{
		{key: "agent", required: true, read: checked(nameText)},
		{key: "name", read: checked(nameText)},
		{key: "description", read: func(r reader, v value, pointer string) value { r.description(v, pointer); return v }},
		{key: "budget", read: func(r reader, v value, pointer string) value {
			return readBudget(reader{r.findings, bounds}, v, pointer)
		}},
	})
	e.file, e.budget = v.get("agent").text, bounds.budget
	e.readTexts(v)
	return out
}

func (e *entry) readTexts(v value) {
	if name := v.get("name"); name != nil {
		e.name = name.text
	}
	if description := v.get("description"); description != nil {
		e.description = description.text
	}
}

// writtenOut reads an entry that holds the agent itself.
func (e *entry) writtenOut(r reader, v value, pointer string) value {
	agent := &Package{Audience: AudienceRuntime, path: r.path, marks: r.pkg.marks, subagent: true, at: pointer}
	out := reader{r.findings, agent}.shape(v, pointer, []member{
		{key: "name", required: true, read: checked(nameText)},
		{key: "description", required: true, read: func(r reader, v value, pointer string) value { r.description(v, pointer); return v }},
		{key: "instructions", required: true, read: checked(isText)},
		{key: "tools", read: func(r reader, v value, _ string) value { r.tools(v); return v }},
		{key: "skills", read: func(r reader, v value, _ string) value { r.pkg.SharedSkills = r.sharedSkills(v); return v }},
		{key: "thinking", read: func(r reader, v value, _ string) value { r.thinking(v); return v }},
		{key: "deny-command-patterns", read: func(r reader, v value, _ string) value { r.denyPatterns(v); return v }},
		{key: "loop", read: readLoop},
		{key: "subagents", read: readRoster},
		{key: "budget", read: readBudget},
	})
	if v.kind != kindMapping {
		return out
	}
	e.readTexts(v)
	agent.Name, agent.Description = e.name, e.description
	if text := v.get("instructions"); text != nil {
		agent.Instructions, agent.body = text.text, text.mark
	}
	e.inline = agent
	return out
}

// agent returns the agent of the entry, nil if its file is not there. p is the package to which the roster belongs.
func (e *entry) agent(p *Package) *Package {
	if e.inline != nil {
		return e.inline
	}
	if at := slices.IndexFunc(p.Subagents, func(s *Package) bool { return s.fileName() == e.file }); at >= 0 {
		return p.Subagents[at]
	}
	return nil
}

// fileName is the base name of the agent's file: its name, unless the file says another one.
func (p *Package) fileName() string { return reader{findings{path: p.path}, p}.baseName() }

// each visits the package, the files of its subagents and every subagent that is written out in any of them.
func (p *Package) each(visit func(*Package)) {
	visit(p)
	for i := range p.roster {
		if inline := p.roster[i].inline; inline != nil {
			inline.each(visit)
		}
	}
	for _, s := range p.Subagents {
		s.each(visit)
	}
}

// checkReferences reports references that lead nowhere or in a circle and files that nothing refers to, and puts the
// schema of a file into the output.
func (p *Package) checkReferences(list *problem.List) {
	used := make(map[string]bool)
	p.each(func(agent *Package) {
		for i := range agent.roster {
			e := &agent.roster[i]
			if e.inline != nil {
				continue
			}
			used[e.file] = true
			if e.agent(p) == nil {
				v := e.value.get("agent")
				findings{agent.path, list}.add(CodeSubagentUnknown, agent.rosterAt()+"/"+strconv.Itoa(i)+"/agent", v.mark,
					subagentHint(e.file, p), "there is no file "+folderSubagents+"/"+e.file+".md")
			}
		}
	})
	(&circles{pkg: p, list: list, done: map[string]bool{}}).visit(p)
	for _, s := range p.Subagents {
		if !used[s.fileName()] && !p.unread() {
			findings{s.path, list}.add(CodeFileUnexpected, "", mark{}, "add an entry agent: "+s.fileName()+" to x-subagents, or remove the file",
				"no entry of x-subagents names the file")
		}
	}
	p.checkSchemas(list)
}

// unread reports whether a roster could not be read, so that nobody can say which files it names.
func (p *Package) unread() bool {
	unread := false
	p.each(func(agent *Package) {
		for _, x := range agent.Extensions {
			unread = unread || x.Key == keySubagents && agent.roster == nil
		}
	})
	return unread || p.body == mark{}
}

// rosterAt is the place of the roster in the agent's file.
func (p *Package) rosterAt() string {
	if p.at != "" {
		return p.at + "/subagents"
	}
	return "/" + keySubagents
}

func subagentHint(name string, p *Package) string {
	var known []string
	for _, s := range p.Subagents {
		known = append(known, s.fileName())
	}
	if len(known) == 0 {
		return "add the file, or write the agent out with instructions: in the place of agent:"
	}
	return nearHint(name, known)
}

// circles looks for files that lead back to themselves.
type circles struct {
	pkg  *Package
	list *problem.List
	// way are the files that lead to the agent which is looked at, done those that lead back nowhere.
	way  []string
	done map[string]bool
}

// visit looks at what an agent refers to. Each file is looked at once.
func (c *circles) visit(agent *Package) {
	for i := range agent.roster {
		e := &agent.roster[i]
		next := e.agent(c.pkg)
		switch {
		case next == nil || e.inline == nil && c.done[e.file]:
		case e.inline != nil:
			c.visit(next)
		case slices.Contains(c.way, e.file):
			findings{agent.path, c.list}.add(CodeExtensionInvalid, agent.rosterAt()+"/"+strconv.Itoa(i)+"/agent", e.value.get("agent").mark,
				"remove one of the entries", "the subagents call each other in a circle: "+strings.Join(append(c.way, e.file), ", "))
		default:
			c.way = append(c.way, e.file)
			c.visit(next)
			c.way = c.way[:len(c.way)-1]
			c.done[e.file] = true
		}
	}
}
