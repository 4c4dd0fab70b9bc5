package api

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
)

// Orchestrator executes runs; it is what the API needs of the one in this process.
type Orchestrator interface {
	// Submit accepts a run, durably. Errors are run.ErrFull, run.ErrOtherRequest and *problem.Error.
	Submit(ctx context.Context, request run.Request) (run.Created, error)
	// Cancel wants a run of a tenant to end. A run that has ended stays as it is.
	Cancel(ctx context.Context, tenant, id, cause string) (run.Run, error)
	// Decide answers calls that a suspended run of a tenant waits for.
	Decide(ctx context.Context, tenant, id string, decisions []job.Decision, by string) (run.Decided, error)
}

func (h *Handler) runs() {
	const tag = "runs"
	route(h, tag, "start-run", "POST /api/v1/runs", "Start a run", h.startRun, makes())
	route(h, tag, "list-runs", "GET /api/v1/runs", "Runs, newest first", h.listRuns)
	route(h, tag, "get-run", "GET /api/v1/runs/{id}", "One run", func(ctx context.Context, in *ByID) (*plain[run.Run], error) {
		r, err := h.run(ctx, in.ID, access.RunsRead)
		return &plain[run.Run]{r}, err
	})
	route(h, tag, "cancel-run", "POST /api/v1/runs/{id}/cancel", "End a run; one that has ended stays as it is", h.cancelRun)
	route(h, tag, "decide", "POST /api/v1/runs/{id}/decisions", "Answer calls that a suspended run waits for", h.decide)
}

// run returns a run of the caller's tenant in whose project the caller has a permission.
func (h *Handler) run(ctx context.Context, id string, permission access.Permission) (run.Run, error) {
	r, err := h.config.Runs.Get(ctx, tenantOf(ctx), id)
	if err != nil {
		return run.Run{}, err
	}
	if !may(ctx, permission, r.Project) {
		return run.Run{}, missing(ctx)
	}
	return r, nil
}

// startedRun is the answer to a start: 201 for a new run, 200 for one that was there.
type startedRun struct {
	Status   int
	Location string `header:"Location"`
	Body     run.Run
}

