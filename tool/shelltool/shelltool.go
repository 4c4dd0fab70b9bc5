// Package shelltool holds the tool shell, with which an agent runs a command line in the sandbox of its job. Each call is
// one bash that reads no start-up file, has an environment built from nothing, no input and no terminal, and ends with all
// that it started. The tool looks at the command no more than it must: what a command may reach is decided by the sandbox,
// since a text that a shell runs can be written in more ways than any check knows. For the same reason the deny patterns
// of an agent, which the kernel matches against the command, are a help against mistakes and no protection.
package shelltool

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/command"
)

//go:embed shell.md
var description string

const schema = `{
	"type": "object",
	"properties": {
		"command": {"type": "string", "description": "The command line for bash"},
		"timeout": {"type": "number", "description": "Seconds after which the command is ended (default 120, at most 600)"}
	},
	"required": ["command"],
	"additionalProperties": false
}`

const (
	// maxTimeout is the longest time of one call. The time of the job ends it earlier.
	maxTimeout = 600 * time.Second
	// minTimeout is the shortest; bash itself needs some milliseconds.
	minTimeout = 100 * time.Millisecond
	// maxCommand is the longest command line that can be given to a program.
	maxCommand = 128<<10 - 1
)

// Options says how the tool works on this machine.
type Options struct {
	// Bash is the absolute path of bash; "" means the one in the directories of sandbox.SearchPath.
	Bash string
}

// New returns the tool shell.
func New(o Options) tool.Tool {
	return tool.New(tool.Declaration{
		Name:        "shell",
		Description: strings.TrimSpace(description),
		InputSchema: json.RawMessage(schema),
		Effect:      tool.EffectExternal,
		Boundary: tool.Boundary{
			Reads: "below the read-only entries, the output directory and the job's temporary directory, and the programs and libraries of the system; " +
				"without a sandbox whatever the account of the process may",
			Writes:    "below the output directory and the job's temporary directory; without a sandbox whatever the account of the process may",
			Network:   "none, or TCP and UDP to any address if the operator permits it",
			Processes: "bash and whatever it starts, with limits, ended with the call",
			Secrets:   "none is passed on: the environment is built from nothing; without a sandbox files with secrets of the account can be read",
		},
		CommandArguments: []string{"command"},
	}, o.run)
}

type arguments struct {
	Command string   `json:"command"`
	Timeout *seconds `json:"timeout"`
}

func (o Options) run(ctx context.Context, env *tool.Env, a arguments) tool.Result {
	if ctx.Err() != nil {
		return tool.Errorf("the call was cancelled before it began")
	}
	if failed := check(a.Command); failed != nil {
		return *failed
	}
	timeout, remarks, failed := a.Timeout.duration()
	if failed != nil {
		return *failed
	}
	if _, failed := command.Sandbox(env); failed != nil {
		return *failed
	}
	bash, err := o.bash(env)
	if err != nil {
		return tool.Errorf("%v; the tool shell cannot be used here", err)
	}
	return command.Run(ctx, env, command.Command{
		Path:    bash,
		Args:    []string{"--noprofile", "--norc", "-c", "--", a.Command},
		Dir:     env.Workspace.Paths().Root,
		Timeout: timeout,
		Watch:   true,
		Remarks: remarks,
	})
}

func (o Options) bash(env *tool.Env) (string, error) {
	if o.Bash == "" {
		return command.Find(env, "bash")
	}
	return command.Check(env, o.Bash)
}

// check refuses what could not be given to a program.
func check(text string) *tool.Result {
	var failed tool.Result
	switch {
	case strings.TrimSpace(text) == "":
		failed = tool.Errorf("the command is empty")
	case strings.ContainsRune(text, 0):
		failed = tool.Errorf("the command holds a NUL byte")
	case len(text) > maxCommand:
		failed = tool.Errorf("the command has %d bytes, more than %d: write it to a file of the output directory and run that", len(text), maxCommand)
	default:
		return nil
	}
	return &failed
}

// seconds is a number of seconds that a model gave.
type seconds float64

// UnmarshalJSON accepts any JSON number; one that is too large for a float64 is as good as infinite.
func (s *seconds) UnmarshalJSON(text []byte) error {
	var n json.Number
	if err := json.Unmarshal(text, &n); err != nil {
		return fmt.Errorf("%q is not a number", text)
	}
	f, err := n.Float64()
	if err != nil && !math.IsInf(f, 0) {
		return fmt.Errorf("%q is not a number", text)
	}
	*s = seconds(f)
	return nil
}

// duration returns the time that was asked for, within what is possible, and a remark if that is another one.
func (s *seconds) duration() (time.Duration, []string, *tool.Result) {
	if s == nil {
		return command.DefaultTimeout, nil, nil
	}
	switch asked := float64(*s); {
	case math.IsNaN(asked) || asked < minTimeout.Seconds():
		failed := tool.Errorf("the timeout must be between %g and %g seconds", minTimeout.Seconds(), maxTimeout.Seconds())
		return 0, nil, &failed
	case asked > maxTimeout.Seconds():
		return maxTimeout, []string{fmt.Sprintf("the timeout was taken as %g s, the longest there is", maxTimeout.Seconds())}, nil
	default:
		return time.Duration(asked * float64(time.Second)), nil, nil
	}
}
