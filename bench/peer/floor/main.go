// Floor is no agent runtime. It does the least work that a Go process can do for the same exchange over net/http, as a
// figure to stand below all others: stream lines are split, plain text chunks are taken without decoding, the tool is
// called, and each message is encoded once and appended to the request's bytes. It has no limits, no events, no errors
// that anybody could use, and checks nothing. With FLOOR=drain it does not even look at the text.
package main

import (
	"fmt"
	"os"

	"github.com/hozo-run/hozo/bench/harness"
)

func main() {
	switch variant := os.Getenv("FLOOR"); variant {
	case "", "loop":
		harness.Main("floor", peer{})
	case "drain":
		harness.Main("floor-drain", peer{drain: true})
	default:
		fmt.Fprintf(os.Stderr, "floor: FLOOR is %q, want loop or drain\n", variant)
		os.Exit(2)
	}
}