func (h *Handler) startRun(ctx context.Context, in *struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"A request with the key of an earlier one is answered with its run; with other content it is refused."`
	Body           wire.RunRequest
}) (*startedRun, error) {
	body := in.Body
	if !may(ctx, access.RunsStart, body.Project) {
		if body.Project == "" {
			return nil, access.ErrForbidden
		}
		return nil, missing(ctx)
	}
	if len(body.Input) > 0 && !isObject(body.Input) {
		return nil, invalid(ctx, "/input", "type", "input is not an object")
	}
	if body.Parent != "" {
		if _, err := h.run(ctx, body.Parent, access.RunsRead); err != nil {
			return nil, err
		}
	}
	made, err := h.config.Orchestrator.Submit(ctx, run.Request{
		Tenant: tenantOf(ctx), Project: body.Project, Agent: body.Agent, Version: body.Version, Origin: "api",
		StartedBy: actorOf(ctx), Parent: body.Parent, Input: body.Input, NotBefore: body.NotBefore,
		IdempotencyKey: idempotencyKey(ctx, in.IdempotencyKey),
	})
	if err != nil {
		return nil, err
	}
	status := http.StatusCreated
	if made.Found {
		status = http.StatusOK
	}
	return &startedRun{status, "/api/v1/runs/" + made.Run.ID, made.Run}, nil
}

// idempotencyKey reads the header, quoted or bare. Keys of different callers are different ones.
func idempotencyKey(ctx context.Context, given string) string {
	key := given
	if unquoted, err := strconv.Unquote(given); err == nil {
		key = unquoted
	}
	if key == "" {
		return ""
	}
	return actorOf(ctx) + ":" + key
}

// actorOf names the caller: a key, or else a user.
func actorOf(ctx context.Context) string {
	p := principalOf(ctx)
	return cmp.Or(p.KeyID, p.UserID)
}

func isObject(text json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(text, &object) == nil && object != nil
}

// runQuery chooses runs.
type runQuery struct {
	Paging
	Project string   `query:"project" maxLength:"128" doc:"Only runs of this project."`
	Agent   string   `query:"agent" maxLength:"128" doc:"Only runs of this agent."`
	Parent  string   `query:"parent" maxLength:"64" doc:"Only runs that belong to this one."`
	State   []string `query:"state" enum:"queued,running,suspended,completed,failed,cancelled" doc:"Only runs in one of these states."`
}

func (h *Handler) listRuns(ctx context.Context, in *runQuery) (*plain[wire.Page[run.Run]], error) {
	before, err := in.after(ctx)
	if err != nil {
		return nil, err
	}
	filter := run.Filter{Project: in.Project, Agent: in.Agent, Parent: in.Parent, Before: before, Limit: in.Limit}
	for _, s := range in.State {
		filter.States = append(filter.States, run.State(s))
	}
	all, projects := access.AllowedProjects(principalOf(ctx), access.RunsRead)
	switch {
	case all && in.Project == "":
		projects = []string{""} // which chooses every project
	case all || slices.Contains(projects, in.Project):
		projects = []string{in.Project}
	case in.Project != "":
		projects = nil
	}
	return h.listRunsOf(ctx, filter, projects)
}

// listRunsOf lists the runs of several projects as one list, the newest first.
func (h *Handler) listRunsOf(ctx context.Context, filter run.Filter, projects []string) (*plain[wire.Page[run.Run]], error) {
	var found []run.Run
	more := false
	for _, project := range projects {
		filter.Project = project
		runs, next, err := h.config.Runs.List(ctx, tenantOf(ctx), filter)
		if err != nil {
			return nil, err
		}
		found, more = append(found, runs...), more || next != ""
	}
	slices.SortFunc(found, func(a, b run.Run) int { return strings.Compare(b.ID, a.ID) })
	more = more || len(found) > filter.Limit
	page := wire.Page[run.Run]{Items: found[:min(len(found), filter.Limit)]}
	if more && len(page.Items) > 0 {
		page.NextCursor = cursorOf(page.Items[len(page.Items)-1].ID)
	}
	return &plain[wire.Page[run.Run]]{page}, nil
}

func (h *Handler) cancelRun(ctx context.Context, in *struct {
	ByID
	Body *wire.Cancellation
}) (*plain[run.Run], error) {
	r, err := h.run(ctx, in.ID, access.RunsManage)
	if err != nil {
		return nil, err
	}
	cause := "cancelled by " + cmp.Or(principalOf(ctx).Name, actorOf(ctx))
	if in.Body != nil && in.Body.Cause != "" {
		cause = in.Body.Cause
	}
	r, err = h.config.Orchestrator.Cancel(ctx, tenantOf(ctx), r.ID, cause)
	return &plain[run.Run]{r}, err
}

func (h *Handler) decide(ctx context.Context, in *struct {
	ByID
	Body wire.Decisions
}) (*plain[wire.Decided], error) {
	r, err := h.run(ctx, in.ID, access.ApprovalsDecide)
	if err != nil {
		return nil, err
	}
	decided, err := h.config.Orchestrator.Decide(ctx, tenantOf(ctx), r.ID, in.Body.Decisions, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	return &plain[wire.Decided]{wire.Decided{Run: decided.Run, Open: decided.Open}}, nil
}

// records are what the attempts of a run have left.
func (h *Handler) records() {
	const tag = "runs"
	route(h, tag, "list-attempts", "GET /api/v1/runs/{id}/attempts", "The attempts of a run, first one first", func(ctx context.Context, in *ByID) (*plain[wire.Page[run.Attempt]], error) {
		r, err := h.run(ctx, in.ID, access.RunsRead)
		if err != nil {
			return nil, err
		}
		return whole(h.config.Runs.Attempts(ctx, tenantOf(ctx), r.ID))
	})
	route(h, tag, "list-steps", "GET /api/v1/runs/{id}/steps", "What a run did, in order", h.listSteps)
	route(h, tag, "get-step-output", "GET /api/v1/runs/{id}/steps/{n}/output", "The whole output of a step", h.stepOutput,
		content("application/octet-stream", "The output, byte for byte."))
	route(h, tag, "export-journal", "GET /api/v1/runs/{id}/journal", "The journal of a run, for replay", h.journal,
		content(wire.LinesType, "The frames of the journal, one on each line."))
}

func (h *Handler) listSteps(ctx context.Context, in *struct {
	ByID
	Paging
}) (*plain[wire.Page[run.Step]], error) {
	r, err := h.run(ctx, in.ID, access.RunsRead)
	if err != nil {
		return nil, err
	}
	after, err := number(ctx, in.Paging)
	if err != nil {
		return nil, err
	}
	steps, err := h.config.Runs.Steps(ctx, tenantOf(ctx), r.ID, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return &plain[wire.Page[run.Step]]{pageOf(steps, in.Limit, func(s run.Step) string { return strconv.FormatInt(s.N, 10) })}, nil
}

// number returns the number that a cursor stands for, 0 for the first page.
func number(ctx context.Context, p Paging) (int64, error) {
	text, err := p.after(ctx)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, invalid(ctx, "", "cursor", "the cursor is none that this server gave")
	}
	return n, nil
}

func (h *Handler) stepOutput(ctx context.Context, in *struct {
	ByID
	N int64 `path:"n" minimum:"1"`
}) (*huma.StreamResponse, error) {
	r, err := h.run(ctx, in.ID, access.RunsRead)
	if err != nil {
		return nil, err
	}
	steps, err := h.config.Runs.Steps(ctx, tenantOf(ctx), r.ID, in.N-1, 1)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 || steps[0].N != in.N {
		return nil, missing(ctx)
	}
	output, err := h.config.Runs.OpenOutput(ctx, steps[0])
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer output.Close()
		c.SetHeader("Content-Type", "application/octet-stream")
		c.SetHeader("Content-Disposition", "attachment")
		c.SetHeader("Content-Length", strconv.FormatInt(steps[0].Bytes, 10))
		c.SetStatus(http.StatusOK)
		h.copyOut(c, output)
	}}, nil
}

// copyOut sends content, which may take longer than one answer may else.
func (h *Handler) copyOut(c huma.Context, content io.Reader) {
	w := h.slowWriter(c)
	if _, err := io.Copy(w, content); err != nil {
		h.config.Log.WarnContext(c.Context(), "a download ended early", "requestId", requestID(c.Context()), "error", err)
		panic(http.ErrAbortHandler) // the reader must not take it for whole
	}
}

func (h *Handler) journal(ctx context.Context, in *ByID) (*huma.StreamResponse, error) {
	r, err := h.run(ctx, in.ID, access.RunsRead)
	if err != nil {
		return nil, err
	}
	frames, err := h.config.Runs.Journal(ctx, tenantOf(ctx), r.ID)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", wire.LinesType)
		c.SetHeader("Content-Disposition", `attachment; filename="`+r.ID+`.jsonl"`)
		c.SetStatus(http.StatusOK)
		w := h.slowWriter(c)
		for frame, err := range frames {
			if err == nil {
				_, err = w.Write(append(slices.Clip(frame), '\n'))
			}
			if err != nil {
				h.config.Log.WarnContext(c.Context(), "the export of a journal ended early", "requestId", requestID(c.Context()), "error", err)
				panic(http.ErrAbortHandler) // the reader must not take it for whole
			}
		}
	}}, nil
}
