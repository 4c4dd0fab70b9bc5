package builder

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// The agent files of Claude Code have a frontmatter with other keys than ours and the same body. What has a counterpart is
// translated. What has none is lost, with a report; the value stays in the metadata, where an export finds it again.

// importedKey is what the metadata keys begin with that hold keys of another product.
const importedKey = "imported."

// CodeRestrictionLost is the code of a restriction that an import could only drop.
const CodeRestrictionLost = "restriction-lost"

// claudeTools are the tools of Claude Code that have a counterpart here.
func claudeTools() map[string]string {
	return map[string]string{"Read": "read", "Write": "write", "Edit": "edit", "MultiEdit": "edit", "Grep": "grep", "Glob": "find", "LS": "ls", "Bash": "shell"}
}

// strangeTools are those that have none.
func strangeTools() []string {
	return []string{"Agent", "AskUserQuestion", "BashOutput", "ExitPlanMode", "KillBash", "KillShell", "NotebookEdit", "NotebookRead", "Skill",
		"SlashCommand", "Task", "TodoRead", "TodoWrite", "WebFetch", "WebSearch"}
}

// fromClaude reads agents and skills as Claude Code keeps them: .claude/agents/<name>.md, .claude/skills/<name>/SKILL.md, or
// the same without the folder above. Other files are losses.
func fromClaude(files Files, kernelTools []string) (*incoming, problem.List) {
	in := &incoming{}
	var problems problem.List
	for _, path := range slices.Sorted(maps.Keys(files)) {
		inside := path
		if _, after, found := strings.Cut("/"+path, "/.claude/"); found {
			inside = after
		}
		name, isAgent := strings.CutSuffix(strings.TrimPrefix(inside, "agents/"), ".md")
		switch {
		case strings.HasPrefix(inside, "skills/"):
			problems = append(problems, in.skillFile(path, strings.TrimPrefix(inside, "skills/"), files[path])...)
		case isAgent && !strings.Contains(name, "/"):
			c := claudeAgent{in: in, path: path, name: name, kernelTools: kernelTools}
			problems = append(problems, c.read(files[path])...)
		default:
			in.losses = append(in.losses, Loss{Path: path, What: "the file is neither an agent nor a skill and was left out"})
		}
	}
	if len(in.agents)+len(in.skills) == 0 && len(problems) == 0 {
		problems.AddHint(catalog.CodeFileMissing, "", "agents are .claude/agents/<name>.md", "there is no agent and no skill to import")
	}
	return in, problems
}

// document reads the frontmatter of a foreign file. A colon in a text without quotes is mended with a remark: the readers
// of the other products take it as it is meant.
func (in *incoming) document(path string, data []byte) (*catalog.Document, map[string]json.RawMessage, problem.List) {
	doc, found := catalog.ReadDocument(path, data)
	var problems problem.List
	for _, p := range found {
		if doc != nil && p.Code == catalog.CodeFrontmatterInvalid && strings.Contains(p.Message, "colon") {
			in.remarks = append(in.remarks, p)
			continue
		}
		problems = append(problems, p)
	}
	var keys map[string]json.RawMessage
	if doc != nil {
		if err := json.Unmarshal(doc.Front, &keys); err != nil {
			problems = append(problems, doc.Problem(catalog.CodeFrontmatterInvalid, "", err.Error(), ""))
		}
	}
	return doc, keys, problems
}

// claudeAgent translates one agent file.
type claudeAgent struct {
	in          *incoming
	path, name  string
	kernelTools []string
	doc         *catalog.Document
	problems    problem.List
	// front are the lines of the new frontmatter, metadata what goes below it.
	front    map[string]any
	metadata map[string]string
}

func (c *claudeAgent) lose(key, format string, args ...any) {
	c.in.losses = append(c.in.losses, Loss{c.path, key, fmt.Sprintf(format, args...)})
}

func (c *claudeAgent) read(data []byte) problem.List {
	doc, keys, problems := c.in.document(c.path, data)
	if doc == nil {
		return problems
	}
	c.doc, c.problems, c.front, c.metadata = doc, problems, make(map[string]any), make(map[string]string)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		c.key(key, keys[key])
	}
	if _, forbidden := keys["disallowedTools"]; forbidden {
		c.forbid(keys["disallowedTools"])
	}
	if len(c.metadata) > 0 {
		c.front["metadata"] = c.metadata
	}
	if len(c.problems) > 0 {
		return c.problems
	}
	name := c.name
	if given, ok := c.front["name"].(string); ok {
		name = given
	}
	c.in.agents = append(c.in.agents, packageOf(name, c.front, doc.Body))
	return nil
}

