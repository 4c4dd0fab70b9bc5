package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/scripttool"
)

// hostCalls is how many calls the long script makes.
const hostCalls = 1000

// codemode returns the bare start of a process, a script up to its first call, and a whole script with many calls. The
// process of a script is program. What the script calls answers at once, so that the calls are what is measured.
func codemode(program string) []contender {
	many := fmt.Sprintf(`let n = 0; for (let i = 0; i < %d; i++) n += (await tools.echo({i: 1})).i; return n`, hostCalls)
	return []contender{
		spawn("/bin/true", "/", []string{}, "/bin/true"),
		{"hozo, first call", script(program, `return (await tools.echo({i: 1})).i`, 1, true)},
		{"hozo, 1,000 calls", script(program, many, hostCalls, false)},
	}
}

// script runs a script that makes calls and returns their number. It gives the time to the first of them, or to the end.
func script(program, code string, calls int64, toFirst bool) func(ctx context.Context) (time.Duration, error) {
	codemode := scripttool.New(scripttool.Options{Program: program, Limits: scripttool.Limits{Calls: hostCalls}})
	order, err := json.Marshal(map[string]string{"code": code})
	return func(ctx context.Context) (time.Duration, error) {
		if err != nil {
			return 0, err
		}
		var made atomic.Int64
		var began, first time.Time
		env := &tool.Env{CallID: "1.0",
			Callees: []llm.ToolSpec{{Name: "echo", Description: "Returns its arguments.", InputSchema: json.RawMessage(`{"type":"object"}`)}},
			Nested: func(_ context.Context, _ string, arguments json.RawMessage) tool.Result {
				if made.Add(1) == 1 {
					first = time.Now()
				}
				return tool.Result{Text: "shown", Structured: arguments}
			}}
		began = time.Now()
		result := codemode.Run(ctx, env, order)
		took := time.Since(began)
		if result.IsError || made.Load() != calls || result.Text != strconv.FormatInt(calls, 10) {
			return 0, fmt.Errorf("%d calls, want %d: %s", made.Load(), calls, result.Text)
		}
		if toFirst {
			took = first.Sub(began)
		}
		return took, nil
	}
}
