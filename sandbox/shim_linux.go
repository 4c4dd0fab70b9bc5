package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The descriptors of a shim besides its standard ones, which are the command's: what to do comes in on the first, what
// has happened goes out on the second, and the third are the rules of files, if there are any, followed by what may be
// changed below: paths are looked up when a sandbox is opened, and not again.
const (
	shimControl = 3
	shimStatus  = 4
	shimRules   = 5
)

// What follows the order on the control pipe. Its end means that nobody is there any more for whom the command could run.
const shimTerminate = 't'

// order is the first line on the control pipe. Paths, arguments and environment are bytes, which JSON carries unchanged
// where it would mend text.
type order struct {
	Policy    Policy   `json:"policy"` // without its paths
	Rules     bool     `json:"rules,omitempty"`
	Changes   changes  `json:"changes"`
	Roots     int      `json:"roots,omitempty"` // how many
	Without   layer    `json:"without,omitempty"`
	Path      []byte   `json:"path"`
	Arguments [][]byte `json:"arguments,omitempty"`
	Env       [][]byte `json:"env,omitempty"`
	Dir       []byte   `json:"dir"`
}

func newOrder(p *Policy, c *Command) *order {
	o := &order{
		Policy: *p, Without: p.without, Changes: p.changes,
		Path: []byte(c.Path), Arguments: toBytes(c.Args), Env: toBytes(c.Env), Dir: []byte(c.Dir),
	}
	o.Policy.Read, o.Policy.Write = nil, nil
	return o
}

// open returns the policy and the command of an order.
func (o *order) open() (Policy, Command) {
	p := o.Policy
	p.without = o.Without | layerLandlock // the rules are made already
	p.changes = o.Changes
	return p, Command{Path: string(o.Path), Args: toStrings(o.Arguments), Env: toStrings(o.Env), Dir: string(o.Dir)}
}

func toBytes(texts []string) [][]byte {
	var all [][]byte
	for _, text := range texts {
		all = append(all, []byte(text))
	}
	return all
}

func toStrings(all [][]byte) []string {
	var texts []string
	for _, b := range all {
		texts = append(texts, string(b))
	}
	return texts
}

// tidings is a line on the status pipe. One comes when the command has started or cannot be, one when nothing of it is
// left.
type tidings struct {
	PID    int    `json:"pid,omitempty"`
	Error  string `json:"error,omitempty"`
	Absent bool   `json:"absent,omitempty"` // the error is that a file does not exist
	Code   int    `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"`
}

// shimmed is a command behind a shim.
type shimmed struct {
	command int
	gone    chan struct{}
	end     tidings

	mu      sync.Mutex
	control *os.File // nil when closed
}

// startBehindShim starts the command where there are no namespaces, or where its limits cannot be set in time otherwise.
func (s *starter) startBehindShim(p *Policy, c *Command, stdio [3]*os.File) (child, error) {
	executable := p.Shim
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find the running program: %w", err)
		}
	}
	o := newOrder(p, c)
	o.Rules, o.Roots = s.rules != nil, len(s.roots)
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	theirControl, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirControl.Close()
	status, theirStatus, err := os.Pipe()
	if err != nil {
		control.Close()
		return nil, err
	}
	defer theirStatus.Close()
	files := append(stdio[:], theirControl, theirStatus)
	if o.Rules {
		files = append(files, s.rules.file)
	}
	files = append(files, s.roots...)
	// It gets no parent-death signal: it has to outlive this process for as long as it takes to end the command.
	process, err := os.StartProcess(executable, []string{"hozo", ShimArgument}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		control.Close()
		status.Close()
		return nil, err
	}
	command := &shimmed{gone: make(chan struct{}), control: control}
	theirStatus.Close() // so that the end of the shim is the end of the pipe
	return command, command.begin(process, status, append(text, '\n'))
}

