package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/bench/harness"
)

// toolCost is what a call that leaves the process costs when it is made in one way. The first way of a measure is the one
// without hozo, to which the others are compared.
type toolCost struct {
	measure, way string
	// p10 and p50 are of the rounds.
	p10, p50 float64
}

// The measures of tool calls.
const (
	mcpCPU    = "MCP call, CPU of the client, us"
	mcpWall   = "MCP call, until the answer, us"
	shellWall = "shell call that does nothing, ms"
	scriptOne = "script until its first call, ms"
	scriptAll = "script with 1,000 calls, ms"
)

// toolBar is a proportion for a call in hozo's way.
type toolBar struct {
	measure, peer string
	limit         float64
}

func toolBars() []toolBar {
	return []toolBar{
		{mcpCPU, rawWay, 1.5},
		// 2.5 ms above where bash takes 1.11 ms and bubblewrap 2.9 ms more.
		{shellWall, bashWay, (1.11 + 2.5) / 1.11}, {shellWall, bwrapWay, (1.11 + 2.5) / (1.11 + 2.9)},
		{scriptOne, trueWay, 8}, {scriptAll, trueWay, 40},
	}
}

// The ways, as the runners call them.
const (
	rawWay   = "raw"
	bashWay  = "bash -c :"
	bwrapWay = "bubblewrap"
	trueWay  = "/bin/true"
)

// toolCalls measures the calls of tools that leave the process. Like what is measured of runs, an error is about hozo.
func (b *bench) toolCalls(ctx context.Context) error {
	var own error
	if b.wanted("mcp") && ctx.Err() == nil {
		own = errors.Join(own, b.mcpCalls(ctx))
	}
	for _, what := range []string{"shell", "codemode"} {
		switch {
		case !b.wanted(what) || ctx.Err() != nil:
		case runtime.GOOS != "linux":
			b.miss("%s: what confines its processes is measured on Linux only", what)
		default:
			if err := b.reach(ctx, what); err != nil {
				own = errors.Join(own, fmt.Errorf("%s: %w", what, err))
			}
		}
	}
	return own
}

// client is one way to call a tool of an MCP server.
type client struct {
	name, program string
	env           []string
}

func (b *bench) mcpCalls(ctx context.Context) error {
	progress("MCP calls")
	if err := errors.Join(b.goBuild(ctx, ".", "./mcpserver", "mcpserver"), b.goBuild(ctx, ".", "./peer/mcp", "mcp")); err != nil {
		return err
	}
	clients := []client{{rawWay, "mcp", []string{"CLIENT=raw"}}, {"hozo", "mcp", []string{"CLIENT=hozo"}}, {"go-sdk", "mcp", []string{"CLIENT=go-sdk"}}}
	if err := b.goBuild(ctx, "peer/mcpgo", ".", "mcpgo"); err != nil {
		b.miss("mcp-go: %v", err)
	} else {
		clients = append(clients, client{"mcp-go", "mcpgo", nil})
	}
	url, stop, err := b.mcpServer(ctx)
	if err != nil {
		return err
	}
	defer stop()
	rounds, calls := 15, 2000
	if b.quick {
		rounds, calls = 5, 1000
	}
	costs := map[string][]*harness.CallCost{}
	for range rounds {
		for _, c := range clients {
			cost := &harness.CallCost{}
			_, core, pin := cores()
			err := execute(ctx, []string{b.program(c.program), "-url", url, "-n", strconv.Itoa(calls)}, c.env, core, pin, cost)
			switch {
			case err == nil:
				costs[c.name] = append(costs[c.name], cost)
			case c.name == "hozo" || ctx.Err() != nil:
				return fmt.Errorf("MCP call: %w", err)
			default:
				b.failures = append(b.failures, fmt.Sprintf("%s: %v", c.name, err))
			}
		}
	}
	for _, c := range clients {
		b.addCost(mcpCPU, c.name, each(costs[c.name], func(c *harness.CallCost) float64 { return c.CPUMicros }))
	}
	for _, c := range clients {
		b.addCost(mcpWall, c.name, each(costs[c.name], func(c *harness.CallCost) float64 { return c.P50Micros }))
	}
	return nil
}

