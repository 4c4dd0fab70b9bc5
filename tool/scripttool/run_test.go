package scripttool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool"
)

func TestResults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ code, want string }{
		"text as it is":         {`return "a\n<b>"`, "a\n<b>"},
		"data indented":         {`return {a: [1, null], b: "<&>"}`, "{\n  \"a\": [\n    1,\n    null\n  ],\n  \"b\": \"<&>\"\n}"},
		"number":                {`return 1.5`, "1.5"},
		"not a number":          {`return NaN`, "NaN"},
		"truth":                 {`return false`, "false"},
		"null":                  {`return null`, "null"},
		"big integer":           {`return 2n**64n`, "18446744073709551616"},
		"big integer in data":   {`return [1n]`, "[\n  \"1\"\n]"},
		"map and set":           {`return [new Map([[1, 2]]), new Set([3])].flat().map(v => [...v]).flat(2).join()`, "1,2,3"},
		"map in data":           {`return JSON.parse(JSON.stringify(1)) && {m: new Map([["k", 1]])}.m instanceof Map ? {m: new Map([["k", 1]])} : 0`, "{\n  \"m\": [\n    [\n      \"k\",\n      1\n    ]\n  ]\n}"},
		"nothing":               {`let x = 1`, "(the script returned nothing and printed nothing)"},
		"empty text":            {`return ""`, ""},
		"console only":          {`console.log("a", {b: 1}, [undefined, 2n], null, undefined)`, "Console:\na {\"b\":1} [null,\"2\"] null undefined"},
		"console and value":     {`console.info("i"); console.warn("w"); console.error(new TypeError("e")); return 1`, "1\n\nConsole:\ni\nwarning: w\nerror: TypeError: e (line 1)"},
		"console of odd values": {`const a = {}; a.a = a; console.log(a, () => 1, Symbol("s")); return "x"`, "x\n\nConsole:\n[object that is no JSON] [function] Symbol(s)"},
		"promise":               {`return Promise.resolve(5)`, "5"},
		"value of a tool":       {`return (await tools.echo({x: 1})).x`, "1"},
		"text of a tool":        {`return await tools.read({path: "p"})`, "text of p"},
		"caught failure":        {`try { await tools.read({}) } catch (e) { return e.name + "|" + e.message + "|" + (e instanceof Error) }`, "ToolError|the arguments do not fit the tool read:\npath is missing|true"},
		"names of tools":        {`return Object.keys(tools).join() + ("read" in tools) + tools.then + typeof tools.read`, "echo,readtrueundefinedfunction"},
		"comment at the end":    {"return 1 // one", "1"},
		"universal time":        {`return new Date(0).getTimezoneOffset()`, "0"},
		"characters":            {`return "é😀" + await tools.read({path: "ü"})`, "é😀text of ü"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(t, newLender(), Limits{}, tc.code)
			if diff := cmp.Diff(tc.want, r.Text); r.IsError || diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ code, want string }{
		"line of an error":       {"let x = 1;\n\nx.foo.bar;", "The script failed (script): TypeError: cannot read property 'bar' of undefined\nAt line 3: x.foo.bar;\nIt had made no calls."},
		"line below an await":    {"await tools.echo({});\nconst f = () => {\n  throw new RangeError('no')\n};\nf()", "The script failed (script): RangeError: no\nAt line 3: throw new RangeError('no')\nIt had made 1 call: echo 1.\n1. echo {}: done"},
		"line of a failed call":  {"await tools.echo({a: 1});\nawait tools.read({});", "The script failed (script): ToolError: the arguments do not fit the tool read:\npath is missing\nAt line 2: await tools.read({});\nIt had made 2 calls: echo 1, read 1; 1 failed.\n1. echo {\"a\":1}: done\n2. read {}: failed: the arguments do not fit the tool read:"},
		"line of a syntax error": {"let x = 1;\nlet = = 2", "The script failed (syntax): SyntaxError: "},
		"open bracket":           {"if (1) {", "The script failed (syntax): SyntaxError: "},
		"text thrown":            {`throw "why"`, "The script failed (script): it threw why\nIt had made no calls."},
		"nothing thrown":         {`throw undefined`, "The script failed (script): it threw undefined"},
		"data thrown":            {`throw {code: 5}`, `The script failed (script): it threw {"code":5}`},
		"trap thrown":            {`throw new Proxy({}, {get() { throw 1 }, getPrototypeOf() { throw 1 }})`, "The script failed (script): it threw what was thrown cannot be read"},
		"error without a text":   {`throw new TypeError()`, "The script failed (script): TypeError\nAt line 1"},
		"circle returned":        {`const a = {}; a.a = a; return a`, "The script failed (result): what it returned is no JSON: circular reference"},
		"function returned":      {`return () => 1`, "The script failed (result): what it returned is no JSON: a function is no data"},
		"console of a failure":   {`console.log("before"); throw new Error("x")`, "The script failed (script): Error: x\nAt line 1: console.log(\"before\"); throw new Error(\"x\")\nIt had made no calls.\n\nConsole:\nbefore"},
		"endless loop":           {"while (true) {}", "The script failed (timeout): it took longer than 1s, its calls included: do less in one script, or make independent calls with Promise.all\nIt was at or below line 1: while (true) {}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := Limits{}
			if strings.Contains(tc.want, "timeout") {
				limits.Time = time.Second
			}
			r := play(t, newLender(), limits, tc.code)
			if !r.IsError || !strings.HasPrefix(r.Text, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", r.Text, tc.want)
			}
		})
	}
}

func TestSourcesThatAreNotRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ code, want string }{
		"empty":    {" \n\t", "the script is empty: code holds the body of an async function"},
		"too long": {strings.Repeat("x", 64<<10+1), "the script has 65537 bytes, at most 65536 are allowed: do less in one script, and do not put data into it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A program that is not there shows that none was started.
			r := playWith(t, newLender(), Options{Program: "/none"}, tc.code)
			if !r.IsError || r.Text != tc.want {
				t.Errorf("got %s", r.Text)
			}
		})
	}
	if r := playWith(t, newLender(), Options{Program: "/none"}, "return 1"); !r.IsError || !strings.Contains(r.Text, "could not be started") {
		t.Errorf("without a program: %s", r.Text)
	}
	if r := play(t, newLender(), Limits{}, "return 1\n"+strings.Repeat("//\n", 64<<10/3-3)); r.Text != "1" {
		t.Errorf("a script of the full length: %s", r.Text)
	}
}

// TestOutputIsBounded returns and prints more than the model may get.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code  string
		holds []string
	}{
		"value":              {`return Array.from({length: 10000}, (_, i) => "line " + i).join("\n")`, []string{"line 0\n", "\n\n[Cut: this is the beginning of 24723 tokens; return less"}},
		"one line":           {`return "ä".repeat(200000)`, []string{"ä\n\n[Cut: this is the beginning of 100000 tokens"}},
		"console":            {`for (let i = 0; i < 1e4; i++) console.log("line " + i); return 1`, []string{"1\n\nConsole:\nline 0\n", "; print less.]\n\n[The console was cut at 65536 bytes.]"}},
		"one line of it":     {`console.log("x".repeat(1e6)); console.log("y")`, []string{"Console:\nxxx", "[The console was cut at 65536 bytes.]"}},
		"both":               {`for (let i = 0; i < 3000; i++) console.log("printed " + i); return "x\n".repeat(1e5)`, []string{"x\n\n[Cut: ", "Console:\nprinted 0\n"}},
		"message of failure": {`throw new Error("m".repeat(1e6))`, []string{"The script failed (script): Error: mmm", "\nAt line 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(t, newLender(), Limits{}, tc.code) // checks the bound itself
			for _, part := range tc.holds {
				if !strings.Contains(r.Text, part) {
					t.Errorf("%q is missing at the end of: %s", part, r.Text[max(0, len(r.Text)-300):])
				}
			}
		})
	}
}

func TestResultsOfCallsAreBounded(t *testing.T) {
	t.Parallel()
	l := newLender()
	l.add("large", func(context.Context, json.RawMessage) tool.Result {
		return tool.Result{Text: strings.Repeat("x", 1<<20-2)}
	})
	l.add("larger", func(context.Context, json.RawMessage) tool.Result {
		return tool.Result{Text: strings.Repeat("x", 1<<20-1)}
	})
	r := play(t, l, Limits{}, `return (await tools.large({})).length + " " + await tools.larger({}).catch(e => e.message)`)
	if want := "1048574 the result of larger has 1048577 bytes, at most 1048576 reach a script: ask for less"; r.Text != want {
		t.Errorf("got %s", r.Text)
	}
}

// TestNamesThatAreNoIdentifiers calls a tool by its name and by the identifier that stands for it.
func TestNamesThatAreNoIdentifiers(t *testing.T) {
	t.Parallel()
	l := newLender()
	for _, name := range []string{"mcp__a__do-it", "mcp__a__do_it", "mcp__b__x-y"} {
		l.add(name, func(context.Context, json.RawMessage) tool.Result { return tool.Result{Text: name} })
	}
	r := play(t, l, Limits{}, `return [await tools["mcp__a__do-it"]({}), await tools.mcp__a__do_it({}), await tools.mcp__b__x_y({})].join(" ")`)
	if r.Text != "mcp__a__do-it mcp__a__do_it mcp__b__x-y" {
		t.Errorf("got %s", r.Text)
	}
	r = play(t, l, Limits{}, `await tools.do_it({})`)
	if !strings.Contains(r.Text, "did you mean mcp__a__do-it?") {
		t.Errorf("got %s", r.Text)
	}
}

