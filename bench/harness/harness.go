// Package harness drives one agent runtime through the same work as every other one and prints what it cost as one line of
// JSON, a Record. A runner is a main package that implements Peer over a runtime and calls Main; the modes are in modes.go.
// The work is set by the name of the model that fakellm is asked for, and the harness counts requests, tool calls and text
// at both ends, so that a runner that skips work shows.
package harness

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
)

// Session is one agent with the history of its own exchange.
type Session interface {
	// Run sends one prompt and returns the final answer.
	Run(ctx context.Context, prompt string) (answer string, err error)
}

// Peer makes sessions. base is the address of fakellm without a path.
type Peer interface {
	New(base, model string) (Session, error)
}

// Auditor is a Peer that knows what it must have reported for some work, and fails if it has not.
type Auditor interface {
	// Reset forgets what was counted.
	Reset()
	// Audit is called after runs of this shape; requests is what fakellm received.
	Audit(work Work, requests int64) error
}

// Preparer is a Peer whose agents exist only as part of a run. Prepare begins a run and returns when its first request is
// ready to be sent; release ends the run.
type Preparer interface {
	Prepare(base, model string) (release func(), err error)
}

// Work is the shape of a number of runs.
type Work struct {
	Runs   int `json:"runs"`
	Conc   int `json:"conc"`   // runs at once
	Turns  int `json:"turns"`  // tool calls of a run
	Pieces int `json:"pieces"` // text deltas of a response
	Burst  int `json:"burst"`  // events that the provider sends at once
}

// Requests is how many model requests the work takes.
func (w Work) Requests() int64 { return int64(w.Runs) * int64(w.Turns+1) }

// System is the system prompt of every agent, ToolName and ToolDescription declare its one tool.
const (
	System          = "You are a careful assistant. Use the add tool whenever a sum is needed. Answer briefly."
	Prompt          = "What is 1+2?"
	ToolName        = "add"
	ToolDescription = "Add two integers and return the sum."
)

var toolCalls, deltas atomic.Int64

// Add is the tool: it returns a+b and counts the call.
func Add(a, b int) string {
	toolCalls.Add(1)
	return strconv.Itoa(a + b)
}

// CountDelta counts a piece of text that the runtime handed to its caller.
func CountDelta() { deltas.Add(1) }

// runner is one process that measures.
type runner struct {
	name string
	peer Peer
	base string
	mode string
	work Work
}

// Main is the whole program of a runner: it reads the flags, measures in one mode and prints the Record. name is the
// runtime's in the tables. It does not return after a failure.
func Main(name string, peer Peer) {
	r := &runner{name: name, peer: peer}
	flag.StringVar(&r.base, "base", "http://127.0.0.1:9001", "the address of fakellm")
	flag.StringVar(&r.mode, "mode", "runs", "runs, agents, active or start")
	flag.IntVar(&r.work.Runs, "runs", 200, "how many runs or agents")
	flag.IntVar(&r.work.Conc, "conc", 1, "how many runs at once")
	flag.IntVar(&r.work.Turns, "turns", 10, "tool calls of a run")
	flag.IntVar(&r.work.Pieces, "pieces", 20, "text deltas of a response")
	flag.IntVar(&r.work.Burst, "burst", 1, "events that the provider sends at once")
	flag.Parse()
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 4096 // so that no runtime dials again and again
	}
	record, err := r.measure(context.Background())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(record)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func (r *runner) measure(ctx context.Context) (*Record, error) {
	record := &Record{Peer: r.name, Mode: r.mode, Work: r.work}
	switch r.mode {
	case "runs":
		return record, r.runs(ctx, record)
	case "agents":
		return record, r.agents(record)
	case "active":
		return record, r.active(ctx, record)
	case "start":
		return record, r.one(ctx, fmt.Sprintf("fake-t1-c%d", r.work.Pieces))
	}
	return nil, fmt.Errorf("unknown mode %q", r.mode)
}

// one runs a new session once.
func (r *runner) one(ctx context.Context, model string) error {
	s, err := r.peer.New(r.base, model)
	if err != nil {
		return err
	}
	answer, err := s.Run(ctx, Prompt)
	if err == nil && answer == "" {
		err = fmt.Errorf("the answer is empty")
	}
	return err
}
