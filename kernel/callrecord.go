package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// What is recorded of calls, and what becomes of a call that was under way when an attempt ended: one that only reads, or
// that does no more when it is made twice, is made again; one that replaces a file has had its effect if the file is no
// longer what it was; of any other nobody knows, and the model is told so.

// recordStart records that a call begins, or takes over what is recorded of its beginning. group is how many calls run at
// the same time from this one on.
func (t *thread) recordStart(c *call, group int) *stop {
	j := &t.run.record
	if !j.replaying() {
		if j.journal == nil {
			return nil
		}
		c.before = t.fileNow(c)
		frame := job.CallStartedFrame{CallID: c.ID, ParentCallID: c.parentID(), Turn: c.turn, Tool: c.Name, Arguments: c.arguments,
			Group: group, Code: c.code, Reason: c.reason, Before: c.before}
		if c.tool != nil {
			frame.Version, frame.Effect = c.tool.Version, string(c.tool.Effect)
		}
		if c.agent != nil {
			frame.Effect = job.EffectSubagent
		}
		return j.put(job.FrameCallStarted, &frame)
	}
	var frame job.CallStartedFrame
	if _, stopped := j.take(job.FrameCallStarted, &frame); stopped != nil {
		return stopped
	}
	if frame.CallID != c.ID || frame.Tool != c.Name {
		return diverged("frame %d begins call %s of %q, not %s of %q", j.taken.N, frame.CallID, frame.Tool, c.ID, c.Name)
	}
	c.recalled, c.arguments, c.before = true, frame.Arguments, frame.Before
	c.code, c.reason = frame.Code, frame.Reason
	return nil
}

// conclude brings a call to its end: to the recorded one, or by running it.
func (t *thread) conclude(c *call) *stop {
	if c.agent != nil && c.code == "" {
		var stopped *stop
		if c.result, stopped = t.delegate(c); stopped != nil {
			return stopped
		}
	}
	for {
		ended, stopped := t.recallEnd(c)
		if ended || stopped != nil {
			return stopped
		}
		if c.result.Suspended == "" {
			t.obtain(c)
		}
		if c.result.Suspended == "" || c.code != "" {
			break
		}
		if stopped := t.awaitDecision(c); stopped != nil {
			return stopped
		}
	}
	c.shape()
	return t.recordEnd(c)
}

// obtain gets the result of a call of which no end is recorded.
func (t *thread) obtain(c *call) {
	switch {
	case c.agent != nil && c.code == "":
		return
	case c.recalled && !c.again && c.code == "" && t.leftOpen(c):
		return
	case !c.started:
		t.start(c, make(chan struct{}, 1))
	}
	c.result = t.await(c)
	if c.result.Suspended != "" && t.run.record.journal == nil {
		c.result = tool.Errorf("the tool wants to wait until somebody has decided, which this job cannot; the call was not completed. Go on without it")
	}
}

// recallEnd takes the recorded end of a call and reports whether there was one. A recorded wait becomes the result.
func (t *thread) recallEnd(c *call) (ended bool, stopped *stop) {
	j := &t.run.record
	for {
		switch j.upcoming() {
		case job.FrameSuspended:
			var frame job.SuspendedFrame
			if _, stopped := j.take(job.FrameSuspended, &frame); stopped != nil {
				return false, stopped
			}
			for _, w := range frame.Waits {
				if w.CallID == c.ID {
					c.result.Suspended = w.WaitID
				}
			}
			if c.result.Suspended != "" {
				return false, nil
			}
		case job.FrameCheckpoint:
			if stopped := t.run.recallCheckpoint(); stopped != nil {
				return false, stopped
			}
		case job.FrameCallFinished:
			return true, t.recallFinished(c)
		default:
			return false, nil
		}
	}
}

func (t *thread) recallFinished(c *call) *stop {
	j := &t.run.record
	var frame job.CallFinishedFrame
	if _, stopped := j.take(job.FrameCallFinished, &frame); stopped != nil {
		return stopped
	}
	if frame.CallID != c.ID {
		return diverged("frame %d ends call %s, not %s", j.taken.N, frame.CallID, c.ID)
	}
	c.interrupted = frame.Interrupted
	c.result = tool.Result{Text: frame.Text, IsError: frame.IsError, Summary: frame.Summary, Images: frame.Images}
	for _, o := range frame.Outputs {
		c.result.Outputs = append(c.result.Outputs, tool.Output(o))
	}
	for _, r := range frame.Reads {
		c.result.Reads = append(c.result.Reads, tool.SourceRead(r))
	}
	c.inside.noteRead(frame.NestedReads)
	return nil
}

// recordEnd records what a call changed and answered.
func (t *thread) recordEnd(c *call) *stop {
	if t.run.record.journal == nil {
		return nil
	}
	if c.code == "" && c.tool.Effect != tool.EffectRead && c.agent == nil {
		if stopped := t.run.checkpoint(c.ID, t.turn); stopped != nil {
			return stopped
		}
	}
	frame := job.CallFinishedFrame{CallID: c.ID, ParentCallID: c.parentID(), Text: c.result.Text, IsError: c.result.IsError,
		Interrupted: c.interrupted, Summary: c.result.Summary, Images: c.result.Images, DurationMS: c.took().Milliseconds()}
	for _, o := range c.result.Outputs {
		frame.Outputs = append(frame.Outputs, job.OutputFile(o))
	}
	for _, r := range c.result.Reads {
		frame.Reads = append(frame.Reads, job.ReadRange(r))
	}
	frame.NestedReads, _ = c.inside.lists()
	return t.run.record.put(job.FrameCallFinished, &frame)
}

// leftOpen settles a call that was under way when an earlier attempt ended. It reports false if the call is to be made
// again.
func (t *thread) leftOpen(c *call) bool {
	switch {
	case c.tool.Effect == tool.EffectRead || c.tool.Idempotent:
		return false
	case c.tool.Target != nil && c.before != "":
		if t.fileNow(c) == c.before {
			return false
		}
		c.result = tool.Result{Text: "The job was interrupted during this call, and the file had been written by then: it is as the call wanted it.",
			Summary: "done before an interruption", Outputs: t.written(c)}
	default:
		c.interrupted = true
		c.result = tool.Errorf("interrupted: the job was interrupted during this call, so it may have had its effect or not, and it was not made again. Find out before you call it again.")
	}
	return true
}

// written is the file that a call has replaced.
func (t *thread) written(c *call) []tool.Output {
	name := c.tool.Target(c.arguments)
	data, err := t.run.plan.workspace.ReadOutput(name)
	if err != nil {
		return nil // it is gone again
	}
	return []tool.Output{{Path: path.Clean(name), Bytes: int64(len(data))}}
}

// fileNow identifies the file that a call replaces, "" if the call does not say which, or it cannot be read.
func (t *thread) fileNow(c *call) string {
	if c.code != "" || c.tool == nil || c.tool.Target == nil || t.run.plan.workspace == nil {
		return ""
	}
	data, err := t.run.plan.workspace.ReadOutput(c.tool.Target(c.arguments))
	if refused, ok := errors.AsType[*workspace.PathError](err); ok && refused.Code == workspace.CodeNotFound {
		return "absent"
	}
	if err != nil {
		return "" // the call will say what is wrong
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
