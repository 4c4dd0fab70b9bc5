//go:build ignore

// Command gotest runs go test and counts. It passes its arguments on, prints one line per package and the whole output
// of whatever failed, and ends with the line "N passed, N failed". With -suites it also demands that each named suite
// has at least one test that passed: a suite is every test whose name begins with TestSmoke and the suite's name.
// The Makefile is its only caller; it needs nothing but the Go toolchain.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// event is one line of go test -json (see go doc test2json).
type event struct {
	Action, Package, Test, Output, FailedBuild, ImportPath string
}

// counter adds up what the events say.
type counter struct {
	passed, failed int
	output         map[string]*strings.Builder
	suites         map[string]int
	// stores counts the tests that passed on each database.
	stores map[string]int
	skips  []string
}

// databases are the names of the subtests that internal/store/storetest makes: what is tested on one of them is tested on
// all.
var databases = []string{"sqlite", "postgres"}

func main() {
	suites := flag.String("suites", "", "comma-separated suites that must have a test")
	counts := flag.String("counts", os.Getenv("HOZO_TEST_COUNTS"), "file to which the counts are appended as \"passed failed\"")
	flag.Parse()
	c := &counter{output: map[string]*strings.Builder{}, suites: map[string]int{}, stores: map[string]int{}}
	for _, name := range strings.FieldsFunc(*suites, func(r rune) bool { return r == ',' }) {
		c.suites[name] = 0
	}
	if err := c.run(flag.Args()); err != nil {
		fmt.Println("go test:", err)
		c.failed = max(c.failed, 1)
	}
	c.report()
	if *counts != "" {
		c.save(*counts)
	}
	if c.failed > 0 {
		os.Exit(1)
	}
}

// run reads the events of one go test.
func (c *counter) run(args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 {
			if json.Unmarshal(line, &e) == nil {
				c.take(e)
			} else {
				fmt.Print(string(line))
			}
		}
		if err != nil {
			break
		}
	}
	return cmd.Wait()
}

func (c *counter) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		if c.output[key] == nil {
			c.output[key] = &strings.Builder{}
		}
		c.output[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		c.end(e, key)
		delete(c.output, key)
	}
}

// end counts one finished test or, without a test name, prints the result of a package.
func (c *counter) end(e event, key string) {
	text := ""
	if b := c.output[key]; b != nil {
		text = b.String()
	}
	switch {
	case e.Action == "fail":
		fmt.Print(text)
		if e.Test != "" || e.FailedBuild != "" || !strings.Contains(text, "FAIL") {
			c.failed++
		}
	case e.Test == "":
		fmt.Print(packageLine(text))
	case e.Action == "skip":
		c.skips = append(c.skips, e.Package+" "+e.Test+": "+reason(text))
	default:
		c.passed++
		for _, part := range strings.Split(e.Test, "/") {
			if slices.Contains(databases, part) {
				c.stores[part]++
			}
		}
		for name := range c.suites {
			if strings.HasPrefix(e.Test, "TestSmoke"+name) && !strings.Contains(e.Test, "/") {
				c.suites[name]++
			}
		}
	}
}

// reason returns what a skipped test said, on one line.
func reason(text string) string {
	var said []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

// packageLine returns the last line of a package's output, "" for a package without tests.
func packageLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if strings.Contains(last, "no test files") || strings.Contains(last, "no tests to run") || last == "" {
		return ""
	}
	return last + "\n"
}

func (c *counter) report() {
	const most = 20
	for _, skip := range c.skips[:min(len(c.skips), most)] {
		fmt.Println("skipped:", skip)
	}
	if len(c.skips) > most {
		fmt.Printf("skipped: %d more\n", len(c.skips)-most)
	}
	for _, name := range slices.Sorted(maps.Keys(c.suites)) {
		fmt.Printf("suite %s: %d\n", name, c.suites[name])
		if c.suites[name] == 0 {
			fmt.Printf("suite %s has no test that passed; name its tests TestSmoke%s…\n", name, name)
			c.failed++
		}
	}
	c.reportStores()
	fmt.Printf("%d passed, %d failed\n", c.passed, c.failed)
}

// reportStores says how many tests passed on each database, which must be as many on each.
func (c *counter) reportStores() {
	if len(c.stores) == 0 {
		return
	}
	for _, name := range databases {
		fmt.Printf("tests on %s: %d\n", name, c.stores[name])
	}
	if c.stores[databases[0]] != c.stores[databases[1]] && c.failed == 0 {
		fmt.Println("the databases are not tested alike; is one of them missing on this machine?")
		c.failed++
	}
}

func (c *counter) save(path string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, c.passed, c.failed)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Println("counts:", err)
		c.failed++
	}
}
