package catalog

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/problem"
)

// Document is a file that is read by the rules of a package's files and is none of them: its keys are for the caller to
// check.
type Document struct {
	// Front is the frontmatter, or the whole of a YAML file, as a JSON object with the keys in the author's order. Text that
	// YAML would take for something else is text, and a number is as it was written.
	Front json.RawMessage
	// Body is what follows the frontmatter, byte for byte.
	Body string

	path  string
	marks map[string]mark
}

// ReadDocument reads a Markdown file with a frontmatter. The findings are about its form alone: encoding, fences and YAML.
// It is nil if there is nothing to go on with.
func ReadDocument(path string, data []byte) (*Document, problem.List) {
	var list problem.List
	f := findings{path, &list}
	doc, ok := split(data, f)
	if !ok {
		return nil, list
	}
	front, ok := readFront(doc, f)
	if !ok {
		return nil, list
	}
	return newDocument(f, front, doc.body), list
}

// ReadYAML reads a file that is YAML from its first line, by the same rules.
func ReadYAML(path string, data []byte) (*Document, problem.List) {
	var list problem.List
	if at, what := badText(data); at >= 0 {
		findings{path, &list}.add(CodeTextInvalid, "", mark{1, 1}, "save the file as UTF-8", what)
		return nil, list
	}
	f := findings{path, &list}
	front, ok := readFront(document{front: data}, f)
	var d *Document
	if ok {
		d = newDocument(f, front, "")
	}
	for i := range list {
		list[i].Line = max(list[i].Line-1, 1) // there is no fence above
		list[i].Message = strings.Replace(list[i].Message, "the frontmatter", "the file", 1)
	}
	if d == nil {
		return nil, list
	}
	for pointer, at := range d.marks {
		d.marks[pointer] = mark{max(at.line-1, 1), at.column}
	}
	return d, list
}

// newDocument returns nil if the frontmatter has no JSON form.
func newDocument(f findings, front value, body string) *Document {
	before := len(*f.list)
	if (reader{findings: f}).numbers(front, ""); len(*f.list) > before {
		return nil
	}
	d := &Document{Front: front.appendJSON(nil), Body: body, path: f.path, marks: map[string]mark{"": front.mark}}
	d.place(front, "")
	return d
}

// place keeps where v and everything in it stands.
func (d *Document) place(v value, pointer string) {
	for i, item := range v.items {
		at := pointer + "/" + v.token(i)
		if d.marks[at] = item.mark; v.kind == kindMapping {
			d.marks[at] = v.keys[i].mark
		}
		d.place(item, at)
	}
}

// Problem makes a finding about the place to which a JSON Pointer leads, or the nearest one around it.
func (d *Document) Problem(code, pointer, message, hint string) problem.Problem {
	at, ok := d.marks[pointer]
	for around := pointer; !ok && around != ""; {
		around = around[:max(strings.LastIndexByte(around, '/'), 0)]
		at, ok = d.marks[around]
	}
	return problem.Problem{Code: code, Pointer: pointer, Path: d.path, Line: at.line, Column: at.column, Message: message, Hint: hint}
}

// ValidName reports whether s may name an agent, a skill or what is kept beside them: [a-z][a-z0-9-]{0,63}.
func ValidName(s string) bool { return validName(s) }

// ParseSkill parses a skill that is kept outside of packages, written as skills/<name>/SKILL.md is inside of them.
func ParseSkill(name string, data []byte) (Skill, problem.List) {
	var list problem.List
	path := folderSkills + "/" + name + "/" + SkillFile
	if !validName(name) {
		findings{path, &list}.add(CodeSkillInvalid, "", mark{}, nameRule, "invalid skill name "+strconv.Quote(name))
	}
	skill := parseSkill(name, path, data, &list)
	return skill, list
}

// Marshal returns the skill's file in canonical form.
func (s Skill) Marshal() []byte {
	var w writer
	w.entry("name", s.Name)
	w.entry("description", s.Description)
	return w.file(s.Content)
}

// SkillPath is where the file of a skill stands in a package.
func SkillPath(name string) string { return folderSkills + "/" + name + "/" + SkillFile }
