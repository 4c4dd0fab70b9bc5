package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/bench/harness"
	"github.com/hozo-run/hozo/job"
)

// search is one question that the file tools and their peers answer. Its answer fits into one tool result, so that every
// program has to go through everything.
type search struct {
	name string
	dir  string
	// tool and arguments are hozo's call.
	tool      string
	arguments map[string]any
	// peers are the command lines of the others, by name; the first word is looked up.
	peers []rival
}

type rival struct {
	name    string
	command []string
}

// searchResult is what a program took, in milliseconds of the whole process; lines is the size of its answer.
type searchResult struct {
	search, program string
	ms, rssMB       float64
	lines           int
	// callMS is the tool call alone, 0 for programs without one.
	callMS float64
}

const (
	bigFileBytes = 256 << 20
	bigFileName  = "big.log"
)

// searches returns the questions: the source tree of Go, and one large file.
func (b *bench) plan(tree, big string) []search {
	inTree := func(pattern string) []rival {
		return []rival{
			{"rg -uuu", []string{"rg", "-uuu", "-n", "--no-heading", pattern, tree}},
			{"GNU grep", []string{"grep", "-rnIE", pattern, tree}},
		}
	}
	file := filepath.Join(big, bigFileName)
	inFile := func(pattern string) []rival {
		return []rival{{"rg -uuu", []string{"rg", "-uuu", "-n", pattern, file}}, {"GNU grep", []string{"grep", "-nE", pattern, file}}}
	}
	grep := func(name, dir, pattern string, peers []rival) search {
		return search{name, dir, "grep", map[string]any{"pattern": pattern}, peers}
	}
	const glob = "*_windows.go"
	return []search{
		grep("grep, tree, literal", tree, "unexpected newline in", inTree("unexpected newline in")),
		grep("grep, tree, pattern with a literal", tree, `func \(.*\) ReadRune\(`, inTree(`func \(.*\) ReadRune\(`)),
		grep("grep, tree, pattern without a literal", tree, `[A-Z][a-z]{11}Error`, inTree(`[A-Z][a-z]{11}Error`)),
		grep("grep, 256 MB file, rare literal", big, "needle in a haystack", inFile("needle in a haystack")),
		grep("grep, 256 MB file, pattern", big, `[0-9]{5} lost the needle`, inFile(`[0-9]{5} lost the needle`)),
		{"find, tree", tree, "find", map[string]any{"pattern": glob}, []rival{
			{"fd", []string{"fd", "-u", "--type", "f", "--glob", glob, tree}},
			{"GNU find", []string{"find", tree, "-name", glob, "-type", "f"}},
		}},
	}
}

// searchFiles measures the file tools in job processes, and the same searches with other programs. All use as many cores
// as they like.
func (b *bench) searchFiles(ctx context.Context) error {
	progress("file tools")
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	tree := filepath.Join(strings.TrimSpace(string(root)), "src")
	big := filepath.Join(b.out, "big")
	if err := writeBigFile(big); err != nil {
		return err
	}
	var own []error
	absent := map[string]bool{}
	for i, s := range b.plan(tree, big) {
		name := "search" + strconv.Itoa(i)
		if err := b.writeSearchSpec(name+".json", s.dir, s.tool, s.arguments); err != nil {
			return err
		}
		if err := b.ownSearch(ctx, s, name); err != nil {
			own = append(own, fmt.Errorf("hozo, %s: %w", s.name, err))
		}
		for _, r := range s.peers {
			if absent[r.name] {
				continue
			}
			if err := b.rivalSearch(ctx, s, r, name); errors.Is(err, exec.ErrNotFound) {
				absent[r.name] = true
				b.miss("%s: the program %s is not installed", r.name, r.command[0])
			} else if err != nil {
				b.failures = append(b.failures, fmt.Sprintf("%s, %s: %v", r.name, s.name, err))
			}
		}
	}
	return errors.Join(own...)
}

// timed starts a command a few times and returns the record and what the starts printed.
func (b *bench) timed(ctx context.Context, n int, flags, command []string) (*harness.Record, []byte, error) {
	stdout := filepath.Join(b.out, "stdout")
	line := append([]string{b.program("launch"), "-n", strconv.Itoa(n), "-stdout", stdout}, flags...)
	record := &harness.Record{}
	if err := execute(ctx, append(append(line, "--"), command...), nil, 0, false, record); err != nil {
		return nil, nil, err
	}
	output, err := os.ReadFile(stdout)
	return record, output, err
}

