package scripttool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/tool"
)

// failedAs reports whether a script failed for this reason.
func failedAs(r tool.Result, k kind) bool {
	return r.IsError && strings.HasPrefix(r.Text, "The script failed ("+string(k)+"): ")
}

// TestHostileScripts runs what never ends or takes too much. Each must end for its reason, and the next script must run.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	soon := Limits{Time: time.Second}
	small := Limits{Time: time.Minute, HeapBytes: 4 << 20}
	for name, tc := range map[string]struct {
		limits Limits
		code   string
		kinds  []kind
	}{
		"endless loop":                   {soon, "while(true){}", []kind{kindTimeout}},
		"endless loop after a call":      {soon, "await tools.echo({}); for(;;){}", []kind{kindTimeout}},
		"endless loop in finally":        {soon, "try { while(1); } finally { while(1); }", []kind{kindTimeout}},
		"endless loop in a handler":      {soon, "for(;;) { try { while(1); } catch {} }", []kind{kindTimeout}},
		"endless awaiting":               {soon, "for(;;) await 0", []kind{kindTimeout}},
		"endless awaiting in parallel":   {soon, "const f = async () => { for(;;) await null }; await Promise.race([f(), f()])", []kind{kindTimeout}},
		"thenable without end":           {soon, "const t = {then(r) { r(t) }}; await t", []kind{kindTimeout}},
		"thenable as the result":         {soon, "const t = {then(r) { r(t) }}; return t", []kind{kindTimeout}},
		"backtracking":                   {soon, "return /^(a+)+$/.test('a'.repeat(40)+'!')", []kind{kindTimeout}},
		"backtracking with a reference":  {soon, `return /^(a|a?)+\1$/.test('a'.repeat(40)+'!')`, []kind{kindTimeout}},
		"native search":                  {soon, "Array.prototype.indexOf.call({length: 2**53-1}, 1)", []kind{kindTimeout}},
		"native join":                    {soon, "new Array(1e9)+''", []kind{kindTimeout, kindMemory, kindScript}},
		"native power":                   {soon, "let x = 3n; for(;;) x = x * x", []kind{kindTimeout, kindMemory, kindScript}},
		"getter on a result":             {soon, "return {get a() { for(;;); }}", []kind{kindTimeout}},
		"getter on an error":             {soon, "throw Object.defineProperty(new Error('x'), 'message', {get() { for(;;); }})", []kind{kindTimeout}},
		"array without end":              {small, "let a=[]; for(;;) a.push(new Array(1000).fill(1))", []kind{kindMemory}},
		"closures without end":           {small, "const a=[]; for(;;) a.push(() => a)", []kind{kindMemory}},
		"strings without end":            {small, "let s='xxxxx', a=[]; for(;;) { s=s+s.slice(1); a.push(s) }", []kind{kindMemory}},
		"one string twice as long":       {small, "let s='x'; for(;;) s+=s", []kind{kindMemory, kindScript}},
		"one giant string":               {small, "return 'x'.repeat(2**30-1)", []kind{kindMemory, kindScript}},
		"one giant array":                {small, "return new Array(1e9).fill(0)", []kind{kindMemory}},
		"buffer of four gigabytes":       {small, "return new Uint8Array(4*1024*1024*1024).length", []kind{kindMemory, kindScript}},
		"spread without end":             {small, "return [...{*[Symbol.iterator]() { for(;;) yield 1 }}]", []kind{kindMemory}},
		"memory caught and taken again":  {Limits{Time: 2 * time.Second, HeapBytes: 8 << 20}, "let a=[]; for(;;) { try { for(;;) a.push(new Array(1000).fill(1)) } catch { a=[] } }", []kind{kindTimeout, kindMemory}},
		"deep recursion":                 {small, "function f() { f() }\nf()", []kind{kindStack, kindMemory}},
		"deep JSON":                      {small, "return JSON.parse('['.repeat(1e6))", []kind{kindStack, kindMemory}},
		"deep result":                    {small, "let a=[]; for (let i=0; i<5e4; i++) a=[a]; return a", []kind{kindStack, kindMemory, kindResult}},
		"many calls":                     {Limits{Calls: 20}, "for (let i=0; i<1e5; i++) await tools.echo({i})", []kind{kindCalls}},
		"many calls that are caught":     {Limits{Calls: 20}, "for (let i=0; i<1e5; i++) try { await tools.read({}) } catch {}", []kind{kindCalls}},
		"many calls at once":             {Limits{Calls: 20}, "await Promise.all(Array.from({length: 1e4}, (_, i) => tools.echo({i})))", []kind{kindCalls}},
		"waiting for nothing":            {Limits{}, "await new Promise(() => {})", []kind{kindDeadlock}},
		"waiting for nothing after more": {Limits{}, "await tools.echo({}); await new Promise(() => {})", []kind{kindDeadlock}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(t, newLender(), tc.limits, tc.code)
			for _, k := range tc.kinds {
				if failedAs(r, k) {
					healthy(t)
					return
				}
			}
			t.Errorf("it did not fail as %v: %s", tc.kinds, r.Text)
		})
	}
}

