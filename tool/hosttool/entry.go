package hosttool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
)

// What an entry may hold.
const (
	maxEntries          = 256
	maxNameBytes        = 64
	maxVersionBytes     = 128
	maxDescriptionBytes = 16 << 10
	maxSchemaBytes      = 64 << 10
	maxUsageRunes       = 300
	maxChecks           = 32
)

// Entry is one tool that the host lends. Its fields are those of an entry of a job document, in the same order, so that
// one converts to the other.
type Entry struct {
	Name, Version, Description string
	// InputSchema is a JSON Schema of type object.
	InputSchema json.RawMessage
	// Effect is "read", "write" or "external".
	Effect string
	// Idempotent says that a call made twice with one key does no more than one call.
	Idempotent bool
	// Egress says that arguments leave the machine, so that they are compared with what the job has read, see Leaks.
	Egress bool
	// Usage is a sentence for ResearchBlock, and Research puts the tool there.
	Usage    string
	Research bool
}

// AnswerCheck is a tool of the host that judges the answer of a job. It gets the arguments {"answer": "<text>"}.
type AnswerCheck struct {
	ID, Tool string
}

// Granted returns the entries that an allowlist names, in their own order. An absent list grants none.
func Granted(entries []Entry, allow []string) []Entry {
	var granted []Entry
	for _, e := range entries {
		if slices.Contains(allow, e.Name) {
			granted = append(granted, e)
		}
	}
	return granted
}

// Check returns every problem of the entries and of the checks that name them, without any connection. allow is the
// allowlist of the agent; taken are the names of all tools that are not lent. The places are those of a job document:
// /host/<index> and /checks/<index>. Names of allow that nobody knows are left to whoever knows every tool.
func Check(entries []Entry, checks []AnswerCheck, allow, taken []string) problem.List {
	var problems problem.List
	if len(entries) > maxEntries {
		problems.Add("too-many-tools", "/host", "there are %d host tools, more than %d", len(entries), maxEntries)
	}
	first := map[string]int{}
	for i := range entries {
		e, at := &entries[i], fmt.Sprintf("/host/%d", i)
		e.checkName(&problems, at+"/name", taken)
		if before, twice := first[e.Name]; twice {
			problems.Add("duplicate-tool", at+"/name", "the host tool %q is listed at /host/%d already", e.Name, before)
		} else {
			first[e.Name] = i
		}
		e.checkTexts(&problems, at)
		e.checkUsage(&problems, at)
		e.checkSchema(&problems, at)
	}
	checkAnswerChecks(&problems, entries, checks, allow)
	return problems
}

func (e *Entry) checkName(problems *problem.List, at string, taken []string) {
	switch {
	case !plainName(e.Name):
		problems.AddHint("name-invalid", at, "use lower-case letters, digits and underscores, a letter first, at most 64",
			"the name %q of the host tool is not valid", e.Name)
	case strings.HasPrefix(e.Name, "mcp__"):
		problems.AddHint("name-reserved", at, "names that begin with mcp__ belong to the tools of MCP servers", "the name %q is reserved", e.Name)
	case slices.Contains(taken, e.Name):
		problems.AddHint("name-taken", at, "a host tool cannot stand in for another tool: rename it", "there is another tool with the name %q", e.Name)
	}
}

