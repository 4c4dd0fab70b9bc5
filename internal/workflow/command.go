package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/problem"
)

// Command is a task that is started by its name: commands/<name>.md, whose frontmatter has name, description, agent,
// arguments and scripts and whose body is the text of the task.
type Command struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Agent       string     `json:"agent"`
	Arguments   []Argument `json:"arguments"`
	// Scripts are the names of scripts that the task tells the agent to run; their code follows the text.
	Scripts []string `json:"scripts,omitempty"`
	// Task is the text with its places.
	Task string `json:"task"`

	template template
	file     *file
}

// ParseCommand reads a command. The result is what could be read, never nil; with problems it must not be rendered.
func ParseCommand(path string, data []byte) (*Command, problem.List) {
	doc, problems := readFile(path, data, true)
	if doc == nil {
		return &Command{}, problems
	}
	f := newFile(doc)
	f.problems = problems
	m := f.members("", doc.Front, "name", "description", "agent", "arguments", "scripts")
	c := &Command{Name: f.name(m, "", "name"), Description: f.text(m, "", "description", true), Agent: f.name(m, "", "agent"),
		Arguments: f.arguments(m), Scripts: f.names(m, "", "scripts", MaxArguments), Task: doc.Body, file: f}
	f.base(path, ".md", c.Name)
	if strings.TrimSpace(c.Task) == "" {
		f.add(CodeRequired, "", "write the task below the closing ---", "the task is empty")
	}
	known := []string{}
	for _, a := range c.Arguments {
		known = append(known, a.Name)
	}
	c.template = f.template("", c.Task, known)
	return c, f.problems
}

// CheckScripts reports scripts that the command names and that are not there.
func (c *Command) CheckScripts(scripts []Script) problem.List {
	if c.file == nil {
		return nil // the file could not be read, which is known
	}
	c.file.problems = nil
	for i, name := range c.Scripts {
		if !slices.ContainsFunc(scripts, func(s Script) bool { return s.Name == name }) {
			c.file.add(CodeScriptUnknown, fmt.Sprintf("/scripts/%d", i), "", "there is no script %q", name)
		}
	}
	return c.file.problems
}

// Render returns the task with its places filled, then the code of the scripts. Problems are about what is given.
func (c *Command) Render(given map[string]string, scripts []Script) (string, problem.List) {
	values, problems := fill(c.Arguments, given)
	if problems != nil {
		return "", problems
	}
	var b strings.Builder
	b.WriteString(c.template.render(values))
	for _, name := range c.Scripts {
		at := slices.IndexFunc(scripts, func(s Script) bool { return s.Name == name })
		if at < 0 {
			problems.Add(CodeScriptUnknown, "/scripts", "there is no script %q", name)
			continue
		}
		fmt.Fprintf(&b, "\n\n<script name=%q>\n%s\n</script>", name, strings.TrimSuffix(scripts[at].Code, "\n"))
	}
	if problems != nil {
		return "", problems
	}
	return b.String(), nil
}
