package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/scripted"
)

// talk is an exchange under test with the deltas that it has streamed.
type talk struct {
	t *testing.T
	llm.Dialog
	deltas []string
}

// open begins an exchange over a YAML script with the tools read and ls on offer and a task appended.
func open(t *testing.T, script string) *talk {
	t.Helper()
	s, err := scripted.Parse([]byte(script), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, s.Provider())
}

func begin(t *testing.T, p llm.Provider) *talk {
	t.Helper()
	c, err := p.Converse(llm.Opening{
		Model: llm.Model{ID: "actor"}, System: "Be brief.", JobSystem: "Paths are relative.", Thinking: llm.LevelOff,
		Tools: []llm.ToolSpec{{Name: "read", InputSchema: json.RawMessage(`{"properties":{"path":{}}}`)}, {Name: "ls", InputSchema: json.RawMessage(`{}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{t: t, Dialog: c}
	k.append(llm.UserText("look around"))
	return k
}

func (k *talk) append(m llm.Message) {
	k.t.Helper()
	if err := k.Append(m); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) sink(d llm.Delta) error {
	k.deltas = append(k.deltas, fmt.Sprintf("%d:%d:%s", d.Kind, d.Index, d.Text))
	return nil
}

func (k *talk) stream() (llm.Response, error) {
	k.deltas = nil
	return k.Stream(k.t.Context(), llm.Call{Purpose: llm.PurposeTurn}, k.sink)
}

// turn streams a response that must succeed, and appends it with the given results of its calls.
func (k *talk) turn(results ...string) llm.Message {
	k.t.Helper()
	r, err := k.stream()
	if err != nil {
		k.t.Fatal(err)
	}
	k.answer(r.Message, results...)
	return r.Message
}

// answer appends an assistant message and the results of its calls; a result that begins with "!" is an error.
func (k *talk) answer(m llm.Message, results ...string) {
	k.t.Helper()
	calls := m.ToolCalls()
	if len(calls) != len(results) {
		k.t.Fatalf("%d calls, %d results in the test", len(calls), len(results))
	}
	back := llm.Message{Role: llm.RoleTool}
	for i, call := range calls {
		call.ID = fmt.Sprintf("%s.%d", call.Name, i)
		text, failed := strings.CutPrefix(results[i], "!")
		back.Parts = append(back.Parts, llm.Part{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{
			CallID: call.ID, Name: call.Name, Content: []llm.Part{llm.TextPart(text)}, IsError: failed}})
	}
	k.append(m)
	if len(calls) > 0 {
		k.append(back)
	}
}

func class(t *testing.T, err error) llm.Class {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("got error %v, want an *llm.Error", err)
	}
	return e.Class
}

func TestAResponseStreamsItsPartsInOrder(t *testing.T) {
	t.Parallel()
	k := open(t, `
responses:
- id: resp-1
  servedModel: actor-2
  chunkBytes: 3
  usage: {input: 10, cacheRead: 5, output: 7, reasoning: 2}
  billedUsd: 0.25
  parts:
  - thinking: hmm
    signature: sig
  - text: añb
  - call: {name: read, id: p1, arguments: {path: a}}
`)
	r, err := k.stream()
	if err != nil {
		t.Fatal(err)
	}
	wantDeltas := []string{"2:0:hmm", "1:0:añ", "1:0:b", "3:0:read", `4:0:{"p`, `4:0:ath`, `4:0:":"`, `4:0:a"}`, "5:0:"}
	if diff := cmp.Diff(wantDeltas, k.deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	billed := llm.MicroUSD(250_000)
	want := llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Origin: llm.Origin{API: "scripted", Model: "actor"}, Parts: []llm.Part{
			{Type: llm.PartThinking, Text: "hmm", Signature: "sig"},
			llm.TextPart("añb"),
			{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ProviderID: "p1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}},
		}},
		Stop: llm.StopTools, RawStop: "tools", ServedModel: "actor-2", ID: "resp-1", Billed: &billed, UsageReported: true,
		Usage: llm.Usage{Input: 10, CacheRead: 5, Output: 7, Reasoning: 2},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestResponsesAreUsedInOrderAndThenRunOut(t *testing.T) {
	t.Parallel()
	k := open(t, "responses: [{text: one, repeat: 2}, {text: two}]")
	for _, want := range []string{"one", "one", "two"} {
		if r, err := k.stream(); err != nil || r.Message.Text() != want {
			t.Fatalf("got %q, %v; want %q", r.Message.Text(), err, want)
		}
	}
	_, err := k.stream()
	if got := class(t, err); got != llm.ClassInvalidRequest || !strings.Contains(err.Error(), "the script has no more responses") {
		t.Errorf("got %v (%v), want an invalid request that says so", err, got)
	}
}

func TestTwoExchangesOfOneProviderShareThePosition(t *testing.T) {
	t.Parallel()
	s, err := scripted.Parse([]byte("responses: [{text: one}, {text: two}]"), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := s.Provider()
	if got := begin(t, p).turn().Text() + begin(t, p).turn().Text(); got != "onetwo" {
		t.Errorf("got %q, want the second exchange to go on with the second response", got)
	}
	if got := begin(t, s.Provider()).turn().Text(); got != "one" {
		t.Errorf("got %q, want another provider to begin at the first response", got)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		when   string
		result string
		want   bool
	}{
		"result contains":         {"{lastResult: {contains: bc}}", "abcd", true},
		"result does not contain": {"{lastResult: {contains: x}}", "abcd", false},
		"result matches":          {"{lastResult: {matches: '^a.*d$'}}", "abcd", true},
		"result of another tool":  {"{lastResult: {tool: ls}}", "abcd", false},
		"result was an error":     {"{lastResult: {isError: true}}", "!no", true},
		"result was no error":     {"{lastResult: {isError: true}}", "yes", false},
		"message of a role":       {"{lastMessage: {role: tool, contains: ab}}", "abcd", true},
		"message of another role": {"{lastMessage: {role: user}}", "abcd", false},
		"tool offered":            {"{offered: [ls, read]}", "", true},
		"one of two not offered":  {"{offered: [ls, grep]}", "", false},
		"tool not offered":        {"{notOffered: grep}", "", true},
		"attempt":                 {"{attempt: 1}", "", true},
		"another attempt":         {"{attempt: 2}", "", false},
		"purpose":                 {"{purpose: turn}", "", true},
		"another purpose":         {"{purpose: compaction}", "", false},
		"test":                    {"{test: '{{ eq (lastResult) `abcd` }}'}", "abcd", true},
		"test is false":           {"{test: '{{ eq (lastResult) `x` }}'}", "abcd", false},
		"all must hold":           {"{attempt: 1, offered: nothing}", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, `
responses:
- parts: [{call: {name: read}}]
- {when: `+tc.when+`, text: "yes"}
- text: "no"
`)
			k.turn(tc.result)
			if got := k.turn().Text() == "yes"; got != tc.want {
				t.Errorf("condition %s held: %v, want %v", tc.when, got, tc.want)
			}
		})
	}
}

func TestAttemptCountsRequestsSinceTheLastMessage(t *testing.T) {
	t.Parallel()
	k := open(t, `
responses:
- when: {attempt: 1}
  repeat: forever
  error: {class: overloaded, status: 529, retryAfterMs: 1500, code: busy, requestId: r1}
- text: fine
  repeat: 2
`)
	for range 2 {
		_, err := k.stream()
		want := &llm.Error{Class: llm.ClassOverloaded, Status: 529, Code: "busy", Message: "scripted failure",
			RequestID: "r1", RetryAfter: 1500 * time.Millisecond}
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Fatalf("error (-want +got):\n%s", diff)
		}
		k.turn()
		k.append(llm.UserText("again"))
	}
}

func TestTemplatesSeeTheExchange(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ template, want string }{
		"task":            {"{{ task }}", "look around"},
		"result by id":    {`{{ result "ls.0" }}`, "b.go\na.go\nsub/\nREADME.md\n"},
		"last result":     {`{{ lastResult | lines | len }}`, "4"},
		"offered":         {`{{ offered | join "," }}`, "ls,read"},
		"offers":          {`{{ offers "grep" }}`, "false"},
		"turn, attempt":   {`{{ turn }} {{ attempt }} {{ purpose }}`, "2 1 turn"},
		"system":          {`{{ system }}`, "Be brief.\n\nPaths are relative."},
		"model":           {`{{ model }}/{{ thinking }}`, "actor/off"},
		"calls":           {`{{ range calls "ls" }}{{ .tool }} {{ .arguments.path }} {{ .isError }}{{ end }}`, "ls . false"},
		"sorted, matched": {`{{ lastResult | lines | filter "[.]go$" | sort | join " " }}`, "a.go b.go"},
		"tally":           {`{{ range lastResult | lines | ext | tally }}{{ .key }}={{ .count }};{{ end }}`, ".go=2;=1;.md=1;"},
		"head":            {`{{ lastResult | head 2 }}`, "b.go\na.go"},
		"capture":         {`{{ lastResult | capture "(?m)^(R[A-Z]+)" }}`, "README"},
		"numbers":         {`{{ add 1 2 (mul 2 3) }} {{ percent 1 3 }} {{ "1,234" | int }}`, "9 33.3 % 1234"},
		"json":            {`{{ dict "a" (list 1 "<b>") | json }}`, `{"a":[1,"<b>"]}`},
		"parseJSON":       {`{{ (parseJSON "{\"n\":[1,2.5]}").n | json }}`, `[1,2.5]`},
		"dictionary":      {`{{ $m := dict }}{{ set $m "k" 2 }}{{ get $m "k" 0 }}{{ get $m "x" "-" }}`, "2-"},
		"tool parameter":  {`{{ takes "read" "path" }} {{ takes "ls" "path" }} {{ takes "grep" "path" }}`, "true false false"},
		"valid JSON":      {`{{ validJSON "{}" }} {{ validJSON "{" }}`, "true false"},
		"included text":   {`{{ include "greet" "you" | upper }}`, "HELLO YOU"},
		"sums":            {`{{ sumBy (list "a" "b" "a") (list 1 "2" 3) | json }}`, `{"a":4,"b":2}`},
		"labels":          {`{{ list "x" "y" | relabel (dict "x" "1") "-" | join "," }}`, "1,-"},
		"by number":       {`{{ list "10 a" "9 b" "c" | sortNumeric | join "," }}`, "c,9 b,10 a"},
		"trimmed list":    {`{{ list "a/b" "c" | trimPrefix "a/" | join "," }}`, "b,c"},
		"quoted pattern":  {`{{ match (quoteMeta "a.c") "abc" }}`, "false"},
		"replaced groups": {`{{ replaceAll "(.)-(.)" "$2$1" "a-b x c-d" }}`, "ba x dc"},
		"snippet":         {`{{ template "greet" "you" }}`, "hello you"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := json.Marshal(tc.template)
			if err != nil {
				t.Fatal(err)
			}
			k := open(t, `
snippets: {greet: "hello {{ . }}"}
responses:
- parts: [{call: {name: ls, arguments: {path: .}}}]
- text: `+string(source))
			k.turn("b.go\na.go\nsub/\nREADME.md\n")
			if got := k.turn().Text(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestATemplateThatFailsIsAnErrorOfTheRequest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ template, want string }{
		"no such result":         {`{{ result "9.9" }}`, "no result of a call"},
		"endless loop":           {`{{ range 9000000000 }}{{ end }}`, "steps"},
		"doubling snippets":      {`{{ template "s1" }}`, "steps"},
		"endless inclusion":      {`{{ include "again" }}`, "deep"},
		"growing text":           {`{{ $s := "xxxxxxxx" }}{{ range 60 }}{{ $s = print $s $s }}{{ end }}`, "longer than"},
		"growing output":         {`{{ range 9999 }}{{ repeat 999 "x" }}{{ end }}`, "longer than"},
		"growing replacement":    {`{{ repeat 4000000 "x" | replace "x" "yyyyyyyyyyyy" }}`, "longer than"},
		"growing expansion":      {`{{ repeat 1500000 "x" | replaceAll "x+" "$0$0$0" }}`, "longer than"},
		"growing list":           {`{{ $l := list 1 }}{{ range 60 }}{{ $l = concat $l $l }}{{ end }}`, "longer than"},
		"nested list":            {`{{ $l := list 1 }}{{ range 60 }}{{ $l = list $l $l }}{{ end }}{{ json $l }}`, "longer than"},
		"dictionary in itself":   {`{{ $d := dict }}{{ set $d "d" $d }}{{ json $d }}`, "longer than"},
		"wide format":            {`{{ printf "%1000000d" 1 }}`, "widths"},
		"list printed":           {`{{ list 1 2 }}`, "cannot be printed"},
		"missing key":            {`{{ (dict "a" 1).b }}`, "b"},
		"given up by the author": {`{{ fail "cannot go on" }}`, "cannot go on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := json.Marshal(tc.template)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scripted.Parse([]byte(`
snippets: {again: '{{ include "again" }}', `+doubling(40)+`}
responses: [{name: bad, text: `+string(source)+`}]`), "test.yaml")
			if err != nil {
				t.Fatal(err)
			}
			s.LimitSteps(20_000)
			k := begin(t, s.Provider())
			_, err = k.stream()
			if class(t, err) != llm.ClassInvalidRequest || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "response 0 (bad)") {
				t.Errorf("got %v, want an invalid request that names the response and says %q", err, tc.want)
			}
		})
	}
}

// doubling returns snippets that each include the next one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `s%d: '{{ template "s%d" }}{{ template "s%d" }}', `, i, i+1, i+1)
	}
	fmt.Fprintf(&b, "s%d: end", n)
	return b.String()
}

func TestArgumentsAreFilledInAndStayValidJSON(t *testing.T) {
	t.Parallel()
	k := open(t, `
responses:
- parts: [{call: {name: ls}}]
- parts:
  - call:
      name: write
      arguments: {path: out.txt, content: '{{ lastResult }}', deep: [{n: 1, s: '{{ turn }}'}]}
`)
	k.turn("quote \" and\nline")
	m := k.turn("ok")
	want := `{"path":"out.txt","content":"quote \" and\nline","deep":[{"n":1,"s":"2"}]}`
	if got := string(m.ToolCalls()[0].Arguments); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEachMakesOnePartForEachLine(t *testing.T) {
	t.Parallel()
	k := open(t, `
responses:
- parts: [{call: {name: ls}}]
- parts:
  - each: '{{ lastResult | lines | filter "[.]md$" | join "\n" }}'
    call: {name: read, arguments: {path: '{{ item }}'}}
  - when: {offered: grep}
    call: {name: grep}
`)
	k.turn("a.md\nb.go\nc.md")
	var got []string
	for _, call := range k.turn("", "").ToolCalls() {
		got = append(got, string(call.Arguments))
	}
	if diff := cmp.Diff([]string{`{"path":"a.md"}`, `{"path":"c.md"}`}, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestArgumentTextThatIsNoObjectIsReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, arguments, fault string }{
		"cut":         {`{"path":"a`, "", "not valid JSON at byte 10 of 10"},
		"list":        {`[1]`, "", "not a JSON object"},
		"null":        {`null`, "", "not a JSON object: null"},
		"object":      {` {"a":1}`, ` {"a":1}`, ""},
		"empty":       {``, `{}`, ""},
		"text behind": {`{} x`, "", "not valid JSON at byte 4 of 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := json.Marshal(tc.raw)
			if err != nil {
				t.Fatal(err)
			}
			call := open(t, `responses: [{parts: [{call: {name: read, rawArguments: `+string(raw)+`}}]}]`).turn("x").ToolCalls()[0]
			want := &llm.ToolCall{ID: "read.0", Name: "read", ArgumentsError: tc.fault}
			if tc.fault == "" {
				want.Arguments = json.RawMessage(tc.arguments)
			} else {
				want.RawArguments = tc.raw
			}
			if diff := cmp.Diff(want, call); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFailureKeepsWhatHadArrived(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  string
		class  llm.Class
		text   string
		deltas int
	}{
		"error at once":              {"error: {class: provider}", llm.ClassProvider, "", 0},
		"error in the text":          {"error: {class: malformed, afterDeltas: 2}", llm.ClassMalformed, "abcd", 2},
		"stream ends in the text":    {"cut: {afterDeltas: 1}", llm.ClassTruncated, "ab", 1},
		"stream ends in a call":      {"cut: {afterDeltas: 4}", llm.ClassTruncated, "abcdef", 4},
		"connection is reset":        {"cut: {afterDeltas: 1, by: reset}", llm.ClassConnection, "ab", 1},
		"stream ends after it all":   {"cut: {afterDeltas: 99}", llm.ClassTruncated, "abcdef", 5},
		"quota is not to be retried": {"error: {class: quota, final: true}", llm.ClassQuota, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, `
responses:
- parts: [{text: abcdef}, {call: {name: read}}]
  chunkBytes: 2
  usage: {input: 3}
  `+tc.fault)
			r, err := k.stream()
			if got := class(t, err); got != tc.class {
				t.Errorf("class %q, want %q", got, tc.class)
			}
			if r.Message.Text() != tc.text || len(k.deltas) != tc.deltas || r.Stop != "" || r.Usage.Input != 3 {
				t.Errorf("got text %q, %d deltas, stop %q, usage %+v; want %q, %d, none, input 3",
					r.Message.Text(), len(k.deltas), r.Stop, r.Usage, tc.text, tc.deltas)
			}
		})
	}
}

func TestUsageIsEstimatedReportedOrLeftOut(t *testing.T) {
	t.Parallel()
	var request int
	k := begin(t, recorded(t, `{"responses":[{"text":"12345"},{"text":"x","usage":"none"}]}`, func(body []byte) { request = len(body) }))
	r, err := k.stream()
	want := llm.Usage{Input: llm.EstimateTokens(request), Output: 2}
	if err != nil || r.Usage != want || !r.UsageReported {
		t.Errorf("got %+v (%v), want %+v", r.Usage, err, want)
	}
	if r, err = k.stream(); err != nil || r.UsageReported || r.Usage != (llm.Usage{}) {
		t.Errorf("got %+v (%v), want no usage", r.Usage, err)
	}
}

// recorded makes a provider from an account, as a job does.
func recorded(t *testing.T, script string, onRequest func([]byte)) llm.Provider {
	t.Helper()
	p, err := scripted.Adapter{OnRequest: onRequest}.New(llm.Account{Script: json.RawMessage(script), APIKey: "canary-key"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRequestsGrowByAppendingOnly(t *testing.T) {
	t.Parallel()
	var bodies []string
	k := begin(t, recorded(t, `{"responses":[{"text":"one"},{"text":"two"}]}`, func(body []byte) { bodies = append(bodies, string(body)) }))
	k.turn()
	k.append(llm.UserText("next"))
	k.turn()
	var decoded struct {
		System   string
		Messages []llm.Message
	}
	if err := json.Unmarshal([]byte(bodies[1]), &decoded); err != nil {
		t.Fatalf("the request is no JSON: %v", err)
	}
	if len(decoded.Messages) != 3 || decoded.System != "Be brief.\n\nPaths are relative." {
		t.Errorf("got %d messages and system prompt %q", len(decoded.Messages), decoded.System)
	}
	if first := strings.TrimSuffix(bodies[0], "]}"); !strings.HasPrefix(bodies[1], first) {
		t.Errorf("request 2 does not begin with the messages of request 1:\n%s\n%s", bodies[0], bodies[1])
	}
	if strings.Contains(bodies[0], "canary-key") {
		t.Error("the request holds the key")
	}
}

func TestThePrefixHashDependsOnTheSharedPrefixAlone(t *testing.T) {
	t.Parallel()
	hash := func(system, jobSystem, task string) string {
		c, err := recorded(t, `{"responses":[]}`, nil).Converse(llm.Opening{System: system, JobSystem: jobSystem})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Append(llm.UserText(task)); err != nil {
			t.Fatal(err)
		}
		return c.PrefixHash()
	}
	if hash("a", "b", "c") != hash("a", "x", "y") {
		t.Error("the hash changes with what only this job has")
	}
	if hash("a", "b", "c") == hash("x", "b", "c") {
		t.Error("the hash does not change with the system prompt")
	}
}

func TestDelaysPassOnTheClockOfTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := open(t, "responses: [{text: abc, chunkBytes: 1, delayMs: 1000, paceMs: 50}]")
		begun := time.Now()
		k.turn()
		if got := time.Since(begun); got != 1100*time.Millisecond {
			t.Errorf("the response took %v, want 1.1s", got)
		}
	})
}

func TestAStallLastsUntilTheRequestIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"stall": "responses: [{text: abc, chunkBytes: 1, stall: {afterDeltas: 2}}]",
		"delay": "responses: [{text: abc, chunkBytes: 1, paceMs: 3600000}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := open(t, script)
				cause := errors.New("no progress")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
				defer cancel()
				r, err := k.Stream(ctx, llm.Call{}, k.sink)
				if !errors.Is(err, cause) || !strings.HasPrefix("ab", r.Message.Text()) || r.Message.Text() == "" {
					t.Errorf("got %q, %v; want what had arrived and the cause", r.Message.Text(), err)
				}
			})
		})
	}
}

