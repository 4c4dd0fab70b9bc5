package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/journal"
	"github.com/hozo-run/hozo/kernel"
)

func (p *program) replayCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "replay JOURNAL",
		Short: "Run a recorded job again offline and compare its requests",
		Long: `Run the job of a journal again, up to where the journal ends, with the answers of the model and of every call from the
journal, and compare each request with the one that was sent: its method, its path and every byte of its body. No model is
asked, no tool runs and nothing is written; neither the workspace nor a key is needed.

One line is written for each request. A request that differs is marked, with its turn and what is different; the program
that wrote the journal is then another one than this, or its journal was changed. The exit code is 0 if all are equal and
the replay came to the end of the journal, else 1.`,
		Example: `  hozo replay survey.journal
  hozo replay survey.journal --json | jq '.requests[] | select(.recorded != .made)'`,
		Args: exactly("the journal"),
		RunE: p.runs(func(_ *cobra.Command, args []string) error { return p.replay(args[0], asJSON) }),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write one JSON document")
	return command
}

func (p *program) replay(path string, asJSON bool) error {
	if _, _, err := p.readJournal(path); err != nil {
		return err
	}
	rt, err := newKernel(&operator{})
	if err != nil {
		return err
	}
	report, failed := rt.Replay(context.Background(), journal.Read(path))
	if report == nil {
		return failed
	}
	if asJSON {
		err = p.writeJSON(report)
	} else {
		p.printReplay(report)
	}
	switch {
	case err != nil:
		return &exitError{code: 1, err: err}
	case failed != nil:
		return &exitError{code: 1, err: failed}
	case report.Differs > 0:
		return &exitError{code: 1, err: fmt.Errorf("%s of %d differ", count(report.Differs, "request"), len(report.Requests))}
	}
	return nil
}

func (p *program) printReplay(report *kernel.ReplayReport) {
	for i := range report.Requests {
		q := &report.Requests[i]
		verdict := "equal"
		if !q.Equal() {
			verdict = "DIFFERS: " + difference(q)
		}
		fmt.Fprintf(p.stdout, "%s %s %s %s bytes: %s\n", requestName(q), visibleLine(q.Recorded.Method), visibleLine(q.Recorded.Path),
			thousands(q.Recorded.Bytes), verdict)
	}
	end := "the journal ends before its job does"
	if report.Ended {
		end = "the job ended as recorded"
	}
	fmt.Fprintf(p.stdout, "%s compared, %d differ; %s\n", count(len(report.Requests), "request"), report.Differs, end)
}

func requestName(q *kernel.ReplayedRequest) string {
	name := fmt.Sprintf("turn %d", q.Turn)
	if q.Try > 1 {
		name += fmt.Sprintf(", try %d", q.Try)
	}
	if q.Thread != "" {
		name = "call " + visibleLine(q.Thread) + ", " + name
	}
	if q.Purpose != "turn" {
		name += " (" + visibleLine(string(q.Purpose)) + ")"
	}
	return name
}

// difference says what of a request is not as it was recorded.
func difference(q *kernel.ReplayedRequest) string {
	switch {
	case q.Recorded.Method != q.Made.Method:
		return "the method is now " + visibleLine(q.Made.Method)
	case q.Recorded.Path != q.Made.Path:
		return "the path is now " + visibleLine(q.Made.Path)
	case q.Recorded.Bytes != q.Made.Bytes:
		return fmt.Sprintf("the body has now %s bytes", thousands(q.Made.Bytes))
	}
	return fmt.Sprintf("the body has other bytes (SHA-256 %.12s…, now %.12s…)", q.Recorded.SHA256, q.Made.SHA256)
}
