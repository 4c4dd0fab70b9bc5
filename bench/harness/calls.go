package harness

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// CallCost is what a call of a tool on a server has cost its client: user and system time of the process and allocations,
// a call, and the time until the answer in the middle of all calls.
type CallCost struct {
	Calls     int     `json:"calls"`
	CPUMicros float64 `json:"cpuMicros"`
	P50Micros float64 `json:"p50Micros"`
	Allocs    float64 `json:"allocs"`
}

// warming is how many calls are made before those that count.
const warming = 100

// Connect opens a session to the MCP server at url and returns what calls its tool add and gives the text of the answer.
type Connect func(ctx context.Context, url string) (call func(ctx context.Context, a, b int) (text string, err error), err error)

// Calls is the whole program of a client: it reads the flags, makes calls one after another, checks each sum, and prints a
// CallCost. Of the connection nothing is counted. It does not return after a failure.
func Calls(name string, connect Connect) {
	url := flag.String("url", "", "the address of mcpserver")
	n := flag.Int("n", 2000, "how many calls")
	flag.Parse()
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.MaxIdleConnsPerHost = 16
	}
	cost, err := measureCalls(context.Background(), connect, *url, *n)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(cost)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func measureCalls(ctx context.Context, connect Connect, url string, n int) (*CallCost, error) {
	call, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	sum := func(i int) error {
		text, err := call(ctx, i, 2)
		if err == nil && text != strconv.Itoa(i+2) {
			err = fmt.Errorf("%d+2 is said to be %q", i, text)
		}
		return err
	}
	for i := range warming {
		if err := sum(i); err != nil {
			return nil, err
		}
	}
	took := make([]float64, n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used := cpuMicros()
	for i := range took {
		began := time.Now()
		if err := sum(i); err != nil {
			return nil, err
		}
		took[i] = float64(time.Since(began).Nanoseconds()) / 1e3
	}
	used = cpuMicros() - used
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	return &CallCost{Calls: n, CPUMicros: used / float64(n), P50Micros: took[n/2], Allocs: float64(after.Mallocs-before.Mallocs) / float64(n)}, nil
}
