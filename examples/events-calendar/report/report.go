// Package report writes the Calendar Report, the artifact of a run: a Markdown file whose frontmatter holds the figures for
// programs and whose body tells people what was found, what was refused and why, what the run had to do without, which
// lessons it used and left, and, word for word, the working-memory document in which the agent reasoned. The same run gives
// the same bytes.
package report

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// Content is what a report is made of.
type Content struct {
	Run                 run.Run
	Agent, AgentVersion string
	Steps               []run.Step
	// Results are all proposals of the run, in order.
	Results []calendar.Result
	// Document is the final working-memory document, "" if there is none.
	Document string
}

// Front is the frontmatter of a report.
type Front struct {
	Kind         string `yaml:"kind"`
	Run          string `yaml:"run"`
	Status       string `yaml:"status"`
	Reason       string `yaml:"reason,omitempty"`
	Mode         string `yaml:"mode"`
	Agent        string `yaml:"agent"`
	AgentVersion string `yaml:"agentVersion"`
	Model        string `yaml:"model"`
	// Simulated says that the model was a script and no language model.
	Simulated bool     `yaml:"simulated"`
	Coverage  Coverage `yaml:"coverage"`
	Counts    Counts   `yaml:"counts"`
	ThisRun   ThisRun  `yaml:"thisRun"`
	Memory    Memory   `yaml:"memory"`
	Prompts   []Prompt `yaml:"prompts"`
}

// Coverage is how much of the task was met, and what was missing on the way.
type Coverage struct {
	// Percent is the agent's own figure; nil if it gave none.
	Percent *int `yaml:"percent"`
	// FirstDay and LastDay bound the events of the run.
	FirstDay string   `yaml:"firstDay,omitempty"`
	LastDay  string   `yaml:"lastDay,omitempty"`
	Degraded []Notice `yaml:"degraded"`
}

// Notice is something that the run had to do without.
type Notice struct {
	Code    string `yaml:"code"`
	Message string `yaml:"message"`
}

// Counts is what became of the proposals. An event that was proposed more than once counts once, as it ended, except that
// each refused proposal counts.
type Counts struct {
	Created   int `yaml:"created"`
	Updated   int `yaml:"updated"`
	Unchanged int `yaml:"unchanged"`
	Kept      int `yaml:"kept"`
	Invalid   int `yaml:"invalid"`
	Approved  int `yaml:"approved"`
	Proposed  int `yaml:"proposed"`
}

// ThisRun is what the run took.
type ThisRun struct {
	StartedAt  string  `yaml:"startedAt,omitempty"`
	EndedAt    string  `yaml:"endedAt,omitempty"`
	Steps      int64   `yaml:"steps"`
	Turns      int64   `yaml:"turns"`
	Requests   int64   `yaml:"requests"`
	Input      int64   `yaml:"inputTokens"`
	Output     int64   `yaml:"outputTokens"`
	CostUSD    float64 `yaml:"costUsd"`
	Unpriced   bool    `yaml:"unpriced,omitempty"`
	DurationMS int64   `yaml:"durationMs"`
}

// Memory holds the ids of the lessons that the run was given and of those that it left.
type Memory struct {
	Applied []string `yaml:"applied"`
	Learned []string `yaml:"learned"`
}

// Prompt is where a prompt of the run came from.
type Prompt struct {
	Name     string `yaml:"name"`
	Label    string `yaml:"label"`
	Source   string `yaml:"source"`
	Version  string `yaml:"version"`
	SHA256   string `yaml:"sha256"`
	Fallback string `yaml:"fallback,omitempty"`
}

// Render writes the report.
func Render(c Content) (string, error) {
	settled := settle(c.Results)
	front, err := yaml.Marshal(head(c, settled))
	if err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	w := &writer{}
	w.printf("---\n%s---\n# Calendar report\n\n", front)
	w.printf("Task: %s\n\n", line(c.Run.Input))
	w.outcome(c.Run)
	w.events(settled)
	w.refused(settled)
	w.coverage(c.Run)
	w.lessons("Lessons applied", "The run was given no lessons.", c.Run.Applied)
	w.lessons("Lessons learned", "The run left no lessons.", c.Run.Learned)
	w.steps(c.Steps)
	w.document(c.Document)
	return w.String(), nil
}

