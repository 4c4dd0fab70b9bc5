package scripttool

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// bench lends a script its tools and remembers what it called.
type lender struct {
	mu    sync.Mutex
	calls []string
	tools map[string]func(ctx context.Context, arguments json.RawMessage) tool.Result
	order []string
}

// newLender lends echo, which returns its arguments as a value, and read, which returns a text and fails without a path.
func newLender() *lender {
	l := &lender{tools: map[string]func(context.Context, json.RawMessage) tool.Result{}}
	l.add("echo", func(_ context.Context, arguments json.RawMessage) tool.Result {
		return tool.Result{Text: "shown", Structured: arguments}
	})
	l.add("read", func(_ context.Context, arguments json.RawMessage) tool.Result {
		var a struct{ Path string }
		if json.Unmarshal(arguments, &a) != nil || a.Path == "" {
			return tool.Errorf("the arguments do not fit the tool read:\npath is missing")
		}
		return tool.Result{Text: "text of " + a.Path}
	})
	return l
}

func (l *lender) add(name string, f func(context.Context, json.RawMessage) tool.Result) {
	l.tools[name] = f
	l.order = append(l.order, name)
}

func (l *lender) env() *tool.Env {
	env := &tool.Env{CallID: "c1", Nested: l.nested}
	for _, name := range l.order {
		env.Callees = append(env.Callees, llm.ToolSpec{Name: name, Description: "Is lent.", InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return env
}

func (l *lender) nested(ctx context.Context, name string, arguments json.RawMessage) tool.Result {
	l.mu.Lock()
	l.calls = append(l.calls, name+" "+string(arguments))
	l.mu.Unlock()
	f, ok := l.tools[name]
	if !ok {
		return tool.Errorf("there is no tool %q", name)
	}
	return f(ctx, arguments)
}

func (l *lender) made() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.calls...)
}

// play runs a script of a model.
func play(t testing.TB, l *lender, limits Limits, code string) tool.Result {
	t.Helper()
	return playWith(t, l, Options{Limits: limits}, code)
}

func playWith(t testing.TB, l *lender, o Options, code string) tool.Result {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		t.Fatal(err)
	}
	codemode := New(o)
	began := time.Now()
	r := codemode.Run(context.Background(), l.env(), arguments)
	t.Logf("%v: %.600s", time.Since(began).Round(time.Millisecond), r.Text)
	if most := o.Limits.withDefaults().OutputTokens; llm.EstimateTokens(len(r.Text)) > int64(most) {
		t.Errorf("the result has %d tokens, more than %d", llm.EstimateTokens(len(r.Text)), most)
	}
	return r
}

// healthy shows that this process still runs scripts.
func healthy(t *testing.T) {
	t.Helper()
	r := play(t, newLender(), Limits{}, `return (await tools.read({path: "a"})) + "!"`)
	if r.IsError || r.Text != "text of a!" {
		t.Errorf("the next script does not run: %s", r.Text)
	}
}
