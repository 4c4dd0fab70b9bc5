// Package command runs the one command of a tool call in the job's sandbox and words its end for a model. It is what the
// tools that start processes have in common: a program that is found without asking the job's files, an environment that
// is built from nothing, a time limit, the end of the output as clean text, and the files of the output directory that the
// command has written. It decides nothing about what may be run; that is the tool's part, and what the command can reach
// is the sandbox's.
//
// A command ends with everything that it started: what it leaves in the background does not outlive the call.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
)

// DefaultTimeout is the time of a command that names none.
const DefaultTimeout = sandbox.DefaultTimeout

// Command is what a tool wants to run.
type Command struct {
	// Path is the program, as Find returns it, Args its arguments without its name.
	Path string
	Args []string
	// Dir is the working directory, a real, absolute path.
	Dir string
	// Env is added to the fixed environment of the sandbox; each entry is KEY=VALUE.
	Env []string
	// Timeout ends the command; zero means DefaultTimeout.
	Timeout time.Duration
	// Negative, if not empty, says what exit code 1 means where it is an answer and no failure.
	Negative string
	// Watch says that the command may write to the output directory. Files that are new or changed afterwards become
	// outputs, except those below Skip, a path relative to it; "" is nothing.
	Watch bool
	Skip  string
	// Remarks are put into the notices of the result.
	Remarks []string
}

// Sandbox returns what confines the processes of the job. If there is none it returns a failed result that says why and
// where the operator finds more.
func Sandbox(env *tool.Env) (*sandbox.Sandbox, *tool.Result) {
	err := errors.New("this runtime starts no processes")
	if env.Processes != nil {
		var s *sandbox.Sandbox
		if s, err = env.Processes(); err == nil && s != nil {
			return s, nil
		}
		if err == nil {
			err = errors.New("this runtime lends no sandbox")
		}
	}
	failed := tool.Errorf("no command can be started here: %v. Trying again will not help; go on without this tool. "+
		"The operator finds the reason with \"hozo doctor\".", err)
	return nil, &failed
}

// Find returns the absolute path of a program of the system. It looks into the directories of sandbox.SearchPath only,
// never into those of this process's PATH, and accepts nothing that the job could have written.
func Find(env *tool.Env, name string) (string, error) {
	dirs := filepath.SplitList(sandbox.SearchPath)
	for _, dir := range dirs {
		if found, err := Check(env, filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s is not installed on this machine (looked in %s)", name, strings.Join(dirs, ", "))
}

// Check returns path, which an operator has named, if it is a program that the job could not have written.
func Check(env *tool.Env, path string) (string, error) {
	paths := env.Workspace.Paths()
	if !filepath.IsAbs(path) || !usable(path, paths.Out, paths.Tmp) {
		return "", fmt.Errorf("there is no program %s outside of what the job can write", path)
	}
	return path, nil
}

// usable reports whether a path is a program that lies in none of the directories.
func usable(path string, writable ...string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for _, dir := range writable {
		if dir != "" && Below(dir, real) {
			return false
		}
	}
	stat, err := os.Stat(real)
	return err == nil && stat.Mode().IsRegular() && stat.Mode()&0o111 != 0
}

// Below reports whether target is dir or below it. Both are clean and absolute; nothing is looked up.
func Below(dir, target string) bool {
	rel, err := filepath.Rel(dir, target)
	return err == nil && filepath.IsLocal(rel)
}

// Environment is the whole environment of a command of this job.
func Environment(env *tool.Env, extra ...string) []string {
	paths := env.Workspace.Paths()
	if paths.Tmp == "" {
		// A job without a directory for temporary files has no home either. Programs find that out when they use it.
		return sandbox.Environment("/nonexistent", extra...)
	}
	return sandbox.Environment(paths.Tmp, extra...)
}

// Run runs the command to its end and returns the result for the model. A command that fails, is cut off or cannot be
// started is a result with IsError; its outputs are reported all the same.
func Run(ctx context.Context, env *tool.Env, c Command) tool.Result {
	s, failed := Sandbox(env)
	if failed != nil {
		return *failed
	}
	var before *survey
	out := env.Workspace.Paths().Out
	if c.Watch {
		before = look(ctx, out, c.Skip)
	}
	ended, err := s.Run(ctx, sandbox.Command{Path: c.Path, Args: c.Args, Dir: c.Dir, Env: Environment(env, c.Env...), Timeout: c.Timeout})
	if err != nil {
		return tool.Errorf("the command could not be started: %v", err)
	}
	remarks := slices.Clone(c.Remarks)
	result := tool.Result{}
	if c.Watch {
		// The job may be over, but what it has written is there.
		var more []string
		result.Outputs, more = changes(before, look(context.WithoutCancel(ctx), out, c.Skip))
		remarks = append(remarks, more...)
	}
	c.word(&result, &ended, remarks, context.Cause(ctx))
	return result
}

// word fills in the text of a result: the output, and in brackets what has to be said about it.
func (c *Command) word(result *tool.Result, ended *sandbox.Result, remarks []string, cause error) {
	text, notices := output(ended)
	notices = append(notices, remarks...)
	if ended.OutputHeld {
		notices = append(notices, "something that could not be ended still holds the output open; the rest of it was not awaited")
	}
	end, failed := c.end(ended, cause)
	if end != "" {
		notices = append(notices, end)
	}
	if text == "" {
		text = "(no output)"
	}
	if len(notices) > 0 {
		text = strings.TrimSuffix(text, "\n") + "\n\n[" + strings.Join(notices, "]\n[") + "]"
	}
	result.Text, result.IsError = text, failed
	result.Summary = summary(ended)
}

// end says how the command ended, "" if there is nothing to say, and whether that is a failure.
func (c *Command) end(r *sandbox.Result, cause error) (text string, failed bool) {
	code := fmt.Sprintf("exit code %d", r.ExitCode)
	switch {
	case r.TimedOut:
		timeout := c.Timeout
		if timeout == 0 {
			timeout = DefaultTimeout
		}
		return fmt.Sprintf("timed out after %s s: the command and everything that it started was ended", seconds(timeout)), true
	case r.Aborted:
		if cause == nil {
			cause = errors.New("the sandbox was closed")
		}
		return fmt.Sprintf("ended before it was done: %v", cause), true
	case r.Signal != "":
		return fmt.Sprintf("%s: ended by %s", code, r.Signal), true
	case r.ExitCode == 1 && c.Negative != "":
		return code + ": " + c.Negative, false
	case r.ExitCode != 0:
		return code, true
	}
	return "", false
}

func summary(r *sandbox.Result) string {
	size := fmt.Sprintf("%d lines", r.Lines)
	if r.Lines == 1 {
		size = "1 line"
	}
	switch {
	case r.TimedOut:
		return "timed out, " + size
	case r.Aborted:
		return "ended early, " + size
	}
	return fmt.Sprintf("exit code %d, %s", r.ExitCode, size)
}

// seconds writes a duration as seconds without needless zeros.
func seconds(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", d.Seconds()), "0"), ".")
}