func each[T any](list []T, value func(T) float64) []float64 {
	var values []float64
	for _, item := range list {
		values = append(values, value(item))
	}
	return values
}

// mcpServer starts the server on the core of the provider, and returns its address and what ends it.
func (b *bench) mcpServer(ctx context.Context) (url string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, b.program("mcpserver"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	core, _, ok := cores()
	if err := onCore(core, ok, cmd.Start); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, so it fails
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("mcpserver does not say where it is: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

// reach measures what a tool that starts processes adds to the start. All processes may use every core.
func (b *bench) reach(ctx context.Context, what string) error {
	progress("%s", what)
	if err := b.goBuild(ctx, ".", "./reach", "reach"); err != nil {
		return err
	}
	rounds := 200
	if b.quick {
		rounds = 40
	}
	command := []string{b.program("reach"), "-what", what, "-program", b.program("hozo"), "-n", strconv.Itoa(rounds)}
	if what == "shell" {
		if bwrap, err := exec.LookPath("bwrap"); err == nil {
			command = append(command, "-bwrap", bwrap)
		} else {
			b.miss("%s: the program bwrap is not installed", bwrapWay)
		}
	}
	var result struct {
		Isolation string               `json:"isolation"`
		MS        map[string][]float64 `json:"ms"`
	}
	if err := execute(ctx, command, nil, 0, false, &result); err != nil {
		return err
	}
	b.isolation = result.Isolation
	if what == "shell" {
		for _, way := range []string{bashWay, "hozo", "hozo, first of a job", "hozo, sandbox off", bwrapWay} {
			b.addCost(shellWall, way, result.MS[way])
		}
		return nil
	}
	b.addCost(scriptOne, trueWay, result.MS[trueWay])
	b.addCost(scriptOne, "hozo", result.MS["hozo, first call"])
	b.addCost(scriptAll, trueWay, result.MS[trueWay])
	b.addCost(scriptAll, "hozo", result.MS["hozo, 1,000 calls"])
	return nil
}

func (b *bench) addCost(measure, way string, values []float64) {
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	b.tools = append(b.tools, toolCost{measure, way, values[len(values)/10], values[len(values)/2]})
}

// findCost returns the cost of a measure in a way, and the zero value if it was not measured.
func (b *bench) findCost(measure, way string) toolCost {
	i := slices.IndexFunc(b.tools, func(c toolCost) bool { return c.measure == measure && c.way == way })
	if i < 0 {
		return toolCost{}
	}
	return b.tools[i]
}

func (b *bench) writeToolCalls(w *strings.Builder) {
	if len(b.tools) == 0 {
		return
	}
	fmt.Fprintf(w, "\n| tool call | way | p10 | p50 | p10 in proportion to the first | p50 in proportion |\n|---|---|---:|---:|---:|---:|\n")
	var first toolCost
	for _, c := range b.tools {
		if c.measure != first.measure {
			first = c
			fmt.Fprintf(w, "| %s | %s | %s | %s | | |\n", c.measure, c.way, figure(c.p10), figure(c.p50))
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", c.measure, c.way, figure(c.p10), figure(c.p50),
			figure(c.p10/first.p10), figure(c.p50/first.p50))
	}
	if b.isolation != "" {
		fmt.Fprintf(w, "\nIsolation of processes on this machine: %s.\n", b.isolation)
	}
}

func (b *bench) writeToolBars(w *strings.Builder) {
	for _, c := range toolBars() {
		own, peer := b.findCost(c.measure, "hozo").p50, b.findCost(c.measure, c.peer).p50
		if ratio := own / peer; own > 0 && !math.IsInf(ratio, 0) {
			writeBar(w, c.measure, c.peer, c.limit, ratio, false)
		}
	}
}

// writeToolJSON adds the figures to the records of a run, one a line.
func (b *bench) writeToolJSON(out *bytes.Buffer) error {
	encoder := json.NewEncoder(out)
	for _, c := range b.tools {
		if err := encoder.Encode(map[string]any{"measure": c.measure, "way": c.way, "p10": c.p10, "p50": c.p50}); err != nil {
			return err
		}
	}
	return nil
}
