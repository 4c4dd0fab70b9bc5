package job_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// goodSpec is the smallest document that is refused for nothing. Tests change one place of it.
const goodSpec = `{
  "apiVersion": "hozo/v1",
  "agent": {"id": "inventory", "version": "1", "instructions": "List what there is."},
  "task": "Describe this directory.",
  "model": {"provider": "local", "id": "m"},
  "providers": {"local": {"api": "openai-chat", "baseUrl": "http://127.0.0.1:8080/v1"}},
  "workspace": {"root": "w", "readOnly": ["w/source"], "outDir": "w/out"},
  "limits": {"timeoutSec": 60}
}`

// with returns goodSpec with the value at a dotted path replaced by raw JSON, or removed if that is empty.
func with(t testing.TB, path, value string) string {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(goodSpec), &document); err != nil {
		t.Fatal(err)
	}
	at := document.(map[string]any)
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		next, ok := at[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	last := names[len(names)-1]
	delete(at, last)
	if value != "" {
		at[last] = "\x00"
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), `"\u0000"`, value, 1)
}

// found returns the problems of a document as "code pointer", and fails the test if the error is of another kind.
func found(t testing.TB, text string) []string {
	t.Helper()
	spec, err := job.Parse([]byte(text))
	if err == nil {
		return nil
	}
	if spec != nil {
		t.Error("a spec and an error were returned together")
	}
	var e *problem.Error
	if !errors.As(err, &e) || e.Kind != problem.Invalid || len(e.Problems) == 0 {
		t.Fatalf("error is no list of problems: %v", err)
	}
	var got []string
	for _, p := range e.Problems {
		got = append(got, p.Code+" "+p.Pointer)
		if p.Message == "" || p.Line < 1 || p.Column < 1 {
			t.Errorf("incomplete problem %+v", p)
		}
	}
	return got
}

func TestParseAcceptsTheSmallestSpec(t *testing.T) {
	t.Parallel()
	spec, err := job.Parse([]byte(goodSpec))
	if err != nil {
		t.Fatal(err)
	}
	if spec.Agent.ID != "inventory" || spec.Limits.TimeoutSec != 60 || spec.Agent.Tools != nil {
		t.Errorf("decoded wrongly: %+v", spec)
	}
}