// plainName reports whether a name matches [a-z][a-z0-9_]* in full.
func plainName(name string) bool {
	if name == "" || len(name) > maxNameBytes || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

func (e *Entry) checkTexts(problems *problem.List, at string) {
	switch {
	case strings.TrimSpace(e.Description) == "":
		problems.AddHint("missing", at+"/description", "say what the tool does; the model chooses by it", "the host tool has no description")
	case len(e.Description) > maxDescriptionBytes:
		problems.Add("too-long", at+"/description", "the description has %d bytes, more than %d", len(e.Description), maxDescriptionBytes)
	case !utf8.ValidString(e.Description) || strings.IndexFunc(e.Description, steering) >= 0:
		problems.Add("text-invalid", at+"/description", "the description holds control characters or is not UTF-8")
	}
	if len(e.Version) > maxVersionBytes || strings.IndexFunc(e.Version, notPrintable) >= 0 {
		problems.Add("version-invalid", at+"/version", "a version is one word of at most %d bytes", maxVersionBytes)
	}
	switch tool.Effect(e.Effect) {
	case tool.EffectRead, tool.EffectWrite, tool.EffectExternal:
	case "":
		problems.AddHint("missing", at+"/effect", `use "read", "write" or "external"`, "the host tool does not say what it may change")
	default:
		problems.AddHint("effect-unknown", at+"/effect", `use "read", "write" or "external"`, "the effect %q is not known", e.Effect)
	}
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }

// checkUsage keeps a usage sentence to one line that cannot end the block in which it will stand.
func (e *Entry) checkUsage(problems *problem.List, at string) {
	const hint = "write one or two plain sentences on one line"
	switch {
	case e.Usage == "":
	case !e.Research:
		problems.AddHint("usage-unused", at+"/usage", "set research, or leave the usage out", "a usage is shown for research tools only")
	case !utf8.ValidString(e.Usage) || strings.ContainsAny(e.Usage, "<>\n\t") || strings.IndexFunc(e.Usage, steering) >= 0:
		problems.AddHint("usage-invalid", at+"/usage", hint, "a usage must not hold line breaks, angle brackets or control characters")
	case strings.TrimSpace(e.Usage) != e.Usage:
		problems.AddHint("usage-invalid", at+"/usage", hint, "a usage must not begin or end with white space")
	case utf8.RuneCountInString(e.Usage) > maxUsageRunes:
		problems.AddHint("too-long", at+"/usage", hint, "the usage has %d characters, more than %d", utf8.RuneCountInString(e.Usage), maxUsageRunes)
	}
}

func (e *Entry) checkSchema(problems *problem.List, at string) {
	switch {
	case len(e.InputSchema) == 0:
		problems.AddHint("missing", at+"/inputSchema", `for a tool without arguments: {"type": "object"}`, "the host tool has no input schema")
	case len(e.InputSchema) > maxSchemaBytes:
		problems.Add("too-long", at+"/inputSchema", "the input schema has %d bytes, more than %d", len(e.InputSchema), maxSchemaBytes)
	default:
		if _, err := e.probe(); err != nil {
			problems.Add("schema-invalid", at+"/inputSchema", "the input schema cannot be used: %v", err)
		}
	}
}

// probe makes a tool with the schema of e and a declaration that has no other fault.
func (e *Entry) probe() (tool.Tool, error) {
	sound := Entry{Name: "probe", Description: "probe", Effect: string(tool.EffectRead), InputSchema: e.InputSchema}
	t, err := tool.Raw(sound.declaration(), (&Session{}).runner(&sound))
	if err != nil {
		return t, err
	}
	return t, t.SchemaProblem()
}

// declaration is what the tool says about itself.
func (e *Entry) declaration() tool.Declaration {
	d := tool.Declaration{
		Name: e.Name, Version: e.Version, Description: e.Description, InputSchema: e.InputSchema, Effect: tool.Effect(e.Effect),
		Idempotent: e.Idempotent,
		Boundary: tool.Boundary{
			Reads: "none here: what the host's own tool reads", Writes: "none here: what the host's own tool writes",
			Network: "none here: calls go over the connection that the host lends", Processes: "none",
			Secrets: "none: the host knows the job by its connection",
		},
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(e.InputSchema, &schema) == nil && schema.Properties["command"] != nil {
		d.CommandArguments = []string{"command"}
	}
	return d
}

// checkAnswerChecks checks who judges the answer.
func checkAnswerChecks(problems *problem.List, entries []Entry, checks []AnswerCheck, allow []string) {
	if len(checks) > maxChecks {
		problems.Add("too-many-checks", "/checks", "there are %d checks, more than %d", len(checks), maxChecks)
	}
	seen := map[string]bool{}
	for i, c := range checks {
		at := fmt.Sprintf("/checks/%d", i)
		switch {
		case !checkID(c.ID):
			problems.AddHint("id-invalid", at+"/id", "use lower-case letters, digits and hyphens, a letter first, at most 64",
				"the id %q of the check is not valid", c.ID)
		case seen[c.ID]:
			problems.Add("duplicate-check", at+"/id", "there is another check with the id %q", c.ID)
		}
		seen[c.ID] = true
		j := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == c.Tool })
		switch {
		case j < 0:
			problems.AddHint("unknown-tool", at+"/tool", "name an entry of /host", "there is no host tool %q to check the answer", c.Tool)
		case slices.Contains(allow, c.Tool):
			problems.AddHint("check-offered", at+"/tool", "take it out of /agent/tools, or let another tool check",
				"the tool %q judges the answer and so cannot be offered to the model", c.Tool)
		case entries[j].Egress:
			problems.AddHint("check-egress", at+"/tool", "leave egress out of the entry",
				"the tool %q gets the whole answer, which may quote what the job has read", c.Tool)
		default:
			entries[j].checkJudges(problems, at+"/tool")
		}
	}
}

// checkJudges reports whether the tool takes the arguments of a check.
func (e *Entry) checkJudges(problems *problem.List, at string) {
	probe, err := e.probe()
	if err != nil {
		return // reported with the entry
	}
	if _, err := probe.PrepareArguments(checkArguments("An answer as a job gives it, of a few words.")); err != nil {
		problems.AddHint("check-schema", at, `its input schema must take {"answer": "<text>"}`, "the tool %q cannot be called as a check: %v", e.Name, err)
	}
}

// checkID reports whether an id matches [a-z][a-z0-9-]* in full. It becomes part of a call's id and so holds no dot.
func checkID(id string) bool {
	if id == "" || len(id) > maxNameBytes || id[0] < 'a' || id[0] > 'z' {
		return false
	}
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