// program writes a shell script that stands in for a child, as whatever an engine in foreign hands could become.
func program(t *testing.T, script string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "child")
	// A process that another test starts meanwhile would hold the file open for writing until it executes its own program,
	// and the system runs no file that is written to.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestChildrenThatMisbehave starts children that break the protocol. The parent must end them and say so.
func TestChildrenThatMisbehave(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ script, want string }{
		"dies":             {`exit 3`, "ended by itself: exit status 3"},
		"dies with words":  {`echo 'a word' >&2; exit 3`, `ended by itself: exit status 3, "a word"`},
		"is killed":        {`kill -9 $$`, "ended by itself: "},
		"has no memory":    {`echo 'fatal error: runtime: out of memory' >&2; exit 2`, "(memory): it used more than 64 MB"},
		"says garbage":     {`echo garbage; exec sleep 60`, "broke the protocol: a line is no message"},
		"says null":        {`echo null; exec sleep 60`, "broke the protocol: a message has 0 meanings"},
		"says two things":  {`echo '{"end":{},"console":{"text":"x"}}'; exec sleep 60`, "broke the protocol: a message has 2 meanings"},
		"says a long line": {`yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | tr -d '\n'`, "broke the protocol: a line is longer"},
		"says half a line": {`printf '{"end":{"text":"x"}}'`, "ended by itself: exit status 0"},
		"counts wrong":     {`echo '{"call":{"id":2,"tool":"echo","arguments":{}}}'; exec sleep 60`, "broke the protocol: call 2 comes after 0"},
		"calls with text":  {`echo '{"call":{"id":1,"tool":"echo","arguments":"x"}}'; exec sleep 60`, "broke the protocol: the arguments of a call are no object"},
		"makes up a kind":  {`echo '{"end":{"failure":{"kind":"made-up","message":"m"}}}'; exec sleep 60`, "(script): m"},
		"goes silent":      {`exec >&-; exec sleep 60`, "ended by itself: "},
		"never speaks":     {`exec sleep 60`, "(timeout): it took longer than 2s"},
		"never listens":    {`while :; do echo '{"console":{"text":"x"}}'; done`, "(timeout): it took longer than 2s"},
		"ends and goes on": {`echo '{"end":{"text":"fine"}}'; echo garbage; exec sleep 60`, "fine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Program: program(t, tc.script), Limits: Limits{Time: 2 * time.Second}}
			if r := playWith(t, newLender(), o, "return 1"); !strings.Contains(r.Text, tc.want) {
				t.Errorf("got %s, want %s", r.Text, tc.want)
			}
		})
	}
}

// TestToolsThatWereNotLent lets a child ask for what its script was not told of.
func TestToolsThatWereNotLent(t *testing.T) {
	t.Parallel()
	l := newLender()
	o := Options{Program: program(t, `read order
echo '{"call":{"id":1,"tool":"write","arguments":{}}}'
read answer
case $answer in *"write cannot be called from a script"*) echo '{"end":{"text":"refused"}}';; *) echo '{"end":{"text":"answered"}}';; esac`)}
	if r := playWith(t, l, o, "return 1"); r.Text != "refused" {
		t.Errorf("got %s", r.Text)
	}
	if calls := l.made(); len(calls) > 0 {
		t.Errorf("it reached %v", calls)
	}
}

// TestTheChildIsConfined looks at what a child gets, with the sandbox around it and nothing else.
func TestTheChildIsConfined(t *testing.T) {
	t.Setenv("SECRET_CANARY", "canary-in-the-environment")
	for name, tc := range map[string]struct{ script, want string }{
		"environment": {`case $(export -p) in *anary*) echo '{"end":{"text":"found"}}';; *) echo '{"end":{"text":"clean"}}';; esac`, "clean"},
		"descriptors": {`n=0; for fd in 3 4 5 6 7 8 9; do (true <&$fd) 2>/dev/null && n=$((n+1)); done; echo '{"end":{"text":"'$n' open"}}'`, "0 open"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := playWith(t, newLender(), Options{Program: program(t, tc.script)}, "return 1"); r.Text != tc.want {
				t.Errorf("got %s", r.Text)
			}
		})
	}
	if runtime.GOOS != "linux" {
		return // the report of the sandbox says what is missing
	}
	for _, path := range []string{"/etc/passwd", "/proc/self/environ", "/proc/1/environ", "/etc/hostname"} {
		if _, err := os.ReadFile(path); err != nil {
			continue // not to be read by anybody here
		}
		script := `if read line < ` + path + `; then echo '{"end":{"text":"read"}}'; else echo '{"end":{"text":"refused"}}'; fi`
		t.Run(path, func(t *testing.T) {
			if r := playWith(t, newLender(), Options{Program: program(t, script)}, "return 1"); r.Text != "refused" {
				t.Errorf("got %s", r.Text)
			}
		})
	}
}