func TestParseReportsDecodeAndSemanticFaultsTogether(t *testing.T) {
	t.Parallel()
	const text = `{
  "apiVersion": "hozo/v1",
  "agent": {"id": "", "instructions": "  \n", "skills": [{"name": "Bad", "content": "x"}], "colour": "red"},
  "task": "Describe.",
  "task": "Describe again.",
  "model": {"provider": "nowhere", "id": "m", "thinking": "huge"},
  "providers": {"local": {"api": "openai-chat"}},
  "workspace": {"root": "w", "readOnly": "w/source", "outDir": "w/out"},
  "limits": {"timeoutSec": 60}
}`
	want := []string{
		"required /agent/id",
		"required /agent/instructions",
		"invalid /agent/skills/0/name",
		"unknown-field /agent/colour",
		"duplicate-key /task",
		"unknown /model/provider",
		"unknown /model/thinking",
		"wrong-type /workspace/readOnly",
	}
	if diff := cmp.Diff(want, found(t, text)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestParseRefusesWhatIsNotStrictJSON(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	many := "[" + strings.Repeat("{},", 1<<20) + "{}]"
	cases := map[string]struct {
		text string
		want []string
	}{
		"trailing data":          {goodSpec + " x", []string{"trailing-data "}},
		"two documents":          {goodSpec + "\n" + goodSpec, []string{"trailing-data "}},
		"UTF-16, big endian":     {"\xfe\xff\x00{\x00}", []string{"encoding "}},
		"byte order mark":        {"\ufeff" + goodSpec, []string{"encoding "}},
		"UTF-16":                 {"\xff\xfe{\x00}\x00", []string{"encoding "}},
		"empty":                  {"", []string{"syntax "}},
		"white space":            {" \n ", []string{"syntax "}},
		"no object":              {`[]`, []string{"wrong-type "}},
		"null":                   {`null`, []string{"wrong-type "}},
		"NaN":                    {with(t, "limits", `{"timeoutSec": NaN}`), []string{"syntax /limits/timeoutSec"}},
		"1e400":                  {with(t, "limits/timeoutSec", `1e400`), []string{"out-of-range /limits/timeoutSec"}},
		"1e400 in metadata":      {with(t, "metadata/n", `[1e400]`), []string{"out-of-range /metadata/n/0"}},
		"10 MB number":           {with(t, "limits/timeoutSec", strings.Repeat("1", 10<<20)), []string{"out-of-range /limits/timeoutSec"}},
		"long whole number":      {with(t, "limits/maxTurns", strings.Repeat("1", 2000)), []string{"out-of-range /limits/maxTurns"}},
		"tiny exponent":          {with(t, "limits/maxTurns", `1e-999999999`), []string{"wrong-type /limits/maxTurns"}},
		"comment":                {strings.Replace(goodSpec, `"task"`, `// now the task`+"\n"+`"task"`, 1), []string{"syntax "}},
		"trailing comma":         {strings.Replace(goodSpec, `"id": "m"}`, `"id": "m",}`, 1), []string{"syntax /model"}},
		"depth":                  {with(t, "metadata/deep", deep), []string{"too-deep /metadata/deep" + strings.Repeat("/0", 62)}},
		"number of values":       {`{"metadata": {"many": ` + many + `}}`, []string{"too-large /metadata/many/1048571"}},
		"invalid UTF-8":          {with(t, "task", "\"\xff\""), []string{"encoding /task"}},
		"invalid UTF-8 in a key": {with(t, "metadata", "{\"\xff\": 1}"), []string{"encoding /metadata/\ufffd"}},
		"lone high surrogate":    {with(t, "task", `"a\ud800b"`), []string{"encoding /task"}},
		"lone low surrogate":     {with(t, "metadata/x", `["\uDC00"]`), []string{"encoding /metadata/x/0"}},
		"high without low":       {with(t, "task", `"\ud83d\u0041"`), []string{"encoding /task"}},
		"surrogate pair":         {with(t, "task", `"\ud83e\udeb5 \\ud800"`), nil},
		"duplicate key":          {strings.Replace(goodSpec, `"id": "m"`, `"id": "m", "id": "n"`, 1), []string{"duplicate-key /model/id"}},
		"escaped duplicate":      {strings.Replace(goodSpec, `"id": "m"`, `"id": "m", "i\u0064": "n"`, 1), []string{"duplicate-key /model/id"}},
		"duplicate in metadata":  {with(t, "metadata/a", `{"b": 1, "b": 2}`), []string{"duplicate-key /metadata/a/b"}},
		"duplicate in a map":     {with(t, "providers/local/headers", `{"X-A": "1", "X-A": "2"}`), []string{"duplicate-key /providers/local/headers/X-A"}},
		"case variant beside":    {strings.Replace(goodSpec, `"task"`, `"Task": "x", "task"`, 1), []string{"field-case /Task"}},
		"case variant alone":     {strings.Replace(goodSpec, `"task"`, `"TASK"`, 1), []string{"field-case /TASK"}},
		"misspelt required":      {strings.Replace(goodSpec, `"timeoutSec"`, `"timeoutSecs"`, 1), []string{"unknown-field /limits/timeoutSecs"}},
		"long name":              {with(t, "metadata", `{"`+strings.Repeat("n", 2000)+`": 1}`), []string{"too-large /metadata"}},
		"null for optional":      {with(t, "limits/maxTurns", `null`), []string{"wrong-type /limits/maxTurns"}},
		"null for required":      {with(t, "task", `null`), []string{"wrong-type /task"}},
		"null in a list":         {with(t, "agent/tools", `[null]`), []string{"wrong-type /agent/tools/0"}},
		"null for an object":     {with(t, "sampling", `null`), []string{"wrong-type /sampling"}},
		"null for money":         {with(t, "limits/maxCostUsd", `null`), []string{"wrong-type /limits/maxCostUsd"}},
		"null script":            {with(t, "providers/local", `{"api":"scripted","script":null}`), []string{"wrong-type /providers/local/script"}},
		"null metadata value":    {with(t, "metadata/x", `null`), nil},
		"string for a number":    {with(t, "limits/timeoutSec", `"60"`), []string{"wrong-type /limits/timeoutSec"}},
		"number for a string":    {with(t, "task", `5`), []string{"wrong-type /task"}},
		"list for an object":     {with(t, "limits", `[]`), []string{"wrong-type /limits"}},
		"object for a list":      {with(t, "agent/skills", `{}`), []string{"wrong-type /agent/skills"}},
		"string for a boolean":   {with(t, "context", `[{"label":"l","data":"d","place":"system-end","trusted":"yes"}]`), []string{"wrong-type /context/0/trusted"}},
		"number for a map":       {with(t, "providers", `5`), []string{"wrong-type /providers"}},
		"fraction for an int":    {with(t, "limits/maxTurns", `2.5`), []string{"wrong-type /limits/maxTurns"}},
		"whole number as float":  {with(t, "limits/maxTurns", `4.0e1`), nil},
		"int beyond 2^53":        {with(t, "limits/maxTurns", `9007199254740992`), []string{"out-of-range /limits/maxTurns"}},
		"int beyond int64":       {with(t, "limits/maxTurns", `1e300`), []string{"out-of-range /limits/maxTurns"}},
		"pointer with escapes":   {with(t, "metadata", `{"a/b~c": {"x": 1, "x": 1}}`), []string{"duplicate-key /metadata/a~1b~0c/x"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, found(t, c.text)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefusesAnOversizedDocumentUnread(t *testing.T) {
	t.Parallel()
	text := goodSpec + strings.Repeat(" ", job.MaxSpecBytes)
	if diff := cmp.Diff([]string{"too-large "}, foundAnywhere(text)); diff != "" {
		t.Error(diff)
	}
}

// foundAnywhere is found without the demand for a line.
func foundAnywhere(text string) []string {
	_, err := job.Parse([]byte(text))
	var got []string
	for _, p := range problem.Of(err) {
		got = append(got, p.Code+" "+p.Pointer)
	}
	return got
}

func TestParseSuggestsTheFieldThatWasMeant(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ path, message, hint string }{
		"swapped letters": {"limits/maxTruns", `unknown field "maxTruns"`, `did you mean "maxTurns"?`},
		"other case":      {"limits/MaxTurns", `unknown field "MaxTurns"; names are case-sensitive`, `write "maxTurns"`},
		"nothing close": {"limits/colour", `unknown field "colour"`,
			"known fields: timeoutSec, idleTimeoutSec, maxTurns, maxCostUsd"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := job.Parse([]byte(with(t, c.path, "3")))
			problems := problem.Of(err)
			if len(problems) != 1 || problems[0].Message != c.message || problems[0].Hint != c.hint {
				t.Errorf("got %v", problems)
			}
		})
	}
}

func TestParseTellsLineAndColumn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text         string
		line, column int
	}{
		"syntax":         {"{\n  \"apiVersion\": \"hozo/v1\",\n  oops", 3, 3},
		"unknown field":  {strings.Replace(goodSpec, `"task"`, `"tusk": 1, "task"`, 1), 4, 3},
		"semantic fault": {strings.Replace(goodSpec, `"inventory"`, `""`, 1), 3, 19},
		"missing field":  {strings.Replace(goodSpec, `{"timeoutSec": 60}`, `{}`, 1), 8, 13},
		"trailing data":  {goodSpec + "\n\n {}", 11, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := job.Parse([]byte(c.text))
			p := problem.Of(err)[0]
			if p.Line != c.line || p.Column != c.column {
				t.Errorf("got %d:%d, want %d:%d for %v", p.Line, p.Column, c.line, c.column, p)
			}
		})
	}
}

func TestBrokenDocumentStillReportsWhatWasRead(t *testing.T) {
	t.Parallel()
	const text = `{"apiVersion": "hozo/v1", "agent": {"id": "", "instructions": "x", "nope": 1}, "task": "t", "model": {"provider": "p"`
	want := []string{"required /agent/id", "unknown-field /agent/nope", "syntax /model"}
	if diff := cmp.Diff(want, found(t, text)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestCutDocumentNeverBlamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for cut := range len(goodSpec) {
		for _, got := range found(t, goodSpec[:cut]) {
			if !strings.HasPrefix(got, "syntax ") {
				t.Errorf("cut at %d: %s", cut, got)
			}
		}
	}
}

func TestWrongTypeAnywhereIsExactlyOneProblem(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"apiVersion", "agent", "agent/id", "agent/version", "agent/instructions", "agent/skills", "agent/tools",
		"agent/denyCommandPatterns", "agent/thinking", "task", "model", "model/provider", "model/id", "model/thinking", "providers",
		"providers/local", "providers/local/api", "providers/local/baseUrl", "providers/local/apiKey", "providers/local/headers",
		"providers/local/models", "workspace", "workspace/root", "workspace/readOnly", "workspace/outDir", "workspace/tmpDir", "limits",
		"limits/timeoutSec", "limits/idleTimeoutSec", "limits/maxTurns", "limits/maxCostUsd", "metadata", "history", "context", "notices",
		"sampling", "sampling/temperature", "sampling/maxOutputTokens", "mcp", "output", "checks", "toolErrors", "approvals", "loop",
		"subagents", "host", "resume", "id"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff([]string{"wrong-type /" + path}, found(t, with(t, path, "true"))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyProblemsAreCutWithANote(t *testing.T) {
	t.Parallel()
	var fields []string
	for i := range 5000 {
		fields = append(fields, fmt.Sprintf(`"zzzzz%d": 1`, i))
	}
	text := with(t, "limits", `{"timeoutSec": 1, `+strings.Join(fields, ",")+`}`)
	got := foundAnywhere(text)
	if len(got) != 201 || got[200] != "too-many " {
		t.Errorf("got %d problems, the last is %q", len(got), got[len(got)-1])
	}
}

func TestNoProblemShowsACredential(t *testing.T) {
	t.Parallel()
	const canary = "sk-canary-5ec2e7"
	cases := map[string]string{
		"key of wrong type":     with(t, "providers/local/apiKey", `["`+canary+`"]`),
		"key with line break":   with(t, "providers/local/apiKey", `"`+canary+`\n"`),
		"key without quotes":    with(t, "providers/local/apiKey", canary),
		"key with bad escape":   with(t, "providers/local/apiKey", `"\`+canary+`"`),
		"key with bad unicode":  with(t, "providers/local/apiKey", `"\ud800`+canary+`"`),
		"key never closed":      strings.TrimRight(with(t, "providers/local/apiKey", `"`+canary), "}"),
		"key as raw bytes":      with(t, "providers/local/apiKey", "\""+canary+"\xff\""),
		"header of wrong type":  with(t, "providers/local/headers", `{"X-Key": {"v": "`+canary+`"}}`),
		"header value":          with(t, "providers/local/headers", `{"X-Key": "`+canary+`\u0000"}`),
		"forbidden header":      with(t, "providers/local/headers", `{"Host": "`+canary+`"}`),
		"tag header":            with(t, "providers/local/tagHeaders", `{"X-Tag": "{`+canary+`}"}`),
		"userinfo":              with(t, "providers/local/baseUrl", `"https://me:`+canary+`@example.com/v1"`),
		"userinfo of a bad URL": with(t, "providers/local/baseUrl", `"https://me:`+canary+`@exa mple.com:x/v1"`),
		"query":                 with(t, "providers/local/baseUrl", `"https://example.com/v1?key=`+canary+`"`),
		"fragment":              with(t, "providers/local/baseUrl", `"https://example.com/v1#`+canary+`"`),
		"script on another API": with(t, "providers/local/script", `{"k": "`+canary+`"}`),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := job.Parse([]byte(text))
			if err == nil {
				t.Fatal("accepted")
			}
			encoded, marshalErr := json.Marshal(problem.Of(err))
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			for _, text := range []string{err.Error(), string(encoded)} {
				if strings.Contains(text, canary[3:]) {
					t.Errorf("the key is in %s", text)
				}
			}
		})
	}
}

func TestFurtherRulesJoinTheSameAnswer(t *testing.T) {
	t.Parallel()
	text := strings.Replace(goodSpec, `"agent": {`, `"agent": {"tools": ["read", "teleport"], "thinking": 5, `, 1)
	text = strings.Replace(text, `"task": "Describe this directory."`, `"task": ""`, 1)
	calls := 0
	_, err := job.ParseWith([]byte(text), func(s *job.Spec) problem.List {
		calls++
		var problems problem.List
		problems.Add("unknown-tool", "/agent/tools/1", "unknown tool %q", s.Agent.Tools[1])
		problems.Add("unsupported", "/agent/thinking", "cannot be judged: it did not decode")
		problems.Add("unsupported", "", "no journal")
		return problems
	})
	var got []string
	for _, p := range problem.Of(err) {
		got = append(got, p.Code+" "+p.Pointer)
	}
	want := []string{"unsupported ", "unknown-tool /agent/tools/1", "wrong-type /agent/thinking", "required /task"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if calls != 1 {
		t.Errorf("the rules were called %d times", calls)
	}
}