// TestNothingOfTheHost looks for what is not of the language.
func TestNothingOfTheHost(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"constructor of a constructor": `return ({}).constructor.constructor("return typeof process + typeof require")()`,
		"function":                     `return Function("return typeof this.process + typeof this.require")()`,
		"async function":               `return await (async () => {}).constructor("return typeof process + typeof require")()`,
		"global object":                `return typeof globalThis.process + typeof globalThis.require`,
		"eval":                         `return eval("typeof process + typeof require")`,
		"indirect eval":                `return (0, eval)("typeof process + typeof require")`,
		"out of the function":          `return "undefinedundefined" }); (async function() { return typeof process + typeof require`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := play(t, newLender(), Limits{}, code); r.Text != "undefinedundefined" {
				t.Errorf("got %s", r.Text)
			}
		})
	}
	t.Run("names", func(t *testing.T) {
		t.Parallel()
		r := play(t, newLender(), Limits{}, `return ["fetch","XMLHttpRequest","setTimeout","setInterval","queueMicrotask","process","require","module",
			"WebAssembly","Worker","SharedArrayBuffer","Atomics","std","os","print","load","scriptArgs","gc","performance","navigator","Deno","Bun","Buffer",
			"hostCall","hostPrint","hostSuggest","hostReturned","hostFailed","hostNames"].filter(n => n in globalThis).join()`)
		if r.Text != "" && !strings.HasPrefix(r.Text, "(the script returned") {
			t.Errorf("the global object has %s", r.Text)
		}
	})
	t.Run("import", func(t *testing.T) {
		t.Parallel()
		if r := play(t, newLender(), Limits{}, `await import("std")`); !failedAs(r, kindScript) {
			t.Errorf("a module could be imported: %s", r.Text)
		}
	})
}

// TestOnlyTextCrosses hands values with traps to the bridge. What arrives is JSON or nothing, and the script's changes to
// the language do not change the bridge.
func TestOnlyTextCrosses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ code, call, text string }{
		"getter":             {`return await tools.echo({get a() { return 1 }})`, `echo {"a":1}`, "{\n  \"a\": 1\n}"},
		"getter that throws": {`try { await tools.echo({get a() { throw "x" }}) } catch (e) { return "caught " + e }`, "", "caught x"},
		"proxy":              {`return (await tools.echo(new Proxy({}, {ownKeys() { return ["b"] }, get() { return 2 }, getOwnPropertyDescriptor() { return {enumerable: true, configurable: true} }}))).b`, `echo {"b":2}`, "2"},
		"toJSON":             {`return await tools.echo({toJSON() { return {c: 3} }}).then(v => v.c)`, `echo {"c":3}`, "3"},
		"toJSON to nothing":  {`try { await tools.echo({toJSON() {}}) } catch (e) { return e.message }`, "", "the arguments of tools.echo are no object"},
		"toJSON to text":     {`try { await tools.echo({toJSON() { return "x" }}) } catch (e) { return e.message }`, "", "the arguments of tools.echo are no object"},
		"primitive":          {`return await tools.echo({a: {[Symbol.toPrimitive]() { throw 1 }, d: 4}}).then(v => v.a.d)`, `echo {"a":{"d":4}}`, "4"},
		"thenable argument":  {`return await tools.echo({then: 5}).then(v => "called with " + JSON.stringify(v), e => "?")`, `echo {"then":5}`, `called with {"then":5}`},
		"prototype in data":  {`return await tools.echo(JSON.parse('{"__proto__": {"evil": 1}}')).then(v => String({}.evil))`, `echo {"__proto__":{"evil":1}}`, "undefined"},
		"polluted prototype": {`Object.prototype.resolve = () => {}; Object.prototype.ok = 1; Array.prototype.push = () => {}; Object.defineProperty(Object.prototype, "id", {set() { throw 1 }, get() { return 9 }}); return (await tools.echo({a: 6})).a`, `echo {"a":6}`, "6"},
		"replaced language":  {`JSON.stringify = () => '{"evil":1}'; JSON.parse = () => "evil"; globalThis.String = null; globalThis.Promise = null; return (await tools.echo({a: 7})).a`, `echo {"a":7}`, "7"},
		"replaced then":      {`Promise.prototype.then = function () { return 1 }; return 8`, "", "8"},
		"stack traces":       {`Error.prepareStackTrace = (e, s) => s; try { null.x } catch (e) { return typeof e.stack }`, "", "string"},
		"async generator":    {`const g = (async function* () { try { yield 1 } finally { return 2 } })(); await g.next(); return (await g.return(3)).value`, "", "2"},
		"big integers":       {`return await tools.echo({a: 2n ** 70n}).then(v => v.a)`, `echo {"a":"1180591620717411303424"}`, "1180591620717411303424"},
		"half a character":   {`return await tools.echo({a: "\ud800"}).then(v => v.a.length)`, `echo {"a":"\ud800"}`, ""},
		"tools are fixed":    {`tools.echo = () => "mine"; delete tools.read; return (await tools.echo({a: 9})).a + typeof tools.read`, `echo {"a":9}`, "9function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLender()
			r := play(t, l, Limits{}, tc.code)
			if calls := strings.Join(l.made(), "\n"); calls != tc.call {
				t.Errorf("it called %s, want %s", calls, tc.call)
			}
			if tc.text != "" && (r.IsError || r.Text != tc.text) {
				t.Errorf("it returned %s, want %s", r.Text, tc.text)
			}
		})
	}
}

