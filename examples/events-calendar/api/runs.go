package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/run"
	"github.com/hozo-run/hozo/examples/events-calendar/runner"
)

// runRequest is the body of POST /run.
type runRequest struct {
	Input string   `json:"input"`
	Mode  run.Mode `json:"mode"`
	// Wait holds the answer back until the run has ended.
	Wait bool `json:"wait"`
}

// runView is a run as clients see it.
type runView struct {
	RunID string `json:"runId"`
	run.Run
	// Links are the addresses of what belongs to the run.
	Links map[string]string `json:"links"`
}

func view(r run.Run) runView {
	base := "/runs/" + r.ID
	return runView{RunID: r.ID, Run: r, Links: map[string]string{"self": base, "steps": base + "/steps", "stm": base + "/stm", "stream": base + "/stream", "artifact": base + "/artifact"}}
}

// maxKey is the longest Idempotency-Key.
const maxKey = 255

func (s *surface) startRun(w http.ResponseWriter, r *http.Request) error {
	var q runRequest
	if _, err := readJSON(w, r, &q); err != nil {
		return err
	}
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		return &statusError{http.StatusBadRequest, fmt.Sprintf("an Idempotency-Key has at most %d characters", maxKey)}
	}
	started, err := s.submit(r.Context(), q, key)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/runs/"+started.ID)
	if !q.Wait {
		writeJSON(w, http.StatusAccepted, view(started))
		return nil
	}
	ended, err := s.Runs.Wait(r.Context(), started.ID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, view(ended))
	return nil
}

// submit starts a run. Two requests of one key are the same if they ask for the same; whether they wait does not matter.
func (s *surface) submit(ctx context.Context, q runRequest, key string) (run.Run, error) {
	if q.Mode == "" {
		q.Mode = run.Review
	}
	content, err := json.Marshal([]string{q.Input, string(q.Mode)})
	if err != nil {
		return run.Run{}, err
	}
	sum := sha256.Sum256(content)
	return s.Agent.Submit(ctx, runner.Request{Input: q.Input, Mode: q.Mode, Key: run.Key{Text: key, Digest: hex.EncodeToString(sum[:])}})
}

func (s *surface) listRuns(w http.ResponseWriter, r *http.Request) error {
	limit, err := pageLimit(r, 200)
	if err != nil {
		return err
	}
	filter := run.Filter{Status: run.Status(r.URL.Query().Get("status")), Limit: limit, Cursor: r.URL.Query().Get("cursor")}
	if filter.Status != "" && !slices.Contains(run.Statuses(), filter.Status) {
		var list problem.List
		list.AddHint("status-unknown", "/status", fmt.Sprintf("known: %v", run.Statuses()), "there is no status %q", filter.Status)
		return list.Err("list runs")
	}
	page, err := s.Runs.List(r.Context(), filter)
	if err != nil {
		return err
	}
	items := make([]runView, len(page.Items))
	for i, item := range page.Items {
		items[i] = view(item)
	}
	writeJSON(w, http.StatusOK, map[string]any{"items": items, "nextCursor": page.NextCursor})
	return nil
}

func (s *surface) showRun(w http.ResponseWriter, r *http.Request) error {
	found, err := s.Runs.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, view(found))
	return nil
}

func (s *surface) listSteps(w http.ResponseWriter, r *http.Request) error {
	steps, err := s.Runs.Steps(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"items": steps})
	return nil
}

func (s *surface) showStep(w http.ResponseWriter, r *http.Request) error {
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil {
		return &problem.Error{Kind: problem.NotFound, Message: "steps are counted from 1"}
	}
	step, err := s.Runs.Step(r.Context(), r.PathValue("id"), n)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, step)
	return nil
}

// showDocument shows the working-memory document after ?step=, or the latest one; as Markdown to those who ask for that.
func (s *surface) showDocument(w http.ResponseWriter, r *http.Request) error {
	step := int64(-1)
	if text := r.URL.Query().Get("step"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			var list problem.List
			list.Add("step-invalid", "/step", "the step must be a number from 0")
			return list.Err("read the parameters")
		}
		step = n
	}
	document, err := s.Runs.Document(r.Context(), r.PathValue("id"), step)
	if err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Accept"), "text/markdown") {
		writeMarkdown(w, document.Document)
		return nil
	}
	writeJSON(w, http.StatusOK, document)
	return nil
}

func writeMarkdown(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	_, _ = io.WriteString(w, text) // the client is gone; there is nobody to tell
}

func (s *surface) artifact(w http.ResponseWriter, r *http.Request) error {
	report, err := s.Runs.Report(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeMarkdown(w, report)
	return nil
}

func (s *surface) abortRun(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := s.Agent.Abort(r.Context(), id, "aborted over HTTP"); err != nil {
		return err
	}
	found, err := s.Runs.Find(r.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, view(found))
	return nil
}

// stream sends the events of a run as server-sent events. A client that comes back with Last-Event-ID goes on after that
// event; one that has them all is told to stay away (204).
func (s *surface) stream(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	after, err := lastEvent(r.Header.Get("Last-Event-ID"), id)
	if err != nil {
		return err
	}
	found, err := s.Runs.Find(r.Context(), id)
	if err != nil {
		return err
	}
	last, err := s.Runs.LastSeq(r.Context(), id)
	if err != nil {
		return err
	}
	if found.Status.Ended() && after > 0 && after >= last {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	s.send(w, r, id, after)
	return nil
}

// lastEvent reads the id of the last event that a client has, "<run>:<number>".
func lastEvent(text, id string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	of, number, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || of != id || n < 0 {
		return 0, &statusError{http.StatusBadRequest, "Last-Event-ID is not the id of an event of this run"}
	}
	return n, nil
}

// send writes events until the run has ended or the client is gone. The status has been sent, so an error can only end
// the stream: the client comes back and goes on.
func (s *surface) send(w http.ResponseWriter, r *http.Request, id string, after int64) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	batches := make(chan []run.Stored)
	done := make(chan error, 1)
	go func() {
		done <- s.Runs.Follow(ctx, id, after, func(batch []run.Stored) error {
			select {
			case batches <- batch:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	defer func() {
		cancel()
		<-done
		close(done)
	}()
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	for {
		var text strings.Builder
		select {
		case batch := <-batches:
			for _, e := range batch {
				fmt.Fprintf(&text, "id: %s:%d\nevent: %s\ndata: %s\n\n", id, e.Seq, e.Type, e.JSON)
			}
		case <-beat.C:
			text.WriteString(": still there\n\n")
		case err := <-done:
			if err != nil && r.Context().Err() == nil {
				s.Log.ErrorContext(r.Context(), "a stream has failed", "run", id, "error", err)
			}
			done <- err
			return
		}
		if _, err := io.WriteString(w, text.String()); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
	}
}
