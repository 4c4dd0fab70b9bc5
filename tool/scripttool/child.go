package scripttool

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hozo-run/hozo/problem"
)

// Child is the whole life of a process that was started with ChildArgument: it reads what to run, gives up what is left
// of its rights, runs the script and ends. It returns the exit code. It is for the main function of a program that offers
// the tool, before anything else is done.
func Child() int {
	err := serve(os.Stdin, os.Stdout, confine)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", ChildArgument, err)
		return 1
	}
	return 0
}

// serve runs one script. confine is called between the order and the script.
func serve(in io.Reader, out io.Writer, confine func(*order) error) error {
	lines := bufio.NewReader(in)
	first, err := readLine(lines, maxLine)
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	var o order
	if err := json.Unmarshal(first, &o); err != nil {
		return fmt.Errorf("the order is no JSON: %w", err)
	}
	if err := confine(&o); err != nil {
		return fmt.Errorf("confine the script: %w", err)
	}
	c := &child{order: &o, in: lines, out: &writer{to: out}, console: o.ConsoleBytes, deadline: time.UnixMilli(o.DeadlineMS)}
	if err := c.run(); err != nil {
		return err
	}
	return c.broken
}

// child runs a script.
type child struct {
	*order
	in       *bufio.Reader
	out      *writer
	deadline time.Time
	// waiting is how many calls have no answer yet.
	waiting int
	// console is how many bytes may still be printed; less than 0 is no more.
	console int
	end     *end
	// broken is the first failure to write.
	broken error
}

func (c *child) say(m *message) {
	if err := c.out.write(m); err != nil && c.broken == nil {
		c.broken = err
	}
}

// run runs the script to its end and tells it.
func (c *child) run() error {
	e, err := newEngine(c.Tools, c.HeapBytes, c.deadline, growth(c.HeapBytes), c.host())
	if err != nil {
		return err
	}
	failed := c.drive(e)
	if c.end == nil {
		c.end = &end{Failure: failed}
	}
	c.say(&message{End: c.end})
	return nil
}

// drive runs the script until it has said how it ended, or returns why that will not be.
func (c *child) drive(e engine) *failure {
	failed := e.start(c.Code)
	for failed == nil && c.end == nil && c.broken == nil {
		// What was interrupted at the deadline gets one more turn, in which it tells where.
		over := !time.Now().Before(c.deadline)
		var drained bool
		drained, failed = e.proceed()
		switch ended := c.end != nil || failed != nil; {
		case ended:
		case over:
			failed = &failure{Kind: kindTimeout}
		case drained && c.waiting == 0:
			failed = &failure{Kind: kindDeadlock}
		case drained:
			failed = c.await(e)
		}
	}
	return failed
}

// await waits for the end of a call and passes it on. It is the parent that watches the clock meanwhile.
func (c *child) await(e engine) *failure {
	line, err := readLine(c.in, 2*maxLine)
	if err != nil {
		return &failure{Kind: kindAborted}
	}
	a := &answer{}
	if err := json.Unmarshal(line, a); err != nil {
		return &failure{Kind: kindSandbox, Message: "an answer is no JSON: " + err.Error()}
	}
	c.waiting--
	return e.settle(a)
}

// host is what the script reaches.
func (c *child) host() host {
	return host{
		call: func(id int64, tool, arguments string) {
			c.waiting++
			c.say(&message{Call: &callMessage{ID: id, Tool: tool, Arguments: json.RawMessage(arguments)}})
		},
		print:   c.print,
		suggest: func(name string) string { return unknownTool(name, c.Tools) },
		returned: func(text string) {
			c.end = &end{Text: prefix(text, c.OutputBytes+1), Bytes: int64(len(text))}
		},
		nothing: func() { c.end = &end{Nothing: true} },
		failed:  func(f *failure) { c.end = &end{Failure: f} },
	}
}

// print tells a line, and the beginning of the first one that is too much, so that the parent knows of it.
func (c *child) print(line string) {
	if c.console < 0 {
		return
	}
	line = prefix(line, c.console+1)
	c.console -= len(line) + 1
	c.say(&message{Console: &consoleMessage{Text: line}})
}

// unknownTool is the error of a script that names a tool that is not there.
func unknownTool(name string, tools []string) string {
	const most = 40
	text := fmt.Sprintf("there is no tool %q", prefix(name, 100))
	if best := closest(name, tools); best != "" {
		text += fmt.Sprintf("; did you mean %s?", best)
	}
	switch {
	case len(tools) == 0:
		return text + "; a script of this agent has no tools"
	case len(tools) > most:
		return text + fmt.Sprintf("; the %d tools are declared in the description of %s", len(tools), Name)
	}
	return text + "; the tools are: " + strings.Join(tools, ", ")
}

// closest returns the tool that was probably meant: one that differs in signs only, or in few letters, also without the
// name of its server.
func closest(name string, tools []string) string {
	if best := problem.Closest(name, tools); best != "" {
		return best
	}
	for _, t := range tools {
		if short := t[strings.LastIndex(t, "__")+1:]; len(short) < len(t) && problem.Closest(letters(name), []string{letters(short)}) != "" {
			return t
		}
	}
	return ""
}

// letters drops everything but letters and digits.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, s)
}

// prefix returns at most n bytes of the beginning of a text, without a broken character at their end.
func prefix(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:max(n, 0)]
}
