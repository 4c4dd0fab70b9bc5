package builder_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// writer makes packages as people write them: keys in any order, every style of YAML, comments, all kinds of line ends.
type writer struct{ *rand.Rand }

func (w writer) pick(texts ...string) string { return texts[w.IntN(len(texts))] }

func (w writer) maybe() bool { return w.IntN(2) == 0 }

// text writes a value in one of the styles of YAML.
func (w writer) text(s string) string {
	quoted := strconv.QuoteToASCII(s)
	switch {
	case strings.ContainsAny(s, "'\n\"\\:#") || strings.TrimSpace(s) != s:
		return quoted
	case w.maybe():
		return "'" + s + "'"
	case w.maybe():
		return quoted
	}
	return s
}

// block writes a list with one entry on a line.
func (w writer) block(items ...string) string {
	indent := w.pick("", "  ", "    ")
	var b strings.Builder
	for _, item := range items {
		b.WriteString("\n" + indent + "- " + item)
	}
	return b.String()
}

func (w writer) names(key string, items ...string) string {
	if len(items) == 0 || w.maybe() {
		return key + ": [" + strings.Join(items, w.pick(", ", ",", " , ")) + "]"
	}
	return key + ":" + w.block(items...)
}

func (w writer) pkg(name string) builder.Files {
	keys := []string{
		"name: " + w.pick(name, "'"+name+"'", `"`+name+`"`),
		"description: " + w.text(w.pick("Does it.", "Use it when: a, b", "two\nlines", "# no comment", " spaced ", "ü, 日本 and more", "it's \"so\"", "yes and no")),
	}
	files := builder.Files{}
	add := func(lines ...string) {
		if w.maybe() {
			keys = append(keys, strings.Join(lines, "\n"))
		}
	}
	add("version: " + strconv.Itoa(1+w.IntN(40)))
	add(w.names("tools", [][]string{{}, {"read"}, {"grep", "read", "find"}}[w.IntN(3)]...))
	add(w.names("skills", [][]string{{"reading-code"}, {"writing-reports", "citing-sources"}}[w.IntN(2)]...))
	add("thinking: " + w.pick("low", "'max'", `"off"`))
	add(w.names("deny-command-patterns", `'^rm '`, `"a\tb"`))
	add("metadata:", w.pick("  owner: ", "    owner: ")+w.text(w.pick("a: b", "team", "1.10", "true")))
	add(w.pick("x-loop: {kind: transcript}", "x-loop:\n    kind: 'transcript'"))
	add(w.pick("x-budget: {maxTurns: 5, timeoutSec: 2.5}", "x-budget:\n  timeoutSec: 10"))
	add("x-subagents:", "  - "+w.pick("{name: helper, description: Helps., instructions: Help.}", "instructions: |\n        Help\n\n          more\n    name: helper\n    description: Helps."))
	if w.maybe() {
		keys = append(keys, "x-output: {schema: schemas/answer.json, name: answer}")
		files["schemas/answer.json"] = []byte(w.pick(`{"type":"object"}`, "{\n  \"type\": \"object\",\r\n  \"required\": []\n}\n"))
	}
	for _, skill := range []string{"own", "other"} {
		if w.maybe() {
			files["skills/"+skill+"/SKILL.md"] = []byte(w.ends("---\n" + w.pick("", "# a comment\n") + "description: " + w.text("Knows: it") + "\nname: " + skill + "\n---\nText\n\n"))
		}
	}
	w.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	front := strings.Join(keys, w.pick("\n", "\n\n", "\n# a comment\n"))
	body := w.pick("Do it.\n", "Do it.", "\n\n# Title\n\ttab and  blanks  \n", "---\nnot a fence\n---\n", "ends with blanks   \n\n\n", "\u2028 odd \u00a0 space\n")
	files[name+".md"] = []byte(w.ends(w.pick("", "\ufeff") + w.pick("---\n", "--- \n") + front + "\n---\n" + body))
	return files
}

