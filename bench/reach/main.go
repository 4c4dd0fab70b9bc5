// Reach measures what it costs when a tool starts a process, beside the same start without hozo. All contenders take
// turns, once a round, in this one process, so that a machine that grows busier does so for all; the result is one line of
// JSON with every time in milliseconds by contender.
//
//	reach -what shell -bwrap /usr/bin/bwrap
//	reach -what codemode -program /usr/local/bin/hozo
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/hozo-run/hozo/sandbox"
)

// contender is one way to do it. run returns how long what counts has taken.
type contender struct {
	name string
	run  func(ctx context.Context) (time.Duration, error)
}

// times are what each contender took, in milliseconds, in the order of the rounds.
type times struct {
	// Isolation is the level that hozo's processes are started with.
	Isolation sandbox.Level        `json:"isolation"`
	MS        map[string][]float64 `json:"ms"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ShimArgument { // needed where there are no namespaces
		os.Exit(sandbox.Shim())
	}
	what := flag.String("what", "shell", "shell or codemode")
	program := flag.String("program", "", "hozo as it ships, which codemode starts")
	bwrap := flag.String("bwrap", "", "bubblewrap, if it is to be measured")
	rounds := flag.Int("n", 100, "how many rounds")
	flag.Parse()
	err := measure(context.Background(), *what, *program, *bwrap, *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "reach:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, what, program, bwrap string, rounds int) (err error) {
	var contenders []contender
	switch what {
	case "shell":
		var release func() error
		if contenders, release, err = shell(bwrap); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, release()) }()
	case "codemode":
		contenders = codemode(program)
	default:
		return fmt.Errorf("-what is %q, want shell or codemode", what)
	}
	result := times{Isolation: sandbox.Probe().Level, MS: map[string][]float64{}}
	for round := range rounds + 3 {
		for _, c := range contenders {
			took, err := c.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round >= 3 { // the page cache is warm from here on
				result.MS[c.name] = append(result.MS[c.name], float64(took.Nanoseconds())/1e6)
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// spawn is a contender that starts a program and waits for its end.
func spawn(name, dir string, env []string, command ...string) contender {
	return contender{name, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Env = dir, env
		err := cmd.Run()
		return time.Since(began), err
	}}
}
