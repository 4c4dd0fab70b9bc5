package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Request is the input of a run: what whoever starts one says beside the agent, its version and the project.
type Request struct {
	// Task is the first message to the model; it is required.
	Task string `json:"task"`
	// Model goes before every binding. Provider and ID go together; a Thinking alone keeps the model that is bound.
	Model *job.ModelRef `json:"model,omitempty"`
	// Limits go before those of the agent's package, and below those of the installation.
	Limits *RequestLimits `json:"limits,omitempty"`
	// Inputs are files that earlier runs left.
	Inputs []Input `json:"inputs,omitempty"`
	// Metadata is echoed on the first event and never shown to a model.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// RequestLimits are the limits that a request may set; absent ones are left to the agent and the installation.
type RequestLimits struct {
	TimeoutSec     float64  `json:"timeoutSec,omitempty"`
	IdleTimeoutSec *float64 `json:"idleTimeoutSec,omitempty"`
	MaxTurns       *int64   `json:"maxTurns,omitempty"`
	MaxCostUSD     *llm.USD `json:"maxCostUsd,omitempty"`
}

// Input names what an earlier run of the same tenant left.
type Input struct {
	// Name is the directory below inputs/ in which the files are put; "" is the id of the run.
	Name string `json:"name,omitempty"`
	Run  string `json:"run"`
	// Files are paths below the output directory of that run; none stands for all of them.
	Files []string `json:"files,omitempty"`
}

// ParseRequest reads the input of a run. The error is a *problem.Error of kind Invalid that lists every problem; pointers
// begin at the input.
func ParseRequest(input json.RawMessage) (*Request, error) {
	var q Request
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&q); err != nil {
		return nil, problem.List{decodeProblem(input, err)}.Err("read the input of the run")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, problem.List{{Code: "trailing-data", Message: "something follows the object"}}.Err("read the input of the run")
	}
	return &q, q.check().Err("read the input of the run")
}

// decodeProblem says in our words why a document is no Request.
func decodeProblem(input json.RawMessage, err error) problem.Problem {
	known := []string{"task", "model", "limits", "inputs", "metadata"}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return problem.Problem{Code: "type", Pointer: strings.TrimSuffix("/"+strings.ReplaceAll(kind.Field, ".", "/"), "/"), Message: fmt.Sprintf("%s does not belong here", kind.Value)}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return problem.Problem{Code: "type", Message: "the input is not a JSON object"}
	}
	for name := range members {
		if slices.Contains(known, name) {
			continue
		}
		hint := "known fields: " + strings.Join(known, ", ")
		if best := problem.Closest(name, known); best != "" {
			hint = fmt.Sprintf("did you mean %q?", best)
		}
		return problem.Problem{Code: "unknown-field", Pointer: "/" + name, Message: fmt.Sprintf("unknown field %q", name), Hint: hint}
	}
	return problem.Problem{Code: "unknown-field", Message: strings.TrimPrefix(err.Error(), "json: ")}
}

func (q *Request) check() problem.List {
	var found problem.List
	if strings.TrimSpace(q.Task) == "" {
		found.AddHint("required", "/task", "say what the agent shall do", "the task is empty")
	}
	if m := q.Model; m != nil && (m.Provider == "") != (m.ID == "") {
		found.Add("incomplete", "/model", "provider and id of a model go together")
	}
	if l := q.Limits; l != nil {
		if l.TimeoutSec < 0 {
			found.Add("out-of-range", "/limits/timeoutSec", "a time limit is not below 0")
		}
		if l.MaxTurns != nil && *l.MaxTurns < 1 {
			found.Add("out-of-range", "/limits/maxTurns", "a run has at least one turn")
		}
	}
	for i, in := range q.Inputs {
		if in.Run == "" {
			found.Add("required", fmt.Sprintf("/inputs/%d/run", i), "the id of the run is missing")
		}
	}
	return found
}
