package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Marshal returns the files of the package in canonical form, by slash-separated path: keys in a fixed order, line feeds
// in the frontmatter, one way to write each value, bodies and schemas byte for byte. Equal packages have equal bytes, and parsing
// them gives the package back. Comments of the authored form are not kept.
func (p *Package) Marshal() map[string][]byte {
	files := map[string][]byte{p.Name + ".md": p.marshalAgent()}
	for _, s := range p.Skills {
		files[SkillPath(s.Name)] = s.Marshal()
	}
	for _, s := range p.Subagents {
		files[folderSubagents+"/"+s.Name+".md"] = s.marshalAgent()
	}
	for _, s := range p.Schemas {
		files[schemaPath(s.Name)] = []byte(s.Content)
	}
	return files
}

func (p *Package) marshalAgent() []byte {
	var w writer
	w.entry("name", p.Name)
	if p.Version > 0 {
		w.line("version: " + strconv.FormatInt(p.Version, 10))
	}
	w.entry("description", p.Description)
	if p.Tools != nil {
		w.list("tools", p.Tools)
	}
	if len(p.SharedSkills) > 0 {
		w.list("skills", p.SharedSkills)
	}
	if p.Thinking != "" {
		w.entry("thinking", string(p.Thinking))
	}
	if len(p.DenyCommandPatterns) > 0 {
		w.list("deny-command-patterns", p.DenyCommandPatterns)
	}
	w.metadata(p)
	if p.Template != "" {
		w.entry("template", p.Template)
	}
	for _, x := range p.Extensions {
		w.value(x.Key+":", x.value, "")
	}
	return w.file(p.Instructions)
}

// writer builds a frontmatter.
type writer struct{ strings.Builder }

func (w *writer) line(s string) {
	w.WriteString(s)
	w.WriteByte('\n')
}

func (w *writer) entry(key, text string) { w.line(key + ": " + scalar(text)) }

func (w *writer) list(key string, items []string) {
	if len(items) == 0 {
		w.line(key + ": []")
		return
	}
	w.line(key + ":")
	for _, item := range items {
		w.line("  - " + scalar(item))
	}
}

// metadata writes the audience, unless it is the one that absence means, and then the other keys by name.
func (w *writer) metadata(p *Package) {
	member := p.Audience != AudienceRuntime && p.Audience != ""
	if !member && len(p.Metadata) == 0 {
		return
	}
	w.line("metadata:")
	if member {
		w.line("  audience: " + scalar(string(p.Audience)))
	}
	for _, key := range p.sortedKeys() {
		w.line("  " + scalar(key) + ": " + scalar(p.Metadata[key]))
	}
}

// value writes v after lead, which ends in a colon or a dash; what belongs to it is indented below. The first part of a
// list's item stands beside its dash.
func (w *writer) value(lead string, v value, indent string) {
	deeper := indent + "  "
	switch {
	case v.kind == kindList && len(v.items) == 0:
		w.line(lead + " []")
	case v.kind == kindMapping && len(v.items) == 0:
		w.line(lead + " {}")
	case v.kind == kindList || v.kind == kindMapping:
		if strings.HasSuffix(lead, ":") {
			w.line(lead)
			lead = deeper
		} else {
			lead += " " // the dash stands where the indent would
		}
		for i, item := range v.items {
			if v.kind == kindList {
				w.value(lead+"-", item, deeper)
			} else {
				w.value(lead+scalar(v.keys[i].text)+":", item, deeper)
			}
			lead = deeper
		}
	case v.kind == kindText && blockText(v.text):
		w.block(lead, v.text, deeper)
	case v.kind == kindText:
		w.line(lead + " " + scalar(v.text))
	case v.kind == kindNull:
		w.line(lead + " null")
	case v.kind == kindBool:
		w.line(lead + " " + strings.ToLower(v.text))
	default:
		w.line(lead + " " + v.text)
	}
}

// blockText reports whether a text of several lines can be written line by line without a doubt about any character.
func blockText(s string) bool {
	if !strings.Contains(s, "\n") || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		if strings.TrimRight(line, " ") != line || strings.ContainsFunc(line, func(r rune) bool { return !printable(r) }) {
			return false
		}
	}
	return s[0] != ' ' && s[0] != '\n'
}

// block writes a text line by line.
func (w *writer) block(lead, text, indent string) {
	mark := " |-"
	if strings.HasSuffix(text, "\n") {
		mark = " |"
	}
	w.line(lead + mark)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			line = indent + line
		}
		w.line(line)
	}
}

func (w *writer) file(body string) []byte {
	return []byte(fence + "\n" + w.String() + fence + "\n" + body)
}

// scalar writes text so that every YAML reader takes it for text: plain where that is safe, else in double quotes.
func scalar(s string) string {
	if plain(s) {
		return s
	}
	return quoted(s)
}

// plain reports whether s needs no quotes under any version of YAML.
func plain(s string) bool {
	if s == "" || len(s) > MaxDescription || !(s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z') {
		return false
	}
	reserved := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if slices.Contains(reserved, strings.ToLower(s)) || strings.HasSuffix(s, ":") || strings.HasSuffix(s, " ") {
		return false
	}
	if strings.Contains(s, ": ") || strings.Contains(s, " #") {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !printable(r) })
}

// printable reports whether r may stand in a file as itself.
func printable(r rune) bool {
	return r == ' ' || unicode.IsPrint(r)
}

func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case printable(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
