package wire

import (
	"encoding/json"
	"time"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
)

// RunRequest asks for a run.
type RunRequest struct {
	Agent   string `json:"agent" minLength:"1" maxLength:"128" doc:"The name of an agent."`
	Version string `json:"version,omitempty" maxLength:"64" doc:"A version of the agent; absent for the one that is current when the run starts."`
	Project string `json:"project,omitempty" maxLength:"128" doc:"The project in which the run works; absent for none."`
	Parent  string `json:"parent,omitempty" maxLength:"64" doc:"The run to which this one belongs."`
	// Input is everything else that the run needs.
	Input json.RawMessage `json:"input,omitempty" doc:"What the run shall do, an object: task, parameters, limits and so on."`
	// NotBefore delays the run.
	NotBefore time.Time `json:"notBefore,omitzero" doc:"When the run may start at the earliest."`
}

// Cancellation says why a run shall end.
type Cancellation struct {
	Cause string `json:"cause,omitempty" maxLength:"500" doc:"For people."`
}

// Decisions answer calls that a suspended run waits for.
type Decisions struct {
	Decisions []job.Decision `json:"decisions" minItems:"1" maxItems:"100"`
}

// Decided is what became of decisions.
type Decided struct {
	Run run.Run `json:"run"`
	// Open are the calls that still wait.
	Open []job.Wait `json:"open"`
}

// RunEvent is one event of a stream of several runs.
type RunEvent struct {
	Run   string          `json:"run"`
	Event json.RawMessage `json:"event"`
}
