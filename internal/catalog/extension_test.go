package catalog

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// compiled returns what a package says of a job, as a job document has it.
func compiled(pkg *Package) string {
	j, _ := pkg.Compile()
	encoded, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// with returns a package whose agent has the lines, and further files by path and content.
func with(lines string, files ...string) map[string][]byte {
	all := agentFile(minimal(lines))
	for i := 0; i < len(files); i += 2 {
		all[files[i]] = []byte(files[i+1])
	}
	return all
}

// helper is the file of a subagent with the lines in its frontmatter.
func helper(name, lines string) string {
	return "---\nname: " + name + "\ndescription: Helps as " + name + ".\n" + lines + "---\nHelp.\n"
}

func TestCompileMakesTheAgentsPartOfAJob(t *testing.T) {
	t.Parallel()
	files := with(`version: 7
tools: [read]
x-loop: {kind: working-memory, writer: {model: {id: small, thinking: low}, maxTokens: 4000, prompt: Be brief.}}
x-subagents:
  - agent: helper
    name: aide
    budget: {maxTurns: 3}
  - name: judge
    description: Judges.
    instructions: Judge.
    tools: []
    skills: [counting]
    thinking: high
    deny-command-patterns: ["^rm "]
    loop: {kind: transcript}
    subagents: [{agent: helper}]
    budget: {timeoutSec: 1.5, idleTimeoutSec: 0}
x-output: {schema: schemas/list.json, name: list, maxRepairs: 0}
x-budget: {maxCostUsd: 0.5, maxTurns: 20, timeoutSec: 900, idleTimeoutSec: 30}
x-approvals: {read: always, helper: never}
x-tool-errors: {maxRetries: 2, retryOn: [tool-error]}
`, "subagents/helper.md", helper("helper", "version: 2\ntools: [grep]\nx-loop: {kind: working-memory}\nx-budget: {maxTurns: 9, maxCostUsd: 0.1}\n"),
		"schemas/list.json", `{"type": "array"}`, "skills/counting/SKILL.md", skill)
	got, list := mustParse(t, files).Compile()
	if list != nil {
		t.Fatal(list)
	}
	turns := func(n int64) *int64 { return &n }
	dollars := func(n llm.USD) *llm.USD { return &n }
	secs := func(n float64) *float64 { return &n }
	definition := job.Definition{ID: "helper", Version: "2", Instructions: "Help.\n", Tools: []string{"grep"}}
	counting := []job.Skill{{Name: "counting", Content: "Count twice.\n"}}
	loop := &job.Loop{Kind: job.LoopWorkingMemory}
	want := &Job{
		Agent: job.Definition{ID: "inventory", Version: "7", Instructions: "body\n", Tools: []string{"read"}, Skills: counting},
		Loop: &job.Loop{Kind: job.LoopWorkingMemory, Writer: &job.Writer{Model: &job.ModelRef{ID: "small", Thinking: llm.LevelLow},
			MaxTokens: turns(4000), Prompt: "Be brief."}},
		Subagents: []job.Subagent{
			{Name: "aide", Description: "Helps as helper.", Agent: definition, Loop: loop,
				Limits: &job.SubagentLimits{MaxTurns: turns(3), MaxCostUSD: dollars(100_000)}},
			{Name: "judge", Description: "Judges.", Loop: &job.Loop{Kind: job.LoopTranscript},
				Agent: job.Definition{ID: "judge", Version: "7", Instructions: "Judge.", Tools: []string{}, Skills: counting, Thinking: llm.LevelHigh,
					DenyCommandPatterns: []string{"^rm "}},
				Limits: &job.SubagentLimits{TimeoutSec: 1.5, IdleTimeoutSec: secs(0)},
				Subagents: []job.Subagent{{Name: "helper", Description: "Helps as helper.", Agent: definition, Loop: loop,
					Limits: &job.SubagentLimits{MaxTurns: turns(9), MaxCostUSD: dollars(100_000)}}}},
		},
		Output:     &job.OutputSchema{Schema: json.RawMessage(`{"type": "array"}`), Name: "list", MaxRepairs: turns(0)},
		Limits:     &Budget{MaxCostUSD: dollars(500_000), MaxTurns: turns(20), TimeoutSec: secs(900), IdleTimeoutSec: secs(30)},
		Approvals:  &job.Approvals{Tools: map[string]string{"read": job.ApproveAlways, "helper": job.ApproveNever}},
		ToolErrors: &job.ToolErrors{MaxRetries: 2, RetryOn: []string{job.ToolErrorFailed}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Job{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".origins" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
}

func TestASchemaThatIsWrittenOutStaysWhatItIs(t *testing.T) {
	t.Parallel()
	j, _ := mustParse(t, with(`x-output: {schema: {type: object, properties: {z: {const: null}, a: {maximum: 2.5e3, enum: [yes, True, "1"]}}, description: "a < b & \"c\""}}`+"\n")).Compile()
	want := `{"type":"object","properties":{"z":{"const":null},"a":{"maximum":2.5e3,"enum":["yes",true,"1"]}},"description":"a < b & \"c\""}`
	if diff := cmp.Diff(want, string(j.Output.Schema)); diff != "" {
		t.Error(diff)
	}
}

func TestApplyLeavesWhatTheSpecSays(t *testing.T) {
	t.Parallel()
	j, _ := mustParse(t, with("x-budget: {maxTurns: 3, timeoutSec: 5, idleTimeoutSec: 7, maxCostUsd: 1}\n")).Compile()
	nine, idle, usd := int64(9), 1.0, llm.USD(2)
	spec := job.Spec{Limits: job.Limits{TimeoutSec: 60, MaxTurns: &nine, IdleTimeoutSec: &idle, MaxCostUSD: &usd}}
	want := spec.Limits
	if j.Apply(&spec); !cmp.Equal(want, spec.Limits) {
		t.Error(cmp.Diff(want, spec.Limits))
	}
	var empty job.Spec
	if j.Apply(&empty); empty.Limits.TimeoutSec != 5 || *empty.Limits.MaxTurns != 3 || *empty.Limits.IdleTimeoutSec != 7 || *empty.Limits.MaxCostUSD != 1_000_000 {
		t.Errorf("limits = %+v", empty.Limits)
	}
	if empty.Agent.ID != "inventory" {
		t.Errorf("agent = %+v", empty.Agent)
	}
}

func TestExtensionFindings(t *testing.T) {
	t.Parallel()
	at := func(path string, line, column int) []place {
		return []place{{CodeExtensionInvalid, path, line, column}}
	}
	const main, sub = "inventory.md", "subagents/helper.md"
	inline := "x-subagents:\n  - {name: a, description: d, instructions: i, "
	for name, tc := range map[string]struct {
		files map[string][]byte
		want  []place
	}{
		"writer of a transcript":          {with("x-loop: {kind: transcript, writer: {maxTokens: 300}}\n"), at(main, 4, 36)},
		"writer with too small a memory":  {with("x-loop: {kind: working-memory, writer: {maxTokens: 10}}\n"), at(main, 4, 52)},
		"writer without a model's id":     {with("x-loop: {kind: working-memory, writer: {model: {provider: p}}}\n"), at(main, 4, 48)},
		"writer with an unknown thinking": {with("x-loop: {kind: working-memory, writer: {model: {id: m, thinking: hard}}}\n"), at(main, 4, 66)},
		"writer with a key too many":      {with("x-loop: {kind: working-memory, writer: {tokens: 1}}\n"), []place{{CodeKeyUnknown, main, 4, 41}}},
		"output with too many repairs":    {with("x-output: {schema: {}, maxRepairs: 11}\n"), at(main, 4, 36)},
		"output with a schema of text":    {with("x-output: {schema: answer}\n"), []place{{CodeSchemaUnknown, main, 4, 20}}},
		"output with a schema elsewhere":  {with("x-output: {schema: ../answer.json}\n"), []place{{CodeSchemaUnknown, main, 4, 20}}},
		"output with a schema not there":  {with("x-output: {schema: schemas/answer.json}\n"), []place{{CodeSchemaUnknown, main, 4, 20}}},
		"output with a list for a schema": {with("x-output: {schema: []}\n"), at(main, 4, 20)},
		"schema that is no JSON":          {with("x-output: {schema: schemas/a.json}\n", "schemas/a.json", "{\n \"a\": x}"), []place{{CodeSchemaInvalid, "schemas/a.json", 2, 7}}},
		"schema that is no object":        {with("x-output: {schema: schemas/a.json}\n", "schemas/a.json", "[]"), []place{{CodeSchemaInvalid, "schemas/a.json", 1, 1}}},
		"schema that is null":             {with("x-output: {schema: schemas/a.json}\n", "schemas/a.json", "null"), []place{{CodeSchemaInvalid, "schemas/a.json", 1, 1}}},
		"schema that is not UTF-8":        {with("x-output: {schema: schemas/a.json}\n", "schemas/a.json", "{\"\xff\":1}"), []place{{CodeTextInvalid, "schemas/a.json", 1, 3}}},
		"schema that is too large":        {with("x-output: {schema: schemas/a.json}\n", "schemas/a.json", "{"+strings.Repeat(" ", MaxSchema)+"}"), []place{{CodeFileTooLarge, "schemas/a.json", 1, 1}}},
		"schema with a bad name":          {with("x-output: {schema: schemas/A_.json}\n", "schemas/A_.json", "{}"), []place{{CodeSchemaInvalid, "schemas/A_.json", 1, 1}}},
		"schema that nothing names":       {with("", "schemas/a.json", "{}"), []place{{CodeFileUnexpected, "schemas/a.json", 1, 1}}},
		"budget in steps":                 {with("x-budget: {maxSteps: 3}\n"), []place{{CodeKeyUnknown, main, 4, 12}}},
		"budget of money in text":         {with("x-budget: {maxCostUsd: \"1\"}\n"), at(main, 4, 24)},
		"budget finer than money":         {with("x-budget: {maxCostUsd: 0.00000001}\n"), at(main, 4, 24)},
		"budget of too many seconds":      {with("x-budget: {timeoutSec: 1e10}\n"), at(main, 4, 24)},
		"approvals in a list":             {with("x-approvals: [read]\n"), at(main, 4, 14)},
		"approvals with another rule":     {with("x-approvals: {read: sometimes}\n"), at(main, 4, 21)},
		"approvals of no tool":            {with("x-approvals: {\"a b\": never}\n"), []place{{CodeToolInvalid, main, 4, 15}}},
		"tool errors of another kind":     {with("x-tool-errors: {maxRetries: 1, retryOn: [all]}\n"), at(main, 4, 42)},
		"tool errors without a number":    {with("x-tool-errors: {retryOn: tool-error}\n"), append(at(main, 4, 16), at(main, 4, 26)...)},
		"too many tool errors":            {with("x-tool-errors: {maxRetries: 11, retryOn: []}\n"), at(main, 4, 29)},
		"subagent without instructions":   {with("x-subagents:\n  - {name: a, description: d}\n"), at(main, 5, 5)},
		"subagent with blank words":       {with("x-subagents:\n  - {name: a, description: \" \", instructions: \" \"}\n"), []place{{CodeDescriptionMissing, main, 5, 28}, {CodeExtensionInvalid, main, 5, 47}}},
		"subagent that is a word":         {with("x-subagents: [helper]\n"), at(main, 4, 15)},
		"subagent with a bad tool":        {with(inline + "tools: [\"a b\"]}\n"), []place{{CodeToolInvalid, main, 5, 56}}},
		"subagent with a bad pattern":     {with(inline + "deny-command-patterns: [\"(\"]}\n"), []place{{CodeDenyPatternInvalid, main, 5, 72}}},
		"subagent with a bad thinking":    {with(inline + "thinking: hard}\n"), []place{{CodeThinkingInvalid, main, 5, 58}}},
		"subagent with a bad loop":        {with(inline + "loop: {kind: transcript, writer: {}}}\n"), at(main, 5, 81)},
		"subagent with an x- key":         {with(inline + "x-loop: {kind: transcript}}\n"), []place{{CodeKeyUnknown, main, 5, 48}}},
		"subagent by name and in full":    {with("x-subagents:\n  - {agent: helper, instructions: i}\n", sub, helper("helper", "")), []place{{CodeKeyUnknown, main, 5, 21}}},
		"subagent whose file is missing":  {with("x-subagents: [{agent: helpr}]\n", sub, helper("helper", "")), []place{{CodeSubagentUnknown, main, 4, 23}, {CodeFileUnexpected, sub, 1, 1}}},
		"subagent that nothing names":     {with("", sub, helper("helper", "")), []place{{CodeFileUnexpected, sub, 1, 1}}},
		"two references to one file":      {with("x-subagents: [{agent: helper}, {agent: helper}]\n", sub, helper("helper", "")), at(main, 4, 40)},
		"one file under two names":        {with("x-subagents: [{agent: helper}, {agent: helper, name: other}]\n", sub, helper("helper", "")), nil},
		"subagent's file with an output":  {with("x-subagents: [{agent: helper}]\n", sub, helper("helper", "x-output: {schema: {}}\n")), []place{{CodeKeyUnknown, sub, 4, 1}}},
		"subagent's file with a template": {with("x-subagents: [{agent: helper}]\n", sub, helper("helper", "template: liquid\n")), []place{{CodeKeyUnknown, sub, 4, 1}}},
		"subagent's file for members":     {with("x-subagents: [{agent: helper}]\n", sub, helper("helper", "metadata: {audience: member}\n")), []place{{CodeMetadataInvalid, sub, 4, 12}}},
		"subagent's file of another name": {with("x-subagents: [{agent: helper}]\n", sub, helper("other", "")), []place{{CodeNameMismatch, sub, 2, 7}}},
		"subagent's file without a body":  {with("x-subagents: [{agent: helper}]\n", sub, "---\nname: helper\ndescription: d\n---\n"), []place{{CodeBodyEmpty, sub, 5, 1}}},
		"subagent's file with bad limits": {with("x-subagents: [{agent: helper}]\n", sub, helper("helper", "x-budget: {maxTurns: 0}\nx-loop: {kind: transcript, writer: {}}\n")), append(at(sub, 4, 22), at(sub, 5, 36)...)},
		"subagents in a circle":           {with("x-subagents: [{agent: helper}]\n", sub, helper("helper", "x-subagents: [{agent: helper}]\n")), at(sub, 4, 23)},
		"subagents in a wider circle": {with("x-subagents: [{agent: helper}]\n", sub, helper("helper", "x-subagents:\n  - {name: a, description: d, instructions: i, subagents: [{agent: second}]}\n"),
			"subagents/second.md", helper("second", "x-subagents: [{agent: helper}]\n")), at("subagents/second.md", 4, 23)},
		"something else in the folder":  {with("", "subagents/helper.txt", "x"), []place{{CodeFileUnexpected, "subagents/helper.txt", 1, 1}}},
		"something deeper in a folder":  {with("", "schemas/a/b.json", "{}"), []place{{CodeFileUnexpected, "schemas/a/b.json", 1, 1}}},
		"no word on files if a key is":  {with("x-subagents: {agent: helper}\n", sub, helper("helper", "")), at(main, 4, 14)},
		"a roster as an empty list":     {with("x-subagents: []\n"), nil},
		"faults in all files are found": {with("x-subagents: [{agent: helper}]\nx-budget: {maxTurns: 0}\n", sub, helper("helper", "version: x\n")), []place{{CodeExtensionInvalid, main, 5, 22}, {CodeVersionInvalid, sub, 4, 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, list := ParsePackage(tc.files)
			if diff := cmp.Diff(tc.want, places(list)); diff != "" {
				t.Errorf("%s%v", diff, list)
			}
		})
	}
}

// nested writes rosters inside of each other.
func nested(depth int) string {
	if depth == 0 {
		return "[]"
	}
	return fmt.Sprintf("[{name: a, description: d, instructions: i, subagents: %s}]", nested(depth-1))
}

func TestRostersAreBounded(t *testing.T) {
	t.Parallel()
	if _, list := ParsePackage(with("x-subagents: " + nested(job.MaxSubagentDepth) + "\n")); list != nil {
		t.Errorf("rosters as deep as allowed: %v", list)
	}
	_, list := ParsePackage(with("x-subagents: " + nested(job.MaxSubagentDepth+1) + "\n"))
	if len(list) != 1 || list[0].Code != CodeExtensionInvalid || !strings.Contains(list[0].Message, "deep") || list[0].Line != 4 {
		t.Errorf("a roster too deep: %v", list)
	}

	entries := strings.Repeat("\n  - {name: xx, description: d, instructions: i}", job.MaxSubagents+1)
	if _, list = ParsePackage(with("x-subagents:" + entries + "\n")); len(list) != 1 || !strings.Contains(list[0].Message, "at most 32") {
		t.Errorf("a roster too long: %v", list)
	}

	// Twelve files that each refer to the next twelve times would be more subagents than there are atoms.
	files := with("x-subagents: [{agent: s0}]\n")
	for i := range 12 {
		lines := "x-subagents:\n"
		for j := range 12 {
			lines += fmt.Sprintf("  - {agent: s%d, name: n%d}\n", i+1, j)
		}
		if i == 11 {
			lines = ""
		}
		name := fmt.Sprintf("s%d", i)
		files["subagents/"+name+".md"] = []byte(helper(name, lines))
	}
	_, list = ParsePackage(files)
	if !list.Has(CodeExtensionInvalid, "/x-subagents") {
		t.Errorf("too many subagents in all: %v", list)
	}
}

func TestCheckLooksAtSubagentsAndApprovals(t *testing.T) {
	t.Parallel()
	in := Installation{Tools: []string{"read", "shell"}, MCPServers: []string{"wiki"}, Skills: []string{"tone"}}
	files := with("tools: [read]\nx-subagents:\n  - {name: shell, description: d, instructions: i, tools: [raed], skills: [counting, tune]}\n  - {agent: helper}\n"+
		"x-approvals: {helper: always, read: never, sehll: always, mcp__wikki__x: always}\n",
		"subagents/helper.md", helper("helper", "tools: [mcp__other__x]\n"), "skills/counting/SKILL.md", skill)
	want := []place{
		{CodeNameReserved, "inventory.md", 6, 12}, {CodeToolUnknown, "inventory.md", 6, 60}, {CodeSkillUnknown, "inventory.md", 6, 86},
		{CodeMCPServerUnknown, "subagents/helper.md", 4, 9}, {CodeToolUnknown, "inventory.md", 8, 44}, {CodeMCPServerUnknown, "inventory.md", 8, 59},
	}
	if list := mustParse(t, files).Check(in); !sameSet(want, places(list)) {
		t.Errorf("%s%v", cmp.Diff(want, places(list)), list)
	}
}

func TestLocateNamesThePlaceInThePackage(t *testing.T) {
	t.Parallel()
	j, _ := mustParse(t, with("tools: [read, grep]\nthinking: low\nx-subagents:\n  - agent: helper\n    budget: {maxTurns: 3}\n  - {name: b, description: d, instructions: i, tools: [x, y]}\n"+
		"x-budget: {maxTurns: 2, maxCostUsd: 1}\nx-approvals: {read: always}\nx-output: {schema: {type: wrong}}\n",
		"subagents/helper.md", helper("helper", "tools: [read, ls]\nx-loop: {kind: working-memory}\n"))).Compile()
	j.Replaced("/limits/maxTurns")
	for pointer, want := range map[string]string{
		"/agent/tools/1":               "inventory.md:4:15",
		"/agent/thinking":              "inventory.md:5:11",
		"/agent/instructions":          "inventory.md:14:1",
		"/subagents/0/agent/tools/1":   "subagents/helper.md:4:15",
		"/subagents/0/loop":            "subagents/helper.md:5:9",
		"/subagents/0/loop/writer":     "subagents/helper.md:5:9",
		"/subagents/0/limits/maxTurns": "inventory.md:8:24",
		"/subagents/1/agent/tools/1":   "inventory.md:9:59",
		"/subagents/1/name":            "inventory.md:9:12",
		"/subagents":                   "inventory.md:7:5",
		"/limits/maxCostUsd":           "inventory.md:10:37",
		"/limits/maxTurns":             "",
		"/approvals":                   "inventory.md:11:14",
		"/approvals/tools/read":        "inventory.md:11:21",
		"/output/schema/type":          "inventory.md:12:27",
		"/model/id":                    "",
		"no pointer":                   "",
		"":                             "",
	} {
		got := ""
		if p := j.Locate(problem.List{{Code: "x", Pointer: pointer}})[0]; p.Path != "" {
			got = fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Column)
		}
		if got != want {
			t.Errorf("%q is at %q, want %q", pointer, got, want)
		}
	}
}

func TestMarshalWritesEveryFileAndCompilesAlike(t *testing.T) {
	t.Parallel()
	files := with("x-approvals: {write: always, edit: first-use}\nx-tool-errors: {retryOn: [tool-error, unknown-tool], maxRetries: 1}\nx-output: {name: n, schema: schemas/a.json}\n"+
		"x-subagents:\n  - budget: {maxTurns: 2, maxCostUsd: 1}\n    agent: helper\n", "subagents/helper.md", helper("helper", "x-loop: {writer: {maxTokens: 300}, kind: working-memory}\ntools: []\n"),
		"schemas/a.json", "{ }\n")
	pkg := mustParse(t, files)
	got := pkg.Marshal()
	want := map[string]string{
		"inventory.md": "---\nname: inventory\ndescription: d\nx-subagents:\n  - agent: helper\n    budget:\n      maxCostUsd: 1\n      maxTurns: 2\n" +
			"x-output:\n  schema: schemas/a.json\n  name: \"n\"\nx-approvals:\n  edit: first-use\n  write: always\n" +
			"x-tool-errors:\n  maxRetries: 1\n  retryOn:\n    - tool-error\n    - unknown-tool\n---\nbody\n",
		"subagents/helper.md": "---\nname: helper\ndescription: Helps as helper.\ntools: []\nx-loop:\n  kind: working-memory\n  writer:\n    maxTokens: 300\n---\nHelp.\n",
		"schemas/a.json":      "{ }\n",
	}
	for name, content := range want {
		if diff := cmp.Diff(content, string(got[name])); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files", len(got))
	}
	roundTrip(t, pkg)
	if diff := cmp.Diff(compiled(pkg), compiled(mustParse(t, got))); diff != "" {
		t.Error(diff)
	}
}

func TestParseFileReadsSubagentsAndSchemas(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"inventory.md":        minimal("x-subagents: [{agent: helper}]\nx-output: {schema: schemas/a.json}\n"),
		"subagents/helper.md": helper("helper", ""),
		"subagents/.notes":    "x",
		"schemas/a.json":      "{}",
	}
	pkg, list := ParseFile(filepath.Join(layOut(t, files), "inventory.md"))
	if list != nil || len(pkg.Subagents) != 1 || len(pkg.Schemas) != 1 {
		t.Fatalf("package = %+v, findings %v", pkg, list)
	}
	files["subagents/helper.md"] = helper("helper", "version: x\nx-budget: {maxTurns: 0}\n")
	files["subagents/README.txt"] = "x"
	files["subagents/inner/x.md"] = "x"
	files["schemas/b.json"] = "["
	dir := layOut(t, files)
	_, list = ParseFile(filepath.Join(dir, "inventory.md"))
	at := func(path string) string { return filepath.Join(dir, path) }
	want := []place{
		{CodeFileUnexpected, at("subagents/README.txt"), 1, 1}, {CodeFileUnexpected, at("subagents/inner"), 1, 1},
		{CodeVersionInvalid, at("subagents/helper.md"), 4, 10}, {CodeExtensionInvalid, at("subagents/helper.md"), 5, 22},
		{CodeSchemaInvalid, at("schemas/b.json"), 1, 1}, {CodeFileUnexpected, at("schemas/b.json"), 1, 1},
	}
	if !sameSet(want, places(list)) {
		t.Errorf("%s%v", cmp.Diff(want, places(list)), list)
	}
}

func TestParseFileBoundsTheFilesOfAFolder(t *testing.T) {
	t.Parallel()
	files := map[string]string{"inventory.md": minimal("")}
	for i := range MaxSubagentFiles + 1 {
		files[fmt.Sprintf("subagents/s%d.md", i)] = "x"
	}
	dir := layOut(t, files)
	_, list := ParseFile(filepath.Join(dir, "inventory.md"))
	if diff := cmp.Diff([]place{{CodeFileTooLarge, filepath.Join(dir, "subagents"), 1, 1}}, places(list)); diff != "" {
		t.Error(diff)
	}
}