// packageOf writes a package, in canonical form if it is one: what is wrong with it is reported by the checks of a draft.
func packageOf(name string, front map[string]any, body string) Files {
	var b strings.Builder
	b.WriteString("---\n")
	for _, key := range slices.Sorted(maps.Keys(front)) {
		value, _ := json.Marshal(front[key]) // texts, numbers and lists of them have a JSON form, and JSON is YAML
		fmt.Fprintf(&b, "%s: %s\n", key, value)
	}
	b.WriteString("---\n" + body)
	files := Files{name + ".md": []byte(b.String())}
	if pkg, problems := catalog.ParsePackage(files); len(problems) == 0 {
		return pkg.Marshal()
	}
	return files
}

func (c *claudeAgent) key(key string, data json.RawMessage) {
	var text string
	isText := json.Unmarshal(data, &text) == nil
	switch {
	case key == "name" && isText:
		c.front["name"] = text
	case key == "description" && isText:
		c.description(text)
	case key == "tools":
		c.tools(data)
	case key == "disallowedTools":
	case key == "skills":
		c.front["skills"] = c.words(key, data)
	case key == "effort" && isText && llm.Level(text).Valid():
		c.front["thinking"] = text
	case key == "maxTurns" && !isText:
		c.front["x-budget"] = map[string]json.RawMessage{"maxTurns": data}
	case key == "metadata":
		c.ownMetadata(data)
	default:
		c.foreign(key, data, text, isText)
	}
}

// foreign keeps a key that has no counterpart.
func (c *claudeAgent) foreign(key string, data json.RawMessage, text string, isText bool) {
	if !isText {
		text = string(data)
	}
	c.metadata[importedKey+key] = text
	why := "has no counterpart"
	switch key {
	case "model":
		why = "is chosen by a binding"
	case "mcpServers":
		why = "are registered by an administrator"
	case "hooks", "permissionMode":
		why = "have no counterpart: approvals and deny-command-patterns say what an agent may do"
	}
	c.lose(key, "%s %s; the value is kept under metadata as %s", key, why, importedKey+key)
}

// description keeps as much of a description as ours may have.
func (c *claudeAgent) description(text string) {
	text = strings.TrimSpace(text)
	if runes := []rune(text); len(runes) > catalog.MaxDescription {
		c.metadata[importedKey+"description"] = text
		c.lose("description", "the description has %d characters and was cut to %d; the whole text is kept under metadata as %s",
			len(runes), catalog.MaxDescription, importedKey+"description")
		text = strings.TrimSpace(string(runes[:catalog.MaxDescription-1])) + "…"
	}
	c.front["description"] = text
}

// ownMetadata takes metadata over that is text.
func (c *claudeAgent) ownMetadata(data json.RawMessage) {
	var given map[string]json.RawMessage
	if json.Unmarshal(data, &given) != nil {
		c.foreign("metadata", data, "", false)
		return
	}
	for key, value := range given {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		c.metadata[key] = text
	}
}

// words reads a list that is a list, or a text with commas.
func (c *claudeAgent) words(key string, data json.RawMessage) []string {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		return append([]string{}, list...)
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		c.problems = append(c.problems, c.doc.Problem(catalog.CodeValueType, "/"+key, key+" must be a list, or a text with commas", ""))
		return nil
	}
	words := []string{}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// tools translates an allowlist. A tool that has no counterpart is a loss; a restriction that would be lost with it is a
