package catalog

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/problem"
)

// ParsePackage parses the files of one package by their slash-separated paths: <name>.md and any number of
// skills/<name>/SKILL.md, subagents/<name>.md and schemas/<name>.json. It returns every finding, in the order of file and line. With findings the package holds what
// could be read, for an editor to show, and must not be used otherwise; it is nil only if there is no agent file.
func ParsePackage(files map[string][]byte) (*Package, problem.List) {
	var list problem.List
	checkPaths(files, &list)
	main := mainFile(files, &list)
	var pkg *Package
	if main != "" {
		pkg = &Package{path: main}
		pkg.parse(files[main], &list)
		for _, path := range slices.Sorted(maps.Keys(files)) {
			pkg.parseFile(path, files[path], &list)
		}
		pkg.checkSkills(&list)
		pkg.checkReferences(&list)
		pkg.checkJob(&list)
	}
	sortFindings(list, main)
	return pkg, list
}

// checkPaths reports names that are unsafe to unpack, that do not belong to a package, and a package that is too large.
func checkPaths(files map[string][]byte, list *problem.List) {
	folded, total, counts := make(map[string]string), 0, make(map[string]int)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := findings{path, list}
		total += len(files[path])
		if !safePath(path) {
			f.add(CodePathUnsafe, "", mark{}, "", "the name is absolute, leaves the package or is not portable")
			continue
		}
		if twin, twice := folded[strings.ToLower(path)]; twice {
			f.add(CodePathUnsafe, "", mark{}, "", "the name differs from "+strconv.Quote(twin)+" only in case")
		}
		folded[strings.ToLower(path)] = path
		folder, inside := folderOf(path)
		if inside {
			counts[folder]++
		}
		if !inside && (strings.Contains(path, "/") || !strings.HasSuffix(path, ".md")) {
			f.add(CodeFileUnexpected, "", mark{}, layoutHint, "the file is no part of a package")
		}
	}
	for _, folder := range folders() {
		tooMany(folder, counts[folder], list)
	}
	if total > MaxPackage {
		findings{"", list}.add(CodeFileTooLarge, "", mark{}, "", fmt.Sprintf("the package has %d bytes; at most %d are allowed", total, MaxPackage))
	}
}

const layoutHint = "a package holds <name>.md, skills/<name>/" + SkillFile + ", subagents/<name>.md and schemas/<name>.json"

// The folders of a package.
const (
	folderSkills    = "skills"
	folderSubagents = "subagents"
	folderSchemas   = "schemas"
)

func folders() []string { return []string{folderSkills, folderSubagents, folderSchemas} }

// IsFolder reports whether a directory of this name beside an agent's file belongs to its package.
func IsFolder(name string) bool { return slices.Contains(folders(), name) }

// tooMany reports a folder that has more entries than it may, and whether it does.
func tooMany(folder string, n int, list *problem.List) bool {
	most := map[string]int{folderSkills: MaxSkills, folderSubagents: MaxSubagentFiles, folderSchemas: MaxSchemas}[folder]
	if n > most {
		findings{folder, list}.add(CodeFileTooLarge, "", mark{}, "", fmt.Sprintf("the package has %d %s; at most %d are allowed", n, folder, most))
	}
	return n > most
}

// folderOf returns the folder to which a file of a package belongs, if it belongs to one.
func folderOf(path string) (string, bool) {
	if _, ok := skillPath(path); ok {
		return folderSkills, true
	}
	if _, ok := filePath(path, folderSubagents, ".md"); ok {
		return folderSubagents, true
	}
	_, ok := filePath(path, folderSchemas, ".json")
	return folderSchemas, ok
}

// filePath returns the name of a path <folder>/<name><ending>.
func filePath(path, folder, ending string) (string, bool) {
	rest, ok := strings.CutPrefix(path, folder+"/")
	if !ok {
		return "", false
	}
	name, ok := strings.CutSuffix(rest, ending)
	return name, ok && name != "" && !strings.Contains(name, "/")
}

// safePath reports whether path names a file inside its package on every system.
func safePath(path string) bool {
	return fs.ValidPath(path) && !strings.ContainsAny(path, "\\:\x00")
}

// mainFile finds the agent's file. A second Markdown file at the top is a finding: which is meant cannot be known.
func mainFile(files map[string][]byte, list *problem.List) string {
	var tops []string
	for path := range files {
		if !strings.Contains(path, "/") && strings.HasSuffix(path, ".md") && safePath(path) {
			tops = append(tops, path)
		}
	}
	slices.Sort(tops)
	if len(tops) == 0 {
		findings{"", list}.add(CodeFileMissing, "", mark{}, "name it after the agent", "the package has no <name>.md")
		return ""
	}
	for _, extra := range tops[1:] {
		findings{extra, list}.add(CodeFileUnexpected, "", mark{}, "put each agent into a package of its own",
			"a package has one agent file, and "+tops[0]+" is here already")
	}
	return tops[0]
}

