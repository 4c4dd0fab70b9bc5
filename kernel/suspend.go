package kernel

import (
	"fmt"
	"slices"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/tool"
)

// A call may have to wait for a decision: because the spec says so for its tool, or because the tool says so when it is
// called. The attempt then ends without the job; the next one brings the decision, which is bound to the exact call.

// waits reports whether the call needs a decision before it runs.
func (c *call) waits() bool {
	if c.code != "" || c.decided || c.thread.run.spec.Approvals == nil {
		return false
	}
	switch c.thread.run.spec.Approvals.Tools[c.Name] {
	case job.ApproveAlways:
		return true
	case job.ApproveFirstUse:
		return !c.thread.run.granted[c.Name]
	}
	return false
}

// identity is what a decision about the call covers.
func (c *call) identity() *job.CallIdentity {
	definition := &c.thread.agent.spec.Agent
	id := &job.CallIdentity{Run: c.thread.run.jobID, CallID: c.ID, AgentID: definition.ID, AgentVersion: definition.Version,
		Tool: c.Name, Arguments: c.arguments}
	if c.tool != nil {
		id.ToolVersion = c.tool.Version
	}
	return id
}

// wait describes the call to whoever decides. id is "" for a wait that the spec asks for.
func (c *call) wait(id string) job.Wait {
	identity := c.identity()
	hash := identity.Hash()
	if id == "" {
		id = "w" + hash[:16]
	}
	return job.Wait{CallID: c.ID, Tool: c.Name, Version: identity.ToolVersion, Arguments: c.arguments, Hash: hash, WaitID: id}
}

// decide settles whether the first of the calls may run. Without a decision the attempt ends; it then asks for all the
// calls that need one.
func (t *thread) decide(calls []*call) *stop {
	c, j := calls[0], &t.run.record
	if j.replaying() && j.upcoming() != job.FrameCallDecided || !j.replaying() && !c.waits() {
		return nil
	}
	decision, stopped := t.run.decision(c.wait(""))
	switch {
	case stopped != nil:
		return stopped
	case decision != nil:
		return t.apply(c, decision)
	}
	var waits []job.Wait
	asked := map[string]bool{}
	for _, later := range calls {
		if later.waits() && (!asked[later.Name] || t.run.spec.Approvals.Tools[later.Name] == job.ApproveAlways) {
			asked[later.Name] = true
			waits = append(waits, later.wait(""))
		}
	}
	return t.run.suspend(waits)
}

// awaitDecision settles a call whose tool waits for a decision.
func (t *thread) awaitDecision(c *call) *stop {
	wait := c.wait(c.result.Suspended)
	decision, stopped := t.run.decision(wait)
	switch {
	case stopped != nil:
		return stopped
	case decision == nil:
		return t.run.suspend([]job.Wait{wait})
	}
	if stopped := t.apply(c, decision); stopped != nil {
		return stopped
	}
	c.result, c.again, c.started = tool.Result{}, true, false
	if c.code != "" {
		c.result = tool.Errorf("%s", c.reason)
	}
	return nil
}

// decision returns the decision about a wait and records it, nil if there is none.
func (r *run) decision(w job.Wait) (*job.Decision, *stop) {
	j := &r.record
	if j.replaying() {
		var frame job.CallDecidedFrame
		if _, stopped := j.take(job.FrameCallDecided, &frame); stopped != nil {
			return nil, stopped
		}
		if frame.CallID != w.CallID {
			return nil, diverged("frame %d decides about call %s, not %s", j.taken.N, frame.CallID, w.CallID)
		}
		return &frame.Decision, nil
	}
	if r.spec.Resume == nil {
		return nil, nil
	}
	at := slices.IndexFunc(r.spec.Resume.Decisions, func(d job.Decision) bool { return d.WaitID == w.WaitID && d.Hash == w.Hash })
	if at < 0 || r.used[w.WaitID] {
		return nil, nil
	}
	decision := &r.spec.Resume.Decisions[at]
	r.used[w.WaitID] = true
	return decision, j.put(job.FrameCallDecided, &job.CallDecidedFrame{CallID: w.CallID, Decision: *decision})
}

// apply does with a call what was decided.
func (t *thread) apply(c *call, d *job.Decision) *stop {
	c.decided = true
	reason := ""
	if d.Rationale != "" {
		reason = ": " + d.Rationale
	}
	switch d.Verdict {
	case job.VerdictApprove:
		t.run.granted[c.Name] = true
		if len(d.Arguments) > 0 && string(d.Arguments) != "null" {
			c.arguments = d.Arguments
			t.prepareArguments(c)
		}
	case job.VerdictReject:
		c.refuse(codeRejected, "rejected: whoever decides about this call does not want it"+reason+". Go on without it.")
	default:
		return stopf(job.ReasonAborted, job.CodeApprovalWithdrawn, "the call %s of %s was withdrawn%s", c.ID, c.Name, reason)
	}
	return nil
}

// suspend ends the attempt so that the job can go on later.
func (r *run) suspend(waits []job.Wait) *stop {
	if waits == nil {
		waits = []job.Wait{}
	}
	data := job.SuspendedData{Waits: waits}
	if stopped := r.record.put(job.FrameSuspended, &job.SuspendedFrame{SuspendedData: data}); stopped != nil {
		return stopped
	}
	if stopped := r.record.settle(); stopped != nil {
		return stopped
	}
	s := stopf("", "", "suspended: %d calls wait for a decision", len(waits))
	s.suspended = &data
	return s
}

// leaves reports whether nothing more can be answered or recorded after the stop.
func (s *stop) leaves() bool {
	return s.suspended != nil || s.code == job.CodeJournalFailed || s.code == job.CodeJournalDiverged || s == errReplayed
}

// countFault bounds how often failed calls go back to the model, if the spec does.
func (t *thread) countFault(c *call) *stop {
	rule := t.agent.spec.ToolErrors
	if rule == nil || !c.result.IsError || c.code == codeNotRun || c.code == codeRejected {
		return nil
	}
	kind := c.code
	if kind != codeUnknownTool && kind != codeInvalidArguments {
		kind = job.ToolErrorFailed
	}
	if slices.Contains(rule.RetryOn, kind) && t.toolFaults < rule.MaxRetries {
		t.toolFaults++
		return nil
	}
	stopped := stopf(job.ReasonError, job.CodeToolInvocation, "the call %s of %s failed (%s), and failed calls go back to the model %s",
		c.ID, cut(c.Name, 100), kind, retriesOf(rule, kind))
	stopped.details = map[string]any{"callId": c.ID, "tool": cut(c.Name, 100), "kind": kind, "retries": t.toolFaults}
	return stopped
}

func retriesOf(rule *job.ToolErrors, kind string) string {
	if !slices.Contains(rule.RetryOn, kind) {
		return "only for " + fmt.Sprint(rule.RetryOn)
	}
	return fmt.Sprintf("%d times at most", rule.MaxRetries)
}