// problem, since the agent could do more here than there.
func (c *claudeAgent) tools(data json.RawMessage) {
	if string(data) == "null" {
		return
	}
	words := c.words("tools", data)
	if slices.Equal(words, []string{"*"}) {
		return
	}
	names := []string{}
	for _, word := range words {
		if name, ok := c.tool(word); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	c.front["tools"] = names
}

// tool translates one entry of an allowlist, or says that there is nothing to put in its place.
func (c *claudeAgent) tool(word string) (string, bool) {
	name, restriction, restricted := strings.Cut(word, "(")
	switch {
	case strings.HasPrefix(word, "mcp__") && strings.Count(word, "__") == 1:
		return word + "__*", true
	case restricted:
		c.problems = append(c.problems, c.doc.Problem(CodeRestrictionLost, "/tools",
			fmt.Sprintf("the restriction of %s to (%s cannot be carried over", name, restriction),
			"name the tool without it, and forbid commands with deny-command-patterns once the agent is here"))
		return "", false
	case slices.Contains(strangeTools(), word):
		c.lose("tools", "the tool %s has no counterpart and was left out", word)
		return "", false
	}
	if ours, known := claudeTools()[word]; known {
		return ours, true
	}
	return word, true // the checks of a draft say whether there is such a tool
}

// forbid takes tools out of the allowlist, or makes one of what is left.
func (c *claudeAgent) forbid(data json.RawMessage) {
	names, listed := c.front["tools"].([]string)
	if !listed {
		names = slices.Clone(c.kernelTools)
	}
	for _, word := range c.words("disallowedTools", data) {
		if name, ok := c.tool(word); ok {
			names = slices.DeleteFunc(names, func(n string) bool { return n == name })
		}
	}
	c.front["tools"] = names
	if !listed {
		c.lose("disallowedTools", "an agent names the tools that it may use: the others were written out")
	}
}

// toClaude writes an agent and its skills as Claude Code reads them.
func toClaude(pkg *catalog.Package, shared []catalog.Skill) (Files, []Loss) {
	out := claudeExport{pkg: pkg, path: ".claude/agents/" + pkg.Name + ".md", files: make(Files), losses: []Loss{}}
	out.entry("name", pkg.Name)
	description := pkg.Description
	if whole := pkg.Metadata[importedKey+"description"]; whole != "" {
		description = whole
	}
	out.entry("description", description)
	out.tools()
	var names []string
	for _, k := range append(slices.Clone(shared), pkg.Skills...) {
		names = append(names, k.Name)
		out.files[".claude/skills/"+k.Name+"/"+catalog.SkillFile] = k.Marshal()
	}
	if len(names) > 0 {
		out.entry("skills", strings.Join(names, ", "))
	}
	if pkg.Thinking != "" {
		out.entry("effort", string(pkg.Thinking))
	}
	out.rest()
	out.files[out.path] = []byte("---\n" + out.front.String() + "---\n" + pkg.Instructions)
	return out.files, out.losses
}

// claudeExport builds an agent file.
type claudeExport struct {
	pkg    *catalog.Package
	path   string
	front  strings.Builder
	files  Files
	losses []Loss
}

func (o *claudeExport) lose(key, format string, args ...any) {
	o.losses = append(o.losses, Loss{o.path, key, fmt.Sprintf(format, args...)})
}

// entry writes a line whose value is JSON, which is YAML too.
func (o *claudeExport) entry(key string, value any) {
	data, _ := json.Marshal(value) // texts and numbers have a JSON form
	fmt.Fprintf(&o.front, "%s: %s\n", key, data)
}

func (o *claudeExport) tools() {
	if o.pkg.Tools == nil {
		return
	}
	theirs := map[string]string{}
	for name, ours := range claudeTools() {
		if name != "MultiEdit" {
			theirs[ours] = name
		}
	}
	var names []string
	for _, tool := range o.pkg.Tools {
		name := theirs[tool]
		switch {
		case strings.HasPrefix(tool, "mcp__"):
			name = strings.TrimSuffix(tool, "__*")
		case name == "":
			o.lose("tools", "the tool %s has no counterpart and was left out", tool)
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		o.lose("tools", "an agent without tools cannot be expressed: the exported one has every tool")
		return
	}
	o.entry("tools", strings.Join(names, ", "))
}

// rest writes what was imported once and reports what has no place.
func (o *claudeExport) rest() {
	kept := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(o.pkg.Metadata)) {
		name, imported := strings.CutPrefix(key, importedKey)
		switch {
		case imported && name == "description":
		case imported:
			if text := o.pkg.Metadata[key]; json.Valid([]byte(text)) && strings.ContainsAny(text[:1], "{[tf0123456789") {
				o.entry(name, json.RawMessage(text))
			} else {
				o.entry(name, text)
			}
		default:
			kept[key] = o.pkg.Metadata[key]
		}
	}
	if len(kept) > 0 {
		o.entry("metadata", kept)
	}
	for _, loss := range []struct {
		key  string
		lost bool
	}{{"version", o.pkg.Version != 0}, {"deny-command-patterns", len(o.pkg.DenyCommandPatterns) > 0}, {"template", o.pkg.Template != ""},
		{"subagents", len(o.pkg.Subagents) > 0}, {"schemas", len(o.pkg.Schemas) > 0}} {
		if loss.lost {
			o.lose(loss.key, "%s cannot be expressed", loss.key)
		}
	}
	compiled, _ := o.pkg.CompileWith(nil) // only its limits are looked at
	for _, x := range o.pkg.Extensions {
		if x.Key == "x-budget" && compiled.Limits != nil && compiled.Limits.MaxTurns != nil {
			o.entry("maxTurns", *compiled.Limits.MaxTurns)
			if b := compiled.Limits; b.MaxCostUSD == nil && b.TimeoutSec == nil && b.IdleTimeoutSec == nil {
				continue
			}
		}
		o.lose(x.Key, "%s cannot be expressed", x.Key)
	}
}
