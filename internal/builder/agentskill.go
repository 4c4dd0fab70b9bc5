package builder

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/problem"
)

// fromSkills reads folders with a SKILL.md each, at the top or below a folder named skills, such as .agents/skills/<name>/.
// A SKILL.md at the top is a skill whose folder was left out.
func fromSkills(files Files) (*incoming, problem.List) {
	in := &incoming{}
	var problems problem.List
	for _, path := range slices.Sorted(maps.Keys(files)) {
		inside := path
		if _, after, found := strings.Cut("/"+path, "/skills/"); found {
			inside = after
		}
		problems = append(problems, in.skillFile(path, inside, files[path])...)
	}
	if len(in.skills) == 0 && len(problems) == 0 {
		problems.AddHint(catalog.CodeFileMissing, "", "a skill is <name>/"+catalog.SkillFile, "there is no skill to import")
	}
	return in, problems
}

// skillFile takes one file of a skill's folder. Only the text of a skill has a place here.
func (in *incoming) skillFile(path, inside string, data []byte) problem.List {
	folder, rest, deeper := strings.Cut(inside, "/")
	if !deeper {
		folder, rest = "", inside
	}
	if rest != catalog.SkillFile {
		in.losses = append(in.losses, Loss{Path: path, What: "a skill is its " + catalog.SkillFile + " alone: files beside it were left out, and the text may refer to them"})
		return nil
	}
	doc, keys, problems := in.document(path, data)
	if doc == nil {
		return problems
	}
	texts := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var text string
		isText := json.Unmarshal(keys[key], &text) == nil
		switch {
		case (key == "name" || key == "description") && isText:
			texts[key] = strings.TrimSpace(text)
		case key == "name" || key == "description":
			problems = append(problems, doc.Problem(catalog.CodeValueType, "/"+key, key+" must be text", "put it in quotes"))
		case key == "allowed-tools":
			in.losses = append(in.losses, Loss{path, key, "an agent has tools and a skill has none: give the agent what the skill needs"})
		default:
			in.losses = append(in.losses, Loss{path, key, key + " has no counterpart"})
		}
	}
	name := texts["name"]
	switch {
	case name == "" && len(problems) == 0:
		problems = append(problems, doc.Problem(catalog.CodeNameInvalid, "/name", "the key name is missing", "add the folder's name"))
	case folder != "" && name != "" && name != folder:
		problems = append(problems, doc.Problem(catalog.CodeNameMismatch, "/name", "the skill's name "+name+" differs from its folder "+folder, "rename the folder, or write name: "+folder))
	}
	if len(problems) > 0 {
		return problems
	}
	skill := catalog.Skill{Name: name, Description: texts["description"], Content: doc.Body}
	in.skills = append(in.skills, incomingSkill{name, string(skill.Marshal())})
	return nil
}
