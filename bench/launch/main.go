// Launch starts a command a number of times and prints what a start costs, as medians: the time from just before exec to
// the first model request that fakellm received and to the exit, and the largest resident memory of the process. It is a
// process of its own because the system counts the memory of whoever starts a process as memory of the process started:
// figures below launch's own few megabytes cannot be told apart.
//
//	launch -n 15 -base http://127.0.0.1:9001 -stdin job.json -stdout events.jsonl -- hozo job
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/hozo-run/hozo/bench/harness"
)

// limit is how long one start may take.
const limit = time.Minute

// start is how a command is started.
type start struct {
	base, stdin string
	command     []string
	sink        io.Writer
}

// cost is what one start took.
type cost struct{ first, total, rss float64 }

func main() {
	n := flag.Int("n", 15, "how many starts to measure, after one that is not")
	base := flag.String("base", "", "the address of fakellm; empty if no model is asked")
	stdin := flag.String("stdin", "", "the file to give to each process")
	stdout := flag.String("stdout", "", "the file that takes what the processes print")
	flag.Parse()
	record, err := measure(*n, start{base: *base, stdin: *stdin, command: flag.Args()}, *stdout)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(record)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "launch:", err)
		os.Exit(1)
	}
}

func measure(n int, s start, stdout string) (record *harness.Record, err error) {
	if len(s.command) == 0 {
		return nil, errors.New("no command is given")
	}
	s.sink = io.Discard
	if stdout != "" {
		file, err := os.Create(stdout)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		s.sink = file
	}
	if _, err := s.run(io.Discard); err != nil { // the page cache is warm from here on
		return nil, err
	}
	var first, total, rss []float64
	for range n {
		c, err := s.run(s.sink)
		if err != nil {
			return nil, err
		}
		first, total, rss = append(first, c.first), append(total, c.total), append(rss, c.rss)
	}
	return &harness.Record{Mode: "start", FirstRequestMS: median(first), TotalMS: median(total), ProcessRSSMB: median(rss)}, nil
}

func (s start) run(sink io.Writer) (cost, error) {
	if s.base != "" {
		if err := harness.ResetStats(s.base); err != nil {
			return cost{}, err
		}
	}
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Stderr = os.Stderr
	if s.stdin != "" {
		file, err := os.Open(s.stdin)
		if err != nil {
			return cost{}, err
		}
		defer file.Close()
		cmd.Stdin = file
	}
	out, err := cmd.StdoutPipe() // a pipe, since some programs stop early when nobody reads
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_, copied := io.Copy(sink, out)
	if err := errors.Join(copied, cmd.Wait()); err != nil {
		return cost{}, fmt.Errorf("%s: %w", s.command[0], err)
	}
	c := cost{total: millis(time.Since(began)), rss: peak(cmd.ProcessState)}
	if s.base == "" {
		return c, nil
	}
	stats, err := harness.ReadStats(s.base)
	if err != nil {
		return cost{}, err
	}
	if stats.FirstUnixNano == 0 {
		return cost{}, fmt.Errorf("%s made no model request", s.command[0])
	}
	c.first = float64(stats.FirstUnixNano-began.UnixNano()) / 1e6
	return c, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// peak returns the largest resident memory of a process that has ended, in MB.
func peak(state *os.ProcessState) float64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	size := float64(usage.Maxrss) / 1024
	if runtime.GOOS == "darwin" { // bytes there, kilobytes elsewhere
		size /= 1024
	}
	return size
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
