package jobproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// remains is what is known of a child that ended without a terminal event: the details of its job.failed.
type remains struct {
	// ExitCode is -1 if a signal ended the process.
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`
	// Log is the end of what the process wrote to its log.
	Log string `json:"log,omitempty"`
}

// lost is the terminal event of a job whose child did not send one. The child must be gone.
func (h *Handle) lost(fault error) *job.FailedData {
	data := &job.FailedData{
		Reason:  job.ReasonError,
		Code:    job.CodeProcessLost,
		Message: h.obituary(fault),
		Outputs: h.outputs,
	}
	if v := h.verdict.Load(); v != nil {
		data.Reason, data.Code, data.Message = v.reason, v.code, v.message
	}
	details, err := json.Marshal(h.remains())
	if err != nil {
		panic(err) // a number and two strings always have a JSON form
	}
	data.Details = details
	return data
}

// missing is the outcome of a job with a journal whose child did not say how the attempt ended. The child must be gone.
func (h *Handle) missing(fault error) *job.Lost {
	r := h.remains()
	return &job.Lost{Message: h.obituary(fault), ExitCode: r.ExitCode, Signal: r.Signal, Log: r.Log}
}

// stillborn is the error of a child that ended before its job began.
func (h *Handle) stillborn(ctx context.Context, fault error) error {
	e := &problem.Error{Kind: problem.Unavailable, Op: "start job process", Message: h.obituary(fault)}
	if v := h.verdict.Load(); ctx.Err() != nil {
		e.Message, e.Err = "the start was given up", context.Cause(ctx)
	} else if v != nil {
		e.Message = v.message
	}
	if log := h.remains().Log; log != "" {
		e.Message += "; its log ends in: " + log
	}
	return e
}

// obituary says in one sentence how the child ended.
func (h *Handle) obituary(fault error) string {
	switch {
	case errors.Is(fault, io.EOF):
		return "the job process ended without a result: " + h.process.state.String()
	case errors.Is(fault, io.ErrUnexpectedEOF):
		return "the job process ended in the middle of a line: " + h.process.state.String()
	}
	return fmt.Sprintf("the job process broke its protocol and was killed: %v", fault)
}

func (h *Handle) remains() remains {
	r := remains{ExitCode: h.process.state.ExitCode(), Log: h.logs.tail()}
	if status, ok := h.process.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.Signal = status.Signal().String()
	}
	return r
}