// repeats is how often a search is measured.
func (b *bench) repeats() int {
	if b.quick {
		return 3
	}
	return 11
}

func (b *bench) ownSearch(ctx context.Context, s search, name string) error {
	n := b.repeats()
	flags := []string{"-stdin", filepath.Join(b.out, name+".json")}
	record, output, err := b.timed(ctx, n, flags, []string{b.program("hozo"), "job"})
	if err != nil {
		return err
	}
	calls, lines, err := readCalls(output)
	if err != nil {
		return err
	}
	if len(calls) != n {
		return fmt.Errorf("%d tool calls succeeded, want %d", len(calls), n)
	}
	slices.Sort(calls)
	b.searches = append(b.searches, searchResult{search: s.name, program: "hozo", ms: record.TotalMS, rssMB: record.ProcessRSSMB,
		lines: lines, callMS: calls[len(calls)/2]})
	return nil
}

// readCalls returns the durations of the successful tool calls in the events of some jobs, and how many lines the last
// answer had.
func readCalls(events []byte) (calls []float64, lines int, err error) {
	for line := range bytes.Lines(events) {
		e, err := job.ParseEvent(line)
		if err != nil {
			return nil, 0, err
		}
		switch d := e.Data.(type) {
		case *job.SpanData:
			if d.Name == job.SpanTool && d.Status == job.SpanOK {
				calls = append(calls, d.DurationMS)
			}
		case *job.ToolResultData:
			lines = answerSize(d.Summary)
		case *job.FailedData:
			return nil, 0, fmt.Errorf("%s: %s", d.Code, d.Message)
		}
	}
	return calls, lines, nil
}

// answerSize reads the number out of a summary such as `"x": 12 matches`.
func answerSize(summary string) int {
	words := strings.Fields(summary)
	if len(words) < 2 {
		return 0
	}
	n, err := strconv.Atoi(strings.ReplaceAll(words[len(words)-2], ",", ""))
	if err != nil {
		return 0
	}
	return n
}

func (b *bench) rivalSearch(ctx context.Context, s search, r rival, name string) error {
	path, err := exec.LookPath(r.command[0])
	if err != nil && r.command[0] == "fd" {
		path, err = exec.LookPath("fdfind") // its name in Debian
	}
	if err != nil {
		return err
	}
	n := b.repeats()
	record, output, err := b.timed(ctx, n, nil, append([]string{path}, r.command[1:]...))
	if err != nil {
		return err
	}
	b.searches = append(b.searches, searchResult{search: s.name, program: r.name, ms: record.TotalMS, rssMB: record.ProcessRSSMB,
		lines: bytes.Count(output, []byte("\n")) / n})
	return nil
}

// writeBigFile writes a log in which two lines of a few million are worth finding. It is kept from run to run.
func writeBigFile(dir string) error {
	path := filepath.Join(dir, bigFileName)
	if info, err := os.Stat(path); err == nil && info.Size() >= bigFileBytes {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	for size, i := 0, 0; size < bigFileBytes; i++ {
		line := fmt.Sprintf("2026-01-02T03:04:05.%06dZ level=info worker=%d served request %d without delay\n", i%1_000_000, i%64, i)
		if size < bigFileBytes*9/10 && size+len(line) >= bigFileBytes*9/10 {
			line += "2026-01-02T03:04:06.000000Z level=warn worker=12345 lost the needle in a haystack\n"
		}
		n, err := w.WriteString(line)
		if err != nil {
			return errors.Join(err, file.Close())
		}
		size += n
	}
	return errors.Join(w.Flush(), file.Close())
}

// writeJSON writes every record, one a line.
func (b *bench) writeJSON() error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, s := range b.subjects {
		for _, m := range b.measurements() {
			for _, record := range b.results[s.name][m.name] {
				if err := encoder.Encode(record); err != nil {
					return err
				}
			}
		}
	}
	if err := b.writeToolJSON(&out); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, "bench.jsonl"), out.Bytes(), 0o644)
}
