// Hozo runs the benchmark on the kernel in this process: one job of one agent for each session, with everything on that a
// job has. The job is made from a spec, checked, and driven by the openai-chat adapter over HTTP; time, turn, idle and
// money limits, the loop guard, usage, cost and spans are active, and every event is read in its encoded form, as a store
// or a stream would read it. After the runs the counts of events, text, usage and requests are compared with what the
// work must give.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/hozo-run/hozo/bench/harness"
)

func main() {
	peer, dir, err := newPeer()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hozo:", err)
		os.Exit(1)
	}
	harness.Main("hozo", peer)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "hozo:", err)
	}
}

// newPeer returns a peer with a workspace of its own and the directory to remove.
func newPeer() (*peer, string, error) {
	dir, err := os.MkdirTemp("", "hozo-bench-")
	if err != nil {
		return nil, "", err
	}
	for _, name := range []string{"source", "out"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return nil, "", err
		}
	}
	p := &peer{dir: dir}
	if p.runtime, err = newRuntime(nil); err != nil {
		return nil, "", err
	}
	return p, dir, nil
}