// skillPath returns the folder name of a path skills/<name>/SKILL.md.
func skillPath(path string) (string, bool) {
	return filePath(path, folderSkills, "/"+SkillFile)
}

// parse reads the file of an agent or of a subagent.
func (p *Package) parse(data []byte, list *problem.List) {
	p.Audience, p.Metadata, p.marks = AudienceRuntime, map[string]string{}, map[string]mark{}
	f := findings{p.path, list}
	doc, ok := split(data, f)
	if !ok {
		return
	}
	p.Instructions, p.body = doc.body, mark{doc.bodyLine, 1}
	what := "agent's body (its instructions)"
	if p.subagent {
		what = "subagent's body (its instructions)"
	}
	doc.check(f, MaxInstructions, what)
	if front, ok := readFront(doc, f); ok {
		reader{f, p}.read(front)
	}
}

// parseFile reads one of the files in the folders of the package.
func (p *Package) parseFile(path string, data []byte, list *problem.List) {
	if name, ok := skillPath(path); ok {
		p.Skills = append(p.Skills, parseSkill(name, path, data, list))
	}
	if _, ok := filePath(path, folderSubagents, ".md"); ok {
		sub := &Package{path: path, subagent: true}
		sub.parse(data, list)
		p.Subagents = append(p.Subagents, sub)
	}
	if name, ok := filePath(path, folderSchemas, ".json"); ok {
		p.Schemas = append(p.Schemas, parseSchema(name, path, data, list))
	}
}

// parseSkill parses the file of a local skill, whose frontmatter has a name and a description.
func parseSkill(name, path string, data []byte, list *problem.List) Skill {
	skill, f := Skill{Name: name}, findings{path, list}
	doc, ok := split(data, f)
	if !ok {
		return skill
	}
	skill.Content = doc.body
	doc.check(f, MaxSkill, "skill's body")
	front, ok := readFront(doc, f)
	if !ok {
		return skill
	}
	known := []string{"name", "description"}
	for i, key := range front.keys {
		v := front.items[i]
		switch key.text {
		case "name":
			f.skillName(v, name)
		case "description":
			skill.Description = f.description(v, "/description")
		default:
			f.unknownKey(key, known, "")
		}
	}
	if front.get("name") == nil {
		f.add(CodeNameInvalid, "/name", front.mark, "add the folder's name: name: "+name, "the key name is missing")
	}
	if front.get("description") == nil {
		f.add(CodeDescriptionMissing, "/description", front.mark, "say in one sentence what the skill is for", "the key description is missing")
	}
	return skill
}

func (f findings) skillName(v value, folder string) {
	switch {
	case v.kind != kindText || !validName(v.text):
		f.add(CodeNameInvalid, "/name", v.mark, nameRule, "invalid skill name: "+strconv.Quote(v.text))
	case v.text != folder:
		f.add(CodeNameMismatch, "/name", v.mark, "rename the folder to "+v.text+", or write name: "+folder,
			fmt.Sprintf("the skill's name %q differs from its folder %q", v.text, folder))
	}
}

// checkSkills reports local skills whose folder has no valid name and those that have the name of a shared one.
func (p *Package) checkSkills(list *problem.List) {
	for _, s := range p.Skills {
		f := findings{"skills/" + s.Name + "/" + SkillFile, list}
		if !validName(s.Name) {
			f.add(CodeSkillInvalid, "", mark{}, nameRule, "invalid name of a skill's folder: "+strconv.Quote(s.Name))
		}
		if at := slices.Index(p.SharedSkills, s.Name); at >= 0 {
			pointer := "/skills/" + strconv.Itoa(at)
			findings{p.path, list}.add(CodeSkillDuplicate, pointer, p.marks[pointer], "rename the local skill, or remove the entry to use it alone",
				"skill "+strconv.Quote(s.Name)+" is shared and local at once")
		}
	}
}

// sortFindings puts the agent's file first, then goes by path, line and column.
func sortFindings(list problem.List, main string) {
	slices.SortStableFunc(list, func(a, b problem.Problem) int {
		if first := cmp.Compare(rank(a.Path, main), rank(b.Path, main)); first != 0 {
			return first
		}
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

func rank(path, main string) int {
	if path == main {
		return 0
	}
	return 1
}
