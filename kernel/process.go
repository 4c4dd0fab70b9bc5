package kernel

import (
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/sandbox"
)

// ProcessPolicy is the operator's word on the processes that tools may start; no job can change it.
type ProcessPolicy struct {
	// Network permits TCP and UDP to them.
	Network bool
	// Unconfined starts them without a sandbox: something else must confine this process then.
	Unconfined bool
	// Shim is the program that is started as "hozo sandbox-exec"; "" is the running one.
	Shim string
}

// processes makes the sandbox of a job at its first use and ends it with the job.
type processes struct {
	once    sync.Once
	sandbox *sandbox.Sandbox
	// made is a temporary directory that was made for the job.
	made string
	err  error
}

var errNoProcesses = errors.New("this runtime starts no processes")

// processes implements tool.Env.Processes.
func (r *run) processes() (*sandbox.Sandbox, error) {
	r.process.once.Do(func() { r.process.sandbox, r.process.err = r.openSandbox() })
	return r.process.sandbox, r.process.err
}

func (r *run) openSandbox() (*sandbox.Sandbox, error) {
	operator := r.rt.config.Processes
	if operator == nil {
		return nil, errNoProcesses
	}
	paths := r.plan.workspace.Paths()
	if paths.Tmp == "" {
		made, err := os.MkdirTemp("", "hozo-job-")
		if err != nil {
			return nil, err
		}
		r.process.made = made
		if err := r.plan.workspace.UseTmp(made); err != nil {
			return nil, err
		}
		paths = r.plan.workspace.Paths()
	}
	opened, err := sandbox.Open(sandbox.Policy{Read: paths.Read, Write: []string{paths.Out, paths.Tmp}, Network: operator.Network,
		Unconfined: operator.Unconfined, Shim: operator.Shim})
	if err != nil {
		return nil, err
	}
	if notice := unprotected(operator.Unconfined, sandbox.Probe()); notice != nil {
		r.emit(notice)
	}
	return opened, nil
}

// unprotected returns what people have to know about the processes of a job that are not confined, or not wholly; nil if
// they are. It is told at the first process, since jobs without any are not concerned.
func unprotected(byOperator bool, report sandbox.Report) *job.Notice {
	switch {
	case byOperator:
		return &job.Notice{Code: "sandbox-off", Message: "the operator switched the sandbox off: commands read, write and connect to whatever the account of this process may"}
	case report.Level == sandbox.LevelNone:
		return &job.Notice{Code: "sandbox-none", Message: "this machine has no sandbox: commands read, write and connect to whatever the account of this process may"}
	case report.Level == sandbox.LevelPartial:
		var missing []string
		for _, p := range report.Missing() {
			missing = append(missing, p.Title)
		}
		return &job.Notice{Code: "sandbox-partial", Message: "commands are confined in part, without " + strings.Join(missing, ", ")}
	}
	return nil
}

// closeProcesses ends every process of the job and removes what was made for them.
func (r *run) closeProcesses() error {
	r.process.once.Do(func() { r.process.err = errNoProcesses }) // nothing may start any more
	if r.process.sandbox != nil {
		r.process.sandbox.Close()
	}
	if r.process.made == "" {
		return nil
	}
	return os.RemoveAll(r.process.made)
}