// ends writes a text with the line ends of some system.
func (w writer) ends(text string) string {
	if w.IntN(3) == 0 {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

func filesOf(files builder.Files) []builder.File {
	var list []builder.File
	for path, content := range files {
		list = append(list, builder.File{Path: path, Content: content})
	}
	return list
}

func TestExportAndImportComeBackToTheSameBytes(t *testing.T) {
	const packages = 200
	each(t, func(t *testing.T, f *fixture) {
		w := writer{rand.New(rand.NewPCG(5, 4))}
		changed := 0
		for i := range packages {
			name := fmt.Sprintf("agent-%d", i)
			files := w.pkg(name)
			if _, err := f.Import(t.Context(), "first", builder.ImportRequest{Files: filesOf(files)}); err != nil {
				t.Fatalf("%v\n%q", err, files[name+".md"])
			}
			first, err := f.Export(t.Context(), "first", name, 0, builder.FormatPackage)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Import(t.Context(), "second", builder.ImportRequest{Archive: first.Archive}); err != nil {
				t.Fatal(err)
			}
			second, err := f.Export(t.Context(), "second", name, 0, "")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Archive, second.Archive) || first.Name != second.Name {
				t.Fatalf("the second export of %s differs:\n%q\n%q", name, first.Archive, second.Archive)
			}
			if !sameJob(t, f, name) {
				t.Fatalf("the agent that came back is another one:\n%q", files[name+".md"])
			}
			unpacked, _ := builder.ReadArchive(first.Archive)
			for _, file := range unpacked {
				if !bytes.Equal(file.Content, files[file.Path]) {
					changed++
				}
			}
		}
		if changed < packages {
			t.Errorf("only %d files were not canonical to begin with", changed)
		}
	})
}

// sameJob reports whether both tenants get the same job.
func sameJob(t *testing.T, f *fixture, name string) bool {
	t.Helper()
	var jobs []string
	for _, who := range []string{"first", "second"} {
		r, err := f.Resolve(t.Context(), who, name, 0)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r.Job)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, string(data)+r.Digest)
	}
	return jobs[0] == jobs[1]
}

func lossKeys(losses []builder.Loss) []string {
	keys := []string{}
	for _, l := range losses {
		keys = append(keys, l.Key)
	}
	slices.Sort(keys)
	return keys
}

const claudeAgent = `---
name: reviewer
description: Use when: code was changed, before it is merged
tools: Read, Grep, Glob, Bash, WebSearch, mcp__github
model: sonnet
effort: high
maxTurns: 12
color: blue
hooks:
  PreToolUse:
    - matcher: Bash
skills: [house-style]
---
You review.
`

func TestAgentsOfClaudeCodeComeWithAReportOfWhatIsLost(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.servers = []string{"github"}
		imported, err := f.Import(t.Context(), tenant, builder.ImportRequest{Format: builder.FormatClaude, Files: []builder.File{
			{Path: ".claude/agents/reviewer.md", Content: []byte(claudeAgent)},
			{Path: ".claude/skills/house-style/SKILL.md", Content: []byte("---\nname: house-style\ndescription: How we write.\nlicense: MIT\nallowed-tools: Read\n---\nWrite well.\n")},
			{Path: ".claude/skills/house-style/scripts/check.py", Content: []byte("print()")},
			{Path: ".claude/settings.json", Content: []byte("{}")},
		}})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"", "", "allowed-tools", "color", "hooks", "license", "model", "tools"}
		if diff := cmp.Diff(want, lossKeys(imported.Losses)); diff != "" {
			t.Errorf("%s%+v", diff, imported.Losses)
		}
		if len(imported.Agents) != 1 || !slices.Equal(imported.Skills, []string{"house-style"}) || len(imported.Remarks) != 1 {
			t.Errorf("%+v", imported)
		}
		d := f.get(t, "reviewer")
		if diff := cmp.Diff([]string{"read", "grep", "find", "shell", "mcp__github__*"}, d.Tools); diff != "" {
			t.Error(diff)
		}
		if d.Thinking != "high" || d.Instructions != "You review.\n" || d.Description != "Use when: code was changed, before it is merged" ||
			d.Metadata["imported.model"] != "sonnet" || d.Metadata["imported.hooks"] != `{"PreToolUse":[{"matcher":"Bash"}]}` || !d.Valid {
			t.Errorf("%+v", d)
		}
		r := f.resolve(t, "reviewer", 0)
		if r.Job.Limits == nil || *r.Job.Limits.MaxTurns != 12 || r.Job.Agent.Skills[0].Content != "Write well.\n" {
			t.Errorf("%+v", r.Job)
		}
	})
}

