package memory

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/tool"
)

// NoteTool is the name of the tool.
const NoteTool = "note_lesson"

type notebookKey struct{}

// WithNotebook returns a context for hostserver.Server.Connect.
func WithNotebook(ctx context.Context, n *Notebook) context.Context {
	return context.WithValue(ctx, notebookKey{}, n)
}

// Tool returns the tool through which a run notes lessons in its notebook. They are learned when the run has ended.
func Tool() hostserver.Tool {
	return hostserver.New(job.HostTool{
		Name: NoteTool, Version: "1", Effect: string(tool.EffectWrite), Idempotent: true,
		Description: "Notes something that later runs should know, such as which source is reliable or which search finds nothing. " +
			"Note what holds beyond this run, with its reason, and never an event.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["title","text"],"properties":{
			"title":{"type":"string","description":"the lesson in one line"},
			"text":{"type":"string","description":"the lesson with its reason"}}}`),
	}, note)
}

func note(ctx context.Context, call *hostserver.Call, d Draft) hostserver.Result {
	notebook, ok := ctx.Value(notebookKey{}).(*Notebook)
	if !ok {
		return hostserver.Errorf("this run keeps no lessons; go on without")
	}
	d.Title, d.Text = strings.TrimSpace(d.Title), strings.TrimSpace(d.Text)
	if err := d.Check().Err("note a lesson"); err != nil {
		return hostserver.Errorf("%v", err)
	}
	if err := notebook.Note(call.ID, d); err != nil {
		return hostserver.Errorf("%v", err)
	}
	return hostserver.Text("Noted; it is kept when the run has ended.")
}
