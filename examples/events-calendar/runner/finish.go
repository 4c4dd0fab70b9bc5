package runner

import (
	"context"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/report"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// finish ends a run: the lessons are learned, the report is written, and both are kept with the end.
func (r *Runner) finish(ctx context.Context, id string, outcome job.Outcome, drafts []memory.Draft) error {
	ended, err := r.config.Runs.Find(ctx, id)
	if err != nil {
		return err
	}
	settle(&ended, outcome)
	now := r.config.Now().UTC()
	ended.EndedAt = &now
	r.learn(ctx, &ended, drafts)
	content := report.Content{Run: ended, Agent: r.config.Agent.Definition.ID, AgentVersion: r.config.Agent.Definition.Version}
	if content.Steps, err = r.config.Runs.Steps(ctx, id); err != nil {
		return err
	}
	if content.Results, err = r.config.Calendar.Proposals(ctx, id); err != nil {
		return err
	}
	document, err := r.config.Runs.Document(ctx, id, -1)
	if err != nil && problem.KindOf(err) != problem.NotFound {
		return err
	}
	content.Document = document.Document
	text, err := report.Render(content)
	if err != nil {
		return err
	}
	if _, err := r.config.Runs.End(ctx, id, text, func(c *run.Run) { *c = ended }); err != nil {
		return err
	}
	r.removeDirectories(id)
	return nil
}

// settle writes an outcome into a run.
func settle(r *run.Run, o job.Outcome) {
	r.Status = run.StatusOf(o)
	switch {
	case o.Completed != nil:
		r.Answer = o.Completed.Answer
	case o.Failed != nil:
		r.Failure = &run.Failure{Reason: o.Failed.Reason, Code: o.Failed.Code, Message: o.Failed.Message}
	default: // a lost process, which nobody will take up
		r.Status, r.Failure = run.Failed, &run.Failure{Reason: job.ReasonError, Code: job.CodeProcessLost, Message: "the process of the job was lost"}
	}
	if o.Usage.Requests > 0 {
		r.Usage = o.Usage
	}
}

// learn keeps what the run has noted. A run that failed or was aborted may have noted what is wrong, so it leaves nothing.
func (r *Runner) learn(ctx context.Context, ended *run.Run, drafts []memory.Draft) {
	if len(drafts) == 0 || ended.Status != run.Completed && ended.Status != run.Stopped {
		return
	}
	learned, err := r.config.Memory.Learn(ctx, ended.ID, drafts)
	if err != nil {
		r.config.Log.Error("the memory failed", "run", ended.ID, "error", err)
		ended.Degraded = append(ended.Degraded, job.Notice{Code: "memory-unavailable", Message: "the lessons of the run could not be kept: the memory failed"})
		return
	}
	ended.Learned = learned
}