func head(c Content, settled []calendar.Result) Front {
	r := c.Run
	f := Front{Kind: "calendar-report", Run: r.ID, Status: string(r.Status), Mode: string(r.Mode), Agent: c.Agent, AgentVersion: c.AgentVersion,
		Model: r.Model.Provider + "/" + r.Model.ID, Simulated: r.Model.Simulated,
		Coverage: Coverage{Percent: percent(c.Document), Degraded: []Notice{}},
		Counts:   count(settled), ThisRun: figures(r), Memory: Memory{Applied: ids(r.Applied), Learned: ids(r.Learned)}, Prompts: []Prompt{}}
	if r.Failure != nil {
		f.Reason = string(r.Failure.Reason)
	}
	for _, d := range r.Degraded {
		f.Coverage.Degraded = append(f.Coverage.Degraded, Notice{Code: d.Code, Message: d.Message})
	}
	for _, p := range r.Prompts {
		f.Prompts = append(f.Prompts, Prompt{p.Name, p.Label, p.Source, p.Version, p.SHA256, p.Fallback})
	}
	for _, s := range settled {
		if s.Outcome == calendar.Invalid {
			continue
		}
		if f.Coverage.FirstDay == "" || s.Date < f.Coverage.FirstDay {
			f.Coverage.FirstDay = s.Date
		}
		f.Coverage.LastDay = max(f.Coverage.LastDay, s.Date)
	}
	return f
}

func figures(r run.Run) ThisRun {
	t := ThisRun{Steps: r.Steps, Turns: r.Usage.Turns, Requests: r.Usage.Requests, Input: r.Usage.Tokens.Input, Output: r.Usage.Tokens.Output,
		CostUSD: float64(r.Usage.CostMicroUSD) / 1e6, Unpriced: r.Usage.Unpriced}
	if r.StartedAt != nil {
		t.StartedAt = r.StartedAt.Format(time.RFC3339)
	}
	if r.EndedAt != nil {
		t.EndedAt = r.EndedAt.Format(time.RFC3339)
		if r.StartedAt != nil {
			t.DurationMS = r.EndedAt.Sub(*r.StartedAt).Milliseconds()
		}
	}
	return t
}

func ids(lessons []memory.Lesson) []string {
	all := []string{}
	for _, l := range lessons {
		all = append(all, l.ID)
	}
	return all
}

// settle keeps one result for each event: the first place and, of the outcomes, the one that says what the run did to it.
func settle(results []calendar.Result) []calendar.Result {
	at := map[string]int{}
	var settled []calendar.Result
	for _, r := range results {
		i, known := at[r.ID]
		switch {
		case r.Outcome == calendar.Invalid:
			settled = append(settled, r)
		case !known:
			at[r.ID] = len(settled)
			settled = append(settled, r)
		default:
			did := settled[i].Outcome
			if did == calendar.Created || r.Outcome == calendar.Unchanged {
				r.Outcome = did
			}
			settled[i] = r
		}
	}
	return settled
}

func count(settled []calendar.Result) Counts {
	var c Counts
	for _, r := range settled {
		switch r.Outcome {
		case calendar.Created:
			c.Created++
		case calendar.Updated:
			c.Updated++
		case calendar.Unchanged:
			c.Unchanged++
		case calendar.Kept:
			c.Kept++
		case calendar.Invalid:
			c.Invalid++
		}
		switch r.Status {
		case calendar.Approved:
			c.Approved++
		case calendar.Proposed:
			c.Proposed++
		}
	}
	return c
}

var percentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d{1,3})\s?%`) })

// percent reads the agent's own figure from the last section of its document.
func percent(document string) *int {
	_, section, ok := strings.Cut(document, "## Coverage & confidence")
	if !ok {
		return nil
	}
	m := percentPattern().FindStringSubmatch(section)
	if m == nil {
		return nil
	}
	n := 0
	if _, err := fmt.Sscan(m[1], &n); err != nil || n > 100 {
		return nil
	}
	return &n
}
