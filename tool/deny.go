package tool

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Denials are the deny patterns of one agent. They are a guard rail against mistakes, not a boundary: a command can be
// written in more ways than any pattern knows.
type Denials struct{ patterns []*regexp.Regexp }

// NewDenials compiles patterns in RE2 syntax; job.Spec.Check has reported bad ones before.
func NewDenials(patterns []string) (*Denials, error) {
	d := &Denials{}
	for _, p := range patterns {
		compiled, err := regexp.Compile(p)
		if err != nil {
			return nil, err
		}
		d.patterns = append(d.patterns, compiled)
	}
	return d, nil
}

// Blocks returns the pattern that forbids a call, "" if none does. Every command argument of the tool is matched as
// written, with white space folded to single blanks, and with quotes and backslashes removed as well; a git command also
// with and without its leading "git".
func (d *Denials) Blocks(t *Tool, arguments json.RawMessage) string {
	if len(d.patterns) == 0 || len(t.CommandArguments) == 0 {
		return ""
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(arguments, &values) != nil {
		return ""
	}
	for _, name := range t.CommandArguments {
		var command string
		if json.Unmarshal(values[name], &command) != nil {
			continue
		}
		for _, form := range forms(t.Name, command) {
			for _, p := range d.patterns {
				if p.MatchString(form) {
					return p.String()
				}
			}
		}
	}
	return ""
}

func forms(tool, command string) []string {
	folded := strings.Join(strings.Fields(command), " ")
	bare := strings.Join(strings.Fields(strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(command)), " ")
	all := []string{command, folded, bare}
	if tool == "git" {
		for _, form := range []string{folded, bare} {
			if rest, found := strings.CutPrefix(form, "git "); found {
				all = append(all, rest)
			} else {
				all = append(all, "git "+form)
			}
		}
	}
	return all
}