func TestASinkThatRefusesEndsTheStream(t *testing.T) {
	t.Parallel()
	k := open(t, "responses: [{text: abc, chunkBytes: 1}]")
	refusal := errors.New("too much text")
	calls := 0
	_, err := k.Stream(t.Context(), llm.Call{}, func(llm.Delta) error {
		calls++
		return refusal
	})
	if !errors.Is(err, refusal) || calls != 1 {
		t.Errorf("got %v after %d deltas, want the refusal after one", err, calls)
	}
}

func TestMessagesOutOfOrderAreRefused(t *testing.T) {
	t.Parallel()
	result := func(id string) llm.Message {
		return llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: id}}}}
	}
	calls := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "1.0", Name: "ls"}}}}
	for name, tc := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"call without result":   {[]llm.Message{calls, llm.UserText("go on")}, `tool call "1.0" has no result`},
		"result without call":   {[]llm.Message{result("1.0")}, "1 tool results for 0 tool calls"},
		"result of other call":  {[]llm.Message{calls, result("2.0")}, `answers call "2.0", not "1.0"`},
		"no message of anybody": {[]llm.Message{{Role: "system"}}, `unknown role "system"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t, "responses: []")
			var err error
			for _, m := range tc.messages {
				if err = k.Append(m); err != nil {
					break
				}
			}
			if err == nil || class(t, err) != llm.ClassInvalidRequest || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an invalid request that says %q", err, tc.want)
			}
		})
	}
	k := open(t, "responses: [{text: a, repeat: forever}]")
	k.turn()
	if _, err := k.stream(); class(t, err) != llm.ClassInvalidRequest {
		t.Errorf("a request that ends with an assistant message: got %v", err)
	}
}

func TestEveryProblemOfAScriptIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	script := `
name: 7
colour: red
responses:
- txt: hello
- text: "{{ nothing }}"
  parts: []
- stop: maybe
  usage: {input: -1}
- error: {status: 99}
  cut: {}
  stop: end
- parts: [{}, {call: {arguments: [1]}}, {text: a, signature: s}]
- when: {lastResult: {matches: "("}, attempt: 0}
  repeat: never
- text: '{{ template "gone" }}'
- text: a
  text: b
snippets: {x: '{{ template "y" }}', y: '{{ if true }}{{ template "x" }}{{ end }}'}
`
	_, err := scripted.Parse([]byte(script), "bad.yaml")
	type finding struct {
		Code, Pointer string
		Line          int
	}
	var got []finding
	for _, p := range problem.Of(err) {
		got = append(got, finding{p.Code, p.Pointer, p.Line})
		if p.Path != "bad.yaml" {
			t.Errorf("%s names file %q", p.Pointer, p.Path)
		}
	}
	want := []finding{
		{"duplicate-key", "/responses/7/text", 18},
		{"wrong-type", "/name", 2},
		{"unknown-field", "/colour", 3},
		{"unknown-field", "/responses/0/txt", 5},
		{"template", "/responses/1/text", 6},
		{"conflict", "/responses/1/parts", 7},
		{"unknown-value", "/responses/2/stop", 8},
		{"out-of-range", "/responses/2/usage/input", 9},
		{"out-of-range", "/responses/3/error/status", 10},
		{"missing-field", "/responses/3/error/class", 10},
		{"conflict", "/responses/3/cut", 11},
		{"conflict", "/responses/3/stop", 12},
		{"missing-field", "/responses/4/parts/0", 13},
		{"wrong-type", "/responses/4/parts/1/call/arguments", 13},
		{"missing-field", "/responses/4/parts/1/call/name", 13},
		{"conflict", "/responses/4/parts/2/signature", 13},
		{"pattern", "/responses/5/when/lastResult/matches", 14},
		{"out-of-range", "/responses/5/when/attempt", 14},
		{"wrong-type", "/responses/5/repeat", 15},
		{"template", "", 2},
		{"template", "", 2},
		{"template", "", 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s\n%v", diff, err)
	}
}

func TestAnAccountsScriptIsCheckedUnderItsField(t *testing.T) {
	t.Parallel()
	_, err := scripted.New(llm.Account{Script: json.RawMessage(`{"responses":[{"txt":1}]}`)})
	if list := problem.Of(err); len(list) != 1 || !list.Has("unknown-field", "/script/responses/0/txt") || list[0].Line != 0 {
		t.Errorf("got %v, want one unknown field with its pointer", err)
	}
	if _, err := scripted.New(llm.Account{}); err == nil || !strings.Contains(err.Error(), "script") {
		t.Errorf("got %v for an account without script", err)
	}
}

func TestTheModelOfAScriptIsMarkedAsSimulated(t *testing.T) {
	t.Parallel()
	s, err := scripted.Parse([]byte(`{"model":{"contextWindow":1000,"price":{"inputPerMTok":"1.5","outputPerMTok":2},"thinkingLevels":["off","low"]},"responses":[]}`), "m.json")
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Model{ID: "actor", Name: "scripted model", ContextWindow: 1000, Simulated: true,
		Price: &llm.Price{Input: 1_500_000, Output: 2_000_000}, ThinkingLevels: []llm.Level{llm.LevelOff, llm.LevelLow}}
	if diff := cmp.Diff(want, s.Model("actor")); diff != "" {
		t.Errorf("model (-want +got):\n%s", diff)
	}
}

func TestOnlyAScriptThatDescribesItsModelGoesBeforeTheModelTable(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]bool{`{"responses":[]}`: false, `{"model":{"images":true},"responses":[]}`: true} {
		source, ok := recorded(t, script, nil).(llm.ModelSource)
		if !ok {
			t.Fatal("the provider is no llm.ModelSource")
		}
		if m, known := source.Model("actor"); known != want || m.Images != want || m.ID != "actor" || !m.Simulated {
			t.Errorf("%s: got %+v, %v", script, m, known)
		}
	}
}
