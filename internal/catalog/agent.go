package catalog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// agentKeys are the keys of an agent's frontmatter in canonical order; the x- keys follow them.
func agentKeys() []string {
	return []string{"name", "version", "description", "tools", "skills", "thinking", "deny-command-patterns", "metadata", "template"}
}

// subagentKeys are those that the file of a subagent may have, x- keys included: the others are about a whole job.
func subagentKeys() []string {
	return []string{"name", "version", "description", "tools", "skills", "thinking", "deny-command-patterns", "metadata", keyLoop, keySubagents, keyBudget}
}

// reader fills a Package from the frontmatter of its agent file, or from an entry of x-subagents.
type reader struct {
	findings
	pkg *Package
}

// at is the place of a key of the agent in its file.
func (r reader) at(key string) string { return r.pkg.at + "/" + key }

// read decodes every entry of front, then reports the required keys that are missing.
func (r reader) read(front value) {
	all := append(agentKeys(), extensionKeys()...)
	known := all
	if r.pkg.subagent {
		known = subagentKeys()
	}
	for i, key := range front.keys {
		v := front.items[i]
		switch {
		case slices.Contains(known, key.text):
			r.set(key.text, v)
		case slices.Contains(all, key.text):
			r.unknownKey(key, known, "it belongs into the file of the agent that runs as a job")
		default:
			r.unknownKey(key, known, foreignKey(key.text))
		}
	}
	if front.get("name") == nil {
		r.add(CodeNameInvalid, "/name", front.mark, "add the file's base name: name: "+r.baseName(), "the key name is missing")
	}
	if front.get("description") == nil {
		r.add(CodeDescriptionMissing, "/description", front.mark, "say in one sentence what the agent is for", "the key description is missing")
	}
	slices.SortFunc(r.pkg.Extensions, func(a, b Extension) int {
		return slices.Index(known, a.Key) - slices.Index(known, b.Key)
	})
}

func (r reader) set(key string, v value) {
	r.pkg.marks["/"+key] = v.mark
	switch key {
	case "name":
		r.name(v)
	case "version":
		r.version(v)
	case "description":
		r.pkg.Description = r.description(v, "/description")
	case "tools":
		r.tools(v)
	case "skills":
		r.pkg.SharedSkills = r.sharedSkills(v)
	case "thinking":
		r.thinking(v)
	case "deny-command-patterns":
		r.denyPatterns(v)
	case "metadata":
		r.metadata(v)
	case "template":
		r.template(v)
	default:
		r.extension(key, v)
	}
}

// unknownKey reports a key with the hint or, without one, with the known key that its author most likely meant.
func (f findings) unknownKey(key value, known []string, hint string) {
	if hint == "" {
		if near := problem.Closest(strings.ToLower(key.text), known); near != "" {
			hint = "did you mean " + near + "?"
		} else {
			hint = "known keys: " + strings.Join(known, ", ")
		}
	}
	f.add(CodeKeyUnknown, "/"+escapePointer(key.text), key.mark, hint, "unknown key "+strconv.Quote(key.text))
}

// foreignKey explains keys that the agent files of other products have.
func foreignKey(key string) string {
	switch key {
	case "model", "provider", "temperature":
		return "the job chooses the model; an agent names none"
	case "instructions", "prompt", "system", "content":
		return "the instructions are the text below the closing ---"
	case "allowed-tools", "allowedTools":
		return "the key is tools"
	case "mcp", "mcp-servers", "mcpServers":
		return "name the tools of a registered MCP server under tools, as mcp__<server>__<tool>"
	case "audience":
		return "it belongs under metadata"
	case "loop", "subagents", "output", "budget", "approvals", "tool-errors":
		return "the key is x-" + key
	case "id", "title":
		return "the key is name"
	}
	return ""
}

// text returns a scalar that must be text. An empty value, a number, a boolean, a list or a mapping is a finding.
func (f findings) text(v value, pointer string) (string, bool) {
	if v.kind == kindText {
		return v.text, true
	}
	hint := ""
	if v.kind == kindNumber || v.kind == kindBool {
		hint = "put it in quotes: " + strconv.Quote(v.text)
	}
	f.add(CodeValueType, pointer, v.mark, hint, "must be text, not "+v.kind.String())
	return "", false
}

// baseName is the name that the agent's file gives it.
func (r reader) baseName() string {
	base := r.path[strings.LastIndexByte(r.path, '/')+1:]
	return strings.TrimSuffix(base, ".md")
}