// begin hands the order over and waits for the first answer.
func (s *shimmed) begin(process *os.Process, status *os.File, text []byte) error {
	answers := json.NewDecoder(status)
	var first tidings
	_, err := s.control.Write(text)
	if err == nil {
		err = answers.Decode(&first)
	}
	switch {
	case err != nil:
		_ = process.Kill()
		err = fmt.Errorf("the helper %q did not answer: %w", ShimArgument, err)
	case first.Absent:
		err = fmt.Errorf("%s%w", first.Error, quiet{os.ErrNotExist})
	case first.Error != "":
		err = errors.New(first.Error)
	}
	if err != nil {
		s.kill()
		_, _ = process.Wait()
		status.Close()
		return err
	}
	s.command = first.PID
	go s.await(process, status, answers)
	return nil
}

// quiet is an error that is already in the text before it.
type quiet struct{ error }

func (quiet) Error() string   { return "" }
func (q quiet) Unwrap() error { return q.error }

// await reads how the command ended. A shim that does not say so was killed.
func (s *shimmed) await(process *os.Process, status *os.File, answers *json.Decoder) {
	defer close(s.gone)
	defer status.Close()
	err := answers.Decode(&s.end)
	state, waitErr := process.Wait()
	switch {
	case err == nil:
	case waitErr == nil:
		s.end.Code, s.end.Signal = exitStatus(state)
	default:
		s.end.Code = -1
	}
	s.kill()
}

func (s *shimmed) pid() int                { return s.command }
func (s *shimmed) exited() <-chan struct{} { return s.gone }
func (s *shimmed) status() (int, string)   { return s.end.Code, s.end.Signal }

func (s *shimmed) terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.control != nil {
		_, _ = s.control.Write([]byte{shimTerminate}) // a shim that is gone has ended the command
	}
}

// kill closes the control pipe, which tells the shim to end everything.
func (s *shimmed) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.control != nil {
		s.control.Close()
		s.control = nil
	}
}

// Shim is the helper process: it starts one command, adopts what the command leaves behind, and ends all of it when the
// command has ended or when the process that gave the order says so or is gone. It returns the exit code for the process,
// which is 0 unless it was not started by this package.
func Shim() int {
	closeOnExec()
	control := bufio.NewReader(os.NewFile(shimControl, "control"))
	answers := json.NewEncoder(os.NewFile(shimStatus, "status"))
	line, err := control.ReadBytes('\n')
	var o order
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "hozo %s is started by hozo itself and by nobody else: %v\n", ShimArgument, err)
		return 2
	}
	var s starter
	defer s.close()
	started, err := o.start(&s)
	if err != nil {
		// If nobody reads this, nobody waits for the command either.
		_ = answers.Encode(tidings{Error: err.Error(), Absent: errors.Is(err, os.ErrNotExist)})
		return 0
	}
	_ = answers.Encode(tidings{PID: started.pid()})
	go obey(control, started)
	<-started.exited()
	hunt(os.Getpid())
	s.close()
	code, signal := started.status()
	_ = answers.Encode(tidings{Code: code, Signal: signal})
	return 0
}

// start starts the command as this process's own.
func (o *order) start(s *starter) (child, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("adopt descendants: %w", err)
	}
	p, c := o.open()
	if !traces(&p) {
		if err := bequeath(&p); err != nil {
			return nil, err
		}
	}
	var rules *ruleset
	next := shimRules
	if o.Rules {
		rules = &ruleset{file: os.NewFile(shimRules, "rules")}
		next++
	}
	for fd := next; fd < next+o.Roots; fd++ {
		s.roots = append(s.roots, os.NewFile(uintptr(fd), "root"))
	}
	if err := s.openThread(&p, rules); err != nil {
		return nil, err
	}
	return s.startDirect(&p, &c, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
}

// bequeath puts the limits of the command on this process, where they cannot be set on the command in time. This process
// needs some addresses itself, so a smaller limit of memory follows when the command has started.
func bequeath(p *Policy) error {
	limits, err := limitsNow(p)
	if err != nil {
		return err
	}
	const own = 4 << 30
	if limits.MemoryBytes >= 0 {
		limits.MemoryBytes = max(limits.MemoryBytes, own)
	}
	return setLimits(os.Getpid(), limits)
}

// obey passes on what comes after the order.
func obey(control io.ByteReader, started child) {
	for {
		what, err := control.ReadByte()
		if err != nil {
			started.kill()
			return
		}
		if what == shimTerminate {
			started.terminate()
		}
	}
}