// TestWrongCalls calls tools in the ways in which models do it wrong. Each is an error of the script.
func TestWrongCalls(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		`await tools.read()`:                          "ToolError: the arguments do not fit the tool read:\npath is missing\nAt line 1: await tools.read()",
		`await tools.read(null)`:                      "TypeError: tools.read takes one object with its arguments",
		`await tools.read(1, 2, 3)`:                   "TypeError: tools.read takes one object with its arguments",
		`await tools.read(["a"])`:                     "TypeError: tools.read takes one object with its arguments",
		`await tools.read("a")`:                       "TypeError: tools.read takes one object with its arguments",
		`await tools.red({path: "a"})`:                `TypeError: there is no tool "red"; did you mean read?; the tools are: echo, read`,
		`await tools.write({path: "a"})`:              `TypeError: there is no tool "write"`,
		`await tools["mcp__s__drop"]({})`:             `TypeError: there is no tool "mcp__s__drop"`,
		`await tools.read({path: "x".repeat(2**21)})`: "TypeError: the arguments of tools.read are longer than 1 MB",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			l := newLender()
			r := play(t, l, Limits{}, code)
			if !failedAs(r, kindScript) || !strings.Contains(r.Text, want) {
				t.Errorf("got %s, want %s", r.Text, want)
			}
			if n := len(l.made()); n > 0 && !strings.Contains(code, "read()") {
				t.Errorf("it made %d calls", n)
			}
		})
	}
}

// TestCallsEndWithTheScript leaves calls behind in every way. None of them may run on.
func TestCallsEndWithTheScript(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits Limits
		code   string
		want   string
	}{
		"not awaited":      {Limits{}, `tools.hang({}); await tools.echo({}); return 1`, "1\n\n[Cancelled with the end of the script: 1 unfinished call.]"},
		"after a throw":    {Limits{}, `tools.hang({}); await tools.echo({}); throw new Error("x")`, "1 not finished"},
		"at the time":      {Limits{Time: time.Second}, `await tools.hang({})`, "The script failed (timeout): it took longer than 1s, its calls included"},
		"over the budget":  {Limits{Calls: 3}, `await Promise.all([1, 2, 3, 4].map(() => tools.hang({})))`, "more than 3 calls"},
		"unhandled":        {Limits{}, `tools.read({}); tools.hang({}); await tools.echo({}); return "ok"`, "ok\n\n[Cancelled"},
		"racing":           {Limits{}, `return await Promise.race([tools.hang({}), tools.echo({a: 1})]).then(v => v.a)`, "1\n\n[Cancelled"},
		"out of the slots": {Limits{Parallel: 1}, `for (let i = 0; i < 5; i++) tools.hang({}); return "done"`, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLender()
			l.add("hang", func(ctx context.Context, _ json.RawMessage) tool.Result {
				<-ctx.Done()
				return tool.Errorf("interrupted")
			})
			if r := play(t, l, tc.limits, tc.code); !strings.Contains(r.Text, tc.want) {
				t.Errorf("got %s, want %s", r.Text, tc.want)
			}
		})
	}
}

func TestAnAbortEndsTheScript(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	l := newLender()
	l.add("abort", func(ctx context.Context, _ json.RawMessage) tool.Result {
		cancel()
		<-ctx.Done()
		return tool.Errorf("interrupted")
	})
	r := New(Options{}).Run(ctx, l.env(), json.RawMessage(`{"code": "await tools.abort({}); for(;;);"}`))
	if !failedAs(r, kindAborted) || !strings.Contains(r.Text, "1. abort {}: not finished") {
		t.Errorf("got %s", r.Text)
	}
}

// TestCallsRunTogether needs as many calls at once as are allowed: each waits for the others.
func TestCallsRunTogether(t *testing.T) {
	t.Parallel()
	const parallel = 4
	arrived, release := make(chan bool, 10), make(chan bool)
	l := newLender()
	l.add("meet", func(ctx context.Context, _ json.RawMessage) tool.Result {
		arrived <- true
		select {
		case <-release:
		case <-ctx.Done():
		}
		return tool.Result{Text: "met"}
	})
	go func() {
		for range parallel {
			<-arrived
		}
		select {
		case <-arrived:
			t.Error("one call more than allowed runs at the same time")
		default:
		}
		close(release)
	}()
	r := play(t, l, Limits{Parallel: parallel}, `return (await Promise.all(Array.from({length: 10}, () => tools.meet({})))).length`)
	if r.Text != "10" {
		t.Errorf("got %s", r.Text)
	}
}