func (r reader) name(v value) {
	switch {
	case v.kind != kindText || !validName(v.text):
		got := strconv.Quote(v.text)
		if v.kind != kindText && v.kind != kindNumber {
			got = v.kind.String()
		}
		r.add(CodeNameInvalid, "/name", v.mark, nameRule, "invalid name: "+got)
	case v.text != r.baseName():
		r.add(CodeNameMismatch, "/name", v.mark, "rename the file to "+v.text+".md, or write name: "+r.baseName(),
			fmt.Sprintf("the name %q differs from the file's base name %q", v.text, r.baseName()))
	}
	r.pkg.Name = v.text
}

const nameRule = "a name begins with a letter a-z and goes on with a-z, 0-9 or -, at most 64 characters"

// validName reports whether s matches [a-z][a-z0-9-]{0,63}.
func validName(s string) bool {
	return s != "" && len(s) <= 64 && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (r reader) version(v value) {
	n, err := strconv.ParseInt(v.text, 10, 64)
	if v.kind != kindNumber || !isJSONNumber(v.text) || err != nil || n < 1 {
		got := v.text
		if v.kind != kindNumber {
			got = strings.TrimSpace(v.kind.String() + " " + v.text)
		}
		r.add(CodeVersionInvalid, "/version", v.mark, "write a whole number without quotes, such as version: 1, or leave the key out",
			"the version must be a whole number from 1, not "+got)
		return
	}
	r.pkg.Version = n
}

// description reads the description of an agent, of a skill or of an entry of x-subagents.
func (f findings) description(v value, pointer string) string {
	if v.kind == kindNull {
		f.add(CodeDescriptionMissing, pointer, v.mark, "say in one sentence what it is for", "the description is empty")
		return ""
	}
	text, ok := f.text(v, pointer)
	switch {
	case !ok:
	case strings.TrimSpace(text) == "":
		f.add(CodeDescriptionMissing, pointer, v.mark, "say in one sentence what it is for", "the description is empty")
	case utf8.RuneCountInString(text) > MaxDescription:
		f.add(CodeDescriptionInvalid, pointer, v.mark, "", fmt.Sprintf("the description has %d characters; at most %d are allowed",
			utf8.RuneCountInString(text), MaxDescription))
	case len(v.comment) > 1 && v.comment[1] != ' ':
		f.add(CodeDescriptionInvalid, pointer, v.mark, "put the whole description in quotes",
			"YAML takes the end of the description for a comment: "+excerpt(v.comment))
	}
	return text
}

func (r reader) tools(v value) {
	if v.kind != kindList {
		hint := "write tools: [] for no tool, or leave the key out for every kernel tool"
		if v.kind == kindText {
			hint = "write tools: [" + strings.Join(strings.FieldsFunc(v.text, func(c rune) bool { return c == ',' || c == ' ' }), ", ") + "]"
		}
		r.add(CodeToolsNotList, r.at("tools"), v.mark, hint, "tools must be a list, not "+v.kind.String())
		return
	}
	names := []string{}
	for i, item := range v.items {
		pointer := r.at("tools/") + strconv.Itoa(i)
		r.pkg.marks[pointer] = item.mark
		name, ok := r.text(item, pointer)
		switch {
		case !ok:
		case strings.HasPrefix(name, mcpPrefix) && !validServerTool(name):
			r.add(CodeToolInvalid, pointer, item.mark, "write mcp__<server>__<tool>, or mcp__<server>__* for all tools of a server",
				strconv.Quote(name)+" does not name a tool of an MCP server")
		case !strings.HasPrefix(name, mcpPrefix) && !validTool(name):
			r.add(CodeToolInvalid, pointer, item.mark, "a tool name has letters, digits, _ and -, at most 128",
				"invalid tool name "+strconv.Quote(name))
		case slices.Contains(names, name):
			r.add(CodeToolDuplicate, pointer, item.mark, "", "tool "+strconv.Quote(name)+" is listed twice")
		}
		names = append(names, name)
	}
	r.pkg.Tools = names
}

func validTool(s string) bool {
	const chars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return s != "" && len(s) <= 128 && strings.Trim(s, chars) == ""
}

// validServerTool reports whether a name is mcp__<server>__<tool>, where the tool has the server's own name for it, or stands
// for all tools of a server.
func validServerTool(s string) bool {
	server, own, ok := strings.Cut(strings.TrimPrefix(s, mcpPrefix), "__")
	return ok && validTool(server) && (own == "*" || validTool(strings.ReplaceAll(own, ".", "_")))
}

func (r reader) sharedSkills(v value) []string {
	if v.kind != kindList {
		r.add(CodeSkillInvalid, r.at("skills"), v.mark, "write skills: [first-name, second-name]; local skills need no entry",
			"skills must be a list, not "+v.kind.String())
		return nil
	}
	var names []string
	for i, item := range v.items {
		pointer := r.at("skills/") + strconv.Itoa(i)
		r.pkg.marks[pointer] = item.mark
		name, ok := r.text(item, pointer)
		switch {
		case !ok:
		case !validName(name):
			r.add(CodeSkillInvalid, pointer, item.mark, nameRule, "invalid skill name "+strconv.Quote(name))
		case slices.Contains(names, name):
			r.add(CodeSkillDuplicate, pointer, item.mark, "", "skill "+strconv.Quote(name)+" is listed twice")
		}
		names = append(names, name)
	}
	return names
}

func (r reader) thinking(v value) {
	level := llm.Level(v.text)
	if v.kind != kindText || !level.Valid() {
		var levels []string
		for _, l := range llm.Levels() {
			levels = append(levels, string(l))
		}
		got := strconv.Quote(v.text)
		if v.kind != kindText {
			got = strings.TrimSpace(v.kind.String() + " " + v.text)
		}
		r.add(CodeThinkingInvalid, r.at("thinking"), v.mark, "one of "+strings.Join(levels, ", "), "unknown thinking level: "+got)
		return
	}
	r.pkg.Thinking = level
}

func (r reader) denyPatterns(v value) {
	if v.kind != kindList {
		r.add(CodeDenyPatternInvalid, r.at("deny-command-patterns"), v.mark, "write one pattern per line, each after - and in quotes",
			"deny-command-patterns must be a list, not "+v.kind.String())
		return
	}
	for i, item := range v.items {
		pointer := r.at("deny-command-patterns/") + strconv.Itoa(i)
		r.pkg.marks[pointer] = item.mark
		pattern, ok := r.text(item, pointer)
		if !ok {
			continue
		}
		r.pkg.DenyCommandPatterns = append(r.pkg.DenyCommandPatterns, pattern)
		if pattern == "" {
			r.add(CodeDenyPatternInvalid, pointer, item.mark, "remove it", "an empty pattern would block every command")
		} else if _, err := regexp.Compile(pattern); err != nil {
			r.add(CodeDenyPatternInvalid, pointer, item.mark, patternHint(pattern), "not a valid pattern: "+err.Error())
		}
	}
}

// patternHint explains the expressions of other dialects that RE2 does not have.
func patternHint(pattern string) string {
	for _, sign := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.Contains(pattern, sign) {
			return "RE2 has no look-around (" + sign + "); match the text itself, or use two patterns"
		}
	}
	for digit := '1'; digit <= '9'; digit++ {
		if strings.Contains(pattern, `\`+string(digit)) {
			return `RE2 has no back-references (\` + string(digit) + ")"
		}
	}
	return "patterns are RE2 expressions"
}

func (r reader) metadata(v value) {
	if v.kind != kindMapping {
		r.add(CodeMetadataInvalid, "/metadata", v.mark, "", "metadata must be a mapping, not "+v.kind.String())
		return
	}
	for i, key := range v.keys {
		item, pointer := v.items[i], "/metadata/"+escapePointer(key.text)
		switch {
		case key.text == "audience" && r.pkg.subagent:
			r.add(CodeMetadataInvalid, pointer, key.mark, "remove it", "a subagent is for its agent and has no audience")
		case key.text == "audience":
			r.audience(item)
		case item.kind == kindList || item.kind == kindMapping || item.kind == kindNull:
			r.add(CodeMetadataInvalid, pointer, item.mark, "write it as one text", "metadata holds text, not "+item.kind.String())
		default:
			r.pkg.Metadata[key.text] = item.text
		}
	}
}

func (r reader) audience(v value) {
	r.pkg.marks["/metadata/audience"] = v.mark
	switch a := Audience(v.text); a {
	case AudienceRuntime, AudienceMember:
		r.pkg.Audience = a
	default:
		r.add(CodeAudienceInvalid, "/metadata/audience", v.mark, "one of runtime, member", "unknown audience "+strconv.Quote(v.text))
	}
}

func (r reader) template(v value) {
	if v.text != "liquid" {
		r.add(CodeTemplateInvalid, "/template", v.mark, "write template: liquid, or leave the key out for verbatim instructions",
			"unknown template language "+strconv.Quote(v.text))
		return
	}
	r.pkg.Template = v.text
}

// sortedKeys returns the keys of the metadata in canonical order.
func (p *Package) sortedKeys() []string { return slices.Sorted(maps.Keys(p.Metadata)) }