func TestAnAgentOfClaudeCodeGoesBackAsItCame(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.servers = []string{"github"}
		f.createSkill(t, "house-style", "Write well.\n")
		request := builder.ImportRequest{Format: builder.FormatClaude, Files: []builder.File{{Path: "agents/reviewer.md", Content: []byte(claudeAgent)}}}
		if _, err := f.Import(t.Context(), tenant, request); err != nil {
			t.Fatal(err)
		}
		exported, err := f.Export(t.Context(), tenant, "reviewer", 0, builder.FormatClaude)
		if err != nil {
			t.Fatal(err)
		}
		files, problems := builder.ReadArchive(exported.Archive)
		if problems != nil || len(files) != 2 {
			t.Fatalf("%v, %v", files, problems)
		}
		want := `---
name: "reviewer"
description: "Use when: code was changed, before it is merged"
tools: "Read, Grep, Glob, Bash, mcp__github"
skills: "house-style"
effort: "high"
color: "blue"
hooks: {"PreToolUse":[{"matcher":"Bash"}]}
model: "sonnet"
maxTurns: 12
---
You review.
`
		if diff := cmp.Diff(want, string(files[0].Content)); diff != "" || files[0].Path != ".claude/agents/reviewer.md" || files[1].Path != ".claude/skills/house-style/SKILL.md" {
			t.Error(diff, files[1].Path)
		}
		if diff := cmp.Diff([]string{"version"}, lossKeys(exported.Losses)); diff != "" {
			t.Error(diff)
		}
		again := builder.ImportRequest{Format: builder.FormatClaude, Archive: exported.Archive, Replace: true}
		if _, err := f.Import(t.Context(), tenant, again); err != nil {
			t.Fatal(err)
		}
		versions, err := f.Versions(t.Context(), tenant, "reviewer")
		if err != nil || len(versions) != 2 || versions[0].Digest != versions[1].Digest {
			t.Errorf("the way there and back changed the agent: %+v, %v", versions, err)
		}
	})
}

func TestAnExportToClaudeCodeSaysWhatItCannotSay(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		files := agent("a", "tools: [read, codemode]", "deny-command-patterns: [rm]", "x-loop: {kind: transcript}", "x-budget: {maxTurns: 3, timeoutSec: 9}", "metadata: {owner: team}")
		f.create(t, with(files, builder.Files{"skills/own/SKILL.md": []byte(skillFile("own", "x\n"))}))
		exported, err := f.Export(t.Context(), tenant, "a", 0, builder.FormatClaude)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"deny-command-patterns", "tools", "version", "x-budget", "x-loop"}, lossKeys(exported.Losses)); diff != "" {
			t.Errorf("%s%+v", diff, exported.Losses)
		}
		f.create(t, agent("none", "tools: []"))
		exported, err = f.Export(t.Context(), tenant, "none", 0, builder.FormatClaude)
		if err != nil || !slices.Contains(lossKeys(exported.Losses), "tools") {
			t.Errorf("%+v, %v", exported, err)
		}
	})
}

func TestARestrictionIsNeverDroppedInSilence(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		read := func(line string) error {
			text := "---\nname: a\ndescription: d\n" + line + "\n---\nx\n"
			_, err := f.Import(t.Context(), tenant, builder.ImportRequest{Format: builder.FormatClaude, Replace: true,
				Files: []builder.File{{Path: "a.md", Content: []byte(text)}}})
			return err
		}
		if diff := cmp.Diff([]string{builder.CodeRestrictionLost}, codes(read("tools: Bash(git log:*), Read"))); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{catalog.CodeToolUnknown}, codes(read("tools: Raed"))); diff != "" {
			t.Error(diff)
		}
		if err := read("disallowedTools: Bash, Write"); err != nil {
			t.Fatal(err)
		}
		tools := f.get(t, "a").Tools
		if tools == nil || slices.Contains(tools, "shell") || slices.Contains(tools, "write") || !slices.Contains(tools, "read") {
			t.Errorf("tools %v", tools)
		}
		if err := read("tools: [Read, Write]\ndisallowedTools: [Write]"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"read"}, f.get(t, "a").Tools); diff != "" {
			t.Error(diff)
		}
		if err := read("description: " + strings.Repeat("long ", 400)); len(problem.Of(err)) == 0 {
			t.Error("a key that stands twice was taken")
		}
	})
}

func TestALongDescriptionIsCutAndKept(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		long := strings.TrimSpace(strings.Repeat("word ", 400))
		_, err := f.Import(t.Context(), tenant, builder.ImportRequest{Format: builder.FormatClaude,
			Files: []builder.File{{Path: "a.md", Content: []byte("---\nname: a\ndescription: " + long + "\n---\nx\n")}}})
		if err != nil {
			t.Fatal(err)
		}
		d := f.get(t, "a")
		if n := len([]rune(d.Description)); n > catalog.MaxDescription || n < 1000 || d.Metadata["imported.description"] != long {
			t.Errorf("%d characters, %q", n, d.Metadata)
		}
	})
}

func TestSkillsOfOtherProductsComeAsSharedSkills(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		request := builder.ImportRequest{Format: builder.FormatSkills, Author: "ada", Archive: pack(t,
			entry{name: ".agents/skills/pdf/SKILL.md", content: "---\nname: pdf\ndescription: Read PDF: all of it\nmetadata: {a: b}\n---\nRead it.\n"},
			entry{name: ".agents/skills/pdf/references/more.md", content: "more"},
			entry{name: "skills/tone/SKILL.md", content: skillFile("tone", "Be short.\n")})}
		imported, err := f.Import(t.Context(), tenant, request)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"", "metadata"}, lossKeys(imported.Losses)); diff != "" || !slices.Equal(imported.Skills, []string{"pdf", "tone"}) {
			t.Errorf("%s%+v", diff, imported)
		}
		skill, err := f.Skill(t.Context(), tenant, "pdf")
		if err != nil || skill.Description != "Read PDF: all of it" || skill.Content != "Read it.\n" {
			t.Errorf("%+v, %v", skill, err)
		}
		again, err := f.Import(t.Context(), tenant, request)
		if err != nil || len(again.Skills) != 0 {
			t.Errorf("the same skills again: %+v, %v", again, err)
		}
		exported, err := f.ExportSkill(t.Context(), tenant, "pdf")
		if err != nil {
			t.Fatal(err)
		}
		back := builder.ImportRequest{Format: builder.FormatSkills, Archive: exported.Archive}
		if imported, err := f.Import(t.Context(), "elsewhere", back); err != nil || !slices.Equal(imported.Skills, []string{"pdf"}) || len(imported.Losses) != 0 {
			t.Errorf("%+v, %v", imported, err)
		}
	})
}

func TestAnImportIsKeptAsAWholeOrNotAtAll(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, agent("b"))
		request := builder.ImportRequest{Format: builder.FormatClaude, Files: []builder.File{
			{Path: "agents/a.md", Content: agent("a")["a.md"]}, {Path: "agents/b.md", Content: agent("b")["b.md"]},
			{Path: "skills/tone/SKILL.md", Content: []byte(skillFile("tone", "x\n"))}}}
		_, err := f.Import(t.Context(), tenant, request)
		wantError(t, err, store.ErrExists)
		if agents, err := f.List(t.Context(), tenant); err != nil || len(agents) != 6 {
			t.Errorf("%d agents, %v", len(agents), err)
		}
		if _, err := f.Skill(t.Context(), tenant, "tone"); err == nil {
			t.Error("the skill of a refused import was kept")
		}
		request.Replace = true
		if imported, err := f.Import(t.Context(), tenant, request); err != nil || len(imported.Agents) != 2 {
			t.Errorf("%+v, %v", imported, err)
		}
		broken := builder.ImportRequest{Format: builder.FormatClaude, Files: []builder.File{
			{Path: "agents/c.md", Content: []byte("no frontmatter")}, {Path: "agents/d.md", Content: []byte("---\nname: [\n---\nx")},
			{Path: "skills/x/SKILL.md", Content: []byte("---\nname: y\ndescription: d\n---\nx\n")}}}
		_, err = f.Import(t.Context(), tenant, broken)
		want := []string{catalog.CodeFrontmatterMissing, catalog.CodeFrontmatterInvalid, catalog.CodeNameMismatch}
		if diff := cmp.Diff(want, codes(err)); diff != "" {
			t.Error(diff)
		}
		if _, err := f.Import(t.Context(), tenant, builder.ImportRequest{Format: "docx", Files: filesOf(agent("x"))}); len(problem.Of(err)) != 1 {
			t.Errorf("an unknown format: %v", err)
		}
	})
}
